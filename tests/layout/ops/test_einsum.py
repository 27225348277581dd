"""The order in memory that einsum gives its result, held against torch for random equations."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codemod.layout.layout import Dim, Layout, World, contiguous
from codemod.layout.ops.einsum import einsum
from codemod.layout.size import Size

torch = pytest.importorskip("torch")


def layout_of(tensor: Any) -> Layout:
    """Strides of dims of size 1 are torch's business: a contiguous tensor counts as such."""
    sizes = [Size.of(size) for size in tensor.shape]
    if tensor.is_contiguous():
        return contiguous(sizes)
    return Layout(tuple(Dim(size, Size.of(stride)) for size, stride in zip(sizes, tensor.stride(), strict=True)))


def strided(sizes: list[int], chance: random.Random) -> Any:
    order = list(range(len(sizes)))
    if chance.random() < 0.6:
        chance.shuffle(order)
    tensor = torch.ones([sizes[i] for i in order]).permute([order.index(i) for i in range(len(sizes))])
    if sizes and chance.random() < 0.2:
        tensor = tensor.narrow(0, 0, 1).expand(sizes)
    return tensor


def equation(chance: random.Random) -> tuple[str, list[str]]:
    letters = chance.sample("abcdef", chance.randint(1, 5))
    inputs = [
        "".join(chance.sample(letters, chance.randint(1, len(letters)))) for _ in range(chance.choice([1, 2, 2, 2]))
    ]
    present = sorted(set("".join(inputs)))
    output = "".join(chance.sample(present, chance.randint(0, len(present))))
    return f"{','.join(inputs)}->{output}", inputs


def wrong(claimed: Layout | None, found: Any) -> list[str]:
    if claimed is None or found.numel() == 0:
        return []
    pairs = zip(claimed.dims, found.shape, found.stride(), strict=True)
    return [
        f"size {dim.size}, stride {dim.stride} of {size}, {stride}"
        for dim, size, stride in pairs
        if dim.size.constant != size or (size > 1 and dim.stride.constant is not None and dim.stride.constant != stride)
    ]


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from([(2, 3, 4), (1, 2, 3)]))
def test_what_is_claimed_of_a_random_equation_holds(seed: int, sizes: tuple[int, ...]) -> None:
    chance = random.Random(seed)
    text, inputs = equation(chance)
    length = {letter: chance.choice(sizes) for letter in "abcdef"}
    operands = [strided([length[letter] for letter in letters], chance) for letters in inputs]
    found = torch.einsum(text, *operands)
    for world in World:
        claimed = einsum(text, *map(layout_of, operands), world=world)
        assert claimed is None or isinstance(claimed, Layout)
        assert not wrong(claimed, found), (text, length, world, [operand.stride() for operand in operands])


def test_the_natural_order_of_contiguous_operands_is_contiguous() -> None:
    x = contiguous([Size.of(size) for size in (2, 3, 4)])
    for world in World:
        found = einsum("bij,bkj->bik", x, x, world=world)
        assert isinstance(found, Layout) and found.is_contiguous


def test_heads_that_go_behind_the_rows_are_permuted_by_default() -> None:
    x = contiguous([Size.of(size) for size in (2, 3, 4, 5)])
    found = einsum("bhid,bhjd->bihj", x, x, world=World.DEFAULT)
    assert isinstance(found, Layout)
    assert [stride.constant for stride in found.strides] == [48, 4, 16, 1]
