"""Logs and evidence files that the user names, placed in the files of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from codemod.evidence.failure import Kind
from codemod.evidence.locate import user_frame
from codemod.evidence.log_text import decode_log
from codemod.evidence.recorded import Recorded, Recordings
from codemod.evidence.shown import Evidence, Placed, told
from codemod.evidence.tracebacks import read_log
from codemod.result import FileError
from codemod.sources.notebook import Notebook, decode_notebook
from codemod.sources.source import read


@dataclass(frozen=True, slots=True)
class Given:
    """The evidence by file, and a sentence for each failure that is in none of them."""

    by_path: Mapping[str, Evidence] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def place(logs: Mapping[str, bytes], recordings: Recordings, paths: Sequence[str]) -> Given:
    """`logs` by name."""
    text_of = cache(_text_of)
    placed: dict[str, list[Placed]] = {}
    notes: list[str] = []
    for name, raw in logs.items():
        failures = [failure for failure in read_log(decode_log(raw)) if failure.kind is not Kind.OTHER]
        if not failures:
            notes.append(f"{name}: no failure of a view, a shape or a bmm in it")
        for failure in failures:
            found = user_frame(failure, paths, text_of)
            if found.path is not None and found.frame is not None:
                placed.setdefault(found.path, []).append(Placed(name, failure, found.frame))
            else:
                notes.append(f"{told(name, failure)}: {found.why}.  {failure.kind.explanation}")
    recorded = _recorded(recordings, paths)
    by_path = {
        path: Evidence(tuple(dict.fromkeys(placed.get(path, ()))), tuple(recorded.get(path, ())))
        for path in (*placed, *recorded)
    }
    return Given(by_path, tuple(dict.fromkeys(notes)))


def _recorded(recordings: Recordings, paths: Sequence[str]) -> dict[str, list[Recorded]]:
    """Recordings hold real paths."""
    if not recordings.sites:
        return {}
    given = {str(Path(path).resolve()): path for path in paths}
    found: dict[str, list[Recorded]] = {}
    for site in recordings.sites:
        if site.path in given:
            found.setdefault(given[site.path], []).append(site)
    return found


def _text_of(path: str) -> str | None:
    source = read(path)
    if isinstance(source, FileError):
        return None
    if path.endswith(".ipynb"):
        notebook = decode_notebook(path, source.raw)
        return notebook.source.text if isinstance(notebook, Notebook) else None
    return source.text
