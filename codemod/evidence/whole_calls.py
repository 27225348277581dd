"""Where recorded calls begin.

CPython places a method call whose name stands on a later line than its receiver at the name; its end is always the
whole call's, and no two calls share it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256

from codemod.evidence.recorded import Recorded, Recordings
from codemod.result import FileError
from codemod.sources.source import read
from codemod.syntax.deep import on_deep_stack
from codemod.syntax.parse import Syntax, parse

Place = tuple[int, int]


def with_whole_calls(recordings: Recordings) -> Recordings:
    """The sites that begin with their method's name begin with the call's receiver, where the file is unchanged."""
    starts = {path: _starts(path) for path in sorted({site.path for site in recordings.sites})}
    return replace(recordings, sites=tuple(_whole(site, starts.get(site.path, {})) for site in recordings.sites))


def _whole(site: Recorded, starts: Mapping[tuple[str, Place], Place]) -> Recorded:
    if site.end_line is None or site.end_column is None:
        return site
    start = starts.get((site.hash, (site.end_line, site.end_column)))
    return site if start is None else replace(site, line=start[0], column=start[1])


def _starts(path: str) -> dict[tuple[str, Place], Place]:
    """Where each call of the file begins, by the file's hash and the call's end."""
    source = read(path)
    if isinstance(source, FileError):
        return {}
    syntax = on_deep_stack(lambda: parse(source))
    if isinstance(syntax, FileError):
        return {}
    digest = sha256(source.raw).hexdigest()
    return {(digest, end): start for start, end in _calls(syntax)}


def _calls(syntax: Syntax) -> Iterable[tuple[Place, Place]]:
    for node in ast.walk(syntax.tree):
        if isinstance(node, ast.Call):
            start, end = syntax.places.range_of(node)
            yield syntax.places.position(start), syntax.places.position(end)
