"""Results of earlier runs, by all they depend on: this tool, the settings, the file, its helper, what it imports."""

from __future__ import annotations

import hashlib
import pickle
import secrets
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from platformdirs import user_cache_path

import codemod
from codemod.edit.helper_file import helper_for
from codemod.engine import process, process_raw
from codemod.evidence.shown import NO_EVIDENCE, Evidence
from codemod.result import FileResult
from codemod.settings import Settings


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder of pickled results; one that cannot be read or written is an empty one."""

    folder: Path

    def look_up(self, path: str, settings: Settings, evidence: Evidence = NO_EVIDENCE) -> FileResult:
        """The result for the file as it is now, from the cache or made anew; with errors it is made anew each time."""
        try:
            raw = Path(path).read_bytes()
        except OSError:
            return process(path, settings, evidence)
        place = self.folder / _key(path, raw, settings, evidence)
        found = _load(place)
        if found is not None and all(_digest(other) == digest for other, digest in found.read):
            return found
        result = process_raw(path, raw, settings, evidence)
        if not result.errors:
            _save(place, result)
        return result

    def trim(self, kept_at_most: int) -> None:
        """Drop the older half of the entries where there are more than that."""
        with suppress(OSError):
            entries = list(self.folder.iterdir())
            if len(entries) > kept_at_most:
                for old in sorted(entries, key=lambda entry: entry.stat().st_mtime)[: len(entries) // 2]:
                    old.unlink(missing_ok=True)


KEPT_AT_MOST = 20_000
"""Entries, some kilobytes each; beyond them the older half goes."""


def default_cache() -> Cache:
    cache = Cache(user_cache_path("torch-codemod"))
    cache.trim(KEPT_AT_MOST)
    return cache


def _key(path: str, raw: bytes, settings: Settings, evidence: Evidence) -> str:
    digest = hashlib.sha256(_tool())
    digest.update(repr((path, str(Path.cwd()), settings, _helper(path), evidence)).encode())
    digest.update(raw)
    return digest.hexdigest()


@cache
def _tool() -> bytes:
    """Of Python and of this tool's own sources: a development version changes without a new number."""
    digest = hashlib.sha256(f"{sys.version} {codemod.__version__}".encode())
    root = Path(codemod.__file__).parent
    for file in sorted([*root.rglob("*.py"), *(root.parent / "transforms").glob("*.py")]):
        status = file.stat()
        digest.update(f"{file}:{status.st_size}:{status.st_mtime_ns}".encode())
    return digest.digest()


def _helper(path: str) -> tuple[str, int, int]:
    """Where rewritten code would look for the helper file, and which one is there."""
    helper = helper_for(path)
    try:
        status = Path(helper.path).stat()
    except OSError:
        return helper.module, 0, 0
    return helper.module, status.st_size, status.st_mtime_ns


def _digest(path: str) -> str:
    """Of the file as it is now; empty where it cannot be read."""
    try:
        status = Path(path).stat()
        return _digest_of(path, status.st_mtime_ns, status.st_size)
    except OSError:
        return ""


@lru_cache(maxsize=4096)
def _digest_of(path: str, changed: int, size: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _load(place: Path) -> FileResult | None:
    """None where there is none, or not all of it."""
    try:
        stored = place.read_bytes()
    except OSError:
        return None
    checksum, pickled = stored[: hashlib.sha256().digest_size], stored[hashlib.sha256().digest_size :]
    if hashlib.sha256(pickled).digest() != checksum:
        return None
    found = pickle.loads(pickled)
    return found if isinstance(found, FileResult) else None


def _save(place: Path, result: FileResult) -> None:
    pickled = pickle.dumps(result)
    beside = place.with_name(f"{place.name}.{secrets.token_hex(4)}")
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(hashlib.sha256(pickled).digest() + pickled)
        beside.replace(place)
    with suppress(OSError):
        beside.unlink(missing_ok=True)
