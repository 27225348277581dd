"""Ops whose result is a view: same storage, other sizes and strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codemod.layout.layout import Dim, Layout, Pack, World, anonymous, restrided
from codemod.layout.ops.lift import as_size
from codemod.layout.ops.reshaped import reshaped
from codemod.layout.ops.rule import (
    Alias,
    AnyNumber,
    Dims,
    Extent,
    Index,
    Indices,
    Parts,
    Shape,
    Tensors,
    Text,
    op,
)
from codemod.layout.ops.window import slid
from codemod.layout.size import INFER, ONE, UNKNOWN, ZERO, Size, part_of, product
from codemod.layout.value import Number, Several, Value
from codemod.layout.viewable import Target, viewed

_ALL = 1 << 30
"""Stands for a dim that is left out."""


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
    """The layout with these dims told apart; that they exist is shown by the call having been accepted.

    Those known of on the other side may be the same ones: where the tensor is contiguous, their sizes are given up.
    """
    front = max((i + 1 for i in indices if i >= 0), default=0)
    back = max((-i for i in indices if i < 0), default=0)
    if front and back:
        return layout
    found = layout.exposed(front, back)
    if found.is_contiguous and found.rank is None and any(found.index(i) is None for i in indices):
        return anonymous(max(layout.least_rank, front, back)).exposed(front, back)
    return found


@op(".mT", ".mH", ".adjoint", "torch.adjoint", alias=Alias.ALWAYS, examples=("x.mT",))
def matrix_transpose(input: Layout) -> Layout | None:
    return transpose(input, -2, -1)


@op(".T", ".H", alias=Alias.ALWAYS, examples=("m.T",))
def reversed_dims(input: Layout) -> Layout | None:
    return Layout(input.dims[::-1]) if input.rank is not None else None


@op(
    ".data",
    ".detach",
    "torch.detach",
    ".detach_",
    ".requires_grad_",
    ".retain_grad",
    alias=Alias.ALWAYS,
    examples=("x.detach()",),
)
def same(input: Layout) -> Layout:
    return input


@op(
    ".real",
    ".imag",
    "torch.real",
    "torch.imag",
    alias=Alias.MAYBE,
    examples=(
        "torch.view_as_complex(m.contiguous().unflatten(-1, (3, 2))).real",
        "torch.imag(torch.view_as_complex(x.contiguous().unflatten(-1, (3, 2))).transpose(0, 1))",
        "x.real",
    ),
)
def real(input: Layout) -> Layout:
    """Of a complex tensor every second number: all strides double, so that what could be merged still can."""
    return Layout(tuple(replace(dim, stride=dim.stride * Size.of(2)) for dim in input.dims))


@op(".reshape", "torch.reshape", alias=Alias.MAYBE, examples=("x.reshape(-1)", "x.reshape(x.size(0), -1)"))
def reshape(input: Layout, shape: Shape, world: World) -> Layout | None:
    return reshaped(input, shape, world)


@op(".reshape_as", ".view_as", alias=Alias.MAYBE, examples=("x.reshape_as(y)",))
def reshape_as(input: Layout, mat2: Layout, world: World) -> Layout | None:
    return reshaped(input, Target(tuple(dim.pack or dim.size for dim in mat2.dims)), world)


@op(
    ".flatten",
    "torch.flatten",
    alias=Alias.MAYBE,
    examples=("x.flatten()", "x.flatten(1)", "x.flatten(0, 1)", "x.flatten(-2)"),
)
def flatten(input: Layout, start_dim: Index = 0, end_dim: Index = -1, *, world: World) -> Layout | None:
    """A reshape that merges the dims from `start_dim` to `end_dim`."""
    if start_dim is None or end_dim is None:
        return None
    if (start_dim, end_dim) == (0, -1):
        return reshaped(input, Target((INFER,)), world)
    layout = input.exposed(*_sides(start_dim, end_dim))
    start = _edge(layout, start_dim, is_start=True)
    end = _edge(layout, end_dim, is_start=False)
    if start is None or end is None or start > end:
        return anonymous() if input.is_contiguous else None
    sizes = [dim.pack or dim.size for dim in layout.dims]
    merged = product(dim.size for dim in layout.dims[start : end + 1])
    return reshaped(layout, Target((*sizes[:start], merged, *sizes[end + 1 :])), world)


def _sides(start: int, end: int) -> tuple[int, int]:
    """How many dims the two bounds name in front of the pack and behind it."""
    front = max((i + 1 if i == end else i for i in (start, end) if i >= 0), default=0)
    back = max((-i - 1 if i == end else -i for i in (start, end) if i < 0), default=0)
    return front, back


def _edge(layout: Layout, dim: int, *, is_start: bool) -> int | None:
    """Position of the first or the last dim to merge; the pack may be it."""
    at = layout.pack_at
    if at is None:
        return layout.index(dim)
    if dim >= 0:
        return dim if dim < at or (dim == at and is_start) else None
    position = len(layout.dims) + dim
    return position if position > at or (position == at and not is_start) else None


@op(
    ".unflatten",
    "torch.unflatten",
    alias=Alias.ALWAYS,
    examples=("x.unflatten(-1, (2, -1))", "x.unflatten(0, (-1, 1))"),
)
def unflatten(input: Layout, dim: Index, sizes: Shape) -> Layout | None:
    if dim is None or sizes is None:
        return None
    layout = _with_dims(input, dim)
    at = layout.index(dim)
    if at is None:
        return None
    kept = [d.pack or d.size for d in layout.dims]
    return viewed(layout, Target((*kept[:at], *sizes.items, *kept[at + 1 :])))


@op(
    ".unsqueeze",
    "torch.unsqueeze",
    alias=Alias.ALWAYS,
    examples=("x.unsqueeze(0)", "x.unsqueeze(-1)", "x.unsqueeze(-2)"),
)
def unsqueeze(input: Layout, dim: Index) -> Layout | None:
    if dim is None:
        return None
    layout = input.exposed(dim if dim > 0 else 0, -dim - 1 if dim < -1 else 0)
    at = dim if dim >= 0 else len(layout.dims) + dim + 1
    pack = layout.pack_at
    if not 0 <= at <= len(layout.dims) or (pack is not None and (at > pack if dim >= 0 else at <= pack)):
        return None
    return Layout((*layout.dims[:at], Dim(ONE, ONE), *layout.dims[at:]))


@op(
    ".squeeze",
    "torch.squeeze",
    alias=Alias.ALWAYS,
    examples=("x.squeeze(1)", "x.unsqueeze(1).squeeze(1)", "x.squeeze()"),
)
def squeeze(input: Layout, dim: Index = _ALL) -> Layout | None:
    """Drops a dim that has size 1, and keeps one that has not: certain for literal sizes only."""
    if dim is None:
        return None
    if dim == _ALL:
        certain = all(d.size.constant is not None for d in input.dims)
        return Layout(input.core) if certain else anonymous() if input.is_contiguous else None
    layout = _with_dims(input, dim)
    at = layout.index(dim)
    if at is not None and layout.dims[at].size.constant is not None:
        return Layout((*layout.dims[:at], *layout.dims[at + 1 :])) if layout.dims[at].size == ONE else layout
    if any(other.size == ONE for other in layout.dims):
        return None  # which of the dims behind has size 1 is open, and so is what a later transpose makes of them
    return anonymous() if input.is_contiguous else None


@op(
    ".expand",
    ".broadcast_to",
    "torch.broadcast_to",
    alias=Alias.ALWAYS,
    examples=("x.unsqueeze(1).expand(-1, 3, -1, -1)", "m[:1].expand(4, -1)", "v.expand(3, -1)"),
)
def expand(input: Layout, size: Shape) -> Layout | None:
    if size is None or any(isinstance(item, Pack) for item in size.items):
        return None
    layout = input.of_rank(len(size.items)) if input.rank is None else input
    added = len(size.items) - len(layout.dims)
    if added < 0:
        return None
    old = [*[Dim(ONE, ZERO)] * added, *layout.dims]
    return Layout(tuple(_expanded(dim, new) for dim, new in zip(old, size.sizes, strict=True)))


def _expanded(dim: Dim, size: Size) -> Dim:
    """A dim of size 1 is repeated with stride 0; -1 and its own size keep it."""
    if size == INFER or size == dim.size:
        return dim
    if dim.size == ONE:
        return Dim(size, ZERO)
    if dim.size.constant is not None:
        return dim
    return Dim(size, UNKNOWN)


@op(
    "torch.meshgrid",
    alias=Alias.ALWAYS,
    examples=(
        "torch.meshgrid(v, v[:3], indexing='ij')",
        "torch.meshgrid([v, v[:3], v[::2]], indexing='xy')",
        "torch.meshgrid(m[:, 0], m[0], x[0, 0, 0], indexing='xy')",
        "torch.meshgrid((torch.arange(3), torch.arange(4)))",
    ),
)
def meshgrid(tensors: Tensors, indexing: Text = "ij") -> tuple[Layout, ...] | None:
    """Each is repeated along all dims but its own; `xy` then swaps the first two dims."""
    if tensors is None or isinstance(tensors, AnyNumber) or indexing is None:
        return None
    axes = [(tensor.of_rank(1).dims or (Dim(ONE, ONE),))[0] for tensor in tensors]
    if any(tensor.rank not in (None, 0, 1) for tensor in tensors):
        return None
    order = [1, 0, *range(2, len(axes))] if indexing == "xy" and len(axes) > 1 else range(len(axes))
    return tuple(Layout(tuple(_along(axes, i, j) for j in order)) for i in range(len(axes)))


def _along(axes: Sequence[Dim], own: int, dim: int) -> Dim:
    return axes[dim] if dim == own else Dim(axes[dim].size, ZERO)


@op(".expand_as", alias=Alias.ALWAYS, examples=("v.expand_as(x)",))
def expand_as(input: Layout, mat2: Layout) -> Layout | None:
    if mat2.rank is None:
        return None
    layout = input if input.rank is not None else input.of_rank(mat2.rank)
    return expand(layout, Target(mat2.sizes))


@op(
    ".movedim",
    "torch.movedim",
    ".moveaxis",
    "torch.moveaxis",
    alias=Alias.ALWAYS,
    examples=("x.movedim(0, -1)", "torch.moveaxis(x, 0, 2)", "image.movedim((1, 2), (3, 0))"),
)
def movedim(input: Layout, source: Dims, destination: Dims) -> Layout | None:
    if source is None or destination is None or len(source) != len(destination):
        return None
    if input.rank is None:
        return None
    rank = input.rank
    if not all(-rank <= dim < rank for dim in (*source, *destination)):
        return None
    moved = {to % rank: at % rank for at, to in zip(source, destination, strict=True)}
    if len(moved) != len(source) or len(set(moved.values())) != len(source):
        return None
    rest = iter(i for i in range(rank) if i not in moved.values())
    return Layout(tuple(input.dims[moved[i] if i in moved else next(rest)] for i in range(rank)))


@op(".select", "torch.select", alias=Alias.ALWAYS, examples=("x.select(1, 0)", "x.select(-1, 2)"))
def select(input: Layout, dim: Index, index: Extent) -> Layout | None:
    if dim is None:
        return None
    layout = _with_dims(input, dim)
    at = layout.index(dim)
    return None if at is None else Layout((*layout.dims[:at], *layout.dims[at + 1 :]))


@op(".narrow", "torch.narrow", alias=Alias.ALWAYS, examples=("x.narrow(1, 0, 2)",))
def narrow(input: Layout, dim: Index, start: Extent, length: Extent) -> Layout | None:
    return _resized(input, dim, length)


def _resized(input: Layout, dim: int | None, size: Size) -> Layout | None:
    if dim is None:
        return None
    layout = _with_dims(input, dim)
    at = layout.index(dim)
    if at is None:
        return None
    return Layout(tuple(replace(d, size=size) if i == at else d for i, d in enumerate(layout.dims)))


@op(
    ".chunk",
    "torch.chunk",
    ".tensor_split",
    "torch.tensor_split",
    alias=Alias.ALWAYS,
    examples=("x.chunk(2, -1)", "torch.chunk(x, 3, dim=1)"),
)
def chunk(input: Layout, chunks: Index, dim: Index = 0) -> Parts | tuple[Layout, ...] | None:
    if dim is None:
        return None
    size = _size(input, dim)
    part = part_of(size, dim)
    if chunks is not None and size.constant and (size.constant % chunks == 0 or size == ONE):
        part = Size.of(max(size.constant // chunks, 1))
    layout = _resized(input, dim, part)
    return None if layout is None else Parts(layout, size, dim)


@op(
    ".split",
    "torch.split",
    ".split_with_sizes",
    "torch.split_with_sizes",
    alias=Alias.ALWAYS,
    examples=("x.split(2, 1)", "x.split([1, 3], dim=1)"),
)
def split(input: Layout, split_size_or_sections: Value, dim: Index = 0) -> Parts | tuple[Layout | None, ...] | None:
    if dim is None:
        return None
    if isinstance(split_size_or_sections, Several):
        return tuple(_resized(input, dim, as_size(item)) for item in split_size_or_sections.items)
    size = _size(input, dim)
    length = split_size_or_sections.size.constant if isinstance(split_size_or_sections, Number) else None
    part = part_of(size, dim)
    if length == 1 or (length and size.constant and (size.constant % length == 0 or size.constant < length)):
        part = Size.of(min(length, size.constant or length))
    layout = _resized(input, dim, part)
    return None if layout is None else Parts(layout, size, dim)


@op(".unbind", "torch.unbind", alias=Alias.ALWAYS, examples=("x.unbind()", "x.unbind(1)"))
def unbind(input: Layout, dim: Index = 0) -> Parts | None:
    layout = select(input, dim, UNKNOWN)
    return None if layout is None or dim is None else Parts(layout, UNKNOWN, dim)


def _size(input: Layout, dim: int) -> Size:
    layout = _with_dims(input, dim)
    at = layout.index(dim)
    return UNKNOWN if at is None else layout.dims[at].size


@op(".unfold", alias=Alias.ALWAYS, examples=("x.unfold(1, 2, 1)", "x.unfold(-1, 2, 2)", "image.unfold(2, 2, 1)"))
def unfold(input: Layout, dimension: Index, size: Extent, step: Extent) -> Layout | None:
    """Windows of `size` along a dim, put behind the others."""
    if dimension is None:
        return None
    layout = _with_dims(input, dimension)
    at = layout.index(dimension)
    if at is None or layout.dims[at].pack is not None:
        return None
    windows = Dim(slid(layout.dims[at].size, size, step, ZERO), layout.dims[at].stride * step)
    window = Dim(size, layout.dims[at].stride)
    return Layout((*layout.dims[:at], windows, *layout.dims[at + 1 :], window))


@op(
    ".diagonal",
    "torch.diagonal",
    ".as_strided",
    "torch.as_strided",
    alias=Alias.ALWAYS,
    examples=("x.diagonal(0, 1, 2)", "torch.diagonal(m)", "m.as_strided((2, 2), (1, 2))"),
)
def strided(input: Layout, *ignored: Value) -> Layout | None:
    return None


@op(
    ".view_as_real",
    "torch.view_as_real",
    alias=Alias.ALWAYS,
    examples=("torch.view_as_real(torch.view_as_complex(x.contiguous().unflatten(-1, (3, 2))).transpose(0, 1))",),
)
def view_as_real(input: Layout) -> Layout:
    doubled = [replace(dim, stride=dim.stride * Size.of(2)) for dim in input.dims]
    return Layout((*doubled, Dim(Size.of(2), ONE)))


@op(
    "torch.view_as_complex",
    alias=Alias.ALWAYS,
    examples=(
        "torch.view_as_complex(x.contiguous().unflatten(-1, (3, 2)))",
        "torch.view_as_complex(x.unflatten(-1, (3, 2)).contiguous())",
    ),
)
def view_as_complex(input: Layout) -> Layout | None:
    return restrided(Layout(input.exposed(0, 1).dims[:-1])) if input.is_contiguous else None
