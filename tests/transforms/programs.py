"""Runs a Transform over a program's text, and programs on real torch."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

import codemod.transforms
from codemod.edit.apply import Edited, apply
from codemod.finding import Action, Finding
from codemod.layout.analyse import analyse
from codemod.layout.project import Project
from codemod.result import FileError
from codemod.settings import Settings
from codemod.sources.source import Source, decode
from codemod.syntax.parse import parse
from codemod.transform import Transform


def transforms() -> Mapping[str, Transform]:
    """Every Transform of the package, by name."""
    for found in pkgutil.iter_modules(codemod.transforms.__path__):
        importlib.import_module(f"codemod.transforms.{found.name}")
    return {
        kind.name: kind() for kind in Transform.__subclasses__() if kind.__module__.startswith("codemod.transforms.")
    }


def run(text: str, transform: str, settings: Settings | None = None) -> Edited:
    """The program behind one Transform."""
    source = decode("program.py", text.encode())
    assert isinstance(source, Source), source
    syntax = parse(source)
    assert not isinstance(syntax, FileError), syntax
    rule = transforms()[transform]
    decided = [
        (finding, call.node)
        for call in analyse(syntax, Project("."))
        if call.operation in rule.operations and (finding := rule.decide(call, settings or Settings())) is not None
    ]
    return apply(syntax, decided, {transform: rule})


def rewritten(text: str, transform: str, settings: Settings | None = None) -> str:
    return run(text, transform, settings).text


def findings(text: str, transform: str, settings: Settings | None = None) -> tuple[Finding, ...]:
    return run(text, transform, settings).findings


def actions(text: str, transform: str, settings: Settings | None = None) -> list[Action]:
    return [finding.action for finding in findings(text, transform, settings)]
