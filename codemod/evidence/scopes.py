"""Which frame a call runs in, as tracebacks name frames."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

MODULE = "<module>"
_LAMBDA = "<lambda>"
_COMPREHENSIONS: Mapping[type[ast.AST], str] = {
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
    ast.GeneratorExp: "<genexpr>",
}
_OWN_NAMES = frozenset({MODULE, _LAMBDA, *_COMPREHENSIONS.values()})
_RESUMED = re.compile(r"torch_dynamo_resume_in_(\w+)_at_\d+")
"""What dynamo names the rest of a function behind a graph break."""

_Names = tuple[str, ...]


def frame_name(printed: str) -> str:
    """`view` of `Net.view`, `<lambda>` of `f.<locals>.<lambda>`, `f` of what dynamo names the rest of `f`."""
    last = printed.rpartition(".")[2]
    resumed = _RESUMED.fullmatch(last)
    return resumed[1] if resumed else last


def in_frame(tree: ast.AST, calls: Sequence[ast.Call], printed: str) -> tuple[ast.Call, ...]:
    """The calls that run in a frame printed with this name.

    Where no function of the file bears the name (it was renamed, or the log does not tell it) all but those that run
    in frames without a name of their own.
    """
    name = frame_name(printed)
    if not calls or not printed:
        return tuple(calls)
    names = dict(_frames(tree, (MODULE,)))
    if name in _OWN_NAMES or any(name in own for own in names.values()) or _is_defined(tree, name):
        return tuple(call for call in calls if name in names[call])
    return tuple(call for call in calls if names[call][0] not in (_LAMBDA, "<genexpr>"))


def _is_defined(tree: ast.AST, name: str) -> bool:
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name for node in ast.walk(tree)
    )


def _frames(tree: ast.AST, names: _Names) -> Iterator[tuple[ast.Call, _Names]]:
    """Each call, and what the frame may be named that it runs in."""
    waiting = [(tree, names)]
    while waiting:
        node, names = waiting.pop()
        if isinstance(node, ast.Call):
            yield node, names
        inner, outside = _inner(node, names), tuple(_outside(node))
        waiting += [(child, names) for child in outside]
        waiting += [(child, inner) for child in _children(node) if child not in outside]


def _inner(node: ast.AST, names: _Names) -> _Names:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Lambda():
            return (_LAMBDA,)
        case ast.GeneratorExp():
            return (_COMPREHENSIONS[ast.GeneratorExp],)
        case ast.ListComp() | ast.SetComp() | ast.DictComp():
            return (_COMPREHENSIONS[type(node)], *names)  # Python 3.12 runs them in the frame around
    return names


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.comprehension):
            yield from ast.iter_child_nodes(child)
        else:
            yield child


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """The children that run before there is a frame: decorators, defaults, bases, what is iterated first."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from (*node.decorator_list, node.args, *([node.returns] if node.returns else []))
        case ast.Lambda():
            yield node.args
        case ast.ClassDef():
            yield from (*node.decorator_list, *node.bases, *node.keywords)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield node.generators[0].iter
