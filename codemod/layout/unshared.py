"""Receivers whose memory nothing else holds: what is written to a copy of them is lost to nobody."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemod.layout.record import record

_VIEWS = frozenset({"transpose", "permute", "swapaxes", "swapdims", "movedim", "moveaxis", "unsqueeze", "t"})
_TURNED = frozenset({"T", "mT", "H", "mH"})
_PRODUCTS = frozenset({"matmul", "bmm", "mm"})
_ARITHMETIC = (ast.MatMult, ast.Mult, ast.Add, ast.Sub, ast.Div)
_TOLD = frozenset({"shape", "size", "dim", "ndim", "dtype", "device"})
"""Attributes that hand on nothing of a tensor's memory."""
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Global, ast.Nonlocal)


@record(frozen=True, slots=True)
class _Place:
    """A statement of a block, in a function or module."""

    block: Sequence[ast.stmt]
    index: int
    scope: ast.AST


def is_unshared(call: ast.Call, scope: ast.AST) -> bool:
    """Whether the call's receiver was made for it, and no name, attribute or container goes on holding it.

    `(a @ b).transpose(1, 2).view(...)`, or `y = a @ b` and then `y = y.transpose(1, 2).view(...)`.
    """
    place = next((place for place in _places(scope) if call in ast.walk(place.block[place.index])), None)
    return isinstance(call.func, ast.Attribute) and place is not None and _is_made(call.func.value, place)


def _places(scope: ast.AST) -> Iterator[_Place]:
    """The simple statements of the scope."""
    for node in ast.walk(scope):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield from (_Place(block, at, scope) for at, one in enumerate(block) if isinstance(one, _SIMPLE))


def _is_made(receiver: ast.expr, place: _Place) -> bool:
    match receiver:
        case ast.BinOp(op=operator):
            return isinstance(operator, _ARITHMETIC)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name), keywords=[]) if name in _PRODUCTS:
            return True
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _VIEWS:
            return _is_made(inner, place)
        case ast.Attribute(value=inner, attr=name) if name in _TURNED:
            return _is_made(inner, place)
        case ast.Name(id=name):
            return _is_name_alone(name, place)
    return False


def _is_name_alone(name: str, place: _Place) -> bool:
    """Whether the name was bound to such a receiver above, and holds it for no one but the statement."""
    for at in range(place.index - 1, -1, -1):
        match place.block[at]:
            case ast.Assign(targets=[ast.Name(id=bound)], value=value) as binding if bound == name:
                return _is_last_use(name, binding, place) and _is_made(value, _Place(place.block, at, place.scope))
            case other if _uses(name, other, with_stores=True):
                return False
    return False


def _is_last_use(name: str, binding: ast.stmt, place: _Place) -> bool:
    """Whether the statement is the only one to use the binding: it binds the name anew, or nothing else mentions it."""
    own = place.block[place.index]
    if len(_uses(name, own)) != 1 or _is_known_within(name, place.scope):
        return False
    match own:
        case ast.Assign(targets=[ast.Name(id=bound)]) if bound == name:
            return True
    mentions = {id(node) for node in ast.walk(binding)} | {id(node) for node in ast.walk(own)}
    return all(id(node) in mentions for node in _uses(name, place.scope, with_stores=True))


def _uses(name: str, within: ast.AST, *, with_stores: bool = False) -> list[ast.Name]:
    """Mentions of the name that are not `name.shape` and the like."""
    told = {id(node.value) for node in ast.walk(within) if isinstance(node, ast.Attribute) and node.attr in _TOLD}
    named = (node for node in ast.walk(within) if isinstance(node, ast.Name) and node.id == name)
    return [node for node in named if id(node) not in told and (with_stores or isinstance(node.ctx, ast.Load))]


def _is_known_within(name: str, scope: ast.AST) -> bool:
    """Whether a function within, or one around, may read the name."""
    inner = (node for node in ast.walk(scope) if isinstance(node, _SCOPES) and node is not scope)
    return isinstance(scope, ast.Module) or any(
        name in node.names if isinstance(node, ast.Global | ast.Nonlocal) else bool(_uses(name, node, with_stores=True))
        for node in inner
    )
