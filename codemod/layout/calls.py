"""Calls: which op, function or module it is, and what comes back."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from codemod.layout import sites
from codemod.layout.attributes import FLUENT, SUPER, as_tensor, attribute_of, parameter, rank_of, shape_of
from codemod.layout.frame import Frame
from codemod.layout.ops.lift import as_index, as_size, bind, lift
from codemod.layout.ops.rule import Alias, Rule, rules
from codemod.layout.parameters import left_open, taken
from codemod.layout.patched import ANY
from codemod.layout.program import REGISTERS, RESHAPERS, dotted
from codemod.layout.size import Atom, Size, product
from codemod.layout.state import State, join
from codemod.layout.subscripts import element, of_dict
from codemod.layout.targets import (
    assign,
    changed_module,
    elements,
    forget,
    forget_holders,
    grown_module,
    replace_tensor,
)
from codemod.layout.value import (
    DICT,
    Choice,
    Class,
    Condition,
    Constant,
    Foreign,
    Function,
    Instance,
    Method,
    Module,
    Number,
    Partial,
    Qualified,
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
    is_given,
    options,
    parts,
    views_of,
    with_views,
    without_none,
    written_views,
)
from codemod.layout.value import Mapping as Fieldwise
from codemod.layout.writers import module_writes_input, writes_input, written_arguments

Arguments = tuple[list[Value], dict[str, Value], bool]
"""Positional values, keywords, and whether a `*` or `**` hides more of them."""


def call(node: ast.Call, frame: Frame) -> Value:
    """The value of a call; the calls inside it, and inside what it calls, are observed."""
    function = node.func
    callee = _method(function, frame) if isinstance(function, ast.Attribute) else frame.value(function)
    callee = without_none(callee)  # what is called is not None
    cases = _arguments(node, frame)
    out = cases[0][0][1].get("out")
    if out is not None:
        frame.notebook.write(frozenset(views_of(out)), f"handed to `out=` of `{frame.spell(function)}`", node.lineno)
        if not _keeps_sizes(out):
            forget(out, frame, node.lineno)
    value = _of_cases(callee, node, cases, frame)
    if isinstance(value, Unknown) and not isinstance(callee, Function):
        _see_handed_on(cases[0][0], node, frame)
    if frame.program.patched and _is_patched(callee, function, frame):
        return frame.unfollowed(node, f"what a hook or another `forward` makes of `{frame.spell(function)}`")
    if out is None or not isinstance(callee, Qualified) or not callee.name.startswith("torch."):
        return value
    return each(out, lambda option: _filled(option, value, node, frame))


def _see_handed_on(arguments: Arguments, node: ast.Call, frame: Frame) -> None:
    """`pool.submit(fill, x.view(-1))`: what is not followed may call any function that it is given with the rest."""
    given = [*arguments[0], *arguments[1].values()]
    functions = [value for value in given if isinstance(value, Function | Method | Partial | Qualified)]
    views = frozenset(view for value in given for view in views_of(value)) if functions else frozenset()
    held = Unknown(f"what `{frame.spell(node.func)}` hands on", node.lineno, views=views)
    for function in functions if views else ():
        count = taken(function) if isinstance(function, Function) else 1
        _of_any(function, node, ([held] * count, {}, False), frame)


def _is_patched(callee: Value, function: ast.expr, frame: Frame) -> bool:
    name = dotted(function).rpartition(".")[2]
    names = frame.program.patched
    return (name in names or ANY in names) and any(isinstance(v, Module | Instance) for v, _ in options(callee))


def _filled(out: Value, value: Value, node: ast.Call, frame: Frame) -> Value:
    """What torch returns where it was given `out=`: that tensor, which it resizes only if its sizes do not fit."""
    if isinstance(out, Constant) and out.value is None:
        return value
    if isinstance(out, Tensor) and _keeps_sizes(out):
        return out
    return replace(frame.unfollowed(node), views=frozenset(views_of(out)))


def _of_cases(
    callee: Value, node: ast.Call, cases: Sequence[tuple[Arguments, frozenset[Condition]]], frame: Frame
) -> Value:
    if len(cases) == 1:
        return _of_any(callee, node, cases[0][0], frame)
    ways = [(partial(_of_any, callee, node, arguments, frame), when) for arguments, when in cases]
    return choose(_each_way(ways, _may_change(callee), frame))


def _each_way(
    ways: Iterable[tuple[Callable[[], Value], frozenset[Condition]]], is_changing: bool, frame: Frame
) -> list[tuple[Value, frozenset[Condition]]]:
    """The values of a call, one of which comes about: where it changes what is known, no other changes it too."""
    outer, before, ends, found = frame.when, frame.state, [], []
    for evaluate, when in ways:
        if any((text, not held) in outer for text, held in when):
            continue
        frame.when = outer | when
        frame.state = before.fork() if is_changing else before
        found.append((evaluate(), when))
        ends.append((frame.state, None))
    frame.when = outer
    joined = join(ends) if is_changing else None
    if joined is not None:
        frame.state = joined
    return found


def _of_any(callee: Value, node: ast.Call, arguments: Arguments, frame: Frame) -> Value:
    if not isinstance(callee, Choice):
        return _of_one(callee, node, arguments, frame)
    outer = frame.when
    if sum(isinstance(option, Function) and not when for option, when in callee.options) > 1:
        arguments = _told_of_none(arguments, node, frame)
    is_changing = _may_change(callee)
    ways = (
        (partial(_of_one, option, node, _left(arguments, outer | when), frame), when) for option, when in callee.options
    )
    alternatives = _each_way(ways, is_changing, frame)
    if not alternatives:
        return _returned(node, frame)
    return choose(alternatives)


def _may_change(callee: Value) -> bool:
    """May a call of it bind names anew: `xs.append`, `x.t_`, a function of the user's?"""
    if isinstance(callee, Choice):
        return any(_may_change(option) for option, _ in callee.options)
    if isinstance(callee, Method):
        return callee.name in _CHANGING
    if isinstance(callee, Partial):
        return _may_change(callee.function)
    return isinstance(callee, Function | Instance)


def _left(arguments: Arguments, when: frozenset[Condition]) -> Arguments:
    """The arguments where the callee is the one that it is under these tests."""
    positional, keywords, is_open = arguments
    if not when or not any(isinstance(value, Choice) for value in (*positional, *keywords.values())):
        return arguments
    left = State(facts=when)
    return [left.possible(v) for v in positional], {name: left.possible(v) for name, v in keywords.items()}, is_open


def _told_of_none(arguments: Arguments, node: ast.Call, frame: Frame) -> Arguments:
    """As `fns[i](xs[i])` hands them: which of several values goes with which function is not known."""

    def told(value: Value) -> Value:
        if not isinstance(value, Choice):
            return value
        return forgotten(value, f"one of the values that `{frame.spell(node)}` hands on", node.lineno)

    positional, keywords, is_open = arguments
    return [told(value) for value in positional], {name: told(value) for name, value in keywords.items()}, is_open


def _keeps_sizes(out: Value) -> bool:
    """Is it certain that `out=` does not give the tensor another size?  Torch does so to an empty one."""
    sizes = [size for option, _ in options(out) if isinstance(option, Tensor) for size in option.default.sizes]
    return bool(sizes) and not any(size.constant == 0 for size in sizes)


def _method(node: ast.Attribute, frame: Frame) -> Value:
    """The callee of `value.name(...)`: tensor methods are taken before attributes of that name."""
    if frame.state.dotted and dotted(node) in frame.state.dotted:
        return frame.value(node)
    base = without_none(frame.value(node.value))  # None has no methods: where it is called, it is not None
    return each(base, lambda option: _method_of(option, node, frame))


def _method_of(value: Value, node: ast.Attribute, frame: Frame) -> Value:
    if isinstance(value, Method):
        held = frozenset(views_of(value))
        value = replace(frame.unfollowed(node.value), views=held)  # no method has methods: `posterior.mean` was a field
    return Method(value, node.attr) if _has_methods(value, node.attr, frame) else attribute_of(value, node, frame)


def _has_methods(value: Value, name: str, frame: Frame) -> bool:
    """True where `value.name(...)` calls a method that is not looked up further."""
    if isinstance(value, Instance):
        return name.startswith(("register_", "add_module")) and frame.interpreter.method(value.of, name) is None
    return isinstance(value, Tensor | Unknown | Number | Foreign) and value != Foreign(SUPER)


def _arguments(node: ast.Call, frame: Frame) -> list[tuple[Arguments, frozenset[Condition]]]:
    """What is handed on; several where `f(*shape)` unpacks one of several lists."""
    positional: list[Value] = []
    is_open, apart = False, None
    for argument in node.args:
        value = frame.value(argument)
        if not isinstance(argument, ast.Starred):
            positional.append(value)
            continue
        spread = elements(value)
        if spread is not None:
            positional += spread
        elif apart is None and isinstance(value, Choice) and all(elements(o) is not None for o, _ in value.options):
            apart = len(positional), value.options
        else:
            is_open = True
    keywords = {keyword.arg: frame.value(keyword.value) for keyword in node.keywords if keyword.arg}
    for keyword in node.keywords:
        if keyword.arg is None:
            named = frame.value(keyword.value)
            if isinstance(named, Fieldwise):
                keywords |= named.items
            else:
                is_open = True
    if apart is None:
        return [((positional, keywords, is_open), frozenset())]
    at, ways = apart
    spreads = ((elements(option) or [], when) for option, when in ways)
    return [(([*positional[:at], *spread, *positional[at:]], keywords, is_open), when) for spread, when in spreads]


def _of_one(callee: Value, node: ast.Call, arguments: Arguments, frame: Frame) -> Value:
    positional, keywords, is_open = arguments
    if isinstance(callee, Function | Instance | Module) and id(node) in frame.program.sites:
        sites.observe_foreign(callee, node, frame)
    match callee:
        case Method(receiver, name):
            return _call_method(receiver, name, node, arguments, frame)
        case Qualified(name):
            return _call_qualified(name, node, arguments, frame)
        case Function():
            if is_open:
                keywords = {**left_open(callee, positional, keywords), **keywords}
            return frame.interpreter.call_function(callee, positional, keywords, node, frame)
        case Class():
            return _construct(callee, node, arguments, frame)
        case Instance():
            return _call_instance(callee, node, arguments, frame)
        case Partial(function, first, named):
            return _of_any(function, node, ([*first, *positional], {**dict(named), **keywords}, is_open), frame)
        case Module():
            return _call_module(callee, positional, keywords, node, frame)
        case Unknown():
            returned = replace(_returned(node, frame, callee), views=callee.held())
            return frame.interpreter.returned_by(callee, returned, (*positional, *keywords.values()))
        case _:
            given = (*positional, *keywords.values())
            return frame.interpreter.returned_by(Unknown(""), _returned(node, frame, callee), given)


def _returned(node: ast.Call, frame: Frame, callee: Value | None = None) -> Unknown:
    text = frame.spell(node.func)
    unknown = frame.unfollowed(node, f"what `{text}` returns")
    if callee is None or not is_given(callee):
        return unknown
    return replace(unknown, given=f"what the caller's `{text}` returns may be strided", is_result=True)


def _call_instance(callee: Instance, node: ast.Call, arguments: Arguments, frame: Frame) -> Value:
    for name in ("__call__", "forward"):
        function = frame.interpreter.method(callee.of, name)
        if function is not None and not callee.of.program.binds(callee.of.node, name):
            function = replace(function, bound=callee)
            return frame.interpreter.call_function(function, arguments[0], arguments[1], node, frame)
    returned = _returned(node, frame)
    module = _torch_module(callee, 0, frame)
    if module is not None:
        return _call_module(module, arguments[0], arguments[1], node, frame)
    frame.interpreter.see_missing(callee.of, returned)
    return returned


def _torch_module(of: Instance, within: int, frame: Frame) -> Module | None:
    """The object as the torch.nn module that its class is made from."""
    name = frame.interpreter.torch_module(of.of, within)
    rule = rules().get(name) if name is not None else None
    if name is None or rule is None:
        return None
    if of.positional is not None and frame.interpreter.method(of.of, "__init__") is None:
        return Module(name, of.positional, of.keywords, of.label)
    names = (*(parameter.name for parameter in rule.constructor), "inplace")
    given = ((n, Unknown(f"what `{of.label}.{n}` is", name=f"{of.label}.{n}")) for n in names)
    return Module(name, (), tuple(given), of.label)


def _construct(callee: Class, node: ast.Call, arguments: Arguments, frame: Frame) -> Value:
    positional, keywords, is_open = arguments
    views = frozenset(view for value in (*positional, *keywords.values()) for view in views_of(value))
    known = None if is_open else tuple(positional)
    made = Instance(callee, frame.place(node).key, known, tuple(keywords.items()), views)
    init = frame.interpreter.method(callee, "__init__") if views else None
    if init is not None:
        frame.interpreter.call_function(replace(init, bound=made), positional, keywords, node, frame)
    return made


def _register(
    instance: Instance, node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame
) -> Value:
    """`self.register_buffer("mask", tensor)`."""
    name = positional[0] if positional else keywords.get("name")
    value = (
        positional[1]
        if len(positional) > 1
        else next((keywords[k] for k in ("tensor", "param", "module") if k in keywords), None)
    )
    if isinstance(name, Constant) and isinstance(name.value, str) and value is not None:
        label = f"{instance.label}.{name.value}"
        owner = dotted(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        value = parameter(value.default, label) if isinstance(value, Tensor) else value
        frame.state.bind(f"{owner or instance.label}.{name.value}", value)
    return Foreign("None")


def _call_module(
    module: Module, positional: Sequence[Value], keywords: Mapping[str, Value], node: ast.expr, frame: Frame
) -> Value:
    if module.name == "torch.nn.Sequential":
        value = positional[0] if positional else Unknown("the input of a Sequential", node.lineno)
        for i, item in enumerate(module.positional):
            inner = replace(frame, key=f"{frame.key}/{i}")
            if isinstance(item, Repeated):  # none of it, or what the last of them makes of whatever it is given
                given = _may_share(frame.unfollowed(node, "what a part of a Sequential returns"), [value])
                value = choose(((value, frozenset()), (_apply(item.item, given, node, inner), frozenset())))
            else:
                value = _apply(item, value, node, inner)
        return value
    rule = rules().get(module.name)
    if rule is None:
        return frame.unfollowed(node, f"what `{module.label or module.name}` returns")
    if positional and module_writes_input(module):
        return _write_input(positional[0], node, frame)
    constructor = _constructor(rule, module)
    if constructor is None:
        return frame.unfollowed(node, f"what `{module.label or module.name}` returns")
    return lift(rule, positional, keywords, frame.place(node, f"{module.name.rpartition('.')[2]}(...)"), constructor)


def _write_input(value: Value, node: ast.expr, frame: Frame) -> Value:
    """`F.relu(x, inplace=True)`: x is written and handed back."""
    frame.notebook.write(written_views(value), f"written by `{frame.place(node).text}`", node.lineno)
    return value


def _apply(item: Value, value: Value, node: ast.expr, frame: Frame) -> Value:
    match item:
        case Module():
            return _call_module(item, [value], {}, node, frame)
        case Instance() if isinstance(node, ast.Call):
            return _call_instance(item, node, ([value], {}, False), frame)
        case Choice():
            return each(item, lambda option: _apply(option, value, node, frame))
        case _:
            return _may_share(frame.unfollowed(node, "what a part of a Sequential returns"), [value])


def _constructor(rule: Rule, module: Module) -> dict[str, Value] | None:
    parameters = rule.constructor
    names = {parameter.name for parameter in parameters}
    return bind(parameters, module.positional[: len(parameters)], {k: v for k, v in module.keywords if k in names})


def _call_method(receiver: Value, name: str, node: ast.Call, arguments: Arguments, frame: Frame) -> Value:
    positional, keywords, is_open = arguments
    if isinstance(receiver, Foreign):
        return _call_foreign(receiver, name, node, arguments, frame)
    if isinstance(receiver, Instance) and name in REGISTERS:
        return _register(receiver, node, positional, keywords, frame)
    if isinstance(receiver, Instance | Module) and name in FLUENT:
        return receiver
    if not isinstance(receiver, Tensor | Unknown | Number):
        return _call_container(receiver, name, node, positional, frame)
    if name in sites.VIEWS or id(node) in frame.program.sites:
        return sites.observed(name, receiver, node, arguments, frame)
    special = _TENSOR_METHODS.get(name)
    if special is not None:
        return special(as_tensor(receiver), node, positional, frame)
    if (name.endswith("_") and not name.endswith("__")) or name in _WRITING_OPERATORS:
        return _write(receiver, name, node, arguments, frame)
    rule = rules().get(f".{name}")
    if rule is None or is_open:
        return _may_share(_returned(node, frame, receiver), [receiver])
    return lift(rule, [as_tensor(receiver), *positional], keywords, frame.place(node))


def _may_share(value: Unknown, given: Iterable[Value]) -> Unknown:
    """What an op returns that is not known: maybe a view of what it was given."""
    return replace(value, views=frozenset(view for item in given for view in views_of(item)))


def _write(receiver: Tensor | Unknown | Number, name: str, node: ast.Call, arguments: Arguments, frame: Frame) -> Value:
    """`x.add_(y)`: the receiver is written and handed back; its layout stays unless a rule says otherwise."""
    frame.notebook.write(written_views(receiver), f"written by `{name}`", node.end_lineno or node.lineno)
    if name in RESHAPERS and isinstance(node.func, ast.Attribute):
        return _reshape_in_place(receiver, name, node, arguments, frame)
    rule = rules().get(f".{name}")
    if rule is None or name in ("detach_", "requires_grad_"):
        return receiver
    return lift(rule, [as_tensor(receiver), *arguments[0]], arguments[1], frame.place(node))


def _reshape_in_place(
    receiver: Tensor | Unknown | Number, name: str, node: ast.Call, arguments: Arguments, frame: Frame
) -> Value:
    """`x.t_()`: what it does to the layout is what `x.t()` would."""
    assert isinstance(node.func, ast.Attribute)
    rule = rules().get(f".{name.rstrip('_')}") if name not in ("resize_", "resize_as_", "set_") else None
    new: Value = _returned(node, frame)
    if rule is not None:
        new = lift(rule, [as_tensor(receiver), *arguments[0]], arguments[1], frame.place(node))
    replace_tensor(node.func.value, receiver, new, frame)
    return new


def _size(tensor: Tensor, node: ast.Call, positional: Sequence[Value], frame: Frame) -> Value:
    shape = shape_of(tensor)
    given = positional[0] if positional else next((frame.value(k.value) for k in node.keywords if k.arg == "dim"), None)
    if given is None:
        return shape
    position = as_index(given)
    layout = tensor.default
    if position is not None:
        layout = layout.exposed(position + 1 if position >= 0 else 0, -position if position < 0 else 0)
    i = layout.index(position)
    return Number(layout.dims[i].size if i is not None else Size.of(Atom(frame.place(node).key)))


def _numel(tensor: Tensor, node: ast.Call, positional: Sequence[Value], frame: Frame) -> Value:
    return Number(tensor.default.numel)


def _rank(tensor: Tensor, node: ast.Call, positional: Sequence[Value], frame: Frame) -> Value:
    return rank_of(tensor, node, frame)


def _array(tensor: Tensor, node: ast.Call, positional: Sequence[Value], frame: Frame) -> Value:
    return Foreign("a numpy array", tensor.views)


def _number(tensor: Tensor, node: ast.Call, positional: Sequence[Value], frame: Frame) -> Value:
    return Number(Size.of(Atom(frame.place(node).key)))


def _plain(tensor: Tensor, node: ast.Call, positional: Sequence[Value], frame: Frame) -> Value:
    return Foreign("a plain value")


def _as_subclass(tensor: Tensor, node: ast.Call, positional: Sequence[Value], frame: Frame) -> Value:
    """A class of its own may override any method."""
    if positional and isinstance(positional[0], Qualified) and positional[0].name == "torch.Tensor":
        return tensor
    return Foreign("a tensor of a class of its own", tensor.views)


_TENSOR_METHODS: dict[str, Callable[[Tensor, ast.Call, Sequence[Value], Frame], Value]] = {
    "size": _size,
    "numel": _numel,
    "nelement": _numel,
    "dim": _rank,
    "ndimension": _rank,
    "numpy": _array,
    "item": _number,
    "is_contiguous": _plain,
    "is_floating_point": _plain,
    "is_complex": _plain,
    "data_ptr": _plain,
    "backward": _plain,
    "stride": _plain,
    "storage_offset": _plain,
    "get_device": _plain,
    "tolist": _plain,
    "register_hook": _plain,
    "as_subclass": _as_subclass,
}

_OTHER_SUPER = "another class's super()"
_HELPER = "_chunked_bmm.chunked_bmm"
"""What the chunk-bmm transform writes in place of torch.bmm."""
_WRITING_OPERATORS = frozenset(
    {
        "__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__ipow__", "__iand__",
        "__ior__", "__ixor__",
    }
)  # fmt: skip
_DICT_WRITERS = frozenset({"update", "pop", "popitem", "setdefault", "clear"})
_LIST_WRITERS = frozenset(
    {
        "add", "append", "appendleft", "clear", "extend", "extendleft", "insert", "pop", "popleft", "remove", "reverse",
        "rotate", "sort",
    }
)  # fmt: skip
_MODULE_WRITERS = frozenset({"add_module", "append", "clear", "extend", "insert", "pop", "register_module", "update"})
_CHANGING = _DICT_WRITERS | _LIST_WRITERS | _MODULE_WRITERS | RESHAPERS
_ARRAY_WRITERS = frozenset({"fill", "sort", "put", "partition", "itemset", "resize"})


def _call_foreign(receiver: Foreign, name: str, node: ast.Call, arguments: Arguments, frame: Frame) -> Value:
    if name in _ARRAY_WRITERS:
        frame.notebook.write(receiver.views, f"written by numpy's `{name}`", node.lineno)
    if name in sites.DECIDED:
        sites.observe_foreign(receiver, node, frame)
    if receiver.kind == _OTHER_SUPER:
        return _returned(node, frame)
    if receiver.kind == SUPER:
        this = frame.state.names.get("self")
        module = _torch_module(this, frame.active[-1], frame) if isinstance(this, Instance) else None
        if name != "forward" or module is None or arguments[2]:
            return _returned(node, frame)
        return _call_module(module, arguments[0], arguments[1], node, frame)
    rule = rules().get(f"numpy.{name}")
    if receiver.array is not None and rule is not None:
        positional, keywords, _ = arguments
        return _as_array(lift(rule, [receiver.array, *positional], keywords, frame.place(node)))
    if receiver.kind == DICT:
        return of_dict(receiver, node, frame)
    return Foreign(receiver.kind, receiver.views)


def _as_array(value: Value) -> Value:
    """What a numpy function returns: strides are followed, and it is no tensor."""

    def told(option: Value) -> Value:
        return (
            Foreign("a numpy array", option.views, option) if isinstance(option, Tensor) else Foreign("a numpy array")
        )

    return each(value, told)


def _call_container(receiver: Value, name: str, node: ast.Call, positional: Sequence[Value], frame: Frame) -> Value:
    if name in sites.DECIDED:
        sites.observe_foreign(receiver, node, frame)
    text = dotted(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if name in _DICT_WRITERS and isinstance(receiver, Fieldwise):
        forget_holders(receiver, text, frame, node.lineno)
        if text:
            held = frozenset(view for value in (receiver, *positional) for view in views_of(value))
            frame.bind(text, Foreign(DICT, held))
    if name in _LIST_WRITERS and isinstance(receiver, Several | Repeated):
        return _change_list(receiver, name, text, node, positional, frame)
    if name in _MODULE_WRITERS and isinstance(receiver, Module):
        forget_holders(receiver, text, frame, node.lineno)
        new = [*positional, *(frame.value(k.value) for k in node.keywords if k.arg == "module")][-1:]
        if text and new and name in ("append", "add_module", "register_module"):
            frame.bind(text, grown_module(receiver, new[0], text, node, frame))
        elif text:
            frame.bind(text, changed_module(receiver, new, node, frame) if name == "insert" else _returned(node, frame))
    if name == "numel" and isinstance(receiver, Shape):
        return Number(product(item if isinstance(item, Size) else Size.of(item.atom) for item in receiver.items))
    return _returned(node, frame)


def _change_list(
    receiver: Several | Repeated, name: str, text: str, node: ast.Call, positional: Sequence[Value], frame: Frame
) -> Value:
    """`xs.append(y)`: from then on any element is any of them."""
    forget_holders(receiver, text, frame, node.lineno)
    items: tuple[Value, ...] = receiver.items if isinstance(receiver, Several) else (receiver.item,)
    given: Sequence[Value] = positional[-1:] if name in ("append", "add", "appendleft", "insert") else ()
    if name in ("extend", "extendleft") and positional:
        known = elements(positional[0])
        given = known if known is not None else [element(positional[0], node.args[0], frame)]
    changed: Value = Repeated(choose((item, frozenset()) for item in (*items, *given))) if items or given else receiver
    if isinstance(receiver, Several) and name == "pop" and not positional:
        changed = Several(items[:-1])
    if text:
        frame.bind(text, changed)
    if name not in ("pop", "popleft"):
        return Foreign("None")
    return choose((item, frozenset()) for item in items) if items else _returned(node, frame)


def _call_qualified(name: str, node: ast.Call, arguments: Arguments, frame: Frame) -> Value:
    positional, keywords, is_open = arguments
    if name.startswith("torch.Tensor.") and positional:
        method = each(positional[0], lambda receiver: Method(receiver, name.rpartition(".")[2]))
        return _of_any(method, node, (positional[1:], keywords, is_open), frame)
    if id(node) in frame.program.sites:
        seen = sites.observed_function(name, node, arguments, frame)
        if seen is not None:
            return seen
    special = _FUNCTIONS.get(name)
    if special is not None:
        return special(node, positional, keywords, frame)
    for value in written_arguments(name, positional, keywords):
        frame.notebook.write(frozenset(views_of(value)), f"written by `{name.rpartition('.')[2]}`", node.lineno)
    if name.endswith("_") and positional:
        return positional[0]
    rule = rules().get("torch.bmm" if name.endswith(_HELPER) else name)
    if rule is not None and not is_open:
        if (
            name.startswith("torch.nn.")
            and not name.startswith("torch.nn.functional.")
            and name != "torch.nn.Parameter"
        ):
            return Module(name, tuple(positional), tuple(keywords.items()))
        first = positional[0] if positional else keywords.get("input")
        if first is not None and writes_input(name, positional, keywords):
            return _write_input(first, node, frame)
        value = lift(rule, positional, keywords, frame.place(node))
        if rule.alias is not Alias.NEVER and isinstance(value, Tensor) and isinstance(first, Foreign):
            value = with_views(value, first.views)  # `torch.from_numpy(x.view(-1).numpy())`
        return _as_array(value) if name.startswith("numpy.") else value
    if name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper():
        if is_open or (name == "torch.nn.Sequential" and len(positional) == 1 and not _is_told(positional[0])):
            return _returned(node, frame)
        return Module(name, tuple(_module_items(name, positional)), tuple(keywords.items()))
    if name.startswith("math."):
        return Number(Size(None))
    if name.startswith(("numpy.", "np.")):
        return Foreign("a numpy array")
    returned = _returned(node, frame)
    if name.startswith("torch."):
        return _may_share(returned, (*positional, *keywords.values()))
    given = (*positional, *keywords.values())
    found = frame.interpreter.imported(name, returned, given, frame)
    if found is None:
        return frame.interpreter.returned_by(Unknown(""), returned, given)
    return _of_one(found, node, arguments, frame)


def _is_told(item: Value) -> bool:
    """What a Sequential is given alone: a module, or a dict of them that is followed."""
    return isinstance(item, Module | Instance) or elements(item) is not None


def _module_items(name: str, positional: Sequence[Value]) -> Sequence[Value]:
    if name.endswith(("ModuleList", "Sequential")) and len(positional) == 1:
        known = elements(positional[0])
        if known is not None:
            return known
        if isinstance(positional[0], Repeated):
            return [positional[0].item]
    return positional


def _length(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    match positional[0] if positional else None:
        case Several(items):
            return Number(Size.of(len(items)))
        case Shape(items) if all(isinstance(item, Size) for item in items):
            return Number(Size.of(len(items)))
        case Tensor() as tensor:
            return _size(tensor, ast.copy_location(ast.Call(node.func, [], []), node), [Number(Size.of(0))], frame)
        case _:
            return Number(Size.of(Atom(frame.place(node).key)))


def _same(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    return positional[0] if positional else Several(())


def _dict(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    if not positional and all(keyword.arg for keyword in node.keywords):
        return Fieldwise(tuple(keywords.items()))
    held = frozenset(view for value in (*positional, *keywords.values()) for view in views_of(value))
    return Foreign(DICT, held)


def _reversed(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    match positional:
        case [Several(items)]:
            return Several(items[::-1])
        case [Repeated() as same]:
            return same
        case _:
            return frame.unfollowed(node)


def _integer(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    size = as_size(positional[0]) if positional else Size(None)
    return Number(size if size.terms is not None else Size.of(Atom(frame.place(node).key)))


def _bound(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    """`max(a, b)` and `min`: one of them, which is not told apart."""
    known = [value.size.constant for value in positional if isinstance(value, Number)]
    if len(known) == len(positional) >= 2 and None not in known:
        numbers = [k for k in known if k is not None]
        return Number(Size.of(max(numbers) if dotted(node.func) == "max" else min(numbers)))
    if len(known) == len(positional) >= 2:
        return Number(Size.of(Atom(frame.place(node).key)))
    return frame.unfollowed(node, number=Size.of(Atom(frame.place(node).key)))


def _range(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    return Foreign("a range")


def _zip(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    if positional and all(isinstance(value, Several) for value in positional) and any(map(holds_callable, positional)):
        return Several(tuple(Several(row) for row in zip(*map(parts, positional), strict=False)))
    return Repeated(
        Several(tuple(element(value, arg, frame) for value, arg in zip(positional, node.args, strict=False)))
    )


def _enumerate(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    if len(positional) == 1 and not keywords and isinstance(positional[0], Several) and holds_callable(positional[0]):
        items = positional[0].items
        return Several(tuple(Several((Number(Size.of(i)), item)) for i, item in enumerate(items)))
    counter = Number(Size.of(Atom(f"{frame.place(node).key}[]")))
    return (
        Repeated(Several((counter, element(positional[0], node.args[0], frame))))
        if positional
        else _returned(node, frame)
    )


def _map(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    if len(positional) < 2 or len(positional) != len(node.args):
        return _returned(node, frame)
    items = [element(value, arg, frame) for value, arg in zip(positional[1:], node.args[1:], strict=True)]
    return Repeated(_of_any(positional[0], node, (items, {}, False), frame))


def _partial(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    if not positional or len(positional) != len(node.args) or len(keywords) != len(node.keywords):
        return _returned(node, frame)
    return Partial(positional[0], tuple(positional[1:]), tuple(keywords.items()))


def _getattr(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    """`getattr(x, "name")`, which is `x.name`, or what stands behind it."""
    match node.args:
        case [of, ast.Constant(value=str() as name), *rest] if len(positional) == 1 + 1 + len(rest):
            found = attribute_of(positional[0], ast.copy_location(ast.Attribute(of, name), node), frame)
            return choose([(found, frozenset()), *((value, frozenset()) for value in positional[2:])])
        case _:
            return _returned(node, frame)


def _setattr(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    """`setattr(x, "name", y)`, which is `x.name = y`."""
    match node.args:
        case [of, ast.Constant(value=str() as name), _]:
            assign(ast.copy_location(ast.Attribute(of, name), node), positional[2], frame)
    return Foreign("None")


def _super(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    match node.args, positional:
        case [], _:
            return Foreign(SUPER)
        case [_, ast.Name(id="self")], [Class(of, _, program), _]:
            is_own = frame.active[-1] in map(id, program.own_methods(of).values())
            return Foreign(SUPER if is_own else _OTHER_SUPER)
        case _:
            return Foreign(_OTHER_SUPER)


def _parameter(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    data = positional[0] if positional else keywords.get("data")
    missing = _returned(node, frame)
    return each(data or missing, lambda option: _as_parameter(option, missing, frame, frame.place(node).key))


def _as_parameter(data: Value, missing: Unknown, frame: Frame, label: str) -> Value:
    if isinstance(data, Tensor):
        made = parameter(data.default, label)
        return made if data.any.is_contiguous else replace(made, any=data.any)  # it keeps the strides of its data
    if not isinstance(data, Unknown):
        return missing
    made_of = replace(missing, given=data.given, is_result=data.is_result)
    return frame.interpreter.returned_by(data, made_of, ())


def _nothing(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    return Foreign("a plain value")


def _swap(node: ast.Call, positional: Sequence[Value], keywords: Mapping[str, Value], frame: Frame) -> Value:
    """`torch.utils.swap_tensors(x, y)`: each of the two has the other's strides."""
    for value in (*positional, *keywords.values()):
        forget(value, frame, node.lineno)
    return Foreign("None")


_FUNCTIONS: dict[str, Callable[[ast.Call, Sequence[Value], Mapping[str, Value], Frame], Value]] = {
    "len": _length,
    "int": _integer,
    "max": _bound,
    "min": _bound,
    "range": _range,
    "zip": _zip,
    "enumerate": _enumerate,
    "map": _map,
    "functools.partial": _partial,
    "getattr": _getattr,
    "setattr": _setattr,
    "dict": _dict,
    "list": _same,
    "tuple": _same,
    "reversed": _reversed,
    "iter": _same,
    "torch.Size": _same,
    "torch.jit.annotate": lambda node, positional, keywords, frame: positional[-1],
    "typing.cast": lambda node, positional, keywords, frame: positional[-1],
    "super": _super,
    "torch.nn.Parameter": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch.nn.Buffer": _parameter,
    "torch.utils.swap_tensors": _swap,
    "memoryview": lambda node, positional, keywords, frame: Foreign(
        "a memoryview", frozenset(view for value in positional for view in views_of(value))
    ),
    **dict.fromkeys(
        ("isinstance", "print", "str", "float", "bool", "type", "id", "hasattr", "repr", "torch.device"), _nothing
    ),
}


def top_frame(frame: Frame) -> Frame:
    """A frame for the module's own level."""
    return replace(frame, state=State(), key="", name="", callers=(), returned=[])
