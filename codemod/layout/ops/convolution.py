"""Convolutions and pools, as functions and as modules.

With two or three spatial dims the result is contiguous or channels_last.  `conv1d` computes on an image of height 1:
contiguous, unless one channel or one position can be taken for channels_last.  Pools of one dim keep the order of a
transposed input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codemod.layout.layout import Layout, World
from codemod.layout.ops.rule import Extent, Flag, Outcome, op
from codemod.layout.ops.undecided import CONVOLUTION, MEMORY_FORMAT, handed_on, image, sized
from codemod.layout.ops.window import each_dim, resized, spread, windows
from codemod.layout.size import ONE, UNKNOWN, ZERO, Size
from codemod.layout.value import Constant, Value

Change = Callable[[Size, int], Size]

_INPUTS = {1: "x", 2: "image", 3: "volume"}


def convolved(
    inputs: Sequence[Layout], count: int, change: Change, channels: Size, taken: Size, world: World
) -> Layout | None:
    """`inputs` are the image and, if it is given, the weight; `taken` is the number of input channels."""
    result = resized(inputs[0], count, change, channels)
    if result is None:
        return None
    if count == 1 and (world is World.DEFAULT or (_is_above_one(taken) and not _grows(inputs[0], change))):
        return sized(result.dims)
    return image(result, inputs, world, spatial=count, origin=CONVOLUTION if count == 2 else MEMORY_FORMAT)


def _is_above_one(size: Size) -> bool:
    return size.constant is not None and size.constant > 1


def _grows(input: Layout, change: Change) -> bool:
    """Can one position become several?  One position, like one channel, may be taken for channels_last."""
    length = change(ONE, 0).constant
    return not _is_above_one(input.dims[-1].size) and (length is None or length > 1)


def _convolution(count: int) -> Callable[..., Outcome]:
    def convolution(
        input: Layout,
        world: World,
        weight: Layout,
        bias: Value | None = None,
        stride: Value | None = None,
        padding: Value | None = None,
        dilation: Value | None = None,
        groups: Extent = ONE,
    ) -> Layout | None:
        shape = weight.of_rank(count + 2).sizes
        if len(shape) != count + 2:
            return None
        change = windows(
            shape[2:],
            each_dim(stride, count, ONE),
            each_dim(padding, count, ZERO),
            each_dim(dilation, count, ONE),
        )
        return convolved([input, weight], count, change, shape[0], shape[1] * groups, world)

    return convolution


def _transposed_convolution(count: int) -> Callable[..., Outcome]:
    def transposed_convolution(
        input: Layout,
        world: World,
        weight: Layout,
        bias: Value | None = None,
        stride: Value | None = None,
        padding: Value | None = None,
        output_padding: Value | None = None,
        groups: Extent = ONE,
        dilation: Value | None = None,
    ) -> Layout | None:
        shape = weight.of_rank(count + 2).sizes
        if len(shape) != count + 2:
            return None
        change = _spreading(count, shape[2:], stride, padding, dilation, output_padding)
        return convolved([input, weight], count, change, shape[1] * groups, shape[0], world)

    return transposed_convolution


def _spreading(
    count: int,
    kernel: Sequence[Size],
    stride: Value | None,
    padding: Value | None,
    dilation: Value | None,
    output_padding: Value | None,
) -> Change:
    parameters = (
        kernel,
        each_dim(stride, count, ONE),
        each_dim(padding, count, ZERO),
        each_dim(dilation, count, ONE),
        each_dim(output_padding, count, ZERO),
    )
    return lambda size, i: spread(
        size, parameters[0][i], parameters[1][i], parameters[2][i], parameters[3][i], parameters[4][i]
    )


def _conv_module(count: int, is_lazy: bool) -> Callable[..., Outcome]:
    def conv(
        input: Layout,
        world: World,
        *,
        in_channels: Extent = UNKNOWN,
        out_channels: Extent,
        kernel_size: Value,
        stride: Value | None = None,
        padding: Value | None = None,
        dilation: Value | None = None,
    ) -> Layout | None:
        change = windows(
            each_dim(kernel_size, count),
            each_dim(stride, count, ONE),
            each_dim(padding, count, ZERO),
            each_dim(dilation, count, ONE),
        )
        return convolved([input], count, change, out_channels, in_channels, world)

    def lazy_conv(
        input: Layout,
        world: World,
        *,
        out_channels: Extent,
        kernel_size: Value,
        stride: Value | None = None,
        padding: Value | None = None,
        dilation: Value | None = None,
    ) -> Outcome:
        return conv(
            input,
            out_channels=out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            world=world,
        )

    return lazy_conv if is_lazy else conv


def _conv_transpose_module(count: int, is_lazy: bool) -> Callable[..., Outcome]:
    def conv_transpose(
        input: Layout,
        world: World,
        output_size: Value | None = None,
        *,
        in_channels: Extent = UNKNOWN,
        out_channels: Extent,
        kernel_size: Value,
        stride: Value | None = None,
        padding: Value | None = None,
        output_padding: Value | None = None,
        groups: Value | None = None,
        bias: Value | None = None,
        dilation: Value | None = None,
    ) -> Layout | None:
        kernel = each_dim(kernel_size, count)
        change = _spreading(count, kernel, stride, padding, dilation, output_padding)
        if output_size is not None:
            change = _unknown
        return convolved([input], count, change, out_channels, in_channels, world)

    def lazy_conv_transpose(
        input: Layout,
        world: World,
        output_size: Value | None = None,
        *,
        out_channels: Extent,
        kernel_size: Value,
        stride: Value | None = None,
        padding: Value | None = None,
        output_padding: Value | None = None,
        groups: Value | None = None,
        bias: Value | None = None,
        dilation: Value | None = None,
    ) -> Outcome:
        return conv_transpose(
            input,
            world,
            output_size,
            out_channels=out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            dilation=dilation,
        )

    return lazy_conv_transpose if is_lazy else conv_transpose


def _unknown(size: Size, i: int) -> Size:
    return UNKNOWN


def pooled(
    input: Layout,
    count: int,
    kernel_size: Value,
    stride: Value | None,
    padding: Value | None,
    dilation: Value | None,
    ceil_mode: Flag,
    world: World,
) -> Layout | None:
    kernel = each_dim(kernel_size, count)
    steps = kernel if stride is None or stride == Constant(None) else each_dim(stride, count)
    edges = each_dim(padding, count, ZERO)
    change = windows(kernel, steps, edges, each_dim(dilation, count, ONE))
    if ceil_mode is not False and any(step != ONE for step in steps):
        change = _unknown
    result = resized(input, count, change)
    if result is None:
        return None
    is_settled = all(edge == ZERO for edge in edges)
    return image(result, [input], world, spatial=count, is_settled_by_input=is_settled, origin=handed_on([input]))


def _max_pool(count: int) -> Callable[..., Outcome]:
    def max_pool(
        input: Layout,
        world: World,
        kernel_size: Value,
        stride: Value | None = None,
        padding: Value | None = None,
        dilation: Value | None = None,
        ceil_mode: Flag = False,
        return_indices: Flag = False,
    ) -> Outcome:
        return _indexed(pooled(input, count, kernel_size, stride, padding, dilation, ceil_mode, world), return_indices)

    return max_pool


def _max_pool_module(count: int) -> Callable[..., Outcome]:
    def max_pool(
        input: Layout,
        world: World,
        *,
        kernel_size: Value,
        stride: Value | None = None,
        padding: Value | None = None,
        dilation: Value | None = None,
        return_indices: Flag = False,
        ceil_mode: Flag = False,
    ) -> Outcome:
        return _indexed(pooled(input, count, kernel_size, stride, padding, dilation, ceil_mode, world), return_indices)

    return max_pool


def _indexed(found: Layout | None, return_indices: Flag) -> Outcome:
    if return_indices is None:
        return None
    return (found, found) if return_indices else found


def _avg_pool(count: int) -> Callable[..., Outcome]:
    def avg_pool(
        input: Layout,
        kernel_size: Value,
        stride: Value | None = None,
        padding: Value | None = None,
        ceil_mode: Flag = False,
        *ignored: Value,
        world: World,
    ) -> Outcome:
        return pooled(input, count, kernel_size, stride, padding, None, ceil_mode, world)

    return avg_pool


def _avg_pool_module(count: int) -> Callable[..., Outcome]:
    def avg_pool(
        input: Layout,
        world: World,
        *,
        kernel_size: Value,
        stride: Value | None = None,
        padding: Value | None = None,
        ceil_mode: Flag = False,
    ) -> Outcome:
        return pooled(input, count, kernel_size, stride, padding, None, ceil_mode, world)

    return avg_pool


def adapted(input: Layout, count: int, output_size: Value, world: World) -> Layout | None:
    result = resized(input, count, lambda size, i: _output_size(output_size, size, i, count))
    return None if result is None else image(result, [input], world, spatial=count, origin=handed_on([input]))


def _output_size(output_size: Value, size: Size, i: int, count: int) -> Size:
    """`None` keeps the size."""
    items = getattr(output_size, "items", None)
    item = items[i] if isinstance(items, tuple) and len(items) == count else output_size
    if item == Constant(None):
        return size
    return item if isinstance(item, Size) else each_dim(item, 1)[0]


def _adaptive_pool(count: int) -> Callable[..., Outcome]:
    def adaptive_pool(input: Layout, world: World, output_size: Value) -> Outcome:
        return adapted(input, count, output_size, world)

    return adaptive_pool


def _adaptive_max_pool(count: int) -> Callable[..., Outcome]:
    def adaptive_max_pool(input: Layout, world: World, output_size: Value, return_indices: Flag = False) -> Outcome:
        return _indexed(adapted(input, count, output_size, world), return_indices)

    return adaptive_max_pool


def _adaptive_pool_module(count: int) -> Callable[..., Outcome]:
    def adaptive_pool(input: Layout, world: World, *, output_size: Value, return_indices: Flag = False) -> Outcome:
        return _indexed(adapted(input, count, output_size, world), return_indices)

    return adaptive_pool


def _declare(count: int) -> None:
    given = _INPUTS[count]
    weight = ", ".join(["2"] * count)
    channels = f"{given}.shape[1]"
    functional = "torch.nn.functional"
    op(
        f"{functional}.conv{count}d",
        f"torch.conv{count}d",
        examples=(
            f"F.conv{count}d({given}, torch.ones(6, {channels}, {weight}), padding=1)",
            f"F.conv{count}d({given}, torch.ones(6, {channels}, {weight}), None, 2, 1)",
            f"F.conv{count}d({given}, torch.ones({channels}, 1, {weight}), padding=1, groups={channels})",
        ),
    )(_convolution(count))
    op(
        f"{functional}.conv_transpose{count}d",
        f"torch.conv_transpose{count}d",
        examples=(f"F.conv_transpose{count}d({given}, torch.ones({channels}, 6, {weight}), stride=2, padding=1)",),
    )(_transposed_convolution(count))
    op(
        f"torch.nn.Conv{count}d",
        examples=(
            f"nn.Conv{count}d({channels}, 6, 2, padding=1)({given})",
            f"nn.Conv{count}d({channels}, 6, 2, stride=2)({given})" if count > 1 else f"nn.Conv1d({channels}, 6, 1)(x)",
            f"nn.Conv{count}d({channels}, 6, 3, 1, 'same')({given})",
            f"nn.Conv{count}d({channels}, 1, 1)({given})",
            f"nn.Conv{count}d({channels}, 6, 3, 2, 1)({given})",
        ),
    )(_conv_module(count, is_lazy=False))
    op(f"torch.nn.LazyConv{count}d", examples=(f"nn.LazyConv{count}d(6, 3, 1, 1)({given})",))(
        _conv_module(count, is_lazy=True)
    )
    op(
        f"torch.nn.ConvTranspose{count}d",
        examples=(
            f"nn.ConvTranspose{count}d({channels}, 6, 2, 2)({given})",
            f"nn.ConvTranspose{count}d({channels}, 6, 3, stride=2, padding=1, output_padding=1)({given})",
        ),
    )(_conv_transpose_module(count, is_lazy=False))
    op(f"torch.nn.LazyConvTranspose{count}d", examples=(f"nn.LazyConvTranspose{count}d(6, 2, 2)({given})",))(
        _conv_transpose_module(count, is_lazy=True)
    )
    op(
        f"{functional}.max_pool{count}d",
        f"torch.max_pool{count}d",
        examples=(
            f"F.max_pool{count}d({given}, 3, 1, 1)",
            f"F.max_pool{count}d({given}, 2, padding=1)",
            f"F.max_pool{count}d({given}, 3, 2, 1, return_indices=True)",
        ),
    )(_max_pool(count))
    op(
        f"torch.nn.MaxPool{count}d",
        examples=(
            f"nn.MaxPool{count}d(3, 2, 1)({given})",
            f"nn.MaxPool{count}d(2, 2, padding=1, ceil_mode=True)({given})",
        ),
    )(_max_pool_module(count))
    op(
        f"{functional}.avg_pool{count}d",
        *([f"torch.avg_pool{count}d"] if count == 1 else []),
        examples=(f"F.avg_pool{count}d({given}, 3, 1, 1)", f"F.avg_pool{count}d({given}, kernel_size=1, stride=2)"),
    )(_avg_pool(count))
    op(f"torch.nn.AvgPool{count}d", examples=(f"nn.AvgPool{count}d(3, stride=1, padding=1)({given})",))(
        _avg_pool_module(count)
    )
    sizes = ", ".join(["None", "2", "3"][3 - count :])
    op(
        f"{functional}.adaptive_avg_pool{count}d",
        *([f"torch.adaptive_avg_pool{count}d"] if count == 1 else []),
        examples=(
            f"F.adaptive_avg_pool{count}d({given}, 1)",
            f"F.adaptive_avg_pool{count}d({given}, ({sizes},))",
        ),
    )(_adaptive_pool(count))
    op(f"{functional}.adaptive_max_pool{count}d", examples=(f"F.adaptive_max_pool{count}d({given}, 2)",))(
        _adaptive_max_pool(count)
    )
    op(
        f"torch.nn.AdaptiveAvgPool{count}d",
        f"torch.nn.AdaptiveMaxPool{count}d",
        examples=(
            f"nn.AdaptiveAvgPool{count}d(1)({given})",
            f"nn.AdaptiveMaxPool{count}d(2, return_indices=True)({given})",
            f"nn.AdaptiveMaxPool{count}d(({sizes},))({given})",
        ),
    )(_adaptive_pool_module(count))


for _count in _INPUTS:
    _declare(_count)
