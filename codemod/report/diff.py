"""`--diff`: a unified diff that `git apply` and `patch -p1` take, byte for byte."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

from codemod.report.hunks import Difference, differences, hunks
from codemod.result import FileChange, FileError, RunResult
from codemod.sources.notebook import decode_notebook

_CONTEXT = 3
_NO_NEWLINE = b"\n\\ No newline at end of file\n"
_STYLES = {b"-": "red", b"+": "green", b"@": "cyan"}
_SPECIAL = re.compile(rb'[\x00-\x1f\x7f"\\]')


class DiffReport:
    """Files in order; a new helper file is added once."""

    def render(self, result: RunResult) -> bytes:
        changes: dict[str, FileChange] = {}
        for file in result.files:
            for change in (file.change, file.helper):
                if change is not None:
                    changes.setdefault(change.path, change)
        return b"".join(line for change in changes.values() for line in unified(change))


def style(line: bytes) -> str:
    """How a terminal shows a line of the diff."""
    return "bold" if line.startswith((b"--- ", b"+++ ")) else _STYLES.get(line[:1], "")


def unified(change: FileChange) -> Iterator[bytes]:
    """The lines of the diff of one file, each with its line end."""
    before, after = _lines(change.before), _lines(change.after)
    path = _shown(change.path)
    yield b"--- " + (_quoted(b"a/" + path) if change.before else b"/dev/null") + b"\n"
    yield b"+++ " + _quoted(b"b/" + path) + b"\n"
    cells = _Cells(change)
    for hunk in hunks(list(differences(before, after)), _CONTEXT):
        yield from _hunk(before, after, hunk, cells)


class _Cells:
    """In a notebook, the cell that a line of its JSON belongs to."""

    def __init__(self, change: FileChange) -> None:
        self._first_lines: list[int] = []
        self._numbers: list[int] = []
        if not change.path.endswith(".ipynb"):
            return
        notebook = decode_notebook(change.path, change.before)
        if not isinstance(notebook, FileError):
            text = notebook.json_text
            self._numbers = [cell.number for cell in notebook.cells]
            self._first_lines = [text.count("\n", 0, cell.place.start) for cell in notebook.cells]

    def heading(self, line: int) -> bytes:
        """What stands behind the `@@` of a hunk whose first difference is in this line, from 0."""
        index = bisect_right(self._first_lines, line) - 1
        return f" cell {self._numbers[index]}".encode() if index >= 0 else b""


def _hunk(
    before: Sequence[bytes], after: Sequence[bytes], hunk: Sequence[Difference], cells: _Cells
) -> Iterator[bytes]:
    first, last = hunk[0], hunk[-1]
    lead, tail = min(_CONTEXT, first.old), min(_CONTEXT, len(before) - last.old_end)
    old_range = _range(first.old - lead, last.old_end + tail)
    new_range = _range(first.new - lead, last.new_end + tail)
    yield b"@@ -" + old_range + b" +" + new_range + b" @@" + cells.heading(first.old) + b"\n"
    shown = first.old - lead
    for difference in hunk:
        yield from _marked(b" ", before[shown : difference.old])
        yield from _marked(b"-", before[difference.old : difference.old_end])
        yield from _marked(b"+", after[difference.new : difference.new_end])
        shown = difference.old_end
    yield from _marked(b" ", before[shown : last.old_end + tail])


def _marked(mark: bytes, lines: Sequence[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield mark + (line if line.endswith(b"\n") else line + _NO_NEWLINE)


def _range(start: int, end: int) -> bytes:
    """Lines count from 1; an empty range names the line before it."""
    if end - start == 1:
        return f"{start + 1}".encode()
    return f"{start + 1 if end > start else start},{end - start}".encode()


def _lines(text: bytes) -> list[bytes]:
    """The lines with their ends, of which only `\\n` counts for a diff; only the last may have none."""
    lines = text.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _shown(path: str) -> bytes:
    """Relative to where the tool was started, where that is possible."""
    place = Path(os.path.normpath(Path(path).absolute()))
    shown = place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place.relative_to(place.anchor)
    return os.fsencode(shown.as_posix())


def _quoted(path: bytes) -> bytes:
    """As git writes it: in quotes where a byte would be misread, and with a tab behind a name that holds blanks."""
    if _SPECIAL.search(path):
        return b'"' + _SPECIAL.sub(lambda special: b"\\%03o" % ord(special[0]), path) + b'"'
    return path + b"\t" if b" " in path else path
