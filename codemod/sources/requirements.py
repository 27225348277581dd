"""Which torch a project asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable

_TORCH = re.compile(r"\s*torch(?![\w.-])\s*(?:\[[^\]]*\])?([^;]*)", re.IGNORECASE)
"""`torch[opt-einsum] >=2.6,<3; python_version > "3.9"`"""
_LOWEST = re.compile(r"(?:>=|~=|===?|>)\s*v?(\d+(?:\.\d+)*)")


def lowest_torch(requirements: Iterable[str]) -> str | None:
    """The lowest version that all of these requirements leave; None where one of torch names none, or none is of torch.

    `torch>=2.6,!=2.7` -> 2.6; `torch` -> None.  Of several that hold under different markers, the lowest.
    """
    asked: list[list[str]] = [_LOWEST.findall(match[1]) for text in requirements if (match := _TORCH.match(text))]
    if not asked or not all(asked):
        return None
    return min((max(versions, key=_release) for versions in asked), key=_release)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))
