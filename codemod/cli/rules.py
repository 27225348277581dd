"""`torch-codemod rules`: what the transforms do, told by their own docstrings and examples, and torch's own faults."""

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

    from codemod.known_issues import KnownIssue
    from codemod.transform import Example, Transform

_MARKS = {" ": ("    ", ""), "-": ("  - ", "red"), "+": ("  + ", "green")}


def rules(
    name: str = typer.Argument("", help="A transform's or a known issue's name; all are listed without it."),
) -> None:
    """List the transforms and torch's known issues, or explain one."""
    from codemod.configuration import UsageError, check_names
    from codemod.known_issues import KNOWN_ISSUES
    from codemod.registry import transforms

    known = transforms()
    issues = {issue.name: issue for issue in KNOWN_ISSUES}
    try:
        check_names("rules", [name] if name else [], [*known, *issues])
    except UsageError as error:
        raise out.refuse(str(error)) from None
    if not name:
        out.show(_listed(known.values()))
        out.show(_known(issues.values()))
    else:
        out.show(_explained(known[name]) if name in known else _issue(issues[name]))


def _known(issues: Iterable[KnownIssue]) -> Iterator[Text]:
    """With whether the torch that is installed beside this tool has it."""
    from rich.text import Text

    from codemod.known_issues import installed_torch

    shown, version = list(issues), installed_torch()
    width = max(len(issue.name) for issue in shown)
    here = f"{version} is installed here" if version else "which is not installed here"
    yield Text(f"\nKnown issues of torch itself ({here}):")
    for issue in shown:
        yield Text.assemble((f"{issue.name:<{width}}", "bold"), f"  {issue.state(version)}  {issue.title}")


def _issue(issue: KnownIssue) -> Iterator[Text]:
    from rich.text import Text

    number = f"pytorch #{issue.number}: " if issue.number is not None else ""
    yield Text.assemble((issue.name, "bold"), f": {number}{issue.title}", "\n")
    until = f", mended in {issue.fixed}" if issue.fixed is not None else ""
    cuda = ", on CUDA" if issue.needs_cuda else ""
    yield Text(f"seen since torch {issue.since}{until}{cuda}; at {', '.join(issue.stages)}")
    yield Text(f"cure: {issue.cure}")
    yield Text(issue.source)


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
