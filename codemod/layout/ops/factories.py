"""Ops that make a tensor out of sizes or plain values: contiguous."""

from __future__ import annotations

from codemod.layout.layout import Dim, Layout, Pack, World, anonymous, contiguous, restrided
from codemod.layout.ops.pointwise import pointwise, same_or_dense
from codemod.layout.ops.rule import Alias, Extent, Shape, op
from codemod.layout.size import UNKNOWN, ZERO, Size
from codemod.layout.value import Constant, Foreign, Number, Repeated, Several, Tensor, Unknown, Value
from codemod.layout.value import Shape as Sizes


def _filled(shape: Shape) -> Layout:
    if shape is None or shape.items == (UNKNOWN,):
        return anonymous()
    sizes = [item for item in shape.items if isinstance(item, Size)]
    if any(size.terms is None for size in sizes):
        return contiguous(sizes) if len(sizes) == len(shape.items) else anonymous(len(sizes))
    return restrided(
        Layout(tuple(Dim(Size.of(i.atom), ZERO, i) if isinstance(i, Pack) else Dim(i, ZERO) for i in shape.items))
    )


@op(
    *(f"torch.{name}" for name in ("zeros", "ones", "empty", "rand", "randn")),
    "torch.Tensor",
    "torch.FloatTensor",
    "torch.LongTensor",
    examples=("torch.zeros(2, 3)", "torch.empty((2, 3))", "torch.rand(x.shape)"),
)
def zeros(shape: Shape) -> Layout:
    return _filled(shape)


@op("torch.full", examples=("torch.full((2, 3), 1.0)",))
def full(shape: Shape, fill_value: Value) -> Layout:
    return _filled(shape)


@op(*(f".new_{name}" for name in ("zeros", "ones", "empty")), examples=("x.new_zeros(2, 3)", "x.new_empty((4, 5))"))
def new_zeros(input: Layout, shape: Shape) -> Layout:
    return _filled(shape)


@op(".new_full", examples=("x.new_full((2, 3), 1.0)",))
def new_full(input: Layout, shape: Shape, fill_value: Value) -> Layout:
    return _filled(shape)


@op("torch.randint", examples=("torch.randint(0, 5, (2, 3))", "torch.randint(5, (2, 3))"))
def randint(low: Value, high: Value, size: Value | None = None) -> Layout:
    found = high if size is None else size
    if isinstance(found, Several) and all(isinstance(item, Number) for item in found.items):
        return contiguous([item.size for item in found.items if isinstance(item, Number)])
    return anonymous()


@op(
    "torch.arange",
    "torch.range",
    "torch.randperm",
    "torch.linspace",
    "torch.logspace",
    examples=("torch.arange(5)", "torch.linspace(0, 1, 7)"),
)
def arange(start: Extent, end: Extent = UNKNOWN, *ignored: Value) -> Layout:
    return contiguous([UNKNOWN])


@op("torch.eye", examples=("torch.eye(3)", "torch.eye(3, 4)"))
def eye(n: Extent, m: Extent = UNKNOWN) -> Layout:
    if n.terms is None:
        return anonymous()
    return contiguous([n, n if m.terms is None else m])


@op(
    "torch.bernoulli",
    ".bernoulli",
    "torch.multinomial",
    ".multinomial",
    "torch.normal",
    examples=(
        "torch.bernoulli(x.sigmoid())",
        "x.sigmoid().bernoulli()",
        "torch.multinomial(m.abs() + 1, 2)",
        "torch.normal(x, y.abs())",
    ),
)
def drawn(input: Layout, *ignored: Value) -> Layout:
    return anonymous()


@op("torch.tensor", examples=("torch.tensor([1, 2, 3])", "torch.tensor([[1, 2], [3, 4]])", "torch.tensor(2.0)"))
def tensor(data: Value, world: World) -> Layout | None:
    """Of numbers and lists; the order of a tensor's or an array's strides is kept."""
    layout = _of_data(data, world)
    return pointwise(layout) if layout is not None else None


@op(
    "torch.as_tensor",
    "torch.asarray",
    alias=Alias.MAYBE,
    examples=("torch.as_tensor([1, 2, 3])", "torch.as_tensor(x)", "torch.as_tensor(m.t(), dtype=torch.float64)"),
)
def as_tensor(data: Value, *ignored: Value, world: World) -> Layout | None:
    layout = _of_data(data, world)
    return same_or_dense(layout) if layout is not None else None


def sizes_of_data(data: Value) -> tuple[Size, ...] | None:
    """Of numbers in lists of lists; None where not all of it is known to be that."""
    match data:
        case Number() | Constant(int() | float() | complex()):
            return ()
        case Sizes(items) if all(isinstance(item, Size) for item in items):
            return (Size.of(len(items)),)
        case Several(()):
            return (ZERO,)
        case Several(items):
            inner = [sizes_of_data(item) for item in items]
            return None if inner[0] is None or inner.count(inner[0]) < len(inner) else (Size.of(len(items)), *inner[0])
        case Repeated(item):
            sizes = sizes_of_data(item)
            return None if sizes is None else (UNKNOWN, *sizes)
    return None


def _of_data(data: Value, world: World) -> Layout | None:
    sizes = sizes_of_data(data)
    if sizes is not None:
        return contiguous(sizes)
    match data:
        case Several() | Repeated() | Sizes() | Constant():
            return anonymous()
        case Tensor():
            return data.layout(world)
        case Foreign(array=Tensor() as array):
            return array.layout(world)
        case Unknown(name=name, given=given) if given:
            return data.laid_out(name, world)
        case _:
            return None
