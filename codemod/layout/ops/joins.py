"""Ops that put several tensors together."""

from __future__ import annotations

from codemod.layout.layout import Dim, Layout, World, anonymous, contiguous, restrided
from codemod.layout.ops.rule import AnyNumber, Index, Layouts, op
from codemod.layout.ops.undecided import handed_on, image
from codemod.layout.size import UNKNOWN, ZERO, Size
from codemod.layout.value import Value


@op(
    "torch.cat",
    "torch.concat",
    "torch.concatenate",
    examples=("torch.cat([x, y], 1)", "torch.cat((x, y), dim=-1)", "torch.cat([image, image], 1)"),
)
def cat(tensors: Layouts, dim: Index = 0, *, world: World) -> Layout:
    """Contiguous, but channels_last where all of them are."""
    if tensors is None:
        return image(anonymous(), [], world, spatial=None)
    if not tensors:
        return anonymous()
    shape = _joined(tensors, dim)
    ranks = {tensor.rank for tensor in tensors}
    if all(tensor.is_contiguous for tensor in tensors) or not ranks.isdisjoint((1, 2, 3)):
        return restrided(shape)
    if shape.rank is None:
        return image(shape, tensors, world, spatial=None, is_settled_by_input=True, origin=handed_on(tensors))
    spatial = max(shape.rank - 2, 1)
    return image(shape, tensors, world, spatial=spatial, is_settled_by_input=True, origin=handed_on(tensors))


def _joined(tensors: tuple[Layout, ...], dim: int | None) -> Layout:
    """Sizes of the result."""
    first = tensors[0]
    if dim is None:
        return anonymous(min(tensor.least_rank for tensor in tensors))
    if isinstance(tensors, AnyNumber):
        return _joined_any(tensors, dim)
    layout = first.exposed(dim + 1 if dim >= 0 else 0, -dim if dim < 0 else 0)
    at = layout.index(dim)
    if at is None or any(tensor.rank != first.rank for tensor in tensors):
        return anonymous()
    total = Size(())
    for tensor in tensors:
        opened = tensor.exposed(dim + 1 if dim >= 0 else 0, -dim if dim < 0 else 0)
        position = opened.index(dim)
        total = total + (opened.dims[position].size if position is not None else UNKNOWN)
    if total.terms is None:
        return anonymous()
    return Layout(tuple(Dim(total, ZERO) if i == at else d for i, d in enumerate(layout.dims)))


def _joined_any(tensors: AnyNumber, dim: int) -> Layout:
    """What the sizes of elements of a list, each of which is one of these, leave of those of the result."""
    known = [tensor for tensor in tensors if tensor.rank is not None]
    ranks = {len(tensor.dims) for tensor in known}
    if len(ranks) != 1 or known[0].index(dim) is None:
        return anonymous(min(tensor.least_rank for tensor in tensors))
    at, first = known[0].index(dim), known[0].sizes
    return contiguous(
        [
            size if i != at and len(known) == len(tensors) and all(t.sizes[i] == size for t in known) else UNKNOWN
            for i, size in enumerate(first)
        ]
    )


@op("torch.stack", examples=("torch.stack([x, y])", "torch.stack([x, y], dim=1)", "torch.stack([m, m], -1)"))
def stack(tensors: Layouts, dim: Index = 0, *, world: World) -> Layout | None:
    """Contiguous; of channels_last images the result keeps their order."""
    if tensors is None or dim is None:
        return image(anonymous(), [], world, spatial=None)
    if not tensors:
        return anonymous()
    first = tensors[0]
    if not all(tensor.is_contiguous for tensor in tensors) and first.rank in (None, 4, 5):
        return image(anonymous(), tensors, world, spatial=None, origin=handed_on(tensors))
    if first.rank is None or isinstance(tensors, AnyNumber):
        return anonymous()
    sizes = list(first.sizes)
    sizes.insert(dim if dim >= 0 else len(sizes) + dim + 1, Size.of(len(tensors)))
    return contiguous(sizes) if all(size.terms is not None for size in sizes) else anonymous()


@op(
    "torch.hstack",
    "torch.vstack",
    "torch.dstack",
    "torch.column_stack",
    "torch.block_diag",
    "torch.cartesian_prod",
    "torch.combinations",
    examples=("torch.hstack([x, y])", "torch.vstack((m, m))", "torch.column_stack([v, v])", "torch.block_diag(m, m)"),
)
def joined(*ignored: Value) -> Layout | None:
    return None
