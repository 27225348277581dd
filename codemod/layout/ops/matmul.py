"""Matrix products: contiguous, whatever the operands.  `einsum` hands on the order of its letters.

Source: the meta functions of mm, bmm, addmm, baddbmm; aten/src/ATen/native/LinearAlgebra.cpp, _matmul_impl.
"""

from __future__ import annotations

from codemod.layout.layout import Dim, Layout, Pack, World, anonymous
from codemod.layout.ops.lift import as_index, as_indices
from codemod.layout.ops.pointwise import broadcast
from codemod.layout.ops.reductions import positions
from codemod.layout.ops.rule import Layouts, op
from codemod.layout.ops.undecided import sized
from codemod.layout.size import ONE, UNKNOWN
from codemod.layout.value import Number, Several, Value


@op(
    ".matmul",
    ".__matmul__",
    "torch.matmul",
    "torch.linalg.matmul",
    examples=(
        "x @ x.transpose(1, 2)",
        "torch.matmul(x, x.transpose(-1, -2))",
        "x.matmul(m.new_ones(x.shape[-1], 3))",
        "x @ torch.ones(x.shape[-1])",
        "m.new_ones(3, x.shape[1]) @ x",
        "image @ image.mT",
        "torch.ones(x.shape[1]) @ x",
        "v @ v",
        "image @ image[0].mT",
        "x[:, None] @ image.new_ones(1, 2, x.shape[2], 3)",
    ),
)
def matmul(input: Layout, mat2: Layout, world: World) -> Layout | None:
    if 0 in (input.rank, mat2.rank):
        return None
    if mat2.rank in (1, 2):
        return _by_matrix(input, mat2)
    if input.rank == 1 and mat2.rank is not None:
        return sized([*mat2.dims[:-2], mat2.dims[-1]])
    if input.rank == 2 and mat2.rank is not None:
        return sized([*mat2.dims[:-2], input.dims[0], mat2.dims[-1]])
    if None in (input.index(-2), mat2.index(-2)):
        return anonymous(_least(input, mat2, world))
    batch = broadcast([Layout(input.dims[:-2]), Layout(mat2.dims[:-2])])
    hidden = Pack("", merged=True, least=max(input.least_rank, mat2.least_rank) - 2)
    front = (Dim(UNKNOWN, ONE, hidden),) if batch is None else batch.dims
    return sized([*front, input.dims[-2], mat2.dims[-1]])


def _least(input: Layout, mat2: Layout, world: World) -> int:
    """How many dims the product has at least; by default what is not followed is taken for matrices, not a vector."""
    ranks = input.least_rank, mat2.least_rank
    is_vector = world is World.ANY and min(ranks) < 2
    return max(max(ranks) - is_vector, 0)


def _by_matrix(input: Layout, mat2: Layout) -> Layout:
    """`x @ w` for a `w` of one or two dims: the last dim of `x` is replaced, or gone."""
    found = positions(input, (-1,))
    if found is None:
        return anonymous(max(input.least_rank - 2 + len(mat2.dims), 0))
    return sized([*found[0].dims[:-1], *mat2.dims[1:]])


@op(".mm", "torch.mm", examples=("m.mm(m.t())", "torch.mm(m.t(), m)"))
def mm(input: Layout, mat2: Layout) -> Layout:
    return _product(input, mat2, 2)


@op(".bmm", "torch.bmm", examples=("x.bmm(x.transpose(1, 2))", "torch.bmm(x.transpose(1, 2), x)"))
def bmm(input: Layout, mat2: Layout) -> Layout:
    return _product(input, mat2, 3)


def _product(left: Layout, right: Layout, rank: int) -> Layout:
    left, right = left.of_rank(rank), right.of_rank(rank)
    return sized([*left.dims[:-1], right.dims[-1]])


@op(
    ".addmm",
    "torch.addmm",
    examples=("torch.addmm(m.new_zeros(1), m, m.t())", "m.addmm(m, torch.ones(m.shape[1], m.shape[1]))"),
)
def addmm(input: Layout, mat1: Layout, mat2: Layout) -> Layout:
    return _product(mat1, mat2, 2)


@op(
    ".baddbmm",
    "torch.baddbmm",
    examples=(
        "torch.baddbmm(x.new_zeros(1), x, x.transpose(1, 2))",
        "x.baddbmm(x, x.new_ones(x.shape[0], x.shape[2], x.shape[2]))",
    ),
)
def baddbmm(input: Layout, batch1: Layout, batch2: Layout) -> Layout:
    return _product(batch1, batch2, 3)


@op(".addbmm", "torch.addbmm", examples=("torch.addbmm(x.new_zeros(1), x, x.transpose(1, 2))",))
def addbmm(input: Layout, batch1: Layout, batch2: Layout) -> Layout:
    return sized([batch1.of_rank(3).dims[1], batch2.of_rank(3).dims[2]])


@op(".mv", "torch.mv", examples=("m.mv(torch.ones(m.shape[1]))",))
def mv(input: Layout, vec: Layout) -> Layout:
    return sized([input.of_rank(2).dims[0]])


@op(".addmv", "torch.addmv", examples=("torch.addmv(torch.ones(m.shape[0]), m, torch.ones(m.shape[1]))",))
def addmv(input: Layout, mat: Layout, vec: Layout) -> Layout:
    return sized([mat.of_rank(2).dims[0]])


@op(".outer", "torch.outer", ".ger", "torch.ger", examples=("v.outer(v)", "torch.outer(v, torch.ones(3))"))
def outer(input: Layout, vec2: Layout) -> Layout:
    return sized([*input.of_rank(1).dims, *vec2.of_rank(1).dims])


@op("torch.tensordot", examples=("torch.tensordot(x, x, dims=3)", "torch.tensordot(x, x, dims=([1, 2], [1, 2]))"))
def tensordot(a: Layout, b: Layout, dims: Value) -> Layout:
    """The dims of `a` that are left, then those of `b`."""
    match dims:
        case Number():
            count = as_index(dims)
            left = None if count is None else tuple(range(-count, 0))
            right = None if count is None else tuple(range(count))
        case Several((first, second)):
            left, right = as_indices(first), as_indices(second)
        case _:
            return anonymous()
    kept = [_without(a, left), _without(b, right)]
    found = [dim for side in kept if side is not None for dim in side]
    if None in kept or len([dim for dim in found if dim.pack]) > 1:
        return anonymous()
    return sized(found)


def _without(layout: Layout, dims: tuple[int, ...] | None) -> list[Dim] | None:
    found = positions(layout, dims)
    return None if found is None else [dim for i, dim in enumerate(found[0].dims) if i not in found[1]]


@op("torch.kron", ".kron", examples=("torch.kron(m, torch.ones(2, 3))",))
def kron(input: Layout, mat2: Layout) -> Layout | None:
    if not (input.is_contiguous and mat2.is_contiguous):
        return None
    if input.rank is None or input.rank != mat2.rank:
        return anonymous()
    return sized([left * right for left, right in zip(input.sizes, mat2.sizes, strict=True)])


@op("torch.chain_matmul", "torch.linalg.multi_dot", examples=("torch.linalg.multi_dot([m, m.t(), m])",))
def multi_dot(tensors: Layouts) -> Layout:
    if tensors is None or len(tensors) < 2:
        return anonymous()
    first, last = tensors[0], tensors[-1]
    if first.rank != 2 or last.rank != 2:
        return anonymous()
    return sized([first.dims[0], last.dims[1]])


@op(".inner", "torch.inner", examples=("torch.inner(x, x)", "v.inner(v)"))
def inner(input: Layout, mat2: Layout) -> Layout:
    left, right = positions(input, (-1,)), positions(mat2, (-1,))
    if input.rank is None or mat2.rank is None or left is None or right is None:
        return anonymous()
    return sized([*input.dims[:-1], *mat2.dims[:-1]])


@op(".cdist", "torch.cdist", examples=("torch.cdist(x, x)",))
def cdist(x1: Layout, x2: Layout) -> Layout:
    if None in (x1.index(-2), x2.index(-2)):
        return anonymous()
    batch = broadcast([Layout(x1.dims[:-2]), Layout(x2.dims[:-2])])
    return anonymous() if batch is None else sized([*batch.dims, x1.dims[-2], x2.dims[-2]])
