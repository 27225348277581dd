"""What `trace` recorded: read from its files, merged site by site, looked up by file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

from codemod.result import FileError

VERSION = 1
EXAMPLES = 8
SIZES = 16
_HEADER = "torch-codemod-evidence"
_NOT_EVIDENCE = f'not an evidence file (no "{_HEADER}" in its first line); give what `torch-codemod trace` wrote'

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """One call: the receiver's sizes and strides (in elements), and what it was asked to become."""

    sizes: Sizes
    strides: Sizes
    target: Sizes | None
    """The sizes of the result, or those asked for where there is none; a -1 stays in what was only asked for."""
    outcome: str
    """`view`, `copy` (a view would have been refused), `refused`, `invalid`, `dtype`, or `error` for any other."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """A target that does not hold as many elements as there were."""

    target: Sizes
    elements: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """A call in the source and what it met, in all processes of all runs.

    Lines and columns are 1-based, columns in characters, of the whole call expression; the end is just past it.
    """

    path: str
    hash: str
    """sha256 of the file's bytes as they ran."""
    line: int
    end_line: int | None
    column: int | None
    end_column: int | None
    operation: str
    calls: int = 0
    traced: int = 0
    """Times that dynamo followed the call on fake tensors; not among the calls."""
    refused: int = 0
    would_be_refused: int = 0
    """Calls of reshape, flatten or contiguous that copied: where a view would not have done."""
    dtype: int = 0
    """Views as another dtype."""
    written: int = 0
    """Sampled calls after which the storage was written in place while the result or its receiver lived."""
    invalid: tuple[Invalid, ...] = ()
    sizes: tuple[Sizes, ...] = ()
    """For each dim, the sizes seen: of many, the smallest and the largest."""
    examples: tuple[Example, ...] = ()
    batch: tuple[int, int] | None = None
    """The smallest and the largest batch of a bmm."""


@dataclass(frozen=True, slots=True)
class Recordings:
    """All that the evidence files hold; sites in the order of path and place."""

    sites: tuple[Recorded, ...] = ()
    errors: int = 0
    """Calls that the recorder could not look at, for reasons of its own."""
    unfinished: int = 0
    """Processes that were killed: their last seconds may be missing."""

    def of(self, path: str, sha256: str) -> tuple[Recorded, ...]:
        """The sites of a file as it is now."""
        return tuple(site for site in self._at(path) if site.hash == sha256)

    def stale(self, path: str, sha256: str) -> tuple[Recorded, ...]:
        """The sites of a file as it was: their places may not hold any more."""
        return tuple(site for site in self._at(path) if site.hash != sha256)

    def _at(self, path: str) -> Iterator[Recorded]:
        real = str(Path(path).resolve())
        return (site for site in self.sites if site.path == real)


def read_recordings(paths: Iterable[Path]) -> tuple[Recordings, tuple[FileError, ...]]:
    """What the files hold together, and what of them cannot be read."""
    texts: dict[str, str] = {}
    errors = []
    for path in paths:
        try:
            texts[str(path)] = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            errors.append(FileError(str(path), "no such file; check the path"))
        except UnicodeDecodeError:
            errors.append(FileError(str(path), _NOT_EVIDENCE))
        except OSError as error:
            errors.append(FileError(str(path), f"cannot be read ({error.strerror or error}); check the path"))
    recordings, bad = parse_recordings(texts)
    return recordings, (*errors, *bad)


def parse_recordings(texts: Mapping[str, str]) -> tuple[Recordings, tuple[FileError, ...]]:
    """The same for texts by name: JSON lines, also of several files one after the other."""
    sites: list[Recorded] = []
    errors: list[FileError] = []
    failed = headers = ends = 0
    for name, text in texts.items():
        for number, entry in _entries(name, text):
            match entry:
                case FileError():
                    errors.append(entry)
                case Recorded():
                    sites.append(entry)
                case int():
                    ends += 1
                    failed += entry
                case None if number:
                    headers += 1
    return Recordings(_merged(sites), failed, max(headers - ends, 0)), tuple(errors)


def render(recordings: Recordings, header: str) -> str:
    """The text of a file that holds the recordings under this first line."""
    end = {"end": "merged", "errors": recordings.errors, "unfinished": recordings.unfinished}
    lines = [header, *(json.dumps(_plain(site)) for site in recordings.sites), json.dumps(end)]
    return "".join(f"{line}\n" for line in lines)


def _entries(name: str, text: str) -> Iterator[tuple[int, Recorded | FileError | int | None]]:
    """(line number, a site, an error, the errors that an end line counts, or None for a header)."""
    lines = text.split("\n")
    is_known = False
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if number == len(lines) and number > 1:  # no line end: the process was killed as it wrote
            return
        if not is_known and _HEADER not in line:
            yield number, FileError(name, _NOT_EVIDENCE, number)
            return
        entry = _entry(name, number, line)
        yield number, entry
        if isinstance(entry, FileError) and not is_known:
            return
        is_known = True


def _entry(name: str, number: int, line: str) -> Recorded | FileError | int | None:
    try:
        given = json.loads(line)
        if _HEADER in given:
            return _refused_version(name, number, given[_HEADER])
        if "end" in given:
            return int(given["errors"])
        return _recorded(given)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return FileError(name, "not a line of an evidence file; delete the line, or record anew", number)


def _refused_version(name: str, number: int, version: object) -> FileError | None:
    if version == VERSION:
        return None
    why = f"evidence of version {version}, this torch-codemod reads {VERSION}; record anew with `torch-codemod trace`"
    return FileError(name, why, number)


def _recorded(given: dict[str, Any]) -> Recorded:
    return Recorded(
        path=str(given["path"]),
        hash=str(given["hash"]),
        line=int(given["line"]),
        end_line=_whole(given["end_line"]),
        column=_whole(given["column"]),
        end_column=_whole(given["end_column"]),
        operation=str(given["operation"]),
        calls=int(given["calls"]),
        traced=int(given.get("traced", 0)),
        refused=int(given["refused"]),
        would_be_refused=int(given["would_be_refused"]),
        dtype=int(given["dtype"]),
        written=int(given["written"]),
        invalid=tuple(Invalid(_sizes(item["target"]), int(item["elements"])) for item in given["invalid"]),
        sizes=tuple(_sizes(dim) for dim in given["sizes"]),
        examples=tuple(_example(item) for item in given["examples"]),
        batch=_batch(given["batch"]),
    )


def _example(given: dict[str, Any]) -> Example:
    target = given["target"]
    outcome = str(given["outcome"])
    return Example(
        _sizes(given["sizes"]), _sizes(given["strides"]), None if target is None else _sizes(target), outcome
    )


def _batch(given: list[int] | None) -> tuple[int, int] | None:
    if given is None:
        return None
    low, high = _sizes(given)
    return low, high


def _sizes(given: list[int]) -> Sizes:
    return tuple(int(size) for size in given)


def _whole(given: int | None) -> int | None:
    return None if given is None else int(given)


def _merged(sites: Iterable[Recorded]) -> tuple[Recorded, ...]:
    """One for each call; in the order of path, place and operation."""
    groups: dict[tuple[str, str, tuple[int, ...], str], list[Recorded]] = {}
    for site in sites:
        groups.setdefault(_key(site), []).append(site)
    return tuple(reduce(_joined, groups[key]) for key in sorted(groups))


def _key(site: Recorded) -> tuple[str, str, tuple[int, ...], str]:
    place = (site.line, site.column or 0, site.end_line or 0, site.end_column or 0)
    return site.path, site.hash, place, site.operation


def _joined(left: Recorded, right: Recorded) -> Recorded:
    return replace(
        left,
        calls=left.calls + right.calls,
        traced=left.traced + right.traced,
        refused=left.refused + right.refused,
        would_be_refused=left.would_be_refused + right.would_be_refused,
        dtype=left.dtype + right.dtype,
        written=left.written + right.written,
        invalid=tuple(dict.fromkeys((*left.invalid, *right.invalid)))[:EXAMPLES],
        sizes=_joined_sizes(left.sizes, right.sizes),
        examples=_chosen((*left.examples, *right.examples)),
        batch=_joined_batch(left.batch, right.batch),
    )


def _joined_sizes(left: tuple[Sizes, ...], right: tuple[Sizes, ...]) -> tuple[Sizes, ...]:
    longest = max(len(left), len(right))
    pairs = zip(left + ((),) * (longest - len(left)), right + ((),) * (longest - len(right)), strict=True)
    return tuple(_bounded(sorted({*ours, *theirs})) for ours, theirs in pairs)


def _bounded(sizes: list[int]) -> Sizes:
    return tuple(sizes if len(sizes) <= SIZES else [*sizes[: SIZES - 1], sizes[-1]])


def _chosen(examples: tuple[Example, ...]) -> tuple[Example, ...]:
    """Each outcome has one at least; the first of each come first."""
    distinct = tuple(dict.fromkeys(examples))
    first = {example.outcome: example for example in reversed(distinct)}
    return tuple(sorted(distinct, key=lambda example: first[example.outcome] is not example))[:EXAMPLES]


def _joined_batch(left: tuple[int, int] | None, right: tuple[int, int] | None) -> tuple[int, int] | None:
    if left is None or right is None:
        return left or right
    return min(left[0], right[0]), max(left[1], right[1])


def _plain(site: Recorded) -> dict[str, object]:
    """As the recorder writes it."""
    names = [name for name in Recorded.__slots__ if name not in ("invalid", "examples")]
    invalid = [{"target": item.target, "elements": item.elements} for item in site.invalid]
    examples = [{name: getattr(item, name) for name in Example.__slots__} for item in site.examples]
    return {**{name: getattr(site, name) for name in names}, "invalid": invalid, "examples": examples}
