"""Which calls a frame can stand for."""

from __future__ import annotations

import ast

import pytest

from codemod.evidence.candidates import candidates, line_of
from codemod.evidence.failure import Details, Failure, Frame, Kind, Sizes, Stage
from codemod.evidence.locate import find_site


def found(
    text: str,
    frame: Frame,
    kind: Kind = Kind.VIEW_REFUSED,
    target: Sizes | None = None,
    is_apart: bool = False,
    stage: Stage = Stage.EAGER,
    operation: str = "",
    constants: tuple[tuple[str, int], ...] = (),
) -> list[str]:
    """The calls that may be meant."""
    told = Details(target=target, operation=operation, constants=constants)
    failure = Failure(kind, "RuntimeError: it", (frame,), stage, told, is_apart)
    calls = candidates(ast.parse(text), text, frame, failure)
    return [ast.unparse(call) for call in calls]


def at(
    line: int, text: str | None = None, column: int | None = None, end: int | None = None, function: str = ""
) -> Frame:
    return Frame("m.py", line, function, text, column, end)


def test_a_line_that_is_gone_names_nothing() -> None:
    assert found("y = x.view(-1)\n", at(1, "y = x.reshape(-1)")) == []


def test_a_line_that_stands_twice_elsewhere_names_nothing() -> None:
    text = "def a(x):\n    return x.view(-1)\n\n\ndef b(x):\n    return x.view(-1)\n"
    assert found(text, at(40, "return x.view(-1)", function="c")) == []


def test_a_line_without_its_text_must_stand_in_the_function_that_is_named() -> None:
    text = "class Net:\n    def f(self, x):\n        pass\n\n    @one\n    def g(self, x):\n        return x.view(-1)\n"
    for function in ("g", "Net.g", "torch_dynamo_resume_in_g_at_6"):
        assert found(text, at(7, function=function)) == ["x.view(-1)"]
    for function in ("f", "Net.f", "h", "<lambda>", "<listcomp>"):
        assert found(text, at(7, function=function)) == []


def test_a_line_that_moved_in_a_file_that_no_longer_holds_its_caller_names_nothing() -> None:
    text = "def f(x):\n    return x.view(x.size(0), -1)\n\n\nf(torch.rand(2, 3, 4))\n"
    tree, inner = ast.parse(text), at(9, "return x.view(x.size(0), -1)", function="f")
    assert line_of(tree, text, inner, (at(14, "f(torch.rand(2, 3, 4))", function="<module>"), inner)) == 2
    assert line_of(tree, text, inner, (at(14, "loss = criterion(f(images))", function="<module>"), inner)) is None


def test_the_same_text_in_another_function_is_not_meant() -> None:
    body = "    return x.view(-1)\n"
    text = f"def a(x):\n{body}\n\ndef b(y):\n    y = y.t()\n    return y.view(-1)\n\n\ndef c(x):\n{body}"
    tree = ast.parse(text)
    for function, line in (("a", 2), ("c", 11)):
        for printed in (2, 11, 40):
            assert line_of(tree, text, at(printed, "return x.view(-1)", function=function)) == line
    assert line_of(tree, text, at(2, "return x.view(-1)", function="b")) is None
    assert line_of(tree, text, at(2, "return x.view(-1)", function="was_a")) == 2


def test_a_number_of_an_older_revision_chooses_between_no_two_lines_of_one_text() -> None:
    net = "class {}:\n    def forward(self, x):\n        return x.view(x.size(0), -1)\n\n\n"
    text = net.format("One") + net.format("Two") + "def main():\n    return Two().forward(torch.rand(2, 3, 4))\n"
    tree = ast.parse(text)
    inner = at(3, "return x.view(x.size(0), -1)", function="forward")
    for line, found_line in ((12, 3), (7, None)):
        outer = at(line, "return Two().forward(torch.rand(2, 3, 4))", function="main")
        assert line_of(tree, text, inner, (outer, inner)) == found_line
    gone = at(7, "return Two()(torch.rand(2, 3, 4), mask)", function="main")
    assert line_of(tree, text, inner, (gone, inner)) == 3


def test_carets_on_another_call_name_nothing() -> None:
    assert found("y = fc(x.view(-1))\n", at(1, "y = fc(x.view(-1)) ", 5, 19)) == []
    assert found("y = fc(x.view(-1)) + 1\n", at(1, "y = fc(x.view(-1)) + 1", 5, 19)) == []


def test_a_sum_of_views_that_is_marked_names_nothing() -> None:
    assert found("z = (x.view(-1) + y.view(-1)) * 2\n", at(1, "z = (x.view(-1) + y.view(-1)) * 2", 6, 29)) == []


def test_other_ops_of_the_line_are_not_meant() -> None:
    assert found("y = x.reshape(-1).flatten()\n", at(1)) == []
    assert found("y = x.view(torch.int8)\n", at(1)) == []
    assert found("y = x.view(2)\n", at(1), Kind.OTHER) == []


def test_a_moved_line_is_found_by_its_text() -> None:
    text = "\n\ndef f(x):\n    a = x.view(-1)\n    return a\n\n\ndef g(x):\n    a = x.view(-1)\n    return a\n"
    assert found(text, at(2, "a = x.view(-1)", function="f")) == ["x.view(-1)"]
    assert found(text, at(2, "a = x.view(-1)", function="h")) == []


def test_a_line_whose_blanks_differ_is_the_same() -> None:
    assert found("y  =  x.view( -1 )\n", at(1, "y = x.view( -1 )")) == ["x.view(-1)"]


def test_a_line_that_was_cut_off_is_the_same() -> None:
    text = f"y = f(x.view(-1), {'a' * 60})\n"
    assert found(text, at(1, text[:20])) == ["x.view(-1)"]
    assert found(text, at(2, text[:50])) == ["x.view(-1)"]
    assert found(text, at(2, text[:20])) == []


@pytest.mark.parametrize(
    ("target", "calls"),
    [
        ((32, 10), ["x.view(n, 10)", "x.view(*s)", "x.view(s)"]),
        ((64, 10), ["x.view(64, -1)", "x.view(n, 10)", "x.view(*s)", "x.view(s)"][1:]),
        ((64, -1), ["x.view(64, -1)", "x.view(*s)", "x.view(s)"]),
        ((2, 3, 4), ["x.view(2, 3, 4)", "x.view(*s)", "x.view(s)"]),
        ((None, 10), ["x.view(n, 10)", "x.view(*s)", "x.view(s)"]),
    ],
)
def test_the_message_must_fit_the_arguments(target: Sizes, calls: list[str]) -> None:
    text = "x.view(64, -1), x.view(n, 10), x.view(*s), x.view(s), x.view(2, 3, 4)\n"
    assert sorted(found(text, at(1), Kind.SHAPE_INVALID, target)) == sorted(calls)


def test_an_inferred_target_fits_a_minus_one() -> None:
    assert found("x.view(2, -1), x.view(3, -1)\n", at(1), target=(2, 12)) == ["x.view(2, -1)"]


def test_sizes_in_a_list_a_keyword_or_behind_the_tensor_are_read() -> None:
    text = "x.view([2, 3]), x.view(size=(2, 4)), torch.Tensor.view(x, 2, 5), torch.reshape(x, (2, 6))\n"
    for last, call in ((3, "x.view([2, 3])"), (4, "x.view(size=(2, 4))"), (5, "torch.Tensor.view(x, 2, 5)")):
        assert found(text, at(1), Kind.SHAPE_INVALID, (2, last)) == [call]
    assert found(text, at(1), Kind.SHAPE_INVALID, (2, 6)) == ["torch.reshape(x, (2, 6))"]


def test_carets_pick_one_of_two() -> None:
    text = "z = x.view(-1) + y.view(-1)\n"
    assert found(text, at(1, text.strip(), 5, 15)) == ["x.view(-1)"]
    assert found(text, at(1, text.strip(), 18, 28)) == ["y.view(-1)"]


def test_carets_pick_the_inner_call_of_a_chain() -> None:
    text = "z = x.view(2, 3).view(-1)\n"
    assert found(text, at(1, text.strip(), 5, 17)) == ["x.view(2, 3)"]
    assert found(text, at(1, text.strip(), 5, 26)) == ["x.view(2, 3).view(-1)"]


def test_columns_count_characters() -> None:
    text = 'é = "ünï"; z = x.view(-1) + y.view(-1)\n'
    assert found(text, at(1, text.strip(), 16, 26)) == ["x.view(-1)"]


def test_dynamo_marks_the_rest_of_the_line() -> None:
    text = "def f(x):\n    return x.view(-1) * 2\n"
    assert found(text, at(2, "return x.view(-1) * 2", 8, 22), is_apart=True) == ["x.view(-1)"]
    two = "def f(x):\n    return x.view(2, 3).view(-1)\n"
    assert len(found(two, at(2, "return x.view(2, 3).view(-1)", 8, 29), is_apart=True)) == 2


def test_a_call_over_several_lines_is_found_from_each_line_that_pythons_print() -> None:
    text = "y = (\n    x.mT\n    .view(\n        2,\n        -1,\n    )\n)\n"
    for line in (2, 3):
        assert found(text, at(line)) == ["x.mT.view(2, -1)"]
    assert found(text, at(1)) == ["x.mT.view(2, -1)"]
    assert found(text, at(3, ".view(", 2, 7)) == ["x.mT.view(2, -1)"]


def test_a_python_that_prints_carets_prints_the_line_of_the_name() -> None:
    text = "y = x.view(\n    2, -1\n).view(-1)\n"
    assert len(found(text, at(1, "y = x.view("))) == 2
    frame = at(1, "y = x.view(")
    failure = Failure(Kind.VIEW_REFUSED, "", (at(9, "g(x) + 1", 1, 5), frame))
    assert [ast.unparse(call) for call in candidates(ast.parse(text), text, frame, failure)] == ["x.view(2, -1)"]


def test_a_compiled_function_names_the_line_of_its_def() -> None:
    text = "def f(a, b):\n    c = b.mT\n    return torch.bmm(a, c)\n\n\ndef g(a):\n    return torch.bmm(a, a)\n"
    assert found(text, at(1, "def f(a, b):"), Kind.BATCH_TOO_LARGE, stage=Stage.INDUCTOR) == ["torch.bmm(a, c)"]


def test_a_compiled_function_stands_for_those_that_it_calls() -> None:
    text = "def f(a, b):\n    return g(torch.bmm(a, b))\n\n\ndef g(a):\n    return torch.bmm(a, a)\n"
    assert len(found(text, at(1, "def f(a, b):"), Kind.BATCH_TOO_LARGE, stage=Stage.INDUCTOR)) == 2


def test_a_default_that_fails_is_not_in_the_body() -> None:
    text = "def f(x, y=z.view(-1)):\n    return x.view(-1)\n"
    assert found(text, at(1, "def f(x, y=z.view(-1)):")) == ["z.view(-1)"]


def test_an_op_that_the_log_names_is_the_one_of_the_call() -> None:
    text = "def f(x):\n    return x.view(2, -1).unflatten(0, (1, 2))\n"
    assert found(text, at(2), operation="unflatten") == []
    assert found(text, at(2), operation="view") == ["x.view(2, -1)"]


def test_names_bound_to_an_op_are_known() -> None:
    assert found("from torch import bmm as b\ny = b(x, x)\n", at(2), Kind.BLAS) == ["b(x, x)"]
    assert found("f = x.view\ny = f(-1)\n", at(2)) == ["f(-1)"]
    assert found("y = getattr(x, 'view')(-1)\n", at(1)) == ["getattr(x, 'view')(-1)"]


def test_behind_the_name_of_an_op_the_tensor_may_come_first() -> None:
    text = "flat = torch.Tensor.view\ny = x.view(5, 7) + flat(x, 5, 7)\n"
    assert found(text, at(2), Kind.SHAPE_INVALID, (5, 7)) == ["x.view(5, 7)", "flat(x, 5, 7)"]


def test_a_lambda_is_its_own_frame() -> None:
    text = "y = (lambda t: t.view(-1))(x.view(1))\n"
    assert found(text, at(1, function="<lambda>")) == ["t.view(-1)"]
    assert found(text, at(1, function="<module>")) == ["x.view(1)"]


def test_a_dtype_view_is_one_of_a_dtype() -> None:
    failure = Failure(Kind.DTYPE_VIEW, "self.stride(-1) must be 1 to view Long as Char", (at(1),))
    text = "y = x.view(2, 3) + x.view(dtype=torch.int8)\n"
    assert [ast.unparse(call) for call in candidates(ast.parse(text), text, at(1), failure)] == [
        "x.view(dtype=torch.int8)"
    ]


def test_a_specialised_size_is_the_one_call_written_with_it() -> None:
    text = "def f(z):\n    return z.view(32, -1)\n\n\ndef g(z):\n    return z.view(16, -1)\n\n\nexport(f)\n"
    assert found(text, at(9), Kind.SPECIALIZED, constants=(("n", 32),)) == ["z.view(32, -1)"]
    assert found(text, at(9), Kind.SPECIALIZED, constants=(("n", 64),)) == []


def test_several_calls_are_listed_and_none_is_chosen() -> None:
    text = "z = x.view(-1) + y.view(-1)\n"
    site = find_site(ast.parse(text), text, at(1), Failure(Kind.VIEW_REFUSED, "", (at(1),)))
    assert site.span is None
    assert [span.column for span in site.candidates] == [7, 20]
    assert "2 calls fit" in site.why


def test_a_name_that_is_computed_is_told() -> None:
    text = "def f(x, how):\n    return getattr(x, how)(-1)\n"
    failure = Failure(Kind.VIEW_REFUSED, "RuntimeError: it", (at(2, function="f"),))
    site = find_site(ast.parse(text), text, failure.frames[0], failure)
    assert site.why == "line 2 calls a method by a name that is computed, `how`: no call to rewrite there"


@pytest.mark.parametrize(
    "call",
    [
        "getattr(y, how)(-1)",
        "partial(Tensor.view, y)(-1)",
        "methodcaller('view', -1)(y)",
        "bound(-1)",
        "chosen(y, -1)",
        "OPS['flat'](y, -1)",
        "fn(y, -1)",
        "fn(y, *s)",
        "sum(map(y.view, s))",
        "reduce(Tensor.view, s, y)",
    ],
)
def test_a_view_that_may_be_another_than_the_written_one_is_not_chosen(call: str) -> None:
    text = (
        "bound = partial(Tensor.view, y)\nchosen = Tensor.view if y else torch.reshape\nOPS = {'flat': Tensor.view}\n"
    )
    text += f"def f(x, y, fn, s, how):\n    return x.view(-1) + {call}\n"
    assert len(found(text, at(5, function="f"))) == 2
    assert found(text, at(5, f"return x.view(-1) + {call}", 8, 18, "f")) == ["x.view(-1)"]


@pytest.mark.parametrize(
    "call",
    [
        "fn(y)",
        "fn(x.sum(-1))",
        "getattr(F, how)(y)",
        "norm(y)",
        "sorted(s)",
        "y.view(3)",
        "map(str, s)",
        "methodcaller('sum')(y)",
    ],
)
def test_what_runs_no_view_leaves_the_written_one(call: str) -> None:
    bound = "norm = partial(LayerNorm, eps=1); view = Tensor.view\n"
    text = f"{bound}def f(x, y, fn, s, how):\n    return z.view(2) + {call}\n"
    assert found(text, at(3, function="f"), target=(2,)) == ["z.view(2)"]


def test_a_frame_has_only_its_own_calls() -> None:
    text = "def f(x, xs):\n    return x.view(-1) + g(lambda t: p(t), [t.view(2) for t in xs.view(3)], "
    text += "(t.view(4) for t in xs))\n"
    assert found(text, at(2, function="<lambda>")) == []
    assert found(text, at(2, function="f.<locals>.<lambda>")) == []
    assert found(text, at(2, function="<listcomp>")) == ["t.view(2)"]
    assert found(text, at(2, function="f.<locals>.<genexpr>")) == ["t.view(4)"]
    # Python 3.12 runs comprehensions in the frame around them
    assert sorted(found(text, at(2, function="f"))) == ["t.view(2)", "x.view(-1)", "xs.view(3)"]
    assert found("class A:\n    @one(x.view(1))\n    def f(self, y=x.view(2)): y.view(3)\n", at(3, function="A")) == [
        "x.view(2)"
    ]
