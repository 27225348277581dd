"""Assignment: what names, attributes and elements are bound to."""

from __future__ import annotations

import ast
from dataclasses import replace

from codemod.layout.frame import Frame
from codemod.layout.layout import Dim, Layout, Pack
from codemod.layout.program import dotted
from codemod.layout.size import Atom, Size
from codemod.layout.subscripts import element
from codemod.layout.value import (
    Choice,
    Constant,
    Foreign,
    Instance,
    Mapping,
    Module,
    Number,
    Repeated,
    Several,
    Shape,
    Spread,
    Tensor,
    Unknown,
    Value,
    choose,
    options,
)


def assign(target: ast.expr, value: Value, frame: Frame) -> None:
    """Bind a target of an assignment, a loop or a `with`."""
    match target:
        case ast.Name(id=name):
            frame.state.bind(name, value)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            _unpack(targets, value, target, frame)
        case ast.Starred(value=inner):
            assign(inner, Repeated(Unknown("the rest of an unpacking", target.lineno)), frame)
        case ast.Attribute():
            _assign_attribute(target, value, frame)
        case ast.Subscript():
            _write_element(target, value, frame)


def written_views(value: Value) -> frozenset[int]:
    """Ids of the calls through which a write to the value goes on."""
    return frozenset().union(*(option.views for option, _ in options(value) if isinstance(option, Tensor | Foreign)))


def replace_tensor(node: ast.expr, old: Value, new: Value, frame: Frame) -> None:
    """`x.t_()`, `x.data = y`: the tensor at `node` has other sizes and strides from now on, under all of its names."""
    storages = {s for option, _ in options(old) if isinstance(option, Tensor) for s in option.storages}
    own = dotted(node)
    for name, value in list(frame.state.names.items()):
        tensors = [option for option, _ in options(value) if isinstance(option, Tensor)]
        if name != own and any(not storages.isdisjoint(tensor.storages) for tensor in tensors):
            frame.state.bind(name, Unknown(f"`{name}`, which may be the tensor that is changed in place", node.lineno))
    if own:
        frame.state.bind(own, new if isinstance(new, Tensor) else frame.unfollowed(node))


def _assign_attribute(target: ast.Attribute, value: Value, frame: Frame) -> None:
    base = frame.value(target.value)
    if target.attr == "data":
        replace_tensor(target.value, base, value, frame)
        return
    name = dotted(target)
    if name:
        frame.state.bind(name, replace(value, label=name) if isinstance(value, Instance | Module) else value)
    if isinstance(base, Instance | Module):
        for option, _ in options(value):
            if isinstance(option, Tensor) and any("." in storage.partition(":")[0] for storage in option.storages):
                frame.notebook.keep(option.views, f"kept as `{name}`", target.lineno)


def _write_element(target: ast.Subscript, value: Value, frame: Frame) -> None:
    base = frame.value(target.value)
    frame.value(target.slice)
    frame.notebook.write(written_views(base), "written by item assignment", target.lineno)
    name = dotted(target.value)
    if name and isinstance(base, Mapping | Several | Repeated):
        frame.state.bind(name, _with_element(base, target.slice, value))


def _with_element(base: Value, key: ast.expr, value: Value) -> Value:
    if isinstance(base, Mapping) and isinstance(key, ast.Constant) and isinstance(key.value, str):
        kept = tuple(item for item in base.items if item[0] != key.value)
        return Mapping((*kept, (key.value, value)))
    if isinstance(base, Several | Repeated):
        items = base.items if isinstance(base, Several) else (base.item,)
        return Repeated(choose((item, frozenset()) for item in (*items, value)))
    return Foreign("a dict")


def _unpack(targets: list[ast.expr], value: Value, node: ast.expr, frame: Frame) -> None:
    stars = [i for i, target in enumerate(targets) if isinstance(target, ast.Starred)]
    if isinstance(value, Choice):
        parts = [_items(option, len(targets), bool(stars), node, frame) for option, _ in value.options]
        whens = [when for _, when in value.options]
        items = [choose(zip(column, whens, strict=True)) for column in zip(*parts, strict=True)]
    elif isinstance(value, Shape) and not stars:
        items = [Number(size) for size in _unpack_shape(value, len(targets), frame)]
    else:
        items = _items(value, len(targets), bool(stars), node, frame)
    for target, item in zip(targets, items, strict=True):
        assign(target.value if isinstance(target, ast.Starred) else target, item, frame)


def _unpack_shape(shape: Shape, count: int, frame: Frame) -> list[Size]:
    """`b, t, c = x.shape` also shows that x has three dims."""
    at = next((i for i, item in enumerate(shape.items) if isinstance(item, Pack)), None)
    if at is None:
        found = [item for item in shape.items if isinstance(item, Size)]
        return found if len(found) == count else [Size(None)] * count
    pack = shape.items[at]
    assert isinstance(pack, Pack)
    hidden = count - len(shape.items) + 1
    if hidden < 0:
        return [Size(None)] * count
    if pack.owner:
        frame.state.ranks[pack.owner] = hidden + pack.front + pack.back
    dims = [
        Dim(item, Size(None)) if isinstance(item, Size) else Dim(Size.of(item.atom), Size(None), item)
        for item in shape.items
    ]
    return list(Layout(tuple(dims)).of_rank(count).sizes)


def _items(value: Value, count: int, has_star: bool, node: ast.expr, frame: Frame) -> list[Value]:
    """As many values as there are targets."""
    known = elements(value)
    if known is not None and len(known) == count:
        return known
    if known is not None and has_star and len(known) >= count - 1:
        rest: Value = Several(tuple(known[count - 1 :]))
        return [*known[: count - 1], rest]
    match value:
        case Repeated(item, part_of):
            part = _smaller(item, part_of) if part_of and count > 1 else item
            return [_renamed(part, i) for i in range(count)]
        case Tensor():
            row = element(value, node, frame)
            return [row] * count
        case Unknown(why, line, name):
            return [Unknown(why, line, f"{name}#{i}" if name else "") for i in range(count)]
        case _:
            key = frame.place(node).key
            return [Unknown("an element of an unpacked value", node.lineno, f"{key}#{i}") for i in range(count)]


def _renamed(value: Value, i: int) -> Value:
    return (
        Unknown(value.why, value.line, f"{value.name}#{i}" if value.name else "")
        if isinstance(value, Unknown)
        else value
    )


def _smaller(item: Value, part_of: tuple[Size, int]) -> Value:
    """A part of a dim that was cut into at least two is smaller than the whole."""
    if not isinstance(item, Tensor):
        return item
    whole, dim = part_of
    return replace(item, default=_bounded(item.default, whole, dim), any=_bounded(item.any, whole, dim))


def _bounded(layout: Layout, whole: Size, dim: int) -> Layout:
    at = layout.index(dim)
    if at is None or layout.dims[at].size.constant is not None or len(layout.dims[at].size.atoms) != 1:
        return layout
    (atom,) = layout.dims[at].size.atoms
    if layout.dims[at].size != Size.of(atom) or atom.below is not None or whole.terms is None:
        return layout
    bounded = Atom(
        f"{atom}<", atom.kind, owner=atom.owner, dim=atom.dim, below=whole, origins=atom.origins, is_part=atom.is_part
    )
    values = {atom: Size.of(bounded)}
    return Layout(tuple(replace(d, size=d.size.at(values), stride=d.stride.at(values)) for d in layout.dims))


def elements(value: Value) -> list[Value] | None:
    """The elements one by one, where their number is known."""
    match value:
        case Several(items):
            return list(items)
        case Shape(items) if not any(isinstance(item, Pack) for item in items):
            return [Number(item) for item in items if isinstance(item, Size)]
        case Shape(items):
            return [Spread(item) if isinstance(item, Pack) else Number(item) for item in items]
        case Mapping(items):
            return [item for _, item in items]
        case Constant(str() as text):
            return [Constant(letter) for letter in text]
        case _:
            return None
