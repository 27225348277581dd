"""Ops whose result is a view: same storage, other sizes and strides."""

from __future__ import annotations

from codemod.layout.layout import Layout
from codemod.layout.ops.rule import Alias, Index, Indices, op


@op(
    ".transpose",
    ".swapaxes",
    ".swapdims",
    "torch.transpose",
    "torch.swapaxes",
    "torch.swapdims",
    alias=Alias.ALWAYS,
    examples=(
        "x.transpose(1, 2)",
        "x.transpose(-1, 0)",
        "torch.transpose(x, dim0=0, dim1=1)",
        "x.swapaxes(0, 2)",
    ),
)
def transpose(input: Layout, dim0: Index, dim1: Index) -> Layout | None:
    if dim0 is None or dim1 is None:
        return None
    if input.rank is None and (dim0 < 0) != (dim1 < 0):
        return None  # whether dims 1 and -1 are the same one depends on the rank
    input = _with_dims(input, dim0, dim1)
    first, second = input.index(dim0), input.index(dim1)
    if first is None or second is None:
        return None
    return Layout(tuple(input.dims[{first: second, second: first}.get(i, i)] for i in range(len(input.dims))))


@op(".t", "torch.t", alias=Alias.ALWAYS, examples=("x[0].t()", "torch.t(x[0])"))
def t(input: Layout) -> Layout | None:
    if input.rank is None:
        input = input.of_rank(2)
    return Layout(input.dims[::-1]) if len(input.dims) <= 2 else None


@op(
    ".permute",
    "torch.permute",
    alias=Alias.ALWAYS,
    examples=("x.permute(2, 0, 1)", "x.permute((0, 2, 1))", "torch.permute(x, (1, 0, 2))"),
)
def permute(input: Layout, dims: Indices) -> Layout | None:
    if dims is None:
        return None
    rank = len(dims)
    layout = input.of_rank(rank)
    if len(layout.dims) != rank or sorted(d % rank for d in dims) != list(range(rank)):
        return None
    return Layout(tuple(layout.dims[d] for d in dims))


def _with_dims(layout: Layout, *indices: int) -> Layout:
    """The layout with these dims told apart; that they exist is shown by the call having been accepted."""
    front = max((i + 1 for i in indices if i >= 0), default=0)
    back = max((-i for i in indices if i < 0), default=0)
    if front and back:
        return layout
    return layout.exposed(front, back)
