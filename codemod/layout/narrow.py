"""What a test says of the values in it."""

from __future__ import annotations

import ast
from dataclasses import replace

from codemod.layout.frame import Frame
from codemod.layout.layout import Layout, restrided
from codemod.layout.ops.lift import as_size
from codemod.layout.program import dotted
from codemod.layout.size import Atom, Size
from codemod.layout.state import State
from codemod.layout.value import (
    Class,
    Instance,
    Number,
    Shape,
    Tensor,
    Unknown,
    Value,
    choose,
    each,
    is_given,
    options,
    without_none,
)


def narrowed(state: State, test: ast.expr, is_true: bool, frame: Frame) -> State:
    """The state where the test came out so; `state` itself is changed."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return narrowed(state, inner, not is_true, frame)
        case ast.BoolOp(op=ast.And(), values=parts) if is_true:
            for part in parts:
                narrowed(state, part, True, frame)
        case ast.BoolOp(op=ast.Or(), values=parts) if not is_true:
            for part in parts:
                narrowed(state, part, False, frame)
        case ast.Call(func=ast.Attribute(value=receiver, attr="is_contiguous"), args=[], keywords=[]) if is_true:
            _change(state, receiver, _as_contiguous)
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
            if isinstance(op, ast.IsNot) is is_true:
                _change(state, left, without_none)
        case ast.Compare(
            left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[ast.Constant(value=int() as rank)]
        ):
            if isinstance(op, ast.Eq) is is_true:
                _show_rank(state, left, rank)
        case ast.Compare(
            left=left,
            ops=[ast.Eq() | ast.NotEq() as op],
            comparators=[ast.Tuple(elts=sizes) | ast.List(elts=sizes)],
        ):
            if isinstance(op, ast.Eq) is is_true and not any(isinstance(size, ast.Starred) for size in sizes):
                _show_sizes(state, left, [as_size(frame.value(size)) for size in sizes])
        case ast.Call(func=ast.Name(id="isinstance"), args=[receiver, ast.Name() as kind], keywords=[]) if is_true:
            of = frame.value(kind)
            if isinstance(of, Class) and not any(n.endswith("Tensor") for n in of.program.base_names(of.node)):
                _change(state, receiver, lambda value: _as_instance(value, of))
        case ast.Name() | ast.Attribute() if is_true:
            _change(state, test, without_none)
    return state


def _as_instance(value: Value, of: Class) -> Value:
    """An argument as it came, shown to be an object of a class of the user's."""
    if isinstance(value, Unknown) and value.given and value.name:
        return Instance(of, value.name)
    if isinstance(value, Tensor) and value.number is not None and is_given(value):
        return Instance(of, str(value.number))
    return value


def _change(state: State, node: ast.expr, change: object) -> None:
    name = dotted(node)
    value = state.names.get(name) if name else None
    if value is not None:
        state.names[name] = change(value)  # type: ignore[operator]


def _as_contiguous(value: Value) -> Value:
    return choose((_contiguous(option), when) for option, when in options(value))


def _contiguous(value: Value) -> Value:
    if not isinstance(value, Tensor):
        return value
    return replace(value, default=restrided(value.default), any=restrided(value.any), history=None)


def _show_rank(state: State, node: ast.expr, rank: int) -> None:
    """`x.dim() == 4`, `x.ndim == 4`, `len(x.shape) == 4`."""
    match node:
        case ast.Call(func=ast.Attribute(value=receiver, attr="dim" | "ndimension"), args=[]):
            pass
        case ast.Attribute(value=receiver, attr="ndim"):
            pass
        case ast.Call(func=ast.Name(id="len"), args=[ast.Attribute(value=receiver, attr="shape")]):
            pass
        case ast.Call(
            func=ast.Name(id="len"), args=[ast.Call(func=ast.Attribute(value=receiver, attr="size"), args=[])]
        ):
            pass
        case _:
            return
    for owner in owners(state.names.get(dotted(receiver))):
        state.ranks[owner] = rank


def shaped(node: ast.expr) -> ast.expr | None:
    """`x` of `x.shape`, `x.size()`, `list(x.shape)` and `tuple(x.size())`."""
    match node:
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner]):
            return shaped(inner)
        case ast.Attribute(value=receiver, attr="shape"):
            return receiver
        case ast.Call(func=ast.Attribute(value=receiver, attr="size"), args=[]):
            return receiver
        case _:
            return None


def _show_sizes(state: State, node: ast.expr, sizes: list[Size]) -> None:
    """`x.shape == (b * h, t, c)`; a size of x that a name stands for keeps it."""
    receiver = shaped(node)
    if receiver is not None:
        named = {atom for value in state.names.values() for size in _read_sizes(value) for atom in size.atoms}
        _change(state, receiver, lambda value: each(value, lambda option: _sized(option, sizes, named)))


def _read_sizes(value: Value) -> list[Size]:
    match value:
        case Number(size):
            return [size]
        case Shape(items):
            return [item for item in items if isinstance(item, Size)]
        case _:
            return []


def _sized(value: Value, sizes: list[Size], named: set[Atom]) -> Value:
    if not isinstance(value, Tensor):
        return value
    default = _with_sizes(value.default, sizes, named)
    return replace(
        value, default=default, any=default if value.any is value.default else _with_sizes(value.any, sizes, named)
    )


def _with_sizes(layout: Layout, sizes: list[Size], named: set[Atom]) -> Layout:
    layout = layout.of_rank(len(sizes))
    if layout.rank != len(sizes):
        return layout
    values: dict[Atom, Size] = {}
    for dim, size in zip(layout.dims, sizes, strict=True):
        (atom, *others) = dim.size.atoms or (None,)
        if atom is None or others or dim.size != Size.of(atom) or size.terms is None or atom in named | size.atoms:
            continue
        values.setdefault(atom, size)
    if any(not size.atoms.isdisjoint(values) for size in values.values()):
        return layout
    return Layout(tuple(replace(d, size=d.size.at(values), stride=d.stride.at(values)) for d in layout.dims))


def owners(value: Value | None) -> list[str]:
    """Names of the tensor's packs that stand for all of its dims."""
    found = []
    for option, _ in options(value) if value is not None else ():
        if isinstance(option, Unknown) and option.name:
            found.append(option.name)
        if isinstance(option, Tensor) and len(option.default.dims) == 1:
            pack = option.default.dims[0].pack
            if pack is not None and not pack.front and not pack.back:
                found.append(pack.owner)
    return found
