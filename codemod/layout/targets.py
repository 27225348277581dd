"""Assignment: what names, attributes and elements are bound to."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from codemod.layout.frame import Frame
from codemod.layout.layout import Dim, Layout, Pack
from codemod.layout.narrow import shaped
from codemod.layout.program import dotted
from codemod.layout.size import Atom, Size
from codemod.layout.subscripts import element
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
    Spread,
    Tensor,
    Unknown,
    Value,
    bound,
    choose,
    each,
    forgotten,
    options,
    parts,
    views_of,
    written_views,
)


def assign(target: ast.expr, value: Value, frame: Frame) -> None:
    """Bind a target of an assignment, a loop or a `with`."""
    match target:
        case ast.Name(id=name):
            frame.fresh.add(name)
            if name in frame.shared and frame.notebook.is_closed:
                frame.notebook.keep(frozenset(views_of(value)), f"kept as `{name}`", target.lineno)
            frame.bind(name, bound(value, frame.place(target).key) if isinstance(value, Choice) else value)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            _unpack(targets, value, target, frame)
        case ast.Starred(value=inner):
            assign(inner, Repeated(forgotten(value, "the rest of an unpacking", target.lineno)), frame)
        case ast.Attribute():
            _assign_attribute(target, value, frame)
        case ast.Subscript():
            _write_element(target, value, frame)


def replace_tensor(node: ast.expr, old: Value, new: Value, frame: Frame) -> None:
    """`x.t_()`, `x.data = y`: the tensor at `node` has other sizes and strides from now on, under all of its names."""
    forget(old, frame, node.lineno)
    own = dotted(node)
    if own:
        frame.bind(own, new if isinstance(new, Tensor) else frame.unfollowed(node))


def forget(changed: Value, frame: Frame, line: int) -> None:
    """What is known of every name through which the tensors in `changed`, whose strides may be others now, are met."""
    storages = set(_storages(changed))
    for name, value in list(frame.state.names.items()) if storages else ():
        if not storages.isdisjoint(_storages(value)):
            text = f"`{name}`, which may be the tensor that is changed in place"
            frame.state.bind(name, forgotten(value, text, line, f"{frame.key}{name}~{line}"))


def forget_holders(changed: Value, own: str, frame: Frame, line: int) -> None:
    """What is known of names, other than `own`, that may hold the list or dict that was `changed` in place."""
    parts_of = [one for one, _ in options(changed) if isinstance(one, Several | Repeated | Mapping | Module)]
    for name, value in list(frame.state.names.items()) if parts_of else ():
        if name != own and any(_holds(value, one) for one in parts_of):
            kind = "dict" if isinstance(parts_of[0], Mapping) else "list"
            text = f"`{name}`, which may be the {kind} that is changed"
            frame.state.bind(name, forgotten(value, text, line, f"{frame.key}{name}~{line}"))


def _holds(value: Value, part: Value) -> bool:
    if value is part or (value == part and any(True for _ in parts(part))):
        return True
    return any(_holds(inner, part) for inner in parts(value))


def _storages(value: Value) -> Iterator[str]:
    """Of the tensors in it."""
    if isinstance(value, Tensor):
        yield from value.storages
    for part in parts(value):
        yield from _storages(part)


def _assign_attribute(target: ast.Attribute, value: Value, frame: Frame) -> None:
    base = frame.value(target.value)
    if target.attr == "data":
        replace_tensor(target.value, base, value, frame)
        return
    name = dotted(target)
    _forget_same(name, base, frame, target.lineno)
    if isinstance(base, Instance) and frame.interpreter.is_managed(base.of, target.attr):
        value = forgotten(value, f"what reading `{name}` gives", target.lineno)
    if name:
        named = replace(value, label=name) if isinstance(value, Instance | Module) else value
        frame.state.bind(name, bound(named, frame.place(target).key))
    is_given = len(frame.active) > 1 and frame.name.endswith(".__init__")  # what an object is made with is its own
    if isinstance(base, Instance | Module) and not is_given:
        for option, _ in options(value):
            if isinstance(option, Tensor) and any("." in storage.partition(":")[0] for storage in option.storages):
                frame.notebook.keep(option.views, f"kept as `{name}`", target.lineno)


def _forget_same(name: str, base: Value, frame: Frame, line: int) -> None:
    """The attribute, under other names, of the object whose attribute `name` is bound."""
    for known in [k for k in frame.state.dotted if k != name and k.endswith(f".{name.rpartition('.')[2]}")]:
        other = frame.state.names.get(known.rpartition(".")[0])
        if not (isinstance(base, Instance) and isinstance(other, Instance) and base != other):
            text = f"`{known}`, which may have been bound as `{name}`"
            frame.state.bind(known, forgotten(frame.state.names[known], text, line, f"{known}~{line}"))


def _write_element(target: ast.Subscript, value: Value, frame: Frame) -> None:
    base = frame.value(target.value)
    frame.value(target.slice)
    frame.notebook.write(written_views(base), "written by item assignment", target.lineno)
    name = dotted(target.value)
    forget_holders(base, name, frame, target.lineno)
    if name and any(_is_container(option) for option, _ in options(base)):
        frame.bind(name, each(base, lambda option: _with_element(option, target, value, frame)))


def changed_module(module: Module, new: Sequence[Value], node: ast.expr, frame: Frame) -> Value:
    """A list of modules of which any element may be one of the `new`; of a chain of them nothing is known."""
    if module.name.endswith("ModuleList"):
        return Repeated(choose((item, frozenset()) for item in (*module.positional, *new)))
    return frame.unfollowed(node)


def grown_module(module: Module, new: Value, name: str, node: ast.expr, frame: Frame) -> Value:
    """With one more at its end; a chain that a loop makes, with any number of parts, the user's own not followed."""
    if module.name.endswith("ModuleList"):
        return Repeated(choose((item, frozenset()) for item in (*module.positional, new)))
    if not frame.loops or name in frame.fresh:
        return replace(module, positional=(*module.positional, new))
    part = new if _is_of_torch(new) else Unknown("a part of a Sequential that a loop makes", node.lineno)
    before = module.positional
    if before and isinstance(before[-1], Repeated):
        part = choose((item, frozenset()) for item in (before[-1].item, part))
        before = before[:-1]
    return replace(module, positional=(*before, Repeated(part)))


def _is_of_torch(value: Value) -> bool:
    """A module of torch.nn, or a chain of such: the same in each round."""
    if isinstance(value, Choice | Module):
        items = value.positional if isinstance(value, Module) and value.name.endswith("Sequential") else parts(value)
        return all(map(_is_of_torch, items))
    return isinstance(value, Repeated)


def _is_array(value: Value) -> bool:
    return isinstance(value, Foreign) and value.kind != DICT


def _is_container(value: Value) -> bool:
    return isinstance(value, Mapping | Several | Repeated | Foreign | Module) and not _is_array(value)


def _with_element(base: Value, target: ast.Subscript, value: Value, frame: Frame) -> Value:
    key = target.slice
    if isinstance(base, Module):
        return changed_module(base, [value], target, frame)
    if not _is_container(base):
        return base
    if isinstance(base, Mapping) and isinstance(key, ast.Constant) and isinstance(key.value, str):
        kept = tuple(item for item in base.items if item[0] != key.value)
        return Mapping((*kept, (key.value, value)))
    if isinstance(base, Several | Repeated):
        items = base.items if isinstance(base, Several) else (base.item,)
        new = value
        if isinstance(key, ast.Slice):  # `xs[:] = ys`
            found = elements(value) or [forgotten(value, "part of a slice", key.lineno)]
            new = choose((item, frozenset()) for item in found)
        return Repeated(choose((item, frozenset()) for item in (*items, new)))
    return Foreign(DICT, frozenset(views_of(base)) | frozenset(views_of(value)))


def _unpack(targets: list[ast.expr], value: Value, node: ast.expr, frame: Frame) -> None:
    stars = [i for i, target in enumerate(targets) if isinstance(target, ast.Starred)]
    if isinstance(value, Choice):
        columns = [
            [Number(size) for size in _sizes(option, len(targets))]
            if isinstance(option, Shape) and not stars
            else _items(option, len(targets), stars, node, frame)
            for option, _ in value.options
        ]
        whens = [when for _, when in value.options]
        items = [choose(zip(column, whens, strict=True)) for column in zip(*columns, strict=True)]
    elif isinstance(value, Shape) and not stars:
        items = [Number(size) for size in _unpack_shape(value, len(targets), frame)]
    else:
        items = _items(value, len(targets), stars, node, frame)
    for target, item in zip(targets, items, strict=True):
        assign(target.value if isinstance(target, ast.Starred) else target, item, frame)


def show_rank(target: ast.expr, node: ast.expr, frame: Frame) -> None:
    """`b, t, c = x.shape` where x is one of several: each of them has three dims where it is the one."""
    if not isinstance(target, ast.Tuple) or any(isinstance(part, ast.Starred) for part in target.elts):
        return
    receiver = shaped(node)
    value = frame.state.names.get(dotted(receiver)) if receiver is not None else None
    if isinstance(value, Choice) and receiver is not None:
        ranked = ((_of_rank(option, len(target.elts)), when) for option, when in value.options)
        frame.state.names[dotted(receiver)] = choose(ranked)


def _of_rank(value: Value, rank: int) -> Value:
    if not isinstance(value, Tensor) or value.default.rank is not None:
        return value
    return replace(value, default=value.default.of_rank(rank), any=value.any.of_rank(rank))


def _unpack_shape(shape: Shape, count: int, frame: Frame) -> list[Size]:
    """`b, t, c = x.shape` also shows that x has three dims."""
    pack = next((item for item in shape.items if isinstance(item, Pack)), None)
    hidden = count - len(shape.items) + 1
    if pack is not None and pack.owner and hidden >= 0:
        frame.state.ranks[pack.owner] = hidden + pack.front + pack.back
    return _sizes(shape, count)


def _sizes(shape: Shape, count: int) -> list[Size]:
    """Of a tensor with that many dims."""
    known = [item for item in shape.items if isinstance(item, Size)]
    if len(known) == len(shape.items):
        return known if len(known) == count else [Size(None)] * count
    if count < len(known):
        return [Size(None)] * count
    dims = [
        Dim(item, Size(None)) if isinstance(item, Size) else Dim(Size.of(item.atom), Size(None), item)
        for item in shape.items
    ]
    return list(Layout(tuple(dims)).of_rank(count).sizes)


def _items(value: Value, count: int, stars: list[int], node: ast.expr, frame: Frame) -> list[Value]:
    """As many values as there are targets."""
    known = elements(value)
    if known is not None and len(known) == count and not stars:
        return known
    if known is not None and stars and len(known) >= count - 1:
        front, back = stars[0], len(known) - (count - 1 - stars[0])
        return [*known[:front], Several(tuple(known[front:back])), *known[back:]]
    match value:
        case Leading(items):
            key = frame.place(node).key
            first = items[: stars[0] if stars else count]
            why = "an element of an unpacked value"
            rest = [forgotten(value, why, node.lineno, f"{key}#{i}") for i in range(len(first), count)]
            return [*first, *rest]
        case Repeated(item) if stars:
            return [value if i in stars else _renamed(item, i) for i in range(count)]
        case Repeated(item, part_of):
            part = _smaller(item, part_of) if part_of and count > 1 else item
            return [_renamed(part, i) for i in range(count)]
        case Tensor():
            row = element(value, node, frame)
            return [Repeated(row) if i in stars else row for i in range(count)]
        case Unknown(name=name):
            names = [f"{name}#{i}" if name else "" for i in range(count)]
            return [replace(value, name=n, number=None, views=value.held(), holds=value.holds) for n in names]
        case _:
            key = frame.place(node).key
            return [
                forgotten(value, "an element of an unpacked value", node.lineno, f"{key}#{i}") for i in range(count)
            ]


def _renamed(value: Value, i: int) -> Value:
    if not isinstance(value, Unknown):
        return value
    return replace(value, name=f"{value.name}#{i}" if value.name else "", number=None)


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
