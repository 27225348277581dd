"""One program verified, or a program before and after a change."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from codemod.settings import Sites
from codemod.verify.ladder import Climb, climb, locate
from codemod.verify.rung import Failure, Rung
from codemod.verify.scratch import check_out, copy, rewrite, whole_of
from codemod.verify.verdict import Ladder, Verification

Told = Callable[[str, Rung], None]
"""Is told each rung as it is done, with the title of its ladder."""


@dataclass(frozen=True, slots=True)
class _Moved:
    """Where a copy lies, and what of."""

    copied: str
    original: str

    def back(self, text: str) -> str:
        return text.replace(self.copied, self.original)


def verify(asked: Climb, tell: Told) -> Verification:
    """The program as it stands."""
    with tempfile.TemporaryDirectory(prefix="torch-codemod-") as folder:
        return Verification(asked.target, (_ladder("", asked, Path(folder), tell),))


def verify_fixed(asked: Climb, sites: Sites | None, tell: Told) -> Verification:
    """The program as it stands, and a copy after the rewrite, if any, which must give the same results."""
    with tempfile.TemporaryDirectory(prefix="torch-codemod-") as folder:
        scratch = Path(folder) / "after"
        scratch.mkdir()
        whole, name = whole_of(_file(asked)), _name(asked)
        copy(whole, scratch)
        changed = rewrite(whole, scratch, sites)
        before = _ladder("before", asked, Path(folder), tell)
        if not changed:
            return Verification(asked.target, (before,))
        moved = _Moved(str(scratch), str(whole.folder))
        after = replace(asked, target=f"{whole.within(scratch)}:{name}", paths=(str(whole.folder),))
        ladders = (before, _ladder("after", after, Path(folder), tell, moved, before))
        return Verification(asked.target, ladders, changed)


def verify_against(asked: Climb, revision: str, tell: Told) -> Verification:
    """The program of a git revision, and the one that stands, which must give the same results."""
    with tempfile.TemporaryDirectory(prefix="torch-codemod-") as folder:
        scratch = Path(folder) / "before"
        scratch.mkdir()
        whole = whole_of(_file(asked))
        check_out(whole, revision, scratch)
        moved = _Moved(str(scratch), str(whole.folder))
        old = replace(asked, target=f"{whole.within(scratch)}:{_name(asked)}", paths=(str(whole.folder),))
        before = _ladder(revision, old, Path(folder), tell, moved)
        return Verification(asked.target, (before, _ladder("now", asked, Path(folder), tell, None, before)))


def _ladder(
    title: str, asked: Climb, folder: Path, tell: Told, moved: _Moved | None = None, before: Ladder | None = None
) -> Ladder:
    """`before` is the ladder whose eager results this one must give, where it has any."""
    place = Path(tempfile.mkdtemp(dir=folder))
    saved = folder / "before.pt"
    reference = saved if before is not None and saved.exists() else None
    rungs: list[Rung] = []
    for rung in climb(asked, place, reference):
        rungs.append(rung if moved is None else _told_of(rung, moved))
        tell(title, rungs[-1])
    if before is None and (place / "eager.pt").exists():
        (place / "eager.pt").rename(saved)
    return Ladder(title, tuple(rungs))


def _told_of(rung: Rung, moved: _Moved) -> Rung:
    """The rung of a copy, told of the original's files."""
    if rung.failure is None:
        return rung
    frames = tuple(replace(frame, path=moved.back(frame.path)) for frame in rung.failure.frames)
    failure: Failure = replace(rung.failure, message=moved.back(rung.failure.message), frames=frames)
    return replace(rung, failure=failure)


def _file(asked: Climb) -> Path:
    place = asked.target.rpartition(":")[0]
    return Path(place if place.endswith(".py") else locate(asked))


def _name(asked: Climb) -> str:
    return asked.target.rpartition(":")[2]
