"""What `trace` does to models of published packages, and what evidence of them decides.

    python benchmarks/traced_models.py --python PY [PROGRAM.py ...]

PY has the packages; the programs are those of `benchmarks/models`, `of_NAME.py` for the package NAME.  Each runs
without, with, with, and without `trace`: exit codes and what is printed are the same, or it is said.  Then, in a copy,
every `.reshape(` that copied becomes `.view(` again, the copy is traced, and `run --evidence --in-place` goes over it,
until nothing more is rewritten; the program must then print what it printed at first.

A paragraph a package: CPU time under `trace` as a ratio to the time without; recorded sites, and how many of them stand
at no call of the source; verdicts of the views that ran in the copy, by the source alone and with one run's evidence;
how many sites were rewritten, and in how many rounds.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codemod.evidence.join import join
from codemod.evidence.recorded import Recorded, Recordings, read_recordings
from codemod.evidence.shown import Evidence
from codemod.result import FileError
from codemod.sources.source import read
from codemod.syntax.parse import parse

MODELS = Path(__file__).parent / "models"


@dataclass(frozen=True)
class Run:
    code: int
    printed: str
    seconds: float
    """CPU time that the program took, in user mode."""


def run(command: Sequence[str], folder: Path) -> Run:
    """`folder` is where packages are looked for first."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    before = os.times().children_user
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    return Run(done.returncode, done.stdout, os.times().children_user - before)


def traced(program: Path, python: str, folder: Path, output: Path) -> Run:
    command = [
        sys.executable,
        "-m",
        "codemod",
        "trace",
        "--output",
        str(output),
        "--python",
        python,
        "--",
        str(program),
    ]
    return run(command, folder)


def package_of(program: Path, python: str) -> Path:
    """The folder of the package that the program is about."""
    name = program.stem.removeprefix("of_")
    ask = f"import importlib.util; print(importlib.util.find_spec({name!r}).submodule_search_locations[0])"
    found = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True, cwd="/")
    return Path(found.stdout.strip())


def by_file(recordings: Recordings, package: Path) -> dict[Path, list[Recorded]]:
    found: dict[Path, list[Recorded]] = {}
    for site in recordings.sites:
        if Path(site.path).is_relative_to(package.resolve()):
            found.setdefault(Path(site.path), []).append(site)
    return found


def count_missed(recorded: dict[Path, list[Recorded]]) -> int:
    """Of the recorded sites, those that stand at no call of the source."""
    missed = 0
    for path, sites in recorded.items():
        source = read(str(path))
        syntax = source if isinstance(source, FileError) else parse(source)
        joined = {} if isinstance(syntax, FileError) else join(syntax, Evidence((), tuple(sites))).seen
        missed += len(sites) - len(joined)
    return missed


def undo(recorded: dict[Path, list[Recorded]], package: Path, copy: Path) -> int:
    """`.reshape(` of the sites that copied becomes `.view(`, in the copy; how many."""
    count = 0
    for path, sites in recorded.items():
        copied = {(s.end_line, s.end_column) for s in sites if s.operation == "reshape" and s.would_be_refused}
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _end(node, lines) in copied:
                line, end = (node.func.end_lineno or 0) - 1, _characters(lines, node.func.end_lineno, node.func)
                if not node.keywords and lines[line][:end].endswith(".reshape") and _is_method(node.func):
                    lines[line] = lines[line][: end - len("reshape")] + "view   " + lines[line][end:]
                    count += 1
        (copy / path.relative_to(package.resolve())).write_text("".join(lines), encoding="utf-8")
    return count


def _is_method(node: ast.Attribute) -> bool:
    return not (isinstance(node.value, ast.Name) and node.value.id == "torch")


def _end(node: ast.Call, lines: Sequence[str]) -> tuple[int | None, int]:
    return node.end_lineno, _characters(lines, node.end_lineno, node) + 1


def _characters(lines: Sequence[str], line: int | None, node: ast.expr) -> int:
    return len(lines[(line or 1) - 1].encode()[: node.end_col_offset].decode())


def told(recorded: dict[Path, list[Recorded]], *more: str) -> list[dict[str, Any]]:
    """The sites of the files that ran, as `run` tells them; without a path it would go over the working folder."""
    if not recorded:
        return []
    command = [sys.executable, "-m", "codemod", "run", *map(str, recorded), "--format", "json", "--no-cache"]
    command += ["--select", "view-to-reshape", *more]
    sites: list[dict[str, Any]] = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["sites"]
    return sites


def verdicts(recorded: dict[Path, list[Recorded]], *more: str) -> Counter[str]:
    """Of the views that ran."""
    ran = views(recorded)
    found = (site for site in told(recorded, *more) if (site["path"], site["end_line"], site["end_column"]) in ran)
    return Counter(site["verdict"] for site in found)


def views(recorded: dict[Path, list[Recorded]]) -> set[tuple[str, int, int]]:
    return {
        (str(path), site.end_line, site.end_column)
        for path, sites in recorded.items()
        for site in sites
        if site.operation in ("view", "view_as") and site.end_line and site.end_column
    }


def report(program: Path, python: str, scratch: Path) -> Iterator[str]:
    package = package_of(program, python)
    evidence = scratch / "evidence.jsonl"
    first, with_it = run([python, str(program)], package.parent), traced(program, python, package.parent, evidence)
    again, without = traced(program, python, package.parent, evidence), run([python, str(program)], package.parent)
    is_same = {one.code for one in (with_it, again, without)} == {first.code} and (
        {one.printed for one in (with_it, again, without)} == {first.printed}
    )
    ratio = (with_it.seconds + again.seconds) / (first.seconds + without.seconds)
    recordings, _ = read_recordings([evidence])
    recorded = by_file(recordings, package)
    sites = sum(map(len, recorded.values()))
    yield f"{package.name}: exit code {first.code} and {'the same lines' if is_same else 'OTHER LINES'} with trace"
    yield f"  {first.printed.count(chr(10))} lines printed; CPU time x {ratio:.2f}; {recordings.errors} errors of ours"
    yield f"  {sites} sites recorded, {count_missed(recorded)} of them at no call"
    yield from _undone(program, python, package, recorded, first, scratch)


def _undone(
    program: Path, python: str, package: Path, recorded: dict[Path, list[Recorded]], first: Run, scratch: Path
) -> Iterator[str]:
    copy = scratch / "copy" / package.name
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    undone = undo(recorded, package, copy)
    evidence = scratch / "undone.jsonl"
    counts: list[int] = []
    while True:
        last = traced(program, python, copy.parent, evidence)
        recordings, _ = read_recordings([evidence])
        here = by_file(recordings, copy)
        if not counts:
            before, after = verdicts(here), verdicts(here, "--evidence", str(evidence))
            yield f"  {undone} reshapes undone; verdicts of the {sum(before.values())} views that ran: {_told(before)}"
            yield f"  with what one run recorded: {_told(after)}"
        done = told(here, "--evidence", str(evidence), "--in-place")
        counts.append(sum(site["action"] == "rewrite" for site in done))
        if not counts[-1]:
            break
    end = "the same" if (last.code, last.printed) == (first.code, first.printed) else "OTHER LINES"
    yield f"  {sum(counts)} sites rewritten in {len(counts) - 1} rounds; then it prints {end}"
    refused = {(str(path), one.end_line, one.end_column) for path, ones in here.items() for one in ones if one.refused}
    for site in done:
        if (site["path"], site["end_line"], site["end_column"]) in refused:
            place = f"{Path(site['path']).relative_to(copy)}:{site['line']}:{site['column']}"
            yield f"  refused still: {place}: {site['action']}, {site['verdict']}: {site['message']}"


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


def main(programs: Iterable[Path], python: str) -> None:
    for program in programs:
        with tempfile.TemporaryDirectory() as name:
            for line in report(program.resolve(), python, Path(name)):
                print(line, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="An interpreter that has the packages.")
    parser.add_argument("programs", nargs="*", type=Path)
    given = parser.parse_args()
    main(given.programs or sorted(MODELS.glob("of_*.py")), given.python)
