"""Where values stand in a JSON text, so that one can be replaced and the rest stay as written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Place:
    """A value and where its text is."""

    value: object
    start: int
    end: int


def members(text: str, start: int) -> dict[str, Place]:
    """The members of the object at `start`, by key; the last one of a repeated key, as in json.loads."""
    found: dict[str, Place] = {}
    for key in _items(text, start, "{}"):
        place = _value(text, _past(text, key.end, ":"))
        found[str(key.value)] = place
    return found


def elements(text: str, start: int) -> tuple[Place, ...]:
    """The elements of the array at `start`."""
    return tuple(_items(text, start, "[]"))


def _items(text: str, start: int, brackets: str) -> Iterator[Place]:
    """The elements of an array, or the keys of an object."""
    position = _past(text, start, brackets[0])
    while not text.startswith(brackets[1], position):
        item = _value(text, position)
        yield item
        end = _value(text, _past(text, item.end, ":")).end if brackets == "{}" else item.end
        position = _blank(text, end)
        if text.startswith(",", position):
            position = _past(text, position, ",")


def _value(text: str, start: int) -> Place:
    value, end = _DECODER.raw_decode(text, start)
    return Place(value, start, end)


def _past(text: str, position: int, mark: str) -> int:
    """The offset of what follows `mark` and the blanks around it."""
    position = _blank(text, position)
    if not text.startswith(mark, position):
        raise json.JSONDecodeError(f"expecting {mark!r}", text, position)
    return _blank(text, position + 1)


def _blank(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    return match.end() if match else position
