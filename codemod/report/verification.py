"""What `verify` says: a table for people, JSON (version 1) for machines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from rich.text import Text

from codemod.known_issues import KNOWN_ISSUES
from codemod.verify.rung import Failure, Rung, Status
from codemod.verify.verdict import Ladder, Verification

VERSION = 1
FILES_AT_MOST = 6
"""Of a package that is rewritten, these are named."""
_STYLES = {Status.OK: "green", Status.SKIPPED: "dim"}
_ISSUES = {issue.name: issue for issue in KNOWN_ISSUES}


def render_json(verification: Verification) -> bytes:
    document = {"version": VERSION, **asdict(verification), "exit_code": verification.exit_code}
    return f"{json.dumps(document, indent=2)}\n".encode("ascii")


def row(title: str, rung: Rung, width: int) -> Text:
    """One line of the table, written as soon as the rung is done."""
    shown = Text(f"{title:<{len('before')}}  " if title else "")
    shown.append(f"{rung.name:<{width}}")
    shown.append(f"  {rung.status.value:<9}", style=_STYLES.get(rung.status, "bold red"))
    shown.append("          " if rung.status is Status.SKIPPED else f"{rung.seconds:8.1f} s", style="dim")
    return shown.append(f"  {_fact(rung)}") if _fact(rung) else shown


def _fact(rung: Rung) -> str:
    """What a row has room for."""
    if rung.failure is not None:
        said = rung.failure.message.splitlines() or [""]
        operation = f"{rung.failure.operation}: " if rung.failure.operation else ""
        return f"{operation}{_shortened(said[0])}"
    if rung.difference is not None:
        return f"{rung.difference.where}: {rung.difference.what}"
    return rung.why or ""


def _shortened(text: str) -> str:
    return text if len(text) <= 90 else f"{text[:87]}..."


def conclusion(verification: Verification) -> Iterator[Text]:
    """The first rung that fails, with the user's line and the cure, of each ladder."""
    changed = verification.changed
    told = changed if len(changed) <= FILES_AT_MOST else changed[: FILES_AT_MOST - 1]
    for path in told:
        yield Text(f"{path}: rewritten in a copy", style="dim")
    if len(told) < len(changed):
        yield Text(f"{len(changed) - len(told)} more files: rewritten in a copy", style="dim")
    if verification.is_unchanged:
        yield Text("nothing to rewrite, so there is no after; `torch-codemod run` tells what it keeps, and why")
    for ladder in verification.ladders:
        yield from _of_ladder(ladder)


def _of_ladder(ladder: Ladder) -> Iterator[Text]:
    title = f"{ladder.title}: " if ladder.title else ""
    fault = ladder.first_fault
    if fault is None:
        skipped = sum(rung.status is Status.SKIPPED for rung in ladder.rungs)
        passed = len(ladder.rungs) - skipped
        told = "1 rung passes" if passed == 1 else f"{passed} rungs pass"
        yield Text(f"{title}{told}" + (f", {skipped} skipped" if skipped else ""))
        return
    yield Text(f"{title}first rung that fails: {fault.name} ({fault.status.value})", style="bold")
    if fault.failure is not None:
        yield from _failure(fault.failure)
    if fault.difference is not None:
        difference = fault.difference
        yield Text(f"    {difference.where}: {difference.what}")
        if difference.largest is not None and difference.allowed is not None:
            yield Text(f"    differs by {difference.largest:.3g}, {difference.allowed:.3g} is allowed")
    if fault.known_issue is not None:
        yield from _known(fault.known_issue)


def _failure(failure: Failure) -> Iterator[Text]:
    operation = f" in {failure.operation}" if failure.operation else ""
    yield Text(f"    {failure.stage}: {failure.type}{operation}")
    for line in failure.message.splitlines():
        yield Text(f"    {line}", style="dim")
    for frame in failure.frames:
        yield Text(f"    {frame.path}:{frame.line}: in {frame.function}" if frame.function else f"    {frame.path}")
        yield Text(f"        {frame.text}", style="cyan")


def _known(name: str) -> Iterator[Text]:
    issue = _ISSUES[name]
    number = f"pytorch #{issue.number}" if issue.number is not None else issue.name
    yield Text(f"    known issue, {number}: {issue.title}")
    yield Text(f"    cure: {issue.cure}", style="green")
    yield Text(f"    {issue.source}", style="dim")
