"""What a verification says in the end."""

from __future__ import annotations

from dataclasses import dataclass, field

from codemod.verify.rung import Rung


@dataclass(frozen=True, slots=True)
class Ladder:
    """The rungs of one program; `title` says which where there are two."""

    title: str
    rungs: tuple[Rung, ...] = field(default=())

    @property
    def first_fault(self) -> Rung | None:
        return next((rung for rung in self.rungs if rung.status.is_fault), None)


@dataclass(frozen=True, slots=True)
class Verification:
    """One ladder, or the program before and after; the last is the one that counts."""

    target: str
    ladders: tuple[Ladder, ...]
    changed: tuple[str, ...] = field(default=())
    """The files that the rewrite changed, with `--fixed`."""

    @property
    def is_unchanged(self) -> bool:
        """With `--fixed`: there was nothing to rewrite, and so no second ladder."""
        return len(self.ladders) == 1 and self.ladders[0].title == "before"

    @property
    def exit_code(self) -> int:
        """0 no rung of the last ladder fails, 1 one does."""
        return 1 if self.ladders[-1].first_fault is not None else 0
