"""An upper bound for a Dim: from the settings, or from a bmm over it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from codemod.finding import Action
from codemod.settings import Settings
from tests.transforms.programs import findings, rewritten

NAME = "bound-dim"
HEADER = "import sys\nimport torch\nfrom torch.export import Dim, export\n"

LEFT_ALONE = {
    "bounded": 'n = Dim("n", min=1, max=4096)\n',
    "bounded by a name": 'LIMIT = 64\nn = Dim("n", max=LIMIT)\n',
    "bounded by what is not known": 'def f(limit):\n    return Dim("n", max=limit)\n',
    "hidden keywords": 'def f(**kw):\n    return Dim("n", **kw)\n',
    "automatic": "spec = {0: Dim.AUTO, 1: Dim.DYNAMIC}\n",
    "bounded hints": "spec = {0: Dim.AUTO(max=8), 1: Dim.DYNAMIC(min=2, max=8)}\n",
}


@pytest.mark.parametrize("program", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_left_alone(program: str) -> None:
    text = HEADER + program
    assert rewritten(text, NAME, Settings(max_batch=256)) == text
    assert not findings(text, NAME)


@pytest.mark.parametrize(
    "program",
    [
        'from xarray import Dim\nn = Dim("n")\n',
        'def f(registry):\n    return registry.Dim("n")\n',
        'def f(unit=None):\n    make = unit.Dim\n    return make("n"), unit.DYNAMIC(min=2), unit.AUTO()\n',
        'class Net:\n    def f(self, x):\n        return self.Dim("n"), x.unit.Dim("n"), x.AUTO(min=2)\n',
        "import torch\nn = torch.classes.Dim('n')\n",
    ],
)
def test_another_dim_is_left_alone(program: str) -> None:
    assert not findings(program, NAME, Settings(max_batch=256))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('Dim("n")', 'Dim("n", max=256)'),
        ("Dim('n', min=2)", "Dim('n', min=2, max=256)"),
        ("Dim(name='n')", "Dim(name='n', max=256)"),
        ('Dim("n", max=None)', 'Dim("n", max=256)'),
        ('Dim("n", max=sys.maxsize, min=2)', 'Dim("n", max=256, min=2)'),
        ('Dim("n", max=2147483647)', 'Dim("n", max=256)'),
        ('torch.export.Dim("n")', 'torch.export.Dim("n", max=256)'),
        ("Dim.DYNAMIC(min=2)", "Dim.DYNAMIC(min=2, max=256)"),
        ("Dim.AUTO(max=None)", "Dim.AUTO(max=256)"),
        ("torch.export.Dim.DYNAMIC()", "torch.export.Dim.DYNAMIC(max=256)"),
        ('Dim(\n    "n",\n)', 'Dim(\n    "n",\n    max=256,\n)'),
        ('Dim(\n    "n",  # batch\n    min=2,\n)', 'Dim(\n    "n",  # batch\n    min=2,  # batch\n    max=256,\n)'),
    ],
)
def test_a_bound_from_the_settings(before: str, after: str) -> None:
    assert rewritten(f"{HEADER}n = {before}\n", NAME, Settings(max_batch=256)) == f"{HEADER}n = {after}\n"


@pytest.mark.parametrize("made", ["D('n')", "torch.export.Dim('n')"])
def test_other_names_of_it(made: str) -> None:
    text = f"import torch\nfrom torch.export import Dim as D\nn = {made}\n"
    assert rewritten(text, NAME, Settings(max_batch=8)) == text.replace("'n')", "'n', max=8)")


BMM = """
class Net(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4, d, d))

    def forward(self, a, b):
        {0}

def main(d):
    n = Dim("n")
    {1}
"""
EXPORTS = {
    "by name": 'export(Net(d), (1, 2), dynamic_shapes={"a": {0: n}, "b": {0: n}})',
    "by position": "export(Net(d), (1, 2), dynamic_shapes=({0: n}, {0: n}))",
    "as a list": 'export(Net(d).eval(), (1, 2), dynamic_shapes={"a": [n, None, None], "b": None})',
    "through names": 'net = Net(d)\n    spec = {"a": {0: n}}\n    export(net, (1,), dynamic_shapes=spec)',
}


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_a_bmm_over_the_dim_shows_the_bound(export: str) -> None:
    program = HEADER + BMM.format("return torch.bmm(a, b)", export)
    (finding,) = findings(program, NAME)
    assert finding.replacement == 'Dim("n", max=65535)', finding.reasons
    assert finding.reasons[0].line == program[: program.index("torch.bmm")].count("\n") + 1


@pytest.mark.parametrize(
    ("body", "export"),
    [
        ("return a + b", EXPORTS["by name"]),
        ("return torch.bmm(self.weight, self.weight)", EXPORTS["by name"]),
        ("return torch.bmm(a, b)", 'export(Net(d), (1, 2), dynamic_shapes={"a": {1: n}, "b": {2: n}})'),
    ],
)
def test_no_bound_is_guessed(body: str, export: str) -> None:
    (finding,) = findings(HEADER + BMM.format(body, export), NAME)
    assert finding.action is Action.REPORT


SAMPLED = BMM.replace("{1}", "export(Net(d), (torch.rand({2}, 2, 3), torch.rand({2}, 3, 2)), {3})")
SHAPES = 'dynamic_shapes={"a": {0: n}, "b": {0: n}}'


@pytest.mark.parametrize("bound", ["", ", max=64"])
@pytest.mark.parametrize("sample", [0, 1])
def test_an_example_that_fixes_the_dim_is_told(sample: int, bound: str) -> None:
    text = HEADER + SAMPLED.format("return torch.bmm(a, b)", None, sample, SHAPES).replace('"n"', f'"n"{bound}')
    (finding,) = findings(text, NAME)
    assert finding.verdict.value == "failing"
    assert finding.action is (Action.REPORT if bound else Action.REWRITE)
    assert finding.reasons[-1].text == f"the example input has size {sample} there: export takes that for a constant"


def test_an_example_of_two_rows_is_right() -> None:
    text = HEADER + SAMPLED.format("return torch.bmm(a, b)", None, 2, SHAPES).replace('"n"', '"n", max=64')
    assert not findings(text, NAME)


@pytest.mark.parametrize("sample", [0, 1, 2])
def test_torch_takes_an_example_of_0_or_1_for_a_constant(sample: int) -> None:
    class Pairs(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch.bmm(a, b)

    n = torch.export.Dim("n", max=64)
    given = torch.rand(sample, 2, 3), torch.rand(sample, 3, 2)
    if sample == 2:
        torch.export.export(Pairs(), given, dynamic_shapes={"a": {0: n}, "b": {0: n}})
        return
    with pytest.raises(torch._dynamo.exc.UserError, match="Constraints violated"):
        torch.export.export(Pairs(), given, dynamic_shapes={"a": {0: n}, "b": {0: n}})


def test_code_for_a_torch_that_launches_any_batch_gets_no_bound_of_the_grid() -> None:
    text = HEADER + BMM.format("return torch.bmm(a, b)", EXPORTS["by name"])
    (finding,) = findings(text, NAME, Settings(torch="2.13"))
    assert finding.action is Action.REPORT
    (finding,) = findings(text, NAME, Settings(torch="2.13", max_batch=512))
    assert finding.replacement == 'Dim("n", max=512)'


def test_a_hint_of_which_an_example_of_one_row_makes_a_constant() -> None:
    text = HEADER + SAMPLED.format("return torch.bmm(a, b)", None, 1, SHAPES).replace('Dim("n")', "Dim.AUTO(max=64)")
    (finding,) = findings(text, NAME)
    assert finding.action is Action.REPORT


@pytest.mark.parametrize("hint", [torch.export.Dim.DYNAMIC, torch.export.Dim.AUTO])
def test_torch_bounds_a_hint(hint: Callable[..., object]) -> None:
    class Pairs(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch.bmm(a, b)

    def given(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.rand(batch, 2, 3), torch.rand(batch, 3, 2)

    n = hint(max=64)
    module = torch.export.export(Pairs(), given(7), dynamic_shapes={"a": {0: n}, "b": {0: n}}).module()
    assert module(*given(64)).shape[0] == 64
    with pytest.raises(AssertionError, match="<= 64"):
        module(*given(65))
