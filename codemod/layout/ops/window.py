"""Sizes under a sliding window: convolutions, their transposes and pools, one dim at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codemod.layout.layout import Dim, Layout
from codemod.layout.ops.lift import as_size
from codemod.layout.size import ONE, UNKNOWN, ZERO, Atom, Size
from codemod.layout.value import Constant, Number, Several, Shape, Value

SAME = Atom("padding='same'")


def each_dim(value: Value | None, count: int, default: Size = UNKNOWN) -> list[Size]:
    """`3` or `(3, 5)`, one size for each of `count` dims."""
    match value:
        case None | Constant(None):
            return [default] * count
        case Constant("same"):
            return [Size.of(SAME)] * count
        case Constant("valid"):
            return [ZERO] * count
        case Several(items) if len(items) == count:
            return [as_size(item) for item in items]
        case Several((item,)):
            return [as_size(item)] * count
        case Shape(items) if len(items) == count and all(isinstance(item, Size) for item in items):
            return [item for item in items if isinstance(item, Size)]
        case Several() | Shape() | Constant():
            return [UNKNOWN] * count
        case Number():
            return [value.size] * count
        case _:
            return [as_size(value)] * count if count == 1 else [UNKNOWN] * count


def quotient(size: Size, divisor: Size) -> Size:
    """`size // divisor`: exact where the symbols allow it, else a symbol of that name."""
    if size.terms is None or divisor.terms is None:
        return UNKNOWN
    exact = size.divided_by(divisor)
    if exact.terms is not None:
        return exact
    number = divisor.constant
    if number is not None and all(not m or c % number == 0 for m, c in size.terms):
        terms = ((monomial, coefficient // number) for monomial, coefficient in size.terms)
        return Size(tuple(term for term in terms if term[1]))
    return Size.of(Atom(f"(({size})//({divisor}))"))


def slid(size: Size, kernel: Size, stride: Size, padding: Size, dilation: Size = ONE) -> Size:
    """Number of positions of a window."""
    if padding == Size.of(SAME):
        return size
    if kernel == stride and padding == ZERO and dilation == ONE:
        return quotient(size, kernel)
    span = size + padding + padding - dilation * (kernel - ONE) - ONE
    return quotient(span, stride) + ONE


def spread(size: Size, kernel: Size, stride: Size, padding: Size, dilation: Size, output_padding: Size) -> Size:
    """Size of the result of a transposed convolution."""
    return (size - ONE) * stride - padding - padding + dilation * (kernel - ONE) + output_padding + ONE


def resized(
    input: Layout, count: int, change: Callable[[Size, int], Size], channels: Size | None = None
) -> Layout | None:
    """`input` with its last `count` dims changed, and the channels before them; its strides mean nothing.

    One of unknown rank is taken for a batch; None for one that has too few dims.
    """
    layout = input.of_rank(count + 2)
    if len(layout.dims) not in (count + 1, count + 2):
        return None
    dims = list(layout.dims)
    start = len(dims) - count
    for i in range(count):
        dims[start + i] = Dim(change(dims[start + i].size, i), ZERO)
    dims[start - 1] = Dim(channels or dims[start - 1].size, ZERO)
    return Layout(tuple(dims))


def windows(*parameters: Sequence[Size]) -> Callable[[Size, int], Size]:
    """Change by `slid` with these parameters of each dim."""
    return lambda size, i: slid(size, *(parameter[i] for parameter in parameters))
