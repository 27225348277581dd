"""Modules whose layout depends on more than their input."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from codemod.layout.attributes import FLUENT
from codemod.layout.layout import Layout, World, contiguous, unknown
from codemod.layout.ops.modules import linear, lstm, multihead_attention, transformer_layer
from codemod.layout.size import UNKNOWN, Size
from codemod.layout.value import Unknown

SIZES = [Size.of(size) for size in (3, 5, 8)]
INPUT = contiguous(SIZES)
SOMETHING = Unknown("a key")


def strides(found: Any) -> list[int | None]:
    assert isinstance(found, Layout)
    return [stride.constant for stride in found.strides]


def test_a_linear_of_unknown_width_is_contiguous() -> None:
    found = linear(INPUT, out_features=UNKNOWN)
    assert isinstance(found, Layout) and found.is_contiguous


@pytest.mark.parametrize("world", World)
def test_the_output_of_a_batch_first_lstm_is_time_major(world: World) -> None:
    output, (hidden, cell) = lstm(INPUT, world, hidden_size=Size.of(4), batch_first=True)  # type: ignore[misc]
    assert strides(output) == [4, 12, 1]
    assert strides(hidden) == strides(cell) == [12, 4, 1]


@pytest.mark.parametrize("world", World)
def test_one_sequence_without_batch_is_contiguous(world: World) -> None:
    output, (hidden, _) = lstm(contiguous(SIZES[1:]), world, hidden_size=Size.of(4), batch_first=True)  # type: ignore[misc]
    assert strides(output) == [4, 1]
    assert strides(hidden) == [4, 1]


def test_an_lstm_without_batch_first_is_contiguous_for_any_rank() -> None:
    output, _ = lstm(unknown("x"), World.ANY, hidden_size=Size.of(4))  # type: ignore[misc]
    assert isinstance(output, Layout) and output.is_contiguous


def test_batch_first_attention_is_transposed_by_default_and_open_otherwise() -> None:
    default, _ = multihead_attention(INPUT, World.DEFAULT, SOMETHING, SOMETHING, batch_first=True)  # type: ignore[misc]
    free, _ = multihead_attention(INPUT, World.ANY, SOMETHING, SOMETHING, batch_first=True)  # type: ignore[misc]
    assert strides(default) == [8, 24, 1]
    assert set(strides(free)) == {None}


def test_attention_for_inference_is_contiguous_in_torch() -> None:
    """Why it is open: the fused path does not transpose."""
    torch = pytest.importorskip("torch")
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.ones(3, 5, 8)
    with torch.no_grad():
        assert attention(x, x, x)[0].is_contiguous()
    assert not attention(x, x, x)[0].is_contiguous()


def test_a_norm_at_the_end_makes_a_transformer_layer_contiguous() -> None:
    permuted = Layout(INPUT.dims[::-1])
    found = transformer_layer(permuted)
    assert isinstance(found, Layout) and found.is_contiguous
    found = transformer_layer(permuted, norm_first=True)
    assert isinstance(found, Layout) and not found.is_contiguous


@pytest.mark.parametrize("name", sorted(FLUENT - {"cuda", "xpu"}))  # those need the device
def test_a_module_that_is_moved_is_the_same_module(name: str) -> None:
    module = torch.nn.Linear(3, 4)
    arguments = [torch.float64] if name in ("to", "type") else []
    assert getattr(module, name)(*arguments) is module
