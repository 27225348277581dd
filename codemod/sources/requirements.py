"""Which torch a project asks for: pyproject.toml ([project], Poetry), setup.cfg, setup.py, requirements*.txt."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from configparser import ConfigParser, Error
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

_LOWER = frozenset({">=", "~=", "==", "===", ">"})
_COMMENT = re.compile(r"(^|\s)#.*$", re.MULTILINE)
_OPTION = re.compile(r"\s--?\w.*$")
"""What pip takes behind a requirement: `torch==2.13.0 --hash=sha256:...`."""
_UPWARD = re.compile(r"\^|~(?!=)")
"""Poetry's `^2.6` and `~2.6`: from there on, up to some version."""
_GAP = re.compile(r"(?<=[\w*])\s+(?=[<>=!~^])")


def declared_torch(folders: Iterable[Path], document: Callable[[Path], Mapping[str, Any]]) -> str | None:
    """What the first of these folders that holds a project, or else names torch, asks for; None where it does not say.

    `document` gives the content of a pyproject.toml, which is empty where there is none.
    """
    for folder in folders:
        pyproject = document(folder / "pyproject.toml")
        poetry = _table(_table(pyproject.get("tool")).get("poetry"))
        stated = [*_of_project(_table(pyproject.get("project"))), *_of_poetry(poetry), *_of_files(folder)]
        lowest = lowest_torch(stated)
        is_project = (
            "project" in pyproject or poetry or any((folder / f"setup.{end}").is_file() for end in ("py", "cfg"))
        )
        if lowest is not None or is_project or any(_of_torch(text) is not None for text in stated):
            return lowest
    return None


def lowest_torch(requirements: Iterable[str]) -> str | None:
    """The lowest version that all of these requirements leave; None where one of torch names none, or none is of torch.

    `torch>=2.6,!=2.7` -> 2.6; `torch` -> None.  Of several that hold under different markers, the lowest.
    """
    asked = [_lowest(specifiers) for text in requirements if (specifiers := _of_torch(text)) is not None]
    known = [version for version in asked if version is not None]
    return str(min(known)) if known and len(known) == len(asked) else None


def _of_torch(text: str) -> SpecifierSet | None:
    """None for a requirement of something else."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None
    return requirement.specifier if canonicalize_name(requirement.name) == "torch" else None


def _lowest(specifiers: SpecifierSet) -> Version | None:
    bounds = (one.version.removesuffix(".*") for one in specifiers if one.operator in _LOWER)
    try:
        return max(map(Version, bounds), default=None)
    except InvalidVersion:  # `===` takes any text
        return None


def _of_project(project: Mapping[str, Any]) -> Iterator[str]:
    groups = [project.get("dependencies"), *_table(project.get("optional-dependencies")).values()]
    return (text for group in groups for text in _texts(group))


def _of_poetry(poetry: Mapping[str, Any]) -> Iterator[str]:
    """In the words of the others: `torch = "^2.6"` is `torch>=2.6`."""
    groups = (_table(group) for group in _table(poetry.get("group")).values())
    for table in (poetry, *groups):
        given = _table(table.get("dependencies")).get("torch")
        for constraint in given if isinstance(given, list) else [given]:
            version = constraint.get("version", "*") if isinstance(constraint, dict) else constraint
            if isinstance(version, str):
                yield from (f"torch{_plain(part)}" for part in re.split(r"\|\|?", version))


def _plain(constraint: str) -> str:
    """PEP 440's spelling of a constraint of Poetry's; empty for one that names no version."""
    parts = (part.strip() for part in _GAP.sub(",", constraint.strip()).split(","))
    spelled = ",".join(f"=={part}" if part[:1].isdigit() else _UPWARD.sub(">=", part) for part in parts if part != "*")
    try:
        return str(SpecifierSet(spelled))
    except InvalidSpecifier:
        return ""


def _of_files(folder: Path) -> Iterator[str]:
    for file in sorted(folder.glob("requirements*.txt")):
        yield from _of_lines(_read(file))
    yield from _of_setup_cfg(_read(folder / "setup.cfg"))
    yield from _of_setup_py(_read(folder / "setup.py"))


def _read(file: Path) -> str:
    """Empty where it is not there, or not ours to complain of."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return ""


def _of_lines(text: str) -> Iterator[str]:
    """Those of a file for pip, without its options."""
    for line in _COMMENT.sub("", text.replace("\\\n", " ")).splitlines():
        yield _OPTION.sub("", line).strip()


def _of_setup_cfg(text: str) -> Iterator[str]:
    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except Error:
        return
    extras = parser["options.extras_require"].values() if parser.has_section("options.extras_require") else ()
    for group in (parser.get("options", "install_requires", fallback=""), *extras):
        yield from _of_lines(group)


def _of_setup_py(text: str) -> Iterator[str]:
    """What is written out in the call of `setup`, or in a name that it is given."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    bound = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "setup":
            for keyword in call.keywords:
                if keyword.arg in ("install_requires", "extras_require"):
                    yield from _written(keyword.value, bound)


def _written(node: ast.expr, bound: Mapping[str, ast.expr]) -> Iterator[str]:
    if isinstance(node, ast.Name):
        node = bound.get(node.id, node)
    for part in ast.walk(node) if isinstance(node, ast.List | ast.Tuple | ast.Dict) else ():
        if isinstance(part, ast.List | ast.Tuple):
            yield from _texts([item.value for item in part.elts if isinstance(item, ast.Constant)])


def _texts(group: object) -> Iterator[str]:
    return (text for text in group if isinstance(text, str)) if isinstance(group, list) else iter(())


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
