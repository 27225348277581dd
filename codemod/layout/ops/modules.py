"""Modules of torch.nn, but for convolutions and pools.

The tensors of `forward` come first; the keyword-only parameters are those of the constructor, in torch's order.
"""

from __future__ import annotations

from collections.abc import Callable

from codemod.layout.layout import Layout, World, anonymous, restrided
from codemod.layout.ops import nn
from codemod.layout.ops.lift import as_size
from codemod.layout.ops.nn import appended, image_norm, padded, shuffled, with_last
from codemod.layout.ops.pointwise import pointwise, same_or_dense
from codemod.layout.ops.reductions import positions, reduced
from codemod.layout.ops.reshaped import reshaped
from codemod.layout.ops.rule import Alias, Dims, Extent, Flag, Index, Outcome, Shape, Text, op
from codemod.layout.ops.undecided import by_backend, handed_on, sized
from codemod.layout.size import ONE, UNKNOWN, ZERO, Size, product
from codemod.layout.value import Number, Several, Value
from codemod.layout.viewable import Target, viewed


@op(
    "torch.nn.Linear",
    examples=(
        "nn.Linear(x.shape[-1], 7)(x)",
        "nn.Linear(image.shape[-1], 2, bias=False)(image)",
        "nn.Linear(v.shape[0], 3)(v)",
    ),
)
def linear(input: Layout, *, in_features: Value | None = None, out_features: Extent = UNKNOWN) -> Layout:
    return with_last(input, out_features)


@op("torch.nn.LazyLinear", examples=("nn.LazyLinear(7)(x)",))
def lazy_linear(input: Layout, *, out_features: Extent = UNKNOWN) -> Layout:
    return with_last(input, out_features)


@op("torch.nn.Bilinear", examples=("nn.Bilinear(x.shape[-1], y.shape[-1], 5)(x, y)",))
def bilinear(
    input1: Layout,
    input2: Layout,
    *,
    in1_features: Value | None = None,
    in2_features: Value | None = None,
    out_features: Extent = UNKNOWN,
) -> Layout:
    return with_last(input1, out_features)


@op("torch.nn.Identity", alias=Alias.ALWAYS, examples=("nn.Identity()(x)", "nn.Identity(54, unused=True)(image)"))
def identity(input: Layout) -> Layout:
    return input


_DROPOUTS = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")


@op(
    *(f"torch.nn.{name}" for name in _DROPOUTS),
    alias=Alias.MAYBE,
    examples=("nn.Dropout(0.5)(x)", "nn.Dropout(0.5).eval()(x)", "nn.Dropout2d()(image)", "nn.Dropout(0.0)(image)"),
)
def dropout(input: Layout) -> Layout:
    return same_or_dense(input)


_ACTIVATIONS = (
    "CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "Mish",
    "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus", "Softshrink", "Softsign", "Tanh",
    "Tanhshrink", "Threshold",
)  # fmt: skip


@op(
    *(f"torch.nn.{name}" for name in _ACTIVATIONS),
    examples=("nn.ReLU()(x)", "nn.GELU(approximate='tanh')(image)", "nn.LeakyReLU(0.1)(x)", "nn.PReLU()(x)"),
)
def activation(input: Layout) -> Layout:
    return pointwise(input)


@op(
    *(f"torch.nn.{name}" for name in ("Softmax", "LogSoftmax", "Softmin", "Softmax2d")),
    examples=("nn.Softmax(dim=-1)(x)", "nn.LogSoftmax(1)(x)", "nn.Softmax2d()(image)"),
)
def softmax(input: Layout) -> Layout:
    return restrided(input)


@op("torch.nn.GLU", examples=("nn.GLU()(image)", "nn.GLU(1)(x.new_ones(3, 4, 5))"))
def glu(input: Layout, *, dim: Index = -1) -> Outcome:
    return nn.glu(input, dim)


@op(
    "torch.nn.LayerNorm",
    *(f"torch.nn.{prefix}InstanceNorm{count}d" for prefix in ("", "Lazy") for count in (1, 2, 3)),
    examples=(
        "nn.LayerNorm(x.shape[-1])(x)",
        "nn.LayerNorm([image.shape[-1]])(image)",
        "nn.InstanceNorm2d(image.shape[1])(image)",
    ),
)
def layer_norm(input: Layout) -> Layout:
    return restrided(input)


@op("torch.nn.RMSNorm", examples=("nn.RMSNorm(x.shape[-1])(x)",))
def rms_norm(input: Layout) -> Outcome:
    return nn.rms_norm(input)


@op(
    *(f"torch.nn.{name}" for name in ("GroupNorm", "LocalResponseNorm", "ChannelShuffle", "CrossMapLRN2d")),
    *(f"torch.nn.{name}" for name in ("SyncBatchNorm", "BatchNorm1d", "LazyBatchNorm1d")),
    examples=(
        "nn.BatchNorm1d(x.shape[1]).eval()(x)",
        "nn.BatchNorm1d(m.shape[1]).eval()(m)",
        "nn.GroupNorm(1, image.shape[1])(image)",
        "nn.GroupNorm(1, x.shape[1])(x)",
    ),
)
def group_norm(input: Layout, world: World) -> Layout:
    return image_norm(input, world)


@op(
    *(f"torch.nn.{name}" for name in ("BatchNorm2d", "LazyBatchNorm2d")),
    examples=("nn.BatchNorm2d(image.shape[1])(image)", "nn.BatchNorm2d(image.shape[1]).eval()(image)"),
)
def batch_norm_2d(input: Layout, world: World) -> Layout:
    return image_norm(input.of_rank(4), world, handed_on([input]))


@op(
    *(f"torch.nn.{name}" for name in ("BatchNorm3d", "LazyBatchNorm3d")),
    examples=("nn.BatchNorm3d(volume.shape[1])(volume)", "nn.BatchNorm3d(volume.shape[1]).eval()(volume)"),
)
def batch_norm_3d(input: Layout, world: World) -> Layout:
    return image_norm(input.of_rank(5), world)


@op("torch.nn.Embedding", examples=("nn.Embedding(9, 4)(ids)", "nn.Embedding(9, 4, padding_idx=0)(ids[None])"))
def embedding(input: Layout, *, num_embeddings: Value | None = None, embedding_dim: Extent = UNKNOWN) -> Layout:
    return appended(input, embedding_dim)


@op("torch.nn.EmbeddingBag", examples=("nn.EmbeddingBag(9, 4)(ids[None])",))
def embedding_bag(
    input: Layout,
    offsets: Value | None = None,
    per_sample_weights: Value | None = None,
    *,
    num_embeddings: Value | None = None,
    embedding_dim: Extent = UNKNOWN,
) -> Layout:
    if input.rank == 2:
        return sized([input.sizes[0], embedding_dim])
    return anonymous()


@op(
    "torch.nn.Flatten",
    alias=Alias.MAYBE,
    examples=(
        "nn.Flatten()(x)",
        "nn.Flatten(0, 1)(image)",
        "nn.Flatten(2)(image)",
        "nn.Flatten(-2, -1)(image)",
        "nn.Flatten()(x.transpose(1, 2))",
    ),
)
def flatten(input: Layout, world: World, *, start_dim: Index = 1, end_dim: Index = -1) -> Layout | None:
    return reshaped(input, _flattened(input, start_dim, end_dim), world)


def _flattened(input: Layout, start: int | None, end: int | None) -> Target | None:
    if start is None or end is None:
        return None
    layout = input.exposed(max(start + 1, 0), 0) if start >= 0 else input
    layout = layout.exposed(0, max(-end, 0)) if layout.rank is None and start < 0 else layout
    first, last = layout.index(start), layout.index(end)
    if first is not None and last is None and end == -1 and layout.pack_at == len(layout.dims) - 1:
        last = len(layout.dims) - 1
    if first is None or last is None:
        return None
    items = [dim.pack or dim.size for dim in layout.dims]
    merged = product(dim.size for dim in layout.dims[first : last + 1])
    return Target((*items[:first], merged, *items[last + 1 :]))


@op(
    "torch.nn.Unflatten",
    alias=Alias.ALWAYS,
    examples=("nn.Unflatten(1, (2, 2))(x.new_ones(3, 4, 5))", "nn.Unflatten(-1, (2, image.shape[-1] // 2))(image)"),
)
def unflatten(input: Layout, *, dim: Index, unflattened_size: Shape) -> Layout | None:
    found = positions(input, None if dim is None else (dim,))
    if found is None or unflattened_size is None:
        return None
    layout, chosen = found
    at = next(iter(chosen))
    items = [d.pack or d.size for d in layout.dims]
    return viewed(layout, Target((*items[:at], *unflattened_size.items, *items[at + 1 :])))


@op("torch.nn.Upsample", examples=("nn.Upsample(scale_factor=2)(image)", "nn.Upsample((3, 4), mode='bilinear')(image)"))
def upsample(
    input: Layout,
    world: World,
    *,
    size: Value | None = None,
    scale_factor: Value | None = None,
    mode: Text = "nearest",
) -> Outcome:
    return nn.interpolate(input, size, scale_factor, mode, world=world)


@op(
    *(f"torch.nn.{name}" for name in ("UpsamplingNearest2d", "UpsamplingBilinear2d")),
    examples=("nn.UpsamplingNearest2d(scale_factor=2)(image)", "nn.UpsamplingBilinear2d((3, 4))(image)"),
)
def upsample_2d(
    input: Layout, world: World, *, size: Value | None = None, scale_factor: Value | None = None
) -> Outcome:
    return nn.interpolate(input, size, scale_factor, "bilinear", world=world)


@op("torch.nn.PixelShuffle", examples=("nn.PixelShuffle(2)(image.new_ones(2, 8, 2, 3))",))
def pixel_shuffle(input: Layout, world: World, *, upscale_factor: Extent) -> Layout | None:
    return shuffled(input, upscale_factor, True, world)


@op("torch.nn.PixelUnshuffle", examples=("nn.PixelUnshuffle(2)(image)",))
def pixel_unshuffle(input: Layout, world: World, *, downscale_factor: Extent) -> Layout | None:
    return shuffled(input, downscale_factor, False, world)


@op("torch.nn.Unfold", examples=("nn.Unfold(2, stride=2)(image)",))
def unfold(
    input: Layout,
    *,
    kernel_size: Value,
    dilation: Value | None = None,
    padding: Value | None = None,
    stride: Value | None = None,
) -> Outcome:
    return nn.unfold(input, kernel_size, dilation, padding, stride)


@op("torch.nn.Fold", examples=("nn.Fold((3, 4), 2)(x.new_ones(2, 12, 6))",))
def fold(input: Layout, *, output_size: Value, kernel_size: Value) -> Outcome:
    return nn.fold(input, output_size, kernel_size)


def _pad_module(count: int) -> Callable[..., Outcome]:
    def pad(input: Layout, world: World, *, padding: Value) -> Layout | None:
        return padded(input, _paddings(padding, count), world)

    return pad


def _paddings(padding: Value, count: int) -> list[Size] | None:
    if isinstance(padding, Number):
        return [padding.size] * (2 * count)
    return [as_size(item) for item in padding.items] if isinstance(padding, Several) else None


for _count, _input in ((1, "x"), (2, "image"), (3, "volume")):
    op(
        *(f"torch.nn.{kind}Pad{_count}d" for kind in ("Zero", "Constant", "Reflection", "Replication", "Circular")),
        examples=(
            f"nn.ZeroPad{_count}d(1)({_input})",
            f"nn.ReplicationPad{_count}d(({', '.join(['1', '2'] * _count)}))({_input})",
            f"nn.ConstantPad{_count}d(({', '.join(['0', '1'] * _count)}), 3.5)({_input})",
        ),
    )(_pad_module(_count))


@op("torch.nn.CosineSimilarity", examples=("nn.CosineSimilarity(dim=-1)(x, y)",))
def cosine_similarity(x1: Layout, x2: Layout, *, dim: Dims = (1,)) -> Layout:
    return reduced(x1, dim) if x1.sizes == x2.sizes else anonymous()


@op("torch.nn.PairwiseDistance", examples=("nn.PairwiseDistance()(x, y)",))
def pairwise_distance(x1: Layout, x2: Layout) -> Outcome:
    return nn.pairwise_distance(x1, x2) if x1.sizes == x2.sizes else anonymous()


_ORDER = "whether torch takes the fused path for inference"


def recurrent(
    input: Layout, hidden: Size, output: Size, layers: Size, batch_first: Flag, bidirectional: Flag
) -> tuple[Layout | None, Layout, Layout]:
    """The output, and the last hidden and cell states.

    It is computed time first: with `batch_first` the output is that, transposed.  Two dims are one sequence.
    """
    if batch_first is None or bidirectional is None or input.rank not in (2, 3):
        return anonymous() if batch_first is False else None, anonymous(), anonymous()
    directions = Size.of(2 if bidirectional else 1)
    state = layers * directions
    if input.rank == 2:
        return sized([input.sizes[0], output * directions]), sized([state, output]), sized([state, hidden])
    time, batch = input.sizes[1::-1] if batch_first else input.sizes[:2]
    found = sized([time, batch, output * directions])
    return (
        swapped(found) if batch_first else found,
        sized([state, batch, output]),
        sized([state, batch, hidden]),
    )


def swapped(layout: Layout) -> Layout | None:
    """The first two of three dims exchanged."""
    return Layout((layout.dims[1], layout.dims[0], layout.dims[2])) if layout.rank == 3 else None


def _as_sequences(input: Layout, world: World) -> Layout:
    """By default three dims."""
    return input.of_rank(3) if world is World.DEFAULT else input


@op(
    "torch.nn.LSTM",
    examples=(
        "nn.LSTM(x.shape[-1], 4)(x)",
        "nn.LSTM(x.shape[-1], 4, batch_first=True)(x)",
        "nn.LSTM(x.shape[-1], 4, 2, batch_first=True, bidirectional=True)(x)",
        "nn.LSTM(x.shape[-1], 4, proj_size=3, batch_first=True)(x)",
    ),
)
def lstm(
    input: Layout,
    world: World,
    hx: Value | None = None,
    *,
    input_size: Value | None = None,
    hidden_size: Extent = UNKNOWN,
    num_layers: Extent = ONE,
    bias: Value | None = None,
    batch_first: Flag = False,
    dropout: Value | None = None,
    bidirectional: Flag = False,
    proj_size: Extent = ZERO,
) -> Outcome:
    output = hidden_size if proj_size == ZERO else proj_size
    found = recurrent(_as_sequences(input, world), hidden_size, output, num_layers, batch_first, bidirectional)
    return (found[0], found[1:])


@op(
    "torch.nn.GRU",
    examples=(
        "nn.GRU(x.shape[-1], 4)(x)",
        "nn.GRU(x.shape[-1], 4, batch_first=True, num_layers=2)(x)",
    ),
)
def gru(
    input: Layout,
    world: World,
    hx: Value | None = None,
    *,
    input_size: Value | None = None,
    hidden_size: Extent = UNKNOWN,
    num_layers: Extent = ONE,
    bias: Value | None = None,
    batch_first: Flag = False,
    dropout: Value | None = None,
    bidirectional: Flag = False,
) -> Outcome:
    found = recurrent(_as_sequences(input, world), hidden_size, hidden_size, num_layers, batch_first, bidirectional)
    return found[:2]


@op("torch.nn.RNN", examples=("nn.RNN(x.shape[-1], 4)(x)", "nn.RNN(x.shape[-1], 4, batch_first=True)(x)"))
def rnn(
    input: Layout,
    world: World,
    hx: Value | None = None,
    *,
    input_size: Value | None = None,
    hidden_size: Extent = UNKNOWN,
    num_layers: Extent = ONE,
    nonlinearity: Value | None = None,
    bias: Value | None = None,
    batch_first: Flag = False,
    dropout: Value | None = None,
    bidirectional: Flag = False,
) -> Outcome:
    found = recurrent(_as_sequences(input, world), hidden_size, hidden_size, num_layers, batch_first, bidirectional)
    return found[:2]


@op(
    "torch.nn.GRUCell",
    "torch.nn.RNNCell",
    examples=(
        "nn.GRUCell(m.shape[-1], 4)(m)",
        "nn.RNNCell(m.shape[-1], 4)(m)",
        "nn.GRUCell(m.shape[-1], m.shape[-1])(m, m)",
    ),
)
def cell(
    input: Layout, hx: Layout | None = None, *, input_size: Value | None = None, hidden_size: Extent = UNKNOWN
) -> Layout:
    """In the order of the state that it is given."""
    found = with_last(input, hidden_size)
    return found if hx is None or hx.is_contiguous else by_backend(found, "the layout of the state")


@op("torch.nn.LSTMCell", examples=("nn.LSTMCell(m.shape[-1], 4)(m)",))
def lstm_cell(
    input: Layout, hx: Value | None = None, *, input_size: Value | None = None, hidden_size: Extent = UNKNOWN
) -> Outcome:
    found = with_last(input, hidden_size)
    return (found, found) if hx is None else (by_backend(found, "the layout of the state"),) * 2


@op(
    "torch.nn.MultiheadAttention",
    examples=(
        "nn.MultiheadAttention(x.shape[-1], 1)(x, y, y)",
        "nn.MultiheadAttention(x.shape[-1], 1, batch_first=True)(x, x, x)",
        "nn.MultiheadAttention(m.shape[-1], 1)(m, m, m)",
        "nn.MultiheadAttention(x.shape[-1], 1, batch_first=True)(x, y, y, need_weights=True)",
    ),
)
def multihead_attention(
    query: Layout,
    world: World,
    key: Value,
    value: Value,
    key_padding_mask: Value | None = None,
    *,
    embed_dim: Value | None = None,
    num_heads: Value | None = None,
    dropout: Value | None = None,
    bias: Value | None = None,
    add_bias_kv: Value | None = None,
    add_zero_attn: Value | None = None,
    kdim: Value | None = None,
    vdim: Value | None = None,
    batch_first: Flag = False,
) -> Outcome:
    """With `batch_first` a transposed result; contiguous on the fused path for inference."""
    if batch_first is False or query.rank == 2:
        return (restrided(query), anonymous())
    query = _as_sequences(query, world)
    if world is World.ANY or batch_first is None or query.rank != 3:
        return (by_backend(restrided(query), _ORDER), anonymous())
    batch, time, width = query.sizes
    return (swapped(sized([time, batch, width])), anonymous())


@op(
    *(f"torch.nn.{name}" for name in ("TransformerEncoderLayer", "TransformerDecoderLayer")),
    examples=(
        "nn.TransformerEncoderLayer(x.shape[-1], 1, 4, batch_first=True)(x)",
        "nn.TransformerEncoderLayer(x.shape[-1], 1, 4, norm_first=True)(x)",
        "nn.TransformerDecoderLayer(x.shape[-1], 1, 4)(x, y)",
    ),
)
def transformer_layer(
    input: Layout,
    *ignored: Value,
    d_model: Value | None = None,
    nhead: Value | None = None,
    dim_feedforward: Value | None = None,
    dropout: Value | None = None,
    activation: Value | None = None,
    layer_norm_eps: Value | None = None,
    batch_first: Value | None = None,
    norm_first: Flag = False,
) -> Layout:
    """Ends in a norm; with `norm_first` in a sum that begins with the input."""
    return restrided(input) if norm_first is False else transformed(input)


def transformed(input: Layout) -> Layout:
    return restrided(input) if input.is_contiguous else by_backend(input, "`norm_first`, and the path for inference")


@op(
    *(f"torch.nn.{name}" for name in ("TransformerEncoder", "TransformerDecoder")),
    examples=("nn.TransformerEncoder(nn.TransformerEncoderLayer(x.shape[-1], 1, 4), 2)(x)",),
)
def transformer(input: Layout, *ignored: Value) -> Layout:
    return transformed(input)


@op("torch.nn.Transformer", examples=("nn.Transformer(x.shape[-1], 1, 1, 1, 4)(x, y)",))
def transformer_of_two(src: Layout, tgt: Layout, *ignored: Value) -> Layout:
    """Ends in a norm."""
    return restrided(tgt)
