"""What `verify` says in the end."""

from __future__ import annotations

import pytest

from codemod.report.verification import conclusion
from codemod.verify.rung import Rung, Status
from codemod.verify.verdict import Ladder, Verification


@pytest.mark.parametrize(("count", "named"), [(1, 1), (6, 6), (7, 5), (60, 5)])
def test_of_many_rewritten_files_the_first_are_named(count: int, named: int) -> None:
    ladders = tuple(Ladder(title, (Rung("eager", Status.OK, 0.1),)) for title in ("before", "after"))
    files = tuple(f"pkg/file{i:02}.py" for i in range(count))
    lines = [text.plain for text in conclusion(Verification("pkg/net.py:Net", ladders, files))]
    assert lines[:named] == [f"{path}: rewritten in a copy" for path in files[:named]]
    rest = [f"{count - named} more files: rewritten in a copy"] if named < count else []
    assert lines[named:] == [*rest, "before: 1 rung passes", "after: 1 rung passes"]
