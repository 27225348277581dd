"""Receivers whose memory nothing else holds: what is written to a copy of them is lost to nobody."""

from __future__ import annotations

import ast

_VIEWS = frozenset({"transpose", "permute", "swapaxes", "swapdims", "movedim", "moveaxis", "unsqueeze", "t"})
_TURNED = frozenset({"T", "mT", "H", "mH"})
_PRODUCTS = frozenset({"matmul", "bmm", "mm"})
_ARITHMETIC = (ast.MatMult, ast.Mult, ast.Add, ast.Sub, ast.Div)


def is_unshared(receiver: ast.expr) -> bool:
    """Whether a tensor is made in this expression, and no name is bound to it: `(a @ b).transpose(1, 2)`."""
    match receiver:
        case ast.BinOp(op=operator):
            return isinstance(operator, _ARITHMETIC)
        case ast.Attribute(value=inner, attr=name) if name in _TURNED:
            return is_unshared(inner)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name), keywords=[]) if name in _PRODUCTS:
            return True
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _VIEWS:
            return is_unshared(inner)
    return False
