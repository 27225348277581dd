"""Every Example of every Transform: the text that comes out, and both texts on real torch."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from types import ModuleType

import pytest
import torch
from torch.overrides import TorchFunctionMode

from codemod.transform import Example
from tests.transforms.programs import run, transforms

EXAMPLES = [
    pytest.param(name, example, id=f"{name}: {example.title}")
    for name, transform in sorted(transforms().items())
    for example in transform.examples
]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_the_text_comes_out_as_promised(name: str, example: Example) -> None:
    edited = run(example.before, name, example.settings)
    assert edited.text == (example.after or example.before)
    assert run(edited.text, name, example.settings).text == edited.text, "a second run changes it again"
    if example.verdict is not None:
        assert edited.findings, "no finding"
        assert edited.findings[-1].verdict.value == example.verdict, edited.findings[-1].reasons


@pytest.mark.parametrize("name", sorted(transforms()))
def test_a_transform_leaves_alone_more_than_it_rewrites(name: str) -> None:
    examples = transforms()[name].examples
    kept = [example for example in examples if example.after is None]
    assert len(kept) >= len(examples) - len(kept)
    assert transforms()[name].summary
    assert sys.modules[type(transforms()[name]).__module__].__doc__


@pytest.mark.parametrize(("name", "example"), [p for p in EXAMPLES if p.values[1].check and p.values[1].after])
def test_the_new_program_computes_the_same(name: str, example: Example, helper: None) -> None:
    assert example.after is not None and example.check is not None
    before, after = outcome(example.before, example.check), outcome(example.after, example.check)
    if before is None:
        assert after is not None, "neither program runs"
        return
    assert after is not None, "the new program does not run"
    assert_same(before, after)


@pytest.mark.parametrize(("name", "example"), [p for p in EXAMPLES if p.values[1].check and not p.values[1].after])
def test_programs_that_are_left_alone_are_real(name: str, example: Example, helper: None) -> None:
    assert example.check is not None
    compile(example.check, "check", "eval")
    exec(example.before, {"__name__": "program"})
    outcome(example.before, example.check)


@dataclass(frozen=True, slots=True)
class Outcome:
    value: object
    gradients: tuple[torch.Tensor | None, ...]
    shared: tuple[int, ...]
    """Which of the inputs the result shares storage with."""


class _Inputs(TorchFunctionMode):
    """Notes the tensors that a program makes, and asks for their gradients."""

    makers = (torch.arange, torch.rand, torch.ones, torch.zeros, torch.randn)

    def __init__(self, with_gradients: bool) -> None:
        super().__init__()
        self.made: list[torch.Tensor] = []
        self.with_gradients = with_gradients

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        if func in self.makers:
            if self.with_gradients and result.is_floating_point():
                result.requires_grad_()
            self.made.append(result)
        return result


def outcome(text: str, check: str) -> Outcome | None:
    """None where the program raises what torch raises for a wrong shape or stride."""
    for with_gradients in (True, False):
        namespace: dict[str, object] = {"__name__": "program", "torch": torch}
        exec(compile(text, "program.py", "exec"), namespace)
        torch.manual_seed(0)
        inputs = _Inputs(with_gradients)
        try:
            with inputs:
                value = eval(check, namespace)
            return _outcome(value, inputs)
        except RuntimeError as error:
            if "a leaf Variable that requires grad" in str(error) and with_gradients:
                continue
            return None
    return None


def _outcome(value: object, inputs: _Inputs) -> Outcome:
    tensor = value if isinstance(value, torch.Tensor) else None
    gradients: tuple[torch.Tensor | None, ...] = ()
    if tensor is not None and tensor.requires_grad:
        leaves = [made for made in inputs.made if made.requires_grad]
        weights = torch.arange(float(tensor.numel())).view(tensor.shape)
        gradients = torch.autograd.grad((tensor * weights).sum(), leaves, allow_unused=True)
    shared = tuple(
        i
        for i, made in enumerate(inputs.made)
        if tensor is not None and made.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()
    )
    return Outcome(value, gradients, shared)


def assert_same(before: Outcome, after: Outcome) -> None:
    if isinstance(before.value, torch.Tensor):
        assert isinstance(after.value, torch.Tensor)
        assert before.value.dtype == after.value.dtype
        assert torch.equal(before.value, after.value)
    else:
        assert before.value == after.value
    assert len(before.gradients) == len(after.gradients)
    for left, right in zip(before.gradients, after.gradients, strict=True):
        assert (left is None) == (right is None)
        assert left is None or right is None or torch.equal(left, right)
    assert before.shared == after.shared


@pytest.fixture
def helper() -> Iterator[None]:
    """The module that rewritten programs import the helper from."""
    path = resources.files("codemod") / "guest" / "chunked_bmm.py"
    with resources.as_file(path) as file:
        if file.exists():
            spec = importlib.util.spec_from_file_location("_chunked_bmm", file)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            module = ModuleType("_chunked_bmm")
            module.chunked_bmm = torch.bmm  # type: ignore[attr-defined]
    sys.modules["_chunked_bmm"] = module
    yield
    del sys.modules["_chunked_bmm"]
