"""numpy's strides, as far as they are followed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from codemod.layout.layout import Layout, World
from codemod.layout.ops.foreign import array, expand_dims, full, outer, reshape, swapaxes, transpose, zeros
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


def test_what_is_made_of_lists_has_the_strides_of_numpy() -> None:
    one, rows = Number(Size.of(1)), Several((Several((Number(Size.of(1)),) * 3),) * 2)
    found = array(rows, world=World.ANY)
    assert strides(found) == of_numpy(numpy.array([[1, 1, 1], [1, 1, 1]]))
    assert array(rows, order="F", world=World.ANY) is None
    assert strides(array(Several(()), world=World.ANY)) == [1]
    narrow = array(Several((one, one)), ndmin=one, world=World.ANY)
    assert narrow is not None and narrow.rank is None and narrow.is_contiguous


def test_outer_is_contiguous_whatever_it_is_of() -> None:
    found = outer(one := Number(Size.of(1)), one)
    assert found.rank == 2 and found.is_contiguous
    for step in (1, 2, -1):
        assert numpy.outer(numpy.arange(6)[::step], numpy.arange(4)[::step]).flags.c_contiguous


def test_an_array_times_a_number_keeps_its_order() -> None:
    for turned in (numpy.zeros((2, 3, 4)).transpose(1, 0, 2), numpy.zeros((4, 6))[::2, ::3].T, numpy.zeros((2, 3))):
        real = torch.from_numpy(turned) * 2.0
        assert of_numpy(turned * 2.0) == of_numpy(2.0 * turned) == list(real.stride())
