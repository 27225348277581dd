"""The edits of one file: findings and their calls in, the new text out."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from codemod.edit.fstrings import formatted_calls, keeps_quotes
from codemod.edit.imports import Import, bind, insertion
from codemod.edit.rewrite_call import EditError, Refused, rewrite_call
from codemod.edit.splice import Piece, splice
from codemod.edit.template import cut, free_prefix
from codemod.edit.unchanged import is_unchanged_outside
from codemod.finding import Action, Finding, Reason, Rewrite
from codemod.syntax.parse import Syntax, parse_module
from codemod.transform import Transform

Decided = Sequence[tuple[Finding, ast.Call]]


@dataclass(frozen=True, slots=True)
class Edited:
    """A file after its edits."""

    text: str
    findings: tuple[Finding, ...]
    """All that were decided, in order; those rewritten have a `replacement`, those that could not be are reported."""
    needs_helper: bool


@dataclass(frozen=True, slots=True)
class _Target:
    """One call with everything that is to happen to it."""

    call: ast.Call
    start: int
    end: int
    rewrites: tuple[Rewrite, ...]


@dataclass(frozen=True, slots=True)
class _Rendered:
    """What became of each target (by the id of its call), and the edits of the outermost ones, in order."""

    outcomes: Mapping[int, str | Refused]
    pieces: tuple[Piece, ...]


def apply(
    syntax: Syntax, decided: Decided, transforms: Mapping[str, Transform], helper_module: str = "_chunked_bmm"
) -> Edited:
    """The text of the file with every finding whose action is `rewrite` carried out.

    `helper_module` is where rewritten code imports the project's helper from (see `helper_file`).
    Raises EditError when the result is not the old program but for the edited calls.
    """
    targets = _targets(syntax, decided)
    if not targets:
        return Edited(syntax.text, tuple(finding for finding, _ in decided), needs_helper=False)
    newline = _newline(syntax.text)
    imports = _imports(syntax.tree, targets, transforms, helper_module)
    rendered = _render(syntax, targets, transforms, imports, newline)
    done = [target for target in targets if isinstance(rendered.outcomes[id(target.call)], str)]
    needed = [imports[rewrite] for target in done for rewrite in target.rewrites if rewrite in imports]
    text = _new_text(syntax, rendered.pieces, needed, newline)
    _prove(syntax, text, done, needed)
    findings = tuple(_after_edit(finding, rendered.outcomes.get(id(call))) for finding, call in decided)
    return Edited(text, findings, any(needed_import.module == helper_module for needed_import in needed))


def _targets(syntax: Syntax, decided: Decided) -> list[_Target]:
    """The calls to rewrite, an inner call always after those around it."""
    rewrites: dict[int, tuple[Rewrite, ...]] = {}
    calls: dict[int, ast.Call] = {}
    for finding, call in decided:
        if finding.action is Action.REWRITE and finding.rewrites:
            calls[id(call)] = call
            rewrites[id(call)] = rewrites.get(id(call), ()) + finding.rewrites
    targets = [_Target(call, *syntax.places.range_of(call), rewrites[key]) for key, call in calls.items()]
    return sorted(targets, key=lambda target: (target.start, -target.end))


def _imports(
    tree: ast.Module, targets: Sequence[_Target], transforms: Mapping[str, Transform], helper_module: str
) -> dict[Rewrite, Import]:
    """The import that each rewrite needs, for those that need one."""
    bound: dict[tuple[str, str], Import] = {}
    imports: dict[Rewrite, Import] = {}
    for rewrite in dict.fromkeys(rewrite for target in targets for rewrite in target.rewrites):
        if wanted := transforms[rewrite.transform].imports(rewrite):
            if wanted not in bound:
                bound[wanted] = bind(tree, wanted[0] or helper_module, wanted[1])
            imports[rewrite] = bound[wanted]
    return imports


def _render(
    syntax: Syntax,
    targets: Sequence[_Target],
    transforms: Mapping[str, Transform],
    imports: Mapping[Rewrite, Import],
    newline: str,
) -> _Rendered:
    """Each call with its nested ones already rendered, innermost first, so that no text is parsed twice."""
    formatted = formatted_calls(syntax)
    prefix = free_prefix(syntax.text)
    outcomes: dict[int, str | Refused] = {}
    pieces: list[Piece] = []  # not yet inside another; the leftmost is last
    for target in reversed(targets):
        doubt = formatted.get(id(target.call))
        nested = _take_nested(pieces, target)
        outcome: str | Refused
        if doubt:
            outcome = Refused(doubt)
        else:
            template = cut(syntax.places, target.call, nested, prefix)
            outcome = rewrite_call(template, target.rewrites, transforms, imports, newline)
        if isinstance(outcome, str) and id(target.call) in formatted:
            outcome = _inside_fstring(syntax.segment(target.call), outcome)
        outcomes[id(target.call)] = outcome
        pieces += reversed(nested) if isinstance(outcome, Refused) else [Piece(target.start, target.end, outcome)]
    return _Rendered(outcomes, tuple(reversed(pieces)))


def _take_nested(pieces: list[Piece], target: _Target) -> list[Piece]:
    """Takes from `pieces` those inside of the target, in order."""
    nested = []
    while pieces and pieces[-1].start < target.end:
        nested.append(pieces.pop())
    return nested


def _inside_fstring(before: str, after: str) -> str | Refused:
    return after if keeps_quotes(before, after) else Refused("the new text does not fit into the f-string")


def _new_text(syntax: Syntax, pieces: Sequence[Piece], needed: Sequence[Import], newline: str) -> str:
    first = pieces[0].start if pieces else 0
    header = insertion(syntax, needed, first, newline)
    in_order = sorted((header, *pieces), key=lambda piece: piece.start) if header else pieces
    return splice(syntax.text, 0, len(syntax.text), in_order)


def _prove(syntax: Syntax, text: str, done: Sequence[_Target], needed: Sequence[Import]) -> None:
    try:
        tree = parse_module(text)
    except (SyntaxError, ValueError) as error:
        raise EditError(f"{syntax.source.path}: the edited text does not parse: {error}") from error
    edited = frozenset(id(node) for target in done for node in (target.call, target.call.func))
    added = {needed_import.statement for needed_import in needed if needed_import.is_new}
    if not is_unchanged_outside(syntax.tree, tree, edited, added):
        raise EditError(f"{syntax.source.path}: an edit would change more than its calls")


def _after_edit(finding: Finding, outcome: str | Refused | None) -> Finding:
    if finding.action is not Action.REWRITE or outcome is None:
        return finding
    if isinstance(outcome, str):
        return replace(finding, replacement=outcome)
    reason = Reason(f"not rewritten: {outcome.why}", finding.path, finding.span.line)
    return replace(finding, action=Action.REPORT, reasons=(*finding.reasons, reason))


def _newline(text: str) -> str:
    """The line end that the file uses first."""
    match = re.search(r"\r\n|\r|\n", text)
    return match[0] if match else "\n"
