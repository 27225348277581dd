"""torch.linalg and torch.fft: column-major results, and orders that the library chooses.

Without any choice of backend the factors are column-major: (.., n, m) strides (.., 1, n).
Source: the meta functions in aten/src/ATen/native/BatchLinearAlgebra.cpp.
"""

from __future__ import annotations

from collections.abc import Callable

from codemod.layout.layout import Dim, Layout, World, anonymous, restrided
from codemod.layout.ops.nn import image_norm
from codemod.layout.ops.reductions import positions, reduced
from codemod.layout.ops.rule import Dims, Extent, Fields, Flag, Index, Outcome, op
from codemod.layout.ops.undecided import by_backend, sized
from codemod.layout.ops.window import quotient
from codemod.layout.size import ONE, UNKNOWN, Size
from codemod.layout.value import Constant, Number, Value

_LIBRARY = "the linear algebra library"
_FFT = "the FFT library"


def column_major(layout: Layout, world: World) -> Layout:
    """With these sizes; by default as the meta functions say."""
    found = positions(layout, (-1, -2))
    if found is None or world is World.ANY:
        return by_backend(found[0] if found else layout, _LIBRARY)
    *batch, rows, columns = restrided(found[0]).dims
    return Layout((*batch, Dim(rows.size, ONE), Dim(columns.size, rows.size)))


def _square(input: Layout, size: Size | None = None) -> Layout:
    """(.., n, n) of (.., n, m)."""
    found = positions(input, (-1, -2))
    if found is None:
        return anonymous()
    rows = found[0].sizes[-2] if size is None else size
    return sized([*found[0].dims[:-2], rows, rows])


def _vector(input: Layout) -> Layout:
    """(.., n) of (.., n, m)."""
    found = positions(input, (-1, -2))
    return anonymous() if found is None else sized([*found[0].dims[:-2], found[0].sizes[-2]])


@op(
    *(f"torch.{name}" for name in ("inverse", "linalg.inv", "linalg.cholesky", "cholesky", "cholesky_inverse")),
    *(f".{name}" for name in ("inverse", "cholesky", "cholesky_inverse")),
    examples=(
        "torch.linalg.inv(x @ x.mT + torch.eye(x.shape[1]))",
        "torch.linalg.cholesky(m @ m.t() + torch.eye(m.shape[0]))",
    ),
)
def inverse(input: Layout, world: World, *ignored: Value) -> Layout:
    return column_major(input, world)


@op(
    *(f"torch.linalg.{name}" for name in ("inv_ex", "cholesky_ex", "lu_factor")),
    examples=("torch.linalg.inv_ex(x @ x.mT + torch.eye(x.shape[1]))[0]",),
)
def factor_and_info(input: Layout, world: World, *ignored: Value) -> Outcome:
    return (column_major(input, world), anonymous())


@op(
    "torch.linalg.solve",
    "torch.linalg.solve_triangular",
    examples=(
        "torch.linalg.solve_triangular(m @ m.t() + torch.eye(m.shape[0]), m, upper=False)",
        "torch.linalg.solve(x @ x.mT + torch.eye(x.shape[1]), x)",
        "torch.linalg.solve(x @ x.mT + torch.eye(x.shape[1]), x[..., 0])",
    ),
)
def solve(input: Layout, world: World, mat2: Layout, *ignored: Value) -> Layout:
    """(.., n, n) and (.., n, k) to (.., n, k); a single vector or other batches are not told apart."""
    if mat2.rank is None or mat2.rank != input.rank or mat2.sizes[:-2] != input.sizes[:-2]:
        return by_backend(anonymous(), _LIBRARY)
    return column_major(mat2, world)


@op("torch.linalg.lstsq", examples=("torch.linalg.lstsq(x @ x.mT + torch.eye(x.shape[1]), x).solution",))
def lstsq(input: Layout, mat2: Layout, *ignored: Value) -> Outcome:
    return Fields((("solution", by_backend(anonymous(), _LIBRARY)), ("residuals", None), ("rank", None)))


@op("torch.cholesky_solve", ".cholesky_solve", examples=("torch.cholesky_solve(m, m @ m.t() + torch.eye(m.shape[0]))",))
def cholesky_solve(input: Layout, world: World, input2: Layout, *ignored: Value) -> Outcome:
    return solve(input2, world, input)


@op("torch.linalg.qr", "torch.qr", ".qr", examples=("torch.linalg.qr(x)", "torch.linalg.qr(m)"))
def qr(input: Layout, *ignored: Value) -> Outcome:
    """The reduced sizes need the smaller of two."""
    factor = by_backend(anonymous(), _LIBRARY)
    return Fields((("Q", factor), ("R", factor)))


@op("torch.linalg.svd", examples=("torch.linalg.svd(x)", "torch.linalg.svd(m, full_matrices=False)"))
def svd(input: Layout, *ignored: Value) -> Outcome:
    factor = by_backend(anonymous(), _LIBRARY)
    return Fields((("U", factor), ("S", anonymous()), ("Vh", factor)))


@op("torch.svd", ".svd", examples=("torch.svd(m)", "x.svd().S"))
def svd_of_old(input: Layout, *ignored: Value) -> Outcome:
    factor = by_backend(anonymous(), _LIBRARY)
    return Fields((("U", factor), ("S", anonymous()), ("V", factor)))


@op("torch.linalg.eigh", "torch.linalg.eig", examples=("torch.linalg.eigh(x @ x.mT)",))
def eigh(input: Layout, world: World, *ignored: Value) -> Outcome:
    return Fields((("eigenvalues", _vector(input)), ("eigenvectors", column_major(_square(input), world))))


@op(
    *(f"torch.linalg.{name}" for name in ("eigvals", "eigvalsh")),
    examples=("torch.linalg.eigvalsh(x @ x.mT)",),
)
def eigenvalues(input: Layout, *ignored: Value) -> Layout:
    return _vector(input)


@op("torch.linalg.svdvals", examples=("torch.linalg.svdvals(x)",))
def singular_values(input: Layout, *ignored: Value) -> Layout:
    return anonymous()


@op(
    *(f"torch.linalg.{name}" for name in ("det", "matrix_rank", "cond")),
    "torch.det",
    ".det",
    "torch.logdet",
    ".logdet",
    examples=("torch.linalg.det(x @ x.mT)", "(m @ m.t()).det()"),
)
def determinant(input: Layout, *ignored: Value) -> Layout:
    return reduced(input, (-1, -2))


@op("torch.linalg.slogdet", "torch.slogdet", ".slogdet", examples=("torch.linalg.slogdet(x @ x.mT)",))
def slogdet(input: Layout) -> Outcome:
    found = reduced(input, (-1, -2))
    return Fields((("sign", found), ("logabsdet", found)))


@op("torch.linalg.pinv", "torch.pinverse", ".pinverse", examples=("torch.linalg.pinv(x)", "m.pinverse()"))
def pinv(input: Layout, *ignored: Value) -> Layout:
    """Ends in a matrix product."""
    found = positions(input, (-1, -2))
    return anonymous() if found is None else sized([*found[0].dims[:-2], found[0].dims[-1], found[0].dims[-2]])


@op(
    "torch.linalg.matrix_power",
    "torch.matrix_power",
    ".matrix_power",
    examples=("torch.linalg.matrix_power(x @ x.mT, 3)", "(m @ m.t()).matrix_power(2)"),
)
def matrix_power(input: Layout, n: Index) -> Layout:
    if n is not None and n > 1:
        return restrided(input)
    return restrided(input) if n is not None and n >= 0 and input.is_contiguous else by_backend(input, _LIBRARY)


@op(
    "torch.linalg.matrix_exp",
    "torch.matrix_exp",
    ".matrix_exp",
    examples=("torch.matrix_exp(x @ x.mT)", "torch.linalg.matrix_exp(m @ m.t())"),
)
def matrix_exp(input: Layout) -> Layout:
    return restrided(input) if input.is_contiguous else by_backend(input, _LIBRARY)


@op(
    "torch.linalg.cross",
    "torch.cross",
    ".cross",
    examples=("torch.linalg.cross(x.new_ones(2, 4, 3), x.new_ones(2, 4, 3))",),
)
def cross(input: Layout, mat2: Layout, *ignored: Value) -> Layout:
    if input.sizes == mat2.sizes:
        return restrided(input)
    return anonymous()


def transformed(input: Layout, dim: Dims, size: Callable[[Size], Size], world: World) -> Layout:
    """Along the last dims in order; else in an order that the library chooses."""
    found = positions(input, dim)
    if found is None:
        return by_backend(anonymous(), _FFT)
    layout, chosen = found
    dims = list(layout.dims)
    last = max(chosen)
    dims[last] = Dim(size(dims[last].size), ONE)
    result = sized(dims)
    is_last = input.is_contiguous and chosen == frozenset(range(len(dims) - len(chosen), len(dims)))
    return result if is_last and world is World.DEFAULT else by_backend(result, _FFT)


def _sizes(n: Value | None) -> Callable[[Size], Size]:
    """`n` pads or cuts the signal."""
    if n is None or n == Constant(None):
        return lambda size: size
    number = n.size if isinstance(n, Number) else UNKNOWN
    return lambda size: number


def _half(size: Size) -> Size:
    return quotient(size, Size.of(2)) + ONE


@op(
    *(f"torch.fft.{name}" for name in ("fft", "ifft")),
    examples=("torch.fft.fft(x)", "torch.fft.fft(x, dim=1)", "torch.fft.ifft(x, 6)"),
)
def fft(input: Layout, n: Value | None = None, dim: Dims = (-1,), *ignored: Value, world: World) -> Layout:
    return transformed(input, dim, _sizes(n), world)


@op(
    *(f"torch.fft.{name}" for name in ("rfft", "ihfft")),
    examples=("torch.fft.rfft(x)", "torch.fft.rfft(x, dim=0)", "torch.fft.rfft(x, 7)"),
)
def rfft(input: Layout, n: Value | None = None, dim: Dims = (-1,), *ignored: Value, world: World) -> Layout:
    return transformed(input, dim, lambda size: _half(_sizes(n)(size)), world)


@op(
    *(f"torch.fft.{name}" for name in ("irfft", "hfft")),
    examples=("torch.fft.irfft(torch.fft.rfft(x.new_ones(2, 3, 8)))", "torch.fft.irfft(x.new_ones(2, 3, 5), n=8)"),
)
def irfft(input: Layout, n: Value | None = None, dim: Dims = (-1,), *ignored: Value, world: World) -> Layout:
    is_given = n is not None and n != Constant(None)
    return transformed(input, dim, _sizes(n) if is_given else lambda size: size + size - Size.of(2), world)


def _of_many(kind: str, default: tuple[int, ...] | None) -> Callable[..., Outcome]:
    sizes: dict[str, Callable[[Size], Size]] = {
        "": lambda size: size,
        "r": _half,
        "ir": lambda size: size + size - Size.of(2),
    }

    def fft_of_many(
        input: Layout, s: Value | None = None, dim: Dims = default, *ignored: Value, world: World
    ) -> Layout:
        if s is not None and s != Constant(None):
            return by_backend(anonymous(), _FFT)
        if dim is None and input.rank is not None:
            dim = tuple(range(input.rank))
        return transformed(input, dim, sizes[kind], world)

    return fft_of_many


for _kind, _names in {"": ("fft", "ifft"), "r": ("rfft",), "ir": ("irfft",)}.items():
    op(*(f"torch.fft.{name}2" for name in _names), examples=(f"torch.fft.{_names[0]}2(image.new_ones(2, 3, 4, 5))",))(
        _of_many(_kind, (-2, -1))
    )
    op(*(f"torch.fft.{name}n" for name in _names), examples=(f"torch.fft.{_names[0]}n(x.new_ones(2, 3, 5))",))(
        _of_many(_kind, None)
    )


@op(
    "torch.fft.fftshift",
    "torch.fft.ifftshift",
    examples=("torch.fft.fftshift(x)", "torch.fft.ifftshift(image, dim=(2, 3))"),
)
def fftshift(input: Layout, *ignored: Value, world: World) -> Layout:
    """`roll`: contiguous or channels_last."""
    return restrided(input) if input.rank in (1, 2, 3) else image_norm(input, world)


@op("torch.fft.fftfreq", "torch.fft.rfftfreq", examples=("torch.fft.fftfreq(5)", "torch.fft.rfftfreq(6, d=0.5)"))
def fftfreq(n: Extent, *ignored: Value) -> Layout:
    return sized([UNKNOWN])


@op(
    "torch.quantile",
    ".quantile",
    "torch.nanquantile",
    ".nanquantile",
    examples=("torch.quantile(x, 0.5)", "x.quantile(0.5, dim=1)", "x.quantile(0.5, -1, keepdim=True)"),
)
def quantile(input: Layout, q: Value, dim: Dims = (), keepdim: Flag = False) -> Layout | None:
    return reduced(input, dim, keepdim) if isinstance(q, Constant | Number) else None
