"""Where a file stands among Python packages."""

from __future__ import annotations

import os


def package_of(path: str) -> tuple[str, tuple[str, ...]]:
    """The folder that holds the outermost package of the file, and the packages from there inwards.

    `src/pkg/sub/net.py` -> `src`, (`pkg`, `sub`); `scripts/train.py` -> `scripts`, ().
    """
    packages: list[str] = []
    folder = os.path.dirname(os.path.abspath(path))  # not realpath: the user's own path, links and all
    while os.path.basename(folder).isidentifier() and os.path.isfile(os.path.join(folder, "__init__.py")):
        packages.insert(0, os.path.basename(folder))
        folder = os.path.dirname(folder)
    return (folder if os.path.isabs(path) else os.path.relpath(folder)), tuple(packages)
