"""Modules whose calls go through something else: a forward hook, or a `forward` that was bound anew."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set
from typing import Protocol

HOOKS = frozenset({"register_forward_hook", "register_forward_pre_hook", "register_full_forward_hook"})
"""What they are given may return another input or result, which takes the place of the module's own.

Source: torch/nn/modules/module.py, Module._call_impl.
"""
ANY = "*"
"""Stands for modules that are not named."""
_GIVE_NOTHING = frozenset({"add", "append", "clear", "extend", "insert", "remove", "update", "__setitem__"})
"""Methods of lists, dicts and sets that return None."""


class Scoped(Protocol):
    """A routine of the survey."""

    @property
    def node(self) -> ast.AST: ...
    @property
    def called(self) -> Set[str]: ...


def patched(routines: Iterable[Scoped], assigned: Set[str]) -> frozenset[str]:
    """Last names of the modules, as the file spells them; `assigned` are the attributes that it binds on objects."""
    known = list(routines)
    found: set[str] = set()
    for routine in known:
        if not HOOKS.isdisjoint(routine.called):
            found.update(_hooked(routine.node, known))
    if "forward" in assigned:
        found.update(_bound(known))
    return frozenset(found)


def _hooked(scope: ast.AST, routines: Iterable[Scoped]) -> Iterator[str]:
    for node in ast.walk(scope):
        match node:
            case ast.Call(func=ast.Attribute(value=module, attr=name), args=[hook, *_]) if name in HOOKS:
                if not _gives_nothing(hook, routines):
                    yield _module(module)


def _bound(routines: Iterable[Scoped]) -> Iterator[str]:
    """`l` of `self.l.forward = f`."""
    for routine in routines:
        for node in ast.walk(routine.node) if not isinstance(routine.node, ast.Module) else routine.node.body:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Attribute) and target.attr == "forward":
                        yield _module(target.value)


def _module(node: ast.expr) -> str:
    """`c` of `self.c[0]`; of what has a name of its own, such as a loop's `m`, any may be meant."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        return "" if node.id == "self" else ANY  # what a class binds on itself is seen where it is called
    return node.attr if isinstance(node, ast.Attribute) else ""


def _gives_nothing(hook: ast.expr, routines: Iterable[Scoped]) -> bool:
    """Is it certain that it returns None?"""
    if isinstance(hook, ast.Lambda):
        body = hook.body
        return isinstance(body, ast.Call) and _last(body.func) in _GIVE_NOTHING
    made = hook.func if isinstance(hook, ast.Call) else hook  # `make_hook(name)` returns the function inside it
    found = [r.node for r in routines if getattr(r.node, "name", "") == _last(made)]
    if isinstance(hook, ast.Call):
        found = [inner for outer in found for inner in ast.walk(outer) if inner is not outer and _is_function(inner)]
    return bool(found) and not any(_answers(function) for function in found)


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def _answers(function: ast.AST) -> bool:
    if isinstance(function, ast.Lambda):
        return not _gives_nothing(function, ())
    return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function))


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
