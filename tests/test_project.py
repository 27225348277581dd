"""The project's own form: packages, transforms, examples."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from codemod.configuration import tomllib
from codemod.registry import transforms

ROOT = Path(__file__).parent.parent


def test_every_package_is_listed() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    folders = {file.parent.relative_to(ROOT) for file in (ROOT / "codemod").rglob("*.py")}
    assert listed == {".".join(folder.parts) for folder in folders} | {"codemod.transforms"}


@pytest.mark.parametrize("name", transforms())
def test_a_transform_explains_itself(name: str) -> None:
    transform = transforms()[name]
    module = sys.modules[type(transform).__module__]
    assert module.__name__ == f"codemod.transforms.{name.replace('-', '_')}"
    assert module.__doc__ is not None
    assert "left alone" in module.__doc__.lower()
    assert transform.summary
    assert transform.operations
    assert len({example.title for example in transform.examples}) == len(transform.examples)
