"""One file: read, analyse, decide, edit."""

from __future__ import annotations

import ast
import os
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from pathspec import GitIgnoreSpec

from codemod.edit.apply import apply
from codemod.edit.helper_file import helper_change, helper_for
from codemod.evidence.failure import Kind
from codemod.evidence.join import join
from codemod.evidence.shown import NO_EVIDENCE, Evidence, Seen
from codemod.finding import Action, Finding, Reason, Verdict
from codemod.layout.analyse import analyse
from codemod.layout.project import LINES, Project
from codemod.registry import transforms
from codemod.result import FileChange, FileError, FileResult
from codemod.settings import Settings
from codemod.sources.notebook import Notebook, decode_notebook
from codemod.sources.source import Source, decode, read
from codemod.syntax.deep import with_deep_stack
from codemod.syntax.parse import Syntax, gc_paused, parse
from codemod.syntax.suppress import suppressions
from codemod.transform import Transform

_CANDIDATE = re.compile(
    rb"\.view(?:_as)?\b|bmm\s*\(|(?:bmm|Dim|dims)\s+as\b|Dim(?:\.DYNAMIC\b|\.AUTO\b|\s*\()|\bdims\s*\("
    rb"|mark_dynamic\b|matrix_exp\b|\.reshape\(\s*[\[(]?\s*(?:[1-9]|[A-Z_][A-Z_0-9]+\b|[\w.]*batch)"
    rb"|\.(?:reshape|reshape_as|flatten|ravel|contiguous)\(.*(?:\w_\(|\]\s*[-+*/]?=[^=])"
    rb"|out\s*=[^,\n]*\.(?:reshape|reshape_as|flatten|ravel|contiguous)\(|torch-codemod:"
)
_WORDS = (
    b".view",
    b"bmm",
    b"Dim",
    b"torch.export",
    b"import export",
    b"mark_dynamic",
    b"matrix_exp",
    b"reshape",
    b"flatten",
    b"ravel",
    b"contiguous",
    b"torch-codemod:",
)
"""One of them is in whatever the expression above finds; looking for them first is much faster."""
_COPY = re.compile(rb"\.(?:reshape|reshape_as|flatten|ravel|contiguous)\(")
_TOLD_BY = {
    Kind.VIEW_REFUSED: "view-to-reshape",
    Kind.DTYPE_VIEW: "view-to-reshape",
    Kind.SHAPE_INVALID: "size-to-minus-one",
    Kind.SPECIALIZED: "size-to-minus-one",
    Kind.BATCH_TOO_LARGE: "chunk-bmm",
    Kind.OUTPUT_LIMIT: "chunk-bmm",
}
"""Whose the failures are where no transform looks at the call."""
_BOUND = re.compile(rb"\s*(\w+)[ \t]*=[^=]")


def process(path: str, settings: Settings, evidence: Evidence = NO_EVIDENCE) -> FileResult:
    """What the file at `path` holds and what it would become; writes nothing."""
    source = read(path)
    if isinstance(source, FileError):
        return FileResult(path, errors=(source,))
    return process_raw(path, source.raw, settings, evidence)


def process_raw(path: str, raw: bytes, settings: Settings, evidence: Evidence = NO_EVIDENCE) -> FileResult:
    """As `process`, for bytes that are already read."""
    if evidence == NO_EVIDENCE and not _is_candidate(raw):
        return FileResult(path)
    with gc_paused():
        try:
            return with_deep_stack(lambda: _process(path, raw, settings, evidence))
        except Exception as error:
            why = f"internal error ({type(error).__name__}: {error}); left unchanged, please report it"
            return FileResult(path, errors=(FileError(path, why, traceback=traceback.format_exc()),))


def _is_candidate(raw: bytes) -> bool:
    """A file of which this is not true holds nothing to decide."""
    if b".view(" in raw:
        return True
    if not any(word in raw for word in _WORDS):
        return False
    if _CANDIDATE.search(raw):
        return True
    starts = {raw.rfind(b"\n", 0, copy.start()) + 1 for copy in _COPY.finditer(raw)}
    names = {bound[1] for start in starts if (bound := _BOUND.match(raw, start))}
    return any(re.search(rb"\b" + name + rb"(?:\[[^\n]*\]\s*[-+*/]?=[^=]|\.\w+_\()", raw) for name in names)


def _process(path: str, raw: bytes, settings: Settings, evidence: Evidence) -> FileResult:
    if path.endswith(".ipynb"):
        notebook = decode_notebook(path, raw)
        if isinstance(notebook, FileError):
            return FileResult(path, errors=(notebook,))
        return _process_source(notebook.source, raw, settings, evidence, notebook.encode, notebook)
    source = decode(path, raw)
    if isinstance(source, FileError):
        return FileResult(path, errors=(source,))
    return _process_source(source, raw, settings, evidence, source.encode, None)


def _process_source(
    source: Source,
    raw: bytes,
    settings: Settings,
    evidence: Evidence,
    encode: Callable[[str], bytes],
    notebook: Notebook | None,
) -> FileResult:
    syntax = parse(source)
    if isinstance(syntax, FileError):
        return FileResult(source.path, errors=(syntax,))
    selected = _selected(source.path, settings)
    project = Project(settings.root)
    joined = join(syntax, evidence)
    decided, unused = _unsuppressed(_decide(syntax, project, joined.seen, selected, settings), syntax)
    helper = helper_for(source.path)
    edited = apply(syntax, decided, transforms(), helper.module)
    change = FileChange(source.path, raw, encode(edited.text)) if edited.text != syntax.text else None
    extra = helper_change(helper) if edited.needs_helper else None
    if isinstance(extra, FileError):
        return FileResult(source.path, errors=(extra,))
    located = (_located(finding, project) for finding in edited.findings)
    findings = tuple(_placed(finding, notebook) for finding in located)
    lines = _lines(syntax, edited.findings, notebook)
    unused_at = tuple(_cell_and_line(line, notebook) for line in unused)
    return FileResult(
        source.path,
        findings,
        change,
        extra,
        unused_suppressions=unused_at,
        lines=lines,
        read=tuple(project.read.items()),
        notes=joined.notes,
    )


def _selected(path: str, settings: Settings) -> Mapping[str, Transform]:
    place = Path(os.path.relpath(path, settings.root)).as_posix()
    ignored = {
        name
        for pattern, names in settings.per_file_ignores
        if GitIgnoreSpec.from_lines([pattern]).match_file(place)
        for name in names
    }
    return {name: t for name, t in transforms().items() if settings.is_selected(name) and name not in ignored}


def _decide(
    syntax: Syntax,
    project: Project,
    seen: Mapping[ast.Call, Seen],
    selected: Mapping[str, Transform],
    settings: Settings,
) -> list[tuple[Finding, ast.Call]]:
    """Every finding with its call; what one transform would keep is not told where another has something to say."""
    decided: list[tuple[Finding, ast.Call]] = []
    calls = analyse(syntax, project, seen)
    for call in calls:
        transforms_of = [t for t in selected.values() if call.operation in t.operations]
        found = [f for t in transforms_of if (f := t.decide(call, settings)) is not None]
        told = [finding for finding in found if finding.action is not Action.KEEP]
        decided += [(finding, call.node) for finding in told or found[:1]]
    unmet = [call for call, one in seen.items() if one.shown and all(call is not finding for _, finding in decided)]
    decided += [
        (finding, call) for call in unmet if (finding := _unmet(syntax, call, seen[call], selected)) is not None
    ]
    return sorted(decided, key=lambda pair: (pair[0].span.line, pair[0].span.column))


def _unmet(syntax: Syntax, call: ast.Call, seen: Seen, selected: Mapping[str, Transform]) -> Finding | None:
    """What was seen to fail at a call that no transform looks at: it is told all the same."""
    first = seen.shown[0]
    transform = _TOLD_BY.get(first.kind, "")
    if transform not in selected:
        return None
    reasons = tuple(one.reason for one in seen.shown)
    message = first.kind.explanation.rstrip(".")
    return Finding(syntax.source.path, syntax.span(call), transform, Verdict.FAILING, Action.REPORT, message, reasons)


def _unsuppressed(
    decided: list[tuple[Finding, ast.Call]], syntax: Syntax
) -> tuple[list[tuple[Finding, ast.Call]], tuple[int, ...]]:
    """The findings with those kept that a comment suppresses, and the lines of the comments that suppress none."""
    comments = suppressions(syntax)
    if not comments.comments:
        return decided, ()
    kept, used = [], set()
    for finding, call in decided:
        line = None
        if finding.action is not Action.KEEP:
            line = comments.covers(finding.span.line, finding.span.end_line, finding.transform)
        if line is not None:
            used.add(line)
            finding = replace(finding, action=Action.KEEP, rewrites=())
        kept.append((finding, call))
    return kept, comments.unused(used)


def _located(finding: Finding, project: Project) -> Finding:
    """With the paths of what its reasons tell of other files."""
    if all(reason.line is None or reason.line < LINES for reason in finding.reasons):
        return finding
    places = ((reason, project.place(reason.line or 0)) for reason in finding.reasons)
    reasons = (replace(r, path=path, line=line) if path is not None else r for r, (path, line) in places)
    return replace(finding, reasons=tuple(reasons))


def _placed(finding: Finding, notebook: Notebook | None) -> Finding:
    """In a notebook the lines count within the cell."""
    if notebook is None:
        return finding
    cell, line = notebook.cell_of(finding.span.line)
    end = line + finding.span.end_line - finding.span.line
    reasons = tuple(_placed_reason(reason, finding.path, cell, notebook) for reason in finding.reasons)
    return replace(finding, span=replace(finding.span, line=line, end_line=end), cell=cell, reasons=reasons)


def _placed_reason(reason: Reason, path: str, cell: int, notebook: Notebook) -> Reason:
    if reason.line is None or reason.path not in (None, path):
        return reason
    its_cell, line = notebook.cell_of(reason.line)
    text = reason.text if its_cell == cell else f"{reason.text} (in cell {its_cell})"
    return replace(reason, line=line, text=text)


def _lines(
    syntax: Syntax, findings: tuple[Finding, ...], notebook: Notebook | None
) -> tuple[tuple[int, int, str], ...]:
    """(cell, line, text) of the lines that a report shows."""
    shown = dict.fromkeys(finding.span.line for finding in findings if finding.action is not Action.KEEP)
    if not shown:
        return ()
    texts = re.split(r"\r\n|\r|\n", syntax.text)
    return tuple((*_cell_and_line(line, notebook), texts[line - 1]) for line in shown)


def _cell_and_line(line: int, notebook: Notebook | None) -> tuple[int, int]:
    return notebook.cell_of(line) if notebook is not None else (0, line)
