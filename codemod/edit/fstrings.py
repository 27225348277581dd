"""Calls inside f-strings: before Python 3.12 ast gives them places that may be wrong."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from codemod.syntax.parse import Syntax

_HAS_FORMATTED = re.compile(r"[fFtT][rR]?['\"]")
_MISPLACED = "its place inside the f-string is not certain"
_SHOWN = "the f-string also shows the call's text (`=`)"
_KEPT = "the t-string keeps the call's text"


def formatted_calls(syntax: Syntax) -> dict[int, str | None]:
    """For each call inside an f-string, by its id: why its text cannot be edited, or None."""
    if not _HAS_FORMATTED.search(syntax.text):
        return {}
    calls: dict[int, str | None] = {}
    for call, doubt in _judged(syntax):
        calls[id(call)] = calls.get(id(call)) or doubt
    return calls


def keeps_quotes(before: str, after: str) -> bool:
    """Whether `after` is as good as `before` inside an f-string, which until 3.12 bears no quote of its own, no
    backslash, comment or line end."""
    return set(after) & set("'\"\\#\r\n") <= set(before)


def _judged(syntax: Syntax) -> Iterator[tuple[ast.Call, str | None]]:
    for node in ast.walk(syntax.tree):
        if isinstance(node, ast.JoinedStr):
            yield from _in_fstring(syntax, node)
        elif type(node).__name__ == "TemplateStr":
            yield from ((call, _KEPT) for call in ast.walk(node) if isinstance(call, ast.Call))


def _in_fstring(syntax: Syntax, fstring: ast.JoinedStr) -> Iterator[tuple[ast.Call, str | None]]:
    calls = [node for node in ast.walk(fstring) if isinstance(node, ast.Call)]
    places = Counter(syntax.places.range_of(call) for call in calls)
    for call in calls:
        alone = places[syntax.places.range_of(call)] == 1
        yield call, None if alone and _is_in_place(syntax, call) else _MISPLACED
    for before, value in zip(fstring.values, fstring.values[1:], strict=False):
        if isinstance(before, ast.Constant) and str(before.value).rstrip().endswith("="):
            inner = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
            yield from ((call, _SHOWN) for call in inner if syntax.segment(call) in str(before.value))


def _is_in_place(syntax: Syntax, call: ast.Call) -> bool:
    try:
        there = ast.parse(f"({syntax.segment(call)}\n)", mode="eval").body
    except (SyntaxError, ValueError):
        return False
    return ast.dump(there) == ast.dump(call)
