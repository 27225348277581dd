"""`record`: a frozen dataclass to the type checker, a plain one at run time.

A frozen dataclass sets each field through `object.__setattr__`, which takes three times as long, and the analysis makes
millions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(*, frozen: bool, slots: bool = False) -> object:
        """As `dataclass`, hashed by its fields, of which nothing at run time forbids a change."""

        def make(cls: type[T]) -> type[T]:
            return dataclass(slots=slots, unsafe_hash="__hash__" not in vars(cls))(cls)

        return make


__all__ = ["record"]
