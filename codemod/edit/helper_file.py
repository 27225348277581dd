"""The helper that rewritten code calls: where it goes in the user's project, and what is written there."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from codemod.result import FileChange, FileError
from codemod.sources.package import package_of
from codemod.sources.source import Source, read

_NAME = "_chunked_bmm"
_MARK = "# torch-codemod: ignore-file"


@dataclass(frozen=True, slots=True)
class Helper:
    """The helper file of one project: its path and the module by which the project's code imports it."""

    path: str
    module: str


def helper_for(path: str) -> Helper:
    """The Helper for the file at `path`: in its topmost package, else beside it.

    `src/pkg/sub/net.py` -> `src/pkg/_chunked_bmm.py`, module `pkg._chunked_bmm`; `train.py` -> `_chunked_bmm`.
    """
    folder, packages = package_of(path)
    place = folder.joinpath(*packages[:1], f"{_NAME}.py").absolute()
    return Helper(str(place) if Path(path).is_absolute() else os.path.relpath(place), ".".join((*packages[:1], _NAME)))


def helper_change(helper: Helper) -> FileChange | FileError | None:
    """What to write for `helper`; None where it is there already, an error where a foreign file is in its place."""
    wanted = _text()
    if not Path(helper.path).exists():
        return FileChange(helper.path, b"", wanted.encode())
    there = read(helper.path)
    if isinstance(there, FileError):
        return there
    return _update(there, wanted)


def _update(there: Source, wanted: str) -> FileChange | FileError | None:
    """A formatter may have been at the file: its first line alone tells the version."""
    header = there.text.partition("\n")[0].rstrip()
    if header == wanted.partition("\n")[0]:
        return None
    if not header.startswith(_MARK):
        return FileError(
            there.path, "is not the helper of torch-codemod; left unchanged, move it away or ignore chunk-bmm"
        )
    return FileChange(there.path, there.raw, wanted.encode())


@cache
def _text() -> str:
    guest = resources.files("codemod").joinpath("guest", "chunked_bmm.py").read_text(encoding="utf-8")
    version = hashlib.sha256(guest.encode()).hexdigest()[:12]
    return f"{_MARK}  written by chunk-bmm, version {version}; a newer torch-codemod replaces this file\n{guest}"
