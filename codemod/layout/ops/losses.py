"""Losses, as functions and as modules: a number, unless `reduction="none"`."""

from __future__ import annotations

from codemod.layout.layout import Layout, anonymous
from codemod.layout.ops.pointwise import pointwise
from codemod.layout.ops.rule import Text, op
from codemod.layout.value import Value

_NUMBERS = ("mean", "sum", "batchmean")


def reduced_by(reduction: Text, legacy: tuple[Value | None, ...], each: Layout | None) -> Layout | None:
    """`each` is the layout of the losses one by one; the arguments before `reduction` are older ways to say it."""
    if any(value is not None for value in legacy):
        return None
    return Layout(()) if reduction in _NUMBERS else each if reduction == "none" else None


_ELEMENTWISE = (
    "binary_cross_entropy_with_logits", "huber_loss", "kl_div", "l1_loss", "mse_loss", "poisson_nll_loss",
    "smooth_l1_loss", "soft_margin_loss", "binary_cross_entropy", "gaussian_nll_loss",
)  # fmt: skip


@op(
    *(f"torch.nn.functional.{name}" for name in _ELEMENTWISE),
    examples=(
        "F.mse_loss(x, y)",
        "F.mse_loss(x, y, reduction='none')",
        "F.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction='sum')",
        "F.l1_loss(x, y, reduction='none')",
        "F.kl_div(x, y, reduction='batchmean')",
    ),
)
def elementwise(
    input: Layout,
    target: Layout,
    *ignored: Value,
    reduction: Text = "mean",
    reduce: Value | None = None,
    size_average: Value | None = None,
) -> Layout | None:
    return reduced_by(reduction, (reduce, size_average), _one_by_one(input, target))


def _one_by_one(input: Layout, target: Layout) -> Layout | None:
    """Some begin with the input and some with the target, so only two contiguous ones settle the order."""
    return pointwise(input, target) if input.is_contiguous and target.is_contiguous else None


@op(
    "torch.nn.functional.cross_entropy",
    "torch.nn.functional.nll_loss",
    examples=("F.cross_entropy(m, m.argmax(1))", "F.cross_entropy(m, m.argmax(1), reduction='none')"),
)
def cross_entropy(
    input: Layout,
    *ignored: Value,
    reduction: Text = "mean",
    reduce: Value | None = None,
    size_average: Value | None = None,
) -> Layout | None:
    """One by one: contiguous for a batch of rows."""
    return reduced_by(reduction, (reduce, size_average), anonymous() if input.rank == 2 else None)


@op(
    "torch.nn.CrossEntropyLoss",
    "torch.nn.NLLLoss",
    examples=("nn.CrossEntropyLoss()(m, m.argmax(1))", "nn.CrossEntropyLoss(reduction='none')(m, m.argmax(1))"),
)
def cross_entropy_module(
    input: Layout,
    *ignored: Value,
    weight: Value | None = None,
    size_average: Value | None = None,
    ignore_index: Value | None = None,
    reduce: Value | None = None,
    reduction: Text = "mean",
) -> Layout | None:
    return reduced_by(reduction, (reduce, size_average), anonymous() if input.rank == 2 else None)


_OTHERS = (
    "cosine_embedding_loss", "ctc_loss", "hinge_embedding_loss", "margin_ranking_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
)  # fmt: skip


@op(
    *(f"torch.nn.functional.{name}" for name in _OTHERS),
    examples=("F.triplet_margin_loss(m, m, m)", "F.cosine_embedding_loss(m, m, m.new_ones(m.shape[0]))"),
)
def other(
    input: Layout,
    *ignored: Value,
    reduction: Text = "mean",
    reduce: Value | None = None,
    size_average: Value | None = None,
) -> Layout | None:
    return reduced_by(reduction, (reduce, size_average), None)


_MODULES = (
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss",
)  # fmt: skip
_OF_TWO = {f"torch.nn.{name}" for name in ("BCEWithLogitsLoss", "L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss")}


@op(
    *sorted(_OF_TWO),
    examples=("nn.MSELoss()(x, y)", "nn.L1Loss(reduction='none')(x, y)"),
)
def elementwise_module(
    input: Layout,
    target: Layout,
    *,
    reduction: Text = "mean",
    reduce: Value | None = None,
    size_average: Value | None = None,
) -> Layout | None:
    return reduced_by(reduction, (reduce, size_average), _one_by_one(input, target))


@op(
    *(name for name in (f"torch.nn.{module}" for module in _MODULES) if name not in _OF_TWO),
    examples=("nn.TripletMarginLoss()(m, m, m)", "nn.BCELoss()(x.sigmoid(), y.sigmoid())"),
)
def other_module(
    input: Layout,
    *ignored: Value,
    reduction: Text = "mean",
    reduce: Value | None = None,
    size_average: Value | None = None,
) -> Layout | None:
    return reduced_by(reduction, (reduce, size_average), None)
