"""Small Transforms that the tests of the edit apply, and the way to apply them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

import libcst as cst

from codemod.edit.apply import Edited, apply
from codemod.finding import Action, Finding, Rewrite, Verdict
from codemod.layout.op_call import OpCall
from codemod.settings import Settings
from codemod.sources.source import Source, decode
from codemod.syntax.parse import Syntax, parse
from codemod.transform import Transform


class _Rule(Transform):
    operations = frozenset[str]()
    summary = ""
    examples = ()

    def decide(self, call: OpCall, settings: Settings) -> Finding | None:
        return None


class Reshape(_Rule):
    """`x.view(…)` -> `x.reshape(…)`"""

    name = "reshape"

    def rewrite(self, call: cst.Call, rewrite: Rewrite) -> cst.BaseExpression:
        assert isinstance(call.func, cst.Attribute)
        return call.with_changes(func=call.func.with_changes(attr=cst.Name("reshape")))


class Contiguous(_Rule):
    """`x.view(…)` -> `x.contiguous().view(…)`"""

    name = "contiguous"

    def rewrite(self, call: cst.Call, rewrite: Rewrite) -> cst.BaseExpression:
        assert isinstance(call.func, cst.Attribute)
        receiver = cst.Call(cst.Attribute(call.func.value, cst.Name("contiguous")))
        return call.with_changes(func=call.func.with_changes(value=receiver))


class MinusOne(_Rule):
    """`x.view(32, …)` -> `x.view(-1, …)`"""

    name = "minus-one"

    def rewrite(self, call: cst.Call, rewrite: Rewrite) -> cst.BaseExpression:
        first = call.args[0].with_changes(value=cst.UnaryOperation(cst.Minus(), cst.Integer("1")))
        return call.with_changes(args=[first, *call.args[1:]])


class Shape(_Rule):
    """`x.view(32, …)` -> `x.view(x.shape[0], …)`: the receiver twice."""

    name = "shape"

    def rewrite(self, call: cst.Call, rewrite: Rewrite) -> cst.BaseExpression:
        assert isinstance(call.func, cst.Attribute)
        index = cst.SubscriptElement(cst.Index(cst.Integer("0")))
        size = cst.Subscript(cst.Attribute(call.func.value, cst.Name("shape")), [index])
        return call.with_changes(args=[call.args[0].with_changes(value=size), *call.args[1:]])


class Chunk(_Rule):
    """`a.bmm(b)` and `torch.bmm(a, b)` -> `chunked_bmm(a, b)`"""

    name = "chunk"

    def rewrite(self, call: cst.Call, rewrite: Rewrite) -> cst.BaseExpression:
        assert isinstance(call.func, cst.Attribute)
        receiver = () if rewrite.get("form") == "function" else (cst.Arg(call.func.value, comma=_COMMA),)
        return call.with_changes(func=cst.Name("chunked_bmm"), args=[*receiver, *call.args])

    def imports(self, rewrite: Rewrite) -> tuple[str, str]:
        return "", "chunked_bmm"


class Negate(_Rule):
    """`x.view(…)` -> `-x`: an expression that binds less tightly than a call."""

    name = "negate"

    def rewrite(self, call: cst.Call, rewrite: Rewrite) -> cst.BaseExpression:
        assert isinstance(call.func, cst.Attribute)
        return cst.UnaryOperation(cst.Minus(), call.func.value)


class Quote(_Rule):
    """`x.view(…)` -> `x.view("q")`: text with quotes of its own."""

    name = "quote"

    def rewrite(self, call: cst.Call, rewrite: Rewrite) -> cst.BaseExpression:
        return call.with_changes(args=[cst.Arg(cst.SimpleString('"q"'))])


_COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
RULES: Mapping[str, Transform] = {
    rule.name: rule for rule in (Reshape(), Contiguous(), MinusOne(), Shape(), Chunk(), Negate(), Quote())
}


def syntax_of(text: str | bytes) -> Syntax:
    source = decode("train.py", text.encode() if isinstance(text, str) else text)
    assert isinstance(source, Source), source
    syntax = parse(source)
    assert isinstance(syntax, Syntax), syntax
    return syntax


def named_calls(syntax: Syntax, names: Sequence[str]) -> list[ast.Call]:
    calls = [node for node in ast.walk(syntax.tree) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in names]


def finding(syntax: Syntax, call: ast.Call, rule: str, action: Action = Action.REWRITE) -> Finding:
    is_function = isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", None) == "torch"
    rewrite = Rewrite(rule, (("form", "function" if is_function else "method"),))
    return Finding("train.py", syntax.span(call), rule, Verdict.FAILING, action, "", rewrites=(rewrite,))


def edit(text: str | bytes, *rules: str, names: Sequence[str] = ("view", "bmm")) -> Edited:
    """The text with `rules` applied, one after the other, to every call of a method in `names`."""
    syntax = syntax_of(text)
    decided = [(finding(syntax, call, rule), call) for call in named_calls(syntax, names) for rule in rules]
    return apply(syntax, decided, RULES, helper_module="pkg._chunked_bmm")


def edited(text: str, *rules: str, names: Sequence[str] = ("view", "bmm")) -> str:
    return edit(text, *rules, names=names).text
