"""Known issues that show on a CPU: the rung, the operation and the line that are named, and the rewrite that helps."""

from __future__ import annotations

import shutil

import pytest

from codemod.known_issues import match
from codemod.settings import Settings, Sites
from codemod.verify.rung import RUNGS
from tests.guest.standing import Stand, climb
from tests.transforms.programs import rewritten

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")

NET = """\
class f(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        {body}
        return {result}
"""
IMAGES = "torch.randn(2, 3, 8, 8)"
CHANNELS_LAST = "torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)"
MATRIX_EXP = NET.format(body="y = self.conv(x)", result="torch.matrix_exp(y)")
BEFORE_CONV = NET.format(body="y = torch.matrix_exp(x)", result="self.conv(y)")
ALIASED = NET.format(body="y = self.conv(x)", result="y.view(2, -1), y.view(2, 4, -1)")
COMPLEX = NET.format(body="y = self.conv(x)", result="y.view(torch.complex64)")
CAT = "def f(x):\n    return torch.cat([x, x], 1).permute(0, 2, 3, 1).view(-1)\n"
OPEN_SIZES = """\
class f(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.gate = torch.nn.Conv2d(2, 1, 3, padding=1)

    def forward(self, x):
        y = self.conv(x)
        largest = y.max(dim=1)[0].unsqueeze(1)
        return self.gate(torch.cat((largest, y.mean(dim=1).unsqueeze(1)), dim=1))
"""
ROLL = "def f(x):\n    return x.roll(1, 1).permute(0, 2, 3, 1).view(-1)\n"


@pytest.mark.parametrize(
    ("program", "inputs", "passing", "failing", "operation", "line", "issue"),
    [
        pytest.param(
            *(MATRIX_EXP, IMAGES, "aot_eager_decomp_partition", "inductor", "linalg_matrix_exp"),
            *("return torch.matrix_exp(y)", "matrix-exp-channels-last"),
            marks=needs_compiler,
        ),
        pytest.param(
            *(MATRIX_EXP, IMAGES, "run_decompositions", "aot_inductor", "linalg_matrix_exp"),
            *("return torch.matrix_exp(y)", "matrix-exp-channels-last"),
            marks=needs_compiler,
        ),
        pytest.param(
            *(BEFORE_CONV, IMAGES, "aot_eager", "inductor", "linalg_matrix_exp"),
            *("y = torch.matrix_exp(x)", "matrix-exp-channels-last"),
            marks=needs_compiler,
        ),
        pytest.param(
            *(ALIASED, IMAGES, "aot_eager_decomp_partition", "inductor", "gen_alias_from_base"),
            *("return y.view(2, -1), y.view(2, 4, -1)", "aliased-outputs"),
            marks=needs_compiler,
        ),
        pytest.param(
            *(COMPLEX, IMAGES, "aot_eager_decomp_partition", "inductor", "view.dtype"),
            *("return y.view(torch.complex64)", "complex-view-after-conv"),
            marks=needs_compiler,
        ),
        pytest.param(
            *(OPEN_SIZES, IMAGES, "inductor", "inductor_dynamic", "unsqueeze"),
            *("largest = y.max(dim=1)[0].unsqueeze(1)", "symbolic-sizes-compared"),
            marks=needs_compiler,
        ),
        (
            *(CAT, CHANNELS_LAST, "aot_eager", "aot_eager_decomp_partition", "view"),
            *("return torch.cat([x, x], 1).permute(0, 2, 3, 1).view(-1)", "channels-last-lost"),
        ),
        (
            *(ROLL, CHANNELS_LAST, None, "dynamo", "view"),
            *("return x.roll(1, 1).permute(0, 2, 3, 1).view(-1)", "channels-last-lost"),
        ),
    ],
)
def test_the_first_rung_that_fails_is_named_with_operation_line_and_issue(
    stand: Stand, program: str, inputs: str, passing: str | None, failing: str, operation: str, line: str, issue: str
) -> None:
    if passing is not None:
        assert climb(stand, passing, program, inputs=inputs)["status"] == "ok"
    answer = climb(stand, failing, program, inputs=inputs)
    assert answer["status"] == "failed", answer
    failure = answer["failure"]
    assert failure["operation"] == operation, failure
    assert failure["frames"][-1]["text"] == line
    found = match(failure["message"], failure["operation"], failing, eager_passes=True)
    assert found is not None, failure
    assert found.name == issue


@needs_compiler
@pytest.mark.parametrize(
    ("program", "inputs", "transform", "rungs"),
    [
        (f"{MATRIX_EXP}\ndef compiled():\n    return torch.compile(f())\n", IMAGES, "compiled-layout", RUNGS[1:]),
        (
            f"{CAT}\n{ROLL.replace('f(x)', 'g(x)')}\ndef both(x):\n    return f(x), g(x)\n",
            *(CHANNELS_LAST, "view-to-reshape", ("dynamo", "aot_eager_decomp_partition", "inductor", "export")),
        ),
    ],
    ids=["matrix_exp", "cat and roll"],
)
def test_every_rung_passes_after_the_rewrite_with_equal_results_and_gradients(
    stand: Stand, program: str, inputs: str, transform: str, rungs: tuple[str, ...]
) -> None:
    mended = rewritten(f"import torch\n{program}", transform, Settings(sites=Sites.FAILING)).removeprefix(
        "import torch\n"
    )
    assert mended != program
    name = "both" if "both" in program else "f"
    assert stand("eager", program, name, inputs)["status"] == "ok"  # what the rungs below are compared with
    found = {rung: stand(rung, mended, name, inputs) for rung in rungs}
    assert {rung: answer["status"] for rung, answer in found.items()} == dict.fromkeys(rungs, "ok"), found
