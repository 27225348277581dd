"""Whether a decorated function returns what it would return by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemod.layout.program import FunctionNode, Program, dotted

_TRANSPARENT = frozenset(
    {
        "amp", "autocast", "cache", "compile", "compiler", "custom_bwd", "custom_fwd", "disable", "enable_grad",
        "export", "ignore", "inference_mode", "is_grad_enabled", "lru_cache", "no_grad", "once_differentiable",
        "override", "script", "script_if_tracing", "script_method", "set_grad_enabled", "unused", "wraps",
    }
)  # fmt: skip
_OURS = ("torch.", "functools.", "contextlib.")
"""Where a decorator may change the result, and all that do not are known."""


def is_transparent(decorator: ast.expr, program: Program) -> bool:
    """Does the decorator hand the function's result on?  One of another library is taken to do so."""
    callee = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = dotted(callee)
    if name in program.functions:
        if name not in program.transparent:
            program.transparent[name] = hands_on(program.functions[name])
        return program.transparent[name]
    if name in program.classes or name in program.constants:
        return False
    resolved = program.resolve(name)
    return not resolved.startswith(_OURS) or resolved.rpartition(".")[2] in _TRANSPARENT


def hands_on(decorator: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Does each function in it return a function, or what the one that it decorates returns?"""
    return all(_returns_on(function, _enclosing(decorator)) for function in _functions(decorator))


def _functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (n for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def _enclosing(decorator: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Names of all parameters and of the functions inside: the decorated function is one of the former."""
    found = set()
    for function in _functions(decorator):
        found |= {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
        if function is not decorator:
            found.add(function.name)
    return found


def _returns_on(function: FunctionNode, names: set[str]) -> bool:
    results = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _is_call_of(node.value, names)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    bound = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    kept = names | {name for name in results if bound.count(name) == 1}
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    return bool(returns) and all(
        node.value is not None
        and (_is_call_of(node.value, names) or (isinstance(node.value, ast.Name) and node.value.id in kept))
        for node in returns
    )


def _is_call_of(node: ast.expr, names: set[str]) -> bool:
    while isinstance(node, ast.Await):
        node = node.value
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
