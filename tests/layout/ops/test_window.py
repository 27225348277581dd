"""Sizes of convolutions and pools, held against torch's own."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from codemod.layout.ops.window import each_dim, quotient, slid, spread
from codemod.layout.size import ONE, UNKNOWN, ZERO, Atom, Size
from codemod.layout.value import Constant, Number, Several

torch = pytest.importorskip("torch")

small = st.integers(1, 4)
H = Size.of(Atom("H"))


def number(value: int) -> Size:
    return Size.of(value)


def test_a_size_that_does_not_divide_is_a_symbol_of_its_own_name() -> None:
    assert quotient(H, number(2)) == quotient(H, number(2))
    assert quotient(H, number(2)) != quotient(H + ONE, number(2))


def test_an_unknown_stride_leaves_the_size_unknown() -> None:
    assert slid(H, number(3), UNKNOWN, ZERO) == UNKNOWN


def test_a_window_of_three_with_padding_keeps_the_size() -> None:
    assert slid(H, number(3), ONE, ONE) == H


def test_patches_divide_the_size() -> None:
    assert slid(H * number(16), number(16), number(16), ZERO) == H


def test_none_and_a_single_number_stand_for_every_dim() -> None:
    assert each_dim(None, 2, ZERO) == each_dim(Constant(None), 2, ZERO) == [ZERO, ZERO]
    assert each_dim(Several((Number(ONE),)), 3) == [ONE, ONE, ONE]


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 30), small, small, st.integers(0, 3), small)
def test_slid_is_the_size_of_a_convolution(size: int, kernel: int, stride: int, padding: int, dilation: int) -> None:
    assume(size + 2 * padding > dilation * (kernel - 1))
    image, weight = (torch.empty(shape, device="meta") for shape in ((1, 1, size), (1, 1, kernel)))
    found = torch.nn.functional.conv1d(image, weight, None, stride, padding, dilation).shape[2]
    assert slid(*map(number, (size, kernel, stride, padding, dilation))).constant == found


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 30), small, small, st.integers(0, 3), small, st.integers(0, 3))
def test_spread_is_the_size_of_a_transposed_convolution(
    size: int, kernel: int, stride: int, padding: int, dilation: int, extra: int
) -> None:
    assume(extra < max(stride, dilation) and (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra >= 0)
    image, weight = (torch.empty(shape, device="meta") for shape in ((1, 1, size), (1, 1, kernel)))
    found = torch.nn.functional.conv_transpose1d(image, weight, None, stride, padding, extra, 1, dilation).shape[2]
    assert spread(*map(number, (size, kernel, stride, padding, dilation, extra))).constant == found
