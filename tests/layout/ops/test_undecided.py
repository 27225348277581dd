"""Images: contiguous or channels_last, and nothing else."""

from __future__ import annotations

import pytest

from codemod.layout.layout import Dim, Layout, World, contiguous, dim_atom, stride_atom
from codemod.layout.ops.undecided import by_backend, channels_last, image, is_channels_last, sized
from codemod.layout.size import INFER, ONE, UNKNOWN, Answer, Size
from codemod.layout.viewable import Legality, Target, judge

N, C, H, W = (Size.of(dim_atom("x", i)) for i in range(4))
CONTIGUOUS = contiguous([N, C, H, W])
STRIDED = Layout(tuple(Dim(size, stride_atom("x", i, ())) for i, size in enumerate((N, C, H, W))))


def legality(layout: Layout, *target: Size) -> Legality:
    return judge(layout, Target(target)).legality


def of_any_format() -> Layout:
    return image(CONTIGUOUS, [STRIDED], World.ANY, spatial=2)


def test_channels_cannot_be_merged_with_the_batch_or_the_pixels() -> None:
    assert legality(of_any_format(), INFER, H, W) is Legality.MAYBE
    assert legality(of_any_format(), N, INFER, W) is Legality.MAYBE
    assert legality(of_any_format(), N, INFER) is Legality.MAYBE


def test_a_contiguous_input_does_not_settle_what_a_weight_may_bring() -> None:
    assert not image(CONTIGUOUS, [CONTIGUOUS], World.ANY, spatial=2).is_contiguous


def test_height_and_width_can_be_merged_in_both_formats() -> None:
    assert legality(of_any_format(), N, C, INFER) is Legality.LEGAL


def test_a_single_pixel_hides_the_format() -> None:
    pooled = image(contiguous([N, C, ONE, ONE]), [STRIDED], World.ANY, spatial=2)
    assert legality(pooled, INFER) is Legality.LEGAL


def test_a_single_channel_hides_the_format() -> None:
    masks = image(contiguous([N, ONE, H, W]), [STRIDED], World.ANY, spatial=2)
    assert legality(masks, INFER) is Legality.LEGAL


def test_by_default_the_format_of_the_input_is_kept() -> None:
    assert image(CONTIGUOUS, [CONTIGUOUS], World.DEFAULT, spatial=2) == CONTIGUOUS
    last = channels_last(CONTIGUOUS)
    assert image(CONTIGUOUS, [last], World.DEFAULT, spatial=2) == last


def test_an_image_permuted_from_behind_is_channels_last() -> None:
    behind = contiguous([N, H, W, C])
    permuted = Layout(tuple(behind.dims[i] for i in (0, 3, 1, 2)))
    assert is_channels_last(permuted) is Answer.YES


def test_a_transposed_image_is_not_channels_last() -> None:
    assert is_channels_last(Layout(tuple(CONTIGUOUS.dims[i] for i in (0, 1, 3, 2)))) is Answer.NO
    assert is_channels_last(STRIDED) is Answer.MAYBE


def test_a_size_that_is_not_known_leaves_it_contiguous() -> None:
    assert sized([N, UNKNOWN, W]).is_contiguous


def test_strides_of_a_backend_are_open_unless_there_is_one_dim() -> None:
    assert legality(by_backend(CONTIGUOUS, "it"), INFER) is Legality.MAYBE
    assert by_backend(contiguous([N]), "it") == contiguous([N])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [1, 4])
def test_strides_of_real_convolutions_have_that_form(channels: int, size: int) -> None:
    torch = pytest.importorskip("torch")
    for memory_format in (torch.contiguous_format, torch.channels_last):
        given = torch.ones(2, 3, size, size).to(memory_format=memory_format)
        found = torch.nn.Conv2d(3, channels, 1)(given)
        batch, _, height, width = found.stride()
        assert batch == channels * size * size or found.shape[0] == 1
        assert height == size * width or size == 1
