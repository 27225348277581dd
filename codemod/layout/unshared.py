"""Receivers whose memory nothing else holds: what is written to a copy of them is lost to nobody."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from codemod.layout.op_call import Observation
from codemod.layout.record import record
from codemod.layout.value import Tensor

_PLACE = re.compile(r"(\d+:\d+:\d+)('\d+)?(\.\w+)*$")
"""Line, column and end column of the expression that made a storage, in the storage's name."""
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


def is_unshared(call: ast.Call, observations: Iterable[Observation], scope: ast.AST) -> bool:
    """Whether the call's receiver was made for it, and no name, attribute or container goes on holding it.

    `(a @ b).transpose(1, 2).view(...)`, or `y = a @ b` and then `y = y.transpose(1, 2).view(...)`.
    """
    storages: set[str] = set()
    for observation in observations:
        if not isinstance(observation.receiver, Tensor) or not observation.receiver.storages:
            return False
        storages |= observation.receiver.storages
    made_at = {found[1] if (found := _PLACE.search(name)) else "" for name in storages}
    if not isinstance(call.func, ast.Attribute) or not made_at:
        return False
    place = next((place for place in _places(scope) if call in ast.walk(place.block[place.index])), None)
    receiver: ast.expr | None = call.func.value
    while receiver is not None and not any(isinstance(node, ast.NamedExpr) for node in ast.walk(receiver)):
        made_at -= {_spell(node) for node in ast.walk(receiver) if isinstance(node, ast.expr)}
        if not made_at:
            return True
        root = _root(receiver)
        bound = _bound_alone(root.id, place) if isinstance(root, ast.Name) and place is not None else None
        receiver, place = bound if bound is not None else (None, None)
    return False


def _spell(node: ast.expr) -> str:
    return f"{node.lineno}:{node.col_offset}:{node.end_col_offset}"


def _root(node: ast.expr) -> ast.expr:
    """`x` of `x.transpose(1, 2)[0]`."""
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def _places(scope: ast.AST) -> Iterator[_Place]:
    """The simple statements of the scope."""
    for node in ast.walk(scope):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield from (_Place(block, at, scope) for at, one in enumerate(block) if isinstance(one, _SIMPLE))


def _bound_alone(name: str, place: _Place) -> tuple[ast.expr, _Place] | None:
    """What the name was bound to above, and where, if it holds that for no one but the statement."""
    for at in range(place.index - 1, -1, -1):
        match place.block[at]:
            case ast.Assign(targets=[ast.Name(id=bound)], value=value) as binding if bound == name:
                is_alone = _is_last_use(name, binding, place)
                return (value, _Place(place.block, at, place.scope)) if is_alone else None
            case other if _uses(name, other, with_stores=True):
                return None
    return None


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
