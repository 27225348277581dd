"""A guest file, run in the user's interpreter with a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from codemod.configuration import UsageError
from codemod.guest_process import guest_file


@dataclass(frozen=True, slots=True)
class Ended:
    """How the process ended; `code` is None where it ran out of time, negative for a signal."""

    code: int | None
    err: str


def run_guest(python: str, guest: str, arguments: Sequence[str], timeout: float, log: Path) -> Ended:
    """Run `guest/GUEST.py` by its path, with whatever it says sent to `log`.

    Everything that it started ends with it.  Raises UsageError for an interpreter that cannot be started.
    """
    is_own_group = sys.platform != "win32"
    try:
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [python, str(guest_file(guest)), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=is_own_group,
            )
    except OSError as error:
        raise UsageError(f"--python {python}: cannot be started ({error.strerror}); check the path") from None
    try:
        code: int | None = process.wait(timeout)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        _end(process)
    return Ended(code, log.read_text(encoding="utf-8", errors="replace"))


def _end(process: subprocess.Popen[bytes]) -> None:
    """The process and, where groups are, all that it left behind."""
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError, PermissionError):  # it is gone, and so are its children
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
