"""Sizes of a target that runs contradict: which of them is the one to mend, and whether `-1` would mend it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod
from operator import mul

from codemod.evidence.failure import Kind
from codemod.evidence.failure import Sizes as Printed
from codemod.evidence.shown import Shown
from codemod.finding import Reason
from codemod.layout.hard_coded import (
    Claim,
    claim_at,
    first_dim,
    is_fixed,
    is_minus_one,
    receiver_layout,
    size_at,
    target_items,
)
from codemod.layout.op_call import Form, HardCoded, Observation, OpCall
from codemod.layout.program import Routine, dotted
from codemod.layout.record import record
from codemod.layout.size import Size

_ACCEPTED = frozenset({"view", "copy"})


def shown_size(call: OpCall, routine: Routine) -> HardCoded | None:
    """The size that a failure of this call shows to be fixed wrongly; None where none is shown, or none is to blame.

    It is the first that is written into the program, behind sizes that are the tensor's own.  A smaller one that
    holds all elements is another batch, or another shard of that dim.  Anything else shows that the elements are not
    those that were meant, and `-1` would hide it.
    """
    shown = call.seen.of(Kind.SHAPE_INVALID, Kind.SPECIALIZED)
    if not shown or not call.observations or call.form is not Form.METHOD:
        return None
    claim = _blamed(call, routine)
    if claim is None:
        return None
    heard = [(one, verdict) for one in shown if (verdict := _fits(one, claim, call)) is not None]
    wrong = tuple(one.reason for one, is_another_batch in heard if not is_another_batch)
    if wrong or (heard and _is_never_accepted(call)):
        return replace(claim.found, contradicts=wrong or tuple(one.reason for one, _ in heard))
    return replace(claim.found, varies=tuple(one.reason for one, _ in heard)) if heard else None


def _blamed(call: OpCall, routine: Routine) -> Claim | None:
    alone = next((o for o in call.observations if not o.callers and o.target is not None), None)
    for position, item in enumerate(target_items(call.node)):
        if is_fixed(call, position, item, routine):
            is_first = position == 0 or (alone is not None and first_dim(alone, position) is not None)
            return claim_at(call, position, item, "", routine) if is_first else None
    return None


def _fits(shown: Shown, claim: Claim, call: OpCall) -> bool | None:
    """Would another batch (or shard) explain what was seen?  None where that cannot be told."""
    if shown.kind is Kind.SPECIALIZED:
        literals = {size_at(o, claim.found.position) for o in call.observations}
        is_meant = any(Size.of(number) in literals for _, number in shown.constants) and claim.found.position == 0
        return True if is_meant and (claim.found.inferred_at is None or claim.found.batch_text) else None
    target, elements = shown.target, shown.elements
    if target is None or elements is None or len(target) <= claim.found.position:
        return None
    literal = target[claim.found.position]
    others = [size for i, size in enumerate(target) if i != claim.found.position]
    if literal is None or None in others:
        return None
    if -1 in others:
        is_known = claim.found.position == 0 and claim.found.batch_text and _is_batch(claim, call)
        return True if is_known else None
    rest = prod(size or 0 for size in others)
    if not rest or elements % rest:
        return False
    size = elements // rest
    return claim.is_kept or (0 < size < literal and _begins_with(shown.sizes, size, others[claim.found.position :]))


def _is_batch(claim: Claim, call: OpCall) -> bool:
    """Is the number beside a `-1` a batch, and no number of groups: `view(3, -1)` of a vector?

    By its name, by a call that brought just that many, or since the dims of images and sequences are no groups.
    """
    if "batch" in claim.found.text.lower() or claim.found.text in ("bs", "BS", "bsz"):
        return True
    recorded = call.seen.recorded.examples if call.seen.recorded is not None else ()
    if any(one.target is not None and one.sizes[:1] == one.target[:1] for one in recorded if one.outcome in _ACCEPTED):
        return True
    layouts = [layout for one in call.observations if (layout := receiver_layout(one)) is not None]
    return any(layout.rank is not None and layout.rank > 2 for layout in layouts)


def _begins_with(sizes: Printed | None, batch: int, behind: Sequence[int | None]) -> bool:
    """Has the tensor a dim that is this batch, alone or folded with what the target puts behind it?"""
    if sizes is None or None in sizes:
        return True
    return bool({*accumulate((size or 0 for size in behind), mul, initial=batch)} & {*sizes})


def _is_never_accepted(call: OpCall) -> bool:
    """Was every one of several recorded calls refused?  Then nothing shows the number to be right for any input."""
    recorded = call.seen.recorded
    if recorded is None or recorded.calls < 2:
        return False
    return not any(example.outcome in _ACCEPTED for example in recorded.examples)


@record(frozen=True, slots=True)
class _Meeting:
    """One accepted call: the tensor's sizes, and those that the target came to."""

    sizes: tuple[int, ...]
    target: tuple[int, ...]


def misread(call: OpCall) -> HardCoded | None:
    """A `-1` that stands for the tensor's own dim in one call, and regroups the elements in another.

    `q.view(b, -1, heads, d)`: (2, 6, 32) keeps its 6 rows, and (2, 6, 16), with half of the heads, comes out with 3.
    Where a run shows that, the `-1` moves to the heads; the source alone is not enough for it.
    """
    items = target_items(call.node) if call.form is Form.METHOD else []
    at = next((i for i, item in enumerate(items) if is_minus_one(item)), None)
    if at is None or at == len(items) - 1:
        return None
    recorded = [meeting for meeting in _recorded(call) if meeting.sizes[:at] == meeting.target[:at]]
    seen = recorded + [meeting for o in call.observations if at and (meeting := _called(o, at)) is not None]
    ranks = {len(one.sizes) for one in seen if prod(one.sizes[at + 1 :]) == prod(one.target[at + 1 :])}
    for rank in sorted(ranks):
        alike = [one for one in seen if len(one.sizes) == rank]
        behind = [_behind(one, at) for one in alike]
        if set.intersection(*behind):
            continue
        regrouped = [one for one, dims in zip(alike, behind, strict=True) if rank - at - 1 not in dims]
        if regrouped:
            return _told(call, items, at, regrouped, is_recorded=regrouped[0] in recorded)
    return None


def _told(
    call: OpCall, items: Sequence[ast.expr], at: int, regrouped: Sequence[_Meeting], *, is_recorded: bool
) -> HardCoded:
    where = "one recorded call" if is_recorded else "one call of this file"
    sizes = ", ".join(map(str, regrouped[0].sizes))
    text = f"in {where} `-1` is dim {at} of the tensor, but another brings sizes ({sizes}) that regroup"
    reasons = (Reason(text, line=call.span.line),)
    receiver = dotted(call.node.func.value) if isinstance(call.node.func, ast.Attribute) else ""
    is_shard = at + 1 < len(items) - 1 and all(_is_shard(one, at) for one in regrouped)
    if at and receiver and is_shard and (is_recorded or call.seen.shown):
        found = HardCoded(at + 1, ast.unparse(items[at + 1]), varies=reasons)
        return replace(found, inferred_at=at, inferred_text=f"{receiver}.size({at})", is_moved=True)
    return HardCoded(at, "-1", contradicts=reasons)


def _is_shard(one: _Meeting, at: int) -> bool:
    """Are the elements behind the dim some of the next size of the target, times all that is behind that?"""
    own, rest = prod(one.sizes[at + 1 :]), prod(one.target[at + 2 :])
    return bool(rest) and own % rest == 0 and 0 < own // rest < one.target[at + 1]


def _behind(one: _Meeting, at: int) -> set[int]:
    """How many of the tensor's last dims hold the elements that the target has behind its `-1`."""
    wanted = prod(one.target[at + 1 :])
    return {count for count in range(len(one.sizes) + 1) if prod(one.sizes[len(one.sizes) - count :]) == wanted}


def _recorded(call: OpCall) -> Iterator[_Meeting]:
    examples = call.seen.recorded.examples if call.seen.recorded is not None else ()
    for example in examples:
        if example.outcome in _ACCEPTED and example.target is not None:
            yield _Meeting(example.sizes, example.target)


def _called(observation: Observation, at: int) -> _Meeting | None:
    """A call of this file that is known in numbers; None where the dims before the `-1` are not kept."""
    layout = receiver_layout(observation)
    if not observation.callers or layout is None or layout.rank is None or observation.target is None:
        return None
    dims = [size.constant for size in layout.sizes]
    sizes = [item.constant if isinstance(item, Size) else None for item in observation.target.items]
    if None in dims or None in sizes or len(dims) <= at or dims[:at] != sizes[:at]:
        return None
    known = [size or 0 for size in sizes]
    known[at] = prod(dim or 0 for dim in dims) // max(prod(size for i, size in enumerate(known) if i != at), 1)
    return _Meeting(tuple(dim or 0 for dim in dims), tuple(known))
