from __future__ import annotations

import pytest

from tests.edit.rules import edit, edited

IMPORT = "from pkg._chunked_bmm import chunked_bmm"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("a.bmm(b)", f"{IMPORT}\n\nchunked_bmm(a, b)", id="empty header"),
        pytest.param("\na.bmm(b)", f"{IMPORT}\n\nchunked_bmm(a, b)", id="blank line first"),
        pytest.param("'''D.'''\na.bmm(b)", f"'''D.'''\n\n{IMPORT}\n\nchunked_bmm(a, b)", id="docstring"),
        pytest.param("'''D.'''\n\na.bmm(b)", f"'''D.'''\n\n{IMPORT}\n\nchunked_bmm(a, b)", id="docstring, blank"),
        pytest.param("'''D.'''; a.bmm(b)", f"'''D.'''; {IMPORT}; chunked_bmm(a, b)", id="docstring, semicolon"),
        pytest.param(
            "#!/usr/bin/python\n# coding: utf-8\na.bmm(b)",
            f"#!/usr/bin/python\n# coding: utf-8\n{IMPORT}\n\nchunked_bmm(a, b)",
            id="shebang and cookie",
        ),
        pytest.param("# L\n\na.bmm(b)", f"# L\n\n{IMPORT}\n\nchunked_bmm(a, b)", id="licence"),
        pytest.param(
            "from __future__ import annotations\r\na.bmm(b)\r\n",
            f"from __future__ import annotations\r\n{IMPORT}\r\nchunked_bmm(a, b)\r\n",
            id="future and crlf",
        ),
        pytest.param(
            "import a\nfrom b import (\n  c,\n)  # d\n\na.bmm(b)",
            f"import a\nfrom b import (\n  c,\n)  # d\n{IMPORT}\n\nchunked_bmm(a, b)",
            id="after the first run",
        ),
        pytest.param(
            "__all__ = []\nimport a\n__version__ = 1\nimport b\na.bmm(b)",
            f"__all__ = []\nimport a\n{IMPORT}\n__version__ = 1\nimport b\nchunked_bmm(a, b)",
            id="first run further down",
        ),
        pytest.param("import a; a.bmm(b)", f"import a; {IMPORT}; chunked_bmm(a, b)", id="import with a semicolon"),
        pytest.param("import a;\na.bmm(b)", f"import a;\n{IMPORT}\nchunked_bmm(a, b)", id="idle semicolon"),
        pytest.param(
            "a.bmm(b)\nimport c\n", f"{IMPORT}\n\nchunked_bmm(a, b)\nimport c\n", id="call before the imports"
        ),
        pytest.param(
            "def f():\n  import a\n  a.bmm(b)", f"{IMPORT}\n\ndef f():\n  import a\n  chunked_bmm(a, b)", id="local"
        ),
        pytest.param("a.bmm(b).bmm(c)", f"{IMPORT}\n\nchunked_bmm(chunked_bmm(a, b), c)", id="once for many"),
    ],
)
def test_import_goes_into_the_header(before: str, after: str) -> None:
    assert edited(before, "chunk") == after


@pytest.mark.parametrize(
    "header",
    [
        f"{IMPORT}\n",
        "from pkg._chunked_bmm import (a, chunked_bmm)\n",
        f"import a\n__all__ = []\n{IMPORT}\nimport b\n",
    ],
)
def test_import_that_is_there_is_used(header: str) -> None:
    assert edited(f"{header}a.bmm(b)\n", "chunk") == f"{header}chunked_bmm(a, b)\n"


def test_alias_that_is_there_is_used() -> None:
    header = "from pkg._chunked_bmm import chunked_bmm as cb\n"
    assert edited(f"{header}a.bmm(b)\n", "chunk") == f"{header}cb(a, b)\n"


@pytest.mark.parametrize(
    "binding",
    [
        "def chunked_bmm(a): pass",
        "chunked_bmm = 1",
        "from other import chunked_bmm",
        "import chunked_bmm.x",
        "def f(chunked_bmm): pass",
        "for chunked_bmm in (): pass",
        "print(chunked_bmm)",
    ],
)
def test_name_of_the_user_is_left_to_the_user(binding: str) -> None:
    text = edited(f"import a\n{binding}\na.bmm(chunked_bmm)\n", "chunk")
    assert f"{IMPORT} as _chunked_bmm\n" in text
    assert text.endswith(f"{binding}\n_chunked_bmm(a, chunked_bmm)\n") or "from" in binding or "import" in binding
    assert text.endswith("_chunked_bmm(a, chunked_bmm)\n")


def test_helper_is_needed_only_where_a_call_uses_it() -> None:
    assert edit("a.bmm(b)", "chunk").needs_helper
    assert not edit("a.view(b)", "reshape").needs_helper
    refused = edit("a.bmm(\nb,\r\nc)", "chunk")
    assert not refused.needs_helper
    assert "import" not in refused.text
