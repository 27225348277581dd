"""What logs and recorded runs show of the files of a run, and of one call."""

from __future__ import annotations

from dataclasses import dataclass

from codemod.evidence.failure import Failure, Frame, Kind, Sizes
from codemod.evidence.messages import quote
from codemod.evidence.recorded import Recorded
from codemod.finding import Reason


@dataclass(frozen=True, slots=True)
class Shown:
    """One way in which one call was seen to fail."""

    kind: Kind
    reason: Reason
    """What was seen, and where it is written down: `ci.log: shape '[4, 10]' is invalid for input of size 20`."""
    is_of_this_text: bool
    """Of the file as it is now; a log does not tell whether the file has changed since."""
    target: Sizes | None = None
    """The sizes asked for."""
    elements: int | None = None
    """Of the tensor."""
    sizes: Sizes | None = None
    """Of the tensor."""
    constants: tuple[tuple[str, int], ...] = ()
    """(name of an exported Dim, number that the call fixed it to)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one call."""

    shown: tuple[Shown, ...] = ()
    recorded: Recorded | None = None

    def of(self, *kinds: Kind) -> tuple[Shown, ...]:
        return tuple(one for one in self.shown if one.kind in kinds)

    def __or__(self, other: Seen) -> Seen:
        shown = tuple(dict.fromkeys((*self.shown, *other.shown)))
        return Seen(shown, self.recorded or other.recorded)


UNSEEN = Seen()


@dataclass(frozen=True, slots=True)
class Placed:
    """A failure of a log, and the frame of it that is the user's, in one of the files of the run."""

    log: str
    failure: Failure
    frame: Frame

    @property
    def text(self) -> str:
        return told(self.log, self.failure)


def told(log: str, failure: Failure) -> str:
    """The log's name, and what is wrong in torch's own words."""
    said = quote(failure.message).rstrip(".")
    return f"{log}: {said if len(said) <= _LONGEST else f'{said[:_LONGEST]}...'}"


_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of the runs of one file."""

    placed: tuple[Placed, ...] = ()
    recorded: tuple[Recorded, ...] = ()

    @property
    def is_of_failure(self) -> bool:
        """Did anything fail; that a run went well tells of no other call."""
        return bool(self.placed) or any(one.refused or one.invalid for one in self.recorded)


NO_EVIDENCE = Evidence()
