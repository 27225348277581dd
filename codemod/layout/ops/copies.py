"""Ops that copy the values as they are."""

from __future__ import annotations

from codemod.layout.layout import Dim, Layout, World, anonymous, restrided
from codemod.layout.layout import contiguous as contiguous_layout
from codemod.layout.ops.pointwise import dense, pointwise, same_or_dense
from codemod.layout.ops.rule import Alias, Dims, Index, Shape, op
from codemod.layout.ops.undecided import channels_last, handed_on, image
from codemod.layout.size import UNKNOWN, ZERO, Size
from codemod.layout.value import Qualified, Value

_KEPT = ("torch.preserve_format",)


@op(
    ".contiguous", alias=Alias.MAYBE, examples=("x.contiguous()", "image.contiguous(memory_format=torch.channels_last)")
)
def contiguous(input: Layout, memory_format: Value | None = None) -> Layout | None:
    return _formatted(restrided(input), memory_format)


def _formatted(plain: Layout, memory_format: Value | None) -> Layout | None:
    """`plain`, or the same sizes in the memory format that the call names."""
    if memory_format is None or memory_format == Qualified("torch.contiguous_format"):
        return plain
    if memory_format == Qualified("torch.channels_last") and plain.rank is None:
        plain = plain.of_rank(4)
    if memory_format == Qualified("torch.channels_last") and plain.rank == 4:
        return channels_last(plain)
    return None


@op(
    ".clone",
    "torch.clone",
    ".zeros_like",
    *(f"torch.{name}_like" for name in ("zeros", "ones", "empty", "full", "rand", "randn", "randint")),
    examples=("x.clone()", "torch.zeros_like(x)", "torch.full_like(x, 2.0)"),
)
def clone(input: Layout, *ignored: Value, memory_format: Value | None = None) -> Layout | None:
    if memory_format is not None and memory_format != Qualified("torch.preserve_format"):
        return _formatted(restrided(input), memory_format)
    return pointwise(input)


_CASTS = (
    "float",
    "double",
    "half",
    "bfloat16",
    "int",
    "long",
    "short",
    "bool",
    "char",
    "byte",
    "cuda",
    "cpu",
    "type",
    "type_as",
    "pin_memory",
    "to",
    "xpu",
    "cfloat",
    "npu",
)


@op(*(f".{name}" for name in _CASTS), alias=Alias.MAYBE, examples=("x.float()", "x.to(torch.float64)", "x.type_as(y)"))
def cast(input: Layout, *ignored: Value, memory_format: Value | None = None) -> Layout | None:
    if memory_format is not None:
        return _formatted(restrided(input), memory_format)
    return same_or_dense(input)


@op(".ravel", "torch.ravel", alias=Alias.MAYBE, examples=("x.ravel()",))
def ravel(input: Layout) -> Layout:
    return contiguous_layout([input.numel])


@op(".repeat", ".tile", "torch.tile", examples=("m.repeat(2, 3)", "x.repeat(1, 2, 1)", "v.repeat(2, 1)"))
def repeat(input: Layout, repeats: Shape) -> Layout:
    if repeats is None or input.rank is None or len(repeats.items) < len(input.dims):
        return anonymous()
    sizes = [*[Size.of(1)] * (len(repeats.items) - len(input.dims)), *input.sizes]
    return _dense([size * count for size, count in zip(sizes, repeats.sizes, strict=True)])


def _dense(sizes: list[Size]) -> Layout:
    """Contiguous; the sizes are given up where one of them is not known."""
    return anonymous() if any(size.terms is None for size in sizes) else contiguous_layout(sizes)


@op(
    ".repeat_interleave",
    "torch.repeat_interleave",
    examples=("x.repeat_interleave(2, dim=1)", "x.repeat_interleave(3)"),
)
def repeat_interleave(input: Layout, repeats: Value, dim: Index = None) -> Layout:
    return anonymous()


@op(".roll", "torch.roll", examples=("x.roll(1, 1)", "torch.roll(image, 1, 2)"))
def roll(input: Layout, shifts: Value, dims: Dims = None, *, world: World) -> Layout:
    spatial = input.rank - 2 if input.rank is not None and input.rank >= 3 else None
    return (
        image(input, [input], world, spatial=spatial, is_settled_by_input=True, origin=handed_on([input]))
        if spatial == 2
        else _open_image(input, world)
    )


def _open_image(input: Layout, world: World) -> Layout:
    return (
        restrided(input)
        if input.rank is not None
        else image(input, [input], world, spatial=None, is_settled_by_input=True)
    )


@op(
    ".flip",
    "torch.flip",
    "torch.fliplr",
    "torch.flipud",
    ".fliplr",
    ".flipud",
    examples=("x.flip(1)", "torch.flip(x, (0, 2))"),
)
def flip(input: Layout, *ignored: Value) -> Layout | None:
    return pointwise(input)


@op(
    ".masked_fill",
    "torch.masked_fill",
    ".index_fill",
    ".index_copy",
    ".masked_scatter",
    examples=("x.masked_fill(mask, 0.0)",),
)
def masked_fill(input: Layout, *ignored: Value) -> Layout:
    return restrided(input)


@op(".sort", "torch.sort", ".argsort", "torch.argsort", examples=("x.sort(1)", "torch.sort(x)", "x.argsort(0)"))
def sort(input: Layout, *ignored: Value) -> Layout | None:
    return None


__all__ = ["UNKNOWN", "ZERO", "Dim", "dense"]
