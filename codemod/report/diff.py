"""`--diff`: a unified diff that `git apply` and `patch -p1` take, byte for byte."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path

from codemod.result import FileChange, RunResult


class DiffReport:
    """Files in order; a new helper file is added once."""

    def render(self, result: RunResult) -> bytes:
        changes: dict[str, FileChange] = {}
        for file in result.files:
            for change in (file.change, file.helper):
                if change is not None:
                    changes.setdefault(change.path, change)
        return b"".join(chunk for change in changes.values() for chunk in unified(change))


def unified(change: FileChange) -> Iterator[bytes]:
    """The lines of the diff of one file, each with its line end."""
    path = _shown(change.path)
    old = b"a/" + path if change.before or Path(change.path).exists() else b"/dev/null"
    before, after = change.before.split(b"\n"), change.after.split(b"\n")
    lines = difflib.diff_bytes(difflib.unified_diff, _ended(before), _ended(after), old, b"b/" + path, lineterm=b"\n")
    for line in lines:
        yield line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"


def _ended(lines: list[bytes]) -> list[bytes]:
    """The lines with their ends; only the last may have none."""
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _shown(path: str) -> bytes:
    """Relative to where the tool was started, where that is possible."""
    given = Path(path)
    if given.is_absolute() and given.is_relative_to(Path.cwd()):
        given = given.relative_to(Path.cwd())
    return os.fsencode(os.path.normpath(given.as_posix()).lstrip("/"))
