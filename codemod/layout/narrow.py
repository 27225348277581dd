"""What a test says of the values in it."""

from __future__ import annotations

import ast
from dataclasses import replace

from codemod.layout.frame import Frame
from codemod.layout.layout import restrided
from codemod.layout.program import dotted
from codemod.layout.state import State
from codemod.layout.value import Tensor, Unknown, Value, choose, options, without_none


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
        case ast.Name() | ast.Attribute() if is_true:
            _change(state, test, without_none)
    return state


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
