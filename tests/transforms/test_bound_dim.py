"""An upper bound for a Dim: from the settings, or from a bmm over it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch._dynamo.testing import CompileCounter

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
    "hints that are bounded by position": "spec = {0: Dim.AUTO(None, 8), 1: Dim.DYNAMIC(2, 8)}\n",
    "hidden bounds": "def f(bounds):\n    return Dim.DYNAMIC(*bounds)\n",
    "fixed": "spec = {0: Dim.STATIC, 1: Dim.STATIC()}\n",
    "marked with both": "torch._dynamo.mark_dynamic(torch.rand(4), 0, min=2, max=8)\n",
    "marked, of a size that nothing shows": "def f(x):\n    torch._dynamo.mark_dynamic(x, 0)\n",
    "marked, of one row": "torch._dynamo.mark_dynamic(torch.rand(1), 0)\n",
    "marked, of more rows than the bound": "torch._dynamo.mark_dynamic(torch.rand(300), 0)\n",
    "marked, no batch": "torch._dynamo.mark_dynamic(torch.rand(4, 4), 1)\n",
    "maybe marked": "torch._dynamo.maybe_mark_dynamic(torch.rand(4), 0)\n",
    "marked with what is hidden": "def f(x, **kw):\n    torch._dynamo.mark_dynamic(x, 0, **kw)\n",
    "marked by something else": "def f(x, pen):\n    pen.mark_dynamic(x, 0, max=4)\n",
    "marked by another function": "from pens import mark_dynamic\nmark_dynamic(torch.rand(4), 0, max=4)\n",
    "marked by their own": "def mark_dynamic(x, i, max):\n    return x\n\nmark_dynamic(torch.rand(4), 0, max=4)\n",
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
        ("Dim.DYNAMIC(2)", "Dim.DYNAMIC(2, max=256)"),
        ("Dim.AUTO(2, None)", "Dim.AUTO(2, 256)"),
        ("Dim.AUTO(None, 2**40)", "Dim.AUTO(None, 256)"),
        ('Dim(\n    "n",\n)', 'Dim(\n    "n",\n    max=256,\n)'),
        ('Dim(\n    "n",  # batch\n    min=2,\n)', 'Dim(\n    "n",  # batch\n    min=2,  # batch\n    max=256,\n)'),
    ],
)
def test_a_bound_from_the_settings(before: str, after: str) -> None:
    assert rewritten(f"{HEADER}n = {before}\n", NAME, Settings(max_batch=256)) == f"{HEADER}n = {after}\n"


@pytest.mark.parametrize(
    "program",
    [
        "from torch.export import Dim as D\nn = D('n')\n",
        "import torch\nn = torch.export.Dim('n')\n",
        "import torch.export as ex\nn = ex.Dim('n')\n",
        "from torch import export as ex\nn = ex.Dim('n')\n",
        "from torch.export.dynamic_shapes import Dim\nn = Dim('n')\n",
    ],
)
def test_other_names_of_it(program: str) -> None:
    assert rewritten(program, NAME, Settings(max_batch=8)) == program.replace("'n')", "'n', max=8)")


@pytest.mark.parametrize(
    "program", ["from torch.export import dims\na, b = dims({0})\n", "import torch\na, b = torch.export.dims({0})\n"]
)
def test_one_bound_for_several_dims_is_not_given(program: str) -> None:
    (finding,) = findings(program.format('"batch", "time"'), NAME, Settings(max_batch=8))
    assert finding.action is Action.REPORT
    assert not findings(program.format('"batch", "time", max=64'), NAME, Settings(max_batch=8))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x, 0, max=64", "x, 0, max=64, min=2"),
        ("x, index=0, max=LIMIT", "x, index=0, max=LIMIT, min=2"),
        ("x, 0, min=None, max=64", "x, 0, min=2, max=64"),
        ("x, [0, 1], max=64", "x, [0, 1], max=64, min=2"),
        ("x, 0, min=4", "x, 0, min=4, max=256"),
        ("x, 0", "x, 0, min=2, max=256"),
        ("t=x, index=0", "t=x, index=0, min=2, max=256"),
    ],
)
@pytest.mark.parametrize("name", ["torch._dynamo.mark_dynamic", "mark_dynamic", "mark"])
def test_mark_dynamic_gets_both_bounds(name: str, before: str, after: str) -> None:
    text = (
        "import torch\nfrom torch._dynamo import mark_dynamic\n"
        "from torch._dynamo.decorators import mark_dynamic as mark\n"
        f"LIMIT = 64\nx = torch.rand(4, 3)\n{name}({{0}})\n"
    )
    assert rewritten(text.format(before), NAME, Settings(max_batch=256)) == text.format(after)


def test_mark_dynamic_without_bounds_is_left_alone_where_no_bound_is_known() -> None:
    text = "import torch\nx = torch.rand(4, 3)\ntorch._dynamo.mark_dynamic(x, 0{0})\n"
    assert not findings(text.format(""), NAME)
    (finding,) = findings(text.format(", min=2"), NAME)
    assert finding.action is Action.REPORT


@pytest.mark.parametrize("bounds", ["max=64", "min=0, max=64"])
def test_a_mark_of_one_row_that_torch_refuses_is_told(bounds: str) -> None:
    text = f"import torch\nx = torch.rand(1, 3)\ntorch._dynamo.mark_dynamic(x, 0, {bounds})\n"
    (finding,) = findings(text, NAME, Settings(max_batch=64))
    assert finding.action is Action.REPORT


def _marked(rows: int, *others: int, **bounds: int) -> int:
    """How many graphs torch makes of them."""
    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(torch.relu, backend=counter)
    x = torch.rand(rows, 3)
    torch._dynamo.mark_dynamic(x, 0, **bounds)
    for one in (x, *(torch.rand(other, 3) for other in others)):
        compiled(one)
    return int(counter.frame_count)


@pytest.mark.parametrize("bounds", [{"max": 64}, {"min": 2}])
@pytest.mark.parametrize("rows", [1, 4])
def test_torch_fails_with_one_bound_of_two(rows: int, bounds: dict[str, int]) -> None:
    with pytest.raises(AssertionError, match="not simple sympy type"):
        _marked(rows, **bounds)


def test_torch_compiles_anew_beyond_a_mark() -> None:
    assert _marked(4, 64, 70) == 1
    assert _marked(4, 64, min=2, max=64) == 1
    assert _marked(4, 64, 70, min=2, max=64) == 2


def test_torch_takes_a_marked_size_of_1_for_a_constant() -> None:
    assert _marked(1, 4) == 2
    with pytest.raises(Exception, match="specialized it to be a constant"):
        _marked(1, min=1, max=64)
    with pytest.raises(Exception, match="70 not in range"):
        _marked(70, min=2, max=64)


def test_torch_takes_bounds_by_position_for_hints_only() -> None:
    assert torch.export.Dim.DYNAMIC(2, 64) == torch.export.Dim.DYNAMIC(min=2, max=64)  # type: ignore[operator]
    with pytest.raises(TypeError):
        torch.export.Dim("n", 2, 64)  # type: ignore[misc]
    with pytest.raises(TypeError):
        torch._dynamo.mark_dynamic(torch.rand(4), 0, 2, 64)  # type: ignore[misc]
    with pytest.raises(TypeError):
        torch._dynamo.maybe_mark_dynamic(torch.rand(4), 0, max=64)  # type: ignore[call-arg]


@pytest.mark.parametrize("hint", [torch.export.Dim.AUTO, torch.export.Dim.AUTO(max=64)])  # type: ignore[operator]
def test_torch_fixes_an_automatic_dim_with_or_without_a_bound(hint: object) -> None:
    class Rows(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.view(4, 3)

    exported = torch.export.export(Rows(), (torch.rand(4, 3),), dynamic_shapes={"x": {0: hint}})
    assert not exported.range_constraints


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
HINTED = {
    "in place": 'export(Net(d), (1, 2), dynamic_shapes={"a": {0: Dim.DYNAMIC}, "b": None})',
    "as a list": "export(Net(d), (1, 2), dynamic_shapes=([Dim.DYNAMIC, None, Dim.AUTO], None))",
    "through a name": 'n = Dim.DYNAMIC\n    export(Net(d), (1, 2), dynamic_shapes={"a": {0: n}, "b": {0: n}})',
    "spelled out": 'export(Net(d), (1, 2), dynamic_shapes={"a": {0: torch.export.Dim.DYNAMIC}, "b": None})',
    "over lines": 'export(Net(d), (1, 2), dynamic_shapes={"a": {0: Dim.DYNAMIC}, "b": {\n        2: Dim.AUTO}})',
}
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


def test_several_matrices_for_each_element_leave_a_lower_bound() -> None:
    heads = "b = a.shape[0]\n        return torch.bmm(a.reshape(b * 8, 3, 4), a.reshape(b * 8, 4, 3))"
    (finding,) = findings(HEADER + BMM.format(heads, EXPORTS["by name"]), NAME)
    assert finding.replacement == 'Dim("n", max=8191)'
    heads = "b, h, t = a.shape\n        return torch.bmm(a.reshape(b * h, t, 1), a.reshape(b * h, 1, t))"
    (finding,) = findings(HEADER + BMM.format(heads, EXPORTS["by name"]), NAME)
    assert finding.replacement == 'Dim("n", max=65535)'
    assert finding.reasons[0].text == "its batch goes into a bmm here, times other sizes"


@pytest.mark.parametrize("export", HINTED.values(), ids=HINTED)
def test_a_bmm_over_a_hint_shows_the_bound(export: str) -> None:
    program = (HEADER + BMM.format("return torch.bmm(a, b)", export)).replace('    n = Dim("n")\n', "")
    assert rewritten(program, NAME) == program.replace("Dim.DYNAMIC", "Dim.DYNAMIC(max=65535)")
    assert rewritten(program, NAME, Settings(max_batch=64)) == program.replace("Dim.DYNAMIC", "Dim.DYNAMIC(max=64)")


def test_a_hint_is_found_in_a_file_that_holds_nothing_else_to_decide() -> None:
    text = HEADER + BMM.format("return a + b", HINTED["in place"]).replace('    n = Dim("n")\n', "")
    assert rewritten(text, NAME, Settings(max_batch=64)) == text.replace("DYNAMIC", "DYNAMIC(max=64)")


@pytest.mark.parametrize("export", HINTED.values(), ids=HINTED)
def test_a_hint_without_a_known_bound_is_left_alone(export: str) -> None:
    assert not findings((HEADER + BMM.format("return a + b", export)).replace('    n = Dim("n")\n', ""), NAME)


@pytest.mark.parametrize("dim", ['Dim("n")', "Dim.DYNAMIC()", "Dim.AUTO"])
def test_what_is_no_batch_does_not_get_the_bound_of_batches(dim: str) -> None:
    shapes = 'dynamic_shapes={"a": {1: n}, "b": {0: n}}' if dim == "Dim.AUTO" else 'dynamic_shapes={"a": {1: n}}'
    text = HEADER + BMM.format("return a + b", f"export(Net(d), (1, 2), {shapes})").replace('Dim("n")', dim)
    assert rewritten(text, NAME, Settings(max_batch=64)) == text


def test_a_bound_below_the_example_input_is_not_written() -> None:
    text = HEADER + SAMPLED.format("return a + b", None, 100, SHAPES)
    (finding,) = findings(text, NAME, Settings(max_batch=64))
    assert finding.action is Action.REPORT
    assert finding.reasons[0].text == "an example input has 100, more than the bound that is known, 64"


PACKAGED = "torch._inductor.aoti_compile_and_package(export(Net(d), (1, 2), dynamic_shapes={0}))"


@pytest.mark.parametrize("dim", ['Dim("n")', 'Dim("n", max=64)'])
def test_a_bound_that_aotinductor_does_not_check_is_told(dim: str) -> None:
    text = HEADER + BMM.format("return torch.bmm(a, b)", PACKAGED.format("({0: n}, {0: n})")).replace('Dim("n")', dim)
    (finding,) = findings(text, NAME)
    assert finding.action is (Action.REPORT if "max" in dim else Action.REWRITE)
    assert finding.reasons[-1].text.startswith("AOTInductor checks no bound")
    checked = text.replace("import sys\n", 'import os\nos.environ["AOTI_RUNTIME_CHECK_INPUTS"] = "1"\n')
    assert all("AOTInductor" not in reason.text for one in findings(checked, NAME) for reason in one.reasons)


_CHECKS = """
import sys, torch
class Rows(torch.nn.Module):
    def forward(self, x):
        return x + 1
n = torch.export.Dim("n", max=64)
exported = torch.export.export(Rows(), (torch.rand(4, 3),), dynamic_shapes={"x": {0: n}})
package = torch._inductor.aoti_compile_and_package(exported, package_path=sys.argv[1])
run = torch._inductor.aoti_load_package(package)
def taken(rows):
    try:
        return run(torch.rand(rows, 3)).shape[0] == rows
    except RuntimeError:
        return False
print([taken(rows) for rows in (0, 1, 2, 64, 65)])
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
@pytest.mark.parametrize(("check", "taken"), [("0", [True] * 5), ("1", [False, False, True, True, False])])
def test_aotinductor_checks_bounds_only_when_told(tmp_path: Path, check: str, taken: list[bool]) -> None:
    environment = {**os.environ, "AOTI_RUNTIME_CHECK_INPUTS": check}
    command = [sys.executable, "-c", _CHECKS, str(tmp_path / "rows.pt2")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(taken)


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
