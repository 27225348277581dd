"""Paths as logs print them: whose code they hold, and which given file they name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

RECORDER = "<torch-codemod trace>"
"""The file of the frames that stand between a traced program and torch, where a debugger or coverage looks on."""

_GENERATED = re.compile(
    r"torchinductor_[^/]*/|/torchinductor/|^<eval_with_key>|/codecache/|^<fx_generated|torch_compile_debug/"
)
_INSTALLED = re.compile(
    r"/(?:site|dist)-packages/|/lib/python3(?:\.\d+)?/|/python3\d+/lib/|^<(?!ipython-input|command-\d)", re.IGNORECASE
)
_CELL = re.compile(
    r"(?:Cell |Input )In ?\[\d+\]$|^<ipython-input-|/ipykernel_\d+/\d+\.py$"
    r"|/ipython-input-[\w-]+\.py$|^<command-\d+>$|\.ipynb Cell \d+'?$"  # Colab, Databricks, VS Code
)
_PACKAGES = re.compile(r".*/(?:site|dist)-packages/(?=[^/]+/)", re.IGNORECASE)
_VENDORED = re.compile(r"(?:^|/)(?:third_?party|_?vendor(?:ed)?|externals?|(?:site|dist)-packages)/", re.IGNORECASE)


def slashed(path: str) -> str:
    return path.replace("\\", "/")


def inside_packages(path: str) -> str | None:
    """`netlib/nn.py` of `/env/lib/python3.11/site-packages/netlib/nn.py`; None elsewhere, and for a lone module."""
    found = _PACKAGES.match(slashed(path))
    return slashed(path)[found.end() :] if found else None


def is_vendored(path: str) -> bool:
    """A copy of what others wrote, kept in the project."""
    return bool(_VENDORED.search(slashed(path)))


def is_generated(path: str) -> bool:
    """Code that Inductor or fx wrote."""
    return bool(_GENERATED.search(slashed(path)))


def is_foreign(path: str) -> bool:
    """Not the user's: installed, part of Python, generated, or in no file."""
    return bool(_GENERATED.search(slashed(path)) or _INSTALLED.search(slashed(path)))


def is_cell(path: str) -> bool:
    """A cell of a notebook: its lines count within the cell."""
    return bool(_CELL.search(slashed(path)))


@dataclass(frozen=True, slots=True)
class Match:
    """The given files that a printed path can name: one, or several that share as long a tail with it, or none."""

    paths: tuple[str, ...]


def match_path(printed: str, given: Sequence[str]) -> Match:
    """Those of `given` that share the longest tail of components with `printed`; before others those it ends in."""
    own = _components(printed)
    ranks = {path: _rank(own, _components(path)) for path in given if own and path.endswith(own[0])}
    best = max(ranks.values(), default=(0, False))
    return Match(tuple(path for path, rank in ranks.items() if best[0] and rank == best))


def _rank(printed: tuple[str, ...], given: tuple[str, ...]) -> tuple[int, bool]:
    shared = _shared(printed, given)
    return shared, shared == len(given)


def _components(path: str) -> tuple[str, ...]:
    """The parts of a path, last first, without `.`, `~` and empty ones."""
    parts = slashed(path).split("/")
    return tuple(part for part in reversed(parts) if part not in ("", ".", "~"))


def _shared(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
