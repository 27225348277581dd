"""Calls an op rule with abstract values: binds the arguments, asks the rule once a world, names what is fresh."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as Namespace
from dataclasses import field, replace
from itertools import product as combinations
from math import prod

from codemod.layout.layout import Dim, Layout, Pack, World, any_of, stride_atom, unknown
from codemod.layout.ops.rule import REQUIRED, Alias, AnyNumber, Fields, Outcome, Parameter, Parts, Rule
from codemod.layout.origin import Origin, OriginKind
from codemod.layout.record import record
from codemod.layout.size import UNKNOWN, Atom, Size
from codemod.layout.value import (
    MERGED,
    Choice,
    Condition,
    Constant,
    Foreign,
    Mapping,
    Number,
    Repeated,
    Several,
    Shape,
    Spread,
    Step,
    Tensor,
    Unknown,
    Value,
    choose,
    fewer,
    options,
)
from codemod.layout.viewable import Target

COMBINATIONS_AT_MOST = 8


@record(frozen=True, slots=True)
class Place:
    """Which call it is: `key` names it once for each path and round of a loop."""

    key: str
    line: int
    node: ast.expr
    label: str = ""
    texts: dict[ast.AST, str] = field(default_factory=dict, compare=False)
    """Ops spelled before, by their node."""

    @property
    def text(self) -> str:
        """The op for the reader: `transpose(1, 2)`."""
        if self.label:
            return self.label
        if self.node not in self.texts:
            self.texts[self.node] = _spell(self.node)
        return self.texts[self.node]


def _spell(node: ast.expr) -> str:
    match node:
        case ast.Call(func=function, args=args, keywords=keywords):
            name = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
            inside = ", ".join([*map(ast.unparse, args), *(f"{k.arg}={ast.unparse(k.value)}" for k in keywords)])
            return f"{name}({inside if len(inside) <= 40 else '...'})"
        case ast.Subscript(slice=index):
            return f"[{ast.unparse(index)[:40]}]"
        case ast.Attribute(attr=name):
            return f".{name}"
        case _:
            return ast.unparse(node)[:40]


def lift(
    rule: Rule,
    positional: Sequence[Value],
    keywords: Namespace[str, Value],
    place: Place,
    constructor: Namespace[str, Value] | None = None,
) -> Value:
    """The value of the call; an Unknown where the arguments do not fit the rule.

    `constructor` holds the bound constructor arguments where the rule is that of a torch.nn module.
    """
    bound = bind(rule.parameters, positional, keywords)
    if bound is None:
        return Unknown(f"the arguments of `{place.text}`", place.line)
    bound |= constructor or {}
    if not any(isinstance(value, Choice) for value in bound.values()):
        return _lift_one(rule, bound, place)
    names, given = list(bound), list(bound.values())
    for is_merged in MERGED:
        if not _are_few(given):
            given = [fewer(value, is_merged) for value in given]
    if not _are_few(given) and rule.alias is Alias.NEVER:  # what holds for any of them
        return _lift_one(rule, dict(zip(names, given, strict=True)), place)
    if not _are_few(given):
        return Unknown(f"the arguments of `{place.text}` differ by the path taken", place.line)
    return choose(
        (_lift_one(rule, dict(zip(names, values, strict=True)), place), when) for values, when in _cases(given)
    )


def bind(
    parameters: Sequence[Parameter], positional: Sequence[Value], keywords: Namespace[str, Value]
) -> dict[str, Value] | None:
    """The values by parameter name; None where they do not fit.  Left-out ones are not in it."""
    bound: dict[str, Value] = {}
    rest = list(positional)
    for parameter in parameters:
        if parameter.is_rest:
            rest = []
        if parameter.is_keyword_only or not rest or parameter.kind == "World":
            continue
        if parameter.kind in ("Indices", "Shape", "Tensors") and not _is_sequence(rest[0]):
            bound[parameter.name] = Several(tuple(rest))
            rest = []
        else:
            bound[parameter.name] = rest.pop(0)
    names = {parameter.name for parameter in parameters} if keywords else ()
    for name, value in keywords.items():
        known = name if name in names else _ALIASES.get(name, name)
        if known in names and known not in bound:
            bound[known] = value
    return None if rest else bound


_ALIASES = {
    "axis": "dim",
    "axis0": "dim0",
    "axis1": "dim1",
    "size": "shape",
    "other": "mat2",
    "x": "input",
    "keepdims": "keepdim",
}
"""Other names that torch takes for a parameter."""


def _is_sequence(value: Value) -> bool:
    return isinstance(value, Several | Shape | Repeated) or (
        isinstance(value, Choice) and all(_is_sequence(option) for option, _ in value.options)
    )


def _are_few(values: Sequence[Value]) -> bool:
    return prod(len(options(value)) for value in values) <= COMBINATIONS_AT_MOST


def _cases(values: Sequence[Value]) -> Iterator[tuple[tuple[Value, ...], frozenset[Condition]]]:
    """Every combination of alternatives that can happen together."""
    for case in combinations(*(options(value) for value in values)):
        when = frozenset().union(*(conditions for _, conditions in case)) if case else frozenset()
        if not any((text, not held) in when for text, held in when):
            yield tuple(value for value, _ in case), when


def _lift_one(rule: Rule, bound: Namespace[str, Value], place: Place) -> Value:
    default = _ask(rule, bound, World.DEFAULT, place)
    tensors = [value for value in _tensors(bound.values()) if isinstance(value, Tensor)]
    is_settled = not rule.knows_world and all(value.default is value.any for value in tensors)
    for name in rule.layouts:
        value = bound.get(name)
        is_settled = is_settled and (value is None or isinstance(value, Tensor | Number | Constant))
    other = default if is_settled else _ask(rule, bound, World.ANY, place)
    source = tensors[0] if tensors else None
    return combine(rule, default, other, source, tensors, place)


def _ask(rule: Rule, bound: Namespace[str, Value], world: World, place: Place) -> Outcome:
    arguments: dict[str, object] = {}
    for parameter in rule.parameters:
        name = parameter.name
        if name in bound:
            arguments[name] = _CONVERTERS.get(parameter.kind, _as_it_is)(bound[name], world, place)
        elif parameter.kind == "World":
            arguments[name] = world
        elif parameter.default is REQUIRED and not parameter.is_rest:
            return None
    return rule.function(**arguments)


def _as_it_is(value: Value, world: World, place: Place) -> Value:
    return value


def _as_layout_or_none(value: Value, world: World, place: Place) -> Layout | None:
    return None if isinstance(value, Constant) and value.value is None else as_layout(value, world, place)


def _as_flag(value: Value, world: World, place: Place) -> bool | None:
    return value.value if isinstance(value, Constant) and isinstance(value.value, bool) else None


def _as_text(value: Value, world: World, place: Place) -> str | None:
    return value.value if isinstance(value, Constant) and isinstance(value.value, str) else None


_ALL_BITS = 0xFFFF_FFFF_FFFF_FFFF
_SCALARS = frozenset({"float", "bool", "a plain value", "a number", "a truth value"})


def as_layout(value: Value, world: World, place: Place) -> Layout:
    """Of what is not a tensor that is followed: a number is one without dims, the rest is unknown in both worlds."""
    if isinstance(value, Tensor):
        return value.layout(world)
    if isinstance(value, Number | Constant) or (isinstance(value, Foreign) and value.kind in _SCALARS):
        return Layout(())
    if isinstance(value, Foreign) and value.array is not None:
        return value.array.layout(world)
    if isinstance(value, Choice) and (common := _common(value, world, place)) is not None:
        return common
    if not isinstance(value, Unknown):
        value = Unknown(f"an argument of `{place.text}`", place.line, f"{place.key}?{hash(value) & _ALL_BITS:x}")
    return value.laid_out(value.name or f"{place.key}?{hash(value) & _ALL_BITS:x}", world)


def _common(value: Choice, world: World, place: Place) -> Layout | None:
    """What holds for all alternatives, which are tensors."""
    layouts = list(dict.fromkeys(o.layout(world) if isinstance(o, Tensor) else None for o, _ in value.options))
    found = [layout for layout in layouts if layout is not None]
    if len(found) < len(layouts) or len(found) == 1:
        return found[0] if found and len(layouts) == 1 else None
    owner = f"{place.key}?{hash(value) & _ALL_BITS:x}"
    if len({layout.rank for layout in found}) == 1:
        return any_of(found, owner)
    return unknown(owner, world=World.DEFAULT) if all(layout.is_contiguous for layout in found) else None


def as_layouts(value: Value, world: World, place: Place) -> tuple[Layout, ...] | None:
    match value:
        case Several(items):
            return tuple(as_layout(item, world, place) for item in items)
        case Mapping(items):
            return tuple(as_layout(item, world, place) for _, item in items)
        case Repeated(item) if all(isinstance(option, Tensor) for option, _ in options(item)):
            return AnyNumber(option.layout(world) for option, _ in options(item) if isinstance(option, Tensor))
        case _:
            return None


def _as_each(value: Value, world: World, place: Place) -> tuple[Layout, ...] | None:
    """One alone that is not followed may well be a list of them."""
    if isinstance(value, Several) and len(value.items) == 1 and isinstance(value.items[0], Unknown):
        return None
    return as_layouts(value, world, place)


def as_index(value: Value) -> int | None:
    return value.size.constant if isinstance(value, Number) else None


def as_indices(value: Value) -> tuple[int, ...] | None:
    if isinstance(value, Number):
        index = as_index(value)
        return None if index is None else (index,)
    if not isinstance(value, Several | Shape):
        return None
    found = [
        item.constant if isinstance(item, Size) else as_index(item) if not isinstance(item, Pack) else None
        for item in value.items
    ]
    return None if None in found else tuple(i for i in found if i is not None)


def as_size(value: Value) -> Size:
    """An unannotated parameter or an attribute may well be a size: it gets the symbol of its name."""
    match value:
        case Number(size):
            return size
        case Unknown(number=Size() as number) | Tensor(number=Size() as number):
            return number
        case Unknown(name=name) if name:
            return Size.of(Atom(name))
        case Choice(alternatives, name):
            sizes = {as_size(option) for option, _ in alternatives}
            return sizes.pop() if len(sizes) == 1 else Size.of(Atom(name)) if name else UNKNOWN
        case _:
            return UNKNOWN


def as_target(value: Value) -> Target | None:
    match value:
        case Shape(items):
            return Target(items)
        case Several(items):
            found: list[Size | Pack] = []
            for item in items:
                if isinstance(item, Spread):
                    found.append(item.pack)
                elif isinstance(item, Several | Repeated | Shape):
                    return None
                else:
                    found.append(as_size(item))
            return Target(tuple(found))
        case _:
            return None


_CONVERTERS: dict[str, Callable[[Value, World, Place], object]] = {
    "Layout": as_layout,
    "Layout | None": _as_layout_or_none,
    "Layouts": as_layouts,
    "Layouts | None": as_layouts,
    "Tensors": _as_each,
    "Index": lambda value, world, place: as_index(value),
    "Indices": lambda value, world, place: as_indices(value),
    "Dims": lambda value, world, place: as_indices(value),
    "Shape": lambda value, world, place: as_target(value),
    "Extent": lambda value, world, place: as_size(value),
    "Flag": _as_flag,
    "Text": _as_text,
}
"""By the annotation of the parameter; `X | None` is converted as X."""


def _tensors(values: Iterable[Value]) -> Iterator[Value]:
    for value in values:
        match value:
            case Several(items):
                yield from _tensors(items)
            case Repeated(item):
                yield from _tensors([item])
            case Mapping(items):
                yield from _tensors([item for _, item in items])
            case _:
                yield value


def combine(
    rule: Rule,
    default: Outcome,
    other: Outcome,
    source: Tensor | None,
    tensors: Sequence[Tensor],
    place: Place,
) -> Value:
    """The value of what a rule said in both worlds; `source` is the tensor that the result may share storage with."""
    match default, other:
        case (Size(), _):
            return Number(default if default.terms is not None else Size.of(Atom(place.key)))
        case (Target(items), _):
            return Shape(items)
        case (Parts(layout, size, dim), Parts(free, _, _)):
            return Repeated(_tensor(rule, layout, free, source, tensors, place), (size, dim))
        case (Fields(items), Fields(free_items)):
            return Mapping(
                tuple(
                    (name, _tensor(rule, a, b, source, tensors, _numbered(place, name)))
                    for (name, a), (_, b) in zip(items, free_items, strict=True)
                )
            )
        case (tuple(), tuple()):
            # as many results as operands: each shares storage with the one at its place
            sources = tensors if len(tensors) == len(default) else [source] * len(default)
            pairs = enumerate(zip(default, other, sources, strict=False))
            return Several(tuple(combine(rule, a, b, of, tensors, _numbered(place, str(i))) for i, (a, b, of) in pairs))
        case _:
            return _tensor(rule, _layout(default), _layout(other), source, tensors, place)


def _layout(outcome: Outcome) -> Layout | None:
    return outcome if isinstance(outcome, Layout) else None


def _numbered(place: Place, suffix: str) -> Place:
    return replace(place, key=f"{place.key}.{suffix}")


def _tensor(
    rule: Rule,
    default: Layout | None,
    other: Layout | None,
    source: Tensor | None,
    tensors: Sequence[Tensor],
    place: Place,
) -> Tensor:
    first = _named(default, World.DEFAULT, tensors, place)
    is_settled = other is default and all(tensor.any is tensor.default for tensor in tensors)
    second = first if is_settled else _named(other, World.ANY, tensors, place)
    if second == first:
        second = first  # what is the same object is not asked about twice
    history = _history(source, first, place)
    if rule.alias is Alias.NEVER or source is None:
        return Tensor(first, second, history, storages=frozenset((place.key,)))
    storages = source.storages | {place.key} if rule.alias is Alias.MAYBE else source.storages
    return Tensor(first, second, history, source.views, storages)


def _history(source: Tensor | None, result: Layout, place: Place) -> Step | None:
    """The chain that explains the strides, grown by this op where it changed sizes or strides."""
    if source is not None and (source.default is result or source.default == result):
        return source.history
    return Step(place, result, source.history if source else None)


def _named(layout: Layout | None, world: World, tensors: Sequence[Tensor], place: Place) -> Layout:
    """The rule's answer with a symbol for everything that it left open."""
    if layout is not None and layout.is_named:
        return layout
    origins = tuple({origin: None for value in tensors for origin in value.layout(world).origins}) or _unfollowed(place)
    if layout is None:
        return unknown(place.key, origins)
    symbols: dict[Atom, Atom] = {}
    return Layout(tuple([_name_dim(dim, i, origins, symbols, place) for i, dim in enumerate(layout.dims)]))


def _unfollowed(place: Place) -> tuple[Origin, ...]:
    return (Origin(OriginKind.OP, f"the layout of what `{place.text}` returns", place.line),)


def _name_dim(dim: Dim, i: int, origins: tuple[Origin, ...], symbols: dict[Atom, Atom], place: Place) -> Dim:
    pack = dim.pack
    if pack is not None and not pack.owner:
        pack = replace(pack, owner=place.key)
    if dim.size.terms is None:
        size = Size.of(pack.atom if pack else Atom(f"{place.key}#{i}"))
    else:
        size = _place_atoms(dim.size, symbols, place)
    if dim.stride.terms is None:
        stride = stride_atom(place.key, i, origins)
    else:
        stride = _place_atoms(dim.stride, symbols, place)
    return Dim(size, stride, pack)


def _place_atoms(size: Size, symbols: dict[Atom, Atom], place: Place) -> Size:
    """A symbol that a rule made without owner belongs to this call."""
    if size.is_named:
        return size
    for atom in size.atoms:
        if atom.owner == "" and atom not in symbols:
            origins = atom.origins
            if not all(origin.line for origin in origins):
                origins = tuple([o if o.line else replace(o, line=place.line) for o in origins])
            symbols[atom] = Atom(
                f"{place.key}{atom}",
                atom.kind,
                owner=place.key,
                dim=atom.dim,
                origins=origins,
                is_part=atom.is_part,
                span=atom.span,
            )
    return size.renamed(symbols)
