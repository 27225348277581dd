"""Patterns of einops, held against einops itself on contiguous and permuted tensors."""

from __future__ import annotations

import random
from typing import Any

import pytest

from codemod.layout.layout import Dim, Layout, World, contiguous, unknown
from codemod.layout.ops.einops import transformed
from codemod.layout.size import Size

torch = pytest.importorskip("torch")
einops = pytest.importorskip("einops")

REARRANGED = [
    ("b c h w -> b (h w) c", {}),
    ("b c h w -> b h w c", {}),
    ("b c (h p) w -> (b h) p c w", {"p": 2}),
    ("b (g c) h w -> b g c (h w)", {"g": 2}),
    ("b ... w -> b w ...", {}),
    ("b ... -> b (...)", {}),
    ("b c h w -> (b c h) w", {}),
    ("b c h w -> 1 b c 1 h w", {}),
]
REPEATED = [("b c h w -> b r c h w", {"r": 3}), ("b c h w -> b c h (w r)", {"r": 2}), ("b c h w -> b c h w 3", {})]
REDUCED = [("b c h w -> b c", {}), ("b c (h 2) w -> w b c h", {}), ("b c h w -> b 1 h w", {})]
CASES = [
    *(("rearrange", pattern, lengths) for pattern, lengths in REARRANGED),
    *(("repeat", pattern, lengths) for pattern, lengths in REPEATED),
    *(("reduce", pattern, lengths) for pattern, lengths in REDUCED),
]


def strided(seed: int) -> Any:
    order = random.Random(seed).sample(range(4), 4)
    sizes = (2, 4, 6, 5)
    return torch.ones([sizes[i] for i in order]).permute([order.index(i) for i in range(4)])


def layout_of(tensor: Any) -> Layout:
    return Layout(
        tuple(Dim(Size.of(n), Size.of(stride)) for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
    )


@pytest.mark.parametrize("world", World)
@pytest.mark.parametrize(("name", "pattern", "lengths"), CASES)
def test_sizes_and_strides_are_those_of_einops(name: str, pattern: str, lengths: dict[str, int], world: World) -> None:
    for seed in range(8):
        tensor = strided(seed)
        extra = ("sum",) if name == "reduce" else ()
        found = getattr(einops, name)(tensor, pattern, *extra, **lengths)
        claimed = transformed(layout_of(tensor), pattern, {k: Size.of(n) for k, n in lengths.items()}, world)
        assert claimed is not None
        assert [size.constant for size in claimed.sizes] == list(found.shape)
        pairs = zip(claimed.strides, found.shape, found.stride(), strict=True)
        assert all(stride.constant == real for stride, size, real in pairs if size > 1)


def test_an_axis_whose_length_is_not_given_is_a_quotient() -> None:
    sizes = [Size.of(size) for size in (2, 12)]
    found = transformed(contiguous(sizes), "b (h d) -> b h d", {"h": Size.of(3)}, World.ANY)
    assert found is not None and [size.constant for size in found.sizes] == [2, 3, 4]


def test_two_axes_without_length_are_not_followed() -> None:
    assert transformed(unknown("x"), "b (h d) -> b h d", {}, World.ANY) is None


def test_a_dim_merged_across_a_permutation_is_a_copy_only_for_known_sizes() -> None:
    sizes = [Size.of(size) for size in (2, 3, 4)]
    found = transformed(contiguous(sizes), "b n d -> b (d n)", {}, World.ANY)
    assert found is not None and found.is_contiguous
    assert transformed(unknown("x"), "b n d -> b (d n)", {}, World.ANY) is not None
