"""Whether in-place runs keep their promises on real packages.

    python benchmarks/trust.py [--sites LEVEL] [--to SPELLING] FOLDER...

Each folder is copied and rewritten in place, twice.  Then every rewritten file must parse and compile; outside of the
calls that the report says are rewritten, and of the imports that these need, no byte may differ; nothing else may have
been written but helper files; and the second run must find nothing to do.  Prints one line a folder and each violation
with file and line; exit code 1 where there is one.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
HELPER = "_chunked_bmm.py"
HELPER_MARK = b"# torch-codemod: ignore-file"
BOM = b"\xef\xbb\xbf"
# `from p import n as l`, as a line, between blank lines, or behind a `;`
IMPORTS = re.compile(r"(?:\s*(?:; )?from [\w.]+ import \w+(?: as \w+)?\s*)+")
CELL_SOURCE = re.compile(r'"source"\s*:\s*(?:\[(?:\s*"(?:[^"\\]|\\.)*"\s*,?)*\s*\]|"(?:[^"\\]|\\.)*")')
MAGIC = re.compile(r"^(\s*)[%!?].*$", re.MULTILINE)

Tree = Mapping[str, bytes]
"""The files of a folder, by their path in it."""


@dataclass(frozen=True, slots=True)
class Site:
    """A site that a run reports as rewritten; line and column are those of the method-name token."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    replacement: str
    cell: int | None


@dataclass(frozen=True, slots=True)
class Violation:
    path: str
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class Run:
    """What one in-place run said."""

    sites: tuple[Site, ...]
    changed: int
    skipped: int
    violations: tuple[Violation, ...]


def judge(before: Tree, after: Tree, sites: Sequence[Site]) -> Iterator[Violation]:
    """What in `after` is not `before` with the reported sites rewritten."""
    by_path: dict[str, list[Site]] = defaultdict(list)
    for site in sites:
        by_path[site.path].append(site)
    for path in sorted({*before, *after}):
        if path not in after:
            yield Violation(path, 1, "was removed")
        elif Path(path).name == HELPER and before.get(path) != after[path]:
            yield from _judge_helper(path, after[path], sites)
        elif path not in before:
            yield Violation(path, 1, "is new and no helper")
        elif path.endswith(".ipynb"):
            yield from _judge_notebook(path, before[path], after[path], by_path[path])
        else:
            yield from _judge_file(path, before[path], after[path], by_path[path])


def _judge_helper(path: str, raw: bytes, sites: Sequence[Site]) -> Iterator[Violation]:
    if not raw.startswith(HELPER_MARK):
        yield Violation(path, 1, "the helper does not begin with its mark")
    if not any(Path(site.path).is_relative_to(Path(path).parent) for site in sites):
        yield Violation(path, 1, "a helper was written, and no site beside or below it is rewritten")
    yield from _compiles(path, raw)


def _judge_file(path: str, before: bytes, after: bytes, sites: Sequence[Site]) -> Iterator[Violation]:
    if not sites:
        if before != after:
            yield Violation(path, _first_difference(before, after), "changed without a rewritten site")
        return
    encoding = tokenize.detect_encoding(io.BytesIO(before).readline)[0].removesuffix("-sig")
    bom = BOM if before.startswith(BOM) else b""
    text = before[len(bom) :].decode(encoding)
    wanted = _rewritten(text, sites)
    if isinstance(wanted, Violation):
        yield wanted
        return
    raw = bom + wanted.encode(encoding)
    if raw != after and not _is_import_added(raw.decode(encoding), after.decode(encoding, "surrogateescape")):
        yield Violation(path, _first_difference(raw, after), "differs outside of the rewritten calls")
    if not list(_compiles(path, before)):
        yield from _compiles(path, after)


def _judge_notebook(path: str, before: bytes, after: bytes, sites: Sequence[Site]) -> Iterator[Violation]:
    if not sites:
        if before != after:
            yield Violation(path, 1, "changed without a rewritten site")
        return
    old, new = before.decode(), after.decode()
    if CELL_SOURCE.sub("", old) != CELL_SOURCE.sub("", new):
        yield Violation(path, 1, "differs outside of the cells' sources")
        return
    cells = zip(json.loads(old)["cells"], json.loads(new)["cells"], strict=True)
    for number, pair in enumerate(cells, start=1):
        text, text_now = ("".join(cell["source"]) for cell in pair)
        wanted = _rewritten(text, [site for site in sites if site.cell == number])
        if isinstance(wanted, Violation):
            yield wanted
        elif wanted != text_now and not _is_import_added(wanted, text_now):
            yield Violation(path, 1, f"cell {number} differs outside of the rewritten calls")


def _rewritten(text: str, sites: Sequence[Site]) -> str | Violation:
    """`text` with the outermost of the sites replaced by what the report says."""
    if not sites:
        return text
    places = _calls(text)
    ranges = []
    for site in sites:
        place = places.get((site.line, site.column, site.end_line, site.end_column))
        if place is None:
            return Violation(site.path, site.line, f"there is no call at column {site.column} for {site.replacement!r}")
        ranges.append((*place, site.replacement))
    parts: list[str] = []
    end = 0
    for start, stop, replacement in sorted(ranges, key=lambda item: (item[0], -item[1])):
        if start >= end:
            parts += (text[end:start], _apart(text[start - 1 : start], replacement, text[stop : stop + 1]))
            end = stop
        elif replacement not in parts[-1]:
            return Violation(sites[0].path, sites[0].line, f"the call around {replacement!r} does not hold it")
    return "".join((*parts, text[end:]))


def _calls(text: str) -> dict[tuple[int, int, int, int], tuple[int, int]]:
    """Where each call begins and ends in `text`, by the line and column of its name and of its end."""
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def column(line: int, offset: int) -> int:
        return len(lines[line - 1].encode()[:offset].decode())

    calls = {}
    for node in ast.walk(_parsed(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            start = starts[node.lineno - 1] + column(node.lineno, node.col_offset)
            name_line, name_end = (
                node.func.end_lineno or 0,
                column(node.func.end_lineno or 0, node.func.end_col_offset or 0),
            )
            end_line, end = node.end_lineno or 0, column(node.end_lineno or 0, node.end_col_offset or 0)
            calls[name_line, name_end - len(name) + 1, end_line, end + 1] = (start, starts[end_line - 1] + end)
    return calls


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except SyntaxError:
            return ast.parse(MAGIC.sub(r"\1pass", text))


def _apart(before: str, text: str, after: str) -> str:
    """`text`, with a blank where it would grow together with a neighbour, as in `return(x).bmm(y)`."""
    left = " " * (f"a{before}".isidentifier() and bool(before) and f"a{text[:1]}".isidentifier())
    right = " " * (f"a{after}".isidentifier() and bool(after) and f"a{text[-1:]}".isidentifier())
    return f"{left}{text}{right}"


def _is_import_added(wanted: str, text: str) -> bool:
    """Whether `text` is `wanted` with import statements put in at one place."""
    same = _shared(wanted, text)
    tail = _shared(wanted[::-1], text[::-1])
    size = len(text) - len(wanted)
    places = range(max(len(wanted) - tail, 0), same + 1)
    return size > 0 and any(IMPORTS.fullmatch(text, place, place + size) for place in places)


def _compiles(path: str, raw: bytes) -> Iterator[Violation]:
    if not path.endswith(".py"):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(raw, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            yield Violation(path, getattr(error, "lineno", None) or 1, f"does not compile: {error}")


def _first_difference(before: bytes, after: bytes) -> int:
    """The line, of `after`, at which they part."""
    return after[: _shared(before, after)].count(b"\n") + 1


def _shared(left: str | bytes, right: str | bytes) -> int:
    """How long a beginning they have in common."""
    pairs = zip(left, right, strict=False)
    return next((i for i, (one, other) in enumerate(pairs) if one != other), min(len(left), len(right)))


def files(folder: Path) -> dict[str, bytes]:
    """Every file in and below the folder."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def rewrite(folder: Path, options: Sequence[str]) -> Run:
    """One in-place run."""
    command = [sys.executable, "-m", "codemod", "run", "--in-place", "--no-cache", "--format", "json", *options]
    done = subprocess.run([*command, str(folder)], cwd=REPOSITORY, capture_output=True, check=False)
    trouble = done.stderr.decode(errors="replace").strip()
    try:
        report = json.loads(done.stdout)
    except ValueError:
        what = f"the run ended with exit code {done.returncode} and no report: {trouble[-400:]}"
        return Run((), 0, 0, (Violation(".", 1, what),))
    violations = list(_judge_exit(folder, done.returncode, trouble, report["files"]["skipped"]))
    sites = []
    for site in report["sites"]:
        if site["action"] == "rewrite" and site["replacement"] is None:
            violations.append(Violation(site["path"], site["line"], "is rewritten, and has no replacement"))
        elif site["action"] == "rewrite":
            sites.append(_site(site, folder))
    return Run(tuple(sites), report["files"]["changed"], len(report["files"]["skipped"]), tuple(violations))


def _site(site: dict[str, Any], folder: Path) -> Site:
    path = Path(site["path"]).relative_to(folder).as_posix()
    name, end = (site["line"], site["column"]), (site["end_line"], site["end_column"])
    return Site(path, *name, *end, site["replacement"], site.get("cell"))


def _judge_exit(folder: Path, code: int, trouble: str, skipped: Sequence[Mapping[str, str]]) -> Iterator[Violation]:
    """Exit code 2 is right for files that are no Python, and never for an error of ours."""
    if code != (2 if skipped else 0):
        yield Violation(".", 1, f"exit code {code} with {len(skipped)} files skipped: {trouble[-400:]}")
    for file in skipped:
        if "internal error" in file["why"]:
            yield Violation(Path(file["path"]).relative_to(folder).as_posix(), 1, file["why"])
    if "Traceback" in trouble and not any("internal error" in file["why"] for file in skipped):
        yield Violation(".", 1, f"a traceback on stderr: {trouble[-400:]}")


def check(folder: Path, options: Sequence[str], scratch: Path) -> list[Violation]:
    """Every promise that a copy of the folder shows broken; prints a line of counts."""
    copy = scratch / folder.name
    shutil.copytree(folder, copy, symlinks=True)
    before = files(copy)
    first = rewrite(copy, options)
    middle = files(copy)
    second = rewrite(copy, options)
    violations = list(dict.fromkeys((*first.violations, *judge(before, middle, first.sites), *second.violations)))
    violations += [
        Violation(site.path, site.line, f"the second run rewrites again: {site.replacement!r}") for site in second.sites
    ]
    last = files(copy)
    rewritten = {path for path in before if before[path] != middle.get(path) and Path(path).name != HELPER}
    if len(rewritten) != first.changed:
        violations.append(Violation(".", 1, f"{len(rewritten)} files changed, {first.changed} reported"))
    violations += [
        Violation(path, _first_difference(middle.get(path, b""), last.get(path, b"")), "the second run changed it")
        for path in sorted({*middle, *last})
        if middle.get(path) != last.get(path)
    ]
    counts = f"{len(first.sites)} sites rewritten in {len(rewritten)} of {len(before)} files"
    print(f"{folder.name}: {counts}, {first.skipped} skipped, {len(violations)} violations", flush=True)
    for violation in violations:
        print(f"    {violation.path}:{violation.line}: {violation.what}", flush=True)
    shutil.rmtree(copy)
    return violations


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--sites", default="failing", help="level of the runs (default: %(default)s)")
    parser.add_argument("--to", default="reshape", help="what a view becomes (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        run = ["--sites", options.sites, "--to", options.to]
        found = [check(folder.resolve(), run, Path(scratch).resolve()) for folder in options.folders]
    return 1 if any(found) else 0


if __name__ == "__main__":
    sys.exit(main())
