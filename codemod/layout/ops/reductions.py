"""Ops along dims: reductions, running sums and softmax.  All are contiguous, whatever the input.

Source: aten/src/ATen/native/ReduceOpsUtils.h, create_reduction_result; the meta functions of cumsum and softmax.
"""

from __future__ import annotations

from dataclasses import replace

from codemod.layout.layout import Dim, Layout, World, anonymous, restrided
from codemod.layout.ops.lift import as_indices
from codemod.layout.ops.pointwise import pointwise
from codemod.layout.ops.rule import Dims, Fields, Flag, Index, Layouts, Outcome, op
from codemod.layout.ops.undecided import sized
from codemod.layout.size import ONE, UNKNOWN
from codemod.layout.value import Constant, Number, Tensor, Value

ALL: tuple[int, ...] = ()
"""What torch takes for every dim."""


def reduced(input: Layout, dims: Dims, keepdim: Flag = False) -> Layout:
    """The contiguous result of reducing `dims`."""
    if keepdim is None:
        return anonymous()
    if dims == ALL:
        return _all(input, keepdim)
    found = positions(input, dims)
    if found is None:
        return anonymous()
    layout, chosen = found
    if keepdim:
        return sized([Dim(ONE, ONE) if i in chosen else dim for i, dim in enumerate(layout.dims)])
    return sized([dim for i, dim in enumerate(layout.dims) if i not in chosen])


def _all(input: Layout, keepdim: bool) -> Layout:
    if not keepdim:
        return Layout(())
    return anonymous() if input.rank is None else sized([ONE] * input.rank)


def positions(input: Layout, dims: Dims) -> tuple[Layout, frozenset[int]] | None:
    """The layout with these dims told apart, and where they are; None where that is not known."""
    if dims is None:
        return None
    front = max((d + 1 for d in dims if d >= 0), default=0)
    back = max((-d for d in dims if d < 0), default=0)
    layout = input.exposed(front, back)
    found = [layout.index(d) for d in dims]
    return None if None in found else (layout, frozenset(i for i in found if i is not None))


def _named(*names: str) -> list[str]:
    return [spelled for name in names for spelled in (f".{name}", f"torch.{name}")]


@op(
    *_named("sum", "mean", "nansum", "nanmean", "amax", "amin", "any", "all", "count_nonzero", "prod"),
    *_named("argmax", "argmin", "logsumexp"),
    "torch.special.logsumexp",
    examples=(
        "x.sum()",
        "x.sum(-1)",
        "x.mean((0, 2), keepdim=True)",
        "torch.sum(x, dim=[1, 2])",
        "image.mean(dim=(2, 3))",
        "image.mean((-2, -1), True)",
        "x.amax(1, True)",
        "x.argmax(dim=-1)",
        "x.argmax()",
        "x.any(0)",
        "torch.logsumexp(x, 1)",
        "x.prod(1)",
    ),
)
def reduction(input: Layout, dim: Dims = ALL, keepdim: Flag = False) -> Layout:
    return reduced(input, dim, keepdim)


@op(
    *_named("std", "var"),
    examples=("x.std(-1)", "x.var(dim=(1, 2), keepdim=True)", "x.std(False)", "x.var(1, False, True)"),
)
def deviation(input: Layout, dim: Value | None = None, unbiased: Value | None = None, keepdim: Flag = False) -> Layout:
    return reduced(input, _deviation_dims(dim), keepdim)


def _deviation_dims(dim: Value | None) -> Dims:
    """`x.std(False)` says `unbiased` and reduces everything."""
    return ALL if dim is None or isinstance(dim, Constant) else as_indices(dim)


@op(*_named("std_mean", "var_mean"), examples=("torch.var_mean(x, 1)", "torch.std_mean(x, (0, 1), keepdim=True)"))
def deviation_and_mean(
    input: Layout, dim: Value | None = None, unbiased: Value | None = None, keepdim: Flag = False
) -> Outcome:
    found = reduced(input, _deviation_dims(dim), keepdim)
    return (found, found)


@op(
    *_named("norm"), examples=("x.norm()", "x.norm(dim=-1)", "x.norm(2, 1, True)", 'torch.norm(x, p="fro", dim=(0, 1))')
)
def norm(input: Layout, p: Value | None = None, dim: Dims = ALL, keepdim: Flag = False) -> Layout:
    return reduced(input, dim, keepdim)


@op("torch.linalg.norm", "torch.linalg.vector_norm", examples=("torch.linalg.norm(x, dim=-1)", "torch.linalg.norm(m)"))
def vector_norm(input: Layout, ord: Value | None = None, dim: Dims = ALL, keepdim: Flag = False) -> Layout:
    return reduced(input, dim, keepdim)


@op("torch.linalg.matrix_norm", examples=("torch.linalg.matrix_norm(x)",))
def matrix_norm(input: Layout, ord: Value | None = None, dim: Dims = (-2, -1), keepdim: Flag = False) -> Layout:
    return reduced(input, dim, keepdim)


@op(
    *_named("max", "min"),
    examples=("x.max()", "x.max(1)", "x.max(dim=-1, keepdim=True)", "torch.min(x, 0)[0]", "torch.max(x, y)"),
)
def extremum(
    input: Layout, dim: Value | None = None, keepdim: Flag = False, *, other: Value | None = None, world: World
) -> Outcome:
    """Without `dim` of all elements; with a tensor in its place elementwise."""
    if dim is None and other is None:
        return Layout(())
    if isinstance(dim, Number):
        return _values_and_indices(reduced(input, as_indices(dim), keepdim))
    operand = other if dim is None else dim
    if not isinstance(operand, Tensor) or operand.number is not None:
        return None
    return pointwise(input, operand.layout(world))


def _values_and_indices(found: Layout) -> Fields:
    return Fields((("values", found), ("indices", found)))


@op(*_named("median", "nanmedian"), examples=("x.median()", "x.median(1)", "x.median(dim=-1, keepdim=True).values"))
def median(input: Layout, dim: Dims = ALL, keepdim: Flag = False) -> Outcome:
    return Layout(()) if dim == ALL else _values_and_indices(reduced(input, dim, keepdim))


@op(*_named("mode"), examples=("x.mode()", "x.mode(0).values"))
def mode(input: Layout, dim: Dims = (-1,), keepdim: Flag = False) -> Fields:
    return _values_and_indices(reduced(input, dim, keepdim))


@op(*_named("kthvalue"), examples=("x.kthvalue(1)", "x.kthvalue(1, dim=1).values"))
def kthvalue(input: Layout, k: Value, dim: Dims = (-1,), keepdim: Flag = False) -> Fields:
    return _values_and_indices(reduced(input, dim, keepdim))


@op(*_named("aminmax"), examples=("torch.aminmax(x, dim=1)",))
def aminmax(input: Layout, *, dim: Dims = ALL, keepdim: Flag = False) -> Fields:
    found = reduced(input, dim, keepdim)
    return Fields((("min", found), ("max", found)))


@op(
    *_named("cumsum", "cumprod", "logcumsumexp", "softmax", "log_softmax", "tril", "triu"),
    *(f"torch.nn.functional.{name}" for name in ("softmax", "log_softmax", "softmin")),
    "torch.special.softmax",
    "torch.special.log_softmax",
    examples=("x.cumsum(1)", "x.softmax(-1)", "F.log_softmax(x, dim=1)", "x.tril()", "torch.triu(x, 1)"),
)
def along(input: Layout, *ignored: Value) -> Layout:
    return restrided(input)


@op(*_named("cummax", "cummin"), examples=("x.cummax(1)", "torch.cummin(x, dim=0).values"))
def running_extremum(input: Layout, dim: Value) -> Fields:
    return _values_and_indices(restrided(input))


@op(*_named("diff"), examples=("x.diff()", "torch.diff(x, dim=1)"))
def diff(
    input: Layout, n: Index = 1, dim: Index = -1, *, prepend: Layouts = None, append: Layouts = None
) -> Layout | None:
    """A difference of two slices."""
    found = positions(input, None if dim is None else (dim,))
    if n != 1 or prepend is not None or append is not None or found is None:
        return None
    layout, chosen = found
    shorter = Layout(
        tuple(replace(d, size=d.size - ONE) if i in chosen else d for i, d in enumerate(layout.dims)),
    )
    return pointwise(shorter, shorter)


@op(*_named("bincount", "histc"), examples=("ids.bincount()", "x.histc(5)"))
def counts(input: Layout, *ignored: Value) -> Layout:
    return sized([UNKNOWN])


@op(
    *_named("dist"),
    *(f"torch.{name}" for name in ("trace", "dot", "vdot")),
    *(f".{name}" for name in ("trace", "dot", "vdot")),
    examples=("torch.dist(x, y)", "m.trace()", "v.dot(v)"),
)
def to_number(input: Layout, *ignored: Value) -> Layout:
    return Layout(())
