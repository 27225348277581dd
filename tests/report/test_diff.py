from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codemod.report.diff import unified
from codemod.result import FileChange

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\xe9\n", b"d\r", b"\n"]), max_size=25)
ENDS = st.sampled_from([b"", b"end"])


def _applied(folder: Path, change: FileChange) -> bytes:
    """The file after `git apply` of its diff."""
    target = folder / change.path
    target.unlink(missing_ok=True)
    if change.before:
        target.write_bytes(change.before)
    (folder / "change.diff").write_bytes(b"".join(unified(change)))
    subprocess.run(["git", "apply", "change.diff"], cwd=folder, check=True)
    return target.read_bytes()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES, ENDS, LINES, ENDS)
def test_any_change_applies_byte_for_byte(
    tmp_path: Path, before: list[bytes], before_end: bytes, after: list[bytes], after_end: bytes
) -> None:
    change = FileChange("net.py", b"".join(before) + before_end, b"".join(after) + after_end)
    if change.before and change.after and change.before != change.after:
        assert _applied(tmp_path, change) == change.after


@pytest.mark.parametrize("path", ["two words.py", 'quo"te.py', "tab\t.py", "é.py"])
def test_an_odd_file_name_applies(tmp_path: Path, path: str) -> None:
    assert _applied(tmp_path, FileChange(path, b"x\n", b"y\n")) == b"y\n"


def test_a_new_file_applies(tmp_path: Path) -> None:
    assert _applied(tmp_path, FileChange("_chunked_bmm.py", b"", b"x\ny\n")) == b"x\ny\n"
