"""What a run says about one call: the value that crosses every arrow from the analysis to the reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Verdict(str, Enum):
    """What the analysis knows of a site; the settings turn it into an Action."""

    FAILING = "failing"
    LAYOUT_DEPENDENT = "layout-dependent"
    UNKNOWN = "unknown"
    SAFE = "safe"
    WRITTEN_THROUGH = "written-through"
    NOT_A_SHAPE_VIEW = "not-a-shape-view"
    WRONG_SIZE = "wrong-size"


class Action(str, Enum):
    """What a run does at a site."""

    REWRITE = "rewrite"
    REPORT = "report"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Span:
    """Where a site stands: 1-based lines and columns, columns in characters.

    `line` and `column` are those of the method-name token (`view`, `bmm`, `Dim`);
    `end_line` and `end_column` are just past the closing bracket of the whole call.
    """

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Reason:
    """One link of the chain that explains a verdict."""

    text: str
    path: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What an edit needs to know beside the call's own text; plain data, read back by the Transform that made it."""

    transform: str
    arguments: tuple[tuple[str, str], ...] = ()

    def get(self, name: str, default: str = "") -> str:
        return dict(self.arguments).get(name, default)


@dataclass(frozen=True, slots=True)
class Finding:
    """One site, its verdict and what is done about it."""

    path: str
    span: Span
    transform: str
    verdict: Verdict
    action: Action
    message: str
    reasons: tuple[Reason, ...] = ()
    rewrites: tuple[Rewrite, ...] = field(default=())
    replacement: str | None = None
    """The whole call expression after the rewrite; filled in by the edit, None where nothing is rewritten."""
    cell: int | None = None
    """Number of the notebook cell that the lines count in, from 1; None outside of notebooks."""
