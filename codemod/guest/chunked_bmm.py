"""A `torch.bmm` whose batch may be as large as memory allows.

Two limits lie below that: compiled kernels take at most 65,535 matrices in one launch (pytorch issue 178617, CUDA's
grid y and z, in torch before 2.13), and a CUDA kernel counts the elements of an operand in 32 bits (issue 196431).  A
batch within both is one `torch.bmm`.  A larger one is worked off in chunks that are written straight into the result:
no second copy of it, and gradients that do not grow with the number of chunks.

Under torch.compile the chunks are an op of this file's own, where kernels have the first limit or `max_batch` is given,
and else one `torch.bmm`.  An exported program holds one `torch.bmm`, unless `max_batch` says how large the batch may
get in it:

    chunked_bmm(a, b, max_batch=200_000)

Then it holds both: one bmm for a batch within the limits, and as many as `max_batch` needs for a larger one.  They
stay in the exported program and in AOTInductor's package, whatever the size at export.
"""

from __future__ import annotations

import torch
from torch._C import _is_tracing
from torch.compiler import is_compiling

MATRICES = 65_535
ELEMENTS = 2**31 - 1
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])
_IS_GRID_LIMITED = _RELEASE < (2, 13)
_IS_FOLLOWED = _RELEASE >= (2, 8)
"""Before that, dynamo does not follow how chunks are put into a program."""


def chunked_bmm(
    input: torch.Tensor,
    mat2: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
    chunk: int | None = None,
    max_batch: int | None = None,
) -> torch.Tensor:
    """`torch.bmm(input, mat2)`: (B, n, m) @ (B, m, p) -> (B, n, p), with torch.bmm's errors, dtypes and gradients.

    `chunk` is the largest number of matrices at a time; by default what the limits allow.

    `max_batch` is the largest B that an exported program will get: give it to have the chunks in there too.  A program
    that is chunked so grows by one bmm for each `chunk` in `max_batch`, and needs memory for the result twice while it
    works off a batch above `chunk`; a batch above `max_batch` leaves all that is more to its last bmm.  A compiled
    program takes any batch, in eager's memory.  Eager code has no use for `max_batch`, and with `out=`, under
    `torch.func` transforms and in torch before 2.8 a program holds one bmm nevertheless.
    """
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunked_bmm: chunk={chunk}; give 1 or more")
    if is_compiling():
        return _traced(input, mat2, chunk, max_batch) if out is None else torch.bmm(input, mat2, out=out)
    if type(input) not in _PLAIN or type(mat2) not in _PLAIN or _is_tracing():
        step = None
    elif input.numel() * mat2.numel() <= ELEMENTS and input.dim() == 3 and input.size(0) <= (chunk or MATRICES):
        step = None  # nearly every call: what is dearer to look at comes after
    else:
        step = _step(input, mat2, chunk or MATRICES)
    if step is None:
        return torch.bmm(input, mat2) if out is None else torch.bmm(input, mat2, out=out)
    if out is not None:
        return _into(input, mat2, out, step)
    input, mat2 = _cast(input, mat2)
    if torch.is_grad_enabled() and (input.requires_grad or mat2.requires_grad):
        return _ChunkedBmm.apply(input, mat2, step)
    return _fill(input, mat2, step)


def _step(input: torch.Tensor, mat2: torch.Tensor, most: int) -> int | None:
    """Matrices at a time; None where one `torch.bmm` does it, or is to raise its own error."""
    if input.is_nested or mat2.is_nested or input.dim() != 3 or mat2.dim() != 3:
        return None
    shape, other = input.shape, mat2.shape
    step = _fitting(shape, other, most)
    if shape[0] <= step or other[:2] != (shape[0], shape[2]) or not (shape[1] and shape[2] and other[2]):
        return None
    return step if _are_alike(input, mat2) and not _are_looked_through(input, mat2) else None


def _fitting(shape: torch.Size, other: torch.Size, most: int) -> int:
    """`most`, or fewer where they have too many elements."""
    (_, n, m), p = shape, other[2]
    return min(most, max(ELEMENTS // max(n * m, m * p, n * p, 1), 1))


def _traced(input: torch.Tensor, mat2: torch.Tensor, chunk: int | None, max_batch: int | None) -> torch.Tensor:
    """The product in a program whose batch is not known yet."""
    is_exporting = _is_exporting()
    is_wanted = max_batch is not None or (_IS_GRID_LIMITED and input.is_cuda and is_exporting is False)
    if not is_wanted or is_exporting is None or torch._C._are_functorch_transforms_active():
        return torch.bmm(input, mat2)  # vmap and jvp enter neither cond, nor pieces of unknown length, nor the op
    if input.dim() != 3 or mat2.dim() != 3 or mat2.shape[:2] != (input.shape[0], input.shape[2]):
        return torch.bmm(input, mat2)
    batch, most = input.shape[0], chunk or MATRICES
    step = _known_step(input, mat2, most)
    if _is_known(batch <= step):
        return torch.bmm(input, mat2)
    if not is_exporting:
        is_plain = type(input) in _PLAIN and type(mat2) in _PLAIN
        return _compiled_bmm(*_cast(input, mat2), most) if is_plain else torch.bmm(input, mat2)
    if max_batch is None or max_batch <= step:
        return torch.bmm(input, mat2)
    count = -(-max_batch // step)
    if _is_known(batch > step):
        return _pieces(input, mat2, count, step)
    return torch.cond(batch <= step, torch.bmm, lambda a, b: _pieces(a, b, count, step), (input, mat2))


def _pieces(input: torch.Tensor, mat2: torch.Tensor, count: int, step: int) -> torch.Tensor:
    """`count` products, each of as many matrices as are left, and all but the last of no more than `step`.

    Their lengths come out of a tensor, so that the tracer takes no example for them: sizes computed from the batch
    itself would leave guards behind (`(7 + B) // 8 != 1`) that an exported Dim has to refuse.
    """
    batch = input.shape[0]
    rest = torch.full((), batch, dtype=torch.int64, device="cpu") - step * torch.arange(count, device="cpu")
    # All of it spelled so that dynamo of 2.8 follows it: not `tolist`, `sum` or `Tensor.split`.
    *before, last = rest.clamp(min=0).unbind()
    lengths = [*[length.clamp(max=step).item() for length in before], last.item()]
    total = 0
    for length in lengths:
        torch._check(length >= 0)
        total = total + length
    # Not `==`: the tracer would put the sum in the batch's place, and cond a new size of at least 2 in the sum's.
    torch._check(total <= batch)
    torch._check(total >= batch)
    lefts = torch.split_with_sizes(input.narrow(0, 0, total), lengths)
    rights = torch.split_with_sizes(mat2.narrow(0, 0, total), lengths)
    # Not writes into one result: made functional, they copy all of it for each piece.
    return torch.cat([torch.bmm(left, right) for left, right in zip(lefts, rights)]).narrow(0, 0, batch)


def _known_step(input: torch.Tensor, mat2: torch.Tensor, step: int) -> int:
    """`step`, halved while sizes that the program fixes make it too many elements."""
    (n, m), p = input.shape[1:], mat2.shape[2]
    for size in (n * m, m * p, n * p):
        while step > 1 and _is_known(step * size > ELEMENTS):
            step //= 2
    return step


def _is_known(condition: bool) -> bool:
    """True where the tracer can tell without a guard."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true  # slow to load, and there under a tracer

    return statically_known_true(condition)


def _are_alike(input: torch.Tensor, mat2: torch.Tensor) -> bool:
    """Tensors that torch.bmm takes, and that hold something."""
    is_strided = input.layout is torch.strided and mat2.layout is torch.strided
    return is_strided and input.dtype is mat2.dtype and input.device == mat2.device and input.device.type != "meta"


def _are_looked_through(*operands: torch.Tensor) -> bool:
    """By a functorch transform, batched gradients, forward-mode AD or a tracer."""
    functorch = torch._C._functorch
    if functorch.maybe_current_level() is not None or any(map(functorch.is_functorch_wrapped_tensor, operands)):
        return True
    if any(map(functorch.is_legacy_batchedtensor, operands)):  # of `is_grads_batched` and vectorized Jacobians
        return True
    if torch.utils._python_dispatch._get_current_dispatch_mode() is not None:
        return True
    return any(torch.autograd.forward_ad.unpack_dual(operand).tangent is not None for operand in operands)


def _is_exporting() -> bool | None:
    """None where torch does not tell; `is_exporting()` is always true under dynamo of 2.8."""
    return getattr(torch.compiler, "_is_exporting_flag", None) if _IS_FOLLOWED else None


def _cast(input: torch.Tensor, mat2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """As autocast would have them."""
    dtype = _autocast_dtype(input)
    return (input, mat2) if dtype is None else (input.to(dtype), mat2.to(dtype))


def _autocast_dtype(input: torch.Tensor) -> torch.dtype | None:
    """What autocast would make of the operands; None where it does nothing."""
    kind = input.device.type
    if not input.is_floating_point() or input.dtype is torch.float64 or not torch.is_autocast_enabled(kind):
        return None
    return torch.get_autocast_dtype(kind)


def _into(input: torch.Tensor, mat2: torch.Tensor, out: torch.Tensor, step: int) -> torch.Tensor:
    """Fill `out` chunk by chunk where torch.bmm would fill it as it is; else leave it to torch.bmm."""
    if type(out) not in _PLAIN or out.layout is not torch.strided:
        return torch.bmm(input, mat2, out=out)
    shape = (input.shape[0], input.shape[1], mat2.shape[2])
    tracked = torch.is_grad_enabled() and (input.requires_grad or mat2.requires_grad or out.requires_grad)
    if out.shape != shape or out.dtype != input.dtype or out.device != input.device or tracked:
        return torch.bmm(input, mat2, out=out)
    return _write(input, mat2, out, step)


def _fill(input: torch.Tensor, mat2: torch.Tensor, step: int) -> torch.Tensor:
    return _write(input, mat2, input.new_empty(input.shape[0], input.shape[1], mat2.shape[2]), step)


def _write(input: torch.Tensor, mat2: torch.Tensor, out: torch.Tensor, step: int) -> torch.Tensor:
    """`out=` is not recorded, here where nothing is to be, and autocast leaves it alone."""
    whole, rest = divmod(input.shape[0], step)
    lengths = [step] * whole + [rest] * (rest > 0)
    parts = (tensor.split_with_sizes(lengths) for tensor in (input, mat2, out))
    for left, right, part in zip(*parts):
        torch.bmm(left, right, out=part)
    return out


class _ChunkedBmm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, mat2, step):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(input, mat2)
        ctx.step = step
        return _fill(input, mat2, step)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        input, mat2 = ctx.saved_tensors
        left = right = None
        if ctx.needs_input_grad[0]:
            left = chunked_bmm(grad, mat2.mH, chunk=ctx.step)
        if ctx.needs_input_grad[1]:
            right = chunked_bmm(input.mH, grad, chunk=ctx.step)
        return left, right, None


@torch.library.custom_op(
    "chunked_bmm::" + __name__.replace(".", "_"),
    mutates_args=(),
    schema="(Tensor input, Tensor mat2, int most) -> Tensor",  # 2.4 reads no annotations that are strings
)
def _compiled_bmm(input: torch.Tensor, mat2: torch.Tensor, most: int) -> torch.Tensor:
    """A compiled program calls it as it is, whatever the batch: no guard on that, and no second copy of the result."""
    step = _fitting(input.shape, mat2.shape, most)
    return torch.bmm(input, mat2) if input.shape[0] <= step else _fill(input, mat2, step)


@_compiled_bmm.register_fake
def _(input: torch.Tensor, mat2: torch.Tensor, most: int) -> torch.Tensor:
    return torch.bmm(input, mat2)


def _save(ctx, inputs, output):  # type: ignore[no-untyped-def]
    input, mat2, ctx.most = inputs
    ctx.save_for_backward(input, mat2)


def _gradients(ctx, grad):  # type: ignore[no-untyped-def]
    input, mat2 = ctx.saved_tensors
    left = _compiled_bmm(grad, mat2.mH, ctx.most) if ctx.needs_input_grad[0] else None
    right = _compiled_bmm(input.mH, grad, ctx.most) if ctx.needs_input_grad[1] else None
    return left, right, None


_compiled_bmm.register_autograd(_gradients, setup_context=_save)
