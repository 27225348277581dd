"""From a failure to the user's call, or to why there is none."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from codemod.evidence.candidates import candidates, line_of
from codemod.evidence.failure import Failure, Frame, Kind, Stage
from codemod.evidence.paths import (
    inside_packages,
    is_cell,
    is_foreign,
    is_generated,
    is_vendored,
    match_path,
    slashed,
)
from codemod.finding import Span
from codemod.syntax.spans import Places

_INTERCEPTORS = frozenset({"__torch_function__", "__torch_dispatch__"})
"""Functions that stand between the user's call and the op itself: modes, subclasses, fake tensors."""
_PASSED_ON = ("torch/_compile.py", "torch/_dynamo/eval_frame.py", "torch/utils/_stats.py")
"""Wrappers that stand before those."""


@dataclass(frozen=True, slots=True)
class UserFrame:
    """The given file and the frame of the user's site; or why there is none."""

    path: str | None
    frame: Frame | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """Where the failing call stands in a file; or why none is named."""

    span: Span | None
    why: str = ""
    candidates: tuple[Span, ...] = ()
    """Where several calls may be meant: all of them."""


def user_frame(
    failure: Failure, paths: Sequence[str], text_of: Callable[[str], str | None] = lambda path: None
) -> UserFrame:
    """The file among `paths` and the frame in which the user's call failed.

    `text_of` gives the Python text of a path; it is asked only where the printed path does not decide.
    """
    frame = innermost_user_frame(_with_own_package(failure, paths, text_of))
    if isinstance(frame, str):
        return UserFrame(None, None, frame)
    if is_cell(frame.path):
        return _cell_frame(frame, paths, text_of)
    found = match_path(frame.path, paths).paths
    if len(found) > 1 and frame.text is not None:
        found = tuple(path for path in found if _holds(text_of(path), frame.text)) or found
    if len(found) == 1:
        return UserFrame(found[0], frame)
    return UserFrame(None, frame, _why_unmatched(frame.path, found))


def _with_own_package(failure: Failure, paths: Sequence[str], text_of: Callable[[str], str | None]) -> Failure:
    """With the innermost frame in the given file of which an installed copy ran: tests of a built package, tox, CI."""
    frames = failure.frames
    for index in range(len(frames) - 1, -1, -1):
        if not is_foreign(frames[index].path):
            break
        if (source := _source_of(frames[index], paths, text_of)) is not None:
            own = replace(frames[index], path=source)
            return replace(failure, frames=(*frames[:index], own, *frames[index + 1 :]))
    return failure


def _source_of(frame: Frame, paths: Sequence[str], text_of: Callable[[str], str | None]) -> str | None:
    """The one given file that has the path within the packages and holds the line; None where others wrote it."""
    inside = inside_packages(frame.path)
    if inside is None or not frame.text:
        return None
    found = [path for path in paths if f"/{slashed(path)}".endswith(f"/{inside}") and not is_vendored(path)]
    holding = [path for path in found if _holds(text_of(path), frame.text)]
    return holding[0] if len(holding) == 1 else None


def _why_unmatched(printed: str, found: Sequence[str]) -> str:
    return f"{printed} may be {' or '.join(sorted(found)[:3])}" if found else f"{printed} is none of the given files"


def innermost_user_frame(failure: Failure) -> Frame | str:
    """The frame whose own call failed; a sentence where that is no code of the user's."""
    frames = failure.frames
    if not frames:
        return "the log holds no traceback for this failure"
    own = [index for index, frame in enumerate(frames) if not is_foreign(frame.path)]
    # an interceptor of the user's is not the call that it passes on
    while len(own) > 1 and frames[own[-1]].function in _INTERCEPTORS:
        own.pop()
    if not own:
        return _why_foreign(failure, None)
    below = frames[own[-1] + 1 :]
    if not below or _is_own_call(failure, below):
        return frames[own[-1]]
    return _why_foreign(failure, frames[own[-1]])


def _is_own_call(failure: Failure, below: Sequence[Frame]) -> bool:
    """Whether the frames below the user's only carry out the op that the user's line asks for."""
    if failure.kind in (Kind.SPECIALIZED, Kind.CONSTRAINT_VIOLATED):
        return True
    if not failure.is_apart and any(is_generated(frame.path) for frame in below):
        return failure.stage is Stage.INDUCTOR and _is_launched(failure)
    paths = [frame.path.replace("\\", "/") for frame in below]
    first = next((index for index, path in enumerate(paths) if not path.endswith(_PASSED_ON)), None)
    return first is not None and below[first].function in _INTERCEPTORS


def _is_launched(failure: Failure) -> bool:
    """Whether the op of the generated code can be one that the user wrote as such."""
    return failure.details.operation in ("view", "bmm", "view_as_complex", "linalg_matrix_exp")


def _why_foreign(failure: Failure, user: Frame | None) -> str:
    generated = [frame for frame in failure.frames if is_generated(frame.path)]
    innermost = (generated or failure.frames)[-1]
    where = f"{innermost.path}:{innermost.line}" + (f" ({innermost.function})" if innermost.function else "")
    what = "generated code" if generated else "installed code"
    op = f" by the op {failure.details.operation}" if failure.details.operation else ""
    called = f", called from {user.path}:{user.line}" if user else ""
    told = f"raised in {what}{op}, {where}{called}: no call of your files is the one that failed"
    return f"{told}; {cure}" if (cure := _cure_of_foreign(failure, innermost)) else told


def _cure_of_foreign(failure: Failure, innermost: Frame) -> str:
    """What to do where the log names no call of the user's."""
    _, packages, inside = slashed(innermost.path).rpartition("-packages/")
    if failure.stage is Stage.EXPORT or inside.startswith("torch/fx/"):
        return "torch keeps your line to itself here: run the model without it, or `torch-codemod verify`, for the call"
    if failure.kind is Kind.VIEW_REFUSED and packages and not inside.startswith("torch/"):
        return "upgrade that package, or make it `.reshape()` there"
    return ""


def _cell_frame(frame: Frame, paths: Sequence[str], text_of: Callable[[str], str | None]) -> UserFrame:
    """Cells have no file name: the one file that holds the line, a notebook before a script."""
    if not frame.text:
        return UserFrame(None, frame, f"{frame.path} is printed without its code")
    holding = [path for path in paths if _holds(text_of(path), frame.text)]
    notebooks = [path for path in holding if path.endswith(".ipynb")]
    for found in (notebooks, holding):
        if len(found) == 1:
            return UserFrame(found[0], frame)
    if holding:
        return UserFrame(None, frame, _why_unmatched(frame.path, holding))
    return UserFrame(None, frame, f"{frame.path}: none of the given files holds its line")


def _holds(text: str | None, line: str) -> bool:
    return text is not None and line in text and any(own.strip() == line for own in text.splitlines())


def find_site(tree: ast.AST, text: str, frame: Frame, failure: Failure) -> Site:
    """The call of the file that failed; `tree` is the parsed `text`."""
    places = Places.of(text)
    spans = tuple(places.span(call) for call in candidates(tree, text, frame, failure))
    if len(spans) == 1:
        return Site(spans[0])
    if spans:
        lines = ", ".join(str(line) for line in dict.fromkeys(span.line for span in spans))
        return Site(None, f"{len(spans)} calls fit the message (line {lines}), and the log marks none of them", spans)
    return Site(None, _why_none(tree, text, frame, failure))


def _why_none(tree: ast.AST, text: str, frame: Frame, failure: Failure) -> str:
    if failure.kind is Kind.OTHER:
        return failure.kind.explanation
    if failure.kind is Kind.SPECIALIZED and not failure.is_apart:
        return "the log names the size, not the line, and no call of the file is written with that number"
    line = line_of(tree, text, frame, failure.frames)
    if line is None:
        return "the line that the log prints is not in the file, or stands there several times: the file has changed"
    if (frame.text or "").startswith("raise "):
        return f"raised anew at line {line}: the traceback of the call that failed is not in the log; let it through"
    if (name := _computed_name(tree, line)) is not None:
        return f"line {line} calls a method by a name that is computed, `{name}`: no call to rewrite there"
    return f"line {line} holds no call that fits: {frame.text or 'its text is not in the log'}"


def _computed_name(tree: ast.AST, line: int) -> str | None:
    """`how` of `getattr(x, how)(-1)`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Call(func=ast.Name(id="getattr"), args=[_, name, *_])) if node.lineno == line:
                return ast.unparse(name)
    return None
