"""The order in memory of what comes out of several operands, none of which need have the full shape."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from codemod.layout.layout import Dim, Layout, World
from codemod.layout.ops.pointwise import pointwise
from codemod.layout.size import ONE, Size


@st.composite
def operands(draw: st.DrawFn) -> list[torch.Tensor]:
    """Permuted, cut and repeated tensors that broadcast against each other; no dim of the result has size 1."""
    rank = draw(st.integers(2, 5))
    shape = draw(st.lists(st.integers(2, 4), min_size=rank, max_size=rank))
    found = []
    for _ in range(draw(st.integers(2, 3))):
        kept = shape[draw(st.integers(0, rank - 1)) :]
        sizes = [draw(st.sampled_from([n, n, 1])) for n in kept]
        order = draw(st.permutations(range(len(sizes))))
        gap = draw(st.sampled_from([1, 1, 2]))
        base = torch.zeros([sizes[i] * gap for i in order])
        tensor = base[tuple(slice(0, sizes[i]) for i in order)].permute([order.index(i) for i in range(len(sizes))])
        repeated = [draw(st.sampled_from([n, n, m])) if n == 1 else n for n, m in zip(sizes, kept, strict=True)]
        found.append(tensor.expand(repeated))
    return found


def layout_of(tensor: torch.Tensor) -> Layout:
    return Layout(
        tuple(
            Dim(ONE, ONE) if n == 1 else Dim(Size.of(n), Size.of(s))
            for n, s in zip(tensor.shape, tensor.stride(), strict=True)
        )
    )


@settings(deadline=None, max_examples=600)
@given(operands())
def test_operands_are_sorted_as_torch_sorts_them(tensors: list[torch.Tensor]) -> None:
    found = torch.broadcast_tensors(*tensors)[0]
    result = tensors[0]
    for other in tensors[1:]:
        result = result + other
    if len(tensors) == 3:
        result = torch.addcmul(*tensors)
    claimed = pointwise(*map(layout_of, tensors), world=World.DEFAULT)
    assert [size.constant for size in claimed.sizes] == list(found.shape)
    if 1 in result.shape or any(stride.has_stride for stride in claimed.strides):
        return  # a size of 1 has any stride; the order was left open
    assert [stride.constant for stride in claimed.strides] == list(result.stride())


def test_two_products_repeated_against_each_other_have_an_order() -> None:
    """`bhwk` in the order h, b, w, k and in the order w, b, h, k."""
    left = torch.zeros(3, 2, 4, 5).transpose(0, 1)[:, :, :, :, None]
    right = torch.zeros(4, 2, 3, 6).permute(1, 2, 0, 3)[:, :, :, None, :]
    claimed = pointwise(layout_of(left), layout_of(right), world=World.DEFAULT)
    assert [stride.constant for stride in claimed.strides] == list((left + right).stride())


def test_a_repeated_dim_stays_where_no_operand_tells_its_place() -> None:
    """Of the order d, b in memory, with a and c repeated: torch leaves c before d, and b passes c."""
    tensor = torch.zeros(2, 2).t()[None, :, None, :].expand(2, 2, 2, 2)
    assert tensor.stride() == (0, 1, 0, 2)
    for first in (torch.zeros(()), torch.zeros(2, 1, 1, 1)):
        for world in World:
            claimed = pointwise(layout_of(first), layout_of(tensor), world=world)
            assert [stride.constant for stride in claimed.strides] == list((first + tensor).stride())
