"""Logs and evidence files that the user names, placed in the files of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

from codemod.evidence.failure import Failure, Frame, Kind
from codemod.evidence.locate import user_frame
from codemod.evidence.log_text import decode_log
from codemod.evidence.paths import match_path, slashed
from codemod.evidence.recorded import Recorded, Recordings
from codemod.evidence.shown import Evidence, Placed, told
from codemod.evidence.tracebacks import read_log
from codemod.result import FileError
from codemod.sources.notebook import Notebook, decode_notebook
from codemod.sources.source import read

NOTHING_TOLD = "no failure of a view, a shape or a bmm in it"


@dataclass(frozen=True, slots=True)
class Located:
    """One failure of a log, and the file of the run that holds the failing call; or why there is none."""

    log: str
    failure: Failure
    path: str | None
    frame: Frame | None
    why: str

    @property
    def text(self) -> str:
        return told(self.log, self.failure)


@dataclass(frozen=True, slots=True)
class Given:
    """The evidence by file, and a sentence for each failure that is in none of them."""

    by_path: Mapping[str, Evidence] = field(default_factory=dict)
    located: tuple[Located, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[str, ...]:
        """The files in which a call was seen to fail."""
        return tuple(path for path, evidence in self.by_path.items() if evidence.is_of_failure)


def _locate(logs: Mapping[str, bytes], paths: Sequence[str]) -> tuple[Located, ...]:
    """What the logs tell of views, shapes and bmm, in order."""
    text_of = cache(_text_of)
    found = []
    for name, raw in logs.items():
        for failure in read_log(decode_log(raw)):
            if failure.kind is not Kind.OTHER:
                user = user_frame(failure, paths, text_of)
                found.append(Located(name, failure, user.path, user.frame, user.why))
    return tuple(found)


def place(logs: Mapping[str, bytes], recordings: Recordings, paths: Sequence[str]) -> Given:
    """`logs` by name."""
    placed: dict[str, list[Placed]] = {}
    notes: list[str] = []
    located = _locate(logs, paths)
    for one in located:
        if one.path is not None and one.frame is not None:
            placed.setdefault(one.path, []).append(Placed(one.log, one.failure, one.frame))
        else:
            notes.append(f"{one.text}: {one.why}.  {one.failure.kind.explanation}")
    notes += [f"{log}: {NOTHING_TOLD}" for log in logs if all(one.log != log for one in located)]
    recorded = _recorded(recordings, paths)
    notes += _notes_on(recordings, recorded)
    by_path = {
        path: Evidence(tuple(dict.fromkeys(placed.get(path, ()))), tuple(recorded.get(path, ())))
        for path in (*placed, *recorded)
    }
    return Given(by_path, located, tuple(dict.fromkeys(notes)))


def _recorded(recordings: Recordings, paths: Sequence[str]) -> dict[str, list[Recorded]]:
    """Recordings hold real paths, of the machine that recorded."""
    if not recordings.sites:
        return {}
    given = {str(Path(path).resolve()): path for path in paths}
    digest_of = cache(_digest_of)
    moved = cache(lambda path, digest: _moved(path, digest, paths, digest_of))
    found: dict[str, list[Recorded]] = {}
    for site in recordings.sites:
        path = given.get(site.path) or moved(site.path, site.hash)
        if path is not None:
            found.setdefault(path, []).append(site)
    return found


def _moved(recorded: str, digest: str, paths: Sequence[str], digest_of: Callable[[str], str]) -> str | None:
    """The file that ran under another path, as in a container: of the same bytes, and the longest tail in common."""
    name = slashed(recorded).rpartition("/")[2]
    found = match_path(recorded, [path for path in paths if path.endswith(name) and digest_of(path) == digest]).paths
    return found[0] if len(found) == 1 else None


def _notes_on(recordings: Recordings, recorded: Mapping[str, object]) -> list[str]:
    """What is about a part of the evidence only is not told: a run may be over one file."""
    if not recordings.sites or recorded:
        return []
    files = sorted({site.path for site in recordings.sites})
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return [f"recorded calls of {files[0]}{more}: none of the given files is one of these as it was recorded"]


def _digest_of(path: str) -> str:
    source = read(path)
    return "" if isinstance(source, FileError) else sha256(source.raw).hexdigest()


def _text_of(path: str) -> str | None:
    source = read(path)
    if isinstance(source, FileError):
        return None
    if path.endswith(".ipynb"):
        notebook = decode_notebook(path, source.raw)
        return notebook.source.text if isinstance(notebook, Notebook) else None
    return source.text
