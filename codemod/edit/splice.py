"""Putting new text in place of old without touching the characters around it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """New text for the characters from `start` to `end`; an insertion where the two are equal."""

    start: int
    end: int
    text: str


def splice(text: str, start: int, end: int, pieces: Iterable[Piece]) -> str:
    """`text[start:end]` with the pieces, which are in order and do not overlap, put in."""
    parts: list[str] = []
    for piece in pieces:
        parts += (
            text[start : piece.start],
            joined(text[piece.start - 1 : piece.start], piece.text, text[piece.end : piece.end + 1]),
        )
        start = piece.end
    return "".join((*parts, text[start:end]))


def joined(before: str, text: str, after: str) -> str:
    """`text` with a blank where it would grow together with a neighbour: `return(x).f()` -> `return f(x)`."""
    left = " " if is_identifier_part(before[-1:]) and is_identifier_part(text[:1]) else ""
    right = " " if is_identifier_part(text[-1:]) and is_identifier_part(after[:1]) else ""
    return left + text + right


def is_identifier_part(character: str) -> bool:
    return bool(character) and ("a" + character).isidentifier()
