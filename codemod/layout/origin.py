"""Where a stride that the source does not fix comes from."""

from __future__ import annotations

from enum import Enum

from codemod.layout.record import record


class OriginKind(Enum):
    CALLER = "caller"
    """A tensor that the function is given: its layout is the caller's choice."""
    MEMORY_FORMAT = "memory format"
    """An image op or a join that hands on channels_last."""
    CONVOLUTION = "convolution"
    """As a memory format; a compiler makes the result of a two-dimensional convolution channels_last by itself."""
    BACKEND = "backend"
    """An op whose output layout differs by backend, path or version."""
    GRADIENT = "gradient"
    """A gradient inside a custom backward: expanded or permuted, whatever the forward saw."""
    SIZE_ONE = "size one"
    """A reshape that copies in general and is a view where a dim has size 1."""
    OP = "op"
    """An op whose result's layout is not known, given what is known of its operands."""
    UNKNOWN = "unknown"
    """Something that the analysis does not follow."""


@record(frozen=True, slots=True)
class Origin:
    kind: OriginKind
    text: str
    line: int | None = None
