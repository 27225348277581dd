"""The user's other files, read where an import leads to them.

All files that one analysis sees share one numbering of lines: those of the file itself count from 1, those of another
from a million, two millions, and so on, so that a line says which file it is in.
"""

from __future__ import annotations

import ast
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from codemod.layout.program import Program, survey
from codemod.result import FileError
from codemod.sources.package import package_of
from codemod.sources.source import read
from codemod.syntax.parse import parse

LINES = 1_000_000
"""More than any file has."""
KEPT_AT_MOST = 48
"""Files that a process keeps in memory for the next ones that import them."""
LARGEST = 1_000_000
"""Bytes; a file beyond is not followed into."""
HOPS = 6
"""Imports of imports are followed this far."""
_numbers = itertools.count(1)


@dataclass(slots=True)
class Project:
    """What can be imported by the files in a folder: beside their packages, and in the folders above within `root`."""

    root: str
    read: dict[str, str] = field(default_factory=dict)
    """Digests of the files that the analysis depends on, by path; empty for those that it would read if they could
    be."""
    _programs: dict[str, Program | None] = field(default_factory=dict)
    _modules: dict[tuple[Path, str], str | None] = field(default_factory=dict)
    _tops: dict[str, Sequence[Path]] = field(default_factory=dict)
    _definitions: dict[tuple[str, str, int], tuple[Program, str] | None] = field(default_factory=dict)

    def definition(self, name: str, importer: str, hops: int = HOPS) -> tuple[Program, str] | None:
        """The file that defines what is imported under this name by the file `importer`, and its name there."""
        if hops == 0 or name.startswith("."):
            return None
        key = (name, importer, hops)
        if key not in self._definitions:
            self._definitions[key] = self._look_up(name, importer, hops)
        return self._definitions[key]

    def _look_up(self, name: str, importer: str, hops: int) -> tuple[Program, str] | None:
        for folder in self._folders(importer):
            found = self._find(folder, name.split("."))
            if found is not None:
                return self._defined(*found, hops)
        return None

    def may_define(self, name: str, importer: str) -> bool:
        """Is there a file or folder by the first part of the name?"""
        head = name.partition(".")[0]
        return any(self._module(folder, head) is not None for folder in self._folders(importer))

    def place(self, line: int) -> tuple[str | None, int]:
        """The path, None for the file itself, and the line in it."""
        number, line = divmod(line, LINES)
        return next((p.path for p in self._programs.values() if p and p.number == number), None), line

    def _defined(self, program: Program, name: str, hops: int) -> tuple[Program, str] | None:
        if name in program.functions or name in program.classes or name in program.constants:
            return program, name
        if name in program.imports:
            return self.definition(program.imports[name], program.path, hops - 1)
        found = (self.definition(f"{star}.{name}", program.path, hops - 1) for star in program.stars)
        return next((definition for definition in found if definition is not None), None)

    def _find(self, folder: Path, parts: list[str]) -> tuple[Program, str] | None:
        """The module that all parts but the last lead to, and the last."""
        file = None
        for part in parts[:-1]:
            file = self._module(folder, part)
            folder = folder / part
            if file is None:
                return None
        program = self._program(file) if file else None
        return (program, parts[-1]) if program is not None else None

    def _module(self, folder: Path, name: str) -> str | None:
        """The file of a module or package; empty for a folder without one."""
        key = (folder, name)
        if key not in self._modules:
            self._modules[key] = self._look_for(folder / name)
        return self._modules[key]

    def _look_for(self, package: Path) -> str | None:
        for file in (package / "__init__.py", package.with_name(f"{package.name}.py")):
            if file.is_file():
                return str(file)
            self.read[str(file)] = ""
        return "" if package.is_dir() else None

    def _program(self, file: str) -> Program | None:
        if file not in self._programs:
            status = Path(file).stat()
            self._programs[file], self.read[file] = _load(file, status.st_mtime_ns, status.st_size)
        return self._programs[file]

    def _folders(self, importer: str) -> Sequence[Path]:
        """Where absolute imports begin: the folder that holds the package or the script, and those above it."""
        if importer not in self._tops:
            top, _ = package_of(importer)
            root = Path(self.root).absolute()
            above = [folder for folder in top.absolute().parents if folder.is_relative_to(root)]
            if not top.is_absolute():
                above = [Path(os.path.relpath(folder)) for folder in above]
            self._tops[importer] = [top, *above, *(folder / "src" for folder in above)]
        return self._tops[importer]


@lru_cache(maxsize=KEPT_AT_MOST)
def _load(file: str, changed: int, size: int) -> tuple[Program | None, str]:
    """What the file defines, and its digest; nothing where it cannot be read as Python."""
    source = read(file)
    if isinstance(source, FileError):
        return None, ""
    digest = sha256(source.raw).hexdigest()
    syntax = parse(source) if size <= LARGEST else None
    if syntax is None or isinstance(syntax, FileError):
        return None, digest
    number = next(_numbers)
    _renumber(syntax.tree, number * LINES)
    program = survey(syntax.tree, file, number)
    program.dissolve()
    return program, digest


def _renumber(tree: ast.Module, by: int) -> None:
    """As `ast.increment_lineno`, in half of the time: whole files are read for the little that is imported."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        known = vars(node)
        if "lineno" in known:
            known["lineno"] += by
            known["end_lineno"] += by
        kind = type(node)
        if kind not in _FIELDS:
            _FIELDS[kind] = () if kind is ast.Constant else tuple(name for name in kind._fields if name not in _TEXTS)
        for name in _FIELDS[kind]:
            child = known[name]
            if type(child) is list:
                stack += [item for item in child if type(item) not in _PLAIN]
            elif type(child) not in _PLAIN:
                stack.append(child)


_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}
"""Those that may hold nodes with a place."""
_TEXTS = frozenset({"ctx", "op", "ops", "id", "attr", "kind", "type_comment"})
_PLAIN = frozenset({str, int, type(None)})
