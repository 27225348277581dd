"""`torch-codemod trace`: run a program, and record what its shape calls meet."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from codemod.cli import output as out

if TYPE_CHECKING:
    from codemod.evidence.recorded import Recordings

_INTERPRETER = re.compile(r"python[\d.]*(?:\.exe)?", re.IGNORECASE)


def trace(
    command: list[str] = typer.Argument(
        None, metavar="-- SCRIPT [ARGS]... | -m MODULE [ARGS]...", help="What to run.", show_default=False
    ),
    output: Path = typer.Option(Path("evidence.jsonl"), "--output", help="Write the evidence to this file."),
    python: str = typer.Option(
        None, "--python", metavar="PY", help="The interpreter.  [default: the active environment's]"
    ),
) -> None:
    """Run a script, a module or a command like pytest, and record what sizes and strides its shape calls meet.

    The program runs as it would without; the exit code is its own, or 2 where it could not be started.
    """
    from codemod.configuration import UsageError
    from codemod.guest_process import interpreter_with_torch

    given, options = command or [], []
    if given and _INTERPRETER.fullmatch(Path(given[0]).name):
        python, options, given = python or given[0], *_options(given[1:])
    try:
        _check_options(options)
        _check_command(given, output)
        interpreter = interpreter_with_torch(python)
        program = [*options, _script(given[0], interpreter), *given[1:]]
    except UsageError as error:
        raise out.refuse(str(error)) from None
    raise typer.Exit(_run(program, output, interpreter))


def _options(command: list[str]) -> tuple[list[str], list[str]]:
    """The interpreter's own options (`-u`, `-X dev`), and what follows them."""
    index = 0
    while index < len(command) and command[index].startswith("-") and command[index][:2] not in ("-m", "-c"):
        index += 2 if command[index] in ("-W", "-X", "--check-hash-based-pycs") else 1
    return command[:index], command[index:]


def _check_options(options: list[str]) -> None:
    """Raise UsageError for those under which the recorder does not come in."""
    from codemod.configuration import UsageError

    for option in options:
        if not option.startswith(("--", "-W", "-X")) and option.startswith("-") and set(option) & set("EIS"):
            raise UsageError(f"{option}: with it Python does not load the recorder; leave it out")


def _check_command(command: list[str], output: Path) -> None:
    """Raise UsageError for what cannot be started, or has nowhere to be written."""
    from codemod.configuration import UsageError

    if not command or command == ["-m"]:
        raise UsageError("nothing to run; end with `-- script.py` or `-- -m module`")
    if command[0].startswith("-") and command[0] != "-m":
        raise UsageError(f"{command[0]}: neither a script nor -m; begin with one of them after `--`")
    if output.is_dir() or not output.absolute().parent.is_dir():
        fact = "is a folder" if output.is_dir() else "its folder does not exist"
        raise UsageError(f"--output {output}: {fact}; check the path")


def _script(name: str, interpreter: str) -> str:
    """`-m`, the path of a script, or that of a command as pip installs it: beside the interpreter, else on PATH.

    Raises UsageError where there is none.
    """
    from codemod.configuration import UsageError

    if name == "-m" or Path(name).exists():
        return name
    beside = shutil.which(name, path=str(Path(interpreter).parent))
    for found in (beside, shutil.which(name)):
        if found is not None and _is_python(Path(found)):
            return found
    if Path(name).name != name or Path(name).suffix:
        raise UsageError(f"{name}: no such script; check the path")
    raise UsageError(f"{name}: neither a script nor a command written in Python; try `-- -m {name}`")


def _is_python(command: Path) -> bool:
    """Its first lines name the interpreter; on Windows the launcher is an archive that Python runs."""
    with command.open("rb") as file:
        return command.suffix == ".exe" or b"python" in b"".join(file.readline(200) for _ in range(2))


def _run(command: list[str], output: Path, interpreter: str) -> int:
    """The program's exit code; what its processes recorded is merged into the file."""
    from codemod.guest_process import run_guest

    with TemporaryDirectory(prefix="torch-codemod-", ignore_cleanup_errors=True) as folder:
        target = output.absolute()  # the program may change the folder, not we
        arguments = ["--output", str(Path(folder) / "part"), "--", *command]
        # The recorder starts the program in its place: what `site` runs is to run once.
        status = run_guest("record", arguments, interpreter, flags=["-I", "-S"])
        _merge(sorted(Path(folder).glob("part.*.*")), target, output)
    return status


def _merge(parts: list[Path], target: Path, shown: Path) -> None:
    from codemod.evidence.recorded import read_recordings, render
    from codemod.evidence.whole_calls import with_whole_calls

    recordings, errors = read_recordings(parts)
    out.show_errors(errors)
    recordings = with_whole_calls(recordings)
    if not parts:
        typer.echo("torch-codemod: nothing recorded, the program did not import torch or called none of it", err=True)
        return
    with parts[0].open(encoding="utf-8") as part:
        header = part.readline().strip()
    try:
        target.write_text(render(recordings, header), encoding="utf-8")
    except OSError as error:  # the program ran: its exit code stays
        typer.echo(f"torch-codemod: --output {shown}: cannot be written ({error.strerror}); record anew", err=True)
        return
    typer.echo(f"torch-codemod: {_told(recordings)}; written to {shown}", err=True)


def _told(recordings: Recordings) -> str:
    """How many sites, and what is remarkable about them."""
    sites = recordings.sites
    refused = sum(site.refused > 0 for site in sites)
    told = f"{_counted(len(sites), 'site')} recorded, {refused} refused"
    if recordings.unfinished:
        told += f", {_counted(recordings.unfinished, 'process', 'processes')} killed"
    if recordings.errors:
        told += f", {_counted(recordings.errors, 'call')} that the recorder could not look at"
    return told


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
