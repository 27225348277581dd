"""Logs and evidence files named on the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from codemod.evidence.given import Given
    from codemod.result import FileError

STDIN = "-"


def place_given(
    logs: Sequence[str], evidence: Sequence[Path], files: Sequence[str]
) -> tuple[Given, tuple[FileError, ...]]:
    """What they show of the files of the run, and what of the evidence files cannot be read."""
    from codemod.evidence.given import Given, place
    from codemod.evidence.recorded import read_recordings

    if not logs and not evidence:
        return Given(), ()
    recordings, errors = read_recordings(evidence)
    given = place(read_logs(logs), recordings, files)
    if evidence and not recordings.sites and not errors:
        given = replace(given, notes=(*given.notes, "--evidence: no call is recorded in it"))
    return given, errors


def read_logs(names: Sequence[str]) -> dict[str, bytes]:
    """The logs by name; raise UsageError for one that cannot be read."""
    from codemod.configuration import UsageError

    found = {}
    for name in names:
        try:
            found[name if name != STDIN else "stdin"] = _read(name)
        except OSError as error:
            raise UsageError(f"--log {name}: cannot be read ({error.strerror or error}); check the path") from None
    return found


def _read(name: str) -> bytes:
    return sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()


def show_notes(notes: Sequence[str]) -> None:
    """What of the evidence is about no call of the run, on stderr."""
    for note in notes:
        typer.echo(note, err=True)
