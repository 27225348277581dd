"""The JSON report is a contract: machines read it, and a change of it is a new version."""

from __future__ import annotations

import json

from codemod.engine import process_raw
from codemod.report.json import JsonReport
from codemod.result import FileError, FileResult, RunResult
from codemod.settings import Settings

PROGRAM = """import torch


def f(x, y):
    a = x.t().view(-1)
    b = y.contiguous().view(-1)
    x.t().reshape(-1)[0] = 1
    return a, b, y.view(torch.uint8)
"""

DOCUMENT = {
    "notes": [],
    "version": 1,
    "sites": [
        {
            "path": "net.py",
            "line": 5,
            "column": 15,
            "end_line": 5,
            "end_column": 23,
            "transform": "view-to-reshape",
            "verdict": "failing",
            "action": "rewrite",
            "replacement": "x.t().reshape(-1)",
            "message": ".view() merges dims that do not lie one after the other in memory",
            "reasons": [
                {"text": "strided since t()", "path": None, "line": 5},
                {"text": "merges dims 0 and 1 of it here", "path": None, "line": None},
            ],
        },
        {
            "path": "net.py",
            "line": 6,
            "column": 24,
            "end_line": 6,
            "end_column": 32,
            "transform": "view-to-reshape",
            "verdict": "safe",
            "action": "keep",
            "replacement": None,
            "message": ".view() fits every layout that reaches it",
            "reasons": [],
        },
        {
            "path": "net.py",
            "line": 7,
            "column": 11,
            "end_line": 7,
            "end_column": 22,
            "transform": "lost-write",
            "verdict": "written-through",
            "action": "report",
            "replacement": None,
            "message": ".reshape() may be a copy, and what is written to it would be lost",
            "reasons": [
                {"text": "written by item assignment", "path": None, "line": 7},
                {"text": "strided since t()", "path": None, "line": 7},
                {"text": "merges dims 0 and 1 of it here", "path": None, "line": None},
            ],
        },
        {
            "path": "net.py",
            "line": 8,
            "column": 20,
            "end_line": 8,
            "end_column": 37,
            "transform": "view-to-reshape",
            "verdict": "not-a-shape-view",
            "action": "keep",
            "replacement": None,
            "message": ".view() is not a change of shape",
            "reasons": [{"text": "its argument is a dtype", "path": None, "line": None}],
        },
    ],
    "files": {"seen": 2, "changed": 1, "skipped": [{"path": "old.py", "why": "not Python 3: line 1"}]},
    "summary": {
        "verdicts": {
            "failing": 1,
            "layout-dependent": 0,
            "unknown": 0,
            "safe": 1,
            "written-through": 1,
            "not-a-shape-view": 1,
            "wrong-size": 0,
        },
        "actions": {"rewrite": 1, "report": 1, "keep": 2},
        "transforms": {"lost-write": 1, "view-to-reshape": 1},
    },
}


def test_the_document_is_what_the_contract_says() -> None:
    failed = FileResult("old.py", errors=(FileError("old.py", "not Python 3: line 1"),))
    result = RunResult((process_raw("net.py", PROGRAM.encode(), Settings()), failed))
    assert json.loads(JsonReport().render(result)) == DOCUMENT


def test_a_file_name_that_is_no_text_comes_back_as_it_is() -> None:
    name = b"caf\xe9.py".decode(errors="surrogateescape")
    (site,) = json.loads(JsonReport().render(RunResult((process_raw(name, b"x.t().view(-1)", Settings()),))))["sites"]
    assert site["path"].encode(errors="surrogateescape") == b"caf\xe9.py"
