"""Edits touch the call and nothing else; text in, text out."""

from __future__ import annotations

import ast
import sys
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codemod.edit.apply import apply
from codemod.edit.rewrite_call import EditError
from codemod.finding import Action
from codemod.syntax.deep import with_deep_stack
from tests.edit.rules import RULES, edit, edited, finding, named_calls, syntax_of


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("y = x.view(1)", "y = x.reshape(1)", id="no final newline"),
        pytest.param("y = x.view(1)\r\nz = 1\n", "y = x.reshape(1)\r\nz = 1\n", id="mixed line ends around the call"),
        pytest.param("y = x.view(1)\rz = 1\r", "y = x.reshape(1)\rz = 1\r", id="carriage returns alone"),
        pytest.param("x.view(  # c\r\n\t1,\r\n)\r\n", "x.reshape(  # c\r\n\t1,\r\n)\r\n", id="crlf inside"),
        pytest.param("x.view(  # c\r\t1,\r)\r", "x.reshape(  # c\r\t1,\r)\r", id="carriage returns inside"),
        pytest.param("x. \\\n view  (1)", "x. \\\n reshape  (1)", id="backslash after the dot"),
        pytest.param(
            "y = x \\\n  .view(1) ; z", "y = x \\\n  .reshape(1) ; z", id="backslash before the dot, semicolon"
        ),
        pytest.param("(x # a.b\n . # c.d\n view(1))", "(x # a.b\n . # c.d\n reshape(1))", id="comments around the dot"),
        pytest.param("if x:\n\ty.view(1)\n", "if x:\n\ty.reshape(1)\n", id="tabs"),
        pytest.param("if x:\n\x0c  y.view(1)\n", "if x:\n\x0c  y.reshape(1)\n", id="form feed in the indent"),
        pytest.param("s = 'é\u2028\x85'; é.view(ñ)", "s = 'é\u2028\x85'; é.reshape(ñ)", id="characters beyond ASCII"),
        pytest.param("ﬁ.view(ª)", "ﬁ.reshape(ª)", id="identifiers that NFKC changes"),
        pytest.param("(x.view)(1)", "(x.reshape)(1)", id="function in brackets"),
        pytest.param("((a + b)).view(1)", "((a + b)).reshape(1)", id="receiver in brackets"),
        pytest.param("1 .view(1)", "1 .reshape(1)", id="number as receiver"),
        pytest.param("(await x.view(1)).view(*a, **b)", "(await x.reshape(1)).reshape(*a, **b)", id="await and stars"),
        pytest.param("x.view(i for i in y.view(1))", "x.reshape(i for i in y.reshape(1))", id="bare generator"),
        pytest.param("y = 1if x.view(1)else 2", "y = 1if x.reshape(1)else 2", id="keyword after the bracket"),
        pytest.param("@x.view(1)\ndef f(): 0", "@x.reshape(1)\ndef f(): 0", id="decorator"),
        pytest.param("x.view(1)[x.view(2):]", "x.reshape(1)[x.reshape(2):]", id="receiver and subscript"),
        pytest.param("x.view(lambda: y.view(1))", "x.reshape(lambda: y.reshape(1))", id="lambda"),
        pytest.param('x.view("""\n.view(1)""")', 'x.reshape("""\n.view(1)""")', id="text that looks like a call"),
    ],
)
def test_only_the_method_name_changes(before: str, after: str) -> None:
    prefix = "async def f(): " if "await" in before else ""
    assert edited(prefix + before, "reshape") == prefix + after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("(a\n  .bmm(b))", "(chunked_bmm(a, b))", id="blanks before the dot go"),
        pytest.param("(a # c\n  .bmm(b))", "(chunked_bmm(a # c\n  , b))", id="comments before the dot stay"),
        pytest.param("if 1:\n  return_(a).bmm(b)", "if 1:\n  chunked_bmm(return_(a), b)", id="call as receiver"),
        pytest.param("1if(a).bmm(b)else 2", "1if chunked_bmm((a), b)else 2", id="keyword grows a blank"),
        pytest.param("f(1if(a).bmm(b)else 2).bmm(c)", "chunked_bmm(f(1if chunked_bmm((a), b)else 2), c)", id="nested"),
        pytest.param("torch.bmm(a.bmm(b), c)", "chunked_bmm(chunked_bmm(a, b), c)", id="function around method"),
    ],
)
def test_receiver_moves_into_the_arguments(before: str, after: str) -> None:
    header = "from pkg._chunked_bmm import chunked_bmm\n"
    assert edited(header + before, "chunk") == header + after


def test_receiver_may_be_used_twice() -> None:
    assert edited("f(a, b).view(32, -1)", "shape") == "f(a, b).view(f(a, b).shape[0], -1)"


def test_two_rules_at_one_call_follow_each_other() -> None:
    outcome = edit("x.t().view(32, 4).view(32, 2, 2)", "minus-one", "contiguous")
    assert outcome.text == "x.t().contiguous().view(-1, 4).contiguous().view(-1, 2, 2)"
    assert [found.replacement for found in outcome.findings] == [outcome.text] * 2 + [
        "x.t().contiguous().view(-1, 4)"
    ] * 2


def test_looser_expression_gets_brackets() -> None:
    assert edited("x.view(1) ** 2", "negate") == "(-x) ** 2"


def test_nothing_to_rewrite_gives_the_text_back() -> None:
    syntax = syntax_of("x.view(1)")
    [call] = named_calls(syntax, ["view"])
    kept = finding(syntax, call, "reshape", Action.KEEP)
    outcome = apply(syntax, [(kept, call)], RULES)
    assert (outcome.text, outcome.findings, outcome.needs_helper) == ("x.view(1)", (kept,), False)


def test_findings_keep_their_order_and_get_the_nested_replacement() -> None:
    syntax = syntax_of("a.view(b.view(1))")
    outer, inner = named_calls(syntax, ["view"])
    outcome = apply(
        syntax,
        [
            (finding(syntax, inner, "reshape"), inner),
            (finding(syntax, outer, "reshape", Action.REPORT), outer),
            (finding(syntax, outer, "reshape"), outer),
        ],
        RULES,
    )
    assert [found.replacement for found in outcome.findings] == ["b.reshape(1)", None, "a.reshape(b.reshape(1))"]


def test_call_that_mixes_line_ends_is_reported_and_its_neighbour_rewritten() -> None:
    outcome = edit("x.view(\n1,\r\n2).view(y.view(1))", "reshape")
    assert outcome.text == "x.view(\n1,\r\n2).reshape(y.reshape(1))"
    assert [found.action for found in outcome.findings].count(Action.REPORT) == 1


def test_edit_of_another_kind_than_decided_is_an_error() -> None:
    syntax = syntax_of("x.view(1)\n")
    [call] = named_calls(syntax, ["view"])
    broken = finding(syntax, call, "negate")
    broken = replace(broken, rewrites=(*broken.rewrites, *broken.rewrites))
    with pytest.raises(EditError, match="leaves no call"):
        apply(syntax, [(broken, call)], RULES)


def test_a_second_run_changes_nothing() -> None:
    once = edited("import torch\n\ny = torch.bmm(a, b).view(1)\n", "chunk", names=["bmm"])
    assert edited(once, "chunk", names=["bmm"]) == once


BLANKS = st.sampled_from(["", " ", "\t", "  # é.view(\r\n ", "\r\n", " \\\r\n", "\x0c"])
LEAVES = st.sampled_from(["x", "é", "(x)", "(a + b)", "f(1)", "x[0]", "'.view(1)'.k", "1 .real", "(yield)", "-1", "ﬁ"])


def _call(receiver: str, name: str, arguments: list[str], a: str, b: str, c: str) -> str:
    left = f"({receiver})" if receiver[0] == "-" else receiver
    return f"{left}{a}.{b}{name}({c}{(',' + b).join(arguments)}{a})"


def _calls(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = st.sampled_from(["view", "keep"])
    arguments = st.lists(children, max_size=3)
    return st.builds(_call, children, names, arguments, BLANKS, BLANKS, BLANKS)


EXPRESSIONS = st.recursive(LEAVES, _calls, max_leaves=12)


@given(st.lists(EXPRESSIONS, min_size=1, max_size=3), st.sampled_from(["reshape", "contiguous"]))
@settings(max_examples=200, deadline=None)
def test_any_nesting_keeps_every_character_outside_of_the_edit(expressions: list[str], rule: str) -> None:
    text = "# é\r\ndef g():\r\n" + "".join(f"\t_ = [{expression}]; 0  # view\r\n" for expression in expressions)
    changed = edited(text, rule)
    assert changed == _expected(text, rule)


def _expected(text: str, rule: str) -> str:
    """The same edit by a simpler way: the name tokens alone, from the last to the first."""
    syntax = syntax_of(text)
    for call in sorted(named_calls(syntax, ["view"]), key=lambda call: -syntax.places.range_of(call.func)[1]):
        assert isinstance(call.func, ast.Attribute)
        dot, end = syntax.places.dot_of(call.func), syntax.places.range_of(call.func)[1]
        if rule == "reshape":
            text = text[: end - len("view")] + "reshape" + text[end:]
        else:
            text = text[:dot] + ".contiguous()" + text[dot:]
    return text


def test_chain_of_400_links_is_rewritten_link_by_link() -> None:
    text = "y = x" + ".t().view(1)" * 400
    outcome = with_deep_stack(lambda: edit(text, "reshape"))
    assert outcome.text == text.replace("view", "reshape")
    assert len(outcome.findings) == 400


def test_sum_of_3000_terms_is_edited() -> None:
    # 3.12 has a fixed limit of its own, just below
    terms = 2900 if sys.version_info[:2] == (3, 12) else 3000
    text = "y = " + " + ".join(["x.view(1)"] * terms)
    outcome = with_deep_stack(lambda: edit(text, "reshape"))
    assert outcome.text == text.replace("view", "reshape")


def _seconds(text: str) -> float:
    syntax = syntax_of(text)
    decided = [(finding(syntax, call, "reshape"), call) for call in named_calls(syntax, ["view"])]
    started = time.process_time()
    apply(syntax, decided, RULES)
    return time.process_time() - started
