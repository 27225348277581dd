"""Layouts of which the source decides the sizes and not the strides: by backend, or by memory format.

An image op hands on channels_last where its input or its weight is channels_last, and is contiguous otherwise:
its strides are (C*H*W, a, W*b, b), so that height and width can be merged under both.
Source: c10/core/MemoryFormat.h, is_channels_last_strides_2d.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codemod.layout.layout import Dim, Layout, World, anonymous, contiguous, restrided, stride_atom
from codemod.layout.origin import Origin, OriginKind
from codemod.layout.size import ONE, ZERO, Answer, Size, is_less, product

_WHERE = "channels_last, where the model or its input is in that memory format"
MEMORY_FORMAT = Origin(OriginKind.MEMORY_FORMAT, _WHERE)
CONVOLUTION = Origin(OriginKind.CONVOLUTION, _WHERE)


def sized(sizes: Sequence[Size | Dim]) -> Layout:
    """A contiguous layout; a Dim keeps its pack.  Where a size behind a pack is not known, only the rank's bound is."""
    layout = Layout(tuple(size if isinstance(size, Dim) else Dim(size, ZERO) for size in sizes))
    if layout.rank is not None:
        return contiguous(layout.sizes)
    if any(dim.size.terms is None and not (dim.pack and i == 0) for i, dim in enumerate(layout.dims)):
        return anonymous(layout.least_rank)
    return restrided(layout)


def by_backend(layout: Layout, text: str) -> Layout:
    """The sizes of `layout`, with strides that differ by backend, path or version; a single dim has stride 1."""
    if len(layout.core) <= 1 and layout.rank is not None:
        return restrided(layout)
    return _open(layout, Origin(OriginKind.BACKEND, text))


def _open(layout: Layout, origin: Origin) -> Layout:
    return Layout(
        tuple(
            Dim(
                dim.size,
                stride_atom("", i, (origin,)),
                replace(dim.pack, merged=False, origins=(origin,)) if dim.pack else None,
            )
            for i, dim in enumerate(layout.dims)
        )
    )


def image(
    result: Layout,
    inputs: Sequence[Layout],
    world: World,
    *,
    spatial: int | None,
    is_settled_by_input: bool = False,
    origin: Origin = MEMORY_FORMAT,
) -> Layout:
    """The layout of an image op: `result` holds the sizes, `spatial` is the number of dims behind the channels.

    The dims in front of the channels are one batch or none.  `spatial` None: the rank is not known.  A contiguous
    input settles it only where no dim of size 1 grows: such a one can be channels_last as well.
    """
    plain = sized(result.dims)
    if is_settled_by_input and all(given.is_contiguous for given in inputs):
        return plain
    if world is World.DEFAULT:
        answers = {is_channels_last(given) for given in inputs}
        if answers == {Answer.NO}:
            return plain
        if Answer.YES in answers and result.rank is not None and spatial == 2:
            return channels_last(result)
    if spatial is None or len(plain.dims) != len(result.dims):
        return _open(plain, origin)
    channels = len(result.dims) - spatial - 1
    inner = product(size for size in result.sizes[channels + 1 :])
    if inner == ONE or result.sizes[channels] == ONE:
        return plain
    outer = stride_atom("", channels, (origin,))
    stride = stride_atom("", len(result.dims) - 1, (origin,))
    dims = list(plain.dims)
    dims[channels] = replace(dims[channels], stride=outer)
    for i in range(len(dims) - 1, channels, -1):
        dims[i] = replace(dims[i], stride=stride)
        stride = stride * dims[i].size
    return Layout(tuple(dims))


def handed_on(inputs: Sequence[Layout]) -> Origin:
    """The convolution whose order Inductor keeps through this op as well; without one, a memory format."""
    origins = (origin for given in inputs for origin in given.origins)
    return next((origin for origin in origins if origin.kind is OriginKind.CONVOLUTION), MEMORY_FORMAT)


def channels_last(layout: Layout) -> Layout:
    """The same sizes in channels_last order: (N, C, H, W) strides (H*W*C, 1, W*C, C)."""
    dims = list(layout.dims)
    stride = ONE
    for i in (1, *range(len(dims) - 1, 1, -1), 0):
        dims[i] = replace(dims[i], stride=stride)
        stride = stride * dims[i].size
    return Layout(tuple(dims))


def is_channels_last(layout: Layout) -> Answer:
    """Does torch take it for channels_last?  Rank 3 as one image without batch, as convolutions do.

    A contiguous layout counts as NO, although one whose channels or pixels number 1 is both.
    """
    if layout.is_contiguous:
        return Answer.NO
    if layout.rank is None:
        return Answer.MAYBE
    if layout.rank not in (4, 5):
        return Answer.NO if layout.rank < 3 else Answer.MAYBE
    answer, least = Answer.YES, ONE
    for i in (1, *range(layout.rank - 1, 1, -1), 0):
        dim = layout.dims[i]
        if dim.size == ONE:
            if dim.stride != least:
                answer = Answer.MAYBE  # torch compares these strides too
            continue
        match is_less(dim.stride, least):
            case Answer.YES:
                return Answer.NO
            case Answer.MAYBE:
                answer = Answer.MAYBE
        least = dim.size * dim.stride
    return answer
