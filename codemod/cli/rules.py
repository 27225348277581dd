"""`torch-codemod rules`: what the transforms do, told by their own docstrings and examples."""

from __future__ import annotations

import sys

import typer


def rules(name: str = typer.Argument("", help="A transform's name; all are listed without it.")) -> None:
    """List the transforms, or explain one with its examples."""
    from codemod.registry import transforms

    known = transforms()
    if not name:
        width = max(map(len, known))
        for transform in known.values():
            typer.echo(f"{transform.name:<{width}}  {transform.summary}")
        return
    if name not in known:
        typer.echo(f"no transform `{name}`; there are {', '.join(known)}", err=True)
        raise typer.Exit(2)
    chosen = known[name]
    typer.echo(f"{chosen.name}: {chosen.summary}\n")
    typer.echo(f"{(sys.modules[type(chosen).__module__].__doc__ or '').strip()}\n")
    for example in chosen.examples:
        typer.echo(f"- {example.title}{f' ({example.verdict})' if example.verdict else ''}")
        _show(example.before, example.after)


def _show(before: str, after: str | None) -> None:
    old, new = before.rstrip().splitlines(), (after or before).rstrip().splitlines()
    import difflib

    marks = {" ": "    ", "-": "  - ", "+": "  + "}
    for line in difflib.ndiff(old, new):
        if line[0] in marks:
            typer.echo(f"{marks[line[0]]}{line[2:]}")
    typer.echo("")
