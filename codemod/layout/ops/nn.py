"""Functions of torch.nn.functional, but for convolutions, pools, activations and losses."""

from __future__ import annotations

from dataclasses import replace

from codemod.layout.layout import Dim, Layout, World, anonymous, restrided
from codemod.layout.ops.lift import as_size
from codemod.layout.ops.pointwise import broadcast, dense, pointwise
from codemod.layout.ops.reductions import positions, reduced
from codemod.layout.ops.rule import Dims, Extent, Flag, Index, Outcome, Shape, Text, op
from codemod.layout.ops.undecided import MEMORY_FORMAT, by_backend, handed_on, image, sized
from codemod.layout.ops.window import each_dim, quotient, resized, slid
from codemod.layout.origin import Origin
from codemod.layout.size import ONE, UNKNOWN, ZERO, Size, product
from codemod.layout.value import Constant, Number, Several, Value
from codemod.layout.value import Shape as ShapeOfTensor

_ATTENTION = "the attention backend that is chosen"


def with_last(input: Layout, size: Size) -> Layout:
    """Contiguous, with another last dim."""
    found = positions(input, (-1,))
    return anonymous() if found is None else sized([*found[0].dims[:-1], size])


@op(
    "torch.nn.functional.linear",
    "torch._C._nn.linear",
    examples=(
        "F.linear(x, torch.ones(4, x.shape[-1]))",
        "F.linear(image, image[0, 0])",
        "F.linear(v, m.new_ones(3, v.shape[0]))",
    ),
)
def linear(input: Layout, weight: Layout, bias: Value | None = None) -> Layout:
    if weight.rank == 1:
        return reduced(input, (-1,))
    return with_last(input, weight.of_rank(2).sizes[0])


@op(
    "torch.nn.functional.bilinear",
    "torch.bilinear",
    examples=("F.bilinear(m, m, torch.ones(3, m.shape[1], m.shape[1]))",),
)
def bilinear(input1: Layout, input2: Layout, weight: Layout, bias: Value | None = None) -> Layout:
    return with_last(input1, weight.of_rank(3).sizes[0])


def appended(input: Layout, size: Size) -> Layout:
    """Contiguous, with one more dim behind."""
    return sized([*input.dims, size])


@op("torch.nn.functional.embedding", examples=("F.embedding(ids, torch.ones(9, 4))",))
def embedding(input: Layout, weight: Layout) -> Layout:
    return appended(input, weight.of_rank(2).sizes[-1])


@op("torch.nn.functional.one_hot", examples=("F.one_hot(ids, 9)", "F.one_hot(ids)", "F.one_hot(ids, num_classes=7)"))
def one_hot(tensor: Layout, num_classes: Extent = UNKNOWN) -> Layout:
    return appended(tensor, UNKNOWN if num_classes == Size.of(-1) else num_classes)


@op(
    "torch.nn.functional.layer_norm",
    "torch.layer_norm",
    "torch.nn.functional.instance_norm",
    "torch.instance_norm",
    examples=(
        "F.layer_norm(x, (x.shape[-1],))",
        "F.layer_norm(image, image.shape[1:])",
        "F.instance_norm(image, use_input_stats=True)",
    ),
)
def normed(input: Layout, *ignored: Value) -> Layout:
    return restrided(input)


@op(
    "torch.nn.functional.rms_norm",
    "torch.rms_norm",
    examples=("F.rms_norm(x, (x.shape[-1],))", "F.rms_norm(image, (image.shape[-1],))"),
)
def rms_norm(input: Layout, *ignored: Value) -> Layout:
    """Before torch 2.9 elementwise, since then contiguous or channels_last."""
    return restrided(input) if input.is_contiguous else by_backend(input, "how this version of torch computes rms_norm")


def image_norm(input: Layout, world: World, origin: Origin = MEMORY_FORMAT) -> Layout:
    """Of an input of any rank; of three dims contiguous, but not on every backend."""
    spatial = None if input.rank is None else input.rank - 2
    if spatial in (2, 3, None):
        return image(input, [input], world, spatial=spatial, is_settled_by_input=True, origin=origin)
    if input.is_contiguous or world is World.DEFAULT:
        return restrided(input)
    return by_backend(input, "how this backend computes the norm of a transposed input")


@op(
    "torch.nn.functional.batch_norm",
    examples=(
        "F.batch_norm(image, None, None, training=True)",
        "F.batch_norm(x.new_ones(4, 3, 2), None, None, training=True)",
    ),
)
def batch_norm(input: Layout, *ignored: Value, world: World) -> Layout:
    return image_norm(input, world, handed_on([input]))


@op(
    "torch.nn.functional.group_norm",
    "torch.group_norm",
    "torch.nn.functional.local_response_norm",
    examples=(
        "F.group_norm(image, 1)",
        "F.group_norm(x, 1)",
        "F.group_norm(volume, 1)",
    ),
)
def group_norm(input: Layout, *ignored: Value, world: World) -> Layout:
    return image_norm(input, world)


@op("torch.nn.functional.normalize", examples=("F.normalize(x, dim=-1)", "F.normalize(image, dim=1)"))
def normalize(input: Layout, *ignored: Value) -> Layout:
    return pointwise(input)


@op("torch.nn.functional.glu", examples=("F.glu(image, 1)", "F.glu(image)", "F.glu(x.new_ones(2, 3, 4), dim=-1)"))
def glu(input: Layout, dim: Index = -1) -> Layout | None:
    """The product of two halves."""
    found = positions(input, None if dim is None else (dim,))
    if found is None:
        return anonymous() if input.is_contiguous else None
    half = [replace(d, size=quotient(d.size, Size.of(2))) if i in found[1] else d for i, d in enumerate(found[0].dims)]
    return sized(half) if input.is_contiguous else pointwise(Layout(tuple(half)))


@op("torch.nn.functional.gumbel_softmax", examples=("F.gumbel_softmax(x, dim=-1)", "F.gumbel_softmax(x, hard=True)"))
def gumbel_softmax(logits: Layout, *ignored: Value) -> Layout:
    return restrided(logits)


@op(
    "torch.nn.functional.scaled_dot_product_attention",
    "torch._C._nn.scaled_dot_product_attention",
    examples=(
        "F.scaled_dot_product_attention(image, image, image)",
        "F.scaled_dot_product_attention(x, x, x[..., :1])",
        "F.scaled_dot_product_attention(image.transpose(1, 2), image.transpose(1, 2), image.transpose(1, 2))",
        "F.scaled_dot_product_attention(x[:1], x, x)",
        "F.scaled_dot_product_attention(image[:, :1], image, image)",
        "F.scaled_dot_product_attention(volume.transpose(1, 2), volume.transpose(1, 2), volume.transpose(1, 2))",
        "F.scaled_dot_product_attention(volume.mT, volume.mT, volume.mT, attn_mask=volume.new_zeros(6, 6))",
    ),
)
def scaled_dot_product_attention(query: Layout, key: Layout, value: Layout, *ignored: Value) -> Layout:
    """Only four dims have a fused kernel; for any other number it is a product of matrices, which is contiguous."""
    last = positions(value, (-1,))
    result = with_last(query, UNKNOWN if last is None else last[0].sizes[-1])
    operands = (query, key, value)
    if all(operand.rank is not None and operand.rank > 1 for operand in operands):
        batch = broadcast([Layout(operand.dims[:-2]) for operand in operands])
        if batch is not None:
            result = sized([*batch.dims, *result.dims[-2:]])
    is_fused = all(operand.rank in (None, 4) for operand in operands)
    return by_backend(result, _ATTENTION) if is_fused else result


@op(
    "torch.nn.functional.cosine_similarity",
    "torch.cosine_similarity",
    examples=(
        "F.cosine_similarity(x, y, dim=-1)",
        "F.cosine_similarity(x, y)",
        "F.cosine_similarity(x[:, None], y[:, :, None], -1)",
    ),
)
def cosine_similarity(x1: Layout, x2: Layout, dim: Dims = (1,), *ignored: Value) -> Layout:
    shape = broadcast([x1, x2])
    return anonymous() if shape is None else reduced(shape, dim)


@op("torch.nn.functional.pairwise_distance", examples=("F.pairwise_distance(x, y)",))
def pairwise_distance(
    x1: Layout, x2: Layout, p: Value | None = None, eps: Value | None = None, keepdim: Flag = False
) -> Layout:
    shape = broadcast([x1, x2])
    return anonymous() if shape is None else reduced(shape, (-1,), keepdim)


@op("torch.nn.functional.pdist", "torch.pdist", examples=("F.pdist(m)",))
def pdist(input: Layout, *ignored: Value) -> Layout:
    return sized([UNKNOWN])


@op(
    "torch.nn.functional.unfold",
    examples=(
        "F.unfold(image, 2)",
        "F.unfold(image, (2, 3), padding=1, stride=2)",
        "F.unfold(image, kernel_size=2, stride=2)",
    ),
)
def unfold(
    input: Layout,
    kernel_size: Value,
    dilation: Value | None = None,
    padding: Value | None = None,
    stride: Value | None = None,
) -> Layout:
    """(N, C, H, W) to (N, C * kernel, positions)."""
    found = positions(input, (-1, -2, -3))
    if found is None:
        return anonymous()
    *front, channels, height, width = found[0].dims
    kernel = each_dim(kernel_size, 2)
    count = product(
        slid(
            dim.size,
            kernel[i],
            each_dim(stride, 2, ONE)[i],
            each_dim(padding, 2, ZERO)[i],
            each_dim(dilation, 2, ONE)[i],
        )
        for i, dim in enumerate((height, width))
    )
    return sized([*front, channels.size * product(kernel), count])


@op(
    "torch.nn.functional.fold",
    examples=(
        "F.fold(x.new_ones(2, 12, 6), (3, 4), 2)",
        "F.fold(x.new_ones(2, 12, 6), output_size=(3, 4), kernel_size=(2, 2))",
    ),
)
def fold(input: Layout, output_size: Value, kernel_size: Value, *ignored: Value) -> Layout:
    found = positions(input, (-1, -2))
    if found is None:
        return anonymous()
    *front, channels, _ = found[0].dims
    return sized([*front, quotient(channels.size, product(each_dim(kernel_size, 2))), *each_dim(output_size, 2)])


@op(
    "torch.nn.functional.grid_sample",
    "torch.grid_sampler",
    examples=(
        "F.grid_sample(image, torch.ones(image.shape[0], 3, 4, 2))",
        "F.grid_sample(volume, torch.ones(volume.shape[0], 3, 4, 5, 3))",
    ),
)
def grid_sample(input: Layout, grid: Layout, *ignored: Value) -> Layout:
    """(N, C, H, W) by (N, h, w, 2) to (N, C, h, w)."""
    if grid.rank is None:
        return anonymous()
    return sized([*input.of_rank(grid.rank).sizes[:2], *grid.sizes[1:-1]])


@op(
    "torch.nn.functional.affine_grid",
    examples=("F.affine_grid(torch.ones(3, 2, 3), (3, 1, 4, 5))", "F.affine_grid(torch.ones(3, 2, 3), [3, 1, 4, 5])"),
)
def affine_grid(theta: Layout, size: Shape, *ignored: Value) -> Layout:
    if size is None or len(size.sizes) not in (4, 5) or size.items != size.sizes:
        return anonymous()
    batch, _, *spatial = size.sizes
    return sized([batch, *spatial, Size.of(len(spatial))])


def shuffled(input: Layout, factor: Size, is_up: bool, world: World) -> Layout | None:
    """(N, C, H, W): `factor` squared channels become pixels, or the other way round."""
    layout = input.of_rank(4)
    if len(layout.dims) not in (3, 4):
        return None
    channels, square = layout.sizes[-3], factor * factor
    result = resized(
        layout,
        2,
        lambda size, i: size * factor if is_up else quotient(size, factor),
        quotient(channels, square) if is_up else channels * square,
    )
    return None if result is None else image(result, [input], world, spatial=2)


@op(
    "torch.nn.functional.pixel_shuffle",
    "torch.pixel_shuffle",
    examples=("F.pixel_shuffle(image.new_ones(2, 8, 2, 3), 2)", "F.pixel_shuffle(image.repeat(1, 4, 1, 1), 2)"),
)
def pixel_shuffle(input: Layout, upscale_factor: Extent, *, world: World) -> Layout | None:
    return shuffled(input, upscale_factor, True, world)


@op("torch.nn.functional.pixel_unshuffle", "torch.pixel_unshuffle", examples=("F.pixel_unshuffle(image, 2)",))
def pixel_unshuffle(input: Layout, downscale_factor: Extent, *, world: World) -> Layout | None:
    return shuffled(input, downscale_factor, False, world)


@op("torch.nn.functional.channel_shuffle", "torch.channel_shuffle", examples=("F.channel_shuffle(image, 2)",))
def channel_shuffle(input: Layout, groups: Value, *, world: World) -> Layout:
    return image_norm(input, world)


@op(
    "torch.nn.functional.interpolate",
    "torch.nn.functional.upsample",
    examples=(
        "F.interpolate(image, scale_factor=2)",
        "F.interpolate(image, (3, 5), mode='bilinear')",
        "F.interpolate(x, size=4, mode='linear')",
        "F.interpolate(volume, scale_factor=(1, 2, 2))",
        "F.interpolate(image, scale_factor=0.5)",
        "F.interpolate(image, size=image.shape[2:])",
        "F.interpolate(image, scale_factor=1.5, mode='nearest')",
        "F.interpolate(image, None, 2, 'bilinear')",
    ),
)
def interpolate(
    input: Layout,
    size: Value | None = None,
    scale_factor: Value | None = None,
    mode: Text = "nearest",
    *ignored: Value,
    world: World,
) -> Layout | None:
    layout = _of_spatial_rank(input, size if _is_given(size) else scale_factor, mode)
    if layout.rank is None:
        return image(anonymous(), [input], world, spatial=None)
    count = layout.rank - 2
    if count not in (1, 2, 3):
        return None
    sizes = (
        each_dim(size, count)
        if _is_given(size)
        else [_scaled(s, scale_factor, i) for i, s in enumerate(layout.sizes[2:])]
    )
    result = Layout(tuple(Dim(s, ZERO) for s in (*layout.sizes[:2], *sizes)))
    return sized(result.dims) if count == 1 else image(result, [layout], world, spatial=count)


def _is_given(value: Value | None) -> bool:
    return value is not None and value != Constant(None)


_RANKS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}


def _of_spatial_rank(input: Layout, value: Value | None, mode: Text) -> Layout:
    """The mode, or a tuple of sizes, tells the rank."""
    if mode in _RANKS:
        return input.of_rank(_RANKS[mode])
    return input.of_rank(len(value.items) + 2) if isinstance(value, Several | ShapeOfTensor) else input


def _scaled(size: Size, factor: Value | None, i: int) -> Size:
    if isinstance(factor, Several):
        factor = factor.items[i] if i < len(factor.items) else None
    match factor:
        case Number(number):
            return size * number
        case Constant(float() as number) if number.is_integer():
            return size * Size.of(int(number))
        case Constant(float() as number) if number > 0 and (1 / number).is_integer():
            return quotient(size, Size.of(int(1 / number)))
        case _:
            return UNKNOWN


@op(
    "torch.nn.functional.upsample_nearest",
    "torch.nn.functional.upsample_bilinear",
    examples=("F.upsample_nearest(image, scale_factor=2)", "F.upsample_bilinear(image, (3, 4))"),
)
def upsample(input: Layout, world: World, size: Value | None = None, scale_factor: Value | None = None) -> Outcome:
    return interpolate(input, size, scale_factor, world=world)


@op(
    "torch.nn.functional.pad",
    "torch.constant_pad_nd",
    "torch._C._nn.pad",
    examples=(
        "F.pad(x, (1, 2))",
        "F.pad(image, (0, 0, 1, 0))",
        "F.pad(x, (0, 0))",
        "F.pad(image, (1, 1, 1, 1), mode='reflect')",
        "F.pad(x, (0, 0, 0, 0, 1, 0), value=1.0)",
        "F.pad(volume, (1, 0), 'constant', 0.0)",
        "F.pad(x, (0, x.shape[-1]))",
        "F.pad(image, [0, image.shape[-1] - 1])",
    ),
)
def pad(input: Layout, pad: Value, *ignored: Value, world: World) -> Layout | None:
    return padded(input, _paddings(pad), world)


def _paddings(pad: Value) -> list[Size] | None:
    """As torch takes them: two for each dim, the last dim first."""
    return [as_size(item) for item in pad.items] if isinstance(pad, Several) else None


def padded(input: Layout, sizes: list[Size] | None, world: World) -> Layout | None:
    """Contiguous or channels_last; with nothing to pad a copy in the order of the input."""
    grown = None if sizes is None else _grown(input, sizes)
    if grown is None or sizes is None:
        return anonymous() if input.is_contiguous and input.rank not in (None, 4, 5) else None
    if all(size == ZERO for size in sizes):
        return pointwise(input)
    if not input.is_contiguous and all(size == ZERO or size.constant is None for size in sizes):
        copy = dense(input)
        return None if copy is None or not copy.is_contiguous else image_pad(grown, input, world)
    return image_pad(grown, input, world)


def image_pad(grown: Layout, input: Layout, world: World) -> Layout:
    if input.rank in (1, 2, 3):
        return sized(grown.dims)
    if input.rank in (4, 5):
        return image(grown, [input], world, spatial=input.rank - 2, origin=handed_on([input]))
    is_ranked = input.rank is not None
    return sized(grown.dims) if is_ranked else image(grown, [input], world, spatial=None, origin=handed_on([input]))


def _grown(input: Layout, sizes: list[Size]) -> Layout | None:
    found = positions(input, tuple(range(-(len(sizes) // 2), 0))) if sizes else None
    if found is None:
        return None
    dims = list(found[0].dims)
    for i in range(len(sizes) // 2):
        dims[-1 - i] = Dim(dims[-1 - i].size + sizes[2 * i] + sizes[2 * i + 1], ZERO)
    return Layout(tuple(dims))


@op(
    "torch.nn.functional.multi_head_attention_forward",
    examples=(
        "F.multi_head_attention_forward(x, x, x, x.shape[-1], 1, torch.ones(3 * x.shape[-1], x.shape[-1]), None, None, "
        "None, False, 0.0, torch.ones(x.shape[-1], x.shape[-1]), None)[0]",
    ),
)
def multi_head_attention_forward(query: Layout, *ignored: Value) -> Outcome:
    """The weights are only returned on demand."""
    return (restrided(query), None)
