"""Imports that rewritten code needs, put once into the module's header."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codemod.edit.splice import Piece
from codemod.syntax.parse import Syntax

_REST_OF_LINE = re.compile(r"[ \t\f]*;?[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)")
_HEADER_COMMENTS = re.compile(r"(?:#[^\r\n]*(?:\r\n|\r|\n))*")
_BLANK_LINE = re.compile(r"[ \t\f]*(?:\r\n|\r|\n)")


@dataclass(frozen=True, slots=True)
class Import:
    """`from module import name as local`, which the file has already or is to get."""

    module: str
    name: str
    local: str
    is_new: bool

    @property
    def statement(self) -> str:
        alias = "" if self.local == self.name else f" as {self.local}"
        return f"from {self.module} import {self.name}{alias}"


def bind(tree: ast.Module, module: str, name: str) -> Import:
    """The Import by which `tree` can say `name`: one it has, or a new one under a name that it does not use."""
    bound = set(_bound_names(tree))
    for statement in tree.body:
        for alias in _aliases(statement, module, name):
            if (local := alias.asname or alias.name) not in bound:
                return Import(module, name, local, is_new=False)
    taken = {*bound, *(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)), *_imported_names(tree)}
    local = name
    while local in taken:
        local = f"_{local}"
    return Import(module, name, local, is_new=True)


def insertion(syntax: Syntax, imports: Sequence[Import], before: int, newline: str) -> Piece | None:
    """The edit that adds the new ones of `imports`, above offset `before`; None where there are none."""
    lines = sorted({needed.statement for needed in imports if needed.is_new})
    if not lines:
        return None
    anchor = _anchor(syntax, before)
    if anchor is None:
        return _at_top(syntax.text, lines, newline)
    return _after(syntax, anchor, lines, newline)


def _anchor(syntax: Syntax, before: int) -> ast.stmt | None:
    """The statement to follow: the end of the first run of imports, else docstring and `__future__`."""
    body = [node for node in syntax.tree.body if syntax.places.range_of(node)[1] <= before]
    first = next((i for i, node in enumerate(body) if _is_import(node)), None)
    if first is None:
        return body[0] if body and _is_docstring(body[0]) else None
    last = first
    while last + 1 < len(body) and _is_import(body[last + 1]):
        last += 1
    return body[last]


def _after(syntax: Syntax, anchor: ast.stmt, lines: Sequence[str], newline: str) -> Piece:
    text, end = syntax.text, syntax.places.range_of(anchor)[1]
    rest = _REST_OF_LINE.match(text, end)
    if rest is None:  # another statement follows on the line: `import torch; y = torch.bmm(a, b)`
        return Piece(end, end, "".join(f"; {line}" for line in lines))
    block = newline.join(lines) + newline
    if _is_import(anchor):
        return Piece(rest.end(), rest.end(), block)
    return Piece(rest.end(), rest.end(), newline + block + _gap(text, rest.end(), newline))


def _at_top(text: str, lines: Sequence[str], newline: str) -> Piece:
    """Below the comments that a file begins with: shebang, cookie, licence."""
    comments = _HEADER_COMMENTS.match(text)
    place = comments.end() if comments else 0
    above = newline if place and _BLANK_LINE.match(text, place) else ""
    return Piece(place, place, above + newline.join(lines) + newline + _gap(text, place, newline))


def _gap(text: str, place: int, newline: str) -> str:
    return "" if _BLANK_LINE.match(text, place) else newline


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _aliases(statement: ast.stmt, module: str, name: str) -> Iterator[ast.alias]:
    if isinstance(statement, ast.ImportFrom) and statement.module == module and not statement.level:
        yield from (alias for alias in statement.names if alias.name == name)


def _imported_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def _bound_names(tree: ast.Module) -> Iterator[str]:
    """Names bound anywhere in the file, in whatever scope, other than by an import."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
            case _:
                pass
