"""What is handed the result of a view may write to it: a copy would keep the write to itself.

In each program every view is refused; those that something writes to are `written-through`, the others `failing`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.layout.verdicts import check

PROGRAMS = sorted((Path(__file__).parents[1] / "data" / "writers").glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_writes_are_seen_wherever_the_view_is_handed(program: Path) -> None:
    check(program.read_text(encoding="utf-8"))
