"""From the tree of a file to what is known at each call that a Transform cares for."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType

from codemod.evidence.shown import UNSEEN, Seen
from codemod.layout.interpreter import FileInterpreter
from codemod.layout.op_call import Form, Observation, OpCall
from codemod.layout.program import COPIES, DIM_HINTS, Program, Routine, dotted, survey
from codemod.layout.project import Project
from codemod.layout.schedule import run_all
from codemod.layout.unshared import is_unshared
from codemod.layout.whole_file import tell
from codemod.syntax.parse import Syntax

NOTHING: Mapping[ast.Call, Seen] = MappingProxyType({})


def analyse(syntax: Syntax, project: Project, seen: Mapping[ast.Call, Seen] = NOTHING) -> tuple[OpCall, ...]:
    """Every site of the file, in order of position."""
    program = survey(syntax.tree, syntax.source.path)
    if not program.sites and not any("export" in routine.called for routine in program.routines):  # with bare hints
        program.dissolve()
        return ()
    interpreter = FileInterpreter(program, project)
    run_all(program, interpreter)
    calls = [
        (found, routine)
        for routine in program.routines
        for call in routine.sites
        if (found := _op_call(call, routine, program, interpreter, syntax, seen.get(call, UNSEEN))) is not None
    ]
    told = tell(calls, program, syntax)
    interpreter.dissolve()
    return tuple(
        sorted(
            (
                call
                for call in told
                if call.operation not in COPIES or call.writes or call.hard_coded or call.seen.shown
            ),
            key=lambda call: (call.span.line, call.span.column),
        )
    )


def _op_call(
    call: ast.Call, routine: Routine, program: Program, interpreter: FileInterpreter, syntax: Syntax, seen: Seen
) -> OpCall | None:
    notebook = interpreter.notebook
    observations: tuple[Observation, ...] = tuple(notebook.observations.get(id(call), {}))
    operation, form = _operation(call, program)
    if operation in COPIES and operation != "reshape" and not notebook.writes.get(id(call)):
        return None
    writes, keeps = (tuple(noted.get(id(call), {})) for noted in (notebook.writes, notebook.keeps))
    return OpCall(
        path=syntax.source.path,
        operation=operation,
        form=form,
        span=syntax.span(call),
        node=call,
        observations=observations,
        writes=writes,
        keeps=keeps,
        is_unshared=bool(writes or keeps) and is_unshared(call, observations, routine.node),
        is_temporary=id(call) in program.temporaries,
        is_guarded=id(call) in program.guarded,
        function=routine.name,
        seen=seen,
    )


def _operation(call: ast.Call, program: Program) -> tuple[str, Form]:
    name = program.resolve(dotted(call.func))
    last = call.func.attr if isinstance(call.func, ast.Attribute) else name.rpartition(".")[2]
    if last in DIM_HINTS or last == "dims":
        last = "Dim"
    if name.startswith("torch.Tensor."):
        return last, Form.UNBOUND
    if name.startswith("torch.") or isinstance(call.func, ast.Name):
        return last, Form.FUNCTION
    return last, Form.METHOD
