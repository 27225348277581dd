"""numpy's arrays as far as their strides follow from the source, and what torch makes of them.

Strides are counted in elements, as torch's are.  An array made by any other way has any strides.
"""

from __future__ import annotations

from codemod.layout.layout import Dim, Layout, World, anonymous, contiguous
from codemod.layout.ops.factories import sizes_of_data
from codemod.layout.ops.lift import as_target
from codemod.layout.ops.pointwise import dense
from codemod.layout.ops.reductions import positions
from codemod.layout.ops.reshaped import reshaped
from codemod.layout.ops.rule import Alias, Index, Indices, Shape, Text, op
from codemod.layout.ops.undecided import sized
from codemod.layout.size import ONE, UNKNOWN
from codemod.layout.value import Number, Repeated, Several, Tensor, Value
from codemod.layout.viewable import Target

SCALAR = Target(())


@op(
    "torch.from_numpy",
    alias=Alias.ALWAYS,
    examples=(
        "torch.from_numpy(numpy.zeros((3, 4)))",
        "torch.from_numpy(numpy.transpose(numpy.ones((3, 4, 5)), (0, 2, 1)))",
    ),
)
def from_numpy(ndarray: Layout) -> Layout:
    return ndarray


@op(
    *(f"numpy.{name}" for name in ("zeros", "ones", "empty")),
    examples=("numpy.zeros(3)", "numpy.ones((3, 4))", "numpy.empty((3, 4), order='F')"),
)
def zeros(shape: Value, dtype: Value | None = None, order: Text = "C") -> Layout | None:
    return made(shape) if order == "C" else None


@op("numpy.full", examples=("numpy.full((3, 4), 2.0)",))
def full(shape: Value, fill_value: Value, dtype: Value | None = None, order: Text = "C") -> Layout | None:
    return made(shape) if order == "C" else None


def made(shape: Value) -> Layout:
    """Contiguous, with these sizes: `3`, `(3, 4)` or `x.shape`."""
    target = as_target(Several((shape,)) if isinstance(shape, Number) else shape)
    if target is None or target.items != target.sizes:
        return anonymous()
    return sized(target.sizes)


@op(
    *(f"numpy.random.{name}" for name in ("rand", "randn")),
    examples=("numpy.random.rand(3, 4)", "numpy.random.randn()"),
)
def random(d0: Shape = SCALAR) -> Layout:
    return anonymous() if d0 is None or d0.items != d0.sizes else sized(d0.sizes)


@op(*(f"numpy.random.{name}" for name in ("random", "random_sample")), examples=("numpy.random.random((3, 4))",))
def random_sample(size: Value | None = None) -> Layout:
    return Layout(()) if size is None else made(size)


@op(
    "numpy.random.normal",
    "numpy.random.uniform",
    examples=("numpy.random.normal(0, 1, (3, 4))", "numpy.random.uniform(size=5)"),
)
def drawn(loc: Value | None = None, scale: Value | None = None, size: Value | None = None) -> Layout:
    return anonymous() if size is None else made(size)


@op("numpy.random.randint", examples=("numpy.random.randint(0, 3, (2, 3))", "numpy.random.randint(3)"))
def randint(low: Value, high: Value | None = None, size: Value | None = None) -> Layout:
    return Layout(()) if size is None else made(size)


@op(
    "numpy.arange",
    "numpy.linspace",
    "numpy.logspace",
    "numpy.flatnonzero",
    examples=("numpy.arange(5)", "numpy.linspace(0, 1, 7)"),
)
def arange(*ignored: Value) -> Layout:
    return sized([UNKNOWN])


@op(
    "numpy.array",
    examples=(
        "numpy.array([[1, 2], [3, 4]])",
        "numpy.array([[1, 2], [3, 4]], order='F')",
        "numpy.array([1, 2], ndmin=2)",
        "numpy.array(numpy.transpose(numpy.zeros((3, 4))))",
    ),
)
def array(
    object: Value,
    dtype: Value | None = None,
    *,
    order: Text = "K",
    ndmin: Value | None = None,
    world: World,
) -> Layout | None:
    """Of a list it is contiguous; of an array it keeps the order."""
    if order not in ("K", "C"):
        return None
    sizes = sizes_of_data(object) if ndmin is None else None
    if sizes is not None:
        return contiguous(sizes)
    if isinstance(object, Several | Repeated):
        return anonymous()
    return dense(object.layout(world)) if isinstance(object, Tensor) else None


@op("numpy.outer", examples=("numpy.outer(numpy.ones(3), numpy.zeros(4))",))
def outer(a: Value, b: Value) -> Layout:
    return contiguous([UNKNOWN, UNKNOWN])


@op(
    "numpy.ascontiguousarray",
    alias=Alias.MAYBE,
    examples=("numpy.ascontiguousarray(numpy.transpose(numpy.zeros((3, 4))))",),
)
def copied(a: Value, *ignored: Value) -> Layout:
    return anonymous()


@op(
    "numpy.transpose",
    alias=Alias.ALWAYS,
    examples=("numpy.transpose(numpy.ones((3, 4, 5)))", "numpy.transpose(numpy.ones((3, 4, 5)), (0, 2, 1))"),
)
def transpose(a: Layout, axes: Indices = None) -> Layout | None:
    if axes is None:
        return Layout(a.dims[::-1])
    layout = a.of_rank(len(axes))
    if layout.rank != len(axes):
        return None
    return Layout(tuple(layout.dims[axis] for axis in axes))


@op("numpy.swapaxes", alias=Alias.ALWAYS, examples=("numpy.swapaxes(numpy.full((3, 4, 5), 2.0), 0, 2)",))
def swapaxes(a: Layout, axis1: Index, axis2: Index) -> Layout | None:
    found = positions(a, None if axis1 is None or axis2 is None else (axis1, axis2))
    if found is None or len(found[1]) != 2:
        return None
    first, second = sorted(found[1])
    dims = list(found[0].dims)
    dims[first], dims[second] = dims[second], dims[first]
    return Layout(tuple(dims))


@op(
    "numpy.reshape",
    alias=Alias.MAYBE,
    examples=("numpy.reshape(numpy.zeros((3, 4)), (2, 6))", "numpy.reshape(numpy.transpose(numpy.zeros((3, 4))), -1)"),
)
def reshape(a: Layout, shape: Value, order: Text = "C", *, world: World) -> Layout | None:
    target = as_target(Several((shape,)) if isinstance(shape, Number) else shape)
    return reshaped(a, target, world) if order == "C" else None


@op(
    "numpy.expand_dims",
    alias=Alias.ALWAYS,
    examples=(
        "numpy.expand_dims(numpy.transpose(numpy.zeros((3, 4))), 1)",
        "numpy.expand_dims(numpy.zeros((3, 4)), -1)",
    ),
)
def expand_dims(a: Layout, axis: Index) -> Layout | None:
    if a.rank is None or axis is None:
        return None
    at = axis % (a.rank + 1)
    return Layout((*a.dims[:at], Dim(ONE, ONE), *a.dims[at:]))
