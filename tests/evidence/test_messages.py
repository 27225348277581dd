"""What the words of torch are taken to say."""

from __future__ import annotations

import pytest

from codemod.evidence.failure import Kind
from codemod.evidence.messages import quote, recognise


@pytest.mark.parametrize(
    "message",
    [
        "",
        "loss: nan",
        "UserWarning: Grad strides do not match bucket view strides.",
        "AttributeError: 'NoneType' object has no attribute 'view'",
        "ValueError: invalid literal for int()",
        "view failed",
    ],
)
def test_other_words_say_nothing(message: str) -> None:
    assert recognise(message) is None


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("RuntimeError: view size is not compatible with input tensor's size and stride (at least", Kind.VIEW_REFUSED),
        ("invalid argument 2: view size is not compatible with input tensor's size and stride", Kind.VIEW_REFUSED),
        ("RuntimeError: view size is not\ncompatible with input tensor's\n   size and stride", Kind.VIEW_REFUSED),
        ("RuntimeError: shape '[2, -1]' is invalid for input of size 7", Kind.SHAPE_INVALID),
        ("RuntimeError: size '[2 x 3]' is invalid for input with 7 elements", Kind.SHAPE_INVALID),
        ("cannot reshape tensor of 0 elements into shape [0, -1] because the unspecified", Kind.SHAPE_INVALID),
        ("self.stride(-1) must be 1 to view Long as Char (different element sizes), but got 8", Kind.DTYPE_VIEW),
        ("self.size(-1) must be divisible by 4 to view Char as Float (different", Kind.DTYPE_VIEW),
        ("Tensor must have a last dimension with stride 1", Kind.DTYPE_VIEW),
        (
            "Constraints violated (n)! - You marked n as dynamic but your code specialized it to be a constant (32).",
            Kind.SPECIALIZED,
        ),
        (
            "Constraints violated (n)!  - Not all values of n satisfy the generated guard n % 2 == 0",
            Kind.CONSTRAINT_VIOLATED,
        ),
        (
            "Output size of the matrix multiplication is larger than currently supported by the MPS backend",
            Kind.OUTPUT_LIMIT,
        ),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasSgemm", Kind.BLAS),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", Kind.OUT_OF_MEMORY),
        ("RuntimeError: Triton Error [CUDA]: invalid argument", Kind.LAUNCH_REFUSED),
        ("RuntimeError: CUDA error: invalid configuration argument", Kind.LAUNCH_REFUSED),
    ],
)
def test_each_wording_has_its_kind(message: str, kind: Kind) -> None:
    known = recognise(message)
    assert known is not None
    assert known[0] is kind
    assert kind.explanation


def test_every_kind_is_explained() -> None:
    assert all(kind.explanation.endswith(".") for kind in Kind)


def test_sizes_strides_and_target_are_read() -> None:
    known = recognise(
        "Cannot view a tensor with shape torch.Size([2, s0]) and strides (1, 2) as a tensor with shape (2*s0,)!"
    )
    assert known is not None
    assert (known[1].sizes, known[1].strides, known[1].target) == ((2, None), (1, 2), (None,))


def test_the_target_of_the_call_goes_before_the_inferred_one() -> None:
    known = recognise(
        "call_method view(*(FakeTensor(..., size=(2, 4, 3)), (2, -1)), **{}): got ValueError('Cannot view a tensor "
        "with shape torch.Size([2, 4, 3]) and strides (12, 1, 4) as a tensor with shape (2, 12)!')"
    )
    assert known is not None
    assert (known[1].target, known[1].operation) == ((2, -1), "view")


def test_target_and_elements_of_a_wrong_shape_are_read() -> None:
    known = recognise("shape '[32, -1]' is invalid for input of size 160")
    assert known is not None
    assert (known[1].target, known[1].elements) == ((32, -1), 160)


def test_the_constant_of_a_dim_is_read() -> None:
    known = recognise(
        "Not all values of n = L['z'].size()[0] in the specified range are valid because n was inferred to be "
        "a constant (32)."
    )
    assert known is not None
    assert known[1].constants == (("n", 32),)


def test_a_message_is_quoted_from_the_words_on_that_tell_its_kind() -> None:
    message = (
        "TorchRuntimeError: in a trace\n  got ValueError('Cannot view a tensor with shape (2, 3)  and strides (1, 2)')"
    )
    assert quote(message) == "Cannot view a tensor with shape (2, 3) and strides (1, 2)')"
    assert quote("KeyError: 'x'\nmore") == "KeyError: 'x'"


@pytest.mark.parametrize(
    ("frames", "operation"),
    [
        (
            "at::_ops::view::redispatch(c10::DispatchKeySet)\nframe #5: at::_ops::linalg_matrix_exp::call(at::Tensor)",
            "linalg_matrix_exp",
        ),
        ("at::_ops::view_dtype::call(at::Tensor const&, c10::ScalarType)", "view"),
        ("at::native::view(at::Tensor const&, c10::ArrayRef<long>)", ""),
    ],
)
def test_of_the_frames_in_cpp_the_outermost_op_is_the_one_that_was_called(frames: str, operation: str) -> None:
    message = f"view size is not compatible with input tensor's size and stride\nframe #4: {frames} + 0x1ab (0x7f)"
    known = recognise(message)
    assert known is not None and known[1].operation == operation


@pytest.mark.parametrize(
    "message",
    [
        "Guard failed: x.size()[0] <= 8",
        "input_handles[0]: unmatched dim value at 0, expected: 4, but got: 5",
        "input_handles[1]: dim value is too large at 0, expected it to be <= 8, but got: 9",
        "Expected input at *args[0].shape[0] to be equal to 4, but got 5",
    ],
)
def test_a_size_that_a_program_was_not_exported_for_is_known(message: str) -> None:
    known = recognise(message)
    assert known is not None and known[0] is Kind.EXPORTED_SIZE
