"""Each known issue that shows on a CPU fails as it is described, and its cure makes it pass."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from codemod.known_issues import KNOWN_ISSUES, KnownIssue, installed_torch, match

Forward = Callable[[torch.Tensor], object]
ISSUES = {issue.name: issue for issue in KNOWN_ISSUES}
REFUSED = "view size is not compatible with input tensor's size and stride (at least one dimension spans ...)"
REFUSED_IN_A_TRACE = (
    "Cannot view a tensor with shape torch.Size([2, 3]) and strides (1, 2) as a tensor with shape (6,)!"
)

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")


class Convolved(nn.Module):
    def __init__(self, tail: Forward) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.tail = tail

    def forward(self, x: torch.Tensor) -> object:
        return self.tail(self.conv(x))


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, of its own code
        yield
    torch._dynamo.reset()


def conv_input() -> torch.Tensor:
    return torch.randn(2, 3, 8, 8)


def channels_last() -> torch.Tensor:
    return torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)


def matrix_exp(y: torch.Tensor) -> torch.Tensor:
    return torch.matrix_exp(y)


def matrix_exp_cured(y: torch.Tensor) -> torch.Tensor:
    return torch.matrix_exp(y.flatten(0, -3)).unflatten(0, y.shape[:-2])


def aliased(y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return y.view(2, -1), y.view(2, 4, -1)


def aliased_cured(y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return y.view(2, -1).clone(), y.view(2, 4, -1).clone()


def complex_view(y: torch.Tensor) -> torch.Tensor:
    return y.view(torch.complex64)


def complex_view_cured(y: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(y.unflatten(-1, (-1, 2)))


def cat(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, x], 1).permute(0, 2, 3, 1).view(-1)


def cat_cured(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, x], 1).permute(0, 2, 3, 1).reshape(-1)


def roll(x: torch.Tensor) -> torch.Tensor:
    return x.roll(1, 1).permute(0, 2, 3, 1).view(-1)


def roll_cured(x: torch.Tensor) -> torch.Tensor:
    return x.roll(1, 1).permute(0, 2, 3, 1).reshape(-1)


CASES = [
    pytest.param(
        *("matrix-exp-channels-last", matrix_exp, matrix_exp_cured, "aot_eager_decomp_partition", "inductor"),
        marks=needs_compiler,
    ),
    pytest.param(
        *("aliased-outputs", aliased, aliased_cured, "aot_eager_decomp_partition", "inductor"), marks=needs_compiler
    ),
    pytest.param(
        *("complex-view-after-conv", complex_view, complex_view_cured, "aot_eager_decomp_partition", "inductor"),
        marks=needs_compiler,
    ),
    pytest.param("channels-last-lost", cat, cat_cured, "aot_eager", "aot_eager_decomp_partition"),
    pytest.param("channels-last-lost", roll, roll_cured, None, "eager"),
]
"""(issue, what fails, the cure, the last backend that passes, the first that fails)"""


@pytest.mark.parametrize(("name", "broken", "cured", "passing", "failing"), CASES)
def test_it_fails_as_described_and_the_cure_passes(
    name: str, broken: Forward, cured: Forward, passing: str | None, failing: str
) -> None:
    issue = ISSUES[name]
    assert issue.is_in(torch.__version__)
    is_convolved = name != "channels-last-lost"
    x = conv_input() if is_convolved else channels_last()
    program, mended = (Convolved(broken), Convolved(cured)) if is_convolved else (broken, cured)
    if isinstance(program, nn.Module) and isinstance(mended, nn.Module):
        mended.load_state_dict(program.state_dict())
    expected = results(program, x)
    if passing is not None:
        assert_same(results(torch.compile(program, backend=passing, fullgraph=True), x), expected)
    with pytest.raises(Exception) as caught:
        results(torch.compile(program, backend=failing, fullgraph=True), x)
    assert any(recognised(issue, str(caught.value)))
    torch._dynamo.reset()
    assert_same(results(mended, x), expected)
    assert_same(results(torch.compile(mended, backend=failing, fullgraph=True), x), expected)


def recognised(issue: KnownIssue, message: str) -> Iterator[bool]:
    import re

    return (re.search(pattern, message) is not None for pattern in issue.recognise)


def results(program: Callable[[torch.Tensor], object], x: torch.Tensor) -> list[torch.Tensor]:
    """Outputs and the gradient of the input, where it has one: `.view(dtype)` has none."""
    x = x.detach().requires_grad_()
    outputs = program(x)
    leaves = list(outputs) if isinstance(outputs, tuple) else [outputs]
    if not leaves[0].requires_grad:
        return leaves
    weights = torch.Generator().manual_seed(1)
    cotangents = [torch.randn(leaf.shape, generator=weights, dtype=leaf.dtype) for leaf in leaves]
    return [*(leaf.detach() for leaf in leaves), *torch.autograd.grad(leaves, x, cotangents)]


def assert_same(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    torch.testing.assert_close([value.detach() for value in found[: len(expected)]], expected, rtol=1e-4, atol=1e-5)


@needs_compiler
def test_the_setting_that_is_passed_about_for_aliased_outputs_gives_wrong_values() -> None:
    program, x = Convolved(aliased), conv_input()
    expected = results(program, x)
    with torch._functorch.config.patch(view_replay_for_aliased_outputs=False):
        found = results(torch.compile(program, fullgraph=True), x)
    assert not torch.allclose(found[0], expected[0], atol=1e-3)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.gate = nn.Conv2d(2, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        largest = y.max(dim=1)[0].unsqueeze(1)
        return self.gate(torch.cat((largest, y.mean(dim=1).unsqueeze(1)), dim=1))


@needs_compiler
def test_strides_that_inductor_cannot_order_are_so_only_while_every_size_is_open() -> None:
    issue, program, x = ISSUES["symbolic-sizes-compared"], Gated(), conv_input().requires_grad_()
    assert issue.is_in(torch.__version__)
    with pytest.raises(Exception) as caught:
        torch.compile(program, dynamic=True, fullgraph=True)(x)
    assert any(recognised(issue, str(caught.value)))
    torch._dynamo.reset()
    marked = x.detach().clone().requires_grad_()
    torch._dynamo.mark_dynamic(marked, 0)
    compiled = torch.compile(program, fullgraph=True)(marked)
    compiled.sum().backward()
    program(x).sum().backward()
    torch.testing.assert_close(compiled, program(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(marked.grad, x.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("message", "operation", "stage", "eager_passes"),
    [
        (REFUSED, None, "inductor", True),
        (REFUSED, "view", "eager", False),
        (REFUSED, "linalg_matrix_exp", "eager", False),
        (REFUSED_IN_A_TRACE, "view", "dynamo", False),
        ("CUDA out of memory", "bmm", "inductor", True),
        ("CUDA error: invalid configuration argument", "softmax", "inductor", True),
    ],
)
def test_what_may_be_a_fault_of_the_user_is_no_known_issue(
    message: str, operation: str | None, stage: str, eager_passes: bool
) -> None:
    assert match(message, operation, stage, eager_passes=eager_passes) is None


@pytest.mark.parametrize(
    ("message", "operation", "stage", "name"),
    [
        (REFUSED, "linalg_matrix_exp", "aot_inductor", "matrix-exp-channels-last"),
        (REFUSED_IN_A_TRACE, "view", "aot_eager_decomp_partition", "channels-last-lost"),
        ("CUDA error: invalid configuration argument", "bmm", "inductor", "bmm-template-grid"),
        ("an illegal memory access was encountered", "bmm", "eager", "bmm-outer-product-offsets"),
    ],
)
def test_it_is_matched_by_message_operation_and_stage(message: str, operation: str, stage: str, name: str) -> None:
    found = match(message, operation, stage, eager_passes=stage != "eager")
    assert found is not None
    assert found.name == name


def test_versions_count_from_the_first_release_to_the_one_that_mends_it() -> None:
    grid = ISSUES["bmm-template-grid"]
    assert [grid.is_in(version) for version in ("1.13.1", "2.0.0", "2.12.1+cu130", "2.13.0+cpu", "3.0")] == [
        *(False, True, True, False, False)
    ]
    assert ISSUES["matrix-exp-channels-last"].is_in("2.14.0.dev20260701")
    assert installed_torch() == torch.__version__


def test_every_issue_is_told_from_the_others() -> None:
    assert len(ISSUES) == len(KNOWN_ISSUES)
    for issue in KNOWN_ISSUES:
        assert issue.source.startswith("https://github.com/pytorch/pytorch/")
        assert issue.recognise
        assert issue.number is None or str(issue.number) in issue.source
