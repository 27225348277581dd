from __future__ import annotations

from pathlib import Path

import pytest

from codemod.edit.helper_file import Helper, helper_change, helper_for
from codemod.result import FileChange, FileError


def _package(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    return folder


def test_script_gets_the_helper_beside_it(tmp_path: Path) -> None:
    assert helper_for(str(tmp_path / "train.py")) == Helper(str(tmp_path / "_chunked_bmm.py"), "_chunked_bmm")


def test_package_gets_one_helper_at_its_top(tmp_path: Path) -> None:
    package = _package(tmp_path / "src" / "pkg")
    inner = _package(package / "models")
    helper = Helper(str(package / "_chunked_bmm.py"), "pkg._chunked_bmm")
    assert [helper_for(str(folder / "net.py")) for folder in (package, inner)] == [helper, helper]


def test_relative_path_gives_a_relative_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(_package(_package(tmp_path / "pkg") / "models"))
    assert helper_for("net.py") == Helper("../_chunked_bmm.py", "pkg._chunked_bmm")


def test_folder_whose_name_cannot_be_imported_is_no_package(tmp_path: Path) -> None:
    folder = _package(tmp_path / "my-code")
    assert helper_for(str(folder / "net.py")).module == "_chunked_bmm"


def test_helper_is_written_once_and_updated_but_never_over_a_foreign_file(tmp_path: Path) -> None:
    helper = helper_for(str(tmp_path / "train.py"))
    change = helper_change(helper)
    assert isinstance(change, FileChange)
    assert change.before == b""
    assert change.after.startswith(b"# torch-codemod: ignore-file")
    Path(helper.path).write_bytes(change.after.replace(b"\n", b"\r\n") + b"\n# formatted\n")
    assert helper_change(helper) is None
    old = b"# torch-codemod: ignore-file  written by chunk-bmm, version 0; \nold\n"
    Path(helper.path).write_bytes(old)
    assert helper_change(helper) == FileChange(helper.path, old, change.after)
    Path(helper.path).write_bytes(b"def chunked_bmm(): ...\n")
    assert isinstance(helper_change(helper), FileError)
