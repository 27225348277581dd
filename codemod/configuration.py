"""Settings from `[tool.torch-codemod]` of pyproject.toml."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from codemod.settings import Settings, Sites, SizeSpelling, To
from codemod.sources.requirements import declared_torch

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

E = TypeVar("E", bound=Enum)

_TABLE = "[tool.torch-codemod]"


class UsageError(Exception):
    """What the user asked for cannot be done as asked; the message says place, fact and next step."""


def configured(paths: Sequence[str], known: Sequence[str], config: Path | None = None) -> Settings:
    """The Settings for these paths; `known` are the names of the transforms.

    They are those of the nearest pyproject.toml with our table, at or above what `paths` have in common; or of
    `config`, whose patterns are relative to the current folder.
    Raises UsageError for a file that cannot be read or says something unknown, and for one on the way that names us
    and is broken.
    """
    read = cache(_read)
    if config is not None:
        if not config.is_file():
            raise UsageError(f"--config {config}: no such file; check the path")
        settings = _load(config, read(config), known)
    else:
        settings = _found(paths, known, read)
    if settings.torch is not None:
        return settings
    return replace(settings, torch=declared_torch(_folders(paths), lambda file: _document(file, read)))


def _found(paths: Sequence[str], known: Sequence[str], read: Callable[[Path], bytes]) -> Settings:
    for folder in _folders(paths):
        file = folder / "pyproject.toml"
        # another project's broken file is none of ours
        if file.is_file() and b"torch-codemod" in read(file) and _table(file, read(file)) is not None:
            return replace(_load(file, read(file), known), root=str(folder))
    return Settings()


def _folders(paths: Sequence[str]) -> list[Path]:
    """What `paths` have in common, and the folders above."""
    common = Path(os.path.commonpath([Path(path).absolute() for path in paths or ["."]]))
    return [common, *common.parents] if common.is_dir() else [*common.parents]


def _document(file: Path, read: Callable[[Path], bytes]) -> Mapping[str, Any]:
    """Empty where it is not there, or not ours to complain of."""
    try:
        return tomllib.loads(read(file).decode("utf-8")) if file.is_file() else {}
    except (UsageError, ValueError):  # of TOML and of UTF-8
        return {}


def _load(file: Path, raw: bytes, known: Sequence[str]) -> Settings:
    given: dict[str, Any] = {}
    for key, value in (_table(file, raw) or {}).items():
        reader = _READERS.get(key)
        if reader is None:
            raise UsageError(
                f"{_place(file, raw, key)}: {_TABLE} has no setting `{key}`; {_instead(key, list(_READERS))}"
            )
        try:
            given[key.replace("-", "_")] = reader(value)
        except ValueError as error:
            raise UsageError(f"{_place(file, raw, key)}: {_TABLE} {key} {error}") from None
    settings = replace(Settings(), **given)
    check_names(f"{_place(file, raw, 'select')}: {_TABLE} select", settings.select, known)
    check_names(f"{_place(file, raw, 'ignore')}: {_TABLE} ignore", settings.ignore, known)
    for pattern, names in settings.per_file_ignores:
        check_names(f"{_place(file, raw, 'per-file-ignores')}: {_TABLE} per-file-ignores {pattern!r}", names, known)
    return settings


def check_names(place: str, names: Sequence[str], known: Sequence[str], kind: str = "transform") -> None:
    """Raise UsageError for a name that is none of the `known`; `kind` is what they are names of."""
    for name in names:
        if name not in known:
            raise UsageError(f"{place}: no {kind} `{name}`; {_instead(name, known)}")


def _instead(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"{f'did you mean `{close[0]}`? ' if close else ''}there are {', '.join(known)}"


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{file}: cannot read ({error.strerror}); check the path, or name another by --config"
        ) from None


def _table(file: Path, raw: bytes) -> Mapping[str, Any] | None:
    """Our table; None where there is none."""
    try:
        tool = tomllib.loads(raw.decode("utf-8")).get("tool", {})
    except ValueError as error:  # of TOML and of UTF-8
        raise UsageError(f"{file}: not valid TOML ({error}); mend the file") from None
    table = tool.get("torch-codemod") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(
            f"{_place(file, raw, 'torch-codemod')}: {_TABLE} must be a table, not {table!r}; mend the file"
        )
    return table


def _place(file: Path, raw: bytes, key: str) -> str:
    """With the line that sets the key, where one does so plainly within our table."""
    lines = raw.decode("utf-8").splitlines()
    header = next((i for i, line in enumerate(lines) if line.strip().startswith(_TABLE[:-1])), 0)
    for number, line in enumerate(lines[header:], start=header + 1):
        if re.match(rf"\s*(?:\[tool\.torch-codemod\.)?[\"']?{re.escape(key)}[\"']?\s*[=\]]", line):
            return f"{file}:{number}"
    return str(file)


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"must be a list of texts, not {value!r}")
    return tuple(value)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"must be a number above 0, not {value!r}")
    return value


def _version(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"\d+(\.\d+)*", value):
        raise ValueError(f'must be the lowest version to run on, as in "2.13", not {value!r}')
    return value


def _one_of(kind: type[E]) -> Callable[[object], E]:
    def read(value: object) -> E:
        try:
            return kind(value)
        except ValueError:
            raise ValueError(f"must be one of {', '.join(repr(k.value) for k in kind)}, not {value!r}") from None

    return read


def _per_file(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a table from patterns to names, not {value!r}")
    return tuple((str(pattern), _names(names)) for pattern, names in value.items())


_READERS: dict[str, Callable[[object], object]] = {
    "select": _names,
    "ignore": _names,
    "sites": _one_of(Sites),
    "to": _one_of(To),
    "size": _one_of(SizeSpelling),
    "dynamic-batch": _names,
    "max-batch": _count,
    "torch": _version,
    "exclude": _names,
    "per-file-ignores": _per_file,
}
