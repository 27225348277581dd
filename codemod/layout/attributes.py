"""`value.name`."""

from __future__ import annotations

import ast
import math
from dataclasses import replace

from codemod.layout.frame import Frame
from codemod.layout.layout import Dim, Layout, World, contiguous, stride_atom, unknown
from codemod.layout.ops.lift import as_size, lift
from codemod.layout.ops.rule import rules
from codemod.layout.origin import Origin, OriginKind
from codemod.layout.program import DECIDED, Program, dotted
from codemod.layout.size import Atom, Size
from codemod.layout.value import (
    Class,
    Constant,
    Foreign,
    Function,
    Instance,
    Mapping,
    Method,
    Module,
    Number,
    Qualified,
    Shape,
    Tensor,
    Unknown,
    Value,
    choose,
    each,
    part_of,
    passed,
)

_DESCRIPTIONS = frozenset(
    {
        "dtype",
        "device",
        "requires_grad",
        "is_cuda",
        "layout",
        "names",
        "itemsize",
        "nbytes",
        "is_sparse",
        "grad_fn",
        "is_leaf",
    }
)


def attribute_of(value: Value, node: ast.Attribute, frame: Frame) -> Value:
    """What the attribute is; a method that is not called yet is a value too."""
    if frame.state.dotted and (bound := frame.state.look_up(dotted(node))) is not None:
        return bound
    return each(value, lambda option: _of_one(option, node, frame))


def _of_one(value: Value, node: ast.Attribute, frame: Frame) -> Value:
    match value:
        case Qualified(name):
            return _of_qualified(f"{name}.{node.attr}")
        case Tensor():
            return _of_tensor(value, node, frame)
        case Unknown(name=name):
            return _of_unknown(value, node, frame)
        case Instance():
            return _of_instance(value, node, frame)
        case Class():
            return _of_class(value, node, frame)
        case Module():
            return _of_module(value, node, frame)
        case Mapping(items) if node.attr in dict(items):
            return dict(items)[node.attr]
        case Foreign(array=Tensor() as array) if node.attr == "T":
            turned = lift(rules()["numpy.transpose"], [array], {}, frame.place(node))
            return Foreign(value.kind, value.views, turned if isinstance(turned, Tensor) else None)
        case Foreign(kind) if kind == SUPER:
            return _of_super(value, node, frame)
        case Foreign(views=views) if node.attr not in _ARRAY_METHODS:
            return Foreign("an attribute", views)
        case _:
            return Method(value, node.attr)


def _of_qualified(name: str) -> Value:
    head, _, last = name.partition(".")
    number = vars(math).get(last) if head in ("math", "numpy", "torch") else None
    return Constant(number) if type(number) is float else Qualified(name)


_ARRAY_METHODS = frozenset({"fill", "sort", "put", "partition", "itemset", "resize"})


FLUENT = frozenset(
    {
        "bfloat16", "cpu", "cuda", "double", "eval", "float", "half", "requires_grad_", "share_memory", "to", "train",
        "type", "xpu",
    }
)  # fmt: skip
"""Methods of a module that return the module itself."""


def _of_tensor(value: Tensor, node: ast.Attribute, frame: Frame) -> Value:
    if node.attr == "shape":
        return shape_of(value)
    if node.attr == "ndim":
        return rank_of(value, node, frame)
    if node.attr in _DESCRIPTIONS:
        return Foreign(node.attr)
    if node.attr in ("T", "mT", "H", "mH", "data", "real", "imag"):
        return lift(rules()[f".{node.attr}"], [value], {}, frame.place(node))
    if node.attr == "grad":
        return Unknown("a gradient", node.lineno, f"{dotted(node) or frame.place(node).key}")
    owner = str(value.number) if value.number is not None else frame.place(node).key
    return _method_or_field(value, node, f"{owner}.{node.attr}", frame)


def _method_or_field(value: Tensor | Unknown, node: ast.Attribute, name: str, frame: Frame) -> Value:
    """A method of tensors that is not called yet; else a field of something that may be no tensor: `outputs.logits`."""
    if f".{node.attr}" in rules() or node.attr in DECIDED:
        return Method(value, node.attr)
    text = frame.spell(node)
    return Unknown(
        f"what `{text}` is",
        node.lineno,
        name,
        views=value.held() if isinstance(value, Unknown) else value.views,
        given=part_of(value, text),
        is_result=isinstance(value, Unknown) and value.is_result,
    )


def shape_of(value: Tensor) -> Shape:
    return Shape(tuple(dim.pack or dim.size for dim in value.default.dims))


def rank_of(value: Tensor, node: ast.expr, frame: Frame) -> Value:
    if value.default.rank is not None:
        return Number(Size.of(value.default.rank))
    return frame.unfollowed(node, "the rank of a tensor")


def _of_unknown(value: Unknown, node: ast.Attribute, frame: Frame) -> Value:
    if node.attr == "shape" and value.name:
        return shape_of(as_tensor(value))
    if node.attr in _DESCRIPTIONS:
        return Foreign(node.attr)
    if node.attr in ("T", "mT", "H", "mH", "data"):
        return lift(rules()[f".{node.attr}"], [as_tensor(value)], {}, frame.place(node))
    owner = value.name or frame.place(node).key
    return _method_or_field(value, node, f"{owner}.{node.attr}", frame)


def as_tensor(value: Value) -> Tensor:
    """What is not followed, taken as a tensor of unknown rank and strides."""
    if isinstance(value, Tensor):
        return value
    owner = value.name if isinstance(value, Unknown) and value.name else f"?{hash(value) & 0xFFFF_FFFF_FFFF_FFFF:x}"
    if not isinstance(value, Unknown):
        value = Unknown("a value that is not followed")
    return Tensor(
        value.laid_out(owner, World.DEFAULT),
        value.laid_out(owner, World.ANY),
        views=value.views,
        storages=frozenset({owner}),
        number=value.number,
    )


def _of_instance(value: Instance, node: ast.Attribute, frame: Frame) -> Value:
    label = f"{value.label}.{node.attr}"
    if node.attr in value.of.program.assigned or node.attr in frame.program.assigned:
        return _bound_from_outside(label, node, value.of.program, frame)
    found = frame.interpreter.attribute(value, node.attr, frame)
    if found is not None:
        found = each(found, lambda option: _kept(option, value, frame)) if value.views else found
        if node.attr in value.of.program.emptied or node.attr in frame.program.emptied:
            found = choose(((found, frozenset()), (Constant(None), frozenset())))
        return frame.state.possible(found)
    own = frame.interpreter.method(value.of, node.attr)
    functions = [own] if own is not None else []
    if value.positional is None:
        functions += frame.interpreter.overriding(value.of, node.attr)
    if functions:
        return choose((_of_method(function, value, node, frame), frozenset()) for function in functions)
    if node.attr in FLUENT:
        return Method(value, node.attr)
    missing = Unknown(f"what `{label}` is", node.lineno, label)
    frame.interpreter.see_missing(value.of, missing)
    return _kept(missing, value, frame)


def _kept(value: Value, of: Instance, frame: Frame) -> Value:
    """What is not followed of an object may be what it was made with, or hold it."""
    if not isinstance(value, Unknown) or not of.views:
        return value
    if frame.notebook.is_closed:
        return replace(value, views=value.views | of.views)
    return replace(value, holds=value.holds | of.views)


def _bound_from_outside(label: str, node: ast.Attribute, program: Program, frame: Frame) -> Unknown:
    """`model.head` where a function binds it for others: it may be what a caller brought, or anything."""
    programs = [p for p in (program, frame.program) if node.attr in p.assigned]
    given = passed(label) if all(node.attr in p.brought for p in programs) else ""
    return Unknown(f"what `{label}` is, which is bound from outside", node.lineno, label, given=given)


def _of_method(function: Function, value: Instance, node: ast.Attribute, frame: Frame) -> Value:
    decorators = {dotted(decorator) for decorator in getattr(function.node, "decorator_list", ())}
    if decorators & {"property", "cached_property", "functools.cached_property"}:
        return frame.interpreter.call_function(replace(function, bound=value), [], {}, node, frame)
    return function if "staticmethod" in decorators else replace(function, bound=value)


SUPER = "super()"


def _of_super(value: Value, node: ast.Attribute, frame: Frame) -> Value:
    this = frame.state.names.get("self")
    if not isinstance(this, Instance) or node.attr.startswith("__"):
        return Method(value, node.attr)
    function = frame.interpreter.method_after(this.of, frame.active[-1], node.attr)
    return _of_method(function, this, node, frame) if function is not None else Method(value, node.attr)


def _of_class(value: Class, node: ast.Attribute, frame: Frame) -> Value:
    function = frame.interpreter.method(value, node.attr)
    if function is not None:
        return function
    found = frame.interpreter.attribute(Instance(value, value.qualified_name), node.attr, frame)
    label = f"{value.qualified_name}.{node.attr}"
    return found if found is not None else Unknown(f"what `{label}` is", node.lineno, label)


_SIZES_OF_MODULE = ("in_features", "out_features", "in_channels", "out_channels", "num_embeddings", "embedding_dim")


def _of_module(value: Module, node: ast.Attribute, frame: Frame) -> Value:
    label = f"{value.label or value.name}.{node.attr}"
    if node.attr in frame.program.assigned:
        return _bound_from_outside(label, node, frame.program, frame)
    if node.attr == "weight":
        return _weight(value, label)
    if node.attr in _SIZES_OF_MODULE:
        i = 0 if node.attr in ("in_features", "in_channels", "num_embeddings") else 1
        given = dict(value.keywords).get(node.attr) or (value.positional[i] if i < len(value.positional) else None)
        return given if given is not None else Unknown(f"what `{label}` is", node.lineno, label)
    if node.attr == "bias":
        is_vector = _is_one_of(value, _VECTOR_BIASES)
        return parameter(_vector(label) if is_vector else unknown(label, world=World.DEFAULT), label)
    return Method(value, node.attr)


_VECTOR_WEIGHTS = ("BatchNorm", "GroupNorm", "InstanceNorm", "PReLU", "SyncBatchNorm")
_VECTOR_BIASES = ("Bilinear", "Conv", "Linear", *_VECTOR_WEIGHTS)
"""Modules whose bias has one dim, whatever they are made with; of some there are several kinds, by dims: `Conv2d`."""


def _is_one_of(value: Module, kinds: tuple[str, ...]) -> bool:
    return value.name.rpartition(".")[2].startswith(kinds)


def _vector(label: str) -> Layout:
    return contiguous([Size.of(Atom(f"{label}[0]"))])


def _weight(value: Module, label: str) -> Value:
    """(out, in) of a linear layer, (out, in / groups, kernel...) of a convolution."""
    kind = value.name.rpartition(".")[2]
    given = [as_size(item) for item in value.positional[:2]]
    if kind == "Linear" and len(given) == 2:
        return parameter(contiguous(given[::-1]), label)
    if kind == "Embedding" and len(given) == 2:
        return parameter(contiguous(given), label)
    if _is_one_of(value, _VECTOR_WEIGHTS):
        return parameter(_vector(label), label)
    spatial = {"Conv1d": 1, "Conv2d": 2, "Conv3d": 3}.get(kind)
    if spatial is None or len(value.positional) < 3 or "groups" in dict(value.keywords) or len(value.positional) > 6:
        return parameter(unknown(label, world=World.DEFAULT), label)
    kernel = as_size(value.positional[2])
    sizes = [given[1], given[0], *[kernel] * spatial]
    known = [size if size.terms is not None else Size.of(Atom(f"{label}[{i}]")) for i, size in enumerate(sizes)]
    return parameter(contiguous(known), label)


def parameter(default: Layout, label: str) -> Tensor:
    """A parameter or buffer: contiguous when made; 4-d and 5-d ones follow their module to channels_last."""
    origin = Origin(OriginKind.MEMORY_FORMAT, f"`{label}` after .to(memory_format=channels_last)")
    free = default
    if default.rank is None:
        free = unknown(label, (origin,))
    elif default.rank in (4, 5):
        free = channels_last_or_contiguous(default, label, origin)
    return Tensor(default, free, storages=frozenset({label}))


def channels_last_or_contiguous(layout: Layout, label: str, origin: Origin) -> Layout:
    """Strides (C*H*W, a, W*b, b): a is H*W and b is 1, or a is 1 and b is C."""
    channel, stride = stride_atom(label, 1, (origin,)), stride_atom(label, -1, (origin,))
    batch, channels, *spatial = layout.dims
    rows: list[Dim] = []
    for dim in reversed(spatial):
        rows.append(Dim(dim.size, stride))
        stride = stride * dim.size
    return Layout((batch, Dim(channels.size, channel), *reversed(rows)))
