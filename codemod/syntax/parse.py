"""From a Source to its tree; stays in the worker that parsed it."""

from __future__ import annotations

import ast
import gc
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from codemod.finding import Span
from codemod.result import FileError
from codemod.sources.source import Source
from codemod.syntax.deep import has_deep_stack
from codemod.syntax.spans import Places

_PRINT_STATEMENT = re.compile(r"Missing parentheses in call to '(print|exec)'")
_PYTHON_2 = re.compile(
    r"^[ \t]*(?:print[ \t]+[\w'\"%]|exec[ \t]+[\w'\"]|raise[ \t]+\w+[ \t]*,|except[ \t]+[\w., ()]+,[ \t]*\w+[ \t]*:)"
    r"|\b[uU][rR]['\"]|<>|\b0[0-7]+\b|\b\d+L\b|`[^`\n]+`"
)


@dataclass(frozen=True, slots=True)
class Syntax:
    """A parsed file: the tree and the way from its nodes to places in the text."""

    source: Source
    tree: ast.Module
    places: Places

    @property
    def text(self) -> str:
        return self.places.text

    def offset(self, line: int, utf8_column: int) -> int:
        """Character offset into `text` of ast's 1-based line and 0-based UTF-8 byte column."""
        return self.places.offset(line, utf8_column)

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """The node's own text, without brackets put around it."""
        start, end = self.places.range_of(node)
        return self.text[start:end]

    def span(self, call: ast.Call) -> Span:
        return self.places.span(call)


def parse(source: Source) -> Syntax | FileError:
    """The Syntax of a Source, or why there is none.

    A RecursionError is passed on once, so that `deep.with_deep_stack` can try again with more room.
    """
    try:
        tree = parse_module(source.text)
    except SyntaxError as error:
        return FileError(source.path, _unparsable(source.text, error), error.lineno)
    except ValueError as error:
        return FileError(source.path, f"cannot parse ({error}); left unchanged")
    except MemoryError:
        return _too_deep(source)
    except RecursionError:
        if not has_deep_stack():
            raise
        return _too_deep(source)
    return Syntax(source, tree, Places.of(source.text))


def parse_module(text: str) -> ast.Module:
    """`ast.parse` without the garbage collector and without printing the user's SyntaxWarnings."""
    with gc_paused(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


@contextmanager
def gc_paused() -> Iterator[None]:
    """No garbage collection within: collections over millions of syntax nodes cost five times the parse."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _too_deep(source: Source) -> FileError:
    return FileError(source.path, "cannot parse (nested too deeply for Python's parser); left unchanged")


def _unparsable(text: str, error: SyntaxError) -> str:
    if _PRINT_STATEMENT.search(error.msg) or _is_python_2(text, error.lineno):
        return f"Python 2 code, cannot parse ({error.msg}); left unchanged"
    return f"cannot parse ({error.msg}); left unchanged"


def _is_python_2(text: str, lineno: int | None) -> bool:
    lines = re.split(r"\r\n|\r|\n", text)
    return lineno is not None and 0 < lineno <= len(lines) and bool(_PYTHON_2.search(lines[lineno - 1]))
