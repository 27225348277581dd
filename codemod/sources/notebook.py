"""A notebook's code cells as one Python text, and the way back into its JSON."""

from __future__ import annotations

import ast
import json
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from codemod.result import FileError
from codemod.sources.json_places import Place, elements, members
from codemod.sources.source import Source

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_LINE_END = re.compile(r"\r\n|\r|\n")
_MAGIC = re.compile(r"\s*(?:[%!?]|[\w.]+\s*=\s*[%!]|[%\w.]+\?{1,2}\s*$)")
# Cell magics whose body is Python that runs in the notebook's own namespace.
_PYTHON_BODY = re.compile(r"\s*%%(?:time|timeit|capture|prun|memit|mprun)\b")


@dataclass(frozen=True, slots=True)
class Cell:
    """One code cell: its number among all cells, from 1, the place of its `source`, and its text."""

    number: int
    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class Notebook:
    """The code cells of a notebook; `source.text` is what is analysed and edited.

    A comment line `mark` + number stands above each cell; what is no Python is masked line by line.
    """

    source: Source
    json_text: str
    cells: tuple[Cell, ...]
    mark: str
    masked: tuple[str, ...]
    """The original lines, by the number in their mask."""
    first_lines: tuple[int, ...]
    """The line of `source.text` at which each cell begins."""
    unparsed: tuple[int, ...]
    """Numbers of the cells that should be Python and are not; they are left alone."""

    def cell_of(self, line: int) -> tuple[int, int]:
        """(cell, line in the cell) of a line of `source.text`; both count from 1, cells of every kind count."""
        index = max(bisect_right(self.first_lines, line) - 1, 0)
        return self.cells[index].number, line - self.first_lines[index] + 1

    def encode(self, text: str) -> bytes:
        """The notebook file with the cells of `text`, an edited `source.text`; all else is as it was."""
        parts: list[str] = []
        position = 0
        for cell, new in zip(self.cells, self._cell_texts(text), strict=True):
            if new != cell.text:
                parts += (self.json_text[position : cell.place.start], _json(self.json_text, cell.place, new))
                position = cell.place.end
        return self.source.encode("".join((*parts, self.json_text[position:])))

    def _cell_texts(self, text: str) -> list[str]:
        heads = re.compile(rf"^# {self.mark} cell \d+\n", re.MULTILINE)
        masks = re.compile(rf"(?:pass  )?# {self.mark} line (\d+)(?!\d)")
        texts = [part.removesuffix("\n") for part in heads.split(text)[1:]]
        return [masks.sub(lambda match: self.masked[int(match[1])], part) for part in texts]


def decode_notebook(path: str, raw: bytes) -> Notebook | FileError:
    """The Notebook that `raw` stands for; one in another language has no cells."""
    try:
        text = raw.decode("utf-8")
        top = members(text, 0)
        version = top["nbformat"].value if "nbformat" in top else None
        if version != 4:
            return FileError(path, f"notebook format {version} is not supported; left unchanged, save it as format 4")
        cells = tuple(_code_cells(text, top["cells"])) if _is_python(top) else ()
    except (ValueError, KeyError, RecursionError) as error:
        return FileError(path, f"cannot read the notebook ({error}); left unchanged")
    return _joined(path, raw, text, cells)


def _joined(path: str, raw: bytes, json_text: str, cells: tuple[Cell, ...]) -> Notebook:
    mark = _free_mark(cells)
    masked: list[str] = []
    parts: list[str] = []
    first_lines: list[int] = []
    unparsed: list[int] = []
    line = 1
    for cell in cells:
        body = _masked(cell.text, mark, len(masked))
        masked += body.originals
        parts.append(f"# {mark} cell {cell.number}\n{body.text}\n")
        first_lines.append(line + 1)
        unparsed += [cell.number] * body.is_unparsed
        line += len(_LINE_END.findall(parts[-1]))
    source = Source(path, raw, "".join(parts), "utf-8")
    return Notebook(source, json_text, cells, mark, tuple(masked), tuple(first_lines), tuple(unparsed))


def _code_cells(text: str, cells: Place) -> Iterator[Cell]:
    for number, element in enumerate(elements(text, cells.start), start=1):
        cell = members(text, element.start)
        if cell["cell_type"].value == "code" and "source" in cell:
            source = cell["source"].value
            joined = "".join(map(str, source)) if isinstance(source, list) else str(source)
            yield Cell(number, cell["source"], joined)


def _is_python(top: dict[str, Place]) -> bool:
    """By `language_info`, else by `kernelspec`; a notebook that says nothing is taken for Python."""
    metadata = top["metadata"].value if "metadata" in top else {}
    for section, key in (("language_info", "name"), ("kernelspec", "language")):
        said = metadata.get(section) if isinstance(metadata, dict) else None
        if isinstance(said, dict) and key in said:
            return "python" in str(said[key]).lower()
    return True


def _free_mark(cells: Sequence[Cell]) -> str:
    mark = "torch-codemod"
    while any(mark in cell.text for cell in cells):
        mark += "_"
    return mark


@dataclass(frozen=True, slots=True)
class _Masked:
    text: str
    originals: tuple[str, ...] = ()
    is_unparsed: bool = False


def _masked(text: str, mark: str, first: int) -> _Masked:
    """A cell as Python with as many lines; masks are numbered from `first`."""
    if _parses(text):
        return _Masked(text)
    lines = text.split("\n")
    if text.lstrip().startswith("%%") and not _PYTHON_BODY.match(text):
        return _all_masked(lines, mark, first)
    numbers = set(_magic_lines(lines))
    masked = _mask(lines, sorted(numbers), mark, first)
    # a cell that is no Python at all must not take the others along
    return masked if _parses(masked.text) else replace(_all_masked(lines, mark, first), is_unparsed=True)


def _magic_lines(lines: Sequence[str]) -> Iterator[int]:
    """Indices of the lines that IPython takes for itself, with those that a backslash joins to them."""
    is_continued = False
    for index, line in enumerate(lines):
        if is_continued or _MAGIC.match(line):
            yield index
            is_continued = line.endswith("\\")


def _mask(lines: Sequence[str], indices: Sequence[int], mark: str, first: int) -> _Masked:
    """The lines with a `pass` in place of those at `indices`, at their indent."""
    new = list(lines)
    for number, index in enumerate(indices, start=first):
        indent = re.match(r"\s*", lines[index])
        new[index] = f"{indent[0] if indent else ''}pass  # {mark} line {number}"
    return _Masked("\n".join(new), tuple(lines[index].lstrip() for index in indices))


def _all_masked(lines: Sequence[str], mark: str, first: int) -> _Masked:
    numbered = enumerate(lines, start=first)
    return _Masked("\n".join(f"# {mark} line {number}" for number, _ in numbered), tuple(lines))


def _parses(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return False
    return True


def _json(text: str, place: Place, new: str) -> str:
    """The JSON of a cell's `source`, written as the old one is: as one string or a list of lines, escapes kept."""
    is_ascii = text.isascii()
    if not isinstance(place.value, list):
        return json.dumps(new, ensure_ascii=is_ascii)
    old = elements(text, place.start)
    if not old:
        return json.dumps(_LINE.findall(new), ensure_ascii=is_ascii)
    tokens = {str(line.value): text[line.start : line.end] for line in old}
    lines = [tokens.get(line) or json.dumps(line, ensure_ascii=is_ascii) for line in _LINE.findall(new)]
    opening, closing = text[place.start : old[0].start], text[old[-1].end : place.end]
    separator = text[old[0].end : old[1].start] if len(old) > 1 else "," + opening[1:]
    return opening + separator.join(lines) + closing
