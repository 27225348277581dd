"""The value of an expression."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Set
from dataclasses import replace
from itertools import pairwise

from codemod.layout import calls, subscripts
from codemod.layout.attributes import attribute_of
from codemod.layout.frame import Frame
from codemod.layout.layout import Pack
from codemod.layout.narrow import narrowed
from codemod.layout.ops.lift import as_size, lift
from codemod.layout.ops.rule import rules
from codemod.layout.program import dotted
from codemod.layout.size import UNKNOWN, Atom, Size, product
from codemod.layout.state import join
from codemod.layout.targets import assign, elements
from codemod.layout.value import (
    DICT,
    Choice,
    Class,
    Constant,
    Foreign,
    Function,
    Leading,
    Mapping,
    Number,
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
    may_be,
    options,
    views_of,
)

UNROLLED_AT_MOST = 8
"""A comprehension over more elements than this is one element of unknown place."""


def evaluate(node: ast.expr, frame: Frame) -> Value:
    """The value, with the calls inside it observed on the way."""
    evaluator = _EVALUATORS.get(type(node))
    return evaluator(node, frame) if evaluator else _others(node, frame)


def _name(node: ast.Name, frame: Frame) -> Value:
    value = frame.state.look_up(node.id)
    return value if value is not None else global_value(node.id, frame)


def global_value(name: str, frame: Frame) -> Value:
    """Of a name that the function does not bind."""
    program = frame.program
    if name in program.functions:
        found: list[Value] = [Function(n, name, program) for n in program.alternatives.get(name, ())]
        if name in program.imports:
            found.append(Qualified(program.imports[name]))
        return choose((f, frozenset()) for f in found or [Function(program.functions[name], name, program)])
    if name in program.classes:
        return Class(program.classes[name], name, program)
    if name in program.imports:
        return Qualified(program.imports[name])
    constant = program.constants.get(name)
    if isinstance(constant, ast.Constant | ast.UnaryOp | ast.Tuple | ast.List | ast.BinOp | ast.Call | ast.Attribute):
        return _global_constant(name, constant, frame)
    if isinstance(constant, ast.Dict) and all(isinstance(item, ast.Name | ast.Lambda) for item in constant.values):
        table = _global_constant(name, constant, frame)
        if isinstance(table, Mapping) and all(holds_callable(item) for _, item in table.items):
            return table
    if hasattr(builtins, name):
        return Qualified(name)
    unknown = Unknown(f"what `{name}` is", name=name)
    starred = (frame.interpreter.imported(f"{star}.{name}", unknown, (), frame) for star in program.stars)
    return next((value for value in starred if value is not None), unknown)


def _global_constant(name: str, node: ast.expr, frame: Frame) -> Value:
    if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name | ast.Attribute):
        return Unknown(f"what `{name}` is", name=name)
    key = ("global", frame.program.path, name)
    if key not in frame.summaries:
        frame.summaries[key] = Unknown(f"what `{name}` is", name=name)
        frame.summaries[key] = evaluate(node, calls.top_frame(frame))
    return frame.summaries[key]


def _constant(node: ast.Constant, frame: Frame) -> Value:
    if isinstance(node.value, int) and not isinstance(node.value, bool):
        return Number(Size.of(node.value))
    return Constant(node.value)


def _attribute(node: ast.Attribute, frame: Frame) -> Value:
    return attribute_of(evaluate(node.value, frame), node, frame)


def _subscript(node: ast.Subscript, frame: Frame) -> Value:
    return subscripts.subscript(evaluate(node.value, frame), node, frame)


def _sequence(node: ast.Tuple | ast.List, frame: Frame) -> Value:
    items: list[Value] = []
    for element in node.elts:
        if not isinstance(element, ast.Starred):
            items.append(evaluate(element, frame))
            continue
        spread = elements(evaluate(element.value, frame))
        if spread is None:
            return frame.unfollowed(node)
        items += spread
    return Several(tuple(items))


def _dict(node: ast.Dict, frame: Frame) -> Value:
    values = [evaluate(value, frame) for value in node.values]
    keys = [evaluate(key, frame) if key else None for key in node.keys]
    if all(isinstance(key, Constant) and isinstance(key.value, str) for key in keys):
        return Mapping(
            tuple((str(key.value), value) for key, value in zip(keys, values, strict=True) if isinstance(key, Constant))
        )
    return Foreign(DICT)


_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "torch.add",
    ast.Sub: "torch.sub",
    ast.Mult: "torch.mul",
    ast.Div: "torch.div",
    ast.FloorDiv: "torch.floor_divide",
    ast.Mod: "torch.remainder",
    ast.Pow: "torch.pow",
    ast.MatMult: "torch.matmul",
    ast.BitAnd: "torch.bitwise_and",
    ast.BitOr: "torch.bitwise_or",
    ast.BitXor: "torch.bitwise_xor",
    ast.LShift: "torch.bitwise_left_shift",
    ast.RShift: "torch.bitwise_right_shift",
}


def _binary(node: ast.BinOp, frame: Frame) -> Value:
    left, right = evaluate(node.left, frame), evaluate(node.right, frame)
    return operate(node, type(node.op), left, right, frame)


def operate(node: ast.expr, operator: type[ast.operator], left: Value, right: Value, frame: Frame) -> Value:
    """`left operator right` of numbers, shapes or tensors."""
    if isinstance(left, Number) and isinstance(right, Number):
        return _numbers(left.size, right.size, operator, node, frame)
    if _is_plain(left) and _is_plain(right):
        return Number(UNKNOWN)
    if operator is ast.Add and isinstance(left, Several | Leading | Choice) and _are_lists(left, right):
        pairs = [(one, other, a | b) for one, a in options(left) for other, b in options(right)]
        return choose(
            (_concatenated(one, other, operator, node, frame), when)
            for one, other, when in pairs
            if not any((text, not held) in when for text, held in when)
        )
    if isinstance(left, Several | Leading | Shape | Repeated) and operator in (ast.Add, ast.Mult):
        return _concatenated(left, right, operator, node, frame)
    scaled = _scaled(left, right, operator, node, frame)
    if scaled is not None:
        return scaled
    number = _number(left, right, operator, frame, node)
    if operator is ast.FloorDiv and number is not None:
        return Number(number)  # nobody floors a tensor whose name could as well be a size
    if not any(isinstance(option, Tensor) for side in (left, right) for option, _ in options(side)):
        return _computed(frame.unfollowed(node, number=number), left, right)
    value = lift(
        rules()[_OPERATORS[operator]], [left, right], {}, frame.place(node, _SYMBOLS.get(operator, "an operator"))
    )
    if number is None:
        return value
    return each(value, lambda option: replace(option, number=number) if isinstance(option, Tensor) else option)


def _scaled(left: Value, right: Value, operator: type[ast.operator], node: ast.expr, frame: Frame) -> Value | None:
    """A numpy array and a number: numpy keeps the order in memory, as torch does."""
    array, number = (left, right) if isinstance(left, Foreign) else (right, left)
    if operator is ast.MatMult or not isinstance(array, Foreign) or array.array is None or not _is_plain(number):
        return None
    operands = [side.array if isinstance(side, Foreign) and side.array is not None else side for side in (left, right)]
    value = lift(rules()[_OPERATORS[operator]], operands, {}, frame.place(node, _SYMBOLS.get(operator, "an operator")))
    return Foreign(array.kind, array=value) if isinstance(value, Tensor) else None


def _are_lists(left: Value, right: Value) -> bool:
    """Are they lists, of which one differs by path?"""
    if not isinstance(left, Choice) and not isinstance(right, Choice):
        return False
    return all(isinstance(option, Several | Leading) for option, _ in options(left)) and all(
        isinstance(option, Several | Leading | Unknown) for option, _ in options(right)
    )


def _computed(result: Unknown, *operands: Value) -> Unknown:
    """What comes of operands none of which is followed: strided where one that an argument brings is."""
    sides = [o for operand in operands for o, _ in options(operand) if isinstance(o, Unknown)]
    if not sides or not all(side.given for side in sides):
        return result
    return replace(result, given=sides[0].given, is_result=any(side.is_result for side in sides))


def _is_plain(value: Value) -> bool:
    """A number of which nothing more need be known."""
    return isinstance(value, Number) or (isinstance(value, Constant) and isinstance(value.value, int | float))


_SYMBOLS: dict[type[ast.operator], str] = {ast.MatMult: "@", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def _number(left: Value, right: Value, operator: type[ast.operator], frame: Frame, node: ast.expr) -> Size | None:
    """What it is if both sides are numbers, where both may be."""
    sizes = [_as_number(left), _as_number(right)]
    if sizes[0] is None or sizes[1] is None:
        return None
    outcome = _numbers(sizes[0], sizes[1], operator, node, frame)
    return outcome.size if isinstance(outcome, Number) else None


def _as_number(value: Value) -> Size | None:
    if isinstance(value, Tensor) and value.number is None:
        return None
    size = as_size(value)
    return size if size.terms is not None else None


def _numbers(left: Size, right: Size, operator: type[ast.operator], node: ast.expr, frame: Frame) -> Value:
    if operator is ast.Add:
        return Number(left + right)
    if operator is ast.Sub:
        return Number(left - right)
    if operator is ast.Mult:
        return Number(left * right)
    if left.constant is not None and right.constant is not None:
        return _constants(left.constant, right.constant, operator)
    if operator in (ast.FloorDiv, ast.Div):
        exact = left.divided_by(right)
        if exact.terms is None:
            exact = Size.of(Atom(f"({left})//({right})", quotient=(left, right)))
        return Number(exact)
    if operator is ast.Pow and right.constant is not None and 0 < right.constant < 5:
        return Number(product([left] * right.constant))
    return Number(Size.of(Atom(f"({left}){operator.__name__}({right})")))


def _constants(left: int, right: int, operator: type[ast.operator]) -> Value:
    if operator in (ast.FloorDiv, ast.Mod, ast.Div) and right:
        if operator is ast.Div:
            return Number(Size.of(left // right)) if left % right == 0 else Constant(left / right)
        return Number(Size.of(left // right if operator is ast.FloorDiv else left % right))
    if operator is ast.Pow and 0 <= right < 64:
        return Number(Size.of(left**right))
    return Foreign("a number")


def _concatenated(left: Value, right: Value, operator: type[ast.operator], node: ast.expr, frame: Frame) -> Value:
    if (
        operator is ast.Mult
        and isinstance(left, Several)
        and isinstance(right, Number)
        and right.size.constant is not None
    ):
        return Several(left.items * min(max(right.size.constant, 0), 16))
    if isinstance(left, Several | Shape) and isinstance(right, Several | Shape) and operator is ast.Add:
        if isinstance(left, Several) and isinstance(right, Several):
            return Several(left.items + right.items)
        return Shape(_items(left) + _items(right))
    is_tuple = isinstance(node, ast.BinOp) and isinstance(node.left, ast.Tuple)
    if operator is ast.Add and (isinstance(left, Leading) or (is_tuple and isinstance(left, Several))):
        return _led(left, right, node, frame)
    return frame.unfollowed(node)


def _led(left: Several | Leading, right: Value, node: ast.expr, frame: Frame) -> Value:
    """`(x, y) + rest`: what is added to a tuple is one."""
    why = f"what `{frame.spell(node)}` is"
    if isinstance(left, Leading):
        return Leading(left.items, forgotten(Several((left.rest, right)), why, node.lineno))
    if isinstance(right, Leading):
        return Leading(left.items + right.items, right.rest)
    return Leading(left.items, forgotten(right, why, node.lineno))


def _items(value: Several | Shape) -> tuple[Size | Pack, ...]:
    return value.items if isinstance(value, Shape) else tuple(as_size(item) for item in value.items)


def _unary(node: ast.UnaryOp, frame: Frame) -> Value:
    value = evaluate(node.operand, frame)
    if isinstance(node.op, ast.Not):
        return Constant(not value.value) if isinstance(value, Constant) else Foreign("a truth value")
    if isinstance(node.op, ast.UAdd):
        return value
    if isinstance(value, Number) and isinstance(node.op, ast.USub):
        return Number(-value.size)
    if isinstance(value, Constant) and isinstance(value.value, float):
        return Constant(-value.value)
    name = "torch.neg" if isinstance(node.op, ast.USub) else "torch.bitwise_not"
    if any(isinstance(option, Tensor) for option, _ in options(value)):
        return lift(rules()[name], [value], {}, frame.place(node, "-"))
    return _computed(frame.unfollowed(node), value)


def _compare(node: ast.Compare, frame: Frame) -> Value:
    values = [evaluate(side, frame) for side in (node.left, *node.comparators)]
    if isinstance(node.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn):
        return Foreign("a truth value")
    sides = [option for value in values for option, _ in options(value)]
    if any(isinstance(side, Tensor) for side in sides):
        return lift(rules()["torch.eq"], values[:2], {}, frame.place(node, "a comparison"))
    is_open = any(isinstance(side, Unknown) for side in sides)
    return _computed(frame.unfollowed(node), *values) if is_open else Foreign("a truth value")


def _boolean(node: ast.BoolOp, frame: Frame) -> Value:
    before = frame.state
    first, *rest = _one_by_one(node, frame)
    if isinstance(first, Foreign) and all(isinstance(value, Foreign) for value in rest):
        return first
    fact = frame.condition(node.values[0], isinstance(node.op, ast.Or), before)
    kept = [] if isinstance(first, Constant) and first.value is None else [(first, frozenset({fact}))]
    return choose([*kept, *((value, frozenset({(fact[0], not fact[1])})) for value in rest)])


def _one_by_one(node: ast.BoolOp, frame: Frame) -> list[Value]:
    """The operands of `and` or `or`: behind the first, each may be left out, and with it what it binds."""
    values = [evaluate(node.values[0], frame)]
    for test, operand in pairwise(node.values):
        before = frame.state
        fact = frame.condition(test, isinstance(node.op, ast.And), before)
        frame.state = before.fork(fact)
        values.append(evaluate(operand, frame))
        joined = join([(before.fork((fact[0], not fact[1])), (fact[0], not fact[1])), (frame.state, fact)])
        assert joined is not None
        frame.state = joined if frame.state.versions != before.versions else before
    return values


def _conditional(node: ast.IfExp, frame: Frame) -> Value:
    test = evaluate(node.test, frame)
    before = frame.state
    alternatives, ends = [], []
    for is_true, branch in ((True, node.body), (False, node.orelse)):
        fact = frame.condition(node.test, is_true, before)
        if (fact[0], not fact[1]) in before.facts:
            continue
        frame.state = narrowed(before.fork(fact), node.test, is_true, frame)
        frame.notebook.unreached += not may_be(test, is_true)
        alternatives.append((evaluate(branch, frame), frozenset({fact})))
        frame.notebook.unreached -= not may_be(test, is_true)
        ends.append((frame.state, fact))
    joined = join(ends)
    frame.state = joined if joined is not None else before
    frame.state.facts = before.facts
    return choose(alternatives) if alternatives else Unknown("a branch that is not taken", node.lineno)


def _lambda(node: ast.Lambda, frame: Frame) -> Value:
    name = f"{frame.name}.<lambda>".lstrip(".")
    function = Function(node, name, frame.program, closure=frame.closure(node), home=frame.key)
    names = frame.state.names
    if any(isinstance(n, ast.Name) and n.id in names and any(views_of(names[n.id])) for n in ast.walk(node.body)):
        frame.interpreter.look_into(function, frame)
    return function


def _await(node: ast.Await, frame: Frame) -> Value:
    return evaluate(node.value, frame)


def _yield(node: ast.Yield | ast.YieldFrom, frame: Frame) -> Value:
    if node.value is not None:
        frame.yielded.update(views_of(evaluate(node.value, frame)))
    return frame.unfollowed(node, "what a generator is sent")


def _comprehension(node: ast.ListComp | ast.GeneratorExp | ast.SetComp, frame: Frame) -> Value:
    found = _elements(node, frame)
    for inner in ast.walk(node) if frame.program.has_walrus else ():
        if isinstance(inner, ast.NamedExpr):
            frame.bind(inner.target.id, frame.unfollowed(inner, f"`{inner.target.id}`, bound in a comprehension"))
    return found


def _elements(node: ast.ListComp | ast.GeneratorExp | ast.SetComp, frame: Frame) -> Value:
    before = frame.state
    source = evaluate(node.generators[0].iter, frame)
    known = None
    if len(node.generators) == 1 and not node.generators[0].ifs:
        known = taken_apart(node.generators[0].iter, source, frozenset(), frame) or elements(source)
    if known is not None and len(known) <= UNROLLED_AT_MOST:
        found = []
        for item in known:
            frame.state = before.fork()
            assign(node.generators[0].target, item, frame)
            found.append(evaluate(node.elt, frame))
        frame.state = before
        return Several(tuple(found))
    frame.state = before.fork()
    for generator in node.generators:
        bind_element(generator.target, evaluate(generator.iter, frame), generator.iter, frame)
        for test in generator.ifs:
            evaluate(test, frame)
            frame.state = narrowed(frame.state, test, True, frame)
    item = evaluate(node.elt, frame)
    frame.state = before
    return Repeated(item)


def _dict_comprehension(node: ast.DictComp, frame: Frame) -> Value:
    before = frame.state
    frame.state = before.fork()
    for generator in node.generators:
        bind_element(generator.target, evaluate(generator.iter, frame), generator.iter, frame)
    evaluate(node.key, frame)
    evaluate(node.value, frame)
    frame.state = before
    return Foreign(DICT)


def taken_apart(node: ast.expr, value: Value, touched: Set[str], frame: Frame) -> list[Value] | None:
    """The elements of `node`, where functions are among them: each meets what stands beside it, and nothing else.

    None too where a name that is `touched` may change them on the way.
    """
    match node:
        case ast.Call(func=ast.Attribute(value=table, attr="items" | "values" as way), args=[]):
            items = frame.value(table) if isinstance(table, ast.Dict) or _is_fixed(table, touched) else value
            if not isinstance(items, Mapping):
                return None
            pairs = [(Several((Constant(key), item)), item) for key, item in items.items]
            known = [pair[way == "values"] for pair in pairs]
            if isinstance(table, ast.Name) and table.id not in frame.state.names:
                known.append(frame.unfollowed(node, f"what else `{table.id}` holds"))  # any file may add to it
        case _ if isinstance(value, Several) and _is_fixed(node, touched):
            known = list(value.items)
        case _:
            return None
    return known if len(known) <= UNROLLED_AT_MOST and any(map(holds_callable, known)) else None


def _is_fixed(node: ast.expr, touched: Set[str]) -> bool:
    match node:
        case ast.Tuple() | ast.List():
            return True
        case ast.Name(id=name):
            return name not in touched
        case ast.Call(func=ast.Name(id="zip" | "enumerate" | "reversed" | "list" | "tuple"), args=given):
            return all(_is_fixed(one, touched) for one in given)
    return False


def may_change(node: ast.expr, touched: Set[str]) -> bool:
    """Does `node` take its elements from a list that may be changed while they are taken?"""
    match node:
        case ast.Name() | ast.Attribute():
            return dotted(node) in touched
        case ast.Call(func=ast.Name(id="zip" | "enumerate" | "reversed" | "iter"), args=given):
            return any(may_change(one, touched) for one in given)
        case ast.Call(func=ast.Attribute(value=table, attr="items" | "values"), args=[]):
            return may_change(table, touched)
    return False


def bind_element(target: ast.expr, iterable: Value, node: ast.expr, frame: Frame) -> None:
    """`target` takes on any element of the iterable."""
    assign(target, subscripts.element(iterable, node, frame), frame)


def _named(node: ast.NamedExpr, frame: Frame) -> Value:
    value = evaluate(node.value, frame)
    assign(node.target, value, frame)
    return value


def _text(node: ast.JoinedStr, frame: Frame) -> Value:
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            evaluate(part.value, frame)
    return Foreign("text")


def _starred(node: ast.Starred, frame: Frame) -> Value:
    return evaluate(node.value, frame)


def _others(node: ast.expr, frame: Frame) -> Value:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            evaluate(child, frame)
    return frame.unfollowed(node, "an expression that is not followed")


_EVALUATORS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Name: _name,
    ast.Constant: _constant,
    ast.Attribute: _attribute,
    ast.Call: calls.call,
    ast.Subscript: _subscript,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Dict: _dict,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BoolOp: _boolean,
    ast.IfExp: _conditional,
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.NamedExpr: _named,
    ast.JoinedStr: _text,
    ast.Starred: _starred,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
}
