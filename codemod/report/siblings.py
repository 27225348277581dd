"""Where the next failure may come from: views like one that was seen to fail, which nothing was seen of."""

from __future__ import annotations

from collections.abc import Collection

from codemod.finding import Action, Finding, Verdict
from codemod.result import RunResult

_SHOWN = 8


def siblings(result: RunResult, paths: Collection[str]) -> str | None:
    """One sentence: the layout-dependent views of these files, and how many there are in others."""
    alike = [finding for finding in result.findings if _is_alike(finding)]
    near = [finding for finding in alike if finding.path in paths]
    if not near:
        return None
    places = [_place(finding) for finding in near[:_SHOWN]]
    more = [f"{len(near) - _SHOWN} more there"] if len(near) > _SHOWN else []
    more += [f"{len(alike) - len(near)} in other files"] if len(alike) > len(near) else []
    return f"not seen to fail, but refused for the same kind of input: {', '.join(places + more)}; see `--sites risky`"


def _is_alike(finding: Finding) -> bool:
    return finding.verdict is Verdict.LAYOUT_DEPENDENT and finding.action is Action.KEEP


def _place(finding: Finding) -> str:
    cell = f":cell {finding.cell}" if finding.cell is not None else ""
    return f"{finding.path}{cell}:{finding.span.line}:{finding.span.column}"
