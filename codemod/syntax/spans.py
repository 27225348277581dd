"""Places in a text: ast counts lines and UTF-8 bytes, reports count lines and characters, edits count characters."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from codemod.finding import Span

# What ends a line for the tokenizer; str.splitlines also splits at \f, \x0b, \x1c, \x85, \u2028.
_LINE_END = re.compile(r"\r\n|\r|\n")
_TO_DOT = re.compile(r"(?:[^.#]|#[^\r\n]*)*\.")


def line_starts(text: str) -> tuple[int, ...]:
    """Character offset of each line; a text that ends in a line end has an empty last line."""
    if "\r" in text:
        return (0, *(match.end() for match in _LINE_END.finditer(text)))
    return (0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1]))


@dataclass(frozen=True, slots=True)
class Places:
    """The text of one file with its line starts; all offsets are 0-based characters of `text`."""

    text: str
    starts: tuple[int, ...]
    is_ascii: bool

    @staticmethod
    def of(text: str) -> Places:
        return Places(text, line_starts(text), text.isascii())

    def offset(self, line: int, utf8_column: int) -> int:
        """The offset of ast's (1-based line, byte column); clamped to the text, as f-strings before 3.12 lie."""
        if line > len(self.starts):
            return len(self.text)
        start = self.starts[line - 1]
        if self.is_ascii:
            return min(start + utf8_column, len(self.text))
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        return start + characters(self.text[start:end], utf8_column)

    def position(self, offset: int) -> tuple[int, int]:
        """(line, column) of an offset, both 1-based, the column in characters."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def range_of(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """(start, end) of a node, without brackets put around it."""
        end_line, end_column = node.end_lineno, node.end_col_offset
        if end_line is None or end_column is None:
            raise ValueError(f"{type(node).__name__} without an end: the tree was not parsed from a text")
        return self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column)

    def dot_of(self, attribute: ast.Attribute) -> int:
        """The offset of the dot before the attribute's name."""
        match = _TO_DOT.match(self.text, self.range_of(attribute.value)[1])
        if match is None:
            raise ValueError(f"no dot before {attribute.attr!r} at line {attribute.lineno}")
        return match.end() - 1

    def span(self, call: ast.Call) -> Span:
        """The Span of a call: from its method-name token (or its function's start) to past its closing bracket."""
        line, column = self.position(self._name_start(call.func))
        return Span(line, column, *self.position(self.range_of(call)[1]))

    def _name_start(self, func: ast.expr) -> int:
        start, end = self.range_of(func)
        if not isinstance(func, ast.Attribute):
            return start
        if self.text.startswith(func.attr, end - len(func.attr)):
            return end - len(func.attr)
        return _identifier_start(self.text, end)


def characters(line: str, utf8_column: int) -> int:
    """How many characters of `line` the first `utf8_column` bytes are."""
    if line.isascii():
        return min(utf8_column, len(line))
    return len(line.encode()[:utf8_column].decode(errors="ignore"))


def utf8_column(line: str, column: int) -> int:
    """The byte column of the 0-based character `column`."""
    return len(line[:column].encode())


def _identifier_start(text: str, end: int) -> int:
    """Where the identifier that ends at `end` begins; ast holds its NFKC form, which may be shorter or longer."""
    while end and ("a" + text[end - 1]).isidentifier():
        end -= 1
    return end
