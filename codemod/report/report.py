"""What every output format is given."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from codemod.finding import Action, Verdict
from codemod.result import RunResult


class Report(Protocol):
    """One output format: the bytes for stdout or the --output file."""

    def render(self, result: RunResult) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in numbers."""

    verdicts: dict[str, int]
    actions: dict[str, int]
    transforms: dict[str, int]
    """Of findings that are rewritten or reported."""
    files: int
    changed: int


def summarise(result: RunResult) -> Summary:
    verdicts = Counter(finding.verdict.value for finding in result.findings)
    actions = Counter(finding.action.value for finding in result.findings)
    acted = Counter(finding.transform for finding in result.findings if finding.action is not Action.KEEP)
    return Summary(
        {verdict.value: verdicts[verdict.value] for verdict in Verdict},
        {action.value: actions[action.value] for action in Action},
        dict(sorted(acted.items())),
        len(result.files),
        sum(file.change is not None for file in result.files),
    )
