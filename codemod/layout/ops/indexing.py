"""Subscripts, and the ops that pick elements."""

from __future__ import annotations

from collections.abc import Sequence

from codemod.layout.layout import Dim, Layout, World, anonymous, contiguous, restrided, stride_atom
from codemod.layout.ops.rule import Alias, Extent, Fields, Index, Parts, op
from codemod.layout.origin import Origin, OriginKind
from codemod.layout.record import record
from codemod.layout.size import ONE, UNKNOWN, ZERO, Atom, Size, is_at_most, part_of
from codemod.layout.value import Constant, Value


@record(frozen=True, slots=True)
class Slice:
    start: Size | None = None
    stop: Size | None = None
    step: Size | None = None


@record(frozen=True, slots=True)
class At:
    """One integer."""

    position: Size


@record(frozen=True, slots=True)
class NewAxis:
    """`None`."""


@record(frozen=True, slots=True)
class Rest:
    """`...`"""


@record(frozen=True, slots=True)
class By:
    """A tensor or list of indices, or a mask."""

    layout: Layout


Item = Slice | At | NewAxis | Rest | By


def index(input: Layout, items: Sequence[Item]) -> tuple[Layout, Alias] | None:
    """`input[items]`; None where not even the rank of the result is known."""
    if any(isinstance(item, By) for item in items):
        return _advanced(input, items)
    opened = _with_rest(input, items)
    if opened is None:
        return None
    layout, spelled = opened
    dims, found = iter(layout.dims), list[Dim]()
    for item in spelled:
        match item:
            case NewAxis():
                found.append(Dim(ONE, ONE))
            case At():
                next(dims)
            case Slice():
                dim = next(dims)
                sliced = _sliced(dim, item)
                if sliced.size.terms is None:
                    whole = dim.size if _has_known_bounds(item) else UNKNOWN
                    sliced = Dim(part_of(whole, len(found)), sliced.stride, sliced.pack)
                found.append(sliced)
    return Layout((*found, *dims)), Alias.ALWAYS


def _with_rest(input: Layout, items: Sequence[Item]) -> tuple[Layout, list[Item]] | None:
    """The input with a dim for each item, and the items with `...` written out; the pack never meets an item."""
    at = next((i for i, item in enumerate(items) if isinstance(item, Rest)), len(items))
    front = [item for item in items[:at] if not isinstance(item, NewAxis)]
    behind = [item for item in items[at + 1 :] if not isinstance(item, NewAxis)]
    layout = input.exposed(len(front), 0) if front else input
    layout = layout.exposed(0, len(behind)) if behind else layout
    pack = layout.pack_at
    if pack is not None and (len(front) > pack or len(behind) > len(layout.dims) - pack - 1):
        return None
    kept = len(layout.dims) - len(front) - len(behind)
    if kept < 0:
        return None
    return layout, [*items[:at], *[Slice()] * kept, *items[at + 1 :]]


def _sliced(dim: Dim, item: Slice) -> Dim:
    if item.step is not None and item.step != ONE:
        return Dim(_stepped(dim.size, item), dim.stride * item.step)
    return dim if dim.pack else Dim(_length(dim.size, item), dim.stride)


def _stepped(size: Size, item: Slice) -> Size:
    bounds = [part.constant if part is not None else None for part in (item.start, item.stop, item.step)]
    if not size.constant or not _has_known_bounds(item):
        return UNKNOWN
    return Size.of(len(range(size.constant)[slice(*bounds)]))


def _has_known_bounds(item: Slice) -> bool:
    return all(part is None or part.constant is not None for part in (item.start, item.stop, item.step))


def _length(size: Size, item: Slice) -> Size:
    """Number of elements, told to be smaller than `size` where it must be once it is above 1."""
    start, stop = item.start, item.stop
    first = start.constant if start is not None else 0
    last = stop.constant if stop is not None else None
    if stop is None and start is None:
        return size
    if first is None or (stop is not None and last is None):
        return _between(start or ZERO, stop or size, size)
    if size.constant is not None:
        return Size.of(len(range(size.constant)[first:last]))
    if stop is None and first >= 0:
        return size - Size.of(first)
    if stop is None:
        return _at_most(size, -first)
    assert last is not None
    if last < 0 <= first:
        return size - Size.of(first - last)
    if last >= 0 and first >= 0:
        return _at_most(size, max(last - first, 0)) if last - first != 1 else ONE
    if last < 0 and first < 0:
        return _at_most(size, max(last - first, 0)) if last - first != 1 else ONE
    return UNKNOWN


def _between(start: Size, stop: Size, size: Size) -> Size:
    """How many elements, where the bounds are in order whatever the sizes are."""
    is_ordered = is_at_most(ZERO, start) and is_at_most(start, stop) and is_at_most(stop, size)
    return stop - start if is_ordered else UNKNOWN


def _at_most(size: Size, count: int) -> Size:
    """`count` elements, or all of a dim that has fewer."""
    if count <= 1:
        return Size.of(count)
    return UNKNOWN if size.terms is None else Size.of(Atom(f"min({size}, {count})"))


def _advanced(input: Layout, items: Sequence[Item]) -> tuple[Layout, Alias] | None:
    """Picked by tensors: a copy.  One index in front of a contiguous input leaves its other dims behind it."""
    if not input.is_contiguous:
        return None
    if len(items) == 1 and isinstance(items[0], By) and items[0].layout.rank is not None and input.rank is not None:
        picked = items[0].layout
        if picked.rank == 1:
            return contiguous([UNKNOWN, *input.sizes[1:]]), Alias.NEVER
    return anonymous(), Alias.NEVER


@op(".gather", "torch.gather", examples=("x.gather(1, ids3)",))
def gather(input: Layout, dim: Index, index: Layout) -> Layout:
    return restrided(index)


@op(
    ".take_along_dim",
    "torch.take_along_dim",
    examples=("x.take_along_dim(x.argsort(-1), -1)", "torch.take_along_dim(x, x.argsort(0), dim=0)"),
)
def take_along_dim(input: Layout, indices: Layout, dim: Value | None = None) -> Layout:
    return anonymous()


@op(".index_select", "torch.index_select", examples=("x.index_select(1, ids)",))
def index_select(input: Layout, dim: Index, index: Layout) -> Layout:
    if input.rank is None or dim is None or input.index(dim) is None:
        return anonymous()
    indices = index.of_rank(1)  # torch takes no others
    count = indices.dims[0].size if len(indices.dims) == 1 else UNKNOWN
    return contiguous([count if i == input.index(dim) else size for i, size in enumerate(input.sizes)])


@op(".masked_select", "torch.masked_select", ".take", "torch.take", examples=("x.masked_select(mask)",))
def masked_select(input: Layout, mask: Layout) -> Layout:
    return contiguous([UNKNOWN])


_SEVERAL_COLUMNS = Origin(OriginKind.CALLER, "what `nonzero` finds in a tensor of more than one dim is column-major")


@op(
    ".nonzero",
    "torch.nonzero",
    "torch.argwhere",
    ".argwhere",
    examples=("mask.nonzero()", "torch.nonzero(mask)", "mask.nonzero(as_tuple=True)[1]"),
)
def nonzero(input: Layout, world: World, *, as_tuple: Value | None = None) -> Layout | Parts | None:
    """Column-major: (count, rank) with strides (1, count); one column, which is contiguous, where the rank is 1."""
    if as_tuple == Constant(True):
        return Parts(contiguous([Size.of(Atom("#nonzero", owner=""))]), UNKNOWN, 1)
    if as_tuple is not None and as_tuple != Constant(False):
        return None
    count = Size.of(Atom("#nonzero", owner=""))
    if input.rank is None:
        if world is World.DEFAULT:
            return contiguous([count, ONE])
        rank = Size.of(Atom("#rank", owner=""))
        return Layout(tuple(Dim(s, stride_atom("", i, (_SEVERAL_COLUMNS,))) for i, s in enumerate((count, rank))))
    return Layout((Dim(count, ONE), Dim(Size.of(input.rank), count)))


@op(".topk", "torch.topk", examples=("x.topk(2)", "x.topk(2, dim=1)"))
def topk(input: Layout, k: Extent, dim: Index = -1, *ignored: Value) -> Fields:
    found = _with_size(input, dim, k)
    return Fields((("values", found), ("indices", found)))


def _with_size(input: Layout, dim: int | None, size: Size) -> Layout:
    if dim is None:
        return anonymous()
    layout = input.exposed(dim + 1 if dim >= 0 else 0, -dim if dim < 0 else 0)
    at = layout.index(dim)
    if at is None:
        return anonymous()
    return restrided(Layout(tuple(Dim(size, ZERO) if i == at else d for i, d in enumerate(layout.dims))))


@op(
    ".scatter",
    "torch.scatter",
    ".scatter_add",
    "torch.scatter_add",
    ".index_add",
    "torch.index_add",
    ".scatter_reduce",
    examples=("x.scatter(1, ids3, y)",),
)
def scatter(input: Layout, dim: Index, index: Layout, src: Layout) -> Layout:
    return restrided(input)
