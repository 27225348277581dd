"""Programs that say at the line of each view what its verdict must be: `# failing`, `# safe`, ..."""

from __future__ import annotations

import re

from codemod.layout.analyse import analyse
from codemod.layout.project import Project
from codemod.layout.verdict import Ruling, rule_on
from codemod.result import FileError
from codemod.sources.source import Source, decode
from codemod.syntax.parse import Syntax, parse

_CLAIM = re.compile(r"#\s*(failing|layout-dependent|unknown|safe|written-through|not-a-shape-view)\s*$")

HEADER = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\nimport numpy as np\n"


def syntax_of(text: str) -> Syntax:
    source = decode("program.py", text.encode())
    assert isinstance(source, Source), source
    syntax = parse(source)
    assert not isinstance(syntax, FileError), syntax
    return syntax


def rulings(text: str) -> dict[int, Ruling]:
    """By line of the `view` token."""
    calls = [call for call in analyse(syntax_of(text), Project(".")) if call.operation in ("view", "view_as")]
    return {call.span.line: rule_on(call) for call in calls}


def claims(text: str) -> dict[int, str]:
    """By line, as written in the program's comments."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _CLAIM.search(line)
        if match:
            found[number] = match.group(1)
    return found


def check(program: str) -> None:
    """Every view of the program has the verdict that its line claims; every claim stands at a view."""
    text = HEADER + program
    expected = claims(text)
    seen = rulings(text)
    assert expected, "the program claims nothing"
    assert {line: ruling.verdict.value for line, ruling in seen.items()} == expected, {
        line: (ruling.verdict.value, [reason.text for reason in ruling.reasons])
        for line, ruling in seen.items()
        if ruling.verdict.value != expected.get(line)
    }
