"""What one rung showed: the value between the ladder and whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(str, Enum):
    OK = "ok"
    FAILED = "failed"
    DIFFERS = "differs"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    SKIPPED = "skipped"

    @property
    def is_fault(self) -> bool:
        return self not in (Status.OK, Status.SKIPPED)


RUNGS = (
    "eager",
    "dynamo",
    "aot_eager",
    "aot_eager_decomp_partition",
    "inductor",
    "inductor_dynamic",
    "export",
    "run_decompositions",
    "aot_inductor",
)
"""From the program as it is to the package; `dynamo` is torch.compile with the backend `eager`."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of the user's that was running, or that wrote the operation which failed."""

    path: str
    line: int
    function: str
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """What ended a rung: an exception, a signal or the time limit."""

    stage: str
    type: str
    message: str
    operation: str | None = None
    """The operation that failed, where the rung tells: `linalg_matrix_exp`, `view.dtype`."""
    frames: tuple[Frame, ...] = ()
    """The user's frames, innermost last."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The output or gradient that is furthest from the reference, in proportion to its tolerance."""

    where: str
    what: str
    largest: float | None
    """None where it is no matter of size: another shape, another dtype, not a number."""
    allowed: float | None


@dataclass(frozen=True, slots=True)
class Rung:
    name: str
    status: Status
    seconds: float
    failure: Failure | None = None
    difference: Difference | None = None
    why: str | None = None
    """Why it was skipped."""
    known_issue: str | None = None
    """Name of the KnownIssue that this is."""
