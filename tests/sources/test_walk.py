from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from codemod.result import FileError
from codemod.sources.walk import walk


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _make(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()


def _ignore(folder: str, *patterns: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, ".gitignore").write_text("\n".join(patterns))


def _files(*paths: str, exclude: Sequence[str] = ()) -> list[str]:
    found = walk(paths, exclude)
    assert found.errors == ()
    return list(found.files)


def test_folder_gives_python_files_and_notebooks_in_order(tree: Path) -> None:
    _make("b.py", "a/z.py", "a/b/c.py", "a.ipynb", "stub.pyi", "notes.txt", "Z.py")
    assert _files(".") == ["Z.py", "a/b/c.py", "a/z.py", "a.ipynb", "b.py"]
    assert _files("./a/") == ["a/b/c.py", "a/z.py"]
    assert _files(str(tree / "a")) == [str(tree / "a/b/c.py"), str(tree / "a/z.py")]


def test_usual_folders_and_virtual_environments_are_skipped(tree: Path) -> None:
    _make(".git/a.py", "x/.venv/a.py", "node_modules/a.py", "env/pyvenv.cfg", "env/lib/a.py", "venv/kept.py", "k.py")
    assert _files(".") == ["k.py", "venv/kept.py"]


def test_files_are_taken_as_given(tree: Path) -> None:
    _make("a.pyi", "script", "build/b.py")
    _ignore(".", "*")
    assert _files("script", "a.pyi", "build/b.py") == ["script", "a.pyi", "build/b.py"]


def test_overlapping_paths_give_each_file_once(tree: Path) -> None:
    _make("a/b.py", "a/c.py")
    assert _files("a/c.py", ".", "a", str(tree / "a/b.py")) == ["a/c.py", "a/b.py"]


def test_nested_ignore_files_bind_from_the_inside_out(tree: Path) -> None:
    _make(".git/info/exclude", "gen/a.py", "a/gen.py", "a/keep.py", "a/b/gen.py", "c.py", "d/c.py", "e/f.py")
    Path(".git/info/exclude").write_text("/e/\n")
    _ignore(".", "gen*", "/c.py")
    _ignore("a/b", "!gen.py")
    assert _files(".") == ["a/b/gen.py", "a/keep.py", "d/c.py"]
    assert _files("a") == ["a/b/gen.py", "a/keep.py"]


def test_ignore_files_above_count_only_inside_of_a_repository(tree: Path) -> None:
    _make("a/x.py")
    _ignore(".", "x.py")
    assert _files("a") == ["a/x.py"]
    _make(".git/HEAD")
    assert _files("a") == []


def test_ignored_folder_that_is_named_is_searched(tree: Path) -> None:
    _make(".git/HEAD", "out/x.py", "build/y.py")
    _ignore(".", "out/")
    assert _files("out", "build") == ["out/x.py", "build/y.py"]
    assert _files(".") == []


def test_exclude_setting_binds_over_ignore_files(tree: Path) -> None:
    _make("a/x.py", "b/x.py", "b/y.py")
    _ignore(".", "!x.py")
    assert _files(".", exclude=["/b/x.py"]) == ["a/x.py", "b/y.py"]
    assert _files("b", exclude=["b/x.py"]) == ["b/y.py"]


def test_links_are_harmless(tree: Path) -> None:
    _make("a/x.py")
    Path("a/loop").symlink_to(tree)
    Path("a/self.py").symlink_to("self.py")
    Path("a/gone.py").symlink_to("nowhere.py")
    Path("a/also.py").symlink_to("x.py")
    assert _files(".") == ["a/x.py"]
    assert _files("a/also.py") == ["a/also.py"]


def test_missing_path_is_an_error_and_the_others_are_walked(tree: Path) -> None:
    _make("x.py")
    found = walk(["gone", "x.py"])
    assert found.files == ("x.py",)
    assert found.errors == (FileError("gone", "no such file or folder; check the path"),)


def test_names_beyond_ascii_and_with_blanks(tree: Path) -> None:
    _make("é ü/x y.py")
    assert _files(".") == ["é ü/x y.py"]
