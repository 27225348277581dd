"""The stride rule: which targets a view of a layout can have, and the layout of the result.

ATen merges dims of the input into runs whose strides fit, and needs each run to be covered exactly by dims of the
target.  So a view is legal just when every boundary between adjacent dims either can be merged or is also a
boundary of the target.  Source: aten/src/ATen/TensorUtils.cpp, computeStride_impl.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from itertools import pairwise

from codemod.layout.layout import Dim, Layout, Pack, contiguous
from codemod.layout.origin import Origin
from codemod.layout.record import record
from codemod.layout.size import (
    INFER,
    ONE,
    UNKNOWN,
    Answer,
    Atom,
    AtomKind,
    Size,
    are_chosen_apart,
    equal,
    is_less,
    product,
)


class Legality(Enum):
    LEGAL = "legal"
    REFUSED = "refused"
    MAYBE = "maybe"


@record(frozen=True, slots=True)
class Target:
    """The sizes that a view asks for; a pack stands for `*x.shape[:-1]`, INFER for `-1`."""

    items: tuple[Size | Pack, ...]

    @property
    def sizes(self) -> tuple[Size, ...]:
        return tuple(Size.of(item.atom) if isinstance(item, Pack) else item for item in self.items)


@record(frozen=True, slots=True)
class Judgement:
    """The answer, and the boundary that decided it."""

    legality: Legality
    layout: Layout
    """The receiver, its pack opened as far as the target names its dims."""
    at: int | None = None
    """The boundary that is refused or open: between dims `at` and `at + 1` of `layout.core`."""
    origins: tuple[Origin, ...] = ()
    """Of the strides at that boundary."""
    is_target_open: bool = False
    """True where only a size of the target is missing."""


@record(frozen=True, slots=True)
class Segment:
    """Dims of the source that become these dims of the target; no part of it is known to fit by itself."""

    dims: tuple[Dim, ...]
    items: tuple[Size, ...]
    packs: tuple[Pack | None, ...] = ()


def judge(layout: Layout, target: Target | None) -> Judgement:
    """Is `.view(target)` legal?  LEGAL for all sizes, REFUSED for some sizes above 1.

    A target of None is one that is not known at all.
    """
    if layout.is_mergeable or any(size.constant == 0 for size in layout.sizes):
        return Judgement(Legality.LEGAL, layout)
    if target is None:
        return _open(layout)
    found = _judge_open(layout, target)
    if found.legality is Legality.REFUSED:
        bare = _without_pack(found.layout, target)
        if bare is not None and judge(*bare).legality is not Legality.REFUSED:
            return Judgement(Legality.MAYBE, layout, found.at, found.origins, is_target_open=True)
    return found


def _without_pack(layout: Layout, target: Target) -> tuple[Layout, Target] | None:
    """Both where the tensor has no more dims than those that are known of."""
    at = layout.pack_at
    if at is None or any(isinstance(item, Pack) for item in target.items):
        return None
    pack = layout.dims[at].pack
    assert pack is not None
    if pack.least:
        return None
    items = tuple(size.at({pack.atom: ONE}) for size in target.sizes)
    return layout.of_rank(len(layout.dims) - 1), Target(items)


def _judge_open(layout: Layout, target: Target) -> Judgement:
    layout, target = align_packs(layout, target)
    found = _judge_aligned(layout, target)
    if found.legality is not Legality.MAYBE or not found.is_target_open:
        return found
    refused = _too_few(layout, target)
    if refused is not None:
        return refused
    for solved in _solved(target, layout):
        found = _judge_aligned(layout, solved)
        if found.legality is not Legality.MAYBE:
            return found
    exact = _exact(layout, target)
    if exact is not None:
        witness = _judge_aligned(*exact)
        if witness.legality is Legality.REFUSED:
            return Judgement(Legality.REFUSED, layout, witness.at, witness.origins)
    return found


def _too_few(layout: Layout, target: Target) -> Judgement | None:
    """Refused, whatever its sizes are: fewer dims than there are runs of the source that cannot be merged."""
    dims = layout.core
    apart = [i for i in range(len(dims) - 1) if _is_apart(dims, i)]
    if any(isinstance(item, Pack) for item in target.items) or len(target.items) > len(apart):
        return None
    return Judgement(Legality.REFUSED, layout, apart[-1], _origins(dims[apart[-1] : apart[-1] + 2]))


def _is_apart(dims: Sequence[Dim], i: int) -> bool:
    """Is more than one element certain on both sides of boundary `i`, which cannot be merged?"""
    left, right = dims[i], dims[i + 1]
    if _may_be_none(left) or _may_be_none(right) or left.size.is_part or right.size.is_part:
        return False
    if right.pack and not right.pack.merged:
        return False
    return equal(left.stride, right.size * right.stride) is Answer.NO


def _solved(target: Target, layout: Layout) -> Iterator[Target]:
    """The target with a `-1` for a size that occurs nowhere else: sizes that fit fix it."""
    if INFER in target.items:
        return
    counts = Counter(atom for item in target.sizes for atom in item.atoms)
    counts.update(atom for dim in layout.dims for atom in dim.size.atoms)
    for i, size in enumerate(target.sizes):
        is_pack = isinstance(target.items[i], Pack)
        if not is_pack and _is_monomial(size) and any(counts[atom] == 1 for atom in size.atoms):
            yield Target((*target.items[:i], INFER, *target.items[i + 1 :]))


def _is_monomial(size: Size) -> bool:
    return size.terms is not None and [coefficient for _, coefficient in size.terms] == [1]


def _exact(layout: Layout, target: Target) -> tuple[Layout, Target] | None:
    """Both for inputs that are divided without a rest: `c` is `(c // heads) * heads`.  Shows what some inputs do."""
    sizes = [*layout.sizes, *target.sizes]
    quotients = {atom.quotient: atom for size in sizes for atom in size.atoms if atom.quotient is not None}
    values: dict[Atom, Size] = {}
    for (left, right), atom in quotients.items():
        if _is_monomial(left) and len(left.atoms) == 1 and len(left.terms or ()) == 1:
            (whole,) = left.atoms
            if left == Size.of(whole):
                values.setdefault(whole, Size.of(atom) * right)
    values = {whole: size for whole, size in values.items() if size.atoms.isdisjoint(values)}
    if not values:
        return None
    dims = tuple(Dim(dim.size.at(values), dim.stride.at(values), dim.pack) for dim in layout.dims)
    items = tuple(item if isinstance(item, Pack) else item.at(values) for item in target.items)
    return Layout(dims), Target(items)


def _judge_aligned(layout: Layout, target: Target) -> Judgement:
    boundary = 0
    pending: Judgement | None = None
    for segment in segments(layout, target):
        for answer in _judge_segment(segment, layout, boundary):
            if answer.legality is Legality.REFUSED:
                return answer
            pending = pending or answer
        boundary += len(segment.dims)
    return pending or Judgement(Legality.LEGAL, layout)


def _open(layout: Layout) -> Judgement:
    at = next((i for i, answer in enumerate(layout.boundaries) if answer is not Answer.YES), None)
    origins = layout.origins if at is None else _origins(layout.core[at : at + 2])
    return Judgement(Legality.MAYBE, layout, at, origins, is_target_open=not origins)


def _judge_segment(segment: Segment, layout: Layout, offset: int) -> list[Judgement]:
    """What stands in the way inside one segment; empty where nothing does."""
    found, apart = [], []
    for dim in segment.dims:
        if dim.pack and not dim.pack.merged and not _is_same_pack(segment):
            found.append(Judgement(Legality.MAYBE, layout, None, dim.pack.origins))
    for i, (left, right) in enumerate(pairwise(segment.dims)):
        merge = equal(left.stride, right.size * right.stride)
        if merge is Answer.YES:
            continue
        if merge is Answer.NO and (_may_be_none(left) or _may_be_none(right)):
            merge = Answer.MAYBE
        if merge is Answer.NO and not _is_between_many(segment.dims, i):
            merge = Answer.MAYBE
        cut = _cut(segment, i + 1)
        if merge is Answer.NO and cut is Answer.NO:
            found.append(Judgement(Legality.REFUSED, layout, offset + i, _origins((left, right))))
            continue
        is_target_open = merge is Answer.NO
        apart += [i + 1] * is_target_open
        origins = () if is_target_open else _origins((left, right))
        found.append(Judgement(Legality.MAYBE, layout, offset + i, origins, is_target_open))
    if len(apart) > 1 and not _may_cut(segment, apart):
        i = apart[-1] - 1
        found.append(Judgement(Legality.REFUSED, layout, offset + i, _origins(segment.dims[i : i + 2])))
    return found


def _may_cut(segment: Segment, positions: Sequence[int]) -> bool:
    """Can the target have boundaries at all of these positions, before which dims cannot be merged?"""
    if any(segment.packs):
        return True
    ends = [*positions, len(segment.dims)]
    runs = [product(d.size for d in segment.dims[i:k]) for i, k in pairwise((0, *ends))]
    starts = {0}  # of the items that are left for the next run
    for run in runs[:-1]:
        starts = {
            k for j in starts for k in range(j + 1, len(segment.items)) if not _are_apart(segment.items[j:k], run)
        }
    return any(not _are_apart(segment.items[j:], runs[-1]) for j in starts)


def _may_be_none(dim: Dim) -> bool:
    """A pack may have no dims at all."""
    return dim.pack is not None and not dim.pack.least


def _is_between_many(dims: Sequence[Dim], i: int) -> bool:
    """Is more than one element certain on both sides of the boundary behind dim `i`, or does it stand without them?"""
    left, right = dims[i], dims[i + 1]
    if left.size.is_part:
        return False
    if not right.size.is_part:
        return True
    return i + 2 < len(dims) and equal(left.stride, dims[i + 2].size * dims[i + 2].stride) is Answer.NO


def _origins(dims: Sequence[Dim]) -> tuple[Origin, ...]:
    return Layout(tuple(dims)).origins


def _is_same_pack(segment: Segment) -> bool:
    """Packed dims that the target names as they are."""
    if len(segment.dims) != 1 or len(segment.items) != 1:
        return False
    return segment.packs[0] is not None and segment.dims[0].size == segment.items[0]


def _cut(segment: Segment, position: int) -> Answer:
    """Does the target have a boundary where the source has one before dim `position`?  Never YES inside a segment.

    A single target dim has none, whatever its name: that is how merging shows without comparing sizes.
    """
    if any(segment.packs):
        return Answer.MAYBE  # a pack may have any number of dims
    if len(segment.items) <= 1:
        return Answer.NO if segment.items else Answer.MAYBE
    before = product(dim.size for dim in segment.dims[:position])
    behind = product(dim.size for dim in segment.dims[position:])
    for j in range(1, len(segment.items)):
        left, right = segment.items[:j], segment.items[j:]
        if not _are_apart(left, before) and not _are_apart(right, behind):
            return Answer.MAYBE
    return Answer.NO


def _are_apart(items: Sequence[Size], numel: Size) -> bool:
    """Do these sizes not come to that number, for some that a caller may give?  One that is open is at least 1."""
    known = [item for item in items if item.terms is not None and item != INFER]
    is_apart = are_chosen_apart(product(known), numel)
    return is_apart and (len(known) == len(items) or is_less(numel, product(known)) is Answer.YES)


def segments(layout: Layout, target: Target) -> list[Segment]:
    """Source and target, cut wherever the numbers of elements in front (or behind) are known to agree."""
    dims = layout.core
    kept = [
        (s, item if isinstance(item, Pack) else None)
        for s, item in zip(target.sizes, target.items, strict=True)
        if s != ONE
    ]
    sizes, packs = [s for s, _ in kept], [p for _, p in kept]
    cuts = [(0, 0), *_cuts_from_front(dims, sizes)]
    cuts += [(i, j) for i, j in _cuts_from_back(dims, sizes) if (i, j) > cuts[-1] and j >= cuts[-1][1]]
    cuts.append((len(dims), len(sizes)))
    return [
        Segment(dims[i:k], tuple(sizes[j:m]), tuple(packs[j:m]))
        for (i, j), (k, m) in pairwise(cuts)
        if (i, j) != (k, m)
    ]


def _cuts_from_front(dims: Sequence[Dim], sizes: Sequence[Size]) -> list[tuple[int, int]]:
    """Positions (i, j) up to which both hold the same number of elements, in rising order, before any `-1`."""
    at: dict[Size, int] = {}
    total = ONE
    for i, dim in enumerate(dims[:-1]):
        total = total * dim.size
        at.setdefault(total, i + 1)
    found: list[tuple[int, int]] = []
    total = ONE
    for j, size in enumerate(sizes[:-1]):
        if size == INFER or size.terms is None:
            break
        total = total * size
        if total in at and total.terms is not None and (not found or at[total] > found[-1][0]):
            found.append((at[total], j + 1))
    return found


def _cuts_from_back(dims: Sequence[Dim], sizes: Sequence[Size]) -> list[tuple[int, int]]:
    mirrored = _cuts_from_front(dims[::-1], sizes[::-1])
    return [(len(dims) - i, len(sizes) - j) for i, j in reversed(mirrored)]


def align_packs(layout: Layout, target: Target) -> tuple[Layout, Target]:
    """Both with their packs opened equally far, where the target names dims of the same tensor."""
    at = layout.pack_at
    pack = layout.dims[at].pack if at is not None else None
    if pack is None or at is None:
        return layout, _opened_by(layout, target)
    fronts, backs = [pack.front], [pack.back]
    for item in target.items:
        if isinstance(item, Pack):
            if item.owner == pack.owner:
                fronts.append(item.front)
                backs.append(item.back)
            continue
        for atom in item.atoms:
            if atom.owner == pack.owner and atom.kind is AtomKind.DIM and atom == f"{pack.owner}[{atom.dim}]":
                (fronts if atom.dim >= 0 else backs).append(atom.dim + 1 if atom.dim >= 0 else -atom.dim)
    front, back = max(fronts) - pack.front, max(backs) - pack.back
    counts = at + front, len(layout.dims) - at - 1 + back
    has_star = any(isinstance(item, Pack) for item in target.items)
    if (front or back) and not has_star and layout.exposed(*counts) is layout:
        return layout, target  # a dim counted from the front may be one of those counted from the back
    opened = layout.opened(*counts)
    return opened, Target(
        tuple(p for item in target.items for p in _open_item(item, pack.owner, max(fronts), max(backs)))
    )


def _opened_by(layout: Layout, target: Target) -> Target:
    """The target with its packs opened as far as the layout names dims of the same tensor."""
    if not any(isinstance(item, Pack) for item in target.items):
        return target
    dims = {(atom.owner, atom.dim) for size in layout.sizes for atom in size.atoms if atom.kind is AtomKind.DIM}
    items: list[Size | Pack] = []
    for item in target.items:
        if isinstance(item, Pack):
            named = [dim for owner, dim in dims if owner == item.owner]
            items += _open_item(item, item.owner, max([item.front, *(dim + 1 for dim in named)]), item.back)
        else:
            items.append(item)
    return Target(tuple(items))


def _open_item(item: Size | Pack, owner: str, front: int, back: int) -> list[Size | Pack]:
    if not isinstance(item, Pack) or item.owner != owner:
        return [item]
    whole = Layout((Dim(Size.of(item.atom), ONE, item),))
    return [d.pack or d.size for d in whole.opened(front - item.front, back - item.back).dims]


def viewed(layout: Layout, target: Target | None) -> Layout | None:
    """The layout of the result of a view that was accepted; None where not even its rank is known.

    That it was accepted says that the dims which became one could be merged; of a run of dims that became several it
    says nothing, since the target may be their own sizes.
    """
    if target is None:
        return None
    layout, target = align_packs(layout, target)
    if layout.is_contiguous:
        return _resolved(contiguous(_inferred(layout, target)), target)
    dims: list[Dim] = []
    for segment in segments(layout, target):
        dims += _split(segment)
    return _resolved(_with_ones(dims, target), target, layout.origins)


def _split(segment: Segment) -> list[Dim]:
    if _is_same_pack(segment):
        return list(segment.dims)
    sizes = _infer(segment.items, product(dim.size for dim in segment.dims))
    if (len(sizes) > 1 or any(segment.packs)) and not _is_one_run(segment.dims):
        return [Dim(size, UNKNOWN) for size in sizes]  # the target may keep apart what cannot be merged
    stride = segment.dims[-1].stride if segment.dims else ONE
    found = []
    for size in reversed(sizes):
        found.append(Dim(size, stride))
        stride = stride * size
    return found[::-1]


def _is_one_run(dims: Sequence[Dim]) -> bool:
    """Can all of them be merged into one, for all sizes?"""
    return all(dim.pack is None or dim.pack.merged for dim in dims) and all(
        equal(left.stride, right.size * right.stride) is Answer.YES for left, right in pairwise(dims)
    )


def _infer(items: Sequence[Size], numel: Size) -> list[Size]:
    rest = product(item for item in items if item != INFER)
    return [numel.divided_by(rest) if item == INFER else item for item in items]


def _inferred(layout: Layout, target: Target) -> list[Size]:
    if INFER not in target.items:
        return list(target.sizes)
    found: list[Size] = []
    for segment in segments(layout, target):
        found += _infer(segment.items, product(dim.size for dim in segment.dims))
    kept = iter(found)
    return [ONE if size == ONE else next(kept) for size in target.sizes]


def _with_ones(dims: Sequence[Dim], target: Target) -> Layout:
    """The dims again with those of size 1 put back where the target has them."""
    kept, found = iter(dims), []
    for size in target.sizes:
        found.append(Dim(ONE, ONE) if size == ONE else next(kept))
    return Layout(tuple(found))


def _resolved(layout: Layout, target: Target, origins: tuple[Origin, ...] = ()) -> Layout:
    """A pack of the target stays a pack of the result."""
    dims = []
    for dim, item in zip(layout.dims, target.items, strict=True):
        if isinstance(item, Pack) and dim.pack is None:
            is_merged = layout.is_mergeable and dim.stride.terms is not None
            dim = Dim(dim.size, dim.stride, replace(item, merged=is_merged, origins=() if is_merged else origins))
        dims.append(dim)
    return Layout(tuple(dims))
