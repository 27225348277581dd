"""What is passed over changes no verdict, and little is run."""

from __future__ import annotations

import ast

import pytest

from codemod.layout.program import survey
from codemod.layout.relevance import Body, Slice
from tests.layout.test_analyse import PROGRAMS
from tests.layout.verdicts import HEADER, rulings


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_what_is_passed_over_changes_no_verdict(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sliced = rulings(HEADER + program)
    monkeypatch.setattr(Slice, "is_idle", lambda self, node: False)
    monkeypatch.setattr(Slice, "leaves_idly", lambda self, node: False)
    monkeypatch.setattr(Slice, "unread", lambda self, node: 0)
    monkeypatch.setattr(Slice, "carries", lambda self, loop, names: True)
    assert {line: ruling.verdict for line, ruling in rulings(HEADER + program).items()} == {
        line: ruling.verdict for line, ruling in sliced.items()
    }


def idle_lines(text: str, *, returns: bool = False) -> list[int]:
    """Lines of the statements of the one function of `text` that are passed over."""
    tree = ast.parse(text)
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    sites = survey(tree).sites
    part = Slice(Body(function, sites), sites, returns=returns)
    return [node.lineno for node in ast.walk(function) if isinstance(node, ast.stmt) and part.is_idle(node)]


def test_what_no_site_reads_is_idle() -> None:
    assert idle_lines(
        """def f(self, x):
    y = self.a(x)
    z = self.b(y)
    log(z)
    x = self.c(x)
    return y.view(-1)
"""
    ) == [3, 4, 5]


def test_what_is_bound_anew_before_it_is_read_is_idle() -> None:
    assert idle_lines("def f(self, x):\n    y = self.a(x)\n    y = self.b(x)\n    return y.view(-1)\n") == [2]


def test_a_loop_may_take_any_way() -> None:
    text = """def f(self, x, n):
    for _ in range(n):
        x.view(-1)
        x = self.a(x)
        z = self.b(x)
"""
    assert idle_lines(text) == [5]


def test_a_result_that_is_asked_for_is_read() -> None:
    text = "def f(self, x):\n    y = x.view(-1)\n    z = self.a(y)\n    return z\n"
    assert idle_lines(text) == [3]
    assert idle_lines(text, returns=True) == []


def test_what_changes_a_list_that_is_read_is_not_idle() -> None:
    assert idle_lines("def f(xs, y):\n    xs.append(g(y))\n    ys.append(g(y))\n    return xs[0].view(-1)\n") == [3]


def test_tests_of_shapes_are_run() -> None:
    text = """def f(x):
    assert check(x)
    if broken(x):
        raise ValueError(x)
    b, t, c = x.shape
    return x.view(-1)
"""
    assert idle_lines(text) == []
