"""Reading evidence files: text in, sites and errors out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codemod.evidence.recorded import Example, Invalid, Recordings, parse_recordings, read_recordings, render
from codemod.result import FileError

HEADER = '{"torch-codemod-evidence": 1, "torch": "2.13.0", "python": "3.11.7"}'
END = '{"end": "exit", "errors": 0, "error": null}'


def site(**changes: object) -> str:
    example = {"sizes": [2, 3], "strides": [1, 2], "target": [-1], "outcome": "refused"}
    given: dict[str, object] = {
        "path": "/p/net.py",
        "hash": "a" * 64,
        "line": 3,
        "end_line": 3,
        "column": 5,
        "end_column": 15,
        "operation": "view",
        "calls": 2,
        "traced": 0,
        "refused": 1,
        "would_be_refused": 0,
        "dtype": 0,
        "written": 0,
        "invalid": [{"target": [5, 5], "elements": 24}],
        "sizes": [[2], [3]],
        "examples": [example],
        "batch": None,
    }
    return json.dumps({**given, **changes})


def text(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def parse(*lines: str) -> tuple[Recordings, tuple[FileError, ...]]:
    return parse_recordings({"evidence.jsonl": text(*lines)})


def test_files_put_one_after_the_other_are_a_file() -> None:
    recordings, errors = parse(HEADER, site(), END, HEADER, site(line=4), END)
    assert errors == ()
    assert [found.line for found in recordings.sites] == [3, 4]
    assert recordings.unfinished == 0


def test_equal_sites_become_one() -> None:
    later = site(calls=3, refused=0, sizes=[[2, 7], [3], [4]], batch=[1, 4], invalid=[])
    recordings, _ = parse(HEADER, site(batch=[2, 9]), later, END)
    (found,) = recordings.sites
    assert (found.calls, found.refused, found.batch) == (5, 1, (1, 9))
    assert found.sizes == ((2, 7), (3,), (4,))
    assert found.invalid == (Invalid((5, 5), 24),)
    assert found.examples == (Example((2, 3), (1, 2), (-1,), "refused"),)


@pytest.mark.parametrize("change", [{"hash": "b" * 64}, {"column": 6}, {"operation": "reshape"}, {"path": "/p/a.py"}])
def test_other_calls_stay_apart(change: dict[str, object]) -> None:
    recordings, _ = parse(HEADER, site(), site(**change), END)
    assert len(recordings.sites) == 2


def test_each_outcome_keeps_an_example() -> None:
    many = [{"sizes": [n], "strides": [1], "target": [n], "outcome": "view"} for n in range(8)]
    recordings, _ = parse(HEADER, site(examples=many), site(), END)
    (found,) = recordings.sites
    assert len(found.examples) == 8
    assert {example.outcome for example in found.examples} == {"view", "refused"}


def test_of_many_sizes_the_largest_stays() -> None:
    recordings, _ = parse(HEADER, site(sizes=[list(range(10))]), site(sizes=[list(range(5, 40))]), END)
    (found,) = recordings.sites
    assert found.sizes[0] == (*range(15), 39)


def test_a_changed_file_has_only_stale_sites(tmp_path: Path) -> None:
    path = str((tmp_path / "net.py").resolve())
    recordings, _ = parse(HEADER, site(path=path), site(path=path, hash="b" * 64), site(), END)
    assert [found.hash[0] for found in recordings.of(path, "a" * 64)] == ["a"]
    assert [found.hash[0] for found in recordings.stale(path, "a" * 64)] == ["b"]
    assert recordings.of(path, "c" * 64) == ()


def test_what_a_killed_process_left_is_read() -> None:
    recordings, errors = parse_recordings({"part": text(HEADER, site()) + site()[:40]})
    assert errors == ()
    assert [found.calls for found in recordings.sites] == [2]
    assert recordings.unfinished == 1


def test_errors_of_the_recorder_are_summed() -> None:
    recordings, _ = parse(HEADER, END.replace("0", "2"), HEADER, END.replace("0", "3"))
    assert recordings.errors == 5


def test_a_bad_line_is_named_and_the_others_are_read() -> None:
    recordings, errors = parse(
        HEADER, "{nonsense", site(), '{"path": "/p/net.py"}', site(calls=[]), "[1]", "[" * 99_999, site(line=1e999), END
    )
    assert [error.line for error in errors] == [2, 4, 5, 6, 7, 8]
    assert errors[0].path == "evidence.jsonl"
    assert errors[0].why == "not a line of an evidence file; delete the line, or record anew"
    assert len(recordings.sites) == 1


def test_another_version_is_refused() -> None:
    recordings, errors = parse(HEADER.replace('evidence": 1', 'evidence": 2'), site(), END)
    assert [(error.line, error.why) for error in errors] == [
        (1, "evidence of version 2, this torch-codemod reads 1; record anew with `torch-codemod trace`")
    ]
    assert recordings.sites == ()


def test_another_file_is_refused() -> None:
    recordings, errors = parse(site(), END)
    assert [error.line for error in errors] == [1]
    assert "not an evidence file" in errors[0].why
    assert recordings == Recordings()


def test_what_is_rendered_is_read_again() -> None:
    recordings, _ = parse(HEADER, site(), site(line=9, batch=[1, 2], column=None, end_column=None), END)
    assert parse_recordings({"again": render(recordings, HEADER)}) == (recordings, ())


def test_missing_and_binary_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "good").write_text(text(HEADER, site(), END))
    recordings, errors = read_recordings([tmp_path / "missing", tmp_path / "binary", tmp_path / "good"])
    assert [Path(error.path).name for error in errors] == ["missing", "binary"]
    assert len(recordings.sites) == 1
