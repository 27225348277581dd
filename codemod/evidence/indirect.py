"""Calls that may carry out an op without naming it, and without a frame of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

_APPLIERS = frozenset({"map", "starmap", "reduce", "filter", "sorted", "min", "max", "accumulate"})
"""What is written in C and calls what it is given."""
_NAMESPACES = frozenset({"F", "functional", "nn", "init", "optim"})
"""What holds no op of these, so that `getattr(F, name)` is none."""


def indirect_calls(tree: ast.AST, operations: Set[str]) -> tuple[ast.Call, ...]:
    """`partial(Tensor.view, x)(-1)`, `p(-1)` of such a `p`, `fn(x, -1)` of a parameter, `map(x.view, sizes)`."""
    bound = frozenset(_bound(tree, operations)) - operations
    parameters = frozenset(node.arg for node in ast.walk(tree) if isinstance(node, ast.arg))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return tuple(call for call in calls if _is_indirect(call, bound, parameters, operations | bound))


def _is_indirect(call: ast.Call, bound: Set[str], parameters: Set[str], operations: Set[str]) -> bool:
    match call.func:
        case ast.Call() as made:
            return _wraps_op(made, operations)
        case ast.Name(id=name) if name in parameters and any(map(_is_size, call.args)):
            return True
    name = _last(call.func)
    return name in bound or (name in _APPLIERS and any(_makes_op(argument, operations) for argument in call.args))


def _wraps_op(call: ast.Call, operations: Set[str]) -> bool:
    """Whether what the call returns may run an op."""
    match _last(call.func), call.args:
        case (("partial" | "partialmethod"), [wrapped, *_]):
            return _last(wrapped) in operations
        case "methodcaller", [name, *_]:
            return not isinstance(name, ast.Constant) or name.value in operations
        case "getattr", [holder, name, *_]:
            return not isinstance(name, ast.Constant) and _last(holder) not in _NAMESPACES
    return False


def _bound(tree: ast.AST, operations: Set[str]) -> Iterator[str]:
    """Names and attributes bound to what runs an op: also to one of several, or to a table of them."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                pass
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
                | ast.For(target=target, iter=value)
                | ast.comprehension(target=target, iter=value)
            ):
                targets = [target]
            case _:
                continue
        if _makes_op(value, operations):
            yield from (_last(name) for target in targets for name in ast.walk(target) if isinstance(name, ast.expr))


def _makes_op(value: ast.expr, operations: Set[str]) -> bool:
    """Whether an op, or what wraps one, is in the value and is not called there."""
    called = {id(node.func) for node in ast.walk(value) if isinstance(node, ast.Call)}
    nodes = [node for node in ast.walk(value) if id(node) not in called]
    return any(
        (isinstance(node, ast.Attribute) and node.attr in operations)
        or (isinstance(node, ast.Call) and _wraps_op(node, operations))
        for node in nodes
    )


def _is_size(argument: ast.expr) -> bool:
    match argument:
        case ast.Constant(value=int()) | ast.UnaryOp(operand=ast.Constant(value=int())) | ast.Tuple() | ast.Starred():
            return True
    return False


def _last(expression: ast.expr) -> str:
    match expression:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Subscript(value=value):
            return _last(value)
    return ""
