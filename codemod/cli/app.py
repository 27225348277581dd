"""The command line: `torch-codemod`."""

from __future__ import annotations

import sys
from io import TextIOWrapper

import typer

import codemod
from codemod.cli import log, rules, run, trace, verify

app = typer.Typer(
    name="torch-codemod",
    help="Rewrite unsafe .view() calls, hard-coded sizes and huge bmm batches in PyTorch code.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run.run)
app.command("log")(log.log)
app.command("verify")(verify.verify)
app.command("rules")(rules.rules)
# What follows the script or the module is the program's.
app.command("trace", context_settings={"allow_interspersed_args": False})(trace.trace)


def _version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"torch-codemod {codemod.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    pass


def main() -> None:
    """Console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an ASCII terminal is no reason to end a run
    app()
