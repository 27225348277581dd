"""What a command says: to a terminal, into a pipe, or to a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.text import Text

    from codemod.result import FileError


def show(lines: Iterable[Text], output: Path | None = None) -> None:
    """With colour on a terminal (or where FORCE_COLOR asks for it), plain elsewhere; never wrapped."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    if output is None and console.is_terminal:
        for line in lines:
            console.print(line)
        return
    encoding = "utf-8" if output is not None else sys.stdout.encoding
    put("".join(f"{line.plain}\n" for line in lines).encode(encoding, errors="backslashreplace"), output)


def show_diff(diff: bytes, output: Path | None) -> None:
    """Coloured on a terminal, byte for byte elsewhere."""
    from rich.console import Console
    from rich.text import Text

    from codemod.report.diff import style

    if output is not None or not Console().is_terminal:
        put(diff, output)
        return
    show(Text(line.decode(errors="backslashreplace"), style(line)) for line in diff.split(b"\n")[:-1])


def put(data: bytes, output: Path | None = None) -> None:
    """Byte for byte, to the file or to stdout."""
    if output is not None:
        output.write_bytes(data)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def show_errors(errors: Iterable[FileError]) -> None:
    """On stderr, a line each; an error of ours with its traceback."""
    for error in errors:
        place = f"{error.path}:{error.line}" if error.line is not None else error.path
        typer.echo(f"{place}: {error.why}", err=True)
        if error.traceback is not None:
            typer.echo(error.traceback, err=True)


def refuse(why: str) -> typer.Exit:
    """Says why the command cannot be done as asked; to be raised."""
    typer.echo(f"torch-codemod: {why}", err=True)
    return typer.Exit(2)
