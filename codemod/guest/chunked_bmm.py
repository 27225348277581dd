"""A `torch.bmm` whose batch may be as large as memory allows.

Two limits lie below that: compiled kernels take at most 65,535 matrices in one launch (pytorch issue 178617, CUDA's
grid y and z), and a CUDA kernel counts the elements of an operand in 32 bits (issue 196431).  A batch within both is
one `torch.bmm`.  A larger one is worked off in chunks that are written straight into the result: no second copy of it,
and gradients that do not grow with the number of chunks.

A compiled or exported program holds one `torch.bmm`, unless `max_batch` says how large the batch may get in it:

    chunked_bmm(a, b, max_batch=200_000)

Then it holds both: one bmm for a batch within the limits, and as many as `max_batch` needs for a larger one.  They
stay in the exported program and in AOTInductor's package, whatever the size at export.
"""

from __future__ import annotations

import torch
from torch.compiler import is_compiling

MATRICES = 65_535
ELEMENTS = 2**31 - 1
_PLAIN = (torch.Tensor, torch.nn.Parameter)


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

    `max_batch` is the largest B that a compiled or exported program will get: give it to have the chunks in there too.
    A program that is chunked so grows by one bmm for each `chunk` in `max_batch`, needs memory for the result twice
    while it works off a batch above `chunk`, and refuses one above `max_batch` (rounded up to whole chunks).  Eager
    code has no use for it, and with `out=` or under `torch.func` transforms a program holds one bmm nevertheless.
    """
    if max_batch is not None and out is None and is_compiling():
        return _traced(input, mat2, chunk, max_batch)
    step = _step(input, mat2, chunk)
    if step is None:
        return torch.bmm(input, mat2) if out is None else torch.bmm(input, mat2, out=out)
    if out is not None:
        return _into(input, mat2, out, step)
    dtype = _autocast_dtype(input)
    if dtype is not None:
        input, mat2 = input.to(dtype), mat2.to(dtype)
    if torch.is_grad_enabled() and (input.requires_grad or mat2.requires_grad):
        return _ChunkedBmm.apply(input, mat2, step)
    return _fill(input, mat2, step)


def _step(input: torch.Tensor, mat2: torch.Tensor, chunk: int | None) -> int | None:
    """Matrices at a time; None where one `torch.bmm` does it, or is to raise its own error."""
    if is_compiling() or torch._C._is_tracing():
        return None
    if type(input) not in _PLAIN or type(mat2) not in _PLAIN or input.is_nested or mat2.is_nested:
        return None
    shape, other = input.shape, mat2.shape
    if len(shape) != 3 or len(other) != 3:
        return None
    (batch, n, m), p = shape, other[2]
    most = chunk or MATRICES
    if batch <= most and batch * n * m <= ELEMENTS and batch * m * p <= ELEMENTS and batch * n * p <= ELEMENTS:
        return None  # nearly every call: what is dearer to look at comes after
    step = min(most, max(ELEMENTS // max(n * m, m * p, n * p, 1), 1))
    if batch <= step or other != (batch, m, p) or not (n and m and p) or _is_wrapped(input) or _is_wrapped(mat2):
        return None
    return step if _are_alike(input, mat2) and input.device.type != "meta" else None


def _traced(input: torch.Tensor, mat2: torch.Tensor, chunk: int | None, max_batch: int) -> torch.Tensor:
    """The product in a program whose batch is not known yet: plain aten, either way."""
    if input.dim() != 3 or mat2.dim() != 3 or mat2.shape[:2] != (input.shape[0], input.shape[2]):
        return torch.bmm(input, mat2)
    batch = input.shape[0]
    step = _known_step(input, mat2, chunk or MATRICES)
    if max_batch <= step or _is_known(batch <= step) or torch._C._are_functorch_transforms_active():
        return torch.bmm(input, mat2)  # vmap and jvp enter neither cond nor pieces of unknown length
    count = -(-max_batch // step)
    if _is_known(batch > step):
        return _pieces(input, mat2, count, step)
    return torch.cond(batch <= step, torch.bmm, lambda a, b: _pieces(a, b, count, step), (input, mat2))


def _pieces(input: torch.Tensor, mat2: torch.Tensor, count: int, step: int) -> torch.Tensor:
    """`count` products, each of as many matrices as are left, and of no more than `step`.

    Their lengths come out of a tensor, so that the tracer takes no example for them: sizes computed from the batch
    itself would leave guards behind (`(7 + B) // 8 != 1`) that an exported Dim has to refuse.
    """
    batch = input.shape[0]
    rest = torch.full((), batch, dtype=torch.int64, device="cpu") - step * torch.arange(count, device="cpu")
    lengths = rest.clamp(0, step).tolist()
    for length in lengths:
        torch._check(length >= 0)
    total = sum(lengths)
    # Not `==`: the tracer would put the sum in the batch's place, and cond a new size of at least 2 in the sum's.
    torch._check(total <= batch)
    torch._check(total >= batch)
    pairs = zip(input.narrow(0, 0, total).split(lengths), mat2.narrow(0, 0, total).split(lengths))
    # Not writes into one result: made functional, they copy all of it for each piece.
    return torch.cat([torch.bmm(left, right) for left, right in pairs]).narrow(0, 0, batch)


def _known_step(input: torch.Tensor, mat2: torch.Tensor, step: int) -> int:
    """`step`, halved while sizes that the program fixes make it too many elements."""
    (n, m), p = input.shape[1:], mat2.shape[2]
    while step > 1 and any(_is_known(step * size > ELEMENTS) for size in (n * m, m * p, n * p)):
        step //= 2
    return step


def _is_known(condition: bool) -> bool:
    """True where the tracer can tell without a guard."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true  # slow to load, and there under a tracer

    return statically_known_true(condition)


def _are_alike(input: torch.Tensor, mat2: torch.Tensor) -> bool:
    is_strided = input.layout is torch.strided and mat2.layout is torch.strided
    return is_strided and input.dtype is mat2.dtype and input.device == mat2.device


def _is_wrapped(tensor: torch.Tensor) -> bool:
    """A tensor that a functorch transform, forward-mode AD or a tracer looks through."""
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor) or torch._C._functorch.maybe_current_level() is not None:
        return True
    if torch.utils._python_dispatch._get_current_dispatch_mode() is not None:
        return True
    return torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None


def _autocast_dtype(input: torch.Tensor) -> torch.dtype | None:
    """What autocast would make of the operands; None where it does nothing."""
    kind = input.device.type
    if not input.is_floating_point() or input.dtype is torch.float64 or not torch.is_autocast_enabled(kind):
        return None
    return torch.get_autocast_dtype(kind)


def _into(input: torch.Tensor, mat2: torch.Tensor, out: torch.Tensor, step: int) -> torch.Tensor:
    """Fill `out` chunk by chunk where torch.bmm would fill it as it is; else leave it to torch.bmm."""
    shape = (input.shape[0], input.shape[1], mat2.shape[2])
    tracked = torch.is_grad_enabled() and (input.requires_grad or mat2.requires_grad or out.requires_grad)
    if out.shape != shape or out.dtype != input.dtype or out.device != input.device or tracked:
        return torch.bmm(input, mat2, out=out)
    for part, left, right in zip(out.split(step), input.split(step), mat2.split(step)):
        torch.bmm(left, right, out=part)
    return out


def _fill(input: torch.Tensor, mat2: torch.Tensor, step: int) -> torch.Tensor:
    """`out=` is not recorded, here where nothing is to be, and autocast leaves it alone."""
    out = input.new_empty(input.shape[0], input.shape[1], mat2.shape[2])
    for part, left, right in zip(out.split(step), input.split(step), mat2.split(step)):
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
