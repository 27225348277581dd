"""Many files: in a pool of processes where that pays, with results in the order of the paths."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from codemod.cache import Cache
from codemod.engine import process
from codemod.result import FileError, FileResult
from codemod.settings import Settings

POOL_FROM_BYTES = 2_000_000
"""Less than this is done before a second process has started."""

Progress = Callable[[int, int], None]


def run(
    paths: Sequence[str], settings: Settings, jobs: int, cache: Cache | None = None, progress: Progress | None = None
) -> Iterator[FileResult]:
    """The result of each file, in order; a file that ends its worker is an error of that file alone.

    `progress` is told how many files are done, of how many.
    """
    if jobs == 1 or len(paths) < 2 or _bytes(paths) < POOL_FROM_BYTES:
        for i, path in enumerate(paths):
            yield _cached(path, settings, cache)
            if progress is not None:
                progress(i + 1, len(paths))
        return
    yield from _pooled(paths, settings, min(jobs, len(paths)), cache, progress)


def _pooled(
    paths: Sequence[str], settings: Settings, jobs: int, cache: Cache | None, progress: Progress | None
) -> Iterator[FileResult]:
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin)
    try:
        futures = {path: pool.submit(_cached, path, settings, cache) for path in sorted(paths, key=_size, reverse=True)}
        for i, path in enumerate(paths):
            yield _result(path, futures[path])
            if progress is not None:
                progress(i + 1, len(paths))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _begin() -> None:
    """A worker's modules live as long as the worker: the collector need not look at them again."""
    gc.freeze()


def _result(path: str, future: Future[FileResult]) -> FileResult:
    try:
        return future.result()
    except BrokenProcessPool:
        return FileResult(path, errors=(FileError(path, "a worker process died; left unchanged, try --jobs 1"),))


def _cached(path: str, settings: Settings, cache: Cache | None) -> FileResult:
    if cache is None:
        return process(path, settings)
    return cache.look_up(path, settings, process)


def _bytes(paths: Sequence[str]) -> int:
    return sum(map(_size, paths))


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
