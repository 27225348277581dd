from __future__ import annotations

import os
from pathlib import Path

import pytest

from codemod.result import FileChange, FileError
from codemod.sources.write import write


def _file(folder: Path, content: bytes = b"old") -> Path:
    path = folder / "train.py"
    path.write_bytes(content)
    return path


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def _change(path: Path, before: bytes = b"old") -> FileChange:
    return FileChange(str(path), before, b"new\r\n")


def test_mode_is_kept_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = _file(tmp_path)
    path.chmod(0o754)
    assert write(str(path), _change(path)) is None
    assert path.read_bytes() == b"new\r\n"
    assert path.stat().st_mode & 0o777 == 0o754
    assert _names(tmp_path) == ["train.py"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_owner_is_kept(tmp_path: Path) -> None:
    path = _file(tmp_path)
    os.chown(path, 1234, 1235)
    assert write(str(path), _change(path)) is None
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235)


def test_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path, link = _file(tmp_path / "real"), tmp_path / "link.py"
    link.symlink_to(path)
    assert write(str(link), _change(link)) is None
    assert link.is_symlink()
    assert path.read_bytes() == b"new\r\n"


def test_new_file_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new.py"
    assert write(str(path), _change(path, b"")) is None
    assert path.read_bytes() == b"new\r\n"


@pytest.mark.parametrize("before", [b"other", b""])
def test_file_that_changed_meanwhile_is_left(tmp_path: Path, before: bytes) -> None:
    path = _file(tmp_path)
    error = write(str(path), _change(path, before))
    assert isinstance(error, FileError)
    assert "changed" in error.why
    assert path.read_bytes() == b"old"
    assert _names(tmp_path) == ["train.py"]


def test_file_that_vanished_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "gone.py"
    assert isinstance(write(str(path), _change(path)), FileError)
    assert _names(tmp_path) == []


def test_read_only_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _file(tmp_path)
    path.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anything
    assert write(str(path), _change(path)) == FileError(str(path), "is read-only; left unchanged")
    assert path.read_bytes() == b"old"


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "no" / "train.py"
    error = write(str(path), _change(path, b""))
    assert error == FileError(str(path), "cannot write (No such file or directory); left unchanged")


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_interrupt_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    path = _file(tmp_path)
    monkeypatch.setattr(step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(str(path), _change(path))
    assert path.read_bytes() == b"old"
    assert _names(tmp_path) == ["train.py"]
