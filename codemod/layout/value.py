"""Abstract values: what an expression may be, as far as the analysis follows it."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as Namespace
from dataclasses import field, replace
from typing import Protocol

from codemod.finding import Reason
from codemod.layout.layout import Layout, Pack, World, any_of, unknown
from codemod.layout.origin import Origin, OriginKind
from codemod.layout.program import Program
from codemod.layout.record import record
from codemod.layout.size import Atom, Size


@record(frozen=True, slots=True)
class Unknown:
    """Not followed; `why` says at what the analysis stopped, in the user's words."""

    why: str
    line: int | None = None
    name: str = ""
    """Two unknown values of one name are the same value: `self.heads`, or the call that it came from."""
    number: Size | None = None
    """What it is if it should be a number."""
    views: frozenset[int] = frozenset()
    """Call ids of the sites with whose results it may share storage."""
    holds: frozenset[int] = frozenset()
    """As `views`, of what it may hold: a write to a list is none to its elements."""
    given: str = ""
    """How a reason tells that a caller chooses its strides: it is a field of an argument, or what an argument returns
    where it is called."""
    is_result: bool = False
    """Returned by an argument that is called: nothing says that it is contiguous by default, as arguments are."""

    def laid_out(self, owner: str, world: World) -> Layout:
        """It as a tensor of unknown rank."""
        if world is World.DEFAULT and self.given and not self.is_result:
            return unknown(owner, world=world)
        kind, text = (OriginKind.CALLER, self.given) if self.given else (OriginKind.UNKNOWN, self.why)
        return unknown(owner, (Origin(kind, text, self.line),))

    def held(self) -> frozenset[int]:
        """The views of what is taken out of it."""
        return self.views | self.holds


class Op(Protocol):
    """A call as a reason tells of it; spelled only then."""

    @property
    def text(self) -> str: ...
    @property
    def line(self) -> int: ...


@record(frozen=True, slots=True)
class Step:
    """One op on the way to a tensor, and what went before."""

    op: Op
    layout: Layout
    """Of the op's result, with everything that the source does not fix contiguous."""
    before: Step | None

    def steps(self) -> tuple[Reason, ...]:
        """The last four ops since all dims could be merged, oldest first."""
        found: list[Reason] = []
        step: Step | None = self
        while step is not None and not step.layout.is_mergeable and len(found) < 4:
            found.append(Reason(step.op.text, line=step.op.line))
            step = step.before
        return tuple(reversed(found))


@record(frozen=True, slots=True)
class Tensor:
    """A tensor under both assumptions, and the storage that it shares."""

    default: Layout
    any: Layout
    history: Step | None = field(default=None, compare=False)
    """How it came to be strided."""
    views: frozenset[int] = frozenset()
    """Call ids of the sites through which it shares storage: a write to it is a write through those."""
    storages: frozenset[str] = frozenset()
    """Names of what it may share storage with; a fresh result has none but its own."""
    number: Size | None = None
    """What it is if it should be a number: nothing but a name tells `x` from `heads` among unannotated parameters."""

    def layout(self, world: World) -> Layout:
        return self.default if world is World.DEFAULT else self.any


@record(frozen=True, slots=True)
class Number:
    """An integer that may be a size."""

    size: Size


@record(frozen=True, slots=True)
class Shape:
    """`x.shape`, or any tuple of integers; a pack stands for dims that are not told apart."""

    items: tuple[Size | Pack, ...]


@record(frozen=True, slots=True)
class Spread:
    """Arguments whose number is not known: `*x.shape[:-1]`."""

    pack: Pack


@record(frozen=True, slots=True)
class Constant:
    """A literal that is not an integer: text, None, a truth value, a float, a slice's Ellipsis."""

    value: str | bytes | float | bool | complex | type(...) | None  # type: ignore[valid-type]


@record(frozen=True, slots=True)
class Several:
    """A tuple or list whose elements are known one by one."""

    items: tuple[Value, ...]


@record(frozen=True, slots=True)
class Leading:
    """A tuple whose first elements are known one by one, and nothing of the rest."""

    items: tuple[Value, ...]
    rest: Unknown


@record(frozen=True, slots=True)
class Repeated:
    """A list of unknown length with one description for all its elements."""

    item: Value
    part_of: tuple[Size, int] | None = None
    """(size, dim) where the elements cut that dim of that size: once two are unpacked, each is smaller."""


@record(frozen=True, slots=True)
class Mapping:
    """A dict or namespace with text keys."""

    items: tuple[tuple[str, Value], ...]


@record(frozen=True, slots=True)
class Qualified:
    """Something named by its import path: `torch.nn.functional.relu`, `numpy`."""

    name: str


@record(frozen=True, slots=True)
class Method:
    """A bound method that has not been called yet: `x.view`."""

    receiver: Value
    name: str


@record(frozen=True, slots=True)
class Function:
    """A function of the user's; `program` is the file that defines it, `bound` its `self`."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    qualified_name: str
    program: Program = field(compare=False)
    bound: Value | None = None
    closure: tuple[tuple[str, Value], ...] = field(default=(), compare=False)
    home: str = field(default="", compare=False)
    """Key of the frame that it closes over."""

    def __hash__(self) -> int:
        return hash((id(self.node), self.bound))


@record(frozen=True, slots=True)
class Class:
    """A class of the user's; `program` is the file that defines it."""

    node: ast.ClassDef
    qualified_name: str
    program: Program = field(compare=False)

    def __hash__(self) -> int:
        return id(self.node)


@record(frozen=True, slots=True)
class Instance:
    """An object of a class of the user's, or `self`; instances of one label are the same object."""

    of: Class
    label: str
    positional: tuple[Value, ...] | None = None
    """What it was made with; None where that is not known."""
    keywords: tuple[tuple[str, Value], ...] = ()
    views: frozenset[int] = frozenset()
    """Sites whose results it was made with: it may keep them."""


@record(frozen=True, slots=True)
class Partial:
    """`functools.partial(function, ...)`, not called yet."""

    function: Value
    positional: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]


@record(frozen=True, slots=True)
class Module:
    """A torch.nn module made with these constructor arguments."""

    name: str
    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    label: str = ""


@record(frozen=True, slots=True)
class Foreign:
    """A value that is certainly not a tensor and not a size; `views` where it shares a tensor's memory."""

    kind: str
    views: frozenset[int] = frozenset()
    array: Tensor | None = None
    """A numpy array's strides, where they are followed, counted in elements."""


DICT = "a dict"
"""Kind of a dict whose items are not followed; its `views` are those of what was put there."""


@record(frozen=True, slots=True)
class Choice:
    """One of several values, by the path taken; `when` are the tests that must hold for each."""

    options: tuple[tuple[Value, frozenset[Condition]], ...]
    name: str = ""
    """Where it was bound, if it may be a number: two of one name are the same number."""


Condition = tuple[str, bool]
"""The text of a test, and how it came out."""

Value = (
    Unknown
    | Tensor
    | Number
    | Shape
    | Spread
    | Constant
    | Several
    | Leading
    | Repeated
    | Mapping
    | Qualified
    | Method
    | Function
    | Class
    | Instance
    | Partial
    | Module
    | Foreign
    | Choice
)

OPTIONS_AT_MOST = 4
"""More alternatives than this are not told apart."""


def options(value: Value) -> tuple[tuple[Value, frozenset[Condition]], ...]:
    return value.options if isinstance(value, Choice) else ((value, frozenset()),)


def each(value: Value, change: Callable[[Value], Value]) -> Value:
    """What `change` makes of the value, or of each of its alternatives."""
    if not isinstance(value, Choice):
        return change(value)
    return choose((change(option), when) for option, when in value.options)


def choose(alternatives: Iterable[tuple[Value, frozenset[Condition]]]) -> Value:
    """One value for all alternatives; equal ones are told once, under what they have in common."""
    given = list(alternatives)
    if len(given) == 1 and not (isinstance(given[0][0], Choice) and given[0][1]):
        return given[0][0]
    found: dict[Value, frozenset[Condition]] = {}
    for value, when in given:
        if not isinstance(value, Choice):
            found[value] = found[value] & when if value in found else when
            continue
        for option, inner in value.options:
            conditions = inner | when
            found[option] = found[option] & conditions if option in found else conditions
    if len(found) == 1:
        return next(iter(found))
    for is_merged in MERGED:
        if len(found) > OPTIONS_AT_MOST:
            found = _fewer(found, is_merged)
        if len(found) > OPTIONS_AT_MOST:
            found = _fewer_unknown(found)
    if len(found) == 1:
        return next(iter(found))
    if len(found) > OPTIONS_AT_MOST:
        if all(isinstance(value, Several | Repeated) for value in found):
            return _any_list(list(found))
        return forgotten(Choice(tuple(found.items())), f"one of {len(found)} values, by the path taken")
    return Choice(tuple(found.items()))


def _fewer(
    found: Namespace[Value, frozenset[Condition]], is_merged: Callable[[Tensor], bool]
) -> dict[Value, frozenset[Condition]]:
    """The alternatives, where some tensors are told as one for each rank."""
    kept: dict[Value, frozenset[Condition]] = {}
    groups: dict[tuple[int | None, int | None], list[Tensor]] = {}
    for value, when in found.items():
        if isinstance(value, Tensor) and is_merged(value):
            groups.setdefault((value.default.rank, value.any.rank), []).append(value)
        else:
            kept[value] = when
    for tensors in groups.values():
        kept[_any_of(tensors)] = frozenset.intersection(*(found[tensor] for tensor in tensors))
    return kept


def _fewer_unknown(found: Namespace[Value, frozenset[Condition]]) -> dict[Value, frozenset[Condition]]:
    """The alternatives, where those that are not followed are told as one."""
    unknown = [value for value in found if isinstance(value, Unknown)]
    kept: dict[Value, frozenset[Condition]] = {v: when for v, when in found.items() if not isinstance(v, Unknown)}
    if unknown:
        one = next((value for value in unknown if not value.given), unknown[0])
        views = frozenset().union(*(value.views for value in unknown))
        holds = frozenset().union(*(value.holds for value in unknown))
        told = replace(one, name="", number=None, views=views, holds=holds)
        kept[told] = frozenset.intersection(*(found[value] for value in unknown))
    return kept


MERGED: tuple[Callable[[Tensor], bool], ...] = (lambda tensor: tensor.default.is_contiguous, lambda _: True)
"""Which tensors are told as one where there are too many alternatives, the first way being tried first."""


def fewer(value: Value, is_merged: Callable[[Tensor], bool]) -> Value:
    """The value with some of its alternatives told as one."""
    if not isinstance(value, Choice):
        return value
    found = tuple(_fewer(dict(value.options), is_merged).items())
    return found[0][0] if len(found) == 1 else Choice(found)


def _any_list(lists: Sequence[Value]) -> Value:
    """Element by element where all are of one length."""
    lengths = {len(value.items) if isinstance(value, Several) else None for value in lists}
    if len(lengths) == 1 and None not in lengths:
        columns = zip(*(parts(value) for value in lists), strict=True)
        return Several(tuple(choose((item, frozenset()) for item in column) for column in columns))
    return Repeated(choose((item, frozenset()) for value in lists for item in parts(value)))


def _any_of(tensors: Sequence[Tensor]) -> Tensor:
    if len(tensors) == 1:
        return tensors[0]
    owner = f"?{next(_numbers)}"  # two choices among the same tensors need not fall on the same one
    is_number = any(tensor.number is not None for tensor in tensors)
    return Tensor(
        any_of([tensor.default for tensor in tensors], owner),
        any_of([tensor.any for tensor in tensors], owner),
        views=frozenset().union(*(tensor.views for tensor in tensors)),
        storages=frozenset().union(*(tensor.storages for tensor in tensors)),
        number=Size.of(Atom(owner)) if is_number else None,
    )


_numbers = itertools.count()


def parts(value: Value) -> Iterable[Value]:
    """The values that it holds."""
    match value:
        case Several(items):
            return items
        case Leading(items, rest):
            return (*items, rest)
        case Mapping(items):
            return [item for _, item in items]
        case Choice(alternatives):
            return [option for option, _ in alternatives]
        case Repeated(item) | Method(item, _):
            return (item,)
        case Partial(function, positional, keywords):
            return (function, *positional, *(item for _, item in keywords))
        case _:
            return ()


def holds_callable(value: Value) -> bool:
    """Is it a function or class of the user's, or a list with one in it?"""
    if isinstance(value, Several):
        return any(map(holds_callable, value.items))
    return isinstance(value, Function | Class)


def views_of(value: Value) -> Iterator[int]:
    """The sites with whose results it shares storage."""
    if isinstance(value, Tensor | Foreign | Unknown | Instance):
        yield from value.views
    if isinstance(value, Unknown):
        yield from value.holds
    for part in parts(value):
        yield from views_of(part)


def forgotten(value: Value, why: str, line: int | None = None, name: str = "") -> Unknown:
    """The value where it is no longer known what it is; a write to it goes on through the same sites."""
    views = written_views(value)
    return Unknown(why, line, name, views=views, holds=frozenset(views_of(value)) - views)


def bound(value: Value, key: str) -> Value:
    """The value as the variable at `key` has it: one of several numbers is the same one wherever it is read."""
    if not isinstance(value, Choice) or not all(_may_be_number(option) for option, _ in value.options):
        return value
    return replace(value, name=key)


def _may_be_number(value: Value) -> bool:
    return isinstance(value, Number | Unknown) or (isinstance(value, Tensor) and value.number is not None)


def written_views(value: Value) -> frozenset[int]:
    """Ids of the calls through which a write to the value goes on; one to a dict changes nothing that it holds."""
    written = [option for option, _ in options(value) if isinstance(option, Tensor | Foreign | Unknown)]
    return frozenset().union(*(o.views for o in written if not (isinstance(o, Foreign) and o.kind == DICT)))


def passed(name: str) -> str:
    """The reason where the caller chooses the strides."""
    return f"a caller may pass a strided `{name}`"


def part_of(value: Value, text: str) -> str:
    """How a reason tells of the strides of `text`, a part of the value; empty where that is not an argument's."""
    if isinstance(value, Unknown) and value.is_result:
        return value.given
    return passed(text) if is_given(value) else ""


def is_given(value: Value) -> bool:
    """Is it an argument as it came, or a part of one?"""
    if isinstance(value, Tensor):
        dims = value.default.dims
        return value.history is None and len(dims) == 1 and dims[0].pack is not None and dims[0].pack.is_free
    return isinstance(value, Unknown) and bool(value.given)


def may_be(value: Value, is_true: bool) -> bool:
    """May a test of it come out so?"""
    return not isinstance(value, Constant) or bool(value.value) is is_true


def is_alike(known: Value, found: Value) -> bool:
    """Do all tensors among what was found lie in memory as one that is known, sizes aside?"""
    if found is known:
        return True
    kinds = {_kind(option) for option, _ in options(known)}
    return all(_kind(option) in kinds for option, _ in options(found))


def _kind(value: Value) -> object:
    """What a loop that leaves it behind can change by another round, as far as views are concerned."""
    match value:
        case Tensor():
            layouts = (value.default, value.any)
            return tuple((x.rank, tuple(s.constant for s in x.sizes), x.boundaries, x.is_contiguous) for x in layouts)
        case Several(items):
            return tuple(map(_kind, items))
        case Leading(items):
            return Leading, tuple(map(_kind, items))
        case Repeated(item):
            return Repeated, frozenset(_kind(option) for option, _ in options(item))
        case Choice():
            return frozenset(_kind(option) for option, _ in value.options)
        case Module(name, positional) if name.endswith(("Sequential", "ModuleList")):
            return tuple(map(_kind, positional))
        case _:
            return type(value)


def without_none(value: Value) -> Value:
    """The value where it is not None."""
    if not isinstance(value, Choice):
        return value
    kept = [(v, when) for v, when in value.options if not (isinstance(v, Constant) and v.value is None)]
    return choose(kept) if kept else value


def without_empty(value: Value) -> Value:
    """The value where it is not an empty list: nothing is taken out of one."""
    if not isinstance(value, Choice):
        return value
    kept = [(v, when) for v, when in value.options if not (isinstance(v, Several) and not v.items) and not _is_bare(v)]
    return choose(kept) if kept else value


def _is_bare(value: Value) -> bool:
    return isinstance(value, Module) and value.name.endswith("ModuleList") and not value.positional


def tensor(layout: Layout, storage: str = "") -> Tensor:
    """A tensor whose layout the source fixes."""
    return Tensor(layout, layout, storages=frozenset({storage} if storage else ()))


def with_views(value: Tensor, views: frozenset[int]) -> Tensor:
    return replace(value, views=value.views | views)
