"""Elementwise ops: the result is dense, in the memory order of the operands.

Source: aten/src/ATen/TensorIterator.cpp, reorder_dimensions and allocate_or_resize_outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codemod.layout.layout import Dim, Layout, Pack, World, anonymous, contiguous, restrided, stride_atom
from codemod.layout.ops.rule import Alias, Parts, op
from codemod.layout.origin import Origin, OriginKind
from codemod.layout.size import ONE, UNKNOWN, ZERO, Answer, Atom, Size, is_less
from codemod.layout.value import Value


def pointwise(*operands: Layout, world: World = World.ANY) -> Layout:
    """The result's layout for operands that broadcast against each other.

    By default no symbol stands for a size of 1, so that several operands can be sorted by.
    """
    tensors = [operand for operand in operands if operand.dims]
    if not tensors:
        return Layout(())
    shape = broadcast(tensors)
    if shape is None:
        return _unsized(tensors)
    if all(tensor.is_contiguous for tensor in tensors):
        return restrided(shape)
    leader = _leader(tensors, shape)
    if leader is None:
        order = _common_order(tensors, shape) if world is World.DEFAULT else None
        return _open(shape, tensors) if order is None else _stored(shape, order)
    ordered = dense(leader)
    return ordered if ordered is not None else _open(_resized(leader, shape), tensors)


def dense(layout: Layout) -> Layout | None:
    """The gapless layout in the same order in memory; None where the order is not known."""
    if layout.is_mergeable:
        return restrided(layout)
    order = memory_order(layout)
    if order is None or any(dim.pack and not dim.pack.merged for dim in layout.dims):
        return None
    return _stored(layout, order)


def _stored(shape: Layout, order: Sequence[int]) -> Layout:
    """These sizes without gaps, in that order in memory, outermost first."""
    stride, dims = ONE, list(shape.dims)
    for i in reversed(order):
        dim = shape.dims[i]
        dims[i] = Dim(dim.size, stride, dim.pack)
        stride = stride * dim.size
    return Layout(tuple(dims))


def _common_order(operands: Sequence[Layout], shape: Layout) -> list[int] | None:
    """Positions of the dims of the result, outermost in memory first; None where the order is not known."""
    rank = shape.rank
    if rank is None or any(operand.rank is None for operand in operands):
        return None
    return _sorted([[Dim(ONE, ZERO)] * (rank - len(operand.dims)) + list(operand.dims) for operand in operands])


def memory_order(layout: Layout) -> list[int] | None:
    """Positions of the dims, outermost in memory first; None where the order is not known."""
    return _sorted([layout.dims])


def _sorted(operands: Sequence[Sequence[Dim]]) -> list[int] | None:
    """As TensorIterator does it: what no operand tells apart stays, which passes one dim by another.

    Two dims are compared by the first operand that repeats neither.
    """
    order = list(range(len(operands[0])))[::-1]
    for i in range(1, len(order)):
        moved = i
        for j in range(i - 1, -1, -1):
            pairs = ((dims[order[j]], dims[order[moved]]) for dims in operands)
            faster, slower = next((pair for pair in pairs if not any(map(_is_free, pair))), (None, None))
            if faster is None or slower is None:
                continue
            match is_less(slower.stride, faster.stride):
                case Answer.YES:
                    order[j], order[moved], moved = order[moved], order[j], j
                case Answer.NO if faster.stride != slower.stride:
                    break
                case _:
                    return None
    return order[::-1]


def _is_free(dim: Dim) -> bool:
    """A dim whose place in memory order nothing fixes."""
    return dim.size == ONE or dim.stride == ZERO


def _unsized(tensors: Sequence[Layout]) -> Layout:
    least = max(tensor.least_rank for tensor in tensors)
    if all(tensor.is_contiguous for tensor in tensors):
        return anonymous(least)
    origins = _origins(tensors)
    return Layout((Dim(UNKNOWN, stride_atom("", -1, origins), Pack("", origins=origins, least=least)),))


def _origins(tensors: Sequence[Layout]) -> tuple[Origin, ...]:
    found = dict.fromkeys(origin for tensor in tensors for origin in tensor.origins)
    return tuple(found) or (Origin(OriginKind.OP, "the order in memory of several operands"),)


def _open(shape: Layout, tensors: Sequence[Layout]) -> Layout:
    """Of unknown order; what can be merged in the first operand can be merged in the result."""
    origins = _origins(tensors)
    runs = _runs(shape)
    dims = list(shape.dims)
    for run in runs:
        stride = stride_atom("", run[-1], origins)
        for i in reversed(run):
            pack = dims[i].pack
            dims[i] = Dim(dims[i].size, stride, replace(pack, origins=origins) if pack else None)
            stride = stride * dims[i].size
    return Layout(tuple(dims))


def _runs(layout: Layout) -> list[list[int]]:
    """Positions of adjacent dims that can be merged, together."""
    runs: list[list[int]] = []
    last: Dim | None = None
    for i, dim in enumerate(layout.dims):
        if last is not None and _merges(last, dim):
            runs[-1].append(i)
        else:
            runs.append([i])
        last = dim
    return runs


def _merges(left: Dim, right: Dim) -> bool:
    if left.stride.terms is None or right.stride.terms is None or left.stride == ZERO:
        return False
    return left.stride == right.size * right.stride and (right.pack is None or right.pack.merged)


def _leader(tensors: Sequence[Layout], shape: Layout) -> Layout | None:
    """The first operand, where it has the full shape, repeats no dim, and so decides the order alone."""
    first = tensors[0]
    if first.sizes == shape.sizes:
        return first if len(tensors) == 1 or all(dim.stride != ZERO for dim in first.core) else None
    if len([dim for dim in first.dims if dim.size != ONE]) <= 1 and len(tensors) > 1:
        return _leader(tensors[1:], shape)
    return None


def _resized(leader: Layout, shape: Layout) -> Layout:
    sized = zip(leader.dims, shape.sizes, strict=True)
    return Layout(tuple([Dim(size, dim.stride, dim.pack) for dim, size in sized]))


def broadcast(tensors: Sequence[Layout]) -> Layout | None:
    """Sizes of the result (strides mean nothing); None where not even the rank is known.

    Where two symbols meet they are taken to be the same number: only a size of 1 could make them differ.
    """
    shape = tensors[0]
    for other in tensors[1:]:
        joined = _broadcast(shape, other)
        if joined is None:
            return None
        shape = joined
    return shape


def _broadcast(left: Layout, right: Layout) -> Layout | None:
    if left.sizes == right.sizes:
        return left
    if len(right.dims) > len(left.dims):
        left, right = right, left
    if right.pack_at is not None or (left.pack_at is not None and len(left.dims) - left.pack_at - 1 < len(right.dims)):
        return None
    offset = len(left.dims) - len(right.dims)
    dims = list(left.dims)
    for i, dim in enumerate(right.dims, start=offset):
        if dims[i].size == ONE:
            dims[i] = dim
    return Layout(tuple(dims))


_UNARY = (
    "abs", "absolute", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "clamp",
    "clamp_max", "clamp_min", "clip", "cos", "cosh", "deg2rad", "digamma", "erf", "erfc", "erfinv", "exp", "exp2",
    "expm1", "fix", "floor", "frac", "i0", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "lgamma",
    "log", "log10", "log1p", "log2", "logical_not", "logit", "nan_to_num", "neg", "negative", "positive", "rad2deg",
    "reciprocal", "relu", "round", "rsqrt", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc",
)  # fmt: skip
_ACTIVATIONS = (
    "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish",
    "relu", "relu6", "rrelu", "selu", "sigmoid", "silu", "softplus", "softshrink", "softsign", "tanh", "tanhshrink",
    "threshold",
)  # fmt: skip


@op(
    *(name for unary in _UNARY for name in (f".{unary}", f"torch.{unary}")),
    *(f"torch.nn.functional.{name}" for name in _ACTIVATIONS),
    "torch.special.expit",
    examples=("x.neg()", "torch.relu(x)", "F.gelu(x)", "F.leaky_relu(x, 0.2)", "image.clamp(0, 1)", "torch.sqrt(x)"),
)
def unary(input: Layout, *ignored: Value) -> Layout:
    return pointwise(input)


_BINARY = (
    "add", "arctan2", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "copysign", "div", "divide", "eq", "float_power", "floor_divide", "fmax", "fmin", "fmod", "ge", "greater",
    "greater_equal", "gt", "heaviside", "hypot", "isclose", "ldexp", "le", "less", "less_equal", "logaddexp",
    "logical_and", "logical_or", "logical_xor", "lt", "maximum", "minimum", "mul", "multiply", "ne", "nextafter",
    "not_equal", "pow", "remainder", "sub", "subtract", "true_divide", "xlogy",
)  # fmt: skip


@op(
    *(name for binary in _BINARY for name in (f".{binary}", f"torch.{binary}")),
    "torch.complex",
    "torch.polar",
    examples=("x + y", "x.mul(2.0)", "torch.maximum(x, y)", "x.div(v)", "torch.eq(x, 1)"),
)
def binary(input: Layout, mat2: Layout, *ignored: Value, world: World) -> Layout:
    return pointwise(*_followed([input, mat2], world), world=world)


def _followed(operands: Sequence[Layout], world: World) -> Sequence[Layout]:
    """By default what is not followed is taken for a scale or a mask that leaves the other operands' order alone."""
    known = [operand for operand in operands if not _is_unfollowed(operand)]
    return known if known and world is World.DEFAULT else operands


def _is_unfollowed(layout: Layout) -> bool:
    pack = layout.dims[0].pack if len(layout.dims) == 1 else None
    return pack is not None and not pack.merged and not pack.is_free


@op(
    ".where",
    "torch.where",
    examples=("torch.where(mask, x, y)", "torch.where(mask, x, 0.0)", "torch.where(mask)[1]"),
)
def where(
    condition: Layout, input: Layout | None = None, mat2: Layout | None = None, *, world: World
) -> Layout | Parts:
    """Of the condition alone: the columns of `nonzero`, which is column-major."""
    if input is None or mat2 is None:
        return Parts(contiguous([Size.of(Atom("#nonzero", owner=""))]), UNKNOWN, 1)
    return pointwise(*_followed([condition, input, mat2], world), world=world)


@op(
    ".lerp",
    "torch.lerp",
    ".addcmul",
    "torch.addcmul",
    ".addcdiv",
    "torch.addcdiv",
    examples=("torch.lerp(x, y, 0.5)", "x.addcmul(y, z)"),
)
def ternary(input: Layout, end: Layout, weight: Layout) -> Layout:
    return pointwise(input, end, weight)


_DROPOUTS = ("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d")


@op(
    *(f"torch.nn.functional.{name}" for name in _DROPOUTS),
    "torch.dropout",
    alias=Alias.MAYBE,
    examples=("F.dropout(x, 0.5, True)", "F.dropout(x, 0.5, False)"),
)
def dropout(input: Layout, *ignored: Value) -> Layout:
    return same_or_dense(input)


def same_or_dense(input: Layout) -> Layout:
    """The same tensor or a copy without gaps: what holds of both."""
    copy = dense(input)
    if copy is not None and copy.strides == input.strides:
        return input
    return _open(input, [input])


_INPLACE = (
    "abs_", "add_", "addcdiv_", "addcmul_", "bernoulli_", "ceil_", "clamp_", "clamp_max_", "clamp_min_", "copy_",
    "cos_", "div_", "exp_", "exponential_", "fill_", "fill_diagonal_", "floor_", "index_add_", "index_copy_",
    "index_fill_", "lerp_", "log_", "masked_fill_", "masked_scatter_", "mul_", "neg_", "normal_", "pow_", "random_",
    "reciprocal_", "relu_", "round_", "rsqrt_", "scatter_", "scatter_add_", "sigmoid_", "sin_", "sqrt_", "square_",
    "sub_", "tanh_", "tril_", "triu_", "trunc_", "uniform_", "zero_",
)  # fmt: skip


@op(
    *(f".{name}" for name in _INPLACE),
    alias=Alias.ALWAYS,
    examples=("x.add_(1)", "x.mul_(y)", "x.zero_()"),
)
def inplace(input: Layout, *ignored: Value) -> Layout:
    return input


def size_of(layout: Layout, dim: int) -> Size:
    """Size of torch dim `dim`; UNKNOWN where it is hidden."""
    i = layout.index(dim)
    return UNKNOWN if i is None else layout.dims[i].size
