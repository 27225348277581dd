"""Sizes of a view's target that are written as numbers: which of them stand for a batch that varies, and why.

Without a `-1` of the target's own, a call that was accepted means the same with `-1` in the literal's place, whatever
the literal is: the number of elements decides it.  What `-1` takes away is the refusal of other numbers of elements.
So it needs something in the file that shows the batch to vary, and no call whose elements contradict that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod

from codemod.finding import Reason
from codemod.layout.attributes import as_tensor
from codemod.layout.layout import Layout
from codemod.layout.op_call import Form, HardCoded, Observation, OpCall
from codemod.layout.program import Program, Routine, dotted, numbers_by_default
from codemod.layout.record import record
from codemod.layout.size import INFER, Atom, AtomKind, Size, product
from codemod.layout.value import Number, Tensor, Unknown
from codemod.layout.varying import Loader, Varying, constant_key, constant_of, local_bindings


@record(frozen=True, slots=True)
class Claim:
    """A hard-coded size before the calls of the file are heard together."""

    found: HardCoded
    key: str
    """Equal for mentions of the same constant; empty for a number."""
    is_kept: bool
    """The receiver's own dim is what this size can only ever have been."""
    first: Size | None = None
    """That dim of the receiver."""
    is_input: bool = False
    """It is the first dim of an argument, or of what a loop takes from an iterable."""


def claim(call: OpCall, routine: Routine, program: Program, varying: Varying, tree: ast.Module) -> Claim | None:
    """The first size of the call's target, where it is hard-coded; or another that names a loader's batch."""
    if not call.observations or any(receiver_layout(observation) is None for observation in call.observations):
        return None
    if not varying.loaders and not varying.dims and not any(o.callers for o in call.observations):
        return None
    items = target_items(call.node) if call.form is Form.METHOD else []
    for position, item in enumerate(items):
        if not is_fixed(call, position, item, routine):
            continue
        key = constant_key(item, routine, program)
        is_named = bool(key) and any(loader.key == key for loader in varying.loaders)
        if position == 0 or is_named:
            value = constant_of(item, routine, program)
            found = claim_at(call, position, item, key, routine)
            return _with_evidence(found, call, value, varying, tree)
    return None


def target_items(call: ast.Call) -> list[ast.expr]:
    """The sizes as written, up to a star; empty where they are not written one by one."""
    given = list(call.args) or [k.value for k in call.keywords if k.arg in ("size", "shape")]
    if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List):
        given = list(given[0].elts)
    star = next((i for i, item in enumerate(given) if isinstance(item, ast.Starred)), None)
    return given[:star]


def claim_at(call: OpCall, position: int, item: ast.expr, key: str, routine: Routine) -> Claim:
    """What is known of one size of the target, without anything that speaks for or against it."""
    alone = next((o for o in call.observations if not o.callers), None)
    items = target_items(call.node)
    inferred = next((i for i, other in enumerate(items) if is_minus_one(other)), None)
    found = HardCoded(position, ast.unparse(item), inferred_at=inferred)
    if alone is None or alone.target is None or position >= len(alone.target.items):
        return Claim(found, key, is_kept=False)
    first = first_dim(alone, position)
    if inferred is not None and (_is_regrouped(call, found) or _may_group(alone, first, position, inferred)):
        return Claim(found, key, is_kept=False, first=first)
    if inferred is not None:
        found = replace(found, inferred_text=_inferred_text(alone, first, position, inferred))
    is_input = first is not None and _is_input(first, routine)
    if first is not None and (is_input or (first.constant is None and first == size_at(alone, position))):
        found = replace(found, batch_text=_batch_text(call, alone, first, position))
    return Claim(found, key, _is_kept(alone, position, first), first, is_input)


def is_fixed(call: OpCall, position: int, item: ast.expr, routine: Routine) -> bool:
    """A number, or a name bound to one; not a size that was read from a shape."""
    if isinstance(item, ast.Constant):
        return type(item.value) is int and item.value > 0
    if not isinstance(item, ast.Name | ast.Attribute):
        return False
    if isinstance(item, ast.Name) and item.id in numbers_by_default(routine.node):
        return item.id not in local_bindings(routine)
    seen = [size_at(o, position) for o in call.observations if o.target is not None]
    return all(size is not None and not _is_computed(size) for size in seen)


def size_at(observation: Observation, position: int) -> Size | None:
    items = observation.target.items if observation.target is not None else ()
    item = items[position] if position < len(items) else None
    return item if isinstance(item, Size) else None


def _is_computed(size: Size) -> bool:
    return any(atom.kind is AtomKind.DIM or "#" in atom for atom in size.atoms)


def _is_input(first: Size, routine: Routine) -> bool:
    """The first dim of an argument, or of what a loop takes from an iterable."""
    atom = next(iter(first.atoms), None)
    if atom is None or first != Size.of(atom) or atom.kind is not AtomKind.DIM or atom.dim:
        return False
    owner = atom.owner or ""
    return owner.rpartition(".")[0] == routine.name or "[]" in owner


def _is_regrouped(call: OpCall, found: HardCoded) -> bool:
    """Was a call accepted in which the literal is not the receiver's own dim?  Beside a `-1` it groups elements."""
    recorded = call.seen.recorded.examples if call.seen.recorded is not None else ()
    at = slice(found.position, found.position + 1)
    accepted = [one for one in recorded if one.outcome in ("view", "copy") and one.target is not None]
    if any(one.sizes[at] != one.target[at] for one in accepted if one.target is not None):
        return True
    return any(one.first != one.literal and one.is_accepted_beside_minus_one for one in _seen(found, call))


def _may_group(observation: Observation, first: Size | None, position: int, inferred: int) -> bool:
    """May the literal and the `-1` behind it be one dim of the receiver, `(n * t, d)` as `view(n, -1, d)`?"""
    assert observation.target is not None
    items = observation.target.items
    if inferred != position + 1 or inferred == len(items) - 1:
        return False
    layout = receiver_layout(observation)
    others = [item for i, item in enumerate(items) if i not in (position, inferred) and isinstance(item, Size)]
    if layout is None or layout.rank is None or first is None or len(others) != len(items) - 2:
        return True
    return rounded(layout.numel) == rounded(first * product(others))


def _inferred_text(observation: Observation, first: Size | None, position: int, inferred: int) -> str:
    """A name for what the target's own `-1` stands for where the batch is the receiver's dim."""
    layout = receiver_layout(observation)
    assert observation.target is not None
    others = [
        item
        for i, item in enumerate(observation.target.items)
        if i not in (position, inferred) and isinstance(item, Size)
    ]
    if layout is None or layout.rank is None or first is None:
        return ""
    if len(others) != len(observation.target.items) - 2 or layout.numel.terms is None:
        return ""
    known = first * product(others)
    named = (
        name for name, size in observation.names if "." not in name and rounded(size * known) == rounded(layout.numel)
    )
    return next(named, "")


def _batch_text(call: OpCall, observation: Observation, first: Size, position: int) -> str:
    receiver = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
    if receiver is not None and dotted(receiver):
        return f"{dotted(receiver)}.shape[{position}]"
    return next((name for name, size in observation.names if size == first), "")


def is_minus_one(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and ast.unparse(node) == "-1"


def receiver_layout(observation: Observation) -> Layout | None:
    receiver = observation.receiver
    if not isinstance(receiver, Tensor | Unknown | Number):
        return None
    return as_tensor(receiver).default


def first_dim(observation: Observation, position: int) -> Size | None:
    """Size of the receiver's dim at `position`, where the dims before it are those of the target."""
    layout = receiver_layout(observation)
    assert observation.target is not None
    if layout is None:
        return None
    layout = layout.exposed(position + 1)
    i = layout.index(position)
    if i is None or any(layout.dims[j].size != observation.target.items[j] for j in range(position)):
        return None
    return layout.dims[i].size


def _is_kept(observation: Observation, position: int, first: Size | None) -> bool:
    """Do the elements without the other sizes of the target leave just the receiver's own dim?"""
    layout = receiver_layout(observation)
    assert observation.target is not None
    items = observation.target.items
    others = [item for i, item in enumerate(items) if i != position and isinstance(item, Size)]
    if layout is None or layout.rank is None or first is None or len(others) != len(items) - 1 or INFER in others:
        return False
    return rounded(layout.numel) == rounded(first * product(others))


def rounded(size: Size) -> Size:
    """The size with `(a // b) * b` taken as `a`, as code that splits a dim takes it."""
    if size.terms is None:
        return size
    total = Size.of(0)
    for monomial, coefficient in size.terms:
        total = total + product([Size.of(coefficient), *_undivided([Size.of(atom) for atom in monomial])])
    return total


def _undivided(factors: list[Size]) -> list[Size]:
    for quotient in factors:
        text = str(quotient)
        if not text.startswith("("):
            continue
        for divisor in factors:
            if text.endswith(f")//({divisor})"):
                rest = list(factors)
                rest.remove(quotient)
                rest.remove(divisor)
                return [*rest, Size.of(Atom(text.removesuffix(f")//({divisor})")[1:]))]
    return factors


def _with_evidence(claim: Claim, call: OpCall, value: int | None, varying: Varying, tree: ast.Module) -> Claim:
    varies, contradicts = _heard(claim, call, tree)
    varies += tuple(_of_loaders(claim, value, varying.loaders))
    varies += tuple(_of_exports(claim, value, varying))
    return replace(claim, found=replace(claim.found, varies=varies, contradicts=contradicts))


@record(frozen=True, slots=True)
class _Seen:
    """One call of the file, all of whose sizes are numbers."""

    numel: int
    literal: int
    rest: int
    first: int | None
    lines: tuple[int, ...]
    """Of the calls that lead to it, outermost first."""
    target: str

    @property
    def fits(self) -> bool:
        return self.numel == self.literal * self.rest

    @property
    def is_accepted_beside_minus_one(self) -> bool:
        return self.first is not None and self.numel % (self.literal * self.rest) == 0

    @property
    def batch(self) -> int | None:
        """The size that would fit in the literal's place."""
        return self.numel // self.rest if self.numel % self.rest == 0 else None


def _seen(found: HardCoded, call: OpCall) -> Iterator[_Seen]:
    position = found.position
    for observation in call.observations:
        layout = receiver_layout(observation)
        if not observation.callers or layout is None or observation.target is None:
            continue
        numbers = [item.constant if isinstance(item, Size) else None for item in observation.target.items]
        numel = layout.numel.constant
        literal = numbers[position] if position < len(numbers) else None
        rest = [n for i, n in enumerate(numbers) if i != position and n != -1]
        if not numel or not literal or None in rest or 0 in rest:
            continue
        first = layout.dims[0].size.constant if layout.rank else None
        target = ", ".join(map(str, numbers))
        lines = tuple(caller.line for caller in observation.callers if caller.line)
        yield _Seen(numel, literal, prod(n or 0 for n in rest), first, lines, target)


def _heard(claim: Claim, call: OpCall, tree: ast.Module) -> tuple[tuple[Reason, ...], tuple[Reason, ...]]:
    """What the calls of the file say: that the batch varies, or that their elements do not fit at all."""
    seen = tuple(_seen(claim.found, call))
    if all(one.fits for one in seen):
        return (), ()
    ignored = expected_failures(tree)
    seen = tuple(one for one in seen if ignored.isdisjoint(one.lines))
    if claim.found.inferred_at is not None:
        return _heard_beside_minus_one(seen), ()
    misfits = [one for one in seen if not one.fits]
    is_kept = claim.is_kept or all(one.first is not None and one.first == one.batch for one in seen)
    if not misfits or all(one.batch is not None and (is_kept or one.batch < one.literal) for one in misfits):
        return _distinct(_passed(one, one.batch) for one in misfits), ()
    text = "{} elements do not fit ({}), and another batch would not explain it"
    return (), _distinct(Reason(text.format(one.numel, one.target), line=one.lines[-1]) for one in misfits)


def _distinct(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    return tuple(dict.fromkeys(reasons))[:2]


def _heard_beside_minus_one(seen: Sequence[_Seen]) -> tuple[Reason, ...]:
    """The literal is the first dim in one call, and another call is refused that has another first dim."""
    if not any(one.first == one.literal for one in seen):
        return ()
    refused = [one for one in seen if one.first != one.literal and one.numel % (one.literal * one.rest)]
    return _distinct(_passed(one, one.first) for one in refused)


def _passed(seen: _Seen, batch: int | None) -> Reason:
    return Reason(f"a call in this file passes a batch of {batch}, not {seen.literal}", line=seen.lines[-1])


def _of_loaders(claim: Claim, value: int | None, loaders: Sequence[Loader]) -> Iterator[Reason]:
    found = claim.found
    for loader in loaders:
        is_same = bool(claim.key) and loader.key == claim.key
        is_alike = value is not None and value > 1 and loader.size == value and found.position == 0
        if found.inferred_at is not None and not (found.batch_text or is_same):
            continue
        if is_same or (is_alike and claim.is_input and (not claim.key or "batch" in claim.key.lower())):
            yield Reason(f"{loader.text}, and the last one may be shorter", line=loader.line)


def _of_exports(claim: Claim, value: int | None, varying: Varying) -> Iterator[Reason]:
    atom = next(iter(claim.first.atoms), None) if claim.first is not None else None
    for dynamic in varying.dims:
        if atom is None or atom.owner != dynamic.owner or atom.dim != dynamic.dim:
            continue
        if dynamic.sample is None or dynamic.sample == value:
            name = dynamic.owner.rpartition(".")[2]
            yield Reason(f"dim {dynamic.dim} of `{name}` is exported as one that varies", line=dynamic.line)


def hear_together(claims: Sequence[Claim | None]) -> list[HardCoded | None]:
    """What shows one mention of a constant to vary shows it for the others."""
    shown: dict[str, tuple[Reason, ...]] = {}
    for claim in claims:
        if claim is not None and claim.key and claim.found.varies and not claim.found.contradicts:
            shown.setdefault(claim.key, claim.found.varies)
    return [_told(claim, shown.get(claim.key, ())) if claim is not None else None for claim in claims]


def _told(claim: Claim, shown: tuple[Reason, ...]) -> HardCoded | None:
    found = claim.found if claim.found.varies or claim.found.contradicts else replace(claim.found, varies=shown)
    return found if found.varies or found.contradicts else None


def expected_failures(tree: ast.Module) -> frozenset[int]:
    """Lines in a `try` with handlers or in `with pytest.raises(...)`: what fails there says nothing."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        is_expected = (isinstance(node, ast.Try) and bool(node.handlers)) or (
            isinstance(node, ast.With) and any("aises" in ast.unparse(item.context_expr) for item in node.items)
        )
        if is_expected and isinstance(node, ast.Try | ast.With):
            for statement in node.body:
                lines.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    return frozenset(lines)
