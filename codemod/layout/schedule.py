"""Which functions of a file are run, in which order, and for which sites.

Each function that holds a site is run by itself, without looking into the calls that it makes.  Where the result of
such a call may decide a site, the function is run again with the call followed; where callers may, they are run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from codemod.layout.interpreter import FileInterpreter
from codemod.layout.op_call import Observation
from codemod.layout.origin import OriginKind
from codemod.layout.program import Program, Routine
from codemod.layout.size import AtomKind
from codemod.layout.value import Constant, Number, Tensor, Unknown
from codemod.layout.viewable import Legality

CALLERS = 3
"""Callers are asked, and their callers as long as a result that shares storage is handed on, this far."""


@dataclass(slots=True)
class _Top:
    """A function, a method or the module; functions inside it are run with it."""

    routine: Routine
    sites: list[ast.Call]
    called: set[str]

    @property
    def is_constructor(self) -> bool:
        return self.routine.name.endswith("__init__")

    @property
    def names(self) -> set[str]:
        return set(_names(self.routine))


def run_all(program: Program, interpreter: FileInterpreter) -> None:
    """Observe every site of the file."""
    module = program.routines[0]
    tops = [_Top(r, _sites(r), _called(r)) for r in program.routines if r.parent is None or r.parent is module]
    holders = [top for top in tops if top.sites]
    for top in holders:
        interpreter.run_routine(top.routine)
    _follow_calls(holders, interpreter)
    _ask_callers(tops, holders, interpreter)


def _sites(routine: Routine) -> list[ast.Call]:
    """Those of the functions inside it too; the module holds only its own."""
    if routine.parent is None or not routine.children:
        return routine.sites
    return [*routine.sites, *(call for child in routine.children for call in _sites(child))]


def _called(routine: Routine) -> set[str]:
    if routine.parent is None or not routine.children:
        return routine.called
    return routine.called.union(*(_called(child) for child in routine.children))


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


def _follow_calls(holders: Sequence[_Top], interpreter: FileInterpreter) -> None:
    """Run again, calls included, what leads to a site that the result of a call may decide."""
    skipped = _Skipped(interpreter.skipped)
    seen = interpreter.notebook.observations
    open_sites = (call for top in holders for call in top.sites if _is_open(seen.get(id(call), {})))
    sites = frozenset(id(call) for call in open_sites if skipped.decides(seen.get(id(call), {})))
    interpreter.follow_calls(sites)
    for top in holders:
        if any(id(call) in sites for call in top.sites):
            interpreter.run_routine(top.routine)


class _Skipped:
    """The results of calls that were not looked into."""

    def __init__(self, skipped: Mapping[str, Unknown]) -> None:
        self._names = tuple(skipped)
        self._whys = {(value.why, value.line) for value in skipped.values()}

    def decides(self, observations: Iterable[Observation]) -> bool:
        """Does one of them go into what was judged?"""
        found = list(observations)
        return not found or any(self._decides(observation) for observation in found)

    def _decides(self, observation: Observation) -> bool:
        if observation.default is None or observation.any is None:
            return isinstance(observation.receiver, Tensor | Unknown | Number | Constant)
        if observation.target is None:
            return True
        origins = observation.any.origins
        if any(origin.kind is OriginKind.OP or (origin.text, origin.line) in self._whys for origin in origins):
            return bool(self._whys)
        sizes = [size for dim in observation.default.layout.dims for size in (dim.size, dim.stride)]
        atoms = {atom for size in (*sizes, *observation.target.sizes) for atom in size.atoms}
        return any(name in atom for atom in atoms for name in self._names)


def _ask_callers(tops: Sequence[_Top], holders: Sequence[_Top], interpreter: FileInterpreter) -> None:
    """Run what calls a function that leaves something open, for what it passes."""
    seen = interpreter.notebook.observations
    sites: set[int] = set()
    asking: list[_Top] = []
    for_sizes: list[_Top] = []
    for top in holders:
        sized = [c for c in top.sites if _is_sized(c, seen.get(id(c), {}), top.routine, interpreter.program)]
        open_sites = [c for c in top.sites if _is_open(seen.get(id(c), {}))]
        sites |= {id(call) for call in (*sized, *open_sites)}
        if sized or open_sites:
            asking.append(top)
        if sized or not all(_is_of_strides(seen.get(id(c), {})) for c in open_sites):
            for_sizes.append(top)
    relevant: set[str] = set()
    for depth in range(1, CALLERS + 1):
        relevant |= {name for top in asking for name in top.names}
        names = {name for top in for_sizes for name in top.names}
        callers = [top for top in tops if not relevant.isdisjoint(top.called) and not top.is_constructor]
        for_sizes += [top for top in callers if not names.isdisjoint(top.called)]
        functions = frozenset(id(top.routine.node) for top in for_sizes)
        interpreter.observe_calls(frozenset(sites), frozenset(relevant), functions, depth)
        for top in callers:
            if not interpreter.is_spent:
                interpreter.run_routine(top.routine)
        asking = [top for top in callers if not sites.isdisjoint(interpreter.returned.get(id(top.routine.node), ()))]
        if not asking:
            return


def _is_open(observations: Mapping[Observation, None]) -> bool:
    """Not a view that is legal whatever is passed."""
    return not observations or not all(o.any is not None and o.any.legality is Legality.LEGAL for o in observations)


def _is_of_strides(observations: Iterable[Observation]) -> bool:
    """Legal for every contiguous argument, or open for want of what no size tells: a strided one may tell more."""
    return all(
        j is not None
        and (j.legality is Legality.LEGAL or (j.legality is Legality.MAYBE and j.origins and not j.is_target_open))
        for j in (observation.default for observation in observations)
    )


def _is_sized(call: ast.Call, observations: Iterable[Observation], routine: Routine, program: Program) -> bool:
    """Does its target hold a number, or a size that callers choose, which their tensors may not fit?"""
    if any(isinstance(n, ast.Constant) and type(n.value) is int and n.value > 1 for n in _arguments(call)):
        return True
    is_built = routine.owner is not None and routine.owner.name in program.given_numbers
    sizes = [size for o in observations if o.target is not None for size in o.target.sizes]
    chosen = {atom for size in sizes for atom in size.atoms if atom.kind is AtomKind.OPAQUE}
    return bool(chosen) and (is_built or any(atom.startswith(f"{routine.name}.") for atom in chosen))


def _arguments(call: ast.Call) -> Iterator[ast.AST]:
    for argument in (*call.args, *call.keywords):
        yield from ast.walk(argument)
