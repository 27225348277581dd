"""Parameters of a function: bound to a call's arguments, or taken as whatever a caller may pass."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from codemod.layout.frame import Frame
from codemod.layout.layout import World, unknown
from codemod.layout.origin import Origin, OriginKind
from codemod.layout.program import FunctionNode, dotted
from codemod.layout.size import Atom, Size
from codemod.layout.value import (
    Choice,
    Class,
    Constant,
    Foreign,
    Function,
    Instance,
    Number,
    Repeated,
    Several,
    Tensor,
    Unknown,
    Value,
    choose,
    passed,
)
from codemod.layout.value import Mapping as Fieldwise

_TENSORS = frozenset(
    {
        "Tensor", "FloatTensor", "LongTensor", "BoolTensor", "IntTensor", "HalfTensor", "Parameter", "Variable",
        "OptTensor",  # of torch_geometric.typing
    }
)  # fmt: skip
_NOT_TENSORS = frozenset(
    {"str", "float", "bool", "bytes", "dtype", "device", "ndarray", "DataFrame", "Series", "Path", "memoryview"}
)


_SHARED = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
"""Defaults that are one object for all calls, which a call may change."""


def bind_arguments(
    node: FunctionNode, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame
) -> dict[str, Value] | None:
    """By parameter name; None where the call does not fit the function."""
    arguments = node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if len(positional) > len(names) and arguments.vararg is None:
        return None
    bound = dict(zip(names, positional, strict=False))
    if arguments.vararg is not None:
        bound[arguments.vararg.arg] = Several(tuple(positional[len(names) :]))
    known = {*names, *(argument.arg for argument in arguments.kwonlyargs)}
    extra = {name: value for name, value in keywords.items() if name not in known}
    if extra and arguments.kwarg is None:
        return None
    bound |= {name: value for name, value in keywords.items() if name in known}
    if arguments.kwarg is not None:
        bound[arguments.kwarg.arg] = Fieldwise(tuple(extra.items()))
    for name, default in _defaults(node):
        if name not in bound:
            bound[name] = frame.value(default)
            if isinstance(default, _SHARED) and _is_changed(node, name):
                bound[name] = Unknown(f"the default of `{name}`, which calls share", default.lineno)
    defaults = dict(_defaults(node))
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        value = bound.get(argument.arg)
        if not isinstance(value, Unknown | Choice):
            continue
        kind = _annotated(argument.annotation)
        if isinstance(value, Choice) and kind in _NOT_TENSORS:
            told = ((_foreign(kind) if isinstance(v, Unknown) else v, when) for v, when in value.options)
            bound[argument.arg] = choose(told)
        elif isinstance(value, Unknown) and (kind or _is_integer(defaults.get(argument.arg))):
            bound[argument.arg] = _as_annotated(value, kind or "int", f"{frame.key}{argument.arg}")
    missing = [name for name in known if name not in bound]
    for name in missing:
        bound[name] = Unknown(f"the argument `{name}`", name=f"{frame.key}{name}")
    return bound


def _is_changed(function: FunctionNode, name: str) -> bool:
    """`acc.append(x)`, `acc[0] = x` somewhere in the function."""
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            changed: ast.expr | None = node.value
        else:
            changed = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        if isinstance(changed, ast.Name) and changed.id == name:
            return True
    return False


def _is_integer(default: ast.expr | None) -> bool:
    return isinstance(default, ast.Constant) and type(default.value) is int


def _as_annotated(value: Unknown, kind: str, label: str) -> Value:
    """A value that is not followed, bound to a parameter whose annotation says that it is no tensor."""
    if kind == "int":
        return Number(value.number if value.number is not None else Size.of(Atom(value.name or label)))
    return _foreign(kind) if kind in _NOT_TENSORS else value


def _foreign(kind: str) -> Foreign:
    return Foreign("dtype" if kind == "dtype" else "a numpy array" if kind == "ndarray" else kind)


def left_open(function: Function, positional: Sequence[Value], keywords: Mapping[str, Value]) -> dict[str, Value]:
    """What a `*` or `**` of the call may give to parameters that have a default."""
    arguments = function.node.args
    given = len(positional) + (function.bound is not None)
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)][given:] + [a.arg for a in arguments.kwonlyargs]
    return {name: Unknown(f"the argument `{name}`") for name in names if name not in keywords}


def taken(function: Function) -> int:
    """How many arguments it must be given by position."""
    arguments = function.node.args
    plain = len(arguments.posonlyargs) + len(arguments.args) - (function.bound is not None)
    return max(plain - len(arguments.defaults), 0)


def _defaults(node: FunctionNode) -> list[tuple[str, ast.expr]]:
    arguments = node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    found = list(zip(names[len(names) - len(arguments.defaults) :], arguments.defaults, strict=True))
    found += [(a.arg, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    return found


def opaque_arguments(
    node: FunctionNode, name: str, owner: Class | None, bound: Value | None, frame: Frame
) -> dict[str, Value]:
    """Whatever a caller may pass: tensors of any layout, sizes of any value."""
    arguments = node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = dict(_defaults(node))
    is_gradient = owner is not None and getattr(node, "name", "") == "backward" and _is_autograd(owner, frame)
    found: dict[str, Value] = {}
    for argument in (*plain, *arguments.kwonlyargs):
        found[argument.arg] = _opaque(
            argument, f"{name}.{argument.arg}", defaults.get(argument.arg), is_gradient, frame
        )
    if plain and (first := _receiver(node, owner, bound)) is not None:
        found[plain[0].arg] = first
    if arguments.vararg is not None:
        found[arguments.vararg.arg] = Repeated(
            _tensor(arguments.vararg.arg, f"{name}.{arguments.vararg.arg}", is_gradient, False)
        )
    if arguments.kwarg is not None:
        found[arguments.kwarg.arg] = Unknown(
            f"the argument `{arguments.kwarg.arg}`", name=f"{name}.{arguments.kwarg.arg}"
        )
    return found


def _receiver(node: FunctionNode, owner: Class | None, bound: Value | None) -> Value | None:
    if bound is not None:
        return bound
    if owner is None or isinstance(node, ast.Lambda):
        return None
    decorators = {dotted(decorator) for decorator in node.decorator_list}
    if "staticmethod" in decorators:
        return Unknown("a context", name="ctx") if node.args.args and node.args.args[0].arg == "ctx" else None
    return owner if "classmethod" in decorators else Instance(owner, "self")


def _is_autograd(owner: Class, frame: Frame) -> bool:
    return any(
        base.endswith("autograd.Function") or base == "Function" for base in frame.program.base_names(owner.node)
    )


def _opaque(argument: ast.arg, label: str, default: ast.expr | None, is_gradient: bool, frame: Frame) -> Value:
    kind = _annotated(argument.annotation)
    if kind == "int":
        return Number(Size.of(Atom(label)))
    if kind in _NOT_TENSORS:
        return _foreign(kind)
    if kind == "Tensor":
        return _tensor(argument.arg, label, is_gradient, True)
    if kind in frame.program.classes:
        return Instance(Class(frame.program.classes[kind], kind, frame.program), label)
    if kind:
        return Unknown(f"what `{argument.arg}` is ({kind})", argument.lineno, label, given=passed(argument.arg))
    if isinstance(default, ast.Constant) and default.value is not None:
        if _is_integer(default):
            return Number(Size.of(Atom(label)))
        return Unknown(f"what `{argument.arg}` is", argument.lineno, label, given=passed(argument.arg))
    if isinstance(default, ast.Call):
        value = frame.value(default)
        if isinstance(value, Instance):
            return Instance(value.of, label)
    return _tensor(argument.arg, label, is_gradient, False)


def _annotated(annotation: ast.expr | None) -> str:
    """Last name of the annotation; "Tensor" for an optional one, empty without."""
    match annotation:
        case None:
            return ""
        case ast.Constant(value=str() as text):
            try:
                return _annotated(ast.parse(text, mode="eval").body)
            except SyntaxError:
                return text
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            names = {_annotated(left), _annotated(right)} - {"None"}
            return "Tensor" if "Tensor" in names else names.pop() if len(names) == 1 else "a union"
        case ast.Subscript(value=base, slice=inner) if dotted(base).rpartition(".")[2] == "Optional":
            return _annotated(inner)
        case ast.Subscript(value=base):
            last = dotted(base).rpartition(".")[2]
            return "Tensor" if last in _JAXTYPING else last
        case ast.Constant(value=None):
            return "None"
        case _:
            last = dotted(annotation).rpartition(".")[2]
            return "Tensor" if last in _TENSORS else last


_JAXTYPING = frozenset({"Float", "Int", "Bool", "Shaped", "Inexact", "Num", "Integer", "Complex", "UInt"})


def _tensor(name: str, label: str, is_gradient: bool, is_certain: bool) -> Tensor:
    if is_gradient:
        origin = Origin(OriginKind.GRADIENT, f"`{name}` is a gradient, which may be expanded or permuted")
        layout = unknown(label, (origin,), is_free=True)
        return Tensor(layout, layout, storages=frozenset({label}))
    origin = Origin(OriginKind.CALLER, passed(name))
    number = None if is_certain else Size.of(Atom(label))
    return Tensor(
        unknown(label, world=World.DEFAULT, is_free=True),
        unknown(label, (origin,), is_free=True),
        storages=frozenset({label}),
        number=number,
    )


__all__ = ["Constant", "bind_arguments", "opaque_arguments"]
