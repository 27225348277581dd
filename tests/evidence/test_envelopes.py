"""A real failure as collectors, notebooks, web pages and notes keep it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable

import pytest

from codemod.evidence.tracebacks import read_log
from tests.evidence.real_logs import found_at, logs_of, marked
from tests.evidence.test_real_logs import ALL


def log(name: str = "called") -> str:
    return logs_of(*ALL)[name]


def sites(text: str) -> list[tuple[int, int] | str]:
    return [found_at(failure) for failure in read_log(text)]


@pytest.mark.parametrize("name", ["called", "chained", "worker"])
@pytest.mark.parametrize(
    ("key", "before", "after"), [("log", "", ""), ("textPayload", "", ""), ("message", "[", "]"), ("data", ",", "")]
)
def test_a_record_a_line_is_read(name: str, key: str, before: str, after: str) -> None:
    records = [
        {"time": f"2026-03-01T12:00:{i % 60:02d}Z", key: f"{line}\n"} for i, line in enumerate(log(name).split("\n"))
    ]
    assert sites("".join(f"{before}{json.dumps(record)}{after}\n" for record in records)) == marked(name)


def test_the_traceback_of_a_record_counts_before_its_message() -> None:
    record = {"message": "step failed", "record": {"level": "ERROR", "exception": log()}}
    assert sites(json.dumps(record)) == marked("called")


@pytest.mark.parametrize("has_text", [True, False])
def test_a_traceback_that_a_record_holds_frame_by_frame_is_read(has_text: bool) -> None:
    found = re.findall(r'File "([^"]+)", line (\d+), in (\S+)\n +(.*)', log())
    (error,) = re.findall(r"^(\w+Error): (.*)", log(), re.MULTILINE)
    written = [
        {"filename": path, "lineno": int(line), "name": name, "line": text if has_text else "", "locals": {"x": "1"}}
        for path, line, name, text in found
    ]
    structlog = {"event": "failed", "exception": [{"exc_type": error[0], "exc_value": error[1], "frames": written}]}
    assert sites(json.dumps(structlog)) == marked("called")
    sent = [
        {"filename": "x.py", "abs_path": path, "lineno": int(line), "function": name, "context_line": text}
        for path, line, name, text in found
    ]
    event = {"type": error[0], "value": error[1], "stacktrace": {"frames": [*sent, {"lineno": 3}, None]}}
    assert sites(json.dumps({"level": "error", "exception": {"values": [event]}})) == marked("called")


def test_a_record_of_another_kind_stays_a_line() -> None:
    assert sites('{"loss": 0.5, "view": [1, 2]}\n{"log": 3}\n{"a": {"log": null}}\n{"}\n[{"log": "x"}]\n') == []


def test_a_notebook_is_its_own_log() -> None:
    trace = [line for line in log().split("\n") if line]
    output = {"output_type": "error", "ename": "RuntimeError", "evalue": "", "traceback": trace}
    cell = {"cell_type": "code", "metadata": {}, "outputs": [output], "source": ["x = 1\n", "f(x)"]}
    assert sites(json.dumps({"cells": [cell], "nbformat": 4}, indent=1)) == marked("called")


def test_a_list_of_lines_is_read() -> None:
    lines = log().splitlines(keepends=True)
    assert sites(repr(lines)) == marked("called")
    assert sites(json.dumps({"exception": lines})) == marked("called")


def test_what_a_page_escapes_is_read() -> None:
    escaped = html.escape(log())
    assert sites(escaped) == marked("called")
    assert sites("<pre>" + escaped.replace("\n", "<br>\n") + "</pre>") == marked("called")
    assert sites(f'<failure message="{escaped[-90:-1]}">{escaped}</failure></testcase>') == marked("called")


def test_source_that_looks_like_a_page_stays() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/repo/src/x.py", line 3, in f\n    g("a &copy b", x < 3, "<b>")\n'
    )
    (failure,) = read_log(text + "ValueError: no </s>\n")
    assert failure.frames[-1].text == 'g("a &copy b", x < 3, "<b>")'


def test_a_table_is_read() -> None:
    doubled = [line.replace('"', '""') for line in log().splitlines()]
    assert sites("time,message\n" + "".join(f'17000000{i:02d},"{line}"\n' for i, line in enumerate(doubled))) == marked(
        "called"
    )
    whole = "\n".join(doubled)
    assert sites(f'time,message\n1700000000,"{whole}"\n') == marked("called")


def test_marks_of_a_note_go() -> None:
    lines = log().splitlines()
    assert sites("\n".join([*lines[:-1], f"**{lines[-1]}**"])) == marked("called")
    code = re.sub(r"(?m)^    (return .*)$", r"    **\1**", log())
    assert sites(code) == marked("called")


def test_quotes_of_a_word_processor_are_those_of_python() -> None:
    assert sites(log().replace("'", "’").replace('"', "”")) == marked("called")
    assert sites(log().replace("tensor's", "tensor’s")) == marked("called")


def link(number: int) -> str:
    return f"[{number}](https://file+.vscode-resource.vscode-cdn.net/home/me/src/program.py:{number})"


MESSAGE = "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans"
CELLS = f"""\
---------------------------------------------------------------------------
RuntimeError                              Traceback (most recent call last)
Cell In[5], line 1
----> [1](vscode-notebook-cell:?execution_count=5&line=1) called(x)

File [~/src/program.py:2](https://vscode-remote+ssh.vscode-cdn.net/home/me/program.py:2), in called(x)
      {link(1)} def called(x):
----> {link(2)}     return merged(x)

File ~/src/program.py:6, in merged(x)
      {link(4)} def merged(x):
      {link(5)}     y = x.transpose(1, 2)
----> {link(6)}     return y.view(2, -1)
      {link(7)} \n
{MESSAGE}
"""
PROGRAM = (
    "def called(x):\n    return merged(x)\n\ndef merged(x):\n    y = x.transpose(1, 2)\n    return y.view(2, -1)\n"
)


@pytest.mark.parametrize(
    "text",
    [
        CELLS,
        re.sub(r"\[(\d+)\]\((\S+)\)", r"<a href='\2'>\1</a>", CELLS),
        CELLS.replace(
            "Cell In[5], line 1", "[/me/x.ipynb Cell 5](vscode-notebook-cell:/me/x.ipynb#X5) in <cell line: 1>()"
        ),
        CELLS.replace("File ~/src/program.py:6, in", "[/me/src/program.py](https://localhost:8080/#) in"),
    ],
)
def test_links_of_an_editor_go(text: str) -> None:
    (failure,) = read_log(text)
    assert found_at(failure, PROGRAM) == (6, 14)


def commanded(log: str) -> str:
    return "::error title=tests::" + log.replace("%", "%25").replace("\n", "%0A") + "\n"


def barred(log: str) -> str:
    escapes = {"|": "||", "'": "|'", "[": "|[", "]": "|]", "\n": "|n"}
    details = "".join(escapes.get(character, character) for character in log)
    return f"##teamcity[testFailed name='a' message='failed' details='{details}']\n"


@pytest.mark.parametrize(
    "carried",
    [
        commanded,
        barred,
        lambda log: json.dumps([{"line": line} for line in log.splitlines()]) + "\n",
        lambda log: "".join(json.dumps({"MESSAGE": line, "_PID": "42"}) + "\n" for line in log.splitlines()),
        lambda log: json.dumps({"log": json.dumps({"msg": "failed", "stack": log}) + "\n"}) + "\n",
        lambda log: f"worker died: {log.splitlines()!r}\n",
        lambda log: html.escape(log).replace(" ", "&nbsp;").replace("\n", "<br/></p>\n"),
        lambda log: log.replace("\n", "\r\r\n"),
        lambda log: log.replace("\n", "\n\n"),
        lambda log: "".join(f"{number:6}\t{line}\n" for number, line in enumerate(log.splitlines(), 9)),
        lambda log: "".join(f"ci.log:{number}:{line}\n" for number, line in enumerate(log.splitlines(), 9)),
        lambda log: "".join(f"ci.log-{number}-{line}\n" for number, line in enumerate(log.splitlines(), 9)),
    ],
)
def test_what_carries_a_traceback_goes(carried: Callable[[str], str]) -> None:
    assert sites(carried(log("called"))) == marked("called")
    assert sites(carried(log("two_on_a_line"))) == marked("two_on_a_line")
