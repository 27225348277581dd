from __future__ import annotations

import gc

import pytest

from codemod.result import FileError
from codemod.sources.source import Source, decode
from codemod.syntax.deep import with_deep_stack
from codemod.syntax.parse import Syntax, gc_paused, parse


def _parse(raw: bytes) -> Syntax | FileError:
    source = decode("train.py", raw)
    assert isinstance(source, Source)
    return with_deep_stack(lambda: parse(source))


@pytest.mark.parametrize(
    ("raw", "line", "why"),
    [
        (b"if x:\n  y\n    z\n", 3, "cannot parse (unexpected indent); left unchanged"),
        (b"(" * 500, 1, "cannot parse (too many nested parentheses); left unchanged"),
        (b"-" * 100_000 + b"1", None, "cannot parse (nested too deeply for Python's parser); left unchanged"),
        (b"x = 'a\n", 1, "cannot parse (unterminated string literal (detected at line 1)); left unchanged"),
    ],
)
def test_what_cannot_be_parsed_says_where_and_why(raw: bytes, line: int | None, why: str) -> None:
    assert _parse(raw) == FileError("train.py", why, line)


@pytest.mark.parametrize(
    "line",
    [
        "print 'x'",
        "print x",
        "exec 'x'",
        "raise E, 'x'",
        "try: pass\nexcept E, e: pass",
        "x = 0777",
        "x = 5L",
        "a <> b",
        "`x`",
        "x = ur'a'",
    ],
)
def test_python_2_is_called_so(line: str) -> None:
    error = _parse(f"import os\n{line}\n".encode())
    assert isinstance(error, FileError)
    assert error.why.startswith("Python 2 code, cannot parse (")


@pytest.mark.parametrize("line", ["x = 5Lx", "print(x", "raise E(, 'x')", "except E as e: pass"])
def test_an_error_of_python_3_is_not_called_python_2(line: str) -> None:
    error = _parse(f"{line}\n".encode())
    assert isinstance(error, FileError)
    assert error.why.startswith("cannot parse (")


def test_warnings_about_the_users_code_are_not_shown() -> None:
    assert isinstance(_parse(b"x = '\\d'\nx is 1\nassert (x, 'y')\n"), Syntax)


def test_sum_of_2900_terms_and_chain_of_1400_links_are_parsed() -> None:
    for text in ("y = " + "+".join(["x"] * 2900), "y = x" + ".t()" * 1400):
        assert isinstance(_parse(text.encode()), Syntax)


def test_garbage_collection_comes_back_as_it_was() -> None:
    with gc_paused():
        assert not gc.isenabled()
        with gc_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
