"""What `log` says of each failure: where it is, why, what would be changed, and whether it is torch's own fault."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from codemod.evidence.failure import Kind, Stage
from codemod.evidence.given import Given, Located
from codemod.finding import Action, Finding
from codemod.known_issues import KnownIssue, installed_torch, match
from codemod.report.siblings import siblings
from codemod.report.text import shown
from codemod.result import FileResult, RunResult

_RAN = {
    Stage.EAGER: "eager code",
    Stage.DYNAMO: "torch.compile, as dynamo followed the code",
    Stage.EXPORT: "torch.export",
    Stage.DECOMPOSITION: "torch.export, in run_decompositions",
    Stage.INDUCTOR: "code that Inductor compiled",
    Stage.AOTINDUCTOR: "a package of AOTInductor",
}
_RUNGS = {
    Stage.EAGER: "eager",
    Stage.DYNAMO: "dynamo",
    Stage.EXPORT: "export",
    Stage.DECOMPOSITION: "run_decompositions",
    Stage.INDUCTOR: "inductor",
    Stage.AOTINDUCTOR: "aot_inductor",
}
"""What `verify`, and with it the known issues, call the stages."""


def lines(given: Given, result: RunResult) -> Iterator[Text]:
    """One paragraph a failure; failures of one call are told once."""
    files = {file.path: file for file in result.files}
    told: set[tuple[str | None, str]] = set()
    for one in given.located:
        if (one.path, one.text) not in told:
            told.add((one.path, one.text))
            yield from _failure(one, files.get(one.path or ""))
    if not given.located:
        yield from (Text(note) for note in given.notes)
    alike = siblings(result, result.failed)
    if alike is not None:
        yield Text(f"{alike[0].upper()}{alike[1:]}")


def _failure(one: Located, file: FileResult | None) -> Iterator[Text]:
    yield Text(one.text, style="bold")
    yield Text(f"  in {_RAN[one.failure.stage]}.  {one.failure.kind.explanation}")
    issue = match(one.failure.message, one.failure.details.operation, _RUNGS[one.failure.stage])
    if issue is not None:
        yield from _issue(issue)
    findings = _about(one, file)
    if file is None or not findings:
        yield Text(f"  {_why_none(one, file)}")
        yield Text("")
        return
    for finding in findings:
        yield from shown(finding, file)


def _about(one: Located, file: FileResult | None) -> list[Finding]:
    """What is done at the call; that the finding does not go by the log does not matter."""
    acted = [finding for finding in file.findings if finding.action is not Action.KEEP] if file is not None else []
    told = [finding for finding in acted if any(reason.text == one.text for reason in finding.reasons)]
    if not told and one.failure.kind in (Kind.SPECIALIZED, Kind.CONSTRAINT_VIOLATED):
        # torch.export names the size, not the line
        return [finding for finding in acted if finding.transform == "size-to-minus-one"]
    return told or [finding for finding in acted if _is_at(finding, one)]


def _why_none(one: Located, file: FileResult | None) -> str:
    """Why nothing is changed."""
    if file is None or one.frame is None:
        return one.why
    note = next((note for note in file.notes if note.startswith(one.text)), None)
    if note is not None:
        return note.removeprefix(f"{one.text}: ")
    return f"{one.path}:{one.frame.line}: left as it is"


def _is_at(finding: Finding, one: Located) -> bool:
    return one.frame is not None and finding.span.line == one.frame.line


def _issue(issue: KnownIssue) -> Iterator[Text]:
    number = f"pytorch #{issue.number}, " if issue.number is not None else ""
    version = installed_torch()
    here = f" in torch {version}" if version else ""
    yield Text(f"  known: {issue.title} ({number}{issue.state(version)}{here})")
    yield Text(f"  cure: {issue.cure}")
