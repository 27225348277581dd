"""What only the whole file tells of its calls: loaders, exports, and calls that bring other sizes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from codemod.finding import Reason
from codemod.layout.batch import BOUND_BY_DIM, batch_of, operands
from codemod.layout.compiled import survey_compiled
from codemod.layout.hard_coded import claim, hear_together
from codemod.layout.op_call import BatchDim, Form, Observation, OpCall
from codemod.layout.program import Program, Routine
from codemod.layout.seen_sizes import misread, shown_size
from codemod.layout.sites import TORCH_DIM
from codemod.layout.size import Size
from codemod.layout.value import Number
from codemod.layout.varying import Varying, survey_varying
from codemod.syntax.parse import Syntax

Varied = Set[tuple[str | None, int | None]]
"""Dims that exports let vary: (owner, dim)."""
_SIZED = frozenset({"view", "reshape"})
_COMPILED = frozenset({"matrix_exp", "view"})


def tell(calls: Sequence[tuple[OpCall, Routine]], program: Program, syntax: Syntax) -> list[OpCall]:
    """The calls with their hard-coded sizes, batches and dims; and the hints of exports, which are no calls."""
    tree = syntax.tree
    varying = survey_varying(program)
    if any(seen.receiver == TORCH_DIM for call, _ in calls for seen in call.observations):
        varying = replace(varying, has_dim=True)
    claims = [
        claim(call, routine, program, varying, tree) if call.operation in _SIZED else None for call, routine in calls
    ]
    compiled = survey_compiled(program, tree) if any(call.operation in _COMPILED for call, _ in calls) else {}
    told = []
    for (call, routine), hard_coded in zip(calls, hear_together(claims), strict=True):
        if call.operation in _SIZED and not (hard_coded is not None and hard_coded.contradicts):
            hard_coded = shown_size(call, routine) or hard_coded or misread(call)
        if hard_coded is not None:
            call = replace(call, hard_coded=hard_coded)
        if call.operation == "bmm":
            batch = batch_of(call.node, call.observations, routine, program, varying)
            if batch.bound_by == (BOUND_BY_DIM,):
                batch = replace(batch, exported=tuple(_exported_dims(call, [other for other, _ in calls], varying)))
            call = replace(call, batch=batch)
        if call.operation in _COMPILED:
            call = replace(call, compiled=compiled.get(routine.name, ()))
        if call.operation == "Dim":
            call = _told_of_dim(call, [other for other, _ in calls], varying)
        told.append(call)
    others = [other for other, _ in calls]
    return [*told, *(_told_of_dim(hint, others, varying) for hint in _hints(varying, syntax))]


def _told_of_dim(dim: OpCall, calls: Sequence[OpCall], varying: Varying) -> OpCall:
    """With the bmm calls whose batch it lets vary, and with the examples that it cannot vary from."""
    exports = [one for one in varying.dims if one.made_by in (id(dim.node), id(dim.node.func))]
    varied = {(one.owner, one.dim) for one in exports}
    users = [call for call in calls if call.operation == "bmm" and _takes(call, varied)]
    recorded = [
        call.seen.recorded.batch
        for call in users
        if call.seen.recorded is not None and _takes(call, varied, whole=True)
    ]
    examples = {(one.sample, one.line) for one in exports if one.sample in (0, 1)}
    return replace(
        dim,
        batches=tuple(_met(call, varied) for call in users),
        share=max((_share(call, varied) for call in users), default=1),
        largest=max((batch[1] for batch in recorded if batch is not None), default=None),
        fixing=tuple(
            Reason(f"the example input has size {size} there: export takes that for a constant", line=line)
            for size, line in sorted(examples)
        ),
        sample=max((one.sample for one in exports if one.sample is not None), default=None),
        is_batch=all(one.dim == 0 for one in exports) if exports else None,
        packages=tuple(Reason("packaged for AOTInductor here", line=line) for line in varying.packages),
    )


def _exported_dims(bmm: OpCall, calls: Sequence[OpCall], varying: Varying) -> Iterator[BatchDim]:
    """Those that the batch is, times constants at most."""
    for one in varying.dims:
        varied = {(one.owner, one.dim)}
        share = _share(bmm, varied)
        if bmm.observations and (share > 1 or _takes(bmm, varied, whole=True)):
            made = next((call for call in calls if call.operation == "Dim" and id(call.node) == one.made_by), None)
            yield BatchDim(one.line, share, _most(made) if made is not None else None)


def _most(dim: OpCall) -> int | None:
    """The `max` that it is called with, where that is a number."""
    given = [dict(seen.keywords).get("max") for seen in dim.observations]
    return next((value.size.constant for value in given if isinstance(value, Number)), None)


def _hints(varying: Varying, syntax: Syntax) -> list[OpCall]:
    """The bare `Dim.DYNAMIC` and `Dim.AUTO` of exports, as calls without arguments."""
    hints = {id(one.hint): (one.hint, one.function) for one in varying.dims if one.hint is not None}
    return [_hint(attribute, function, syntax) for attribute, function in hints.values()]


def _hint(attribute: ast.Attribute, function: str, syntax: Syntax) -> OpCall:
    node = ast.copy_location(ast.Call(attribute, [], []), attribute)
    observation = Observation(TORCH_DIM, (), ())
    return OpCall(syntax.source.path, "Dim", Form.FUNCTION, syntax.span(node), node, (observation,), function=function)


def _met(bmm: OpCall, varied: Varied) -> Reason:
    others = "" if _takes(bmm, varied, whole=True) or _share(bmm, varied) > 1 else ", times other sizes"
    return Reason(f"its batch goes into a bmm here{others}", line=bmm.span.line)


def _share(bmm: OpCall, varied: Varied) -> int:
    """How many matrices each element of the dim is, where that is a number; else 1, of which there are more."""
    firsts = {tensor.default.dims[0].size for seen in bmm.observations for tensor in operands(seen)}
    products = [(monomial, number) for size in firsts for monomial, number in size.terms or ()]
    alone = (n for monomial, n in products if len(monomial) == 1 and (monomial[0].owner, monomial[0].dim) in varied)
    return max(alone, default=1)


def _takes(bmm: OpCall, varied: Varied, whole: bool = False) -> bool:
    """Is one of these dims in the batch of some operand; with `whole` that very size, whichever way it is reached?"""

    def is_met(observation: Observation) -> bool:
        firsts = [tensor.default.dims[0].size for tensor in operands(observation)]
        found = [(size, atom) for size in firsts for atom in size.atoms if (atom.owner, atom.dim) in varied]
        return any(not whole or size == Size.of(atom) for size, atom in found)

    return (all if whole else any)(map(is_met, bmm.observations))
