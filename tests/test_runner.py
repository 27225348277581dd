from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from codemod import runner
from codemod.cache import Cache
from codemod.result import FileResult
from codemod.settings import Settings

FAILING = "import torch\n\n\ndef f(x):\n    return x.t().view(-1)\n"


def _end_at_the_fatal_one(path: str) -> FileResult:
    """Stands for an analysis that takes its process along."""
    if path.endswith("fatal.py"):
        os._exit(1)
    return FileResult(path)


def _files(folder: Path, names: list[str]) -> list[str]:
    for name in names:
        (folder / name).write_text(FAILING)
    return [str(folder / name) for name in names]


def test_a_file_that_ends_its_worker_is_an_error_of_that_file_alone(tmp_path: Path) -> None:
    paths = _files(tmp_path, ["a.py", "b.py", "fatal.py", "y.py", "z.py"])
    results = list(runner._pooled(paths, lambda path: partial(_end_at_the_fatal_one, path), 2))
    assert [result.path for result in results] == paths
    assert [Path(result.path).name for result in results if result.errors] == ["fatal.py"]


def test_a_damaged_cache_is_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (path,) = _files(tmp_path, ["net.py"])
    cache = Cache(tmp_path / "cache")
    first = cache.look_up(path, Settings())
    (entry,) = cache.folder.iterdir()
    entry.write_bytes(entry.read_bytes()[:-5])
    assert cache.look_up(path, Settings()) == first
    assert [file.name for file in cache.folder.iterdir()] == [entry.name]


def test_a_full_cache_loses_its_older_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cache = Cache(tmp_path / "cache")
    for age, path in enumerate(_files(tmp_path, ["a.py", "b.py", "c.py", "d.py"])):
        cache.look_up(path, Settings())
        newest = max(cache.folder.iterdir(), key=lambda entry: entry.stat().st_mtime_ns)
        os.utime(newest, (age, age))
    cache.trim(4)
    assert len(list(cache.folder.iterdir())) == 4
    cache.trim(3)
    assert sorted(entry.stat().st_mtime for entry in cache.folder.iterdir()) == [2, 3]


def test_many_workers_give_the_results_of_one_in_the_same_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runner, "POOL_FROM_BYTES", 0)
    paths = _files(tmp_path, [f"{name}.py" for name in "qwertyuiop"])
    assert list(runner.run(paths, Settings(), 2)) == list(runner.run(paths, Settings(), 1))
