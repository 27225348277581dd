from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemod.finding import Span
from codemod.sources.source import Source, decode
from codemod.syntax.parse import Syntax, parse
from codemod.syntax.spans import characters, line_starts, utf8_column


def _syntax(text: str) -> Syntax:
    source = decode("train.py", text.encode())
    assert isinstance(source, Source)
    syntax = parse(source)
    assert isinstance(syntax, Syntax)
    return syntax


def _last_call(syntax: Syntax) -> ast.Call:
    return next(node for node in ast.walk(syntax.tree) if isinstance(node, ast.Call))


@pytest.mark.parametrize(
    ("text", "segment", "span"),
    [
        ("x.view(1)", "x.view(1)", Span(1, 3, 1, 10)),
        ("f(1)", "f(1)", Span(1, 1, 1, 5)),
        ("y = é.view(\r\n  1)", "é.view(\r\n  1)", Span(1, 7, 2, 5)),
        ("a\rb\r\nc\nx.view(1)", "x.view(1)", Span(4, 3, 4, 10)),
        ("'''\x0c\x0b\x85\u2028\x1c'''\nx.view(1)", "x.view(1)", Span(2, 3, 2, 10)),
        ("if 1:\n\x0c  x.view(1)", "x.view(1)", Span(2, 6, 2, 13)),
        ("ab. \\\n  cd  (1)", "ab. \\\n  cd  (1)", Span(2, 3, 2, 10)),
        ("(x.view)(1)", "(x.view)(1)", Span(1, 4, 1, 12)),
        ("x.ﬁt(1)", "x.ﬁt(1)", Span(1, 3, 1, 8)),
        ("𝐱.𝐯𝐢𝐞𝐰(1)", "𝐱.𝐯𝐢𝐞𝐰(1)", Span(1, 3, 1, 10)),
        ("x[0](1)", "x[0](1)", Span(1, 1, 1, 8)),
    ],
)
def test_segment_and_span_of_a_call(text: str, segment: str, span: Span) -> None:
    syntax = _syntax(text)
    call = _last_call(syntax)
    assert (syntax.segment(call), syntax.span(call)) == (segment, span)


def test_bom_is_no_column() -> None:
    assert _syntax("\ufeffx.view(1)").span(_last_call(_syntax("x.view(1)"))) == Span(1, 3, 1, 10)


def test_dot_is_not_one_of_a_comment() -> None:
    text = "((x # a.b\n ) . # c.d\n view(1))"
    syntax = _syntax(text)
    func = _last_call(syntax).func
    assert isinstance(func, ast.Attribute)
    assert syntax.places.dot_of(func) == text.index(". #")


@given(st.text(alphabet="aé𝐱\u2028\x0c\x85", max_size=20), st.integers(0, 20))
def test_byte_columns_and_characters_are_inverse(line: str, column: int) -> None:
    column = min(column, len(line))
    assert characters(line, utf8_column(line, column)) == column


@given(st.text(alphabet="a\r\n\x0c\x85", max_size=30))
def test_lines_are_those_of_the_tokenizer(text: str) -> None:
    assert len(line_starts(text)) == 1 + text.replace("\r\n", "\n").replace("\r", "\n").count("\n")


@given(st.lists(st.sampled_from(["x = 'é'; y.f(1)", "  # é\x0c", "'''a", "b''';z.g()", ""]), max_size=8), st.data())
def test_every_node_is_where_ast_says_for_utf8(lines: list[str], data: st.DataObject) -> None:
    ends = st.sampled_from(["\n", "\r\n", "\r"])
    text = "".join(line + data.draw(ends) for line in lines)
    source = decode("train.py", text.encode())
    assert isinstance(source, Source)
    syntax = parse(source)
    if not isinstance(syntax, Syntax):
        return
    for node in ast.walk(syntax.tree):
        if isinstance(node, ast.Call):
            assert ast.unparse(ast.parse(syntax.segment(node))) == ast.unparse(node)
