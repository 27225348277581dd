"""Which functions of a file are run, in which order, and for which sites.

Each function that holds a site is run by itself, without looking into the calls that it makes.  Where the result of
such a call may decide a site, the function is run again with the call followed; where callers may, they are run, if
they look as if they could: most callers just hand on what they were given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from codemod.layout.interpreter import FileInterpreter
from codemod.layout.op_call import Observation
from codemod.layout.origin import OriginKind
from codemod.layout.program import RESHAPERS, Program, Routine, dotted
from codemod.layout.size import AtomKind
from codemod.layout.value import Constant, Number, Tensor, Unknown
from codemod.layout.viewable import Legality

CALLERS = 3
"""Callers are asked, and their callers as long as a result that shares storage is handed on, this far."""

STRIDERS = frozenset(
    {
        "adjoint", "as_strided", "broadcast_tensors", "broadcast_to", "chunk", "diagonal", "dsplit", "einsum",
        "expand", "expand_as", "hsplit", "imag", "meshgrid", "moveaxis", "movedim", "narrow", "permute", "real",
        "rearrange", "select", "split", "swapaxes", "swapdims", "t", "tensor_split", "transpose", "unbind", "unfold",
        "view_as_real", "vsplit", *RESHAPERS,
    }
)  # fmt: skip
"""Calls whose result has strides of its own."""
FACTORIES = frozenset(
    {
        "DataLoader", "arange", "empty", "eye", "from_numpy", "full", "linspace", "normal", "ones", "rand", "randint",
        "randn", "tensor", "zeros",
    }
)  # fmt: skip
"""Calls whose result has sizes of its own."""
_LISTS = (ast.Tuple, ast.List)
_STRIDED_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "channels_last", "channels_last_3d", "real", "imag"})


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
    def is_implicit(self) -> bool:
        """May it be run by what is no call of its name: a property, `__iter__`, what a decorator makes of it?"""
        return self.routine.name.endswith("__") or bool(getattr(self.routine.node, "decorator_list", ()))

    @property
    def names(self) -> set[str]:
        return set(_names(self.routine))

    def calls(self, tops: Iterable[_Top]) -> bool:
        return any(not self.called.isdisjoint(top.names) for top in tops)


def run_all(program: Program, interpreter: FileInterpreter) -> None:
    """Observe every site of the file."""
    module = program.routines[0]
    tables = _tables(program)
    functions = {**{name: {name} for r in program.routines if (name := r.name.rpartition(".")[2])}, **tables}
    tops = [
        _Top(r, _sites(r), _called(r, functions)) for r in program.routines if r.parent is None or r.parent is module
    ]
    holders = [top for top in tops if top.sites]
    for top in holders:
        interpreter.run_routine(top.routine)
    _follow_calls(holders, interpreter)
    _ask_callers(tops, holders, tables, interpreter)
    _find_writers(tops, holders, interpreter)


def _tables(program: Program) -> Mapping[str, Set[str]]:
    """Names of the module's own lists and dicts, with the names that they hold: functions may be among them."""
    found = {}
    for name, value in program.constants.items():
        items = value.values if isinstance(value, ast.Dict) else value.elts if isinstance(value, _LISTS) else ()
        held = {item.id for item in items if isinstance(item, ast.Name)}
        if held:
            found[name] = held
    return found


def _sites(routine: Routine) -> list[ast.Call]:
    """Those of the functions inside it too; the module holds only its own."""
    if routine.parent is None or not routine.children:
        return routine.sites
    return [*routine.sites, *(call for child in routine.children for call in _sites(child))]


def _called(routine: Routine, functions: Mapping[str, Set[str]]) -> set[str]:
    """Last names of what it may call: `functions` of the file that it hands on, and lambdas, too."""
    own = routine.called.union(*(functions[name] for name in routine.handed & functions.keys()))
    own.update("<lambda>" for child in routine.children if isinstance(child.node, ast.Lambda))
    if routine.parent is None or not routine.children:
        return own
    return own.union(*(_called(child, functions) for child in routine.children))


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
    open_sites = {id(call) for top in holders for call in top.sites if _is_open(seen.get(id(call), {}))}
    sites = frozenset(s for s in open_sites if s in interpreter.handed or skipped.decides(seen.get(s, {})))
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
        if _is_of_a_rank(observation):
            return bool(self._names)
        origins = observation.any.origins
        if any(origin.kind is OriginKind.OP or (origin.text, origin.line) in self._whys for origin in origins):
            return bool(self._whys)
        sizes = [size for dim in observation.default.layout.dims for size in (dim.size, dim.stride)]
        atoms = {atom for size in (*sizes, *observation.target.sizes) for atom in size.atoms}
        return any(name in atom for atom in atoms for name in self._names)


def _ask_callers(
    tops: Sequence[_Top], holders: Sequence[_Top], tables: Mapping[str, Set[str]], interpreter: FileInterpreter
) -> None:
    """Run what calls a function that leaves something open, for what it passes."""
    seen = interpreter.notebook.observations
    sites: set[int] = set()
    undecided: set[int] = set()
    asking: list[_Top] = []
    for_sizes: list[_Top] = []
    wishes = _Wishes(tops)
    for top in holders:
        sized = [c for c in top.sites if _is_sized(c, seen.get(id(c), {}), top.routine, interpreter.program)]
        open_sites = [c for c in top.sites if _is_open(seen.get(id(c), {}))]
        undecided |= set(map(id, open_sites))
        sites |= undecided | set(map(id, sized))
        if sized or open_sites:
            asking.append(top)
        for_layouts = any(map(_is_matrix_exp, open_sites))
        if sized or for_layouts or not all(_is_of_strides(seen.get(id(c), {})) for c in open_sites):
            for_sizes.append(top)
        observed = [seen.get(id(call), {}) for call in open_sites]
        hands_on = not undecided.isdisjoint(interpreter.returned.get(id(top.routine.node), ()))
        if hands_on or any(map(_needs_callers, observed)) or for_layouts:
            wishes.for_anything.append(top)
        if any(_is_of_arguments(found, top.routine) for found in observed):
            wishes.for_strides.append(top)
        if sized:
            wishes.for_sizes.append(top)
    relevant: set[str] = set()
    for depth in range(1, CALLERS + 1):
        asked_about = {name for top in asking for name in top.names}
        asked_about |= {table for table, held in tables.items() if not asked_about.isdisjoint(held)}
        relevant |= asked_about
        names = {name for top in for_sizes for name in top.names}
        callers = [top for top in tops if not asked_about.isdisjoint(top.called) and not top.is_constructor]
        callers = [top for top in callers if wishes.may_be_met_by(top)]
        for_sizes += [top for top in callers if not names.isdisjoint(top.called)]
        functions = frozenset(id(top.routine.node) for top in for_sizes)
        interpreter.observe_calls(frozenset(sites), frozenset(relevant), functions, depth)
        for top in callers:
            if not interpreter.is_spent:
                interpreter.run_routine(top.routine)
        asking = [t for t in callers if not undecided.isdisjoint(interpreter.returned.get(id(t.routine.node), ()))]
        if not asking:
            return
        wishes.for_anything += asking


def _find_writers(tops: Sequence[_Top], holders: Sequence[_Top], interpreter: FileInterpreter) -> None:
    """Run what is given the result of a view that is not legal, for whether it writes to it."""
    seen = interpreter.notebook.observations
    sites = {id(c) for top in holders for c in top.sites if any(map(_is_refused, seen.get(id(c), {})))}
    asking: Sequence[_Top] = [top for top in holders if any(id(call) in sites for call in top.sites)]
    relevant: set[str] = set()
    for _ in range(CALLERS + 1):
        if not asking:
            return
        interpreter.find_writers(frozenset(sites), frozenset(relevant))
        for top in asking:
            interpreter.run_routine(top.routine)
        returning = [t for t in asking if not sites.isdisjoint(interpreter.returned.get(id(t.routine.node), ()))]
        names = {name for top in returning for name in top.names}
        relevant |= names
        if any(top.is_implicit for top in returning):
            asking = tops
        else:
            asking = [top for top in tops if not names.isdisjoint(top.called) and not top.is_constructor]


def _is_refused(observation: Observation) -> bool:
    return observation.default is not None and observation.default.legality is Legality.REFUSED


class _Wishes:
    """What functions lack that callers may bring, and which callers look as if they could."""

    def __init__(self, tops: Sequence[_Top]) -> None:
        self._tops = tops
        self.for_anything: list[_Top] = []
        """A site of theirs is refused as it is, or callers get what shares storage with it and may write to it, or
        make the batch of a bmm."""
        self.for_strides: list[_Top] = []
        self.for_sizes: list[_Top] = []

    def may_be_met_by(self, caller: _Top) -> bool:
        if isinstance(caller.routine.node, ast.Module) or caller.calls(self.for_anything):
            return True
        if caller.calls(self.for_strides) and (self._mentions(caller, STRIDERS) or _is_cut(caller.routine.node)):
            return True
        return caller.calls(self.for_sizes) and self._mentions(caller, FACTORIES)

    def _mentions(self, caller: _Top, names: frozenset[str]) -> bool:
        """Does it call one of them, or a function of the file that does?"""
        if not names.isdisjoint(caller.called):
            return True
        return any(
            top.routine.name.rpartition(".")[2] in caller.called and not names.isdisjoint(top.called)
            for top in self._tops
        )


def _is_cut(scope: ast.AST) -> bool:
    """Does it hold a slice, a `.T` or a memory format, which leave strides without a call?"""
    return any(
        isinstance(node, ast.Slice) or (isinstance(node, ast.Attribute) and node.attr in _STRIDED_ATTRIBUTES)
        for node in ast.walk(scope)
    )


def _is_matrix_exp(call: ast.Call) -> bool:
    """It fits what is contiguous: a caller may bring what a compiler lays out otherwise."""
    return (call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)) == "matrix_exp"


def _needs_callers(observations: Iterable[Observation]) -> bool:
    """Refused as it is, or open for want of a rank, or no view but a bmm, whose batch is made elsewhere."""
    return any(
        o.default.legality is Legality.REFUSED or _is_of_a_rank(o)
        if o.default is not None
        else isinstance(o.receiver, Tensor | Unknown)
        for o in observations
    )


def _is_of_a_rank(observation: Observation) -> bool:
    """Open, and the receiver may have more dims than those that are known of?"""
    default = observation.default
    return default is not None and default.is_target_open and default.layout.rank is None


def _is_of_arguments(observations: Iterable[Observation], routine: Routine) -> bool:
    """Does what it lacks depend on what the function is given?"""
    found = list(observations)
    return not found or any(_names_argument(observation, f"{routine.name}.") for observation in found)


def _names_argument(observation: Observation, prefix: str) -> bool:
    if observation.default is None or observation.any is None:
        return isinstance(observation.receiver, Unknown) and observation.receiver.name.startswith(prefix)
    judged = observation.any
    sizes = [size for dim in judged.layout.dims for size in (dim.size, dim.stride)]
    return any(origin.kind is OriginKind.CALLER for origin in judged.origins) or any(
        (atom.owner or atom).startswith(prefix) for size in sizes for atom in size.atoms
    )


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
