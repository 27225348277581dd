"""Which functions of a file Inductor compiles: those that a `torch.compile` or an AOTInductor package of it reaches.

Inductor chooses the strides of what it computes.  Of another backend, of options, and of a file that mentions
`layout_optimization`, nothing is said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from codemod.finding import Reason
from codemod.layout.program import Program, Routine, dotted

_COMPILERS = frozenset({"torch.compile", "torch._inductor.aoti_compile_and_package"})
_KEPT_OUT = frozenset({"torch.compiler.disable", "torch._dynamo.disable", "torch.compiler.disallow_in_graph"})
_ENTRIES = ("forward", "__call__")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def survey_compiled(program: Program, tree: ast.Module) -> Mapping[str, tuple[Reason, ...]]:
    """The first of them that reaches a function, by the function's qualified name."""
    found: dict[str, tuple[Reason, ...]] = {}
    for line, reach in sorted(_roots(program), key=lambda root: root[0]):
        reach.spread()
        for routine in reach.run:
            found.setdefault(routine.name, (Reason("compiled by Inductor", line=line),))
    return {} if found and _names_layout_optimization(tree) else found


def _names_layout_optimization(tree: ast.Module) -> bool:
    """Does the file set it anywhere, so that convolutions may be left as they are?"""
    return any(
        (isinstance(node, ast.Attribute) and node.attr == "layout_optimization")
        or (isinstance(node, ast.keyword) and node.arg == "layout_optimization")
        or (
            isinstance(node, ast.Constant)
            and node.value in ("layout_optimization", "TORCHINDUCTOR_LAYOUT_OPTIMIZATION")
        )
        for node in ast.walk(tree)
    )


@dataclass(slots=True)
class _Reach:
    """What runs once the first of `run` does: functions by their names, and modules by being made."""

    program: Program
    by_node: Mapping[int, Routine]
    run: list[Routine] = field(default_factory=list)
    known: list[ast.ClassDef] = field(default_factory=list)
    """Classes whose methods may be called by their names."""

    def spread(self) -> None:
        for routine in self.run:  # grows on the way
            if routine.owner is not None:
                self._know(routine.owner)
            self.enter(child.node for child in routine.children)
            for name in sorted(routine.called):
                if name in self.program.functions:
                    self.enter([self.program.functions[name]])
                if name in self.program.classes:
                    self.make(self.program.classes[name])
            for owner in self.known:
                methods = self.program.methods(owner)
                self.enter(methods[name] for name in sorted(routine.called & methods.keys()))

    def make(self, owner: ast.ClassDef) -> None:
        """An object of it may be called."""
        methods = self.program.methods(owner)
        self.enter(methods[name] for name in _ENTRIES if name in methods)
        self._know(owner)

    def _know(self, owner: ast.ClassDef) -> None:
        if owner in self.known:
            return
        self.known.append(owner)
        init = self.by_node.get(id(self.program.methods(owner).get("__init__")))
        for name in sorted(init.called & self.program.classes.keys()) if init is not None else ():
            self.make(self.program.classes[name])

    def enter(self, nodes: Iterable[ast.AST]) -> None:
        """Functions that run as well, unless they are kept out of graphs."""
        found = (self.by_node[id(node)] for node in nodes if id(node) in self.by_node)
        self.run += [r for r in found if r not in self.run and not _is_decorated(r, _KEPT_OUT, self.program)]


def _roots(program: Program) -> Iterator[tuple[int, _Reach]]:
    """What is compiled, with the line that says so."""
    by_node = {id(routine.node): routine for routine in program.routines}
    for routine in program.routines:
        for decorator in _decorators(routine):
            if _is_inductors(decorator, program):
                yield decorator.lineno, _Reach(program, by_node, [routine])
        for call in routine.suppliers:
            compiled = _compiled_by(call, program)
            if compiled is not None:
                reach = _Reach(program, by_node)
                _begin(reach, compiled, routine)
                yield call.lineno, reach


def _decorators(routine: Routine) -> list[ast.expr]:
    node = routine.node
    return node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []


def _is_decorated(routine: Routine, names: frozenset[str], program: Program) -> bool:
    return any(program.resolve(dotted(d.func if isinstance(d, ast.Call) else d)) in names for d in _decorators(routine))


def _is_inductors(decorator: ast.expr, program: Program) -> bool:
    call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
    return program.resolve(dotted(call.func)) == "torch.compile" and not call.args and _chooses_inductor(call)


def _compiled_by(call: ast.Call, program: Program) -> ast.expr | None:
    """The model or function that the call hands to Inductor."""
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "model"), None)
    if program.resolve(dotted(call.func)) in _COMPILERS:
        return given if _chooses_inductor(call) else None
    if isinstance(call.func, ast.Attribute) and call.func.attr == "compile" and not call.args:
        return call.func.value if _chooses_inductor(call) else None  # `net.compile()`
    return None


def _chooses_inductor(call: ast.Call) -> bool:
    for keyword in call.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else ...
        if keyword.arg is None or keyword.arg == "options":
            return False
        if (keyword.arg == "backend" and value != "inductor") or (keyword.arg == "disable" and value is not False):
            return False
    return True


def _begin(reach: _Reach, compiled: ast.expr, routine: Routine) -> None:
    """Enter what the expression is: a function, a method of `self`, or a model that the file makes."""
    program = reach.program
    node = _behind(compiled, routine, program)
    name = dotted(node)
    if isinstance(node, ast.Call):
        if dotted(node.func) in program.classes:
            reach.make(program.classes[dotted(node.func)])
    elif isinstance(node, ast.Lambda):
        reach.enter([node])
    elif name in program.functions:
        reach.enter([program.functions[name]])
    elif name.startswith("self.") and routine.owner is not None:
        methods = program.methods(routine.owner)
        reach.enter(methods[known] for known in (name.removeprefix("self."),) if known in methods)


def _behind(node: ast.expr, routine: Routine, program: Program) -> ast.expr:
    """`Net()` for `model` after `model = Net().eval()`, and for `torch.export.export(model, args)`."""
    for _ in range(6):
        match node:
            case ast.Name():
                scopes = (routine.node, program.routines[0].node)
                bound = next((value for scope in scopes if (value := _bound_above(node, scope)) is not None), None)
            case ast.Call(args=[first, *_]) if program.resolve(dotted(node.func)) == "torch.export.export":
                bound = first
            case ast.Call(func=ast.Attribute(value=model)):
                bound = model
            case _:
                bound = None
        if bound is None:
            break
        node = bound
    return node


def _bound_above(node: ast.expr, scope: ast.AST) -> ast.expr | None:
    """The value of the last plain assignment to the name above its mention, in that scope alone."""
    if not isinstance(node, ast.Name):
        return None
    values = [
        statement.value
        for statement in _statements(scope)
        if isinstance(statement, ast.Assign)
        and statement.lineno < node.lineno
        and any(isinstance(target, ast.Name) and target.id == node.id for target in statement.targets)
    ]
    return max(values, key=lambda value: value.lineno, default=None)


def _statements(scope: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case) and not isinstance(child, _SCOPES):
            yield from _statements(child)
