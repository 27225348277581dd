"""The calls that Transforms decide on: judged and written down when they are met."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from codemod.layout.attributes import as_tensor, shape_of
from codemod.layout.frame import Frame
from codemod.layout.layout import Layout, World
from codemod.layout.layout import unknown as unknown_layout
from codemod.layout.op_call import Observation
from codemod.layout.ops.lift import Place, as_index, as_target, combine, lift
from codemod.layout.ops.reshaped import reshaped
from codemod.layout.ops.rule import Alias, Rule, rules
from codemod.layout.program import COPIES, DECIDED, DIM_HINTS, VIEWS
from codemod.layout.size import INFER, UNKNOWN, AtomKind, Size
from codemod.layout.state import BEHIND, ONCE, names_in
from codemod.layout.value import (
    Condition,
    Constant,
    Foreign,
    Number,
    Qualified,
    Repeated,
    Several,
    Shape,
    Tensor,
    Unknown,
    Value,
    options,
)
from codemod.layout.viewable import Judgement, Legality, Target, judge, viewed

__all__ = ["DECIDED", "VIEWS", "observe_foreign", "observed", "observed_function"]

TORCH_DIM = Foreign("a Dim")
TORCH_MARK = Foreign("mark_dynamic")
"""Observed as the receivers where it is torch's own that is called."""
_DIMS = frozenset({"Dim", "dims", *(f"Dim.{hint}" for hint in DIM_HINTS)})
_VIEW = Rule((".view",), lambda: None, (), Alias.ALWAYS)


def observed(
    name: str, receiver: Value, node: ast.Call, arguments: tuple[list[Value], dict[str, Value], bool], frame: Frame
) -> Value:
    """A method call that is a site: `x.view(...)`, `x.bmm(y)`, or a reshape whose result is written."""
    positional, keywords, is_open = arguments
    if name in VIEWS:
        return _view(name, receiver, node, positional, keywords, is_open, frame)
    if name == "matrix_exp":
        return _matrix_exp(receiver, node, node.func.value if isinstance(node.func, ast.Attribute) else None, frame)
    tensor = as_tensor(receiver)
    target = None
    judgements: tuple[Judgement, Judgement] | None = None
    if name in COPIES:
        target = _copied_target(name, tensor, positional, keywords, is_open)
        judgements = _judged(tensor, target) if name != "contiguous" else _dense(tensor, bool(positional or keywords))
    names = _names(frame) if name == "bmm" or (not frame.callers and _begins_fixed(target)) else ()
    _note(node, receiver, positional, keywords, frame, target, judgements, names=names)
    rule = rules().get(f".{name}")
    if rule is None or is_open:
        return frame.unfollowed(node, f"what `{name}` returns")
    value = lift(rule, [tensor, *positional], keywords, frame.place(node))
    return replace(value, views=value.views | {id(node)}) if isinstance(value, Tensor) and name in COPIES else value


def observed_function(
    name: str, node: ast.Call, arguments: tuple[list[Value], dict[str, Value], bool], frame: Frame
) -> Value | None:
    """`torch.bmm(a, b)`, `torch.export.Dim("b")`, `torch.reshape(x, ...)`; None for a function of another library."""
    positional, keywords, is_open = arguments
    last = name.rpartition(".")[2]
    if name.removeprefix("torch.export.").removeprefix("dynamic_shapes.") in _DIMS and name.startswith("torch."):
        _note(node, TORCH_DIM, positional, keywords, frame)
        return TORCH_DIM
    if name in ("torch._dynamo.mark_dynamic", "torch._dynamo.decorators.mark_dynamic"):
        marked = positional[:1] or [keywords.get("t", Unknown("an argument that is missing", node.lineno))]
        _note(node, TORCH_MARK, marked, keywords, frame)
        return None
    if not name.startswith("torch.") or last not in (*COPIES, "bmm", "matrix_exp") or is_open:
        return None
    given = [*positional, *(keywords[k] for k in ("input",) if k in keywords)]
    receiver = given[0] if given else Unknown("an argument that is missing", node.lineno)
    if last == "matrix_exp":
        return _matrix_exp(receiver, node, node.args[0] if node.args else None, frame)
    _note(node, receiver, given[1:], keywords, frame, names=_names(frame) if last == "bmm" else ())
    rule = rules().get(name)
    return lift(rule, positional, keywords, frame.place(node)) if rule else None


def observe_foreign(receiver: Value, node: ast.Call, frame: Frame) -> None:
    """`.view` of something that is no tensor."""
    _note(node, receiver, (), {}, frame)


def _note(
    node: ast.Call,
    receiver: Value,
    positional: Sequence[Value],
    keywords: dict[str, Value],
    frame: Frame,
    target: Target | None = None,
    judgements: tuple[Judgement, Judgement] | None = None,
    is_target_a_shape: bool = True,
    names: tuple[tuple[str, Size], ...] = (),
    uncopied: tuple[Judgement, Judgement] | None = None,
) -> None:
    default, free = judgements or (None, None)
    frame.notebook.observe(
        node,
        Observation(
            receiver,
            tuple(positional),
            tuple(keywords.items()),
            target,
            is_target_a_shape,
            default,
            free,
            uncopied,
            frozenset(condition for condition in frame.when if not _is_callers(condition, frame)),
            frame.callers,
            names,
        ),
    )


def _names(frame: Frame) -> tuple[tuple[str, Size], ...]:
    """Expressions for sizes: the function's integers, then the first dims of its tensors."""
    bound = frame.state.names.items()
    numbers = [(name, value.size) for name, value in bound if isinstance(value, Number)]
    firsts = [
        (f"{name}.shape[0]", layout.dims[0].size)
        for name, value in bound
        if isinstance(value, Tensor) and (layout := value.default.exposed(1)).dims and not layout.dims[0].pack
    ]
    return (*numbers, *firsts)


def _begins_fixed(target: Target | None) -> bool:
    """Does the target begin with something that is not computed from a shape?"""
    first = target.items[0] if target is not None and target.items else None
    if not isinstance(first, Size) or first == INFER or first.terms is None:
        return False
    return not any(atom.kind is AtomKind.DIM for atom in first.atoms)


def _is_callers(condition: Condition, frame: Frame) -> bool:
    """A test of arguments alone comes out as the caller wants it."""
    text, changed = condition[0].partition(BEHIND)[::2]
    names = {name.partition(".")[0] for name in names_in(text)}
    return (not changed or changed[0] == ONCE[-1]) and names <= frame.arguments - {"self"}


def _judged(tensor: Tensor, target: Target | None) -> tuple[Judgement, Judgement]:
    default = judge(tensor.default, target)
    return default, default if tensor.any is tensor.default else judge(tensor.any, target)


def _dense(tensor: Tensor, has_format: bool) -> tuple[Judgement, Judgement]:
    """Is `.contiguous()` the tensor itself?  Never known with another memory format."""
    default, free = (
        Judgement(
            Legality.LEGAL if layout.is_contiguous and not has_format else Legality.MAYBE, layout, None, layout.origins
        )
        for layout in (tensor.default, tensor.any)
    )
    return default, free


def _matrix_exp(receiver: Value, node: ast.Call, operand: ast.expr | None, frame: Frame) -> Value:
    """torch takes the leading dims as one with a view, for more than one row of a matrix.

    Source: aten/src/ATen/native/LinearAlgebra.cpp, mexp.
    """
    tensor = as_tensor(receiver)
    target = _batched(tensor)
    copied = _copied(operand)
    uncopied = None
    if copied is not None and isinstance(value := frame.value(copied), Tensor):
        uncopied = _judged(value, _batched(value))
    _note(node, receiver, (), {}, frame, target, _judged(tensor, target), uncopied=uncopied)
    return lift(rules()[".matrix_exp"], [tensor], {}, frame.place(node))


def _batched(tensor: Tensor) -> Target:
    """(-1, n, n)"""
    layout = tensor.default.exposed(0, 2)
    last = layout.sizes[-2:] if layout.index(-2) is not None else (UNKNOWN, UNKNOWN)
    return Target((INFER, *last))


def _copied(node: ast.expr | None) -> ast.expr | None:
    """`x` of `x.contiguous()` and `x.clone()`."""
    match node:
        case ast.Call(func=ast.Attribute(value=copied, attr="contiguous" | "clone")):
            return copied
        case _:
            return None


def _view(
    name: str,
    receiver: Value,
    node: ast.Call,
    positional: Sequence[Value],
    keywords: dict[str, Value],
    is_open: bool,
    frame: Frame,
) -> Value:
    place = frame.place(node)
    tensor = as_tensor(receiver)
    if name == "view" and _is_dtype_view(positional, keywords):
        _note(node, receiver, positional, keywords, frame, is_target_a_shape=False)
        return Unknown("a view as another dtype", node.lineno, place.key)
    target, is_shape = _target(name, positional, keywords, is_open, node)
    judgements = _judged(tensor, target)
    names = _names(frame) if not frame.callers and _begins_fixed(target) else ()
    _note(node, receiver, positional, keywords, frame, target, judgements, is_shape, names)
    layouts = [
        _result(layout, target, judgement, world, place)
        for layout, judgement, world in zip((tensor.default, tensor.any), judgements, World, strict=True)
    ]
    value = combine(_VIEW, layouts[0], layouts[1], tensor, [tensor], place)
    return replace(value, views=value.views | {id(node)}) if isinstance(value, Tensor) else value


def _result(layout: Layout, target: Target | None, judgement: Judgement, world: World, place: Place) -> Layout | None:
    """Of a view that was accepted; where it is refused, of the copy that takes its place."""
    if target is None:
        return unknown_layout(place.key, world=World.DEFAULT) if layout.is_contiguous else None
    if judgement.legality is Legality.REFUSED:
        return reshaped(layout, target, world)
    return viewed(layout, target)


def _is_dtype_view(positional: Sequence[Value], keywords: dict[str, Value]) -> bool:
    if "dtype" in keywords:
        return True
    if len(positional) != 1:
        return False
    return any(
        (isinstance(option, Foreign) and option.kind == "dtype")
        or (isinstance(option, Qualified) and option.name.startswith(("torch.", "numpy.", "ml_dtypes.")))
        or isinstance(option, Constant)
        for option, _ in options(positional[0])
    )


def _target(
    name: str, positional: Sequence[Value], keywords: dict[str, Value], is_open: bool, node: ast.Call
) -> tuple[Target | None, bool]:
    """The sizes asked for, and whether it is certain that the argument is sizes and not a dtype."""
    given = [*positional, *(keywords[k] for k in ("size", "other", "shape") if k in keywords)]
    if is_open or not given:
        return None, bool(node.args[1:]) or any(isinstance(arg, ast.Starred) for arg in node.args)
    if name == "view_as":
        return as_target(shape_of(given[0])) if isinstance(given[0], Tensor) else None, True
    if len(given) > 1:
        return as_target(Several(tuple(given))), True
    match given[0]:
        case Number():
            return as_target(Several((given[0],))), True
        case Several() | Shape() | Repeated():
            return as_target(given[0]), True
        case _:
            text = ast.unparse(node.args[-1]) if node.args else "size"
            return None, any(word in text.lower() for word in ("shape", "size"))


def _copied_target(
    name: str, tensor: Tensor, positional: Sequence[Value], keywords: dict[str, Value], is_open: bool
) -> Target | None:
    if name == "contiguous" or is_open:
        return None
    if name == "reshape":
        given = [*positional, *(keywords[k] for k in ("shape",) if k in keywords)]
        if len(given) == 1 and isinstance(given[0], Several | Shape):
            return as_target(given[0])
        return as_target(Several(tuple(given)))
    if name in ("flatten", "ravel") and not positional and not keywords:
        return Target((INFER,))
    if name == "reshape_as" and positional and isinstance(positional[0], Tensor):
        return as_target(shape_of(positional[0]))
    if name == "flatten" and positional and not keywords:
        return _flattened(tensor.default, [as_index(value) for value in positional])
    return None


def _flattened(layout: Layout, bounds: Sequence[int | None]) -> Target | None:
    """The sizes that `flatten(start, end)` asks for."""
    start, end = (*bounds, -1)[:2]
    if start is None or end is None or start < 0:
        return None
    layout = layout.exposed(start)
    first = layout.index(start)
    if end == -1 and (first is not None or layout.pack_at == start):
        return Target((*layout.sizes[:start], INFER))
    last = layout.index(end)
    if first is None or last is None or layout.rank is None:
        return None
    return Target((*layout.sizes[:first], INFER, *layout.sizes[last + 1 :]))
