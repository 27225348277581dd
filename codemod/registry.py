"""The transforms, found by being there."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache

from codemod.transform import Transform

_PACKAGE = "codemod.transforms"


@cache
def transforms() -> Mapping[str, Transform]:
    """One of each Transform by name, sorted."""
    package = importlib.import_module(_PACKAGE)
    found: dict[str, Transform] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{_PACKAGE}.{module_info.name}")
        for kind in vars(module).values():
            if inspect.isclass(kind) and issubclass(kind, Transform) and kind.__module__ == module.__name__:
                found[kind.name] = kind()
    return dict(sorted(found.items()))
