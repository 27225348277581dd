"""`--format text`: findings with their reasons, as a compiler shows them, and a summary."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from codemod.finding import Action, Finding, Reason, Verdict
from codemod.report.report import summarise
from codemod.report.siblings import siblings
from codemod.result import FileResult, RunResult

_STYLES = {Action.REWRITE: "bold yellow", Action.REPORT: "bold magenta"}
_TOLD = frozenset({Verdict.FAILING, Verdict.WRITTEN_THROUGH})
"""Verdicts that the kept are not counted by: they are what a run rewrites and reports."""


def lines(result: RunResult, *, written: bool) -> Iterator[Text]:
    """Everything that a run says; `written` where the files have been changed."""
    for file in result.files:
        for finding in file.findings:
            if finding.action is not Action.KEEP:
                yield from shown(finding, file)
        for cell, line in file.unused_suppressions:
            place = f"{file.path}:cell {cell}:{line}" if cell else f"{file.path}:{line}"
            yield Text(f"{place}: this suppression comment suppresses nothing; remove it")
    for path in dict.fromkeys(file.helper.path for file in result.files if file.helper is not None):
        yield Text(f"{path}: {'written' if written else 'to be written'}; rewritten code imports it")
    alike = siblings(result, result.failed)
    if alike is not None:
        yield Text(f"{alike[0].upper()}{alike[1:]}")
    yield _summary(result, written)


def shown(finding: Finding, file: FileResult) -> Iterator[Text]:
    """One finding: its line, marked, the reasons, and what the call becomes."""
    span = finding.span
    cell = f":cell {finding.cell}" if finding.cell is not None else ""
    head = Text(f"{finding.path}{cell}:{span.line}:{span.column}: ", style="bold")
    head.append(f"{finding.verdict.value}: ", style=_STYLES[finding.action])
    head.append(f"{finding.message} [{finding.transform}]")
    yield head
    source = next((text for c, line, text in file.lines if line == span.line and c == (finding.cell or 0)), None)
    if source is not None:
        yield from _pointed(_visible(source), span.line, span.column)
    for reason in finding.reasons:
        yield Text(f"        = {_place(reason, finding.path)}{reason.text}", style="dim")
    if finding.replacement is not None:
        first, *rest = finding.replacement.splitlines()
        yield Text(f"        + {first}{' ...' if rest else ''}", style="cyan")
    yield Text("")


def _pointed(source: str, line: int, column: int) -> Iterator[Text]:
    """The line with the method's name marked."""
    name = re.match(r"\w+", source[column - 1 :])
    yield Text(f"  {line:>5} | {source}")
    yield Text(f"        | {' ' * cell_len(source[: column - 1])}{'^' * cell_len(name[0] if name else ' ')}", "green")


def _visible(source: str) -> str:
    """Tabs, form feeds and what else moves a terminal's cursor as one blank each."""
    return "".join(character if character.isprintable() else " " for character in source)


def _place(reason: Reason, path: str) -> str:
    if reason.line is None:
        return ""
    return f"line {reason.line}: " if reason.path in (None, path) else f"{reason.path}:{reason.line}: "


def _summary(result: RunResult, written: bool) -> Text:
    summary = summarise(result)
    rewrites, reports = summary.actions[Action.REWRITE.value], summary.actions[Action.REPORT.value]
    files = f"{_files(summary.files)} seen"
    failed = f", {len(result.errors)} left out" if result.errors else ""
    if not rewrites and not reports:
        return Text(f"Nothing to rewrite: {_kept(result)}; {files}{failed}")
    verb = "rewritten" if written else "to rewrite"
    changed = f"{summary.changed} {'changed' if written else 'would change'}"
    return Text(f"{rewrites} {verb}, {reports} reported, {_kept(result)}; {files}, {changed}{failed}")


def _kept(result: RunResult) -> str:
    """How many calls are kept, and why."""
    kept = [finding.verdict for finding in result.findings if finding.action is Action.KEEP]
    shown = [verdict for verdict in Verdict if verdict in kept and verdict not in _TOLD]
    detail = ", ".join(f"{kept.count(verdict)} {verdict.value}" for verdict in shown)
    return f"{len(kept)} kept ({detail})" if detail else f"{len(kept)} kept"


def _files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"
