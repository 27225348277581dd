"""`value[index]`, and the elements that a loop takes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from codemod.layout.frame import Frame
from codemod.layout.layout import Dim, Layout, Pack, World
from codemod.layout.ops.indexing import At, By, Item, NewAxis, Rest, Slice, index
from codemod.layout.ops.lift import Place, as_layout, as_size, combine
from codemod.layout.ops.rule import Alias, Rule
from codemod.layout.program import dotted
from codemod.layout.size import ONE, UNKNOWN, Atom, Size
from codemod.layout.value import (
    DICT,
    Choice,
    Constant,
    Foreign,
    Instance,
    Leading,
    Mapping,
    Module,
    Number,
    Repeated,
    Several,
    Shape,
    Tensor,
    Unknown,
    Value,
    choose,
    each,
    forgotten,
    holds_callable,
    part_of,
    views_of,
    without_empty,
)


def subscript(value: Value, node: ast.Subscript, frame: Frame) -> Value:
    """`value[...]`; the index is evaluated once."""
    keys = [_key(part, frame) for part in (node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice])]
    return each(without_empty(value), lambda option: _of_one(option, keys, node, frame))


def _of_one(value: Value, keys: list[Item | Value], node: ast.Subscript, frame: Frame) -> Value:
    key = keys[0] if len(keys) == 1 else None
    match value:
        case Tensor():
            return _index_tensor(value, keys, node, frame)
        case Shape():
            return _index_shape(value, key, node, frame)
        case Several(items):
            return _index_sequence(value, items, key, node, frame)
        case Leading():
            return _index_leading(value, key, node, frame)
        case Repeated(item):
            return value if isinstance(key, Slice) else item
        case Mapping(items) if isinstance(key, Constant):
            return dict(items).get(str(key.value)) or _unknown(value, node, frame)
        case Mapping(items):
            more = [frame.unfollowed(node)] if any(holds_callable(item) for _, item in items) else []  # a registry
            return _index_sequence(value, (*(item for _, item in items), *more), key, node, frame)
        case Foreign() if value.kind == DICT:
            return of_dict(value, node, frame)
        case Foreign(views=views):
            return Foreign("an element", views)
        case Instance() if (method := frame.interpreter.method(value.of, "__getitem__")) is not None:
            item = frame.value(node.slice)
            return frame.interpreter.call_function(replace(method, bound=value), [item], {}, node, frame)
        case Module(_, positional) if any(isinstance(item, Repeated) for item in positional):
            return _unknown(value, node, frame) if isinstance(key, Slice) else _any_part(positional)
        case Module(name, positional) if name.endswith(("Sequential", "ModuleList")):
            return _index_sequence(value, positional, key, node, frame)
        case _:
            return _unknown(value, node, frame)


def _any_part(items: Sequence[Value]) -> Value:
    return choose((item.item if isinstance(item, Repeated) else item, frozenset()) for item in items)


def of_dict(value: Foreign, node: ast.expr, frame: Frame) -> Value:
    """Something out of a dict that is not followed: a write to it goes on through what was put there."""
    return replace(frame.unfollowed(node), views=value.views)


def _unknown(value: Value, node: ast.Subscript, frame: Frame) -> Value:
    key = frame.spell(node.slice)
    if isinstance(value, Unknown) and value.name:
        name = f"{value.name}[{key}]"
        is_same = isinstance(node.slice, ast.Constant) and not _is_changed(node.value, frame)
        name = name if is_same else f"{name}@{frame.place(node).key}"
        views, given = value.held(), part_of(value, frame.spell(node))
        return Unknown(value.why, value.line, name, views=views, given=given, is_result=value.is_result)
    return replace(frame.unfollowed(node), views=frozenset(views_of(value)))


def _is_changed(node: ast.expr, frame: Frame) -> bool:
    """May the function write elements of it, so that one index need not mean one value?"""
    name = dotted(node)
    return not name or frame.slice is None or frame.slice.writes(name)


def _key(node: ast.expr, frame: Frame) -> Item | Value:
    if isinstance(node, ast.Slice):
        start, stop, step = (frame.value(part) if part else None for part in (node.lower, node.upper, node.step))
        return Slice(
            *(as_size(part) if part is not None and not _is_none(part) else None for part in (start, stop, step))
        )
    return frame.value(node)


def _is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


def _item(key: Item | Value, world: World, place: Place) -> Item:
    match key:
        case Slice():
            return key
        case Constant(None):
            return NewAxis()
        case Constant(value) if value is ...:
            return Rest()
        case Number(size):
            return At(size)
        case Tensor() | Several() | Repeated():
            return By(as_layout(key, world, place) if isinstance(key, Tensor) else Layout((Dim(UNKNOWN, ONE),)))
        case _:
            return By(as_layout(key, world, place))  # type: ignore[arg-type]


def _index_tensor(value: Tensor, keys: list[Item | Value], node: ast.Subscript, frame: Frame) -> Value:
    place = frame.place(node)
    if any(isinstance(key, Unknown | Foreign) or (isinstance(key, Tensor) and key.number is not None) for key in keys):
        keys = [_as_index(key) for key in keys]
    outcomes = [index(value.layout(world), tuple(_item(key, world, place) for key in keys)) for world in World]
    layouts = [outcome[0] if outcome else None for outcome in outcomes]
    alias = outcomes[0][1] if outcomes[0] else Alias.MAYBE
    return combine(Rule((), lambda: None, (), alias), layouts[0], layouts[1], value, [value], place)


def _as_index(key: Item | Value) -> Item | Value:
    """An index of which only a name is known is a number more often than not; nothing is claimed of its layout."""
    if isinstance(key, Unknown) and key.number is not None:
        return Number(key.number)
    if isinstance(key, Tensor) and key.number is not None:
        return Unknown("an index", name=f"{key.number}")
    return key


def _index_shape(shape: Shape, key: Item | Value | None, node: ast.Subscript, frame: Frame) -> Value:
    at = next((i for i, item in enumerate(shape.items) if isinstance(item, Pack)), None)
    if isinstance(key, Slice):
        return _slice_shape(shape, key, node, frame)
    position = key.size.constant if isinstance(key, Number) else None
    if position is None:
        return _unknown(shape, node, frame)
    layout = _exposed(shape, position + 1 if position >= 0 else 0, -position if position < 0 else 0)
    if at is None and not -len(shape.items) <= position < len(shape.items):
        return _unknown(shape, node, frame)
    i = layout.index(position)
    return Number(layout.dims[i].size) if i is not None else _unknown(shape, node, frame)


def _slice_shape(shape: Shape, key: Slice, node: ast.Subscript, frame: Frame) -> Value:
    bounds = [part.constant if part is not None else None for part in (key.start, key.stop)]
    if key.step is not None or any(part is not None and part.constant is None for part in (key.start, key.stop)):
        return _unknown(shape, node, frame)
    front = max([0, *(b for b in bounds if b is not None and b >= 0)])
    back = max([0, *(-b for b in bounds if b is not None and b < 0)])
    layout = _exposed(shape, front, back)
    dims, at = layout.dims, layout.pack_at
    if at is not None and front > at:
        return _unknown(shape, node, frame)
    if layout.pack_at is None:
        kept = dims[slice(*bounds)]
    else:
        start, stop = (None if b is None else b if b >= 0 else len(dims) + b for b in bounds)
        kept = dims[start:stop]
    return Shape(tuple(dim.pack or dim.size for dim in kept))


def _exposed(shape: Shape, front: int, back: int) -> Layout:
    dims = tuple(
        Dim(item, ONE) if isinstance(item, Size) else Dim(Size.of(item.atom), ONE, item) for item in shape.items
    )
    layout = Layout(dims).exposed(front)  # from the front, a dim may be one of those known from the back
    return layout.opened(0, back)


def _index_sequence(
    value: Value, items: tuple[Value, ...], key: Item | Value | None, node: ast.Subscript, frame: Frame
) -> Value:
    if isinstance(key, Slice):
        bounds = [part.constant if part is not None else None for part in (key.start, key.stop, key.step)]
        if all(part is None or part.constant is not None for part in (key.start, key.stop, key.step)):
            cut = items[slice(*bounds)]
            return replace(value, positional=cut) if isinstance(value, Module) else Several(cut)
        return Repeated(choose((item, frozenset()) for item in items)) if items else value
    position = key.size.constant if isinstance(key, Number) else None
    if position is not None and -len(items) <= position < len(items):
        return items[position]
    return choose((item, frozenset()) for item in items) if items else _unknown(value, node, frame)


def _index_leading(value: Leading, key: Item | Value | None, node: ast.Subscript, frame: Frame) -> Value:
    count = len(value.items)
    if isinstance(key, Slice) and key.stop is None and key.step is None:
        start = key.start.constant if key.start is not None else 0
        if start is not None and 0 <= start <= count:
            return Leading(value.items[start:], value.rest)
    position = key.size.constant if isinstance(key, Number) else None
    if position is not None and 0 <= position < count:
        return value.items[position]
    return forgotten(value, f"what `{frame.spell(node)}` is", node.lineno, frame.place(node).key)


def element(iterable: Value, node: ast.expr, frame: Frame) -> Value:
    """Any element of what a loop runs over."""
    iterable = without_empty(iterable)
    if isinstance(iterable, Choice):
        return each(iterable, lambda option: element(option, node, frame))
    match iterable:
        case Repeated(item):
            return item
        case Several(items) if items:
            return choose((item, frozenset()) for item in items)
        case Instance() if (method := frame.interpreter.method(iterable.of, "__iter__")) is not None:
            found = frame.interpreter.call_function(replace(method, bound=iterable), [], {}, node, frame)
            return element(found, node, frame)
        case Module(name, positional) if name.endswith(("Sequential", "ModuleList")) and positional:
            return _any_part(positional)
        case Tensor() | Shape():
            first = ast.copy_location(ast.Subscript(node, ast.copy_location(ast.Constant(0), node)), node)
            return subscript(iterable, first, frame) if isinstance(iterable, Tensor) else Number(UNKNOWN)
        case Foreign() if iterable.kind == DICT:
            return of_dict(iterable, node, frame)
        case Foreign(kind="a range"):
            return Number(Size.of(Atom(f"{frame.place(node).key}[]")))
        case Foreign(views=views):
            return Foreign("an element", views)
        case _:
            views = frozenset(views_of(iterable))
            key = f"{frame.place(node).key}[]"
            text = f"an element of `{frame.spell(node)}`"
            unknown = Unknown(text, node.lineno, key, views=views)
            if not isinstance(iterable, Unknown) or not iterable.given:
                return unknown
            given = iterable.given if iterable.is_result else f"{text} may be strided"
            return replace(unknown, given=given, is_result=iterable.is_result)
