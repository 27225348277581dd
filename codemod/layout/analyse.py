"""From the tree of a file to what is known at each call that a Transform cares for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemod.layout.interpreter import FileInterpreter
from codemod.layout.op_call import Form, Observation, OpCall
from codemod.layout.program import COPIES, Program, Routine, dotted, survey
from codemod.layout.viewable import Legality
from codemod.layout.whole_file import tell
from codemod.syntax.parse import Syntax


CALLERS = 2
"""Callers of callers are asked this far: as deep as calls are followed."""


def analyse(syntax: Syntax) -> tuple[OpCall, ...]:
    """Every site of the file, in order of position."""
    program = survey(syntax.tree)
    if not program.sites:
        return ()
    interpreter = FileInterpreter(program)
    tops = [r for r in program.routines if r.parent is None or r.parent is program.routines[0]]
    for routine in tops:
        if _holds_site(routine):
            interpreter.run_routine(routine)
    _ask_callers(tops, interpreter)
    calls = [
        (found, routine)
        for routine in program.routines
        for call in routine.sites
        if (found := _op_call(call, routine, program, interpreter, syntax)) is not None
    ]
    told = tell(calls, program, syntax.tree)
    return tuple(
        sorted(
            (call for call in told if call.operation not in COPIES or call.writes or call.hard_coded),
            key=lambda call: (call.span.line, call.span.column),
        )
    )


def _ask_callers(tops: Sequence[Routine], interpreter: FileInterpreter) -> None:
    """Run what calls a routine that leaves something open, for what it passes."""
    relevant = {name for routine in tops if _is_open(routine, interpreter) for name in _names(routine)}
    callers: dict[int, Routine] = {}
    for _ in range(CALLERS):
        found = [r for r in tops if id(r) not in callers and not relevant.isdisjoint(_called(r)) and not r.name.endswith("__init__")]
        callers |= {id(routine): routine for routine in found}
        relevant |= {name for routine in found for name in _names(routine)}
    interpreter.observe_calls_of(frozenset(relevant))
    for routine in tops:
        if id(routine) in callers:
            interpreter.run_routine(routine)


def _names(routine: Routine) -> Iterator[str]:
    """What a call of it is spelled with: its last name, and that of its class where it is run by calling an object."""
    name = routine.name.rpartition(".")[2]
    if name:
        yield name
    if name in ("forward", "__call__", "__init__") and routine.owner is not None:
        yield routine.owner.name


def _is_open(routine: Routine, interpreter: FileInterpreter) -> bool:
    """Does it hold a site that what its callers pass can decide?"""
    if any(_is_open(child, interpreter) for child in routine.children if routine.parent is not None):
        return True
    return any(_asks(call, interpreter) for call in routine.sites)


def _asks(call: ast.Call, interpreter: FileInterpreter) -> bool:
    """Not a view that is legal whatever is passed and names no number, which callers may contradict."""
    seen = interpreter.notebook.observations.get(id(call), {})
    is_legal = all(o.any is not None and o.any.legality is Legality.LEGAL for o in seen)
    return not (seen and is_legal) or any(
        isinstance(argument, ast.Constant) and type(argument.value) is int and argument.value > 1
        for argument in ast.walk(call)
    )


def _holds_site(routine: Routine) -> bool:
    if routine.parent is None:
        return bool(routine.sites)
    return bool(routine.sites) or any(_holds_site(child) for child in routine.children)


def _called(routine: Routine) -> set[str]:
    if routine.parent is None:
        return routine.called
    return routine.called.union(*(_called(child) for child in routine.children))


def _op_call(
    call: ast.Call, routine: Routine, program: Program, interpreter: FileInterpreter, syntax: Syntax
) -> OpCall | None:
    notebook = interpreter.notebook
    observations: tuple[Observation, ...] = tuple(notebook.observations.get(id(call), {}))
    operation, form = _operation(call, program)
    if operation in COPIES and operation != "reshape" and not notebook.writes.get(id(call)):
        return None
    return OpCall(
        path=syntax.source.path,
        operation=operation,
        form=form,
        span=syntax.span(call),
        node=call,
        observations=observations,
        writes=tuple(notebook.writes.get(id(call), {})),
        keeps=tuple(notebook.keeps.get(id(call), {})),
        is_temporary=id(call) in program.temporaries,
        is_guarded=id(call) in program.guarded,
        function=routine.name,
    )


def _operation(call: ast.Call, program: Program) -> tuple[str, Form]:
    name = program.resolve(dotted(call.func))
    last = call.func.attr if isinstance(call.func, ast.Attribute) else name.rpartition(".")[2]
    if name.startswith("torch.Tensor."):
        return last, Form.UNBOUND
    if name.startswith("torch.") or isinstance(call.func, ast.Name):
        return last, Form.FUNCTION
    return last, Form.METHOD
