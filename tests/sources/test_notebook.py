from __future__ import annotations

import json

import nbformat
import pytest

from codemod.edit.apply import apply
from codemod.result import FileError
from codemod.sources.notebook import Notebook, decode_notebook
from codemod.syntax.parse import Syntax, parse
from tests.edit.rules import RULES, finding, named_calls


def _raw(*cells: str | list[str], indent: int | None = 1, ascii_only: bool = False, metadata: object = None) -> bytes:
    notebook = {
        "cells": [{"cell_type": "markdown", "id": "m", "metadata": {}, "source": ["# é x.view(1)"]}]
        + [
            {"cell_type": "code", "execution_count": 1, "id": f"c{i}", "metadata": {}, "outputs": [], "source": cell}
            for i, cell in enumerate(cells)
        ],
        "metadata": metadata or {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=indent, ensure_ascii=ascii_only).encode() + b"\n"


def _notebook(raw: bytes) -> Notebook:
    notebook = decode_notebook("a.ipynb", raw)
    assert isinstance(notebook, Notebook), notebook
    return notebook


def _edited(raw: bytes, rule: str = "reshape") -> bytes:
    notebook = _notebook(raw)
    syntax = parse(notebook.source)
    assert isinstance(syntax, Syntax), syntax
    decided = [(finding(syntax, call, rule), call) for call in named_calls(syntax, ["view", "bmm"])]
    after = notebook.encode(apply(syntax, decided, RULES).text)
    nbformat.validate(nbformat.from_dict(json.loads(after)))  # type: ignore[no-untyped-call]  # nbformat is untyped
    return after


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_only_the_line_with_the_call_changes(indent: int | None, ascii_only: bool) -> None:
    cells: list[str | list[str]] = [
        ["é = 'é \\u00e9'\n", "y = x.view(1)\n", "%time z\n"],
        ["!pip install a \\\n", "  b\n", "x"],
        "y = x.view(2)\n",
        "",
        [],
    ]
    raw = _raw(*cells, indent=indent, ascii_only=ascii_only)
    assert _edited(raw) == raw.replace(b"y = x.view", b"y = x.reshape")


def test_notebook_without_edits_is_unchanged() -> None:
    raw = _raw(["x = [\n", "1]"], "%%bash\nls x.view(1)\n", ["%%time\n", "y = 2\n"])
    notebook = _notebook(raw)
    assert notebook.encode(notebook.source.text) == raw


@pytest.mark.parametrize(
    "cell",
    [
        "%matplotlib inline\nx.view(1)",
        "!ls\n?x\nx?\nx.y??\nx.view(1)",
        "if a:\n    %time b\n    x.view(1)\nfiles = !ls\nc = %time d",
        "%%time\nx.view(1)\n",
        "s = '''\n%no magic\n'''\nx.view(1) \\\n  % 2\n",
        "%%bash\n\nx.keep(1)\n\n",
        "this is no python x.keep(1)",
        "await x.view(1)",
        "x.view(1);",
        "# torch-codemod cell 1\nx.view(1)",
        "x = '''a\r\nb'''\r\nx.view(1)",
    ],
)
def test_magics_come_back_as_they_were(cell: str) -> None:
    raw = _raw(cell, "y.view(1)")
    assert _edited(raw) == raw.replace(b"view(1)", b"reshape(1)").replace(b"\xa9 x.reshape", b"\xa9 x.view")


def test_places_are_those_of_the_cell() -> None:
    notebook = _notebook(_raw("a\nb", "%%bash\nc", "d"))
    lines = notebook.source.text.split("\n")
    assert notebook.cell_of(lines.index("b") + 1) == (2, 2)
    assert notebook.cell_of(lines.index("d") + 1) == (4, 1)


def test_cells_that_cannot_be_parsed_are_named() -> None:
    assert _notebook(_raw("x", "no python", "%%bash\nls -l", "%time x")).unparsed == (3,)


def test_import_goes_into_the_first_cell_of_python() -> None:
    raw = _raw("%%bash\nls\n", ["# Title\n", "import torch\n", "y = a.bmm(b)"])
    sources = [cell["source"] for cell in json.loads(_edited(raw, "chunk"))["cells"]]
    assert sources[1:] == [
        "%%bash\nls\n",
        ["# Title\n", "import torch\n", "from _chunked_bmm import chunked_bmm\n", "y = chunked_bmm(a, b)"],
    ]


@pytest.mark.parametrize(
    "metadata",
    [{"language_info": {"name": "julia"}}, {"kernelspec": {"language": "R", "name": "ir", "display_name": "R"}}],
)
def test_notebook_in_another_language_has_no_cells(metadata: object) -> None:
    raw = _raw("x.view(1)", metadata=metadata)
    assert _notebook(raw).source.text == ""
    assert _edited(raw) == raw


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"\xff",
        b'{"nbformat": 3, "worksheets": []}',
        b'{"nbformat": 4}',
        b'{"nbformat": 4, "cells": 1}',
        b'{"nbformat": 4, "cells": [1]}',
        b'{"nbformat": 4, "cells": [{"a": 1}]}',
        b'{"nbformat": 4, "cells": [{"a" 1}]}',
    ],
)
def test_broken_notebook_is_an_error(raw: bytes) -> None:
    error = decode_notebook("a.ipynb", raw)
    assert isinstance(error, FileError)
    assert error.why.endswith(("left unchanged", "left unchanged, save it as format 4"))
