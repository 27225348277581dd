"""`--format json`: a contract.  Version 1."""

from __future__ import annotations

import json
from dataclasses import asdict

from codemod.finding import Finding
from codemod.report.report import summarise
from codemod.result import RunResult

VERSION = 1


class JsonReport:
    """Every site, those kept as well, in order of path and position."""

    def render(self, result: RunResult) -> bytes:
        summary = summarise(result)
        document = {
            "version": VERSION,
            "sites": [_site(finding) for finding in result.findings],
            "files": {
                "seen": summary.files,
                "changed": summary.changed,
                "skipped": [{"path": error.path, "why": error.why} for error in result.errors],
            },
            "notes": list(result.notes),
            "summary": {
                "verdicts": summary.verdicts,
                "actions": summary.actions,
                "transforms": summary.transforms,
            },
        }
        # in ASCII: a file name that is no UTF-8 comes through as it does in Python, as lone surrogates
        return f"{json.dumps(document, indent=2)}\n".encode("ascii")


def _site(finding: Finding) -> dict[str, object]:
    site: dict[str, object] = {
        "path": finding.path,
        **asdict(finding.span),
        "transform": finding.transform,
        "verdict": finding.verdict.value,
        "action": finding.action.value,
        "replacement": finding.replacement,
        "message": finding.message,
        "reasons": [asdict(reason) for reason in finding.reasons],
    }
    if finding.cell is not None:
        site["cell"] = finding.cell
    return site
