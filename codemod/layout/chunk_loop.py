"""Is a call already made once for each part of a batch?"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from codemod.layout.program import dotted


def chunk_loop(call: ast.Call, scope: ast.AST) -> int | None:
    """Line of a loop or comprehension around the call in which an operand is a slice or part of the batch."""
    for loop in ast.walk(scope):
        if isinstance(loop, ast.For | ast.While) and any(node is call for s in loop.body for node in ast.walk(s)):
            parts = _parts(loop.body, [loop.target, loop.iter] if isinstance(loop, ast.For) else [])
        elif isinstance(loop, ast.ListComp | ast.GeneratorExp) and any(node is call for node in ast.walk(loop.elt)):
            parts = _parts([], [e for g in loop.generators for e in (g.target, g.iter)])
        else:
            continue
        operands = [*call.args, *(keyword.value for keyword in call.keywords)]
        if isinstance(call.func, ast.Attribute):
            operands.append(call.func.value)
        if any(_is_part(node, parts) for operand in operands for node in ast.walk(operand)):
            return loop.lineno
    return None


_CUTS = frozenset({"split", "chunk", "tensor_split", "narrow", "unbind"})


def _parts(body: Iterable[ast.stmt], header: Sequence[ast.expr]) -> set[str]:
    """Names that hold a part of the batch in a loop."""
    found: set[str] = set()
    for target, source in zip(header[::2], header[1::2], strict=True):
        if any(isinstance(n, ast.Call) and _last(n) in _CUTS for n in ast.walk(source)):
            found |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    for statement in body:
        if isinstance(statement, ast.Assign) and any(_is_part(n, found) for n in ast.walk(statement.value)):
            found |= {n.id for target in statement.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    return found


def _is_part(node: ast.AST, parts: set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in parts
        case ast.Subscript(slice=ast.Slice() as cut) | ast.Subscript(slice=ast.Tuple(elts=[ast.Slice() as cut, *_])):
            return any(bound is not None and not isinstance(bound, ast.Constant) for bound in (cut.lower, cut.upper))
        case ast.Call():
            return _last(node) == "narrow"
        case _:
            return False


def _last(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
