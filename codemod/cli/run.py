"""`torch-codemod run`: preview, diff, write or check."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from codemod.settings import Settings, Sites, To

if TYPE_CHECKING:
    from codemod.result import FileError, RunResult


class Format(str, Enum):
    TEXT = "text"
    JSON = "json"


def run(
    paths: list[str] = typer.Argument(None, help="Files and folders; `-` is stdin.  [default: .]", show_default=False),
    diff: bool = typer.Option(False, "--diff", help="Print a unified diff instead of findings."),
    in_place: bool = typer.Option(False, "--in-place", help="Write the files."),
    check: bool = typer.Option(False, "--check", help="Exit 1 when something would be rewritten."),
    select: list[str] = typer.Option([], "--select", metavar="NAME", help="Only these transforms."),
    ignore: list[str] = typer.Option([], "--ignore", metavar="NAME", help="All but these transforms."),
    sites: Sites = typer.Option(None, "--sites", help="Which views are rewritten.  [default: failing]"),
    to: To = typer.Option(None, "--to", help="What an unsafe view becomes.  [default: reshape]"),
    format: Format = typer.Option(Format.TEXT, "--format", help="Format of the findings."),
    output: Path = typer.Option(None, "--output", help="Write the findings or the diff to this file."),
    jobs: int = typer.Option(0, "--jobs", min=0, help="Processes.  [default: one a processor]", show_default=False),
    no_cache: bool = typer.Option(False, "--no-cache", help="Neither read nor write the cache of results."),
    config: Path = typer.Option(None, "--config", help="A pyproject.toml to take settings from."),
    stdin_filename: str = typer.Option("", "--stdin-filename", metavar="NAME", help="Path of what comes on stdin."),
) -> None:
    """Find the calls to rewrite, and say why.

    Without --in-place nothing is changed.  Exit code: 0 nothing to do, 1 something to rewrite (with --check), 2 some
    file could not be processed or the usage is wrong.
    """
    from codemod.configuration import UsageError

    given = paths or ["."]
    try:
        if in_place and (check or diff):
            raise UsageError(f"--in-place writes the files, --{'check' if check else 'diff'} leaves them; choose one")
        settings = _settings(given, config, _names(select), _names(ignore), sites, to)
    except UsageError as error:
        typer.echo(f"torch-codemod: {error}", err=True)
        raise typer.Exit(2) from None
    if given == ["-"]:
        raw = sys.stdin.buffer.read()
        result = _run_stdin(stdin_filename or "stdin.py", raw, settings)
    else:
        raw = b""
        result = _run_files(given, settings, jobs or os.cpu_count() or 1, no_cache)
    failed = _write(result) if in_place and given != ["-"] else ()
    if in_place and given == ["-"]:
        change = result.files[0].change
        _put(change.after if change is not None else raw, output)
    else:
        _print(result, format, diff, output, written=in_place)
    _print_errors((*result.errors, *failed))
    raise typer.Exit(2 if failed else result.exit_code(check))


def _names(values: list[str]) -> tuple[str, ...]:
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def _settings(
    paths: list[str],
    config: Path | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    sites: Sites | None,
    to: To | None,
) -> Settings:
    """The command line over the file over the defaults."""
    from codemod.configuration import UsageError, check_names, find, load
    from codemod.registry import transforms

    known = list(transforms())
    check_names("--select", select, known)
    check_names("--ignore", ignore, known)
    if config is not None and not config.is_file():
        raise UsageError(f"--config {config}: no such file; check the path")
    file = config or find([path for path in paths if Path(path).exists()])
    settings = load(file, known) if file is not None else Settings()
    return replace(
        settings,
        select=select or settings.select,
        ignore=(*settings.ignore, *ignore),
        sites=sites or settings.sites,
        to=to or settings.to,
    )


def _run_stdin(name: str, raw: bytes, settings: Settings) -> RunResult:
    from codemod.engine import process_raw
    from codemod.result import RunResult

    return RunResult((process_raw(name, raw, settings),))


def _run_files(paths: list[str], settings: Settings, jobs: int, no_cache: bool) -> RunResult:
    from codemod import runner
    from codemod.cache import default_cache
    from codemod.cli.progress import progress
    from codemod.result import FileResult, RunResult
    from codemod.sources.walk import walk

    found = walk(paths, settings.exclude)
    with progress() as advance:
        files: list[FileResult] = list(
            runner.run(found.files, settings, jobs, None if no_cache else default_cache(), advance)
        )
    files += [FileResult(error.path, errors=(error,)) for error in found.errors]
    return RunResult(tuple(files))


def _write(result: RunResult) -> tuple[FileError, ...]:
    """Write every change, a helper once and before the code that imports it."""
    from codemod.sources.write import write

    failed: list[FileError] = []
    helpers: dict[str, FileError | None] = {}
    for file in result.files:
        if file.helper is not None and file.helper.path not in helpers:
            helpers[file.helper.path] = write(file.helper.path, file.helper)
        trouble = helpers.get(file.helper.path) if file.helper is not None else None
        if trouble is None and file.change is not None:
            trouble = write(file.path, file.change)
        if trouble is not None:
            failed.append(trouble)
    return tuple(failed)


def _print(result: RunResult, format: Format, diff: bool, output: Path | None, *, written: bool) -> None:
    if diff:
        from codemod.report.diff import DiffReport

        _put(DiffReport().render(result), output)
    elif format is Format.JSON:
        from codemod.report.json import JsonReport

        _put(JsonReport().render(result), output)
    else:
        _print_text(result, output, written)


def _put(data: bytes, output: Path | None) -> None:
    if output is not None:
        output.write_bytes(data)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _print_text(result: RunResult, output: Path | None, written: bool) -> None:
    """With colour on a terminal, plain and unwrapped elsewhere."""
    from codemod.report.text import lines

    shown = lines(result, written=written)
    if output is not None or not sys.stdout.isatty():
        _put("".join(f"{line.plain}\n" for line in shown).encode(errors="backslashreplace"), output)
        return
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for line in shown:
        console.print(line)


def _print_errors(errors: tuple[FileError, ...]) -> None:
    for error in errors:
        place = f"{error.path}:{error.line}" if error.line is not None else error.path
        typer.echo(f"{place}: {error.why}", err=True)
        if error.traceback is not None:
            typer.echo(error.traceback, err=True)
