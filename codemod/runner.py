"""Many files: in a pool of processes where that pays, with results in the order of the paths."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType

from codemod.cache import Cache
from codemod.engine import process
from codemod.evidence.shown import NO_EVIDENCE, Evidence
from codemod.result import FileError, FileResult
from codemod.settings import Settings

NOTHING: Mapping[str, Evidence] = MappingProxyType({})
POOL_FROM_BYTES = 2_000_000
"""Less than this is done before a second process has started."""

Progress = Callable[[int, int], None]
Work = Callable[[str], Callable[[], FileResult]]
"""By path: what is done for it, to be called here or in another process."""
Futures = dict[str, "Future[FileResult]"]


def run(
    paths: Sequence[str],
    settings: Settings,
    jobs: int,
    cache: Cache | None = None,
    progress: Progress | None = None,
    evidence: Mapping[str, Evidence] = NOTHING,
) -> Iterator[FileResult]:
    """The result of each file, in order; a file that ends its worker is an error of that file alone.

    `progress` is told how many files are done, of how many; `evidence` is by path.
    """

    def work(path: str) -> Callable[[], FileResult]:
        return partial(_one, path, settings, cache, evidence.get(path, NO_EVIDENCE))

    for done, result in enumerate(_results(paths, work, jobs), start=1):
        yield result
        if progress is not None:
            progress(done, len(paths))


def _one(path: str, settings: Settings, cache: Cache | None, evidence: Evidence) -> FileResult:
    return process(path, settings, evidence) if cache is None else cache.look_up(path, settings, evidence)


def _results(paths: Sequence[str], work: Work, jobs: int) -> Iterator[FileResult]:
    if jobs == 1 or len(paths) < 2 or sum(map(_size, paths)) < POOL_FROM_BYTES:
        return (work(path)() for path in paths)
    return _pooled(paths, work, min(jobs, len(paths)))


def _pooled(paths: Sequence[str], work: Work, jobs: int) -> Iterator[FileResult]:
    """The largest files are begun first, so that none of them is left to one worker at the end."""
    begun = sorted(paths, key=_size, reverse=True)
    pool = _pool(jobs)
    try:
        futures = _submit(pool, begun, work)
        for path in paths:
            while _is_lost(futures[path]):
                pool.shutdown(wait=False)
                pool = _pool(jobs)
                futures |= _again([path for path in begun if _is_lost(futures[path])], pool, work, jobs)
            yield futures[path].result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()  # waits: a worker that is left behind may still write to a pipe that nobody reads


def _again(lost: Sequence[str], pool: ProcessPoolExecutor, work: Work, jobs: int) -> Futures:
    """A dead worker fails all files that are not done: those that were in work get a process each, the others `pool`.

    Workers take files in the order in which they were begun, so the first `jobs` were in work.
    """
    futures = _submit(pool, lost[jobs:], work)
    for path in lost[:jobs]:
        futures[path] = Future()
        futures[path].set_result(_alone(path, work))
    return futures


def _alone(path: str, work: Work) -> FileResult:
    with _pool(1) as pool:
        future = _submit(pool, [path], work)[path]
        if not _is_lost(future):
            return future.result()
    why = "the process that worked on it died; left unchanged, see whether memory runs out"
    return FileResult(path, errors=(FileError(path, why),))


def _submit(pool: ProcessPoolExecutor, paths: Sequence[str], work: Work) -> Futures:
    futures: Futures = {}
    for path in paths:
        try:
            futures[path] = pool.submit(work(path))
        except BrokenProcessPool as error:
            futures[path] = Future()
            futures[path].set_exception(error)
    return futures


def _is_lost(future: Future[FileResult]) -> bool:
    """Whether its worker died; waits until that is known."""
    return isinstance(future.exception(), BrokenProcessPool)


def _pool(jobs: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin)


def _begin() -> None:
    """A worker's modules live as long as the worker: the collector need not look at them again."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent alone answers it
    gc.freeze()


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
