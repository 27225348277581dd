from __future__ import annotations

import pytest

from codemod.sources.source import Source, decode
from codemod.syntax.parse import Syntax, parse
from codemod.syntax.suppress import Suppressions, suppressions


def _suppressions(text: str) -> Suppressions:
    source = decode("train.py", text.encode())
    assert isinstance(source, Source)
    syntax = parse(source)
    assert isinstance(syntax, Syntax)
    return suppressions(syntax)


@pytest.mark.parametrize(
    "comment",
    [
        "# torch-codemod: ignore",
        "#torch-codemod:ignore",
        "# torch-codemod: ignore why not",
        "# torch-codemod: ignore[view-to-reshape] shares memory on purpose",
        "# torch-codemod: ignore[chunk-bmm, view-to-reshape]",
        "# noqa: E501  # torch-codemod: ignore [view-to-reshape]",
    ],
)
def test_comment_on_the_line_covers_the_call(comment: str) -> None:
    assert _suppressions(f"a\ny = x.view(1)  {comment}\n").covers(2, 2, "view-to-reshape") == 2


@pytest.mark.parametrize(
    "text",
    [
        "y = x.view(1)\n# torch-codemod: ignore\n",
        "y = x.view(1)  # torch-codemod: ignore[chunk-bmm]\n",
        "y = x.view(1)  # torch-codemod: ignore[]\n",
        "y = x.view(1)  # torch-codemod: ignored\n",
        "y = x.view('# torch-codemod: ignore')\n",
        "y = x.view(1)  # codemod: ignore\n",
    ],
)
def test_other_comments_and_strings_cover_nothing(text: str) -> None:
    assert _suppressions(text).covers(1, 1, "view-to-reshape") is None


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_comment_on_any_line_of_the_call_covers_it(end: str) -> None:
    found = _suppressions(end.join(["'''", "'''", "y = x.view(", "  1,  # torch-codemod: ignore", ")", ""]))
    assert found.covers(3, 5, "view-to-reshape") == 4


def test_comment_for_the_file_covers_every_line_after_those_on_lines() -> None:
    found = _suppressions("# torch-codemod: ignore-file[chunk-bmm]\ny = x.view(1)  # torch-codemod: ignore\n")
    assert found.covers(9, 9, "chunk-bmm") == 1
    assert found.covers(9, 9, "view-to-reshape") is None
    assert found.covers(2, 2, "chunk-bmm") == 2
    assert found.unused({2}) == (1,)
