"""numpy's strides, as far as they are followed."""

from __future__ import annotations

from typing import Any

import pytest

from codemod.layout.layout import Layout, World
from codemod.layout.ops.foreign import expand_dims, full, reshape, swapaxes, transpose, zeros
from codemod.layout.size import Size
from codemod.layout.value import Number, Several

numpy = pytest.importorskip("numpy")

SHAPE = Several(tuple(Number(Size.of(size)) for size in (3, 4, 5)))


def strides(found: Any) -> list[int | None]:
    assert isinstance(found, Layout)
    return [stride.constant for stride in found.strides]


def of_numpy(array: Any) -> list[int]:
    return [stride // array.itemsize for stride in array.strides]


def test_order_f_is_not_taken_for_contiguous() -> None:
    assert zeros(SHAPE, order="F") is None
    assert full(SHAPE, Number(Size.of(1)), order=None) is None


def test_strides_are_those_of_numpy() -> None:
    made, real = zeros(SHAPE), numpy.zeros((3, 4, 5))
    assert strides(made) == of_numpy(real)
    assert strides(transpose(made)) == of_numpy(real.T)
    assert strides(transpose(made, (0, 2, 1))) == of_numpy(real.transpose(0, 2, 1))
    assert strides(swapaxes(made, 0, -1)) == of_numpy(real.swapaxes(0, -1))


def test_a_reshape_of_a_transposed_array_copies() -> None:
    transposed = transpose(zeros(SHAPE))
    for world in World:
        found = reshape(transposed, Several((Number(Size.of(20)), Number(Size.of(3)))), world=world)
        assert strides(found) == of_numpy(numpy.zeros((3, 4, 5)).T.reshape(20, 3))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_new_axis_stands_where_numpy_puts_it(axis: int) -> None:
    found = expand_dims(zeros(SHAPE), axis)
    assert isinstance(found, Layout)
    assert [size.constant for size in found.sizes] == list(numpy.expand_dims(numpy.zeros((3, 4, 5)), axis).shape)
