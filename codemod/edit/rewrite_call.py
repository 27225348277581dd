"""One call through LibCST: text in, the Transforms' answer as text out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from codemod.edit.imports import Import
from codemod.edit.template import Template
from codemod.finding import Rewrite
from codemod.transform import Transform

_MODULE = cst.Module([])
_NEEDS_NO_BRACKETS = (cst.Call, cst.Name, cst.Attribute, cst.Subscript)


class EditError(Exception):
    """An edit of ours went wrong; the file must be left unchanged."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a call's text cannot be edited."""

    why: str


def rewrite_call(
    template: Template,
    rewrites: Sequence[Rewrite],
    transforms: Mapping[str, Transform],
    imports: Mapping[Rewrite, Import],
    newline: str,
) -> str | Refused:
    """The text of the call after all `rewrites`, one after the other; `newline` is for line ends that they add."""
    newlines = set(re.findall(r"\r\n|\r|\n", template.code)) or {newline}
    if len(newlines) > 1:
        return Refused("the call mixes line ends")
    own_newline = newlines.pop()
    call = _parsed(template.code.replace(own_newline, "\n"))
    if isinstance(call, Refused):
        return call
    code = _code(_bracketed(_rewritten(call, rewrites, transforms, imports)))
    return template.fill(code.replace("\n", own_newline))


def _parsed(code: str) -> cst.Call | Refused:
    try:
        call = cst.parse_expression(f"({code}\n)")
    except cst.ParserSyntaxError as error:
        return Refused(f"LibCST cannot parse the call ({error.message})")
    if not isinstance(call, cst.Call | cst.Attribute):
        raise EditError(f"not a call: {code}")
    call = call.with_changes(lpar=call.lpar[1:], rpar=call.rpar[:-1])
    if _code(call) != code:
        return Refused("LibCST does not give the call's text back unchanged")
    return call if isinstance(call, cst.Call) else cst.Call(call)  # a bare `Dim.AUTO` is decided as a call


def _rewritten(
    call: cst.Call, rewrites: Sequence[Rewrite], transforms: Mapping[str, Transform], imports: Mapping[Rewrite, Import]
) -> cst.BaseExpression:
    expression: cst.BaseExpression = call
    for rewrite in rewrites:
        if not isinstance(expression, cst.Call):
            raise EditError(f"{rewrite.transform} cannot follow an edit that leaves no call: {_code(expression)}")
        before, expression = expression, transforms[rewrite.transform].rewrite(expression, rewrite)
        if needed := imports.get(rewrite):
            expression = _with_local_name(before, expression, needed)
    return expression


def _with_local_name(before: cst.Call, after: cst.BaseExpression, needed: Import) -> cst.BaseExpression:
    """`after` with the names that the Transform made, not those of the user, spelled as they are imported."""
    if needed.local == needed.name:
        return after
    users = _Names(needed.name)
    before.visit(users)
    renamed = after.visit(_Rename(needed, frozenset(users.found)))
    if not isinstance(renamed, cst.BaseExpression):
        raise EditError(f"no expression after renaming {needed.name}")
    return renamed


class _Names(cst.CSTVisitor):
    def __init__(self, name: str) -> None:
        self.name = name
        self.found: set[int] = set()

    def visit_Name(self, node: cst.Name) -> None:
        if node.value == self.name:
            self.found.add(id(node))


class _Rename(cst.CSTTransformer):
    def __init__(self, needed: Import, users: frozenset[int]) -> None:
        self.needed, self.users = needed, users

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        if original_node.value != self.needed.name or id(original_node) in self.users:
            return updated_node
        return updated_node.with_changes(value=self.needed.local)


def _bracketed(expression: cst.BaseExpression) -> cst.BaseExpression:
    """In brackets unless it may stand wherever a call may: `-x` in place of `x.f()` in `x.f() ** 2`."""
    if isinstance(expression, _NEEDS_NO_BRACKETS) or _has_brackets(expression):
        return expression
    return expression.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _has_brackets(expression: cst.BaseExpression) -> bool:
    lpar: Sequence[cst.LeftParen] = expression.lpar
    return bool(lpar)


def _code(expression: cst.BaseExpression) -> str:
    return _MODULE.code_for_node(expression)
