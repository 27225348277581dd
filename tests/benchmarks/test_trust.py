"""The check of in-place runs: it lets right edits pass, and sees each kind of wrong one."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent.parent


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("trust", ROOT / "benchmarks" / "trust.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["trust"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


trust = _load()

BEFORE = "import torch\nx = torch.ones(2, 3)\ny = x.t().view(-1)  # flat\nz = 1\n"
AFTER = BEFORE.replace("view", "reshape")
SITE = trust.Site("a.py", 3, 11, 3, 19, "x.t().reshape(-1)", None)


def _said(before: Mapping[str, str | bytes], after: Mapping[str, str | bytes], *sites: object) -> list[str]:
    trees = ({k: v.encode() if isinstance(v, str) else v for k, v in tree.items()} for tree in (before, after))
    return [f"{v.path}:{v.line}: {v.what}" for v in trust.judge(*trees, sites)]


@pytest.mark.parametrize("encode", [str.encode, lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()])
def test_the_reported_edit_passes(encode: object) -> None:
    assert callable(encode)
    assert _said({"a.py": encode(BEFORE), "b.txt": "b"}, {"a.py": encode(AFTER), "b.txt": "b"}, SITE) == []


def test_columns_count_characters_in_the_files_encoding() -> None:
    before = "# coding: latin-1\nx = '\xe9\xe9' + x.view(-1)\n"
    site = trust.Site("a.py", 2, 14, 2, 22, "x.reshape(-1)", None)
    after = before.replace("view", "reshape")
    assert _said({"a.py": before.encode("latin-1")}, {"a.py": after.encode("latin-1")}, site) == []


def test_nested_sites_are_one_edit() -> None:
    before = "y = x.view(-1).view(2, 3)\n"
    inner = trust.Site("a.py", 1, 7, 1, 15, "x.reshape(-1)", None)
    outer = trust.Site("a.py", 1, 16, 1, 26, "x.reshape(-1).reshape(2, 3)", None)
    assert _said({"a.py": before}, {"a.py": before.replace("view", "reshape")}, inner, outer) == []
    lost = trust.Site("a.py", 1, 16, 1, 26, "x.view(-1).reshape(2, 3)", None)
    after = before.replace(".view(2", ".reshape(2")
    assert _said({"a.py": before}, {"a.py": after}, inner, lost) == [
        "a.py:1: the call around 'x.reshape(-1)' does not hold it"
    ]


def test_an_import_is_put_in_at_one_place() -> None:
    site = trust.Site("a.py", 2, 11, 2, 20, "chunked_bmm(x, y)", None)
    before = "import torch\nz = torch.bmm(x, y)\n"
    added = "import torch\n{0}z = chunked_bmm(x, y)\n"
    assert _said({"a.py": before}, {"a.py": added.format("from _chunked_bmm import chunked_bmm\n")}, site) == []
    assert _said({"a.py": before}, {"a.py": added.format("import os\n")}, site) != []
    assert _said({"a.py": before}, {"a.py": added.format("w = 1\n")}, site) != []


@pytest.mark.parametrize(
    "after",
    [
        BEFORE,
        AFTER.replace("# flat", "#flat"),
        AFTER.replace("z = 1\n", "z = 1"),
        AFTER.replace("\n", "\r\n"),
        AFTER.replace("z = 1", "z = 2"),
    ],
)
def test_any_other_byte_is_a_violation(after: str) -> None:
    assert any(
        "differs outside of the rewritten calls" in what for what in _said({"a.py": BEFORE}, {"a.py": after}, SITE)
    )


def test_files_come_and_go_only_as_reported() -> None:
    helper = "# torch-codemod: ignore-file\n"
    assert _said({"a.py": BEFORE}, {"a.py": AFTER}) == ["a.py:3: changed without a rewritten site"]
    assert _said({"a.py": BEFORE}, {}, SITE) == ["a.py:1: was removed"]
    assert _said({"a.py": BEFORE}, {"a.py": AFTER, ".a.py.tmp": ""}, SITE) == [".a.py.tmp:1: is new and no helper"]
    assert _said({"a.py": BEFORE}, {"a.py": AFTER, "_chunked_bmm.py": helper}, SITE) == []
    assert len(_said({"a.py": BEFORE}, {"a.py": BEFORE, "_chunked_bmm.py": helper})) == 1
    assert len(_said({"a.py": BEFORE}, {"a.py": AFTER, "_chunked_bmm.py": "x = 1\n"}, SITE)) == 1


def test_what_does_not_compile_any_more_is_a_violation() -> None:
    site = trust.Site("a.py", 3, 11, 3, 19, "x.t().reshape(-1", None)
    assert any(
        "does not compile" in what for what in _said({"a.py": BEFORE}, {"a.py": AFTER.replace("(-1)", "(-1")}, site)
    )


def _notebook(*cells: str, title: str = "t") -> str:
    code = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell.splitlines(True)} for cell in cells]
    return json.dumps({"nbformat": 4, "metadata": {"title": title}, "cells": code}, indent=1)


def test_notebooks_keep_all_but_the_calls() -> None:
    before = {"n.ipynb": _notebook("%time 1\nx = 1\n", "y = x.view(-1)\n")}
    site = trust.Site("n.ipynb", 1, 7, 1, 15, "x.reshape(-1)", 2)
    cells = ("%time 1\nx = 1\n", "y = x.reshape(-1)\n")
    assert _said(before, {"n.ipynb": _notebook(*cells)}, site) == []
    assert _said(before, {"n.ipynb": _notebook(*cells, title="u")}, site) != []
    assert _said(before, {"n.ipynb": _notebook("%time 1\nx = 2\n", cells[1])}, site) != []
    assert _said(before, {"n.ipynb": _notebook(*cells)}) == ["n.ipynb:1: changed without a rewritten site"]


def _project(folder: Path) -> Path:
    project = folder / "project"
    project.mkdir()
    frames = (
        "def f(x, y):\n    b, t, n, m = x.shape\n    return torch.bmm(x.reshape(b * t, n, m), y.reshape(b * t, m, n))\n"
    )
    (project / "flat.py").write_bytes(BEFORE.replace("\n", "\r\n").encode())
    (project / "frames.py").write_text(f"import torch\n\n\n{frames}")
    (project / "n.ipynb").write_text(_notebook("!ls\nimport torch\n", BEFORE))
    return project


def test_a_run_that_keeps_its_promises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert trust.check(_project(tmp_path), [], scratch) == []
    assert capsys.readouterr().out == "project: 3 sites rewritten in 3 of 3 files, 0 skipped, 0 violations\n"


def test_a_run_that_changes_something_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    whole = trust.rewrite

    def careless(folder: Path, options: list[str]) -> object:
        done = whole(folder, options)
        with (folder / "flat.py").open("ab") as file:
            file.write(b"#")
        return done

    monkeypatch.setattr(trust, "rewrite", careless)
    whats = [violation.what for violation in trust.check(_project(tmp_path), [], scratch)]
    assert whats == ["differs outside of the rewritten calls", "the second run changed it"]
    assert "2 violations" in capsys.readouterr().out
