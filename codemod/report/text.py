"""`--format text`: findings with their reasons, as a compiler shows them, and a summary."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from codemod.finding import Action, Finding, Verdict
from codemod.report.report import summarise
from codemod.result import FileResult, RunResult

_STYLES = {Action.REWRITE: "bold yellow", Action.REPORT: "bold magenta"}


def lines(result: RunResult, *, written: bool) -> Iterator[Text]:
    """Everything that a run says; `written` where the files have been changed."""
    for file in result.files:
        for finding in file.findings:
            if finding.action is not Action.KEEP:
                yield from _finding(finding, file)
        for line in file.unused_suppressions:
            yield Text(f"{file.path}:{line}: this suppression comment suppresses nothing; remove it")
    yield _summary(result, written)


def _finding(finding: Finding, file: FileResult) -> Iterator[Text]:
    span = finding.span
    cell = f":cell {finding.cell}" if finding.cell is not None else ""
    head = Text(f"{finding.path}{cell}:{span.line}:{span.column}: ", style="bold")
    head.append(f"{finding.verdict.value}: ", style=_STYLES[finding.action])
    head.append(f"{finding.message} [{finding.transform}]")
    yield head
    source = next((text for c, line, text in file.lines if line == span.line and c == (finding.cell or 0)), None)
    if source is not None:
        shown = source.replace("\t", " ")
        yield Text(f"  {span.line:>5} | {shown}")
        yield Text(f"        | {' ' * (span.column - 1)}{'^' * _width(finding, shown)}", style="green")
    for reason in finding.reasons:
        place = f"line {reason.line}: " if reason.line is not None else ""
        yield Text(f"        = {place}{reason.text}", style="dim")
    if finding.replacement is not None:
        first, *rest = finding.replacement.splitlines()
        yield Text(f"        + {first}{' ...' if rest else ''}", style="cyan")
    yield Text("")


def _width(finding: Finding, source: str) -> int:
    """Of the method's name."""
    rest = source[finding.span.column - 1 :]
    return max(1, len(rest) - len(rest.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")))


def _summary(result: RunResult, written: bool) -> Text:
    summary = summarise(result)
    rewrites, reports = summary.actions[Action.REWRITE.value], summary.actions[Action.REPORT.value]
    kept = summary.actions[Action.KEEP.value]
    shown = [verdict for verdict in Verdict if verdict not in (Verdict.FAILING, Verdict.WRITTEN_THROUGH)]
    counts = {verdict: _kept(result, verdict) for verdict in shown}
    detail = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items() if count)
    verb = "rewritten" if written else "to rewrite"
    parts = [f"{rewrites} {verb}", f"{reports} reported", f"{kept} kept{f' ({detail})' if detail else ''}"]
    changed = f"{summary.changed} {'changed' if written else 'would change'}"
    return Text(f"{', '.join(parts)}; {_files(summary.files)} seen, {changed}")


def _kept(result: RunResult, verdict: Verdict) -> int:
    return sum(finding.verdict is verdict and finding.action is Action.KEEP for finding in result.findings)


def _files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"
