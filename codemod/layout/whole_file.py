"""What only the whole file tells of its calls: loaders, exports, and calls that bring other sizes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from codemod.finding import Reason
from codemod.layout.batch import batch_of, operands
from codemod.layout.compiled import survey_compiled
from codemod.layout.hard_coded import claim, hear_together
from codemod.layout.op_call import OpCall
from codemod.layout.program import Program, Routine
from codemod.layout.seen_sizes import misread, shown_size
from codemod.layout.varying import Varying, survey_varying

_SIZED = frozenset({"view", "reshape"})
_COMPILED = frozenset({"matrix_exp", "view"})


def tell(calls: Sequence[tuple[OpCall, Routine]], program: Program, tree: ast.Module) -> list[OpCall]:
    """The calls with their hard-coded sizes, batches and dims."""
    varying = survey_varying(program)
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
            call = replace(call, batch=batch_of(call.node, call.observations, routine, program, varying))
        if call.operation in _COMPILED:
            call = replace(call, compiled=compiled.get(routine.name, ()))
        if call.operation == "Dim":
            call = replace(call, batches=_batches(call, [other for other, _ in calls], varying))
        told.append(call)
    return told


def _batches(dim: OpCall, calls: Sequence[OpCall], varying: Varying) -> tuple[Reason, ...]:
    """The bmm calls whose batch is a dim that this call of `Dim` lets vary."""
    exported = {(d.owner, d.dim) for d in varying.dims if d.made_by == id(dim.node)}
    return tuple(
        Reason("its batch goes into a bmm here", line=call.span.line)
        for call in calls
        if call.operation == "bmm"
        and any(
            (atom.owner, atom.dim) in exported
            for observation in call.observations
            for tensor in operands(observation)
            for atom in tensor.default.dims[0].size.atoms
        )
    )
