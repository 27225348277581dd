"""What became of one file, and of the run: values, never exceptions."""

from __future__ import annotations

from dataclasses import dataclass, field

from codemod.finding import Action, Finding


@dataclass(frozen=True, slots=True)
class FileError:
    """Why a file was left unchanged: place, fact, next step in one sentence."""

    path: str
    why: str
    line: int | None = None
    traceback: str | None = None
    """Only for errors of ours."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """The text of a file (or of a notebook's cells) before and after; `after` is what in-place mode writes."""

    path: str
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class FileResult:
    path: str
    findings: tuple[Finding, ...] = ()
    change: FileChange | None = None
    helper: FileChange | None = None
    """A helper file that the rewritten code imports; `before` is empty where it is new."""
    errors: tuple[FileError, ...] = ()
    unused_suppressions: tuple[tuple[int, int], ...] = ()
    """(cell or 0, line) of the comments that suppress nothing."""
    lines: tuple[tuple[int, int, str], ...] = ()
    """(cell or 0, line, text) of the lines that a report shows."""
    read: tuple[tuple[str, str], ...] = ()
    """(path, digest) of the other files that it depends on; an empty digest for those that could not be read."""
    notes: tuple[str, ...] = ()
    """What logs and recordings tell of this file that could be joined to none of its calls."""


@dataclass(frozen=True, slots=True)
class RunResult:
    files: tuple[FileResult, ...] = field(default=())
    failed: tuple[str, ...] = ()
    """The files in which logs or recordings show a failure."""
    unplaced: tuple[str, ...] = ()
    """What logs tell of no file of the run."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for file in self.files for finding in file.findings)

    @property
    def errors(self) -> tuple[FileError, ...]:
        return tuple(error for file in self.files for error in file.errors)

    @property
    def notes(self) -> tuple[str, ...]:
        """What logs and recordings tell that is about no call of the run."""
        return (*(f"{file.path}: {note}" for file in self.files for note in file.notes), *self.unplaced)

    @property
    def rewrites(self) -> int:
        return sum(finding.action is Action.REWRITE for finding in self.findings)

    def exit_code(self, check: bool) -> int:
        """0 nothing to do, 1 something would be rewritten (only with `check`), 2 some file could not be processed."""
        if self.errors:
            return 2
        return 1 if check and self.rewrites else 0
