"""The evidence about a file, joined to its calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import prod

from codemod.evidence.candidates import candidates
from codemod.evidence.failure import Kind
from codemod.evidence.locate import find_site
from codemod.evidence.recorded import Example, Invalid, Recorded
from codemod.evidence.shown import UNSEEN, Evidence, Placed, Seen, Shown
from codemod.finding import Reason
from codemod.syntax.parse import Syntax


@dataclass(frozen=True, slots=True)
class Joined:
    """By call; and a sentence for whatever is about this file and could not be joined to a call."""

    seen: Mapping[ast.Call, Seen] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def join(syntax: Syntax, evidence: Evidence) -> Joined:
    """Failures of logs go to the call that `candidates` leaves alone, recorded calls to the one at their place."""
    seen: dict[ast.Call, Seen] = {}
    notes = []
    for placed in evidence.placed:
        found = candidates(syntax.tree, syntax.text, placed.frame, placed.failure)
        if len(found) == 1:
            seen[found[0]] = seen.get(found[0], UNSEEN) | Seen((_of_failure(placed),))
        else:
            notes.append(f"{placed.text}: {find_site(syntax.tree, syntax.text, placed.frame, placed.failure).why}")
    digest = sha256(syntax.source.raw).hexdigest() if evidence.recorded else ""
    fresh = [one for one in evidence.recorded if one.hash == digest]
    if len(fresh) < len(evidence.recorded):
        count = len(evidence.recorded) - len(fresh)
        what = "1 recorded call is" if count == 1 else f"{count} recorded calls are"
        notes.append(f"{what} of another version of this file and left out; record anew with `torch-codemod trace`")
    for call, recorded in _at_their_places(syntax, fresh):
        seen[call] = seen.get(call, UNSEEN) | Seen(tuple(_of_recorded(recorded)), recorded)
    return Joined(seen, tuple(dict.fromkeys(notes)))


def _of_failure(placed: Placed) -> Shown:
    told = placed.failure.details
    reason = Reason(placed.text)
    return Shown(placed.failure.kind, reason, False, told.target, told.elements, told.sizes, told.constants)


def _of_recorded(one: Recorded) -> Iterator[Shown]:
    if one.refused:
        refused = next((example for example in one.examples if example.outcome == "refused"), None)
        seen = f", with sizes {refused.sizes} and strides {refused.strides}" if refused is not None else ""
        text = f"recorded: refused in {one.refused} of {one.calls} calls{seen}"
        yield Shown(Kind.VIEW_REFUSED, Reason(text), True)
    for invalid in one.invalid:
        text = f"recorded: {invalid.elements} elements for sizes {invalid.target}"
        sizes = next((e.sizes for e in one.examples if e.target == invalid.target and _is_of(e, invalid)), None)
        yield Shown(Kind.SHAPE_INVALID, Reason(text), True, invalid.target, invalid.elements, sizes)


def _is_of(example: Example, invalid: Invalid) -> bool:
    return example.outcome == "invalid" and prod(example.sizes) == invalid.elements


def _at_their_places(syntax: Syntax, recorded: list[Recorded]) -> Iterator[tuple[ast.Call, Recorded]]:
    """By the end of the call, which no two share; where Python told only lines, by line and name."""
    if not recorded:
        return
    by_end: dict[tuple[int, int], ast.Call] = {}
    by_line: dict[tuple[int, str], list[ast.Call]] = {}
    for node in ast.walk(syntax.tree):
        if isinstance(node, ast.Call):
            by_end[syntax.places.position(syntax.places.range_of(node)[1])] = node
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            by_line.setdefault((syntax.span(node).line, name), []).append(node)
    for one in recorded:
        if one.end_line is not None and one.end_column is not None:
            call = by_end.get((one.end_line, one.end_column))
        else:
            named = by_line.get((one.line, one.operation), [])
            call = named[0] if len(named) == 1 else None
        if call is not None:
            yield call, one
