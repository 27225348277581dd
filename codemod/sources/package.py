"""Where a file stands among Python packages."""

from __future__ import annotations

import os
from pathlib import Path


def package_of(path: str) -> tuple[Path, tuple[str, ...]]:
    """The folder that holds the outermost package of the file, and the packages from there inwards.

    `src/pkg/sub/net.py` -> `src`, (`pkg`, `sub`); `scripts/train.py` -> `scripts`, ().
    """
    packages: list[str] = []
    folder = Path(os.path.normpath(Path(path).absolute())).parent  # not resolve(): the user's own path, links and all
    while folder.name.isidentifier() and (folder / "__init__.py").is_file():
        packages.insert(0, folder.name)
        folder = folder.parent
    return (folder if Path(path).is_absolute() else Path(os.path.relpath(folder))), tuple(packages)
