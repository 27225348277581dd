"""Code that counts on the error of what stands in it: `try`, `suppress`, `pytest.raises`, expected failures."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

Guard = ast.Try | ast.With | ast.AsyncWith

_ERRORS = frozenset({"RuntimeError", "Exception", "BaseException"})
"""What torch raises where it refuses a view, and what it is derived from."""
_MESSAGE = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
    "contiguous subspaces). use .reshape(...) instead."
)
_SWALLOWING = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex"})
"""Context managers behind whose block the program goes on where it raises what they are given."""
_EXPECTED = frozenset({"expectedFailure", "xfail"})


def guarded(guards: Iterable[Guard], functions: Iterable[ast.AST]) -> Iterator[int]:
    """Ids of the calls whose RuntimeError somebody counts on.

    They stand in one of the guards, in one of the functions that are called there, or in a test that is to fail.
    """
    counted_on: set[str] = set()
    for guard in guards:
        if _swallows(guard) if isinstance(guard, ast.With | ast.AsyncWith) else _catches(guard):
            yield from _calls(guard.body)
            counted_on.update(_counted_on(guard))
    for function in functions:
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if function.name in counted_on or _is_expected_to_fail(function):
            yield from _calls(function.body)


def may_swallow(node: ast.With | ast.AsyncWith) -> bool:
    """Is it a guard?"""
    return any(isinstance(i.context_expr, ast.Call) and _last(i.context_expr.func) in _SWALLOWING for i in node.items)


def _calls(body: Sequence[ast.stmt]) -> Iterator[int]:
    """Those of the functions inside it are made elsewhere."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Call):
            yield id(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            stack += ast.iter_child_nodes(node)


def _catches(node: ast.Try) -> bool:
    """Does the program go on where a statement of its body raises?"""
    return any(_takes(h.type) and not _hands_on(h) and not _is_of_another_error(h) for h in node.handlers)


def _swallows(node: ast.With | ast.AsyncWith) -> bool:
    return any(_is_swallowing(item.context_expr) for item in node.items)


def _is_expected_to_fail(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A test that is marked so."""
    marks = (mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list)
    return any(_last(mark) in _EXPECTED for mark in marks)


def _counted_on(node: Guard) -> Iterator[str]:
    """Last names of the functions whose RuntimeError is part of the control flow: another way is gone instead."""
    if isinstance(node, ast.With | ast.AsyncWith):
        is_named = any(_is_swallowing(item.context_expr, by_name=True) for item in node.items)
    else:
        is_named = any(_names_it(handler.type) and _goes_another_way(handler) for handler in node.handlers)
    for statement in node.body if is_named else ():
        for inner in ast.walk(statement):
            if isinstance(inner, ast.Call) and (isinstance(inner.func, ast.Name) or _is_own(inner.func)):
                yield _last(inner.func)


def _takes(kind: ast.expr | None) -> bool:
    return kind is None or any(_last(one) in _ERRORS for one in _each(kind))


def _names_it(kind: ast.expr | None) -> bool:
    return kind is not None and any(_last(one) == "RuntimeError" for one in _each(kind))


def _each(kind: ast.expr) -> list[ast.expr]:
    return kind.elts if isinstance(kind, ast.Tuple) else [kind]


def _hands_on(handler: ast.ExceptHandler) -> bool:
    """It ends in a `raise`, and leaves in no other way."""
    ways = (ast.Return, ast.Continue, ast.Break, ast.Yield, ast.YieldFrom)
    return isinstance(handler.body[-1], ast.Raise) and not any(isinstance(n, ways) for n in ast.walk(handler))


def _is_of_another_error(handler: ast.ExceptHandler) -> bool:
    """`if "out of memory" in str(error): ... else: raise`: what the message of a refused view lacks."""
    texts = [
        node.left.value
        for node in ast.walk(handler)
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    ]
    is_raised = any(isinstance(node, ast.Raise) for node in ast.walk(handler))
    return is_raised and bool(texts) and not any(text.lower() in _MESSAGE for text in texts)


def _goes_another_way(handler: ast.ExceptHandler) -> bool:
    """It does more than to tell of the error: it returns, or binds something, that is not made of it."""
    if _hands_on(handler) or _is_of_another_error(handler):
        return False
    for node in ast.walk(handler):
        is_made = isinstance(node, ast.Return) or (
            isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and not isinstance(node.value, ast.Constant)
        )
        if is_made and not any(isinstance(n, ast.Name) and n.id == handler.name for n in ast.walk(node)):
            return True
    return False


def _is_swallowing(node: ast.expr, *, by_name: bool = False) -> bool:
    if not isinstance(node, ast.Call) or _last(node.func) not in _SWALLOWING:
        return False
    kinds = [one for argument in node.args for one in _each(argument)]
    kinds += [keyword.value for keyword in node.keywords if keyword.arg == "expected_exception"]
    return any(_last(kind) == "RuntimeError" or (not by_name and _last(kind) in _ERRORS) for kind in kinds)


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
