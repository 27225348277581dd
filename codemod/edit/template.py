"""A call's text with short names in place of what its rewriting does not look into."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from codemod.edit.splice import Piece, is_identifier_part, joined, splice
from codemod.syntax.spans import Places


@dataclass(frozen=True, slots=True)
class Filling:
    """The text that a hole stands for."""

    text: str
    alone: str
    """The same without the blanks that led up to a dot; for a hole that no dot follows any more."""


@dataclass(frozen=True, slots=True)
class Template:
    """`code` parses as a call; each name `<prefix><number>_` in it is a hole.

    A hole between letters (`1or(x).f()if y`) is written `(<prefix><number>x)`, the brackets being part of it.
    """

    code: str
    prefix: str
    fillings: tuple[Filling, ...]

    def fill(self, code: str) -> str:
        """`code`, which may use each hole any number of times, with the fillings in place."""

        def filling(match: re.Match[str]) -> str:
            chosen = self.fillings[int(match[1] or match[2])]
            text = chosen.text if code.startswith(".", match.end()) else chosen.alone
            return joined(code[: match.start()][-1:], text, code[match.end() : match.end() + 1])

        return re.sub(rf"\({self.prefix}(\d+)x\)|{self.prefix}(\d+)[_x]", filling, code)


def free_prefix(text: str) -> str:
    """The beginning of names that `text` does not hold."""
    prefix = "_hole"
    while prefix in text:
        prefix += "_"
    return prefix


def cut(places: Places, call: ast.Call, nested: Sequence[Piece], prefix: str) -> Template:
    """The Template of a call whose `nested` edits, in order, are rendered already."""
    start, end = places.range_of(call)
    holes = _holes(places, call, nested)
    fillings = tuple(filling for _, _, filling in holes)
    pieces = [Piece(a, b, _name(places.text, a, b, f"{prefix}{i}")) for i, (a, b, _) in enumerate(holes)]
    return Template(splice(places.text, start, end, pieces), prefix, fillings)


def _holes(places: Places, call: ast.Call, nested: Sequence[Piece]) -> list[tuple[int, int, Filling]]:
    if not isinstance(call.func, ast.Attribute):
        return [(piece.start, piece.end, Filling(piece.text, piece.text)) for piece in nested]
    start, dot = places.range_of(call.func)[0], places.dot_of(call.func)
    text = splice(places.text, start, dot, [piece for piece in nested if piece.end <= dot])
    gap = places.text[places.range_of(call.func.value)[1] : dot]
    alone = text if "#" in gap else text.rstrip(" \t\f\r\n\\")
    later = [(p.start, p.end, Filling(p.text, p.text)) for p in nested if p.end > dot]
    return [(start, dot, Filling(text, alone)), *later]


def _name(text: str, start: int, end: int, name: str) -> str:
    crowded = is_identifier_part(text[start - 1 : start]) or is_identifier_part(text[end : end + 1])
    return f"({name}x)" if crowded else f"{name}_"
