"""Which torch a project asks for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codemod.configuration import configured, tomllib
from codemod.sources.requirements import declared_torch, lowest_torch


@pytest.mark.parametrize(
    ("requirements", "lowest"),
    [
        ([], None),
        (["numpy>=2.13", "torchvision>=2.13", "torch-geometric>=2.13", "torch.extra>=2.13"], None),
        (["torch"], None),
        (["torch<3"], None),
        (["torch!=2.13"], None),
        (["torch @ https://example.org/torch-2.13.0.whl"], None),
        (["torch>=2.13"], "2.13"),
        (["Torch [opt-einsum] >= 2.13.1, < 3 ; python_version >= '3.99'"], "2.13.1"),
        (["torch==2.13.*"], "2.13"),
        (["torch~=2.9.1,!=2.10"], "2.9.1"),
        (["torch<3,>2.9,>=2.10"], "2.10"),
        (["torch>=2.13; sys_platform == 'linux'", "torch>=2.4; sys_platform == 'darwin'"], "2.4"),
        (["torch>=2.13", "torch"], None),
        (["torch>=2.9", "torch>=2.13"], "2.9"),
        (["torch>=2.13.0.dev20260101"], "2.13.0.dev20260101"),
        (["torch===2.13-ours"], None),
        (["torch (>=2.13)"], "2.13"),
        (["torch = 2.13"], None),
    ],
)
def test_the_lowest_that_is_asked_for(requirements: list[str], lowest: str | None) -> None:
    assert lowest_torch(requirements) == lowest


FILES = {
    "project": ("pyproject.toml", '[project]\ndependencies = ["numpy", "torch>=2.13"]\n', "2.13"),
    "extras": (
        "pyproject.toml",
        '[project.optional-dependencies]\ngpu = ["torch>=2.13"]\ncpu = ["torch>=2.6"]\n',
        "2.6",
    ),
    "not a list": ("pyproject.toml", "[project]\ndependencies = 3\n", None),
    "poetry, caret": ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.13"\n', "2.13"),
    "poetry, tilde": ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "~2.13.1"\n', "2.13.1"),
    "poetry, exact": ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "2.13"\n', "2.13"),
    "poetry, wildcard": ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "2.13.*"\n', "2.13"),
    "poetry, any": ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "*"\n', None),
    "poetry, range": ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = ">=2.9 <3"\n', "2.9"),
    "poetry, either": ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.6 || ^3.0"\n', "2.6"),
    "poetry, table": (
        "pyproject.toml",
        '[tool.poetry.dependencies]\ntorch = {version = "^2.13", source = "cpu"}\n',
        "2.13",
    ),
    "poetry, group": ("pyproject.toml", '[tool.poetry.group.ml.dependencies]\ntorch = "^2.13"\n', "2.13"),
    "poetry, several": (
        "pyproject.toml",
        '[tool.poetry.dependencies]\ntorch = [{version = "^2.13", python = ">3.9"}, {version = "~2.8"}]\n',
        "2.8",
    ),
    "requirements": ("requirements.txt", "-r more.txt\nnumpy==1.0  # torch>=1\ntorch==2.13.0  # exactly\n", "2.13.0"),
    "requirements, hashes": (
        "requirements-gpu.txt",
        "torch==2.13.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n",
        "2.13.0",
    ),
    "requirements, a comment": ("requirements.txt", "# torch>=2.13\n", None),
    "setup.cfg": ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch>=2.13  # why\n", "2.13"),
    "setup.cfg, extras": ("setup.cfg", "[options.extras_require]\ngpu = torch>=2.13\n", "2.13"),
    "setup.cfg, broken": ("setup.cfg", "install_requires = torch>=2.13\n", None),
    "setup.py": (
        "setup.py",
        "from setuptools import setup\nsetup(name='a', install_requires=['torch>=2.13'])\n",
        "2.13",
    ),
    "setup.py, a name": (
        "setup.py",
        "import setuptools\nneeds = ['numpy', 'torch>=2.13']\nsetuptools.setup(install_requires=needs)\n",
        "2.13",
    ),
    "setup.py, extras": ("setup.py", "setup(extras_require={'gpu': ['torch>=2.13'], 'torch': ('numpy',)})\n", "2.13"),
    "setup.py, not for setup": ("setup.py", "check(install_requires=['torch>=2.13'])\n", None),
    "setup.py, made": ("setup.py", "setup(install_requires=open('r').read().split())\n", None),
    "setup.py, broken": ("setup.py", "setup(install_requires=['torch>=2.13']\n", None),
}


def _document(file: Path) -> Mapping[str, Any]:
    return tomllib.loads(file.read_text()) if file.exists() else {}


@pytest.mark.parametrize(("name", "text", "lowest"), FILES.values(), ids=FILES)
def test_a_file_says_what_is_asked_for(tmp_path: Path, name: str, text: str, lowest: str | None) -> None:
    (tmp_path / name).write_text(text)
    assert declared_torch([tmp_path], _document) == lowest


def test_all_files_of_a_project_are_heard(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["torch>=2.13"]\n')
    (tmp_path / "requirements.txt").write_text("torch==2.9.0\n")
    assert declared_torch([tmp_path], _document) == "2.9.0"


def test_a_project_is_not_asked_for_what_the_folder_above_says(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "requirements.txt").write_text("torch>=2.13\n")
    assert declared_torch([inner, tmp_path], _document) == "2.13"
    (inner / "requirements.txt").write_text("numpy\n")
    assert declared_torch([inner, tmp_path], _document) == "2.13"
    (inner / "requirements.txt").write_text("torch\n")
    assert declared_torch([inner, tmp_path], _document) is None
    (inner / "requirements.txt").unlink()
    (inner / "setup.py").write_text("setup()\n")
    assert declared_torch([inner, tmp_path], _document) is None


def test_a_pyproject_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[project]\ndependencies = ["torch>=2.13"]\n[tool.torch-codemod]\nmax-batch = 8\n')
    opened = []
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: opened.append(path) or read(path))
    settings = configured([str(tmp_path)], [])
    assert (settings.torch, settings.max_batch, settings.root) == ("2.13", 8, str(tmp_path))
    assert opened.count(file) == 1
