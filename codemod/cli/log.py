"""`torch-codemod log`: what a traceback or a CI log says, and what would be done about it."""

from __future__ import annotations

import typer

from codemod.cli import output as out
from codemod.cli.given import place_given
from codemod.cli.run import run_over, settings_of


def log(
    file: str = typer.Argument(..., metavar="FILE", help="Tracebacks, or a CI log; `-` is stdin.", show_default=False),
    paths: list[str] = typer.Argument(
        None, help="Files and folders that the failing code may stand in.  [default: .]", show_default=False
    ),
) -> None:
    """Explain a failure: the call, the cause, the cure.

    Nothing is changed: `torch-codemod run --log FILE --in-place` does what is shown here.
    """
    from codemod.configuration import UsageError
    from codemod.report.failures import lines
    from codemod.sources.walk import walk

    given_paths = paths or ["."]
    try:
        settings = settings_of(given_paths)
        found = walk(given_paths, settings.exclude, settings.root)
        given, _ = place_given([file], [], found.files)
        result = run_over(found.files, settings, given, no_cache=False)
    except UsageError as error:
        raise out.refuse(str(error)) from None
    out.show(lines(given, result))
    errors = (*found.errors, *result.errors)
    out.show_errors(errors)
    raise typer.Exit(2 if errors else 0)
