"""Settings from `[tool.torch-codemod]` of pyproject.toml."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from codemod.settings import Settings, Sites, SizeSpelling, To

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

E = TypeVar("E", bound=Enum)


class UsageError(Exception):
    """What the user asked for cannot be done as asked; the message says place, fact and next step."""


def find(paths: Sequence[str]) -> Path | None:
    """The nearest pyproject.toml with our table, at or above what `paths` have in common."""
    known = [Path(path).absolute() for path in paths if path != "-"] or [Path.cwd()]
    common = Path(os.path.commonpath(known))
    for folder in (common, *common.parents) if common.is_dir() else common.parents:
        file = folder / "pyproject.toml"
        if file.is_file() and b"[tool.torch-codemod" in file.read_bytes():
            return file
    return None


def load(file: Path, known: Sequence[str]) -> Settings:
    """The Settings in that file; `known` are the names of the transforms.

    Raises UsageError for a file that cannot be read or says something unknown.
    """
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: cannot read ({error.strerror}); check --config") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: not valid TOML ({error}); mend the file") from error
    table = document.get("tool", {}).get("torch-codemod", {})
    given: dict[str, Any] = {}
    for key, value in table.items():
        reader = _READERS.get(key)
        if reader is None:
            raise UsageError(f"{file}: [tool.torch-codemod] has no setting `{key}`{_suggest(key, list(_READERS))}")
        try:
            given[key.replace("-", "_")] = reader(value)
        except ValueError as error:
            raise UsageError(f"{file}: [tool.torch-codemod] {key}: {error}") from error
    settings = replace(Settings(), **given)
    check_names(f"{file}: [tool.torch-codemod]", (*settings.select, *settings.ignore), known)
    return settings


def check_names(place: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Raise UsageError for a name that is no transform's."""
    for name in names:
        if name not in known:
            raise UsageError(f"{place}: no transform `{name}`{_suggest(name, known)}; there are {', '.join(known)}")


def _suggest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f", did you mean `{close[0]}`?" if close else ""


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"must be a list of texts, not {value!r}")
    return tuple(value)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"must be a number above 0, not {value!r}")
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
        raise ValueError(f"must be a table of patterns, not {value!r}")
    return tuple((str(pattern), _names(names)) for pattern, names in value.items())


_READERS: dict[str, Callable[[object], object]] = {
    "select": _names,
    "ignore": _names,
    "sites": _one_of(Sites),
    "to": _one_of(To),
    "size": _one_of(SizeSpelling),
    "dynamic-batch": _names,
    "max-batch": _count,
    "exclude": _names,
    "per-file-ignores": _per_file,
}
