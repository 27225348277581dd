"""Starts guest files by path in the user's interpreter."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from codemod.configuration import UsageError

_ASKS_FOR_TORCH = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"


def interpreter_with_torch(python: str | None = None) -> str:
    """As `find_interpreter`.  Raises UsageError where there is none, or none with torch."""
    interpreter = find_interpreter(python)
    if interpreter is None:
        raise UsageError(f"--python {python}: no such interpreter; check the path")
    if not has_torch(interpreter):
        raise UsageError(f"{interpreter}: has no torch; name the interpreter of your environment with --python")
    return interpreter


def find_interpreter(python: str | None = None) -> str | None:
    """The path of the one that is asked for, or of the active environment's; None where there is no such file."""
    if python is not None:
        return shutil.which(str(Path(python).expanduser()))
    return _active() or shutil.which("python") or sys.executable


def _active() -> str | None:
    root = os.environ.get("VIRTUAL_ENV")
    if root is None:
        return None
    return shutil.which("python", path=str(Path(root) / ("Scripts" if os.name == "nt" else "bin")))


def has_torch(interpreter: str) -> bool:
    """Whether torch can be found there; it is not imported."""
    try:
        asked = subprocess.run([interpreter, "-c", _ASKS_FOR_TORCH], capture_output=True, check=False)
    except OSError:
        return False
    return asked.returncode == 0


def guest_file(name: str) -> Path:
    """The path of a file in `guest/`."""
    return Path(str(resources.files("codemod").joinpath("guest", f"{name}.py")))


def run_guest(
    name: str,
    arguments: Sequence[str],
    interpreter: str,
    *,
    flags: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> int:
    """Run `guest/NAME.py` with our stdin, stdout and stderr; its exit code, 128 + n after signal n.

    `flags` are the interpreter's.
    """
    command = [interpreter, *flags, str(guest_file(name)), *arguments]
    with subprocess.Popen(command, env=environment) as process, _signals_passed(process):
        status = process.wait()
    return status if status >= 0 else 128 - status


@contextmanager
def _signals_passed(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """What asks us to stop asks the guest; we stay, to tell how it ended."""

    def pass_on(number: int, frame: object) -> None:
        # a terminal sends Ctrl-C to the guest itself
        if process.poll() is None and not (number == signal.SIGINT and _is_in_foreground()):
            process.send_signal(number)

    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)]
    before = {number: signal.signal(number, pass_on) for number in (getattr(signal, name) for name in names)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_in_foreground() -> bool:
    """Of a terminal, also where stdin is a pipe."""
    if sys.platform == "win32":
        return sys.stdin is not None and sys.stdin.isatty()
    try:
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
