"""Members of the user's classes: methods, and what the attributes of an object are, wherever they are bound."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Namespace
from dataclasses import replace
from typing import Protocol

from codemod.layout.frame import Frame
from codemod.layout.parameters import bind_arguments, opaque_arguments
from codemod.layout.program import FunctionNode, Program, dotted
from codemod.layout.relevance import Body, Slice
from codemod.layout.state import State
from codemod.layout.value import (
    DICT,
    Choice,
    Class,
    Foreign,
    Function,
    Instance,
    Mapping,
    Module,
    Repeated,
    Several,
    Tensor,
    Unknown,
    Value,
    choose,
    fewer,
    forgotten,
    is_alike,
    options,
)

BINDERS_AT_MOST = 4
"""Methods that bind an attribute; of one that more do nothing is known."""

_OF_CALLS = frozenset({"forward", "__call__"})
_OF_FORWARD = frozenset({"_conv_forward", "_output_padding"})
"""Methods that the `forward` of torch's modules goes through."""
_PLAIN_BASES = frozenset({"object", "torch.nn.Module", "abc.ABC", "typing.Generic"})


class Runner(Protocol):
    """What runs the statements that bind them."""

    is_deep: bool
    """Are other files looked into?"""

    def new_frame(
        self, state: State, key: str, name: str, active: tuple[int, ...], program: Program | None = None
    ) -> Frame: ...

    def run(self, body: Sequence[ast.stmt], frame: Frame) -> bool: ...

    def body_of(self, node: FunctionNode | ast.Module) -> Body: ...

    def defined(self, name: str, importer: Program) -> Value | None: ...


Method = ast.FunctionDef | ast.AsyncFunctionDef


class Members:
    """What was found is kept."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._attributes: dict[tuple[Instance, str], Value | None] = {}
        self._given: dict[tuple[int, Instance], Namespace[str, Value]] = {}
        """Arguments of constructors, by the id of `__init__` and the object."""
        self._class_levels: dict[tuple[int, str], Namespace[str, Value]] = {}
        self._lineages: dict[int, Sequence[Class]] = {}
        self._methods: dict[tuple[int, str], Function | None] = {}

    def method(self, of: Class, name: str) -> Function | None:
        key = (id(of.node), name)
        if key not in self._methods:
            owners = ((base, base.program.own_methods(base.node).get(name)) for base in self.lineage(of))
            self._methods[key] = next(
                (
                    Function(node, f"{of.qualified_name}.{name}", base.program)
                    for base, node in owners
                    if node is not None
                ),
                None,
            )
        return self._methods[key]

    def method_after(self, of: Class, within: int, name: str) -> Function | None:
        """What `super().name` is of an object of the class, in its method with this id.

        None where a base that is not followed, or the order of bases of a subclass, may bring another.
        """
        program = of.program
        below = (Class(node, node.name, program) for node in program.overridden.get(id(of.node), ()))
        found = [self._after(line, within, name) for line in map(self.lineage, (of, *below))]
        own = found[0]
        return own if own is not None and all(f is not None and f.node is own.node for f in found) else None

    def _after(self, line: Sequence[Class], within: int, name: str) -> Function | None:
        owned = [base.program.own_methods(base.node) for base in line]
        owner = next((i for i, own in enumerate(owned) if within in map(id, own.values())), len(line))
        at = next((i for i in range(owner + 1, len(line)) if name in owned[i]), None)
        if at is None:
            return None
        if any(not _PLAIN_BASES.issuperset(self._outside(base)) for base in line[owner:at]):
            return None
        if any(base.program.binds(base.node, name) for base in line[: at + 1]):
            return None
        return Function(owned[at][name], f"{line[at].qualified_name}.{name}", line[at].program)

    def overriding(self, of: Class, name: str) -> list[Function]:
        program = of.program
        own = self.method(of, name)
        found: list[Function] = []
        for node in program.overridden.get(id(of.node), ()):
            method = self.method(Class(node, node.name, program), name)
            if method is not None and method.node not in [f.node for f in (own, *found) if f is not None]:
                found.append(method)
        return found

    def lineage(self, of: Class) -> Sequence[Class]:
        """The class and those of its bases that the user defines, nearest first."""
        if id(of.node) not in self._lineages:
            self._lineages[id(of.node)] = [of]  # where it is its own base
            bases = list(self._bases(of))
            self._lineages[id(of.node)] = [of, *_merged([*(list(self.lineage(base)) for base in bases), bases])]
        return self._lineages[id(of.node)]

    def _bases(self, of: Class) -> Iterator[Class]:
        for node in of.node.bases:
            name = dotted(node)
            if name in of.program.classes:
                yield Class(of.program.classes[name], name, of.program)
            elif name.partition(".")[0] in of.program.imports:
                found = self._base(of.program.resolve(name), of)
                if isinstance(found, Class):
                    yield found

    def torch_module(self, of: Class, within: int) -> str | None:
        """The torch.nn module whose `forward` calls of the object run, or of `super()` in the method with this id.

        None where one of the user's comes first, and where another base may bring one.
        """
        line = self.lineage(of)
        methods = [base.program.own_methods(base.node) for base in line]
        at = next((i for i, own in enumerate(methods) if within in map(id, own.values())), -1)
        is_own = any(not _OF_CALLS.isdisjoint(own) for own in methods[at + 1 :])
        if is_own or any(not _OF_FORWARD.isdisjoint(own) for own in methods):
            return None
        outside = {name for base in line for name in self._outside(base)} - _PLAIN_BASES
        (name, *more) = outside or {""}
        return name if name.startswith("torch.nn.") and not more else None

    def _outside(self, of: Class) -> Iterator[str]:
        """Import paths of its bases that are not the user's, as far as files are looked into; empty for any other."""
        for node in of.node.bases:
            name = dotted(node)
            path = of.program.resolve(name)
            if name not in of.program.classes and not isinstance(self._base(path, of), Class):
                yield path

    def _base(self, path: str, of: Class) -> Value | None:
        return self._runner.defined(path, of.program) if self._runner.is_deep else None

    def attribute(self, of: Instance, name: str, frame: Frame) -> Value | None:
        key = (of, name)
        if key not in self._attributes:
            self._attributes[key] = None
            self._attributes[key] = self._read_attribute(of, name, frame)
        return self._attributes[key]

    def _read_attribute(self, of: Instance, name: str, frame: Frame) -> Value | None:
        """As the class nearest to the object's own leaves it: at class level, then in `__init__`, then anywhere."""
        program, classes = of.of.program, [of.of.node]
        if of.positional is None:
            classes += program.overridden.get(id(of.of.node), ())
        if name in program.handed_on:
            classes += program.classes.values()
        others = [node for node in classes[1:] if node is not of.of.node and program.binds(node, name)]
        own = self._of_lineage(of, name, frame)
        if not others:
            return own
        found = [own, *(self._of_lineage(replace(of, of=Class(n, n.name, program)), name, frame) for n in others)]
        label = f"{of.label}.{name}"
        missing = Unknown(f"what `{label}` is in a subclass", name=label)
        return choose((value or missing, frozenset()) for value in found)

    def _of_lineage(self, of: Instance, name: str, frame: Frame) -> Value | None:
        binding: list[tuple[Class, Method]] = []
        made = None
        for base in self.lineage(of.of):
            node = base.node
            if name in base.program.stored.get(id(node), ()):
                methods = self._binding_methods(base, name, frame)
                if methods is None:
                    return Unknown(f"what `{of.label}.{name}` is", name=f"{of.label}.{name}")
                binding += [(base, method) for method in methods]
            init = next((m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
            if init is not None and id(init) not in frame.active:
                made = self._initialised(init, of, base, name, frame)
            if made is None:
                made = self._class_level(base, of.label).get(name)
            if made is not None:
                break
        found = self._bound_by(binding, of, name, frame, made)
        if not found:
            return None
        return self._refilled(choose((value, frozenset()) for value in found), of, base, name)

    def _refilled(self, value: Value, of: Instance, base: Class, name: str) -> Value:
        """A list or dict of which more is known than what `base` puts there when it is made: others change it."""
        changing = base.program.refilled.get(name, set()) | of.of.program.refilled.get(name, set())
        changing = changing - {id(m) for m in base.node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"}
        if not changing or not any(_is_container(option) for option, _ in options(value)):
            return value
        label = f"{of.label}.{name}"
        return forgotten(value, f"what `{label}` holds, which is changed elsewhere", name=label)

    def is_managed(self, of: Class, name: str) -> bool:
        """Is what is bound to the attribute not what is read there: a property, a descriptor, a `__setattr__`?"""
        if self.method(of, name) is not None or self.method(of, "__setattr__") is not None:
            return True
        return any(_is_made_by_a_call(base.node, name) for base in self.lineage(of))

    def _binding_methods(self, base: Class, name: str, frame: Frame) -> Sequence[Method] | None:
        """Those other than `__init__` that bind it; None where they are not all known."""
        program = base.program
        binders = program.binders.get(name, ())
        binding = [r.node for r in program.routines if r.owner is base.node and id(r.node) in binders]
        methods = [method for method in program.own_methods(base.node).values() if method in binding]
        if name in program.elusive:
            return None
        if len(binding) > min(len(methods), BINDERS_AT_MOST) or any(id(method) in frame.active for method in methods):
            return None
        return methods

    def _bound_by(
        self, methods: Sequence[tuple[Class, Method]], of: Instance, name: str, frame: Frame, made: Value | None
    ) -> list[Value]:
        """As any of the methods leaves it, or `__init__`, after which it is as it was `made`."""

        def left_behind(before: Value) -> list[Value]:
            values = [self._initialised(method, of, base, name, frame, before) for base, method in methods]
            found = [option for value in values if value is not None for option, _ in options(value)]
            return [value for value in found if value is not before]

        label = f"{of.label}.{name}"
        found = [] if made is None else [made]
        bound = left_behind(Unknown(f"what `{label}` was before", name=label))
        if made is not None and _are_tensors([made]) and not _are_tensors(bound):
            known = _as_one([made, *left_behind(made)])
            if _are_tensors([known]) and all(is_alike(known, value) for value in left_behind(known)):
                return [known]
        return bound + found

    def _class_level(self, of: Class, label: str) -> Namespace[str, Value]:
        node = of.node
        key = (id(node), label)
        if key not in self._class_levels:
            frame = self._runner.new_frame(State(), f"{label}:", node.name, (), of.program)
            self._class_levels[key] = frame.state.names
            for statement in node.body:
                if isinstance(statement, ast.Assign) and not isinstance(statement.value, ast.Call | ast.Lambda):
                    self._runner.run([statement], frame)
                elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    name = statement.target.id
                    frame.state.bind(name, Unknown(f"what `{label}.{name}` is", name=f"{label}.{name}"))
        return self._class_levels[key]

    def _initialised(
        self,
        init: Method,
        of: Instance,
        base: Class,
        name: str,
        frame: Frame,
        before: Value | None = None,
    ) -> Value | None:
        """What `__init__`, or another method, binds `self.name` to; only the statements that bear on it are run.

        `before` is what it was until then.
        """
        own = (*init.args.posonlyargs, *init.args.args, ast.arg("self"))[0].arg
        body = self._runner.body_of(init)
        if not body.binds(f"{own}.{name}"):
            return None
        active = (*frame.active, id(init))
        inner = self._runner.new_frame(State(), f"{of.label}:", f"{base.node.name}.{init.name}", active, base.program)
        inner.base = len(active) - 1
        inner.owner = Class(base.node, base.node.name, base.program)
        inner.slice = Slice(body, wanted=frozenset({f"{own}.{name}"}))
        key = (id(init), of)
        if key not in self._given:
            self._given[key] = self._constructor_arguments(init, of, inner)
        for parameter, value in self._given[key].items():
            inner.state.bind(parameter, value)
        if before is not None:
            inner.state.bind(f"{own}.{name}", before)
        self._runner.run(init.body, inner)
        names = inner.state.names
        found = names.get(f"{of.label}.{name}", names.get(f"{own}.{name}"))
        return None if found is None else _settled(found, inner.state, own)

    def _constructor_arguments(self, init: Method, of: Instance, frame: Frame) -> Namespace[str, Value]:
        this = Instance(of.of, of.label)
        constructor = self.method(of.of, "__init__")
        if of.positional is not None and constructor is not None and constructor.node is init:
            bound = bind_arguments(init, [this, *of.positional], dict(of.keywords), frame)
            if bound is not None:
                return bound
        return opaque_arguments(init, f"{of.label}.{init.name}", frame.owner, this, frame)


def _merged(lines: Sequence[list[Class]]) -> list[Class]:
    """The order in which Python looks attributes up; where there is none, as they come.

    Source: https://docs.python.org/3/howto/mro.html
    """
    found: list[Class] = []
    left = [line for line in lines if line]
    while left:
        heads = [line[0] for line in left]
        head = next((head for head in heads if not any(head in line[1:] for line in left)), heads[0])
        found.append(head)
        left = [rest for line in left if (rest := [of for of in line if of != head])]
    return found


def _is_container(value: Value) -> bool:
    if isinstance(value, Module):
        return value.name.endswith(("Sequential", "ModuleList", "ModuleDict"))
    return isinstance(value, Several | Repeated | Mapping) or (isinstance(value, Foreign) and value.kind == DICT)


def _is_made_by_a_call(node: ast.ClassDef, name: str) -> bool:
    """`x = Descriptor()` at class level."""
    return any(
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Call)
        and any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
        for statement in node.body
    )


def _settled(value: Value, state: State, own: str) -> Value:
    """The value with its tests, and those of what it was made with, as other methods may ask them again."""
    match value:
        case Choice(alternatives, name):
            told = choose(
                (_settled(option, state, own), frozenset(state.settled(c, own) for c in when))
                for option, when in alternatives
            )
            return replace(told, name=name) if isinstance(told, Choice) else told
        case Module(positional=items) if any(isinstance(item, Choice | Module) for item in items):
            return replace(value, positional=tuple(_settled(item, state, own) for item in items))
        case _:
            return value


def _are_tensors(values: Sequence[Value]) -> bool:
    return all(isinstance(option, Tensor) for value in values for option, _ in options(value))


def _as_one(values: Sequence[Value]) -> Value:
    """What holds for all of them: sizes in which they differ may be any."""
    return fewer(choose((value, frozenset()) for value in values), lambda tensor: True)
