"""Results of earlier runs, by what they depend on: this tool, the settings, the path and the bytes of the file."""

from __future__ import annotations

import hashlib
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

import codemod
from codemod.result import FileResult
from codemod.settings import Settings


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder of pickled results; one that cannot be read or written is an empty one."""

    folder: Path

    def look_up(self, path: str, settings: Settings, process: Callable[[str, Settings], FileResult]) -> FileResult:
        """The result for the file as it is now, from the cache or made anew.

        Files with errors, or that need a helper file beside them, are made anew each time.
        """
        try:
            raw = Path(path).read_bytes()
        except OSError:
            return process(path, settings)
        place = self.folder / _key(path, raw, settings)
        found = _load(place)
        if found is not None:
            return found
        result = process(path, settings)
        if not result.errors and result.helper is None and (result.change is None or result.change.before == raw):
            _save(place, result)
        return result


def default_cache() -> Cache:
    return Cache(user_cache_path("torch-codemod"))


@cache
def _tool() -> bytes:
    """Of this tool's own sources: a development version changes without a new number."""
    digest = hashlib.sha256(codemod.__version__.encode())
    root = Path(codemod.__file__).parent
    for file in sorted([*root.rglob("*.py"), *(root.parent / "transforms").glob("*.py")]):
        status = file.stat()
        digest.update(f"{file}:{status.st_size}:{status.st_mtime_ns}".encode())
    return digest.digest()


def _key(path: str, raw: bytes, settings: Settings) -> str:
    digest = hashlib.sha256(_tool())
    digest.update(repr((settings, path, str(Path.cwd()))).encode())
    digest.update(raw)
    return digest.hexdigest()


def _load(place: Path) -> FileResult | None:
    try:
        found = pickle.loads(place.read_bytes())
    except Exception:  # whatever a damaged pickle raises
        return None
    return found if isinstance(found, FileResult) else None


def _save(place: Path, result: FileResult) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
            file.write(pickle.dumps(result))
        Path(file.name).replace(place)
    except OSError:
        return
