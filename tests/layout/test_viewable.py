"""The stride rule against `Tensor.view`, on layouts whose sizes are symbols and whose rank may be unknown."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from codemod.layout.layout import Dim, Layout, Pack, contiguous, dim_atom
from codemod.layout.ops.indexing import At, Item, index
from codemod.layout.ops.indexing import Slice as Cut
from codemod.layout.ops.views import transpose
from codemod.layout.size import (
    INFER,
    ONE,
    UNKNOWN,
    Answer,
    Atom,
    Size,
    are_chosen_apart,
    equal,
    is_at_most,
    is_less,
    product,
)
from codemod.layout.viewable import Legality, Target, judge, viewed

ATOMS = [dim_atom("x", i, is_free=True) for i in range(3)] + [
    Atom("heads"),
    dim_atom("x", -1, is_free=True),
    Pack("x", 2, 1, is_free=True).atom,
]


@st.composite
def polynomials(draw: st.DrawFn) -> Size:
    terms = draw(st.lists(st.tuples(st.integers(-2, 3), st.lists(st.sampled_from(ATOMS), max_size=2)), max_size=3))
    total = Size.of(0)
    for coefficient, atoms in terms:
        total = total + Size.of(coefficient) * product(Size.of(atom) for atom in atoms)
    return total


def number(size: Size, values: Mapping[Atom, int]) -> int | None:
    """The size where the symbols have these values; None where one has none."""
    return size.at({atom: Size.of(value) for atom, value in values.items()}).constant


values_of_atoms = st.fixed_dictionaries({atom: st.integers(1, 7) for atom in ATOMS})


@settings(deadline=None)
@given(polynomials(), polynomials(), values_of_atoms)
def test_arithmetic_is_that_of_numbers(left: Size, right: Size, values: dict[Atom, int]) -> None:
    a, b = number(left, values), number(right, values)
    assert a is not None and b is not None
    assert number(left + right, values) == a + b
    assert number(left - right, values) == a - b
    assert number(left * right, values) == a * b
    quotient = left.divided_by(right)
    if quotient.terms is not None and b:
        assert number(quotient, values) == a / b


@settings(deadline=None)
@given(polynomials(), polynomials(), values_of_atoms)
def test_answers_hold_for_all_sizes(left: Size, right: Size, values: dict[Atom, int]) -> None:
    a, b = number(left, values), number(right, values)
    assert a is not None and b is not None
    if equal(left, right) is Answer.YES:
        assert a == b
    assert not is_at_most(left, right) or a <= b
    if all(value > 1 for value in values.values()):
        assert is_less(left, right) is not Answer.YES or a < b
        assert is_less(left, right) is not Answer.NO or a >= b
    if are_chosen_apart(left, right):
        assert equal(left, right) is Answer.NO


@st.composite
def tensors(draw: st.DrawFn) -> tuple[Layout, torch.Tensor, dict[Atom, int]]:
    """A tensor, what is known of it, and the values of the symbols; of `x` not even the rank need be known."""
    sizes = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5]), min_size=2, max_size=4))
    rank = len(sizes)
    tensor = torch.arange(prod(sizes)).reshape(sizes)
    knows_rank = draw(st.booleans())
    atoms = [dim_atom("x", i, is_free=True) for i in range(rank)]
    least = draw(st.integers(0, rank))
    hidden = Layout((Dim(Size.of(Pack("x").atom), ONE, Pack("x", merged=True, least=least)),))
    layout = contiguous([Size.of(atom) for atom in atoms]) if knows_rank else hidden
    values = dict(zip(atoms, sizes, strict=True))
    for front in range(rank + 1):
        for back in range(rank + 1 - front):
            values[Pack("x", front, back).atom] = prod(sizes[front : rank - back])
    values |= {dim_atom("x", i - rank): size for i, size in enumerate(sizes)}
    for step in draw(st.lists(st.sampled_from(["transpose", "first", "cut"]), max_size=2)):
        changed, result = _changed(step, layout, tensor, draw)
        if changed is not None:
            layout, tensor = changed, result
    return layout, tensor, values


def _changed(step: str, layout: Layout, tensor: torch.Tensor, draw: st.DrawFn) -> tuple[Layout | None, torch.Tensor]:
    rank = tensor.dim()
    if step == "transpose" and rank >= 2:
        i, j = draw(st.integers(0, rank - 1)), draw(st.integers(0, rank - 1))
        return transpose(layout, i, j), tensor.transpose(i, j)
    key: Item = At(Size.of(0)) if step == "first" else Cut(ONE, None, None)
    if rank < 2 or tensor.shape[0] < 1 or tensor.shape[1] < 2:
        return None, tensor
    outcome = index(layout, (Cut(None, None, None), key))
    return (outcome[0] if outcome else None), tensor[:, 0] if step == "first" else tensor[:, 1:]


@st.composite
def targets(draw: st.DrawFn, layout: Layout) -> Target:
    """Runs of the dims, merged; a pack as it is, or folded with its neighbours; perhaps a `-1`."""
    items: list[Size | Pack] = []
    dims = list(layout.dims)
    while dims:
        count = draw(st.integers(1, len(dims)))
        run, dims = dims[:count], dims[count:]
        if count == 1 and run[0].pack is not None and draw(st.booleans()):
            items.append(run[0].pack)
        else:
            items.append(product(dim.size for dim in run))
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), ONE)
    plain = [i for i, item in enumerate(items) if isinstance(item, Size)]
    if plain and draw(st.booleans()):
        items[draw(st.sampled_from(plain))] = INFER
    return Target(tuple(items))


@st.composite
def targets_with_a_name(draw: st.DrawFn, layout: Layout) -> tuple[Target, int | None]:
    """One size may be spelled by a name that the layout does not know."""
    target = draw(targets(layout))
    plain = [i for i, item in enumerate(target.items) if isinstance(item, Size) and item not in (INFER, ONE)]
    if INFER in target.items or not plain or draw(st.booleans()):
        return target, None
    return target, draw(st.sampled_from(plain))


@st.composite
def targets_in_part(draw: st.DrawFn, target: Target) -> Target:
    """Some sizes may not be known at all."""
    hidden = draw(st.sets(st.integers(0, len(target.items)), max_size=2)) if draw(st.booleans()) else set()
    items = enumerate(target.items)
    return Target(
        tuple(UNKNOWN if i in hidden and isinstance(item, Size) and item != ONE else item for i, item in items)
    )


FOREIGN = Atom("width")


def _named(target: Target, at: int | None, values: dict[Atom, int]) -> Target:
    """The target with size `at` under another name, whose value is then known too."""
    if at is None:
        return target
    item = target.items[at]
    assert isinstance(item, Size)
    value = number(item, values)
    if value is None:
        return target
    values[FOREIGN] = value
    return Target((*target.items[:at], Size.of(FOREIGN), *target.items[at + 1 :]))


def _asked(target: Target, values: Mapping[Atom, int], sizes: list[int]) -> list[int] | None:
    found: list[int] = []
    for item in target.items:
        if isinstance(item, Pack):
            found += sizes[item.front : len(sizes) - item.back]
            continue
        value = number(item, values)
        if value is None:
            return None
        found.append(value)
    return found


@settings(max_examples=800, deadline=None)
@given(st.data())
def test_views_are_legal_and_laid_out_as_claimed(data: st.DataObject) -> None:
    layout, tensor, values = data.draw(tensors())
    target, at = data.draw(targets_with_a_name(layout))
    target = _named(target, at, values)
    sizes = [values[dim_atom("x", i)] for i in range(4) if dim_atom("x", i) in values]
    asked = _asked(target, values, sizes)
    if asked is None:
        return
    target = data.draw(targets_in_part(target))
    legality = judge(layout, target).legality
    try:
        result = tensor.view(asked)
    except RuntimeError as error:
        if "view size is not compatible" in str(error):
            assert legality is not Legality.LEGAL
        return
    given_sizes = [number(dim.size, values) or 0 for dim in layout.dims]
    is_plain = all(size > 1 for size in (*given_sizes, *sizes))  # a size of 1 hides what cannot be merged
    assert legality is not Legality.REFUSED or not is_plain
    claimed = viewed(layout, target)
    if claimed is None:
        return
    claimed = claimed.of_rank(result.dim())
    if claimed.rank != result.dim():
        return
    for dim, size, stride in zip(claimed.dims, result.shape, result.stride(), strict=True):
        assert number(dim.size, values) in (None, size)
        if size > 1 and result.numel() and (is_plain or legality is Legality.LEGAL):
            assert number(dim.stride, values) in (None, stride)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_refusal_of_quotients_has_a_witness(data: st.DataObject) -> None:
    """Dims split into windows, permuted and merged again: refused where torch refuses inputs without a rest."""
    b, h, w, window = (Size.of(Atom(name)) for name in ("b", "h", "w", "window"))
    rows, columns = (Size.of(Atom(f"({size})//(window)", quotient=(size, window))) for size in (h, w))
    sizes = [b, rows, window, columns, window]
    order = data.draw(st.permutations(range(5)))
    layout = Layout(tuple(contiguous(sizes).dims[i] for i in order))
    wanted = data.draw(st.permutations([b, h, w]))
    count = data.draw(st.integers(1, 3))
    items = [*wanted[:count], INFER] if count < 3 else wanted
    value = {"b": 2, "h": 6, "w": 15, "window": 3}
    tensor = torch.zeros(2, 2, 3, 5, 3).permute(order)
    asked = [-1 if item == INFER else value[str(item)] for item in items]
    legality = judge(layout, Target(tuple(items))).legality
    try:
        tensor.view(asked)
    except RuntimeError:
        assert legality is not Legality.LEGAL
    else:
        assert legality is not Legality.REFUSED
