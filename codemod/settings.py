"""What the user asked for: command line over `[tool.torch-codemod]` over defaults."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Sites(str, Enum):
    """Which verdicts are rewritten."""

    FAILING = "failing"
    RISKY = "risky"
    ALL = "all"


class To(str, Enum):
    """What an unsafe `.view(...)` becomes."""

    RESHAPE = "reshape"
    CONTIGUOUS = "contiguous"


class SizeSpelling(str, Enum):
    """What a hard-coded batch size becomes."""

    MINUS_ONE = "-1"
    SHAPE = "shape"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a Transform may ask; hashable, so that it is part of a cache key."""

    select: tuple[str, ...] = ()
    """Names of the transforms to use; empty means all."""
    ignore: tuple[str, ...] = ()
    sites: Sites = Sites.FAILING
    to: To = To.RESHAPE
    size: SizeSpelling = SizeSpelling.MINUS_ONE
    dynamic_batch: tuple[str, ...] = ()
    """Functions (`file.py:function` or a bare name) whose bmm batch the user declares to be large."""
    max_batch: int | None = None
    """Upper bound that `bound-dim` writes; None: unbounded Dims are reported, not rewritten."""
    torch: str | None = None
    """The lowest version of torch that the code is to run on; None: not known."""
    exclude: tuple[str, ...] = ()
    """gitignore patterns, beside the ignore files."""
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    root: str = "."
    """The folder that patterns are relative to: that of the pyproject.toml which holds them."""

    def is_selected(self, transform: str) -> bool:
        return (not self.select or transform in self.select) and transform not in self.ignore
