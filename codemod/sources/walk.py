"""Which files a run looks at."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from codemod.result import FileError

SUFFIXES = frozenset({".py", ".ipynb"})
SKIPPED_FOLDERS = frozenset(
    {
        *(".bzr", ".direnv", ".eggs", ".git", ".hg", ".idea", ".ipynb_checkpoints", ".mypy_cache", ".nox"),
        *(".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode", "__pycache__"),
        *("__pypackages__", "_build", "buck-out", "build", "dist", "node_modules", "site-packages"),
    }
)


@dataclass(frozen=True, slots=True)
class Walk:
    """The files of a run, each once, and what could not be looked at."""

    files: tuple[str, ...]
    errors: tuple[FileError, ...]


@dataclass(frozen=True, slots=True)
class _Ignore:
    """Patterns with the folder that they are relative to."""

    folder: Path
    spec: GitIgnoreSpec

    def verdict(self, path: Path, is_folder: bool) -> bool | None:
        """Whether `path` is ignored; None where no pattern says."""
        if not path.is_relative_to(self.folder):
            return None
        return self.spec.check_file(path.relative_to(self.folder).as_posix() + "/" * is_folder).include


def walk(paths: Sequence[str], exclude: Sequence[str] = (), root: str = ".") -> Walk:
    """The files that `paths` stand for, in their order; files are taken as given, folders searched in sorted order.

    `exclude` holds gitignore patterns relative to `root`.  Links to folders are not followed.
    """
    excluded = _Ignore(_absolute(root), GitIgnoreSpec.from_lines(exclude))
    found = [item for path in paths for item in _given(path, excluded)]
    files = [item for item in found if isinstance(item, str)]
    return Walk(_once(files), tuple(item for item in found if isinstance(item, FileError)))


def _given(path: str, excluded: _Ignore) -> Iterator[str | FileError]:
    place = Path(path)
    if place.is_dir():
        folder = _absolute(path)
        yield from _search(place, folder, (excluded, *_ignores_above(folder)))
    elif place.exists():
        yield path
    else:
        yield FileError(path, "no such file or folder; check the path")


def _search(shown: Path, folder: Path, ignores: tuple[_Ignore, ...]) -> Iterator[str | FileError]:
    """`ignores` from the most to the least binding: the user's setting, then ignore files from the inside out."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        yield FileError(str(shown), f"cannot search ({error.strerror}); left out")
        return
    ignores = (ignores[0], *_ignore_files(folder, ".gitignore"), *ignores[1:])
    for entry in entries:
        if entry.is_dir():
            if not entry.is_symlink() and not _is_skipped(entry) and not _is_ignored(entry, True, ignores):
                yield from _search(shown / entry.name, entry, ignores)
        elif entry.suffix in SUFFIXES and entry.is_file() and not _is_ignored(entry, False, ignores):
            yield str(shown / entry.name)


def _is_skipped(folder: Path) -> bool:
    return folder.name in SKIPPED_FOLDERS or (folder / "pyvenv.cfg").is_file()


def _is_ignored(path: Path, is_folder: bool, ignores: Sequence[_Ignore]) -> bool:
    verdicts = (ignore.verdict(path, is_folder) for ignore in ignores)
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _ignores_above(folder: Path) -> tuple[_Ignore, ...]:
    """The ignore files that reach into `folder` from its repository; none where the folder itself is ignored,
    since who names it wants it."""
    repository = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), None)
    if repository is None or repository == folder:
        return _ignore_files(folder, ".git/info/exclude")
    between = [above for above in folder.parents if above.is_relative_to(repository)]
    ignores = tuple(ignore for above in between for ignore in _ignore_files(above, ".gitignore"))
    ignores += _ignore_files(repository, ".git/info/exclude")
    return () if _is_ignored(folder, True, ignores) else ignores


def _absolute(path: str) -> Path:
    """Without `..`, and with the links of the user's own spelling."""
    return Path(os.path.normpath(Path(path).absolute()))


def _ignore_files(folder: Path, name: str) -> tuple[_Ignore, ...]:
    try:
        lines = (folder / name).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ()
    return (_Ignore(folder, GitIgnoreSpec.from_lines(lines)),)


def _once(files: Sequence[str]) -> tuple[str, ...]:
    """Each file once, under the path that is no link where there is one."""
    chosen: dict[str, str] = {}
    for file in files:
        real = os.path.realpath(file)
        if real not in chosen or (Path(chosen[real]).is_symlink() and not Path(file).is_symlink()):
            chosen[real] = file
    return tuple(file for file in dict.fromkeys(files) if chosen[os.path.realpath(file)] == file)
