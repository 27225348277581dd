"""The helper that is copied into the user's package, against torch.bmm."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from types import ModuleType

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

_NAME = "guest_chunked_bmm"
"""Other tests load and drop the helper under the name that it has in a project."""


def _load() -> ModuleType:
    path = resources.files("codemod") / "guest" / "chunked_bmm.py"
    spec = importlib.util.spec_from_file_location(_NAME, str(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = module  # dynamo looks a function's module up by name
    spec.loader.exec_module(module)
    return module


helper = _load()
chunked_bmm: Callable[..., torch.Tensor] = helper.chunked_bmm


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


def _pair(batch: int = 7, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(batch, 2, 3).to(dtype), torch.randn(batch, 3, 4).to(dtype)


@settings(max_examples=60, deadline=None)
@given(
    batch=st.integers(0, 9),
    sizes=st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)),
    chunk=st.integers(1, 5),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.int64, torch.complex64, torch.bfloat16]),
    kind=st.sampled_from(["plain", "transposed", "expanded", "sliced"]),
)
def test_values_are_those_of_bmm(
    batch: int, sizes: tuple[int, int, int], chunk: int, dtype: torch.dtype, kind: str
) -> None:
    n, m, p = sizes
    a, b = torch.randn(batch, n, m).mul(4).to(dtype), torch.randn(batch, m, p).mul(4).to(dtype)
    if kind == "transposed":
        a, b = a.mT.contiguous().mT, b.mT.contiguous().mT
    elif kind == "expanded":
        a = a[:1].expand(batch, n, m)
    elif kind == "sliced":
        a, b = a.repeat(2, 1, 1)[::2], b.repeat(2, 1, 1)[::2]
    expected = torch.bmm(a, b)
    result = chunked_bmm(a, b, chunk=chunk)
    assert result.dtype == expected.dtype
    assert result.stride() == expected.stride()
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (torch.zeros(7, 2, 3), torch.zeros(8, 3, 4)),
        (torch.zeros(7, 2, 3), torch.zeros(7, 4, 4)),
        (torch.zeros(7, 2), torch.zeros(7, 2, 3)),
        (torch.zeros(7, 2, 3), torch.zeros(7, 3, 4, dtype=torch.float64)),
        (torch.zeros(7, 2, 3), None),
    ],
)
def test_errors_are_those_of_bmm(left: torch.Tensor, right: torch.Tensor) -> None:
    with pytest.raises((RuntimeError, TypeError)) as expected:
        torch.bmm(left, right)
    with pytest.raises(expected.type) as raised:
        chunked_bmm(left, right, chunk=2)
    assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("needs", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_gradients_and_their_gradients(needs: tuple[bool, bool], dtype: torch.dtype) -> None:
    a, b = _pair(dtype=dtype)
    a.requires_grad_(needs[0])
    b.requires_grad_(needs[1])
    assert torch.autograd.gradcheck(lambda x, y: chunked_bmm(x, y, chunk=3), (a, b))
    assert torch.autograd.gradgradcheck(lambda x, y: chunked_bmm(x, y, chunk=3), (a, b))


def test_batched_gradients() -> None:
    a, b = (tensor.requires_grad_() for tensor in _pair())
    weights = torch.randn(5, 7, 2, 4, dtype=torch.float64)
    expected, found = (
        torch.autograd.grad(result, (a, b), weights, is_grads_batched=True)
        for result in (torch.bmm(a, b), chunked_bmm(a, b, chunk=2))
    )
    torch.testing.assert_close(found, expected)
    assert torch.autograd.gradcheck(lambda a, b: chunked_bmm(a, b, chunk=2), (a, b), check_batched_grad=True)


def test_nothing_is_recorded_without_gradients() -> None:
    a, b = _pair()
    assert not chunked_bmm(a, b, chunk=3).requires_grad
    with torch.no_grad():
        assert not chunked_bmm(a.requires_grad_(), b, chunk=3).requires_grad
    with torch.inference_mode():
        assert chunked_bmm(a.detach(), b, chunk=3).is_inference()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own import under vmap
def test_functional_transforms() -> None:
    a, b = _pair()

    def function(x: torch.Tensor) -> torch.Tensor:
        return chunked_bmm(x, b, chunk=3)

    def plain(x: torch.Tensor) -> torch.Tensor:
        return torch.bmm(x, b)

    tangent = torch.randn_like(a)
    torch.testing.assert_close(torch.func.jvp(function, (a,), (tangent,)), torch.func.jvp(plain, (a,), (tangent,)))
    torch.testing.assert_close(torch.func.jacrev(function)(a), torch.func.jacrev(plain)(a))
    stacked = torch.stack([a, 2 * a], dim=1)
    torch.testing.assert_close(torch.vmap(function, in_dims=1)(stacked), torch.vmap(plain, in_dims=1)(stacked))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(a, tangent)
        found = torch.autograd.forward_ad.unpack_dual(function(dual)).tangent
        assert found is not None
        torch.testing.assert_close(found, torch.bmm(tangent, b))


def test_autocast() -> None:
    a, b = _pair(dtype=torch.float32)
    x, y = a.clone().requires_grad_(), a.clone().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected, result = torch.bmm(x, b), chunked_bmm(y, b, chunk=3)
    assert result.dtype is expected.dtype is torch.bfloat16
    torch.testing.assert_close(result, expected)
    expected.sum().backward()
    result.sum().backward()
    assert y.grad is not None
    assert y.grad.dtype is torch.float32
    torch.testing.assert_close(y.grad, x.grad)


def test_out_is_filled() -> None:
    a, b = _pair()
    for out in (torch.zeros(7, 2, 4, dtype=a.dtype), torch.zeros(7, 4, 2, dtype=a.dtype).mT):
        assert chunked_bmm(a, b, out=out, chunk=3) is out
        torch.testing.assert_close(out, torch.bmm(a, b))
    with pytest.raises(RuntimeError):
        chunked_bmm(a, b, out=torch.zeros(7, 2, 4), chunk=3)


@pytest.mark.parametrize("out", [torch.zeros(7, 2, 4).to_sparse(), 3], ids=["sparse", "int"])
def test_an_out_that_bmm_refuses_meets_its_error(out: object) -> None:
    a, b = _pair(dtype=torch.float32)
    errors = []
    for form in (torch.bmm, chunked_bmm):
        with pytest.raises((RuntimeError, TypeError)) as caught:
            form(a, b, out=out, **({} if form is torch.bmm else {"chunk": 2}))
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("chunk", [0, -1])
def test_a_chunk_that_holds_nothing_is_told(chunk: int) -> None:
    with pytest.raises(ValueError, match=f"chunk={chunk}; give 1 or more"):
        chunked_bmm(*_pair(), chunk=chunk)


def test_a_parameter_and_a_tensor_are_chunked() -> None:
    a, b = _pair()
    weight = torch.nn.Parameter(a)
    assert helper._step(weight, b, 3) == helper._step(b.mT, weight.mT, 3) == 3
    torch.testing.assert_close(chunked_bmm(weight, b, chunk=3), torch.bmm(weight, b))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_are_left_to_bmm() -> None:
    a = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    b = torch.nested.nested_tensor([torch.ones(3, 5), torch.ones(3, 5)])
    parts = zip(chunked_bmm(a, b, chunk=1).unbind(), torch.bmm(a, b).unbind(), strict=True)
    assert all(torch.equal(part, expected) for part, expected in parts)


def test_meta_tensors() -> None:
    a, b = (tensor.to("meta") for tensor in _pair())
    assert chunked_bmm(a, b, chunk=3).shape == (7, 2, 4)


def test_the_limits_choose_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper, "ELEMENTS", 24)
    a, b = _pair()
    assert helper._step(a, b, helper.MATRICES) == 2
    monkeypatch.setattr(helper, "MATRICES", 1)
    assert helper._step(a, b, helper.MATRICES) == 1
    monkeypatch.undo()
    assert helper._step(a, b, helper.MATRICES) is None
    big = torch.zeros(65_536, 1, 1)
    assert helper._step(big, big, helper.MATRICES) == 65_535


def test_no_temporary_is_as_large_as_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    whole = torch.bmm

    def counted(left: torch.Tensor, right: torch.Tensor, **kwargs: torch.Tensor) -> torch.Tensor:
        sizes.append(left.shape[0])
        assert "out" in kwargs, "a chunk's result is written in place"
        return whole(left, right, **kwargs)

    monkeypatch.setattr(torch, "bmm", counted)
    a, b = _pair()
    chunked_bmm(a, b, chunk=3)
    assert sizes == [3, 3, 1]


def _integers(batch: int, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    """Small whole numbers: their products are exact in any order of summing."""
    return torch.randint(-4, 5, (batch, 2, 3)).to(dtype), torch.randint(-4, 5, (batch, 3, 4)).to(dtype)


def _graphs(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> list[torch.fx.GraphModule]:
    """The graphs compiled for eight batch sizes."""
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward  # type: ignore[no-any-return]

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend, fullgraph=True, dynamic=True)
    for batch in (1, 2, 3, 4, 7, 11, 20, 0):
        a, b = _integers(batch)
        assert torch.equal(compiled(a, b), torch.bmm(a, b))
    torch._dynamo.reset()
    return graphs


def test_under_compile_it_is_one_bmm_and_as_many_graphs_as_bmm() -> None:
    graphs = _graphs(lambda x, y: chunked_bmm(x, y, chunk=3))
    assert len(graphs) == len(_graphs(lambda x, y: torch.bmm(x, y)))
    assert [sum("bmm" in str(node.target) for node in graph.graph.nodes) for graph in graphs] == [1] * len(graphs)


class _Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return chunked_bmm(a, b, chunk=3)


@pytest.mark.parametrize("strict", [False, True])
def test_under_export_it_is_one_bmm(strict: bool) -> None:
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(_Model(), _pair(), dynamic_shapes={"a": {0: batch}, "b": {0: batch}}, strict=strict)
    assert sum("bmm" in str(node.target) for node in program.graph.nodes) == 1
    a, b = _pair(40)
    torch.testing.assert_close(program.module()(a, b), torch.bmm(a, b))


class _Bounded(torch.nn.Module):
    """Chunks within the program, whose result meets the batch of another tensor."""

    def __init__(self, chunk: int, max_batch: int) -> None:
        super().__init__()
        self.limits = {"chunk": chunk, "max_batch": max_batch}

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return chunked_bmm(a, b, **self.limits) + a[:, :, :1]


_DIMS: dict[str, Callable[[], object]] = {
    "named": lambda: torch.export.Dim("batch"),
    "bounded": lambda: torch.export.Dim("batch", min=0, max=70_000),
    "DYNAMIC": lambda: torch.export.Dim.DYNAMIC,
    "AUTO": lambda: torch.export.Dim.AUTO,
}
_BATCHES = (0, 1, 2, 63, 64, 65, 100, 5_000, 70_000)


def _export(
    model: torch.nn.Module, dim: object, sample: int, strict: bool = False, dtype: torch.dtype = torch.float32
) -> torch.export.ExportedProgram:
    shapes = {"a": {0: dim}, "b": {0: dim}}
    return torch.export.export(model, _integers(sample, dtype), dynamic_shapes=shapes, strict=strict)


def _count(module: torch.nn.Module) -> int:
    """The bmm in its graph and in the branches."""
    graphs = (part for part in module.modules() if isinstance(part, torch.fx.GraphModule))
    return sum(node.target is torch.ops.aten.bmm.default for graph in graphs for node in graph.graph.nodes)


@pytest.mark.parametrize("sample", [7, 100])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kind", _DIMS)
def test_an_exported_program_is_chunked_and_exact(kind: str, strict: bool, sample: int) -> None:
    model = _Bounded(64, 192)
    program = _export(model, _DIMS[kind](), sample, strict)
    assert _count(program.graph_module) == 1 + 3
    module = program.module()
    for batch in (0, 1, 2, 63, 64, 65, 100, 192):
        a, b = _integers(batch)
        assert torch.equal(module(a, b), torch.bmm(a, b) + a[:, :, :1]), batch


@pytest.mark.parametrize("kind", _DIMS)
def test_the_last_chunk_of_an_exported_program_takes_what_is_above_max_batch(kind: str) -> None:
    module = _export(_Bounded(3, 11), _DIMS[kind](), 7).module()
    for batch in (11, 12, 13, 100):
        a, b = _integers(batch)
        assert torch.equal(module(a, b), torch.bmm(a, b) + a[:, :, :1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_chunks_of_a_large_batch_are_exact(dtype: torch.dtype) -> None:
    module = _export(_Bounded(10_000, 70_000), torch.export.Dim.DYNAMIC, 7, dtype=dtype).module()
    for batch in _BATCHES:
        a, b = _integers(batch, dtype)
        assert torch.equal(module(a, b), torch.bmm(a, b) + a[:, :, :1]), batch


@pytest.mark.parametrize(("chunk", "max_batch", "count"), [(3, 7, 3), (7, 7, 1), (3, 3, 1)])
def test_a_batch_that_the_program_fixes(chunk: int, max_batch: int, count: int) -> None:
    program = torch.export.export(_Bounded(chunk, max_batch), _integers(7))
    assert _count(program.graph_module) == count
    a, b = _integers(7)
    assert torch.equal(program.module()(a, b), torch.bmm(a, b) + a[:, :, :1])


def test_sizes_that_the_program_fixes_choose_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper, "ELEMENTS", 24)
    program = _export(_Bounded(8, 8), torch.export.Dim.DYNAMIC, 7)
    assert _count(program.graph_module) == 1 + 4  # two matrices of 3 x 4 at a time


def _is_own_op(node: torch.fx.Node) -> bool:
    return "chunked_bmm" in str(node.target)


def test_with_max_batch_there_are_as_many_graphs_as_of_bmm() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return chunked_bmm(x, y, chunk=3, max_batch=20)

    graphs = _graphs(function)
    assert len(graphs) == len(_graphs(lambda x, y: torch.bmm(x, y)))
    assert [sum(map(_is_own_op, graph.graph.nodes)) for graph in graphs].count(1) == 1, "one takes any batch"


def test_a_compiled_program_takes_any_batch_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    whole = torch.bmm

    def counted(left: torch.Tensor, right: torch.Tensor, **kwargs: torch.Tensor) -> torch.Tensor:
        sizes.append(left.shape[0])
        return whole(left, right, **kwargs)

    torch._dynamo.reset()
    compiled = torch.compile(_Bounded(3, 4), backend="aot_eager", fullgraph=True, dynamic=True)
    compiled(*_integers(7))
    monkeypatch.setattr(torch, "bmm", counted)
    a, b = _integers(11)
    assert torch.equal(compiled(a, b), whole(a, b) + a[:, :, :1])
    assert sizes == [3, 3, 3, 2]
    torch._dynamo.reset()


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_the_op_of_compiled_programs_is_registered_as_torch_wants_it(dtype: torch.dtype) -> None:
    a, b = (tensor.requires_grad_() for tensor in _pair(dtype=dtype))
    torch.library.opcheck(helper._compiled_bmm, (a, b, 3))
    assert torch.autograd.gradcheck(lambda x, y: helper._compiled_bmm(x, y, 3), (a, b))
    assert torch.autograd.gradgradcheck(lambda x, y: helper._compiled_bmm(x, y, 3), (a, b))


def test_autocast_in_a_compiled_program() -> None:
    def cast(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return chunked_bmm(x, y, chunk=3, max_batch=20)

    torch._dynamo.reset()
    a, b = _integers(7)
    compiled = torch.compile(cast, backend="aot_eager", fullgraph=True, dynamic=True)
    assert torch.equal(compiled(a, b), cast(a, b))
    assert compiled(a, b).dtype is torch.bfloat16
    torch._dynamo.reset()


@pytest.mark.parametrize("is_told", [True, False])
def test_a_program_of_a_torch_that_does_not_tell_holds_one_bmm(monkeypatch: pytest.MonkeyPatch, is_told: bool) -> None:
    monkeypatch.setattr(helper, "_IS_FOLLOWED", is_told)
    program = _export(_Bounded(3, 11), torch.export.Dim.DYNAMIC, 7)
    assert _count(program.graph_module) == (5 if is_told else 1)
    graphs = _graphs(lambda x, y: chunked_bmm(x, y, chunk=3, max_batch=20))
    assert any(_is_own_op(node) for graph in graphs for node in graph.graph.nodes) is is_told


def test_gradients_of_a_compiled_program() -> None:
    torch._dynamo.reset()
    model = _Bounded(3, 9)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True, dynamic=True)
    for batch in (7, 1, 3, 0, 9):
        given = [tensor.requires_grad_() for tensor in _integers(batch)]
        grad = torch.randint(-3, 4, (batch, 2, 4)).float()
        result = torch.autograd.grad(compiled(*given), given, grad)
        assert all(map(torch.equal, result, torch.autograd.grad(model(*given), given, grad)))
    torch._dynamo.reset()


@pytest.mark.parametrize("strict", [False, True])
def test_autocast_in_an_exported_program(strict: bool) -> None:
    class Cast(_Bounded):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return chunked_bmm(a, b, **self.limits)

    model = Cast(3, 20)
    module = _export(model, torch.export.Dim.DYNAMIC, 7, strict).module()
    for batch in (0, 2, 7, 20):
        result, expected = module(*_integers(batch)), model(*_integers(batch))
        assert result.dtype is torch.bfloat16
        assert result.shape == expected.shape


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own import under vmap
def test_functional_transforms_in_a_compiled_program() -> None:
    torch._dynamo.reset()
    a, b = _integers(7)

    def function(x: torch.Tensor) -> torch.Tensor:
        return chunked_bmm(x, b, chunk=3, max_batch=20)

    def tangents(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.func.jvp(function, (x,), (x + 1,))  # type: ignore[no-any-return]

    def stacked(x: torch.Tensor) -> torch.Tensor:
        return torch.vmap(function, in_dims=1)(x)

    for transform, operand in ((tangents, a), (stacked, torch.stack([a, 2 * a], 1))):
        compiled = torch.compile(transform, backend="aot_eager", fullgraph=True, dynamic=True)
        torch.testing.assert_close(compiled(operand), transform(operand), rtol=0, atol=0)
    torch._dynamo.reset()


@pytest.mark.parametrize(("left", "right"), [((7, 2, 3), (8, 3, 4)), ((7, 2, 3), (7, 4, 4)), ((7, 2), (7, 2, 3))])
def test_a_tracer_meets_the_errors_of_bmm(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    class Plain(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch.bmm(a, b)

    given = torch.zeros(left), torch.zeros(right)
    with pytest.raises(RuntimeError) as expected:
        torch.export.export(Plain(), given, strict=False)
    with pytest.raises(RuntimeError) as raised:
        torch.export.export(_Bounded(3, 20), given, strict=False)
    assert str(raised.value) == str(expected.value)


@pytest.mark.skipif(shutil.which("g++") is None and shutil.which("clang++") is None, reason="AOTInductor compiles C++")
@pytest.mark.filterwarnings("ignore")  # of the compiler and of the package's loader
def test_a_package_runs_the_chunks_that_a_batch_needs(tmp_path: Path) -> None:
    model = _Bounded(10_000, 70_000)
    program = _export(model, torch.export.Dim("batch"), 7)
    package = torch._inductor.aoti_compile_and_package(
        program,
        package_path=str(tmp_path / "pairs.pt2"),
        inductor_configs={"cpp.enable_kernel_profile": True},  # its kernels are not seen by the profiler otherwise
    )
    loaded = torch._inductor.aoti_load_package(package)
    for batch in (*_BATCHES, 10_000, 10_001):
        a, b = _integers(batch)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            result = loaded(a, b)
        assert torch.equal(result, model(a, b)), batch
        launches = sum(event.name == "aoti_torch_cpu_bmm_out" for event in profile.events())
        assert launches == (1 if batch <= 10_000 else 7), batch
