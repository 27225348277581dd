"""A guest file, run in the user's interpreter with a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from codemod.configuration import UsageError
from codemod.guest_process import guest_file

_STOPS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""They would end this process at once, and leave the other, whose session is its own, to run on."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How the process ended; `code` is None where it ran out of time, negative for a signal."""

    code: int | None
    err: str


def run_guest(python: str, guest: str, arguments: Sequence[str], timeout: float, log: Path) -> Ended:
    """Run `guest/GUEST.py` by its path, with whatever it says sent to `log`.

    Everything that it started ends with it, and with this process where that is told to stop, with exit code 128 and
    the signal's number.  Raises UsageError for an interpreter that cannot be started.
    """
    with _stopping():
        return _run(python, guest, arguments, timeout, log)


@contextmanager
def _stopping() -> Iterator[None]:
    """A signal to stop comes as SystemExit, so that what is open is closed; one that is ignored stays so."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers are the main thread's
        return
    before = {number: signal.getsignal(number) for number in _STOPS}
    ours = {number: handler for number, handler in before.items() if handler is signal.SIG_DFL}
    try:
        for number in ours:
            signal.signal(number, _stop)
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _run(python: str, guest: str, arguments: Sequence[str], timeout: float, log: Path) -> Ended:
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
