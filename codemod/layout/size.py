"""Symbolic sizes and strides: polynomials with integer coefficients over named atoms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from codemod.layout.lazy import lazy
from codemod.layout.record import record

if TYPE_CHECKING:
    from codemod.layout.origin import Origin


class Answer(Enum):
    """Of a question about symbols: YES for all values, NO for some witness with sizes above 1, else MAYBE."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"


class AtomKind(Enum):
    DIM = "dim"
    """A dim of a tensor whose sizes are not known."""
    OPAQUE = "opaque"
    """A positive integer of which nothing is known: a config attribute, a quotient, a count from data."""
    STRIDE = "stride"
    """A stride that nothing in the source fixes; zero is possible."""


class Atom(str):
    """A symbol.  It is its name, so that monomials hash and sort as strings do."""

    __slots__ = ("below", "dim", "is_free", "is_part", "kind", "origins", "owner", "quotient", "span")

    kind: AtomKind
    owner: str | None
    dim: int
    below: Size | None
    origins: tuple[Origin, ...]
    is_free: bool
    """The caller chooses it: two different free ones can be told apart by an input."""
    is_part: bool
    """How much of a dim a slice, a chunk or a step leaves: may well be 1 by design."""
    span: tuple[int, int] | None
    """(front, back): it is the number of elements of dims `front` to `rank - back`; 1 where there are none."""
    quotient: tuple[Size, Size] | None
    """(left, right): it is `left // right`."""

    def __new__(
        cls,
        name: str,
        kind: AtomKind = AtomKind.OPAQUE,
        *,
        owner: str | None = None,
        dim: int = 0,
        below: Size | None = None,
        origins: tuple[Origin, ...] = (),
        is_free: bool = False,
        is_part: bool = False,
        span: tuple[int, int] | None = None,
        quotient: tuple[Size, Size] | None = None,
    ) -> Atom:
        """`owner` and `dim`: dim `dim` of the tensor `owner`; `below`: strictly smaller than that size."""
        atom = str.__new__(cls, name)
        atom.kind, atom.owner, atom.dim, atom.below, atom.origins = kind, owner, dim, below, origins
        atom.is_free, atom.is_part, atom.span, atom.quotient = is_free, is_part, span, quotient
        return atom


Monomial = tuple[Atom, ...]


@record(frozen=True)
class Size:
    """A sum of monomials; `terms` None is the size of which nothing is known (`UNKNOWN`)."""

    terms: tuple[tuple[Monomial, int], ...] | None

    @staticmethod
    def of(value: int | Atom) -> Size:
        if isinstance(value, Atom):
            return Size((((value,), 1),))
        return Size((((), value),) if value else ())

    @lazy
    def atoms(self) -> frozenset[Atom]:
        return frozenset(atom for monomial, _ in self.terms or () for atom in monomial)

    @lazy
    def is_part(self) -> bool:
        """Just what is left of a dim, of which nothing says that it is more than 1."""
        return self.terms is not None and len(self.terms) == 1 and [a.is_part for a in self.terms[0][0]] == [True]

    @lazy
    def has_stride(self) -> bool:
        """Does it hold a stride that nothing in the source fixes?"""
        return any(atom.kind is AtomKind.STRIDE for atom in self.atoms)

    @lazy
    def is_named(self) -> bool:
        """Known, and every atom has an owner or needs none: an op rule left nothing open."""
        return self.terms is not None and all(atom.owner != "" for atom in self.atoms)

    @lazy
    def constant(self) -> int | None:
        """The value, where it is a number."""
        if self.terms is None:
            return None
        if not self.terms:
            return 0
        (monomial, coefficient), *rest = self.terms
        return coefficient if not rest and not monomial else None

    @lazy
    def _hash(self) -> int:
        return hash(self.terms)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is Size and self.terms == other.terms)

    def __add__(self, other: Size) -> Size:
        if self.terms is None or other.terms is None:
            return UNKNOWN
        return _collect([*self.terms, *other.terms])

    def __neg__(self) -> Size:
        return self if self.terms is None else Size(tuple((m, -c) for m, c in self.terms))

    def __sub__(self, other: Size) -> Size:
        if self.terms is None or other.terms is None:
            return UNKNOWN
        return _collect([*self.terms, *((m, -c) for m, c in other.terms)])

    def __mul__(self, other: Size) -> Size:
        if self.terms is None or other.terms is None:
            return UNKNOWN
        if self is ONE or self.terms == _ONE_TERMS:
            return other
        if other is ONE or other.terms == _ONE_TERMS:
            return self
        if len(self.terms) == 1 and len(other.terms) == 1:
            ((m, c),), ((n, d),) = self.terms, other.terms
            return Size(((_merge(m, n), c * d),))
        return _collect([(_merge(m, n), c * d) for m, c in self.terms for n, d in other.terms])

    def __str__(self) -> str:
        if self.terms is None:
            return "?"
        return " + ".join(_spell(m, c) for m, c in self.terms).replace("+ -", "- ") or "0"

    def divided_by(self, other: Size) -> Size:
        """The exact quotient where `other` is a monomial that divides every term; else UNKNOWN."""
        if self.terms is None or other.terms is None or len(other.terms) != 1:
            return UNKNOWN
        if self == other:
            return ONE
        ((divisor, scale),) = other.terms
        quotient = []
        for monomial, coefficient in self.terms:
            rest = _without(monomial, divisor)
            if rest is None or coefficient % scale:
                return UNKNOWN
            quotient.append((rest, coefficient // scale))
        return _collect(quotient)

    def renamed(self, names: Mapping[Atom, Atom]) -> Size:
        """The polynomial with other symbols for some atoms, no two of which become the same."""
        return Size(
            tuple(sorted((tuple(sorted(names.get(a, a) for a in monomial)), c) for monomial, c in self.terms or ()))
        )

    def at(self, values: Mapping[Atom, Size]) -> Size:
        """The polynomial with some atoms replaced."""
        if self.terms is None or self.atoms.isdisjoint(values):
            return self
        total = ZERO
        for monomial, coefficient in self.terms:
            part = Size.of(coefficient)
            for atom in monomial:
                part = part * values.get(atom, Size.of(atom))
            total = total + part
        return total


_ONE_TERMS: tuple[tuple[Monomial, int], ...] = (((), 1),)
UNKNOWN = Size(None)
ZERO = Size(())
ONE = Size(_ONE_TERMS)
INFER = Size.of(-1)
"""The `-1` of a view's target."""


def part_of(size: Size, dim: int) -> Size:
    """An unknown part of dim `dim`, named by the call that takes it; a large one where callers choose the size."""
    is_large = bool(size.atoms) and all(atom.is_free for atom in size.atoms)
    return Size.of(Atom(f"#{dim}", owner="", dim=dim, is_part=not is_large))


def product(sizes: Iterable[Size]) -> Size:
    total = ONE
    for size in sizes:
        total = total * size
    return total


def equal(left: Size, right: Size) -> Answer:
    """Is it the same number?  NO needs a witness with every size above 1."""
    if left.terms is None or right.terms is None:
        return Answer.MAYBE
    if left == right:
        return Answer.YES
    if left.constant is not None and right.constant is not None:
        return Answer.NO
    if left.has_stride is not right.has_stride:
        return Answer.MAYBE  # what stands on one side only does not cancel
    difference = left - right
    if difference.has_stride or not _is_told_apart(difference):
        return Answer.MAYBE
    if all(atom.is_free for atom in difference.atoms) or _sign(difference, least_pack=1):
        return Answer.NO
    return Answer.MAYBE


def _is_told_apart(difference: Size) -> bool:
    """False where it vanishes with the packs that it holds, or where a pack may hold the other dims in it."""
    packs = {atom: ONE for atom in difference.atoms if atom.span is not None}
    if not packs:
        return True
    return difference.at(packs).terms != () and not any(
        _holds(pack, atom) for pack in packs for atom in difference.atoms
    )


def _holds(pack: Atom, atom: Atom) -> bool:
    """Is it one of the dims that the pack stands for, or another pack of that tensor?"""
    if atom.owner != pack.owner or atom == pack or atom.kind is not AtomKind.DIM or pack.span is None:
        return False
    front, back = pack.span
    return atom.span is not None or (atom.dim >= front if atom.dim >= 0 else -atom.dim > back)


def are_chosen_apart(left: Size, right: Size) -> bool:
    """Can a caller give sizes by which they differ, without breaking what a call that is valid needs?

    Dims of one tensor can be given any sizes; a number that is written out, or a size of another tensor, may be just
    what the dim always is.
    """
    if equal(left, right) is not Answer.NO:
        return False
    difference = left - right
    if left.constant is None and right.constant is None and len({atom.owner for atom in difference.atoms}) == 1:
        return True
    return _sign(difference, least_pack=1) != 0


def is_less(left: Size, right: Size) -> Answer:
    """Is `left < right` for all sizes above 1 (YES), for none (NO)?"""
    if left.terms is None or right.terms is None:
        return Answer.MAYBE
    if left == right:
        return Answer.NO
    if left.has_stride is not right.has_stride:
        return Answer.MAYBE
    difference = right - left
    if difference.has_stride:
        return Answer.MAYBE
    sign = _sign(difference)
    return Answer.YES if sign > 0 else Answer.NO if sign < 0 else Answer.MAYBE


def _sign(size: Size, least_pack: int = 2) -> int:
    """+1 or -1 where the polynomial keeps that sign for all sizes above 1; 0 where that is not shown.

    Each atom becomes 2, a pack `least_pack`, plus a number of at least 0 (a bound `below` becomes the atom plus 1 and
    more): the coefficients of what comes out, and a constant that is not 0, decide.
    """
    bounds = {
        next(iter(atom.below.atoms)): Size.of(atom) + Size.of(Atom(f"{atom}+")) - ONE
        for atom in size.atoms
        if atom.below is not None and len(atom.below.atoms) == 1 and atom.below == Size.of(next(iter(atom.below.atoms)))
    }
    shifted = size.at(bounds)
    shifted = shifted.at({a: Size.of(a) + Size.of(least_pack if a.span else 2) for a in shifted.atoms})
    coefficients = [coefficient for _, coefficient in shifted.terms or ()]
    if not coefficients or not any(not monomial for monomial, _ in shifted.terms or ()):
        return 0
    if all(c > 0 for c in coefficients):
        return 1
    return -1 if all(c < 0 for c in coefficients) else 0


def _collect(terms: Iterable[tuple[Monomial, int]]) -> Size:
    found: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        found[monomial] = found.get(monomial, 0) + coefficient
    kept = [term for term in found.items() if term[1]]
    kept.sort()
    return Size(tuple(kept))


def _merge(left: Monomial, right: Monomial) -> Monomial:
    if not left:
        return right
    return tuple(sorted(left + right)) if right else left


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _spell(monomial: Monomial, coefficient: int) -> str:
    names = "*".join(monomial)
    if not names:
        return str(coefficient)
    if abs(coefficient) == 1:
        return names if coefficient == 1 else f"-{names}"
    return f"{coefficient}*{names}"
