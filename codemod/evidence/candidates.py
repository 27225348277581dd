"""Which calls of a file a frame of a log can stand for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from codemod.evidence.failure import Failure, Frame, Kind, Sizes, Stage
from codemod.evidence.indirect import indirect_calls
from codemod.evidence.paths import is_cell
from codemod.evidence.scopes import frame_name, in_frame
from codemod.syntax.spans import Places

_OPERATIONS = {
    Kind.VIEW_REFUSED: ("view", "view_as", "matrix_exp"),
    Kind.SHAPE_INVALID: ("view", "view_as", "reshape", "reshape_as"),
    Kind.DTYPE_VIEW: ("view", "view_as_complex"),
    Kind.SPECIALIZED: ("view", "reshape"),
    Kind.BATCH_TOO_LARGE: ("bmm",),
    Kind.LAUNCH_REFUSED: ("bmm",),
    Kind.OUTPUT_LIMIT: ("bmm",),
    Kind.BLAS: ("bmm",),
    Kind.OUT_OF_MEMORY: ("bmm",),
}
_NAMES = frozenset(name for names in _OPERATIONS.values() for name in names)
_CLASSES = ("Tensor", "torch")
"""What stands before the dot of `torch.Tensor.view(x, ...)` and `torch.reshape(x, ...)`."""
_DTYPE = re.compile(
    r"u?int\d+|long|short|int|half|b?float\d*(?:_\w+)?|double|bool|complex\d+|cfloat|cdouble|chalf|quint8|qint\d+"
)
_SHORT, _LONG = 12, 40
"""Characters from which a printed line that was cut off is recognised: at its place, and elsewhere."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def candidates(tree: ast.AST, text: str, frame: Frame, failure: Failure) -> tuple[ast.Call, ...]:
    """The calls that the failure can stand for, in order; exactly one is the site.

    `tree` is the parsed `text`.  Carets decide exactly; without them it is the line, the op's name and what the
    message allows.  Empty where the printed line is no longer in the file, or holds no such call.
    """
    aliases = _aliases(tree)
    fitting = tuple(call for call in _calls(tree) if _fits(call, failure, aliases))
    if failure.kind is Kind.SPECIALIZED and not failure.is_apart:
        return fitting
    line = line_of(tree, text, frame, failure.frames)
    if line is None or not fitting:
        return ()
    places = Places.of(text)
    if failure.stage in (Stage.INDUCTOR, Stage.AOTINDUCTOR) and (function := _function_at(tree, line)) is not None:
        reached = {call for one in _reached(tree, function) for call in _calls(one)}
        return tuple(call for call in fitting if call in reached)
    at = _marked_range(places, line, frame)
    if at is None:
        indirect = indirect_calls(tree, frozenset(_OPERATIONS[failure.kind]))
        may_run = (*fitting, *(call for call in indirect if call not in fitting))
        near = _on_line(tree, places, line, may_run, _has_carets(failure))
        found = in_frame(tree, near, frame.function)
        found = found if any(call in fitting for call in found) else ()
        is_module_alone = failure.is_apart and failure.stage in (Stage.DECOMPOSITION, Stage.AOTINDUCTOR)
        return found or (_below(tree, line, fitting) if is_module_alone else ())
    if failure.is_apart and at.is_to_end:
        return in_frame(tree, _within(places, at, fitting), frame.function)
    return tuple(call for call in fitting if _is_marked(places, call, at))


def line_of(tree: ast.AST, text: str, frame: Frame, frames: Sequence[Frame] = ()) -> int | None:
    """The line of the file that the frame stands for; None where its text is gone or stands at several places.

    A line outside of the function that the frame names is another one, where the file has changed.  Where another of
    the `frames` of the traceback shows that it has, the line's number tells nothing; where the text of one is gone, the
    file may be another one altogether, and only the number's own line counts.
    """
    lines = re.split(r"\r\n|\r|\n", text)
    is_counted = not is_cell(frame.path) and 0 < frame.line <= len(lines)
    if frame.text and any(_is_moved(lines, other) for other in frames if other.path == frame.path and other != frame):
        is_counted = False
    named = tuple(_function_lines(tree, frame.function))
    is_there = is_counted and (not named or _is_inside(frame.line, named))
    if frame.text is None or not frame.text.strip():
        return frame.line if is_there and (named or not _is_function(frame.function)) else None
    if is_there and _is_same(lines[frame.line - 1], frame.text, _SHORT):
        return frame.line
    if any(_is_gone(lines, other) for other in frames if other.path == frame.path):
        return None
    hits = [number for number, line in enumerate(lines, start=1) if _is_same(line, frame.text, _LONG)]
    inside = [hit for hit in hits if _is_inside(hit, named)]
    for found in (inside, hits):
        if len(found) == 1:
            return found[0]
    return None


def _is_gone(lines: Sequence[str], frame: Frame) -> bool:
    """Does the frame's text stand nowhere in the file?"""
    text = (frame.text or "").strip()
    return len(text) >= _SHORT and not any(_is_same(line, text, _SHORT) for line in lines)


def _is_moved(lines: Sequence[str], frame: Frame) -> bool:
    """Does the frame's text stand in the file, but not at its line?"""
    if frame.text is None or len(frame.text.strip()) < _SHORT:
        return False
    if frame.line <= len(lines) and _is_same(lines[frame.line - 1], frame.text, _SHORT):
        return False
    return any(_is_same(line, frame.text, _LONG) for line in lines)


def _is_same(line: str, printed: str, shortest: int) -> bool:
    """Whether the line is the printed one, or goes on behind it and at least `shortest` characters are printed."""
    own, other = " ".join(line.split()), " ".join(printed.split()).removesuffix("...").removesuffix("…").rstrip()
    return own == other or (len(other) >= shortest and own.startswith(other))


def _is_function(name: str) -> bool:
    """Not `<module>`, `<lambda>`, a comprehension, or what Python or the log keeps to itself."""
    return frame_name(name).isidentifier()


def _function_lines(tree: ast.AST, name: str) -> Iterator[range]:
    """The lines of the functions, or bodies of classes, of this name, from the first decorator on."""
    last = frame_name(name)
    for node in ast.walk(tree):
        if isinstance(node, _Function | ast.ClassDef) and node.name == last:
            first = min(one.lineno for one in (node, *node.decorator_list))
            yield range(first, (node.end_lineno or node.lineno) + 1)


def _is_inside(line: int, spans: Sequence[range]) -> bool:
    return any(line in span for span in spans)


def _function_at(tree: ast.AST, line: int) -> _Function | None:
    """The function whose `def` stands at the line: compiled code names no other line."""
    for node in ast.walk(tree):
        if isinstance(node, _Function) and line in (node.lineno, *(one.lineno for one in node.decorator_list)):
            return node if node.body[0].lineno != line else None
    return None


def _below(tree: ast.AST, line: int, fitting: Sequence[ast.Call]) -> tuple[ast.Call, ...]:
    """Those in what the line calls: of an exported graph torch prints the frames of modules, and no function's."""
    names = {_last_name(call.func) for call in _calls(tree) if call.lineno <= line <= (call.end_lineno or call.lineno)}
    called = [node for node in ast.walk(tree) if isinstance(node, _Function) and node.name in names]
    reached = {call for function in called for one in _reached(tree, function) for call in _calls(one)}
    return tuple(call for call in fitting if call in reached)


def _reached(tree: ast.AST, function: _Function) -> Iterator[_Function]:
    """The function and those of the file that it may call: what was compiled as one."""
    defined: dict[str, list[_Function]] = {}
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            defined.setdefault(node.name, []).append(node)
    waiting, seen = [function], {function}
    while waiting:
        one = waiting.pop()
        yield one
        names = {_last_name(call.func) for call in _calls(one)}
        # a call of what is no function here may be one of a module
        names |= {"forward"} if names - defined.keys() else set()
        called = [each for name in names for each in defined.get(name, ()) if each not in seen]
        seen.update(called)
        waiting += called


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _aliases(tree: ast.AST) -> Mapping[str, str]:
    """Names bound to an op: `f = x.view`, `from torch import bmm as b`."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            aliases |= {one.asname or one.name: one.name for one in node.names if one.name in _NAMES}
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr in _NAMES:
            aliases |= {target.id: node.value.attr for target in node.targets if isinstance(target, ast.Name)}
    return aliases


def _operation(call: ast.Call, aliases: Mapping[str, str]) -> str:
    match call.func:
        case ast.Attribute(attr=name):
            return name
        case ast.Name(id=name):
            return aliases.get(name, "")
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
            return name
    return ""


def _fits(call: ast.Call, failure: Failure, aliases: Mapping[str, str]) -> bool:
    """Whether the failure's message allows that it is about this call."""
    operation = _operation(call, aliases)
    named = failure.details.operation.removeprefix("linalg_")
    if operation not in _OPERATIONS.get(failure.kind, ()) or (named and operation != named):
        return False
    if operation in ("view_as", "reshape_as", "bmm", "matrix_exp"):
        return True
    if failure.kind is Kind.DTYPE_VIEW:
        is_complex = "Tensor must have" in failure.message
        return (operation == "view_as_complex") == is_complex and not _is_shape(call)
    shape = _shape(call)
    if failure.kind is Kind.SPECIALIZED:
        return failure.is_apart or _holds(shape, {number for _, number in failure.details.constants})
    return not _is_dtype(shape) and _allows(shape, failure.target, failure.kind)


def _shape(call: ast.Call) -> Sequence[ast.expr] | None:
    """The sizes asked for; None where they come from one expression or are spread, or the tensor may be among them."""
    if not isinstance(call.func, ast.Attribute):
        return None
    written = [*call.args, *(keyword.value for keyword in call.keywords)]
    if _last_name(call.func.value) in _CLASSES:
        written = written[1:]
    if len(written) == 1:
        if isinstance(written[0], ast.Tuple | ast.List):
            written = written[0].elts
        elif _number(written[0]) is None and not _is_dtype(written):
            return None
    return None if any(isinstance(size, ast.Starred) for size in written) else written


def _last_name(expression: ast.expr) -> str:
    match expression:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _number(size: ast.expr) -> int | None:
    match size:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
    return None


def _is_dtype(shape: Sequence[ast.expr] | None) -> bool:
    if shape is None or len(shape) != 1:
        return False
    match shape[0]:
        case ast.Attribute(value=ast.Name(id="torch"), attr=name):
            return _DTYPE.fullmatch(name) is not None
    return False


def _is_shape(call: ast.Call) -> bool:
    """Whether the arguments are sizes, beyond doubt."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "view_as_complex":
        return False
    shape = _shape(call)
    return shape is not None and (len(shape) > 1 or any(_number(size) is not None for size in shape))


def _holds(shape: Sequence[ast.expr] | None, numbers: set[int]) -> bool:
    return shape is not None and any(_number(size) in numbers for size in shape)


def _allows(shape: Sequence[ast.expr] | None, target: Sizes | None, kind: Kind) -> bool:
    """Whether a call with this shape can have asked for `target`."""
    if shape is None or target is None:
        return True
    # fake tensors name the sizes that a -1 came to
    is_inferred = kind is Kind.VIEW_REFUSED
    return len(shape) == len(target) and all(
        (number := _number(size)) is None or asked is None or number == asked or (number == -1 and is_inferred)
        for size, asked in zip(shape, target, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Range:
    """Marked columns of one line, 1-based, the end just past."""

    line: int
    start: int
    end: int
    is_to_end: bool
    """Marked to the end of the line, so that what is marked may go on below."""


def _marked_range(places: Places, line: int, frame: Frame) -> _Range | None:
    """What the carets mark in the file; None without carets, or where they mark a whole line."""
    if frame.column is None or frame.end_column is None:
        return None
    end_of_line = places.starts[line] if line < len(places.starts) else None
    source = places.text[places.starts[line - 1] : end_of_line].rstrip()
    indent, length = len(source) - len(source.lstrip()), len(source)
    start, end = indent + frame.column, indent + frame.end_column
    if end > length + 1 or (frame.column == 1 and end == length + 1):
        return None
    return _Range(line, start, end, end == length + 1)


def _is_marked(places: Places, call: ast.Call, at: _Range) -> bool:
    """Whether the carets mark this call: all of it, from its name on (over several lines), or up to its brackets."""
    first, last = places.range_of(call)
    span, start, end = places.span(call), places.position(first), places.position(last)
    if start[0] != span.line:
        start = (span.line, span.column)
    goes_on = at.is_to_end and end[0] > at.line
    ends = (end, places.position(places.range_of(call.func)[1]))
    return (at.line, at.start) == start and (goes_on or (at.line, at.end) in ends)


def _within(places: Places, at: _Range, fitting: Sequence[ast.Call]) -> tuple[ast.Call, ...]:
    spans = ((call, places.span(call)) for call in fitting)
    return tuple(call for call, span in spans if span.line == at.line and at.start <= span.column < at.end)


def _has_carets(failure: Failure) -> bool:
    return any(frame.column is not None for frame in failure.frames)


def _on_line(
    tree: ast.AST, places: Places, line: int, fitting: Sequence[ast.Call], is_named: bool
) -> tuple[ast.Call, ...]:
    """Calls whose name or beginning stands at the line, else those of the statement that is printed there.

    `is_named`: written by a Python that prints the line of a call's name; before 3.10 it is where the call begins.
    """
    named = tuple(call for call in fitting if places.span(call).line == line)
    near = named if named and is_named else tuple(call for call in fitting if call in named or call.lineno == line)
    if near:
        return near
    around = [statement for statement in ast.walk(tree) if isinstance(statement, ast.stmt) and _covers(statement, line)]
    if not around:
        return ()
    inner = min(around, key=lambda statement: (statement.end_lineno or 0) - statement.lineno)
    own = set(_own_calls(inner))
    return tuple(call for call in fitting if call in own)


def _covers(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)


def _own_calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a statement without those of the statements in it."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
