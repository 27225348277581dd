"""Room for very deep expressions: sums of thousands of terms, chains of hundreds of calls."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_STACK_BYTES = 512 * 1024 * 1024  # virtual: only touched pages cost memory
_RECURSION_LIMIT = 150_000


def with_deep_stack(function: Callable[[], T]) -> T:
    """`function()`; when it recurses too deeply it is called once more, on a thread with a big stack.

    `function` must bear being called twice.  Raises RecursionError where even the big stack is too small.
    """
    try:
        return function()
    except RecursionError:
        return on_deep_stack(function)


def on_deep_stack(function: Callable[[], T]) -> T:
    """`function()` on a thread with a big stack and a recursion limit to match; its exception is raised here."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    _run_thread(run)
    if errors:
        raise errors[0]
    return results[0]


def has_deep_stack() -> bool:
    """Whether the caller runs inside of `on_deep_stack`."""
    return sys.getrecursionlimit() >= _RECURSION_LIMIT


def _run_thread(run: Callable[[], None]) -> None:
    limit, stack = sys.getrecursionlimit(), threading.stack_size(_STACK_BYTES)
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    try:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(stack)
        sys.setrecursionlimit(limit)
