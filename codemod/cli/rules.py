"""`torch-codemod rules`: what the transforms do, told by their own docstrings and examples."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

import typer

from codemod.cli import output as out
from codemod.settings import Settings

if TYPE_CHECKING:
    from rich.text import Text

    from codemod.transform import Example, Transform

_MARKS = {" ": ("    ", ""), "-": ("  - ", "red"), "+": ("  + ", "green")}


def rules(name: str = typer.Argument("", help="A transform's name; all are listed without it.")) -> None:
    """List the transforms, or explain one with its examples."""
    from codemod.configuration import UsageError, check_names
    from codemod.registry import transforms

    known = transforms()
    try:
        check_names("rules", [name] if name else [], list(known))
    except UsageError as error:
        raise out.refuse(str(error)) from None
    out.show(_explained(known[name]) if name else _listed(known.values()))


def _listed(transforms: Iterable[Transform]) -> Iterator[Text]:
    from rich.text import Text

    shown = list(transforms)
    width = max(len(transform.name) for transform in shown)
    for transform in shown:
        yield Text.assemble((f"{transform.name:<{width}}", "bold"), f"  {transform.summary}")


def _explained(transform: Transform) -> Iterator[Text]:
    from rich.text import Text

    yield Text.assemble((transform.name, "bold"), f": {transform.summary}", "\n")
    yield Text(f"{(sys.modules[type(transform).__module__].__doc__ or '').strip()}\n")
    for example in transform.examples:
        yield Text(f"- {example.title}{_outcome(example)}", "bold")
        yield from _changes(example)
        yield Text("")


def _outcome(example: Example) -> str:
    said = [f"{key} = {value}" for key, value in _given(example.settings)]
    said += [example.verdict] if example.verdict else []
    said += ["left alone"] if example.after is None else []
    return f" ({', '.join(said)})" if said else ""


def _given(settings: Settings) -> Iterator[tuple[str, object]]:
    """The settings that an example needs, as pyproject.toml spells them."""
    for field in fields(Settings):
        value = getattr(settings, field.name)
        if value != field.default:
            yield field.name.replace("_", "-"), getattr(value, "value", value)


def _changes(example: Example) -> Iterator[Text]:
    from rich.text import Text

    before = example.before.rstrip().splitlines()
    after = before if example.after is None else example.after.rstrip().splitlines()
    for line in difflib.ndiff(before, after):
        if line[0] in _MARKS:
            mark, style = _MARKS[line[0]]
            yield Text(f"{mark}{line[2:]}".rstrip(), style)
