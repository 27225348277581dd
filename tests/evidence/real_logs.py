"""Real logs: `program.py` run in a subprocess, and the call that each of its failures should be found at."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from codemod.evidence.failure import Failure
from codemod.evidence.locate import find_site, user_frame

PROGRAM = Path(__file__).with_name("program.py")
TEXT = PROGRAM.read_text(encoding="utf-8")
_CALL = re.compile(r"\.(view_as_complex|view_as|view|reshape)\b|\bflat(?=\(-1\))")


@lru_cache
def log_of(*names: str) -> str:
    """What the programs of these names print to stderr, one after the other."""
    done = subprocess.run([sys.executable, str(PROGRAM), *names], capture_output=True, text=True, timeout=300)
    return done.stderr


def logs_of(*names: str) -> Mapping[str, str]:
    """The log of each name, without the line that names it."""
    parts = re.split(r"^@@ (\w+)\n", log_of(*names), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def marked(name: str, text: str = TEXT) -> list[tuple[int, int]]:
    """(line, column) of the calls that carry the mark of this name, both 1-based."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        marks = dict(mark.partition("@")[::2] for mark in line.rpartition("# site: ")[2].split())
        if "# site: " in line and name in marks:
            match = list(_CALL.finditer(line))[int(marks[name] or 1) - 1]
            found.append((number, match.start() + 1 + match[0].startswith(".")))
    return found


def found_at(failure: Failure, text: str = TEXT, path: str = "src/program.py") -> tuple[int, int] | str:
    """Where the failure is located in a tree that holds the program and others; a sentence where nowhere."""
    user = user_frame(failure, ["README.md", path, "src/other/model.py"], lambda given: text if given == path else None)
    if user.path is None or user.frame is None:
        return user.why
    site = find_site(ast.parse(text), text, user.frame, failure)
    return (site.span.line, site.span.column) if site.span else site.why
