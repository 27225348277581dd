"""From the tree of a file to what is known at each call that a Transform cares for."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from codemod.layout.interpreter import FileInterpreter
from codemod.layout.op_call import Form, Observation, OpCall
from codemod.layout.program import COPIES, Program, Routine, dotted, survey
from codemod.layout.size import AtomKind
from codemod.layout.value import Constant, Number, Tensor, Unknown
from codemod.layout.viewable import Legality
from codemod.layout.whole_file import tell
from codemod.syntax.parse import Syntax

Seen = Mapping[int, Mapping[Observation, None]]

CALLERS = 2
"""Callers of callers are asked this far: as deep as calls are followed."""


def analyse(syntax: Syntax) -> tuple[OpCall, ...]:
    """Every site of the file, in order of position."""
    program = survey(syntax.tree)
    if not program.sites:
        program.dissolve()
        return ()
    interpreter = FileInterpreter(program)
    tops = [r for r in program.routines if r.parent is None or r.parent is program.routines[0]]
    for routine in tops:
        if _sites(routine):
            interpreter.run_routine(routine)
    _follow_calls(tops, interpreter)
    _ask_callers(tops, interpreter)
    calls = [
        (found, routine)
        for routine in program.routines
        for call in routine.sites
        if (found := _op_call(call, routine, program, interpreter, syntax)) is not None
    ]
    told = tell(calls, program, syntax.tree)
    program.dissolve()
    return tuple(
        sorted(
            (call for call in told if call.operation not in COPIES or call.writes or call.hard_coded),
            key=lambda call: (call.span.line, call.span.column),
        )
    )


def _follow_calls(tops: Sequence[Routine], interpreter: FileInterpreter) -> None:
    """Run again, calls included, what leads to a site that the result of a call may decide."""
    seen = interpreter.notebook.observations
    sites = frozenset(
        id(call)
        for routine in tops
        for call in _sites(routine)
        if _is_open(call, seen) and _waits(seen.get(id(call), {}), interpreter.skipped)
    )
    interpreter.follow_calls(sites)
    for routine in tops:
        if any(id(call) in sites for call in _sites(routine)):
            interpreter.run_routine(routine)


def _waits(observations: Iterable[Observation], skipped: Mapping[str, Unknown]) -> bool:
    """Does something that a skipped call returns go into the judgement?"""
    whys = {(value.why, value.line) for value in skipped.values()}
    for observation in observations:
        if observation.default is None or observation.any is None:
            return isinstance(observation.receiver, Tensor | Unknown | Number | Constant)
        if any((origin.text, origin.line) in whys for origin in observation.any.origins):
            return True
        sizes = [s for dim in observation.default.layout.dims for s in (dim.size, dim.stride)]
        sizes += observation.target.sizes if observation.target is not None else ()
        if observation.target is None or any(key in atom for size in sizes for atom in size.atoms for key in skipped):
            return True
    return not observations


def _ask_callers(tops: Sequence[Routine], interpreter: FileInterpreter) -> None:
    """Run what calls a routine that leaves something open, for what it passes."""
    seen = interpreter.notebook.observations
    sized, open_sites = {}, {}
    for routine in tops:
        calls = _sites(routine)
        sized[id(routine)] = [call for call in calls if _is_sized(call, seen, routine, interpreter.program)]
        open_sites[id(routine)] = [call for call in calls if _is_open(call, seen)]
    asking = [routine for routine in tops if sized[id(routine)] or open_sites[id(routine)]]
    for_sizes = {
        id(r.node): r for r in asking if sized[id(r)] or not all(_is_of_strides(c, seen) for c in open_sites[id(r)])
    }
    relevant = {name for routine in asking for name in _names(routine)}
    callers: dict[int, Routine] = {}
    for _ in range(CALLERS):
        names = {name for routine in for_sizes.values() for name in _names(routine)}
        found = [r for r in tops if not relevant.isdisjoint(_called(r))]
        callers |= {id(routine): routine for routine in found if not routine.name.endswith("__init__")}
        for_sizes |= {id(r.node): r for r in found if not names.isdisjoint(_called(r))}
        relevant |= {name for routine in found for name in _names(routine)}
    asked = frozenset(id(call) for sites in (sized, open_sites) for calls in sites.values() for call in calls)
    interpreter.observe_calls(asked, frozenset(relevant), frozenset(for_sizes))
    for routine in callers.values():
        if not interpreter.is_spent:
            interpreter.run_routine(routine)


def _is_open(call: ast.Call, seen: Seen) -> bool:
    """Not a view that is legal whatever is passed."""
    observations = seen.get(id(call), {})
    return not observations or not all(o.any is not None and o.any.legality is Legality.LEGAL for o in observations)


def _is_of_strides(call: ast.Call, seen: Seen) -> bool:
    """Legal for every contiguous argument, or open for want of what no size tells: a strided one may tell more."""
    judged = [observation.default for observation in seen.get(id(call), {})]
    return all(
        j is not None
        and (j.legality is Legality.LEGAL or (j.legality is Legality.MAYBE and j.origins and not j.is_target_open))
        for j in judged
    )


def _is_sized(call: ast.Call, seen: Seen, routine: Routine, program: Program) -> bool:
    """Does its target hold a number, or a size that callers choose, which their tensors may not fit?"""
    if any(isinstance(n, ast.Constant) and type(n.value) is int and n.value > 1 for n in _arguments(call)):
        return True
    is_built = routine.owner is not None and routine.owner.name in program.given_numbers
    sizes = [s for o in seen.get(id(call), {}) if o.target is not None for s in o.target.sizes]
    chosen = {atom for size in sizes for atom in size.atoms if atom.kind is AtomKind.OPAQUE}
    return bool(chosen) and (is_built or any(atom.startswith(f"{routine.name}.") for atom in chosen))


def _arguments(call: ast.Call) -> Iterator[ast.AST]:
    for argument in (*call.args, *call.keywords):
        yield from ast.walk(argument)


def _names(routine: Routine) -> Iterator[str]:
    """What a call of it is spelled with: its last name, that of its class where it is run by calling an object, and
    those of the functions inside it."""
    name = routine.name.rpartition(".")[2]
    if name:
        yield name
    if name in ("forward", "__call__", "__init__") and routine.owner is not None:
        yield routine.owner.name
    for child in routine.children if routine.parent is not None else ():
        yield from _names(child)


def _sites(routine: Routine) -> list[ast.Call]:
    """Those of the functions inside it too; the module holds only its own."""
    if routine.parent is None:
        return routine.sites
    return [*routine.sites, *(call for child in routine.children for call in _sites(child))]


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
