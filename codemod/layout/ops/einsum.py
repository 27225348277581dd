"""`einsum`: two operands become one bmm over (batch, left, right) letters, whose result is permuted to the output.

Letters without a partner are summed first; where nothing is left to contract, the operands are multiplied.  Which of
the two it is depends on whether a contracted size is 1, and with three operands on the order of contraction.
Source: aten/src/ATen/native/Linear.cpp, einsum and sumproduct_pair.
"""

from __future__ import annotations

from collections.abc import Sequence

from codemod.layout.layout import Dim, Layout, World, restrided
from codemod.layout.ops.rule import Text, op
from codemod.layout.ops.undecided import by_backend, sized
from codemod.layout.record import record
from codemod.layout.size import ONE, UNKNOWN, Answer, Size, equal

_ORDER = "the order in memory that einsum chooses"


@record(frozen=True, slots=True)
class Operand:
    """A tensor and the letter of each of its dims; those of an ellipsis are `.1`, counted from behind."""

    letters: tuple[str, ...]
    layout: Layout

    def dim(self, letter: str) -> Dim:
        return self.layout.dims[self.letters.index(letter)]

    def arranged(self, letters: Sequence[str]) -> Layout:
        """Permuted to `letters`; a letter that it lacks is a dim of size 1."""
        return Layout(tuple(self.dim(k) if k in self.letters else Dim(ONE, ONE) for k in letters))


@op(
    "torch.einsum",
    "torch.functional.einsum",
    examples=(
        "torch.einsum('bij,bkj->bik', x, y)",
        "torch.einsum('bij,bij->bij', x, y)",
        "torch.einsum('bij,bkj->kbi', x, y)",
        "torch.einsum('bhij,bhkj->bihk', image, image)",
        "torch.einsum('bhij,bhkj->bhik', image, image)",
        "torch.einsum('bij->bji', x)",
        "torch.einsum('bij->jb', x)",
        "torch.einsum('bij->', x)",
        "torch.einsum('ij,kj', m, m)",
        "torch.einsum('bij,kj->bik', x, x[0])",
        "torch.einsum('...ij,...kj->...ik', x, y)",
        "torch.einsum('bij,bik->bj', x, y)",
        "torch.einsum('i,j->ij', v, v)",
        "torch.einsum('bij,bij,bij->bj', x, y, z)",
        "torch.einsum('bhij,ij->bh', image, image[0, 0])",
        "torch.einsum('b i j , b k j -> b i k', x, y)",
    ),
)
def einsum(
    equation: Text,
    first: Layout,
    second: Layout | None = None,
    third: Layout | None = None,
    fourth: Layout | None = None,
    *,
    world: World,
) -> Layout | None:
    if equation is None:
        return None
    given = [operand for operand in (first, second, third, fourth) if operand is not None]
    read = _read(equation, given)
    if read is None:
        return None
    operands, output = read
    result = sized([_size(letter, operands) for letter in output])
    if len(operands) == 1:
        return _single(operands[0], output)
    if len(operands) > 2:
        return by_backend(result, _ORDER)
    found = _pair(operands[0], operands[1], output, world)
    return by_backend(result, _ORDER) if found is None else found


def _read(equation: str, layouts: Sequence[Layout]) -> tuple[list[Operand], tuple[str, ...]] | None:
    """The operands with their letters, and the letters of the output; None where that is not followed."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(layouts):
        return None
    operands = []
    for text, layout in zip(texts, layouts, strict=True):
        operand = _spelled(text, layout)
        if operand is None:
            return None
        operands.append(operand)
    counted = sorted(letter for operand in operands for letter in operand.letters)
    dots = tuple(letter for letter in dict.fromkeys(counted) if letter[0] == ".")[::-1]
    if not arrow:
        return operands, (*dots, *(letter for letter in counted if counted.count(letter) == 1 and letter[0] != "."))
    front, ellipsis, back = right.partition("...")
    return operands, (*front, *(dots if ellipsis else ()), *back)


def _spelled(text: str, layout: Layout) -> Operand | None:
    front, ellipsis, back = text.partition("...")
    named = len(front) + len(back)
    if not ellipsis:
        layout = restrided(layout.of_rank(named)) if layout.is_contiguous else layout.of_rank(named)
    if layout.rank is None or layout.rank < named or (layout.rank > named and not ellipsis):
        return None
    dots = tuple(f".{i}" for i in range(layout.rank - named, 0, -1))
    letters = (*front, *dots, *back)
    return Operand(letters, layout) if len(set(letters)) == len(letters) else None


def _size(letter: str, operands: Sequence[Operand]) -> Size:
    sizes = [operand.dim(letter).size for operand in operands if letter in operand.letters]
    return next((size for size in sizes if size != ONE), ONE if sizes else UNKNOWN)


def _single(operand: Operand, output: tuple[str, ...]) -> Layout:
    """A permuted view, or a contiguous sum."""
    arranged = operand.arranged(output)
    return arranged if len(output) == len(operand.letters) else restrided(arranged)


def _pair(left: Operand, right: Operand, output: tuple[str, ...], world: World) -> Layout | None:
    lone = len(left.letters) + len(right.letters)
    left, right = (_summed(one, other, output) for one, other in ((left, right), (right, left)))
    is_summed = len(left.letters) + len(right.letters) < lone
    shared = [letter for letter in left.letters if letter in right.letters]
    contracted = [letter for letter in shared if letter not in output]
    multiplied = _multiplied(left, right, output)
    if not contracted:
        return None if is_summed else multiplied  # a letter of size 1 is not summed but left to the product
    batch, rows, columns = _divided(left, right, output)
    if rows and columns and output.index(columns[-1]) < output.index(rows[0]):
        return None  # newer versions swap the operands here, so that the result is in order
    product = _stored(left, right, (*batch, *rows, *columns), output)
    if world is World.DEFAULT:
        return product
    if any(equal(left.dim(k).size, right.dim(k).size) is not Answer.YES for k in shared):
        return None  # one of them may be 1, and is then taken for a letter of the other operand alone
    if rows and columns and output.index(columns[0]) < output.index(rows[-1]):
        return None  # as above, once a letter has size 1
    if any(_is_above_one(left.dim(letter).size) for letter in contracted):
        return product
    return product if product.is_contiguous and multiplied is not None else None


def _multiplied(left: Operand, right: Operand, output: tuple[str, ...]) -> Layout | None:
    """The contiguous product of contiguous operands that share all letters but the last of each.

    A letter of size 1 may carry one that stands before it past one that stands behind it.
    """
    operands = [operand.arranged(output) for operand in (left, right)]
    is_shared = [letter in left.letters and letter in right.letters for letter in output]
    if not all(operand.is_contiguous for operand in operands) or not all(is_shared[:-2]):
        return None
    sizes = [_size(letter, (left, right)) for letter in output]
    return None if ONE in sizes else sized(sizes)


def _summed(operand: Operand, other: Operand, output: tuple[str, ...]) -> Operand:
    """Without the letters that only it has and the output does not."""
    paired = {k for k in other.letters if other.dim(k).size != ONE or k in output}
    ordered = [*(k for k in output if k in operand.letters), *(k for k in operand.letters if k not in output)]
    kept = tuple(k for k in ordered if k in output or (k in paired and operand.dim(k).size != ONE))
    arranged = operand.arranged(kept)
    is_summed = any(_is_above_one(operand.dim(k).size) for k in operand.letters if k not in kept)
    return Operand(kept, restrided(arranged) if is_summed else arranged)  # a single element is not summed


def _divided(left: Operand, right: Operand, output: tuple[str, ...]) -> tuple[list[str], list[str], list[str]]:
    """The letters of the output that both have, that only the left and that only the right has, size 1 left out."""
    in_left, in_right = (
        [k for k in output if k in operand.letters and operand.dim(k).size != ONE] for operand in (left, right)
    )
    return (
        [k for k in in_left if k in in_right],
        [k for k in in_left if k not in in_right],
        [k for k in in_right if k not in in_left],
    )


def _stored(left: Operand, right: Operand, order: Sequence[str], output: tuple[str, ...]) -> Layout:
    """Contiguous in this order, permuted to that of the output."""
    sizes = {k: _size(k, (left, right)) for k in output}
    stored = dict(zip(order, sized([sizes[k] for k in order]).dims, strict=True))
    return Layout(tuple(stored.get(k, Dim(ONE, ONE)) for k in output))


def _is_above_one(size: Size) -> bool:
    return size.constant is not None and size.constant > 1
