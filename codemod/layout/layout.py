"""The layout of a tensor: symbolic size and stride of each dim, some of which may be packed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import pairwise

from codemod.layout.lazy import lazy
from codemod.layout.origin import Origin, OriginKind
from codemod.layout.record import record
from codemod.layout.size import ONE, UNKNOWN, Answer, Atom, AtomKind, Size, equal, product


class World(Enum):
    """Under which assumption a layout holds."""

    DEFAULT = "default"
    """Whatever the source does not fix is contiguous: arguments, parameters, convolution outputs."""
    ANY = "any"
    """Whatever the source does not fix may have any strides: what holds here holds always."""


@record(frozen=True)
class Pack:
    """The dims `front` to `rank - back` of a tensor whose rank is not known.

    `merged` says that they are contiguous among themselves: each stride is the next size times the next stride.
    """

    owner: str
    front: int = 0
    back: int = 0
    merged: bool = False
    origins: tuple[Origin, ...] = ()
    is_free: bool = False
    """They are an argument's: the caller chooses their sizes."""
    least: int = 0
    """So many dims at least."""

    @lazy
    def atom(self) -> Atom:
        """The number of elements of the packed dims."""
        name = f"{self.owner}[{self.front}:{-self.back or ''}]"
        return Atom(name, AtomKind.DIM, owner=self.owner, is_free=self.is_free, span=(self.front, self.back))


@record(frozen=True, slots=True)
class Dim:
    """One dim, or one pack of dims, whose `size` is then their product and `stride` that of the last of them.

    `stride` is in elements; UNKNOWN in the answer of an op rule asks for a fresh symbol.
    """

    size: Size
    stride: Size
    pack: Pack | None = None


@record(frozen=True)
class Layout:
    """Sizes and strides, outermost dim first.  At most one dim is a pack."""

    dims: tuple[Dim, ...]

    @lazy
    def rank(self) -> int | None:
        """None where dims are packed."""
        return None if self.pack_at is not None else len(self.dims)

    @lazy
    def least_rank(self) -> int:
        """The rank, or what is known of it: so many dims at least."""
        return sum(dim.pack.least if dim.pack else 1 for dim in self.dims)

    @lazy
    def pack_at(self) -> int | None:
        return next((i for i, dim in enumerate(self.dims) if dim.pack), None)

    @property
    def sizes(self) -> tuple[Size, ...]:
        return tuple(dim.size for dim in self.dims)

    @property
    def strides(self) -> tuple[Size, ...]:
        return tuple(dim.stride for dim in self.dims)

    @lazy
    def numel(self) -> Size:
        return product(self.sizes)

    def __hash__(self) -> int:
        return self._hash

    @lazy
    def _hash(self) -> int:
        return hash(self.dims)

    @lazy
    def is_named(self) -> bool:
        """An op rule left nothing open: no size, stride or pack without a symbol."""
        return all(d.size.is_named and d.stride.is_named and (d.pack is None or d.pack.owner != "") for d in self.dims)

    @lazy
    def core(self) -> tuple[Dim, ...]:
        """The dims without those of size 1, which merge with anything and hide nothing."""
        return tuple(dim for dim in self.dims if dim.size != ONE)

    @lazy
    def boundaries(self) -> tuple[Answer, ...]:
        """For each two adjacent dims of `core`: can a view merge them?"""
        return tuple(can_merge(left, right) for left, right in pairwise(self.core))

    @lazy
    def is_mergeable(self) -> bool:
        """Every view of it is legal, for all sizes: contiguous but for a common scale of the strides."""
        return all(answer is Answer.YES for answer in self.boundaries) and all(
            dim.pack is None or dim.pack.merged for dim in self.dims
        )

    @lazy
    def is_contiguous(self) -> bool:
        """Contiguous for all sizes."""
        return self.is_mergeable and (not self.core or self.core[-1].stride == ONE)

    @lazy
    def origins(self) -> tuple[Origin, ...]:
        """What decides the strides that the source does not fix."""
        found = dict.fromkeys(o for dim in self.dims for atom in sorted(dim.stride.atoms) for o in atom.origins)
        found |= dict.fromkeys(o for dim in self.dims if dim.pack for o in dim.pack.origins)
        return tuple(found)

    def index(self, dim: int | None) -> int | None:
        """Position of torch dim `dim` in `dims`; None where the pack hides it or it does not exist."""
        if dim is None:
            return None
        if self.pack_at is None:
            return dim % len(self.dims) if -len(self.dims) <= dim < len(self.dims) else None
        if dim >= 0:
            return dim if dim < self.pack_at else None
        behind = len(self.dims) - self.pack_at - 1
        return len(self.dims) + dim if -dim <= behind else None

    def exposed(self, front: int = 0, back: int = 0) -> Layout:
        """The same layout with at least `front` dims before and `back` dims after the pack, where that is certain.

        A call that names dim 2 shows that there are three dims, but not that dim 2 is none of those behind the pack:
        a pack with dims on its other side stays as it is, unless it has so many at least.
        """
        at = self.pack_at
        if at is None:
            return self
        behind = len(self.dims) - at - 1
        if (front > at and (behind or back)) or (back > behind and (at or front)):
            more = max(0, front - at) + max(0, back - behind)
            return self.opened(front, back) if more <= _pack_of(self.dims[at]).least else self
        return self.opened(front, back)

    def opened(self, front: int, back: int) -> Layout:
        """As `exposed`, for a tensor that is known to have that many dims."""
        at = self.pack_at
        if at is None:
            return self
        more = max(0, front - at), max(0, back - (len(self.dims) - at - 1))
        if more == (0, 0):
            return self
        if more not in self._opened:
            inside = _unpack(self.dims[at], front=more[0], back=more[1])
            values = {_pack_of(self.dims[at]).atom: product(dim.size for dim in inside)}
            outer, inner = _with(values, self.dims[:at]), _with(values, self.dims[at + 1 :])
            self._opened[more] = Layout((*outer, *inside, *inner))
        return self._opened[more]

    @lazy
    def _opened(self) -> dict[tuple[int, int], Layout]:
        """The same layout with that many more dims before and after the pack, once it has been asked for."""
        return {}

    def of_rank(self, rank: int) -> Layout:
        """The same layout once the rank is known."""
        at = self.pack_at
        if at is None:
            return self
        if rank not in self._of_rank:
            opened = self.opened(at + rank - len(self.dims) + 1, 0)
            values = {dim.pack.atom: ONE for dim in opened.dims if dim.pack}
            self._of_rank[rank] = Layout(_with(values, [dim for dim in opened.dims if dim.pack is None]))
        return self._of_rank[rank]

    @lazy
    def _of_rank(self) -> dict[int, Layout]:
        return {}


def _pack_of(dim: Dim) -> Pack:
    assert dim.pack is not None
    return dim.pack


def _with(values: Mapping[Atom, Size], dims: Sequence[Dim]) -> tuple[Dim, ...]:
    """The dims where what a pack stood for is known."""
    return tuple(
        dim
        if dim.size.atoms.isdisjoint(values) and dim.stride.atoms.isdisjoint(values)
        else Dim(dim.size.at(values), dim.stride.at(values), dim.pack)
        for dim in dims
    )


def can_merge(left: Dim, right: Dim) -> Answer:
    """Is `left.stride == right.size * right.stride`?"""
    if right.pack is not None and not right.pack.merged:
        return Answer.MAYBE
    return equal(left.stride, right.size * right.stride)


def contiguous(sizes: Sequence[Size]) -> Layout:
    """The default layout of these sizes; one that is not known gets a symbol without owner, which is named later."""
    stride, dims = ONE, []
    for i in range(len(sizes) - 1, -1, -1):
        size = sizes[i] if sizes[i].terms is not None else Size.of(Atom(f"#{i}", owner="", dim=i))
        dims.append(Dim(size, stride))
        stride = stride * size
    layout = Layout(tuple(reversed(dims)))
    vars(layout).update(is_mergeable=True, is_contiguous=True)
    return layout


def restrided(layout: Layout) -> Layout:
    """The contiguous layout with the sizes of `layout`, packs included."""
    if layout.is_contiguous and (layout.pack_at is None or not layout.origins):
        return layout
    stride, dims = ONE, []
    for dim in reversed(layout.dims):
        pack = dim.pack
        if pack is not None and (pack.origins or not pack.merged):
            pack = replace(pack, merged=True, origins=())
        dims.append(Dim(dim.size, stride, pack))
        stride = stride * dim.size
    return Layout(tuple(reversed(dims)))


def unknown(owner: str, origins: tuple[Origin, ...] = (), *, world: World = World.ANY, is_free: bool = False) -> Layout:
    """A tensor of unknown rank named `owner`; contiguous in the DEFAULT world, of any strides in the other."""
    is_dense = world is World.DEFAULT
    pack = Pack(owner, merged=is_dense, origins=() if is_dense else origins, is_free=is_free)
    size = Size.of(pack.atom)
    return Layout((Dim(size, ONE if pack.merged else stride_atom(owner, -1, origins), pack),))


def any_of(layouts: Sequence[Layout], owner: str) -> Layout:
    """What holds for each of the layouts, which have one rank: sizes that differ get a symbol of `owner`'s.

    Contiguous where all of them are; else of any strides, for the reasons that one of them has.
    """
    is_dense = all(layout.is_contiguous for layout in layouts)
    found = dict.fromkeys(origin for layout in layouts for origin in layout.origins)
    origins = tuple(found) or (Origin(OriginKind.OP, "strides that differ by the path taken"),)
    if layouts[0].rank is None:
        return unknown(owner, origins, world=World.DEFAULT if is_dense else World.ANY)
    columns = list(zip(*(layout.sizes for layout in layouts), strict=True))
    sizes = [
        column[0] if column.count(column[0]) == len(column) else Size.of(dim_atom(owner, i))
        for i, column in enumerate(columns)
    ]
    if is_dense:
        return contiguous(sizes)
    return Layout(tuple(Dim(size, stride_atom(owner, i, origins)) for i, size in enumerate(sizes)))


def anonymous(least: int = 0) -> Layout:
    """A contiguous tensor of which neither rank nor sizes are known; the name is given by whoever asked."""
    return Layout((Dim(UNKNOWN, ONE, Pack("", merged=True, least=least)),))


def dim_atom(owner: str, index: int, is_free: bool = False) -> Atom:
    return Atom(f"{owner}[{index}]", AtomKind.DIM, owner=owner, dim=index, is_free=is_free)


def stride_atom(owner: str, index: int, origins: tuple[Origin, ...]) -> Size:
    return Size.of(Atom(f"{owner}.stride({index})", AtomKind.STRIDE, owner=owner, dim=index, origins=origins))


def _unpack(dim: Dim, front: int, back: int) -> list[Dim]:
    pack = _pack_of(dim)
    least = max(0, pack.least - front - back)
    rest = Pack(pack.owner, pack.front + front, pack.back + back, pack.merged, pack.origins, pack.is_free, least)
    indices = [*range(pack.front, rest.front), None, *range(-rest.back, -pack.back)]
    sizes = [Size.of(rest.atom if i is None else dim_atom(pack.owner, i, pack.is_free)) for i in indices]
    if pack.merged:
        strides = [product(sizes[i + 1 :]) * dim.stride for i in range(len(sizes))]
    else:
        strides = [stride_atom(pack.owner, -1 - rest.back if i is None else i, pack.origins) for i in indices]
        if back:
            strides[-1] = dim.stride
    return [
        Dim(size, stride, rest if i is None else None) for i, size, stride in zip(indices, sizes, strides, strict=True)
    ]
