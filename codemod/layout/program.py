"""The tables of one file, made in one walk: imports, functions, classes, constants, and the calls worth deciding."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from codemod.layout.guards import Guard, guarded, may_swallow
from codemod.layout.patched import patched
from codemod.sources.package import package_of

VIEWS = frozenset({"view", "view_as"})
COPIES = frozenset({"reshape", "reshape_as", "flatten", "contiguous", "ravel"})
"""Ops that return a view or a copy: what is written to their result may be lost."""
DECIDED = VIEWS | {"bmm", "Dim", "mark_dynamic", "matrix_exp"}
DIM_HINTS = frozenset({"DYNAMIC", "AUTO"})
"""`Dim.DYNAMIC(min=2)` is decided as `Dim("n", min=2)` is."""
RESHAPERS = frozenset(
    {
        "t_", "transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "resize_", "resize_as_", "as_strided_",
        "set_", "swap_tensors",
    }
)  # fmt: skip
"""Methods that give the tensor itself other sizes or strides."""
_CHANGERS = frozenset(
    {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem"}
)
"""Methods that change a list or dict in place."""
_SUPPLIERS = frozenset(
    {"DataLoader", "export", "split", "range", "export_for_training", "compile", "aoti_compile_and_package"}
)
_RENAMED = frozenset({"Dim", "bmm", "mark_dynamic", "matrix_exp"})
_EXPORTERS = frozenset({"torch.export", "torch.export.dynamic_shapes"})
REGISTERS = frozenset({"register_buffer", "register_parameter", "add_module", "register_module"})
"""Methods of a module that bind an attribute by its name."""

TRIES: tuple[type[ast.stmt], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))  # `except*` came with Python 3.11

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Scope = FunctionNode | ast.Module


@dataclass(slots=True)
class Routine:
    """A function, method, lambda or the module's top level, and what one walk saw in it."""

    node: Scope
    name: str
    """Qualified, as in `Block.forward`; empty for the module."""
    owner: ast.ClassDef | None
    parent: Routine | None = None
    sites: list[ast.Call] = field(default_factory=list)
    temporaries: list[ast.Call] = field(default_factory=list)
    """Sites among the COPIES whose result is written in place and read by nobody."""
    copies: dict[str, ast.Call] = field(default_factory=dict)
    """Names bound to the result of one of the COPIES."""
    written: dict[str, set[int]] = field(default_factory=dict)
    """Names through which something is written, with the ids of those mentions."""
    suppliers: list[ast.Call] = field(default_factory=list)
    """Calls that may make loaders, take a batch in steps, export or compile."""
    called: set[str] = field(default_factory=set)
    """Last names of everything that it calls."""
    handed: set[str] = field(default_factory=set)
    """Last names of what it passes on as it is, in arguments, tuples and assignments: who gets it may call it."""
    children: list[Routine] = field(default_factory=list)
    bindings: dict[str, ast.expr] | None = None
    """Names bound by one plain assignment, once they have been asked for."""


@dataclass(slots=True)
class Program:
    """What the interpreter looks names up in."""

    path: str
    imports: Mapping[str, str]
    stars: Sequence[str]
    """Modules of which all names are imported."""
    functions: Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef]
    classes: Mapping[str, ast.ClassDef]
    constants: Mapping[str, ast.expr]
    """Module-level names that are bound exactly once, by an assignment."""
    routines: tuple[Routine, ...]
    sites: frozenset[int]
    """Ids of the calls that some Transform may want to decide."""
    temporaries: frozenset[int]
    """Ids of the sites whose result has no name, or one through which it is only written."""
    guarded: frozenset[int]
    """Ids of the calls whose RuntimeError somebody counts on."""
    generators: frozenset[int]
    """Ids of the functions that yield."""
    stored: Mapping[int, set[str]]
    """Attributes of `self` that methods other than `__init__` bind, by the id of the class."""
    shared: Mapping[int, set[str]] = field(default_factory=dict)
    """Names of a scope that functions inside it, or other functions, bind or change as well: by the scope's id."""
    reshaping: frozenset[int] = frozenset()
    """Ids of the functions that may give an argument other strides in place."""
    overridden: Mapping[int, Sequence[ast.ClassDef]] = field(default_factory=dict)
    """Subclasses in this file, by the id of the class."""
    initialised: Mapping[int, set[str]] = field(default_factory=dict)
    """Attributes of `self` that `__init__` binds, by the id of the class."""
    effective: frozenset[str] = frozenset()
    """Last names of the functions that change an argument in place, or bind attributes."""
    binders: Mapping[str, set[int]] = field(default_factory=dict)
    """Ids of the functions, other than `__init__`, that bind an attribute, by its name."""
    transparent: dict[str, bool] = field(default_factory=dict)
    """Does the function, as a decorator, hand on what the decorated one returns?  Filled as it is asked."""
    has_walrus: bool = False
    """Does `:=` stand anywhere?"""
    elusive: frozenset[str] = frozenset()
    """Attributes that change in ways that are not followed: `self.p.data = x`, `setattr(self, "p", x)`."""
    handed_on: frozenset[str] = frozenset()
    """Attributes that one object gets from another's of that name."""
    assigned: frozenset[str] = frozenset()
    """Names of attributes that are bound on objects other than `self`."""
    brought: frozenset[str] = frozenset()
    """Those of them that are only ever bound to an argument, or to a part of one."""
    alternatives: Mapping[str, Sequence[ast.FunctionDef | ast.AsyncFunctionDef]] = field(default_factory=dict)
    """Functions of one name that stand in branches: either may be the one that is called."""
    number: int = 0
    """Of the file, where several share one numbering of lines; 0 for the one that is analysed."""
    given_numbers: frozenset[str] = frozenset()
    """Names of what is called with a number written out: `Net(32)`."""
    refilled: Mapping[str, set[int]] = field(default_factory=dict)
    """Ids of the functions that change what a list or dict that is an attribute holds, by the attribute's name."""
    emptied: frozenset[str] = frozenset()
    """Names of attributes that are set to None on objects other than `self`."""
    patched: frozenset[str] = frozenset()
    """Last names of the modules whose results may be others than those of their own `forward`."""
    _methods: dict[int, dict[str, ast.FunctionDef | ast.AsyncFunctionDef]] = field(default_factory=dict)
    _placed: dict[tuple[int, int, int | None], ast.Call | ast.Subscript] = field(default_factory=dict)

    def dissolve(self) -> None:
        """Part the routines, so that the tree goes with its last reference and not when the collector comes by."""
        for routine in self.routines:
            routine.parent = None
            routine.children.clear()

    def expression_at(self, line: int, column: int, end: int) -> ast.Call | ast.Subscript | None:
        """The call or subscript that begins and ends there."""
        if not self._placed:
            for node in ast.walk(self.routines[0].node):
                if isinstance(node, ast.Call | ast.Subscript):
                    self._placed.setdefault((node.lineno, node.col_offset, node.end_col_offset), node)
        return self._placed.get((line, column, end))

    def own_methods(self, node: ast.ClassDef) -> Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef]:
        """Those that the class itself defines; of a property, what reads it."""
        methods = (item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef))
        return {method.name: method for method in methods if not _changes_property(method)}

    def methods(self, node: ast.ClassDef) -> Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef]:
        """By name, those of the bases in this file included."""
        found = self._methods.get(id(node))
        if found is None:
            found = self._methods[id(node)] = {}
            for base in self.bases(node):
                for name, method in self.own_methods(base).items():
                    found.setdefault(name, method)
        return found

    def bases(self, node: ast.ClassDef) -> list[ast.ClassDef]:
        """The class and its bases in this file, nearest first."""
        found, queue = [node], list(node.bases)
        while queue:
            base = queue.pop(0)
            known = self.classes.get(base.id) if isinstance(base, ast.Name) else None
            if known is not None and known not in found:
                found.append(known)
                queue += known.bases
        return found

    def base_names(self, node: ast.ClassDef) -> Iterator[str]:
        """Import paths of the bases that lie outside this file."""
        for known in self.bases(node):
            for base in known.bases:
                name = dotted(base)
                if name and name not in self.classes:
                    yield self.resolve(name)

    def binds(self, node: ast.ClassDef, name: str) -> bool:
        """Does the class bind the attribute, at class level or on `self`?"""
        if name in self.stored.get(id(node), ()) or name in self.initialised.get(id(node), ()):
            return True
        targets = (t for s in node.body if isinstance(s, ast.Assign) for t in s.targets)
        return any(isinstance(target, ast.Name) and target.id == name for target in targets)

    def resolve(self, name: str) -> str:
        """`F.pad` as `torch.nn.functional.pad`."""
        head, dot, rest = name.partition(".")
        return self.imports.get(head, head) + dot + rest


def dotted(node: ast.expr) -> str:
    """`torch.nn.Linear` of such an expression; empty for any other."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def survey(tree: ast.Module, path: str = "", number: int = 0) -> Program:
    """Walk the tree once."""
    surveyor = _Surveyor(path)
    surveyor.walk(tree)
    surveyor.see_unread_copies()
    functions = _defined(tree, surveyor.functions, surveyor.bound)
    return Program(
        path=path,
        number=number,
        imports=surveyor.imports,
        stars=surveyor.stars,
        functions={name: found[-1] for name, found in functions.items()},
        alternatives={name: found for name, found in functions.items() if len(found) > 1},
        classes=surveyor.classes,
        constants={
            name: value
            for name, value in surveyor.constants.items()
            if surveyor.bound.get(name) == 1 and name not in surveyor.changed
        },
        shared=surveyor.shared,
        reshaping=surveyor.see_callers(surveyor.reshaping),
        overridden=_subclasses(surveyor.classes),
        initialised=surveyor.initialised,
        assigned=frozenset(surveyor.assigned),
        brought=frozenset(surveyor.assigned - surveyor.made),
        emptied=frozenset(surveyor.emptied),
        refilled=surveyor.refilled,
        has_walrus=surveyor.has_walrus,
        elusive=frozenset(surveyor.elusive),
        handed_on=frozenset(surveyor.handed_on),
        binders=surveyor.binders,
        effective=surveyor.names_of(surveyor.see_callers(surveyor.effective)),
        routines=tuple(surveyor.routines),
        sites=frozenset(surveyor.sites),
        temporaries=frozenset(
            id(call)
            for routine in surveyor.routines
            for call in routine.temporaries
            if first_name(call) not in surveyor.imports  # only it can read what `torch.eye(3).contiguous()` is made of
        ),
        guarded=frozenset(guarded(surveyor.guards, [routine.node for routine in surveyor.routines])),
        generators=frozenset(surveyor.generators),
        stored=surveyor.stored,
        given_numbers=frozenset(surveyor.given_numbers),
        patched=patched(surveyor.routines, surveyor.assigned),
    )


class _Surveyor:
    def __init__(self, path: str) -> None:
        self._path = path
        self._packages: tuple[str, ...] | None = None
        self.imports: dict[str, str] = {}
        self._direct: set[int] = set()
        self._settled: set[str] = set()
        self.has_walrus = False
        self.elusive: set[str] = set()
        self.handed_on: set[str] = set()
        self._taken: set[int] = set()
        """Ids of the targets in `new.query = old.query`."""
        self.stars: list[str] = []
        self.functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.constants: dict[str, ast.expr] = {}
        self.bound: dict[str, int] = {}
        self.routines: list[Routine] = []
        self.guards: list[Guard] = []
        self.generators: set[int] = set()
        self.stored: dict[int, set[str]] = {}
        self.initialised: dict[int, set[str]] = {}
        self.assigned: set[str] = set()
        self.made: set[str] = set()
        """Those of them that are bound to something else than an argument, or not by an assignment."""
        self.refilled: dict[str, set[int]] = {}
        self.emptied: set[str] = set()
        self._emptied: set[int] = set()
        """Ids of the targets in `model.head = None`."""
        self._brought: set[int] = set()
        """Ids of the targets in `model.head = new`."""
        self.binders: dict[str, set[int]] = {}
        self.shared: dict[int, set[str]] = {}
        self.changed: set[str] = set()
        """Names of the module that functions bind, and those whose value changes in place."""
        self.reshaping: set[int] = set()
        self.effective: set[int] = set()
        self.decided = DECIDED
        self.sites: set[int] = set()
        self.given_numbers: set[str] = set()

    def walk(self, tree: ast.Module) -> None:
        self._direct = set(map(id, tree.body))
        self.decided = DECIDED | _renamed_imports(tree)
        top = Routine(tree, "", None)
        self.routines.append(top)
        stack: list[tuple[ast.AST, Routine, ast.ClassDef | None]] = [(tree, top, None)]
        while stack:
            node, routine, owner = stack.pop()
            kind = type(node)
            if kind in _SEEN:
                if kind is ast.Call:
                    self._see_call(node, routine)  # type: ignore[arg-type]
                elif kind is ast.Attribute:
                    routine.handed.add(node.attr)  # type: ignore[attr-defined]
                    if type(node.ctx) is ast.Store:  # type: ignore[attr-defined]
                        self._see_stored(node, routine)  # type: ignore[arg-type]
                elif kind in _SCOPES:
                    routine = self._enter(node, routine, owner)  # type: ignore[arg-type]
                    owner = None
                elif kind is ast.ClassDef:
                    if routine is top and owner is None:
                        self.classes.setdefault(node.name, node)  # type: ignore[attr-defined, arg-type]
                    owner = node  # type: ignore[assignment]
                elif kind in TRIES:
                    self.guards.append(node)  # type: ignore[arg-type]
                elif kind is ast.With or kind is ast.AsyncWith:
                    if may_swallow(node):  # type: ignore[arg-type]
                        self.guards.append(node)  # type: ignore[arg-type]
                elif kind is ast.Import or kind is ast.ImportFrom:
                    self._see_import(node)  # type: ignore[arg-type]
                elif kind is ast.Global or kind is ast.Nonlocal:
                    self._see_shared(node.names, routine, to_module=kind is ast.Global)  # type: ignore[attr-defined]
                elif kind is ast.Expr:
                    self._see_statement(node.value, routine)  # type: ignore[attr-defined]
                elif kind is ast.NamedExpr:
                    self.has_walrus = True
                elif kind in _ASSIGNMENTS:
                    self._see_assignment(node, routine, routine is top and owner is None)  # type: ignore[arg-type]
                else:
                    self.generators.add(id(routine.node))
            for name in _FIELDS.get(kind) or fields_of(kind):
                child = getattr(node, name)
                if type(child) is list:
                    for item in child:
                        if type(item) not in _LEAVES:
                            stack.append((item, routine, owner))
                        elif type(item) is ast.Name:
                            routine.handed.add(item.id)
                    continue
                if kind in _HANDING and (type(child) is ast.Name or type(child) is ast.Attribute):
                    routine.handed.add(_last(child))
                while type(child) is ast.Attribute and type(child.ctx) is ast.Load:
                    child = child.value
                if type(child) not in _LEAVES:
                    stack.append((child, routine, owner))

    def _see_stored(self, node: ast.Attribute, routine: Routine) -> None:
        if node.attr == "data":
            self._see_reshaped(node.value, routine)
            if type(node.value) is ast.Attribute and not _is_own(node.value):
                self._see_assigned(node.value.attr, routine)
                self.made.add(node.value.attr)
        elif _is_own(node):
            self._see_own(node.attr, routine)
        elif id(node) in self._taken:
            self.handed_on.add(node.attr)
        elif id(node) in self._emptied:
            self.emptied.add(node.attr)
            self._see_bound(node.attr, routine)
        else:
            self._see_assigned(node.attr, routine)
            if id(node) not in self._brought:
                self.made.add(node.attr)

    def _see_assigned(self, name: str, routine: Routine) -> None:
        """An attribute of something else than `self` is bound."""
        self.assigned.add(name)
        self._see_bound(name, routine)

    def _see_bound(self, name: str, routine: Routine) -> None:
        """An attribute is bound when the function is called."""
        self.effective.add(id(routine.node))
        self.binders.setdefault(name, set()).add(id(routine.node))

    def _see_own(self, name: str, routine: Routine) -> None:
        """An attribute of `self` is bound."""
        if routine.owner is not None:
            is_made = routine.name.endswith(".__init__")
            (self.initialised if is_made else self.stored).setdefault(id(routine.owner), set()).add(name)
            if not is_made:
                self._see_bound(name, routine)

    def _see_shared(self, names: Sequence[str], routine: Routine, *, to_module: bool = False) -> None:
        """The routine binds names of those around it."""
        if to_module:
            self.changed.update(names)
        scope: Routine | None = routine
        while scope is not None:
            if not to_module or scope.parent is None or scope is routine:
                self.shared.setdefault(id(scope.node), set()).update(names)
            scope = scope.parent

    def _see_reshaped(self, node: ast.expr, routine: Routine) -> None:
        """The tensor there gets other strides in place."""
        while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and not _is_own(node)):
            node = node.value
        if isinstance(node, ast.Attribute):
            self._see_own(node.attr, routine)
            self.elusive.add(node.attr)
        if not isinstance(node, ast.Name):
            return
        self._see_changed(node.id, routine)
        if not isinstance(routine.node, ast.Module) and node.id in _parameters(routine.node):
            self.reshaping.add(id(routine.node))
        elif routine.parent is not None and routine.parent.parent is not None:
            self._see_shared([node.id], routine.parent)

    def see_callers(self, functions: set[int]) -> frozenset[int]:
        """Ids of the functions, and of those that call one."""
        found, size = set(functions), -1
        while size != len(found):
            size = len(found)
            names = self.names_of(found)
            found |= {id(r.node) for r in self.routines if r.name and not names.isdisjoint(r.called)}
        return frozenset(found)

    def names_of(self, functions: Collection[int]) -> frozenset[str]:
        names = {r.name.rpartition(".")[2] for r in self.routines if id(r.node) in functions}
        return frozenset(names - {"__init__", "forward"})  # called by the name of the object

    def _see_changed(self, name: str, routine: Routine) -> None:
        """The value of a name changes in place."""
        self.changed.add(name)
        if not isinstance(routine.node, ast.Module) and name in _parameters(routine.node):
            self.effective.add(id(routine.node))

    def _see_refilled(self, node: ast.expr, routine: Routine) -> None:
        """What `self.cache`, or `self.cache["keys"]`, holds changes."""
        while isinstance(node, ast.Subscript):
            node = node.value
        if isinstance(node, ast.Attribute):
            self.refilled.setdefault(node.attr, set()).add(id(routine.node))
            self.effective.add(id(routine.node))

    def _see_assignment(
        self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, routine: Routine, is_global: bool
    ) -> None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Subscript):
                self._see_written(target.value, routine)
                if isinstance(target.value, ast.Name):
                    self._see_changed(target.value.id, routine)
                else:
                    self._see_refilled(target.value, routine)
            elif isinstance(target, ast.Attribute) and _is_attribute(node.value, target.attr):
                self._taken.add(id(target))
            elif (
                isinstance(target, ast.Attribute) and isinstance(node.value, ast.Constant) and node.value.value is None
            ):
                self._emptied.add(id(target))
            elif isinstance(target, ast.Attribute) and _is_argument(node.value, routine.node):
                self._brought.add(id(target))
            elif isinstance(target, ast.Name) and _is_copy(node.value):
                routine.copies[target.id] = node.value  # type: ignore[assignment]
        if is_global and not isinstance(node, ast.AugAssign):
            self._see_constant(node)

    def _see_call(self, call: ast.Call, routine: Routine) -> None:
        function = call.func
        if type(function) is ast.Attribute:
            name = function.attr
        elif type(function) is ast.Name:
            name = function.id
            if any(type(a) is ast.Constant and type(a.value) is int for a in call.args):
                self.given_numbers.add(name)
        else:
            return
        routine.called.add(name)
        if name in RESHAPERS:
            self._see_reshaped(function.value if type(function) is ast.Attribute else call, routine)
            for argument in call.args[: 2 if name == "swap_tensors" else 1]:  # torch.Tensor.t_(x)
                self._see_reshaped(argument, routine)
        elif name == "setattr" and len(call.args) == 3:
            self._see_set(call, routine)
        elif (name == "items" or name == "values") and type(function) is ast.Attribute:
            routine.handed.add(_last(function.value))
        elif name in _CHANGERS and type(function) is ast.Attribute and type(function.value) is ast.Name:
            self._see_changed(function.value.id, routine)
        elif name in _CHANGERS and type(function) is ast.Attribute:
            self._see_refilled(function.value, routine)
        if name in _SUPPLIERS:
            routine.suppliers.append(call)
        is_dim = type(function) is ast.Attribute and (
            (name in DIM_HINTS and _last(function.value) in self.decided)
            or (name == "dims" and _last(function.value) == "export")
        )
        if name in self.decided or is_dim or (name == "reshape" and _is_sized_by_number(call, routine.node)):
            self._add_site(call, routine)

    def _see_set(self, call: ast.Call, routine: Routine) -> None:
        """`setattr(self, "name", value)`."""
        match call.args:
            case [ast.Name(id="self"), ast.Constant(value=str() as name), _]:
                self.stored.setdefault(id(routine.owner), set()).add(name)
                self.binders.setdefault(name, set()).add(id(routine.node))
                self.elusive.add(name)
            case [_, ast.Constant(value=str() as name), _]:
                self._see_assigned(name, routine)
                self.made.add(name)

    def _see_statement(self, node: ast.expr, routine: Routine) -> None:
        """`x.reshape(-1).copy_(y)`, `init.zeros_(x.flatten())`, `torch.add(a, b, out=x.reshape(-1))`: no use of what
        comes back."""
        if not isinstance(node, ast.Call):
            return
        if isinstance(node.func, ast.Attribute) and node.func.attr[-1] == "_":
            self._see_written(node.func.value, routine)
            for argument in node.args[:1]:
                self._see_written(argument, routine)
        for keyword in node.keywords:
            if keyword.arg == "out":
                self._see_written(keyword.value, routine)

    def _see_written(self, node: ast.expr, routine: Routine) -> None:
        while True:
            if isinstance(node, ast.Call):
                if _is_copy(node) and node not in routine.temporaries:
                    routine.temporaries.append(node)
                    self._add_site(node, routine)
                node = node.func
            elif isinstance(node, ast.Attribute | ast.Subscript):
                node = node.value
            else:
                if isinstance(node, ast.Name):
                    routine.written.setdefault(node.id, set()).add(id(node))
                return

    def see_unread_copies(self) -> None:
        """`flat = x.reshape(-1)` where `flat` is written and not mentioned otherwise."""
        for routine in self.routines:
            for name in routine.copies.keys() & routine.written.keys() if routine.parent else ():
                seen = [n for n in ast.walk(routine.node) if isinstance(n, ast.Name) and n.id == name]
                if len([n for n in seen if id(n) not in routine.written[name]]) == 1:
                    routine.temporaries.append(routine.copies[name])
                    self._add_site(routine.copies[name], routine)

    def _add_site(self, call: ast.Call, routine: Routine) -> None:
        if id(call) not in self.sites:
            self.sites.add(id(call))
            routine.sites.append(call)

    def _enter(self, node: FunctionNode, routine: Routine, owner: ast.ClassDef | None) -> Routine:
        name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        prefix = f"{owner.name}." if owner else f"{routine.name}." if routine.name else ""
        entered = Routine(node, prefix + name, owner, routine)
        if not isinstance(node, ast.Lambda) and routine is self.routines[0] and owner is None:
            self.functions.setdefault(name, []).append(node)
        self.routines.append(entered)
        routine.children.append(entered)
        return entered

    def _see_import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.partition(".")[0]
                self._add_import(name, alias.name if alias.asname else name, node)
            else:
                module = self._absolute(node)
                if alias.name == "*":
                    self.stars.append(module)
                else:
                    whole = f"{module}.{alias.name}" if module else alias.name
                    self._add_import(alias.asname or alias.name, whole, node)

    def _add_import(self, name: str, whole: str, node: ast.stmt) -> None:
        """The last import of the module itself counts, else the first of the others.  They come last first."""
        if name in self._settled:
            return
        self.imports[name] = whole
        if id(node) in self._direct:
            self._settled.add(name)

    def _absolute(self, node: ast.ImportFrom) -> str:
        """The module, from the folder that holds the outermost package."""
        if not node.level:
            return node.module or ""
        if self._packages is None:
            self._packages = package_of(self._path)[1]
        inside = len(self._packages) - node.level + 1
        if inside < 0:
            return "." * node.level + (node.module or "")
        return ".".join(filter(None, (*self._packages[:inside], node.module)))

    def _see_constant(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            values = (
                node.value.elts if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) else [node.value]
            )
            for i, name in enumerate(names):
                if isinstance(name, ast.Name):
                    self.bound[name.id] = self.bound.get(name.id, 0) + 1
                    value = values[i] if len(values) == len(names) else None
                    if value is not None:
                        self.constants[name.id] = value


def _defined(
    tree: ast.Module,
    functions: Mapping[str, list[ast.FunctionDef | ast.AsyncFunctionDef]],
    bound: Mapping[str, int],
) -> Mapping[str, Sequence[ast.FunctionDef | ast.AsyncFunctionDef]]:
    """By name, the functions that a call of it may run: the last one, and those in branches behind it."""
    direct = set(map(id, tree.body))
    found: dict[str, Sequence[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
    for name, nodes in functions.items():
        if name in bound:
            continue  # `f = decorated(f)`
        in_order = sorted((n for n in nodes if not _is_overload(n)), key=lambda node: node.lineno)
        last = max((i for i, node in enumerate(in_order) if id(node) in direct), default=0)
        if in_order:
            found[name] = in_order[last:]
    return found


def _is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(dotted(decorator).rpartition(".")[2] == "overload" for decorator in node.decorator_list)


def _subclasses(classes: Mapping[str, ast.ClassDef]) -> Mapping[int, Sequence[ast.ClassDef]]:
    found: dict[int, list[ast.ClassDef]] = {}
    for node in classes.values():
        queue, seen = list(node.bases), {node.name}
        while queue:
            base = queue.pop()
            known = classes.get(base.id) if isinstance(base, ast.Name) and base.id not in seen else None
            if known is not None:
                seen.add(known.name)
                found.setdefault(id(known), []).append(node)
                queue += known.bases
    return found


def _is_attribute(node: ast.expr | None, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name


def _is_argument(node: ast.expr | None, scope: Scope) -> bool:
    """`new`, or `new.bias`, of a function that is given it."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and not isinstance(scope, ast.Module) and node.id in _parameters(scope) - {"self"}


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _parameters(node: FunctionNode) -> set[str]:
    return {argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}


def _renamed_imports(tree: ast.Module) -> frozenset[str]:
    """`D` of `from torch.export import Dim as D`; `dims`, which other things are called as well."""
    return frozenset(
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (alias.asname and alias.name in _RENAMED) or (alias.name == "dims" and (node.module or "") in _EXPORTERS)
    )


def _is_copy(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in COPIES


def _last(node: ast.expr) -> str:
    """`Dim` of `torch.export.Dim`; empty for what is no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def first_name(node: ast.AST) -> str:
    """The name that a chain of calls, attributes and subscripts starts with."""
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_sized_by_number(call: ast.Call, scope: Scope) -> bool:
    """Does its target begin with a number above 1, or hold a name that looks like one: `BATCH`, `self.batch_size`?"""
    given = call.args or [k.value for k in call.keywords if k.arg == "shape"]
    items = given[0].elts if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List) else given
    for i, item in enumerate(items):
        match item:
            case ast.Constant(value=int() as number) if i == 0 and number > 1:
                return True
            case ast.Attribute(attr=name) if "batch" in name.lower():
                return True
            case ast.Name(id=name) if name.isupper() or name in numbers_by_default(scope):
                return True
    return False


def numbers_by_default(scope: Scope) -> dict[str, int]:
    """Parameters whose default is a number."""
    if isinstance(scope, ast.Module):
        return {}
    arguments = scope.args
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return {
        argument.arg: default.value
        for argument, default in pairs
        if isinstance(default, ast.Constant) and type(default.value) is int
    }


_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_HANDING = frozenset(
    {
        ast.AnnAssign, ast.Assign, ast.For, ast.IfExp, ast.NamedExpr, ast.Return, ast.Subscript, ast.comprehension,
        ast.keyword,
    }
)  # fmt: skip
"""Kinds of nodes whose value may be a function that is handed on."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SEEN = frozenset(
    {
        *_ASSIGNMENTS,
        *_SCOPES,
        *TRIES,
        ast.With,
        ast.AsyncWith,
        ast.Call,
        ast.Attribute,
        ast.ClassDef,
        ast.Import,
        ast.ImportFrom,
        ast.Expr,
        ast.Yield,
        ast.YieldFrom,
        ast.Global,
        ast.Nonlocal,
        ast.NamedExpr,
    }
)
"""Kinds of nodes that tell something by themselves."""


_LEAVES = frozenset({type(None), str, int, bool, ast.Name, ast.Constant, ast.Load, ast.Store})


_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


def fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields in which nodes of interest can be."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(name for name in kind._fields if name not in _PLAIN)
    return _FIELDS[kind]


_PLAIN = frozenset(
    {
        "ctx",
        "op",
        "ops",
        "id",
        "attr",
        "arg",
        "kind",
        "type_comment",
        "name",
        "level",
        "returns",
        "annotation",
        "type_params",
        "type_ignores",
    }
)


def _changes_property(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """`@name.setter`, `@name.deleter`."""
    return any(isinstance(d, ast.Attribute) and d.attr in ("setter", "deleter") for d in method.decorator_list)
