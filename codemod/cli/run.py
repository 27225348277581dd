"""`torch-codemod run`: preview, diff, write or check."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from codemod.cli import output as out
from codemod.cli.given import STDIN, place_given, show_notes
from codemod.settings import Settings, Sites, To

if TYPE_CHECKING:
    from codemod.evidence.given import Given
    from codemod.result import FileResult, RunResult


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
    log: list[str] = typer.Option([], "--log", metavar="FILE", help="Tracebacks, a CI log: what failed; `-` is stdin."),
    evidence: list[Path] = typer.Option([], "--evidence", metavar="FILE", help="What `trace` recorded."),
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
        _check_usage(given, in_place, check, diff, output, stdin_filename, log)
        settings = settings_of(given, stdin_filename, config, _names(select), _names(ignore), sites, to)
        if given == [STDIN]:
            raw = sys.stdin.buffer.read()
            result = _run_stdin(stdin_filename or "stdin.py", raw, settings, log, evidence)
            if in_place:
                _put_rewritten(result.files[0], raw, output)
            else:
                _report(result, format, diff, output, written=False)
        else:
            result = _run_files(given, settings, log, evidence, jobs, no_cache, in_place)
            _report(result, format, diff, output, written=in_place)
    except UsageError as error:
        raise out.refuse(str(error)) from None
    except KeyboardInterrupt:
        typer.echo("interrupted; every file is either old or new, run again for the rest", err=True)
        raise typer.Exit(130) from None
    show_notes(result.notes)
    out.show_errors(result.errors)
    raise typer.Exit(result.exit_code(check))


def _names(values: list[str]) -> tuple[str, ...]:
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def _check_usage(
    paths: list[str],
    in_place: bool,
    check: bool,
    diff: bool,
    output: Path | None,
    stdin_filename: str,
    logs: list[str],
) -> None:
    """Raise UsageError for what cannot be asked for together."""
    from codemod.configuration import UsageError

    if in_place and (check or diff):
        raise UsageError(f"--in-place writes the files, --{'check' if check else 'diff'} leaves them; choose one")
    if STDIN in paths and len(paths) > 1:
        raise UsageError("`-` stands for stdin and comes alone; give the other paths to a run of their own")
    if STDIN in [*paths, *logs] and [*paths, *logs].count(STDIN) > 1:
        raise UsageError("stdin can be read once: as the program, or as one --log")
    if stdin_filename and paths != [STDIN]:
        raise UsageError("--stdin-filename names what comes on stdin; give `-` as the only path")
    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        fact = "is a folder" if output.is_dir() else "its folder does not exist"
        raise UsageError(f"--output {output}: {fact}; check the path")


def settings_of(
    paths: list[str],
    stdin_filename: str = "",
    config: Path | None = None,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    sites: Sites | None = None,
    to: To | None = None,
) -> Settings:
    """The command line over the file over the defaults."""
    from codemod.configuration import check_names, configured
    from codemod.registry import transforms

    known = list(transforms())
    check_names("--select", select, known)
    check_names("--ignore", ignore, known)
    settings = configured([stdin_filename or "."] if paths == [STDIN] else paths, known, config)
    return replace(
        settings,
        select=select or settings.select,
        ignore=(*(name for name in settings.ignore if name not in select), *ignore),
        sites=sites or settings.sites,
        to=to or settings.to,
    )


def _run_stdin(name: str, raw: bytes, settings: Settings, logs: list[str], evidence: list[Path]) -> RunResult:
    from codemod.engine import process_raw
    from codemod.evidence.shown import NO_EVIDENCE
    from codemod.result import RunResult

    given, errors = place_given(logs, evidence, [name])
    result = process_raw(name, raw, settings, given.by_path.get(name, NO_EVIDENCE))
    return RunResult((replace(result, errors=(*result.errors, *errors)),), given.failed, given.notes)


def _put_rewritten(file: FileResult, raw: bytes, output: Path | None) -> None:
    """What came on stdin, rewritten where it could be."""
    out.put(file.change.after if file.change is not None else raw, output)
    if file.helper is not None:
        typer.echo(f"{file.helper.path}: not written for stdin, but imported now; run on the file itself", err=True)


def _run_files(
    paths: list[str],
    settings: Settings,
    logs: list[str],
    evidence: list[Path],
    jobs: int,
    no_cache: bool,
    in_place: bool,
) -> RunResult:
    from codemod.in_place import write_changes
    from codemod.result import FileResult
    from codemod.sources.walk import walk

    found = walk(paths, settings.exclude, settings.root)
    given, errors = place_given(logs, evidence, found.files)
    result = run_over(found.files, settings, given, jobs=jobs, no_cache=no_cache)
    failed = tuple(FileResult(error.path, errors=(error,)) for error in (*found.errors, *errors))
    result = replace(result, files=(*result.files, *failed))
    return write_changes(result) if in_place else result


def run_over(files: Sequence[str], settings: Settings, given: Given, *, jobs: int = 0, no_cache: bool) -> RunResult:
    """Nothing is written; with a progress bar on a terminal."""
    from codemod import runner
    from codemod.cache import default_cache
    from codemod.cli.progress import progress
    from codemod.result import RunResult

    cache = None if no_cache else default_cache()
    with progress() as advance:
        done = list(runner.run(files, settings, jobs or os.cpu_count() or 1, cache, advance, given.by_path))
    return RunResult(tuple(done), given.failed, given.notes)


def _report(result: RunResult, format: Format, diff: bool, output: Path | None, *, written: bool) -> None:
    if diff:
        from codemod.report.diff import DiffReport

        out.show_diff(DiffReport().render(result), output)
    elif format is Format.JSON:
        from codemod.report.json import JsonReport

        out.put(JsonReport().render(result), output)
    else:
        from codemod.report.text import lines

        out.show(lines(result, written=written), output)
