"""`run --log` and `run --evidence`: what was seen to fail decides the site."""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner, Result

from codemod.cli.app import app
from codemod.evidence.recorded import VERSION

REFUSED = (
    "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans "
    "across two contiguous subspaces). Use .reshape(...) instead."
)


def invoke(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["run", "--no-cache", *arguments], input=stdin)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(project: Path, body: str, name: str = "net.py") -> Path:
    path = project / name
    path.write_text(f"import torch\n\n\n{body}")
    return path


def traceback(path: Path, marked: str, message: str = REFUSED) -> str:
    """As Python 3.11 prints it for the first line of the file that holds `marked`; the carets mark that."""
    lines = path.read_text().splitlines()
    number = next(i for i, line in enumerate(lines) if marked in line)
    text = lines[number].strip()
    carets = " " * text.index(marked) + "^" * len(marked)
    where = f'  File "/home/me/{path.name}", line {number + 1}, in f\n    {text}\n    {carets}\n'
    return f"Traceback (most recent call last):\n{where}{message}\n"


def sites(*arguments: str) -> dict[int, dict[str, object]]:
    """By line: those of the JSON report that are not kept."""
    result = invoke("--format", "json", *arguments)
    return {site["line"]: site for site in json.loads(result.stdout)["sites"] if site["action"] != "keep"}


def log_of(project: Path, text: str) -> str:
    (project / "ci.log").write_text(text)
    return "--log=ci.log"


ROWS = "def f(x):\n    return x.view(-1)\n"


def test_a_log_turns_what_a_caller_may_bring_into_a_failure(project: Path) -> None:
    path = put(project, ROWS)
    assert sites("net.py") == {}
    log = log_of(project, traceback(path, "x.view(-1)"))
    (site,) = sites("net.py", log).values()
    assert (site["action"], site["verdict"], site["replacement"]) == ("rewrite", "failing", "x.reshape(-1)")
    assert "ci.log: view size is not compatible" in str(site["reasons"])


def test_only_the_call_that_failed_is_rewritten_and_a_second_run_changes_nothing(project: Path) -> None:
    path = put(project, "def f(x, y):\n    y = y.view(-1)\n    return x.view(-1) + y\n")
    log = log_of(project, traceback(path, "x.view(-1)"))
    assert invoke("net.py", log, "--in-place").exit_code == 0
    assert path.read_text() == "import torch\n\n\ndef f(x, y):\n    y = y.view(-1)\n    return x.reshape(-1) + y\n"
    assert invoke("net.py", log, "--check").exit_code == 0


def test_what_is_written_through_stays(project: Path) -> None:
    path = put(project, "def f(x):\n    y = x.view(-1)\n    y[0] = 1\n    return x\n")
    (site,) = sites("net.py", log_of(project, traceback(path, "x.view(-1)"))).values()
    assert (site["action"], site["verdict"]) == ("report", "written-through")


def test_a_view_that_may_get_a_dtype_is_only_reported(project: Path) -> None:
    path = put(project, "def f(x, kind):\n    return x.view(kind)\n")
    (site,) = sites("net.py", log_of(project, traceback(path, "x.view(kind)"))).values()
    assert (site["action"], site["verdict"]) == ("report", "failing")


def test_a_log_against_the_source_is_told_and_not_followed(project: Path) -> None:
    path = put(project, "def f(x):\n    return x.contiguous().view(-1)\n")
    (site,) = sites("net.py", log_of(project, traceback(path, "x.contiguous().view(-1)"))).values()
    assert site["action"] == "report"
    assert "the file has changed since, or torch-codemod is wrong" in str(site["reasons"])


def test_a_refusal_that_is_caught_stays(project: Path) -> None:
    path = put(
        project, "def f(x):\n    try:\n        return x.view(-1)\n    except RuntimeError:\n        return None\n"
    )
    (site,) = sites("net.py", log_of(project, traceback(path, "x.view(-1)"))).values()
    assert site["action"] == "report"


def test_a_comment_suppresses_what_a_log_shows(project: Path) -> None:
    path = put(project, "def f(x):\n    return x.view(-1)  # torch-codemod: ignore[view-to-reshape] rare\n")
    assert sites("net.py", log_of(project, traceback(path, "x.view(-1)"))) == {}


INVALID = "RuntimeError: shape '[{}]' is invalid for input of size {}"


@pytest.mark.parametrize(
    ("body", "marked", "message", "action", "replacement"),
    [
        ("x.view(32, 10)", "x.view(32, 10)", INVALID.format("32, 10", 160), "rewrite", "x.view(-1, 10)"),
        ("x.view(32, 10)", "x.view(32, 10)", INVALID.format("32, 10", 640), "report", None),
        ("x.view(32, 10)", "x.view(32, 10)", INVALID.format("32, 10", 165), "report", None),
        ("x.view(x.shape[0], 10)", "x.view(x.shape[0], 10)", INVALID.format("3, 10", 60), "report", None),
        ("x.reshape(32, 10)", "x.reshape(32, 10)", INVALID.format("32, 10", 160), "rewrite", "x.reshape(-1, 10)"),
        ("torch.reshape(x, (4, 5))", "torch.reshape(x, (4, 5))", INVALID.format("4, 5", 10), "report", None),
    ],
)
def test_sizes_in_a_message_tell_a_batch_from_a_wrong_size(
    project: Path, body: str, marked: str, message: str, action: str, replacement: str | None
) -> None:
    path = put(project, f"def f(x):\n    return {body}\n")
    (site,) = sites("net.py", log_of(project, traceback(path, marked, message))).values()
    assert (site["action"], site["replacement"]) == (action, replacement)


@pytest.mark.parametrize(
    ("body", "asked", "elements", "replacement"),
    [
        ("x.view(3, -1)", "3, -1", 20, None),
        ("x.view(batch, -1)", "4, -1", 18, "x.view(x.shape[0], -1)"),
        ("self.conv(x).view(32, -1)", "32, -1", 1350, "self.conv(x).view(x.shape[0], -1)"),
        ("x.view(batch, -1, 1, *x.shape[1:])", "4, -1, 1, 2, 3", 36, None),
    ],
    ids=["numbers a point", "by its name", "images", "groups of the batch"],
)
def test_beside_a_minus_one_only_what_is_a_batch_becomes_the_shape(
    project: Path, body: str, asked: str, elements: int, replacement: str | None
) -> None:
    init = "    def __init__(self):\n        super().__init__()\n        self.conv = torch.nn.Conv2d(1, 3, 3)\n\n"
    path = put(project, f"class Net(torch.nn.Module):\n{init}    def f(self, x, batch=4):\n        return {body}\n")
    log = log_of(project, traceback(path, body, INVALID.format(asked, elements)))
    (site,) = sites("net.py", log).values()
    assert (site["action"], site["replacement"]) == ("rewrite" if replacement else "report", replacement)


def test_a_number_that_grouped_a_recorded_call_is_no_batch(project: Path) -> None:
    path = put(project, "def f(x, batch=4):\n    return x.view(batch, -1)\n")
    grouped = {"sizes": [8, 3], "strides": [3, 1], "target": [4, 6], "outcome": "view"}
    invalid = [{"target": [4, -1], "elements": 18}]
    call = recorded(path, "x.view(batch, -1)", invalid=invalid, examples=[grouped])
    (site,) = sites("net.py", evidence_of(project, call)).values()
    assert site["action"] == "report"


def test_a_dim_behind_the_tensors_own_is_the_one_that_differs(project: Path) -> None:
    path = put(
        project,
        "class Attn:\n    def __init__(self, heads, dim):\n        self.heads, self.dim = heads, dim\n\n"
        "    def f(self, q):\n        b, t, _ = q.shape\n        return q.view(b, t, self.heads, self.dim)\n",
    )
    marked = "q.view(b, t, self.heads, self.dim)"
    log = log_of(project, traceback(path, marked, INVALID.format("2, 4, 8, 4", 64)))
    (site,) = sites("net.py", log).values()
    assert site["replacement"] == "q.view(b, t, -1, self.dim)"


TOO_LARGE = "RuntimeError: CUDA error: invalid configuration argument"


def test_a_batch_beyond_the_grid_goes_in_parts(project: Path) -> None:
    path = put(project, "def f(x, y):\n    return torch.bmm(x, y)\n")
    (site,) = sites("net.py", log_of(project, traceback(path, "torch.bmm(x, y)", TOO_LARGE))).values()
    assert (site["action"], site["replacement"]) == ("rewrite", "chunked_bmm(x, y)")


def test_out_of_memory_is_no_reason_to_chunk(project: Path) -> None:
    path = put(project, "def f(x, y):\n    return torch.bmm(x, y)\n")
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB."
    assert sites("net.py", log_of(project, traceback(path, "torch.bmm(x, y)", message))) == {}


def test_a_call_that_no_transform_knows_is_told(project: Path) -> None:
    path = put(project, "def f(x):\n    return torch.view_as_complex(x)\n")
    message = "RuntimeError: Tensor must have a last dimension with stride 1"
    (site,) = sites("net.py", log_of(project, traceback(path, "torch.view_as_complex(x)", message))).values()
    assert (site["action"], site["transform"]) == ("report", "view-to-reshape")


def test_what_is_about_no_call_of_the_files_is_told_on_stderr(project: Path) -> None:
    path = put(project, ROWS)
    elsewhere = traceback(path, "x.view(-1)").replace("net.py", "other.py")
    result = invoke("net.py", log_of(project, elsewhere))
    assert result.exit_code == 0
    assert "/home/me/other.py is none of the given files" in result.stderr
    result = invoke("net.py", log_of(project, "all is well\n"))
    assert "ci.log: no failure of a view, a shape or a bmm in it" in result.stderr


def test_a_line_that_is_gone_is_told_on_stderr(project: Path) -> None:
    log = log_of(project, traceback(put(project, ROWS), "x.view(-1)"))
    put(project, "def g(z):\n    return z.view(-1)\n")
    result = invoke("net.py", log)
    assert "net.py: ci.log: view size" in result.stderr
    assert "the file has changed" in result.stderr


def test_a_log_comes_on_stdin_and_the_program_too_but_not_both(project: Path) -> None:
    log = traceback(put(project, ROWS), "x.view(-1)").encode()
    assert "x.reshape(-1)" in invoke("net.py", "--log", "-", stdin=log).stdout
    assert invoke("-", "--log", "-", stdin=log).exit_code == 2
    (project / "ci.log").write_bytes(log)
    program = (project / "net.py").read_bytes()
    assert "x.reshape(-1)" in invoke("-", "--stdin-filename", "net.py", "--log", "ci.log", stdin=program).stdout


def test_a_log_that_cannot_be_read_ends_the_run(project: Path) -> None:
    put(project, ROWS)
    result = invoke("net.py", "--log", "none.log")
    assert result.exit_code == 2
    assert "--log none.log: cannot be read (No such file or directory); check the path" in result.stderr


def test_the_cache_tells_logs_apart(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "cache"))
    log = log_of(project, traceback(put(project, ROWS), "x.view(-1)"))
    runs = [CliRunner().invoke(app, ["run", "net.py", *given]).stdout for given in ([], [log], [], [log])]
    assert runs[:2] == runs[2:]
    assert "x.reshape(-1)" in runs[1] and "x.reshape(-1)" not in runs[0]


def test_a_cell_of_a_notebook_is_found(project: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"import torch\n\n{ROWS}")])
    nbformat.write(notebook, project / "work.ipynb")
    where = "Cell In[7], line 4, in f(x)\n      3 def f(x):\n----> 4     return x.view(-1)\n"
    text = (
        f"{'-' * 75}\nRuntimeError                              Traceback (most recent call last)\n{where}\n{REFUSED}\n"
    )
    (site,) = sites("work.ipynb", log_of(project, text)).values()
    assert site["replacement"] == "x.reshape(-1)"


def recorded(path: Path, marked: str, **given: object) -> dict[str, object]:
    """A line of an evidence file about the call `marked`."""
    text = path.read_text()
    line = text[: text.index(marked)].count("\n") + 1
    column = text.splitlines()[line - 1].index(marked) + 1
    counts = {"calls": 2, "refused": 0, "would_be_refused": 0, "dtype": 0, "written": 0}
    lists: dict[str, object] = {"invalid": [], "sizes": [], "examples": [], "batch": None}
    place = {"line": line, "end_line": line, "column": column, "end_column": column + len(marked)}
    hashed = sha256(path.read_bytes()).hexdigest()
    return {"path": str(path.resolve()), "hash": hashed, **place, "operation": "view", **counts, **lists, **given}


def evidence_of(project: Path, *entries: dict[str, object]) -> str:
    lines = [{"torch-codemod-evidence": VERSION}, *entries, {"end": "merged", "errors": 0}]
    (project / "seen.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return "--evidence=seen.jsonl"


REFUSAL = {"sizes": [2, 3], "strides": [1, 2], "target": [-1], "outcome": "refused"}


def test_a_recorded_refusal_is_a_failure(project: Path) -> None:
    path = put(project, ROWS)
    evidence = evidence_of(project, recorded(path, "x.view(-1)", refused=1, examples=[REFUSAL]))
    (site,) = sites("net.py", evidence).values()
    assert site["replacement"] == "x.reshape(-1)"
    assert "refused in 1 of 2 calls, with sizes (2, 3) and strides (1, 2)" in str(site["reasons"])


def test_no_refusal_in_a_run_proves_nothing(project: Path) -> None:
    path = put(project, "def f(x):\n    return x.t().view(-1)\n")
    accepted = {"sizes": [2, 1], "strides": [1, 2], "target": [2], "outcome": "view"}
    evidence = evidence_of(project, recorded(path, "x.t().view(-1)", examples=[accepted]))
    assert [site["verdict"] for site in sites("net.py", evidence).values()] == ["failing"]


def test_a_recording_of_another_version_of_the_file_is_left_out(project: Path) -> None:
    path = put(project, ROWS)
    evidence = evidence_of(project, recorded(path, "x.view(-1)", refused=1, examples=[REFUSAL]))
    path.write_text(path.read_text() + "\n")
    assert sites("net.py", evidence) == {}
    assert "1 recorded call is of another version of this file" in invoke("net.py", evidence).stderr


def test_a_recording_from_another_folder_or_machine_counts_where_the_file_is_the_same(project: Path) -> None:
    path = put(project, ROWS)
    here = recorded(path, "x.view(-1)", refused=1, examples=[REFUSAL])
    for elsewhere in ("/workspace/app/net.py", "C:\\work\\net.py"):
        assert len(sites(".", evidence_of(project, here | {"path": elsewhere}))) == 1
    assert sites(".", evidence_of(project, here | {"path": "/app/other.py"})) == {}
    (project / "lib").mkdir()
    (project / "lib" / "net.py").write_bytes(path.read_bytes())
    report = json.loads(
        invoke(".", "--format", "json", evidence_of(project, here | {"path": "/app/lib/net.py"})).stdout
    )
    assert [site["path"] for site in report["sites"] if site["action"] == "rewrite"] == ["lib/net.py"]


def test_evidence_about_none_of_the_files_is_told(project: Path) -> None:
    path = put(project, ROWS)
    evidence = evidence_of(
        project, recorded(path, "x.view(-1)", refused=1, examples=[REFUSAL]) | {"path": "/app/net.py"}
    )
    path.write_text(path.read_text() + "\n")
    assert "recorded calls of /app/net.py: none of the given files" in invoke("net.py", evidence).stderr
    assert "no call is recorded in it" in invoke("net.py", evidence_of(project)).stderr
    (project / "seen.jsonl").write_text("")
    assert "no call is recorded in it" in invoke("net.py", evidence).stderr


def test_what_is_no_evidence_is_named_as_such(project: Path) -> None:
    put(project, ROWS)
    (project / "seen.jsonl").write_text("Traceback\n")
    assert 'seen.jsonl:1: not an evidence file (no "torch-codemod-evidence"' in invoke("--evidence=seen.jsonl").stderr
    (project / "seen.jsonl").write_bytes(b"\xff\xfe\x00")
    assert "seen.jsonl: not an evidence file" in invoke("--evidence=seen.jsonl").stderr


def test_a_mark_before_an_evidence_file_is_no_matter(project: Path) -> None:
    path = put(project, ROWS)
    evidence = evidence_of(project, recorded(path, "x.view(-1)", refused=1, examples=[REFUSAL]))
    (project / "seen.jsonl").write_bytes(b"\xef\xbb\xbf" + (project / "seen.jsonl").read_bytes())
    assert len(sites("net.py", evidence)) == 1


def test_a_recording_against_the_source_is_our_fault_and_followed(project: Path) -> None:
    path = put(project, "def f(x):\n    return x.contiguous().view(-1)\n")
    evidence = evidence_of(project, recorded(path, "x.contiguous().view(-1)", refused=1, examples=[REFUSAL]))
    (site,) = sites("net.py", evidence).values()
    assert site["action"] == "rewrite"
    assert "a fault of torch-codemod, please report it" in str(site["reasons"])


def test_recorded_sizes_tell_a_batch_from_a_wrong_size(project: Path) -> None:
    path = put(project, "def f(x):\n    return x.view(32, 10)\n")
    accepted = {"sizes": [32, 10], "strides": [10, 1], "target": [32, 10], "outcome": "view"}
    smaller = {"sizes": [16, 10], "strides": [10, 1], "target": [32, 10], "outcome": "invalid"}
    invalid = [{"target": [32, 10], "elements": 160}]
    call = recorded(path, "x.view(32, 10)", invalid=invalid, examples=[accepted, smaller])
    (site,) = sites("net.py", evidence_of(project, call)).values()
    assert (site["action"], site["replacement"]) == ("rewrite", "x.view(-1, 10)")
    for examples in ([smaller], [accepted, smaller | {"sizes": [5, 32]}]):
        call = recorded(path, "x.view(32, 10)", invalid=invalid, examples=examples)
        (site,) = sites("net.py", evidence_of(project, call)).values()
        assert (site["action"], site["verdict"]) == ("report", "wrong-size")


def test_a_minus_one_that_regroups_in_one_recorded_call_is_reported(project: Path) -> None:
    path = put(project, "def f(x):\n    return x.view(-1, 4 * 5 * 5)\n")
    kept = {"sizes": [2, 4, 5, 5], "strides": [100, 25, 5, 1], "target": [2, 100], "outcome": "view"}
    other = {"sizes": [2, 4, 10, 10], "strides": [400, 100, 10, 1], "target": [8, 100], "outcome": "view"}
    folded = {"sizes": [3, 2, 10, 10], "strides": [200, 100, 10, 1], "target": [6, 100], "outcome": "view"}
    marked = "x.view(-1, 4 * 5 * 5)"
    (site,) = sites("net.py", evidence_of(project, recorded(path, marked, examples=[kept, other]))).values()
    assert (site["action"], site["verdict"]) == ("report", "wrong-size")
    assert sites("net.py", evidence_of(project, recorded(path, marked, examples=[other, folded]))) == {}


def test_a_recorded_batch_beyond_the_grid_goes_in_parts(project: Path) -> None:
    path = put(project, "def f(x, y):\n    return torch.bmm(x, y)\n")
    for largest, count in ((65_535, 0), (65_536, 1)):
        call = recorded(path, "torch.bmm(x, y)", operation="bmm", batch=[1, largest])
        assert len(sites("net.py", evidence_of(project, call))) == count


@pytest.mark.parametrize(
    ("batch", "largest", "action"),
    [
        ("a", 4_096, "rewrite"),
        ("a", 65_535, "rewrite"),
        ("a", 65_536, "report"),
        ("torch.cat([a, a])", 65_536, "rewrite"),
    ],
)
def test_a_recorded_batch_is_not_refused_by_the_bound_of_a_dim(
    project: Path, batch: str, largest: int, action: str
) -> None:
    call = f"torch.bmm({batch}, b)"
    text = (
        "from torch import nn\nfrom torch.export import Dim, export\n\n\n"
        f"class Net(nn.Module):\n    def forward(self, a, b):\n        return {call}\n\n\n"
        'n = Dim("n")\nexport(Net(), (1, 2), dynamic_shapes={"a": {0: n}, "b": None})\n'
    )
    path = put(project, text)
    seen = recorded(path, call, operation="bmm", batch=[1, largest])
    (site,) = (s for s in sites("net.py", evidence_of(project, seen)).values() if s["transform"] == "bound-dim")
    assert site["action"] == action
    told = [reason["text"] for reason in site["reasons"]]
    assert (f"recorded: a batch of at most {largest:,}" in told) is (batch == "a")


def test_a_broken_evidence_file_is_named_and_the_rest_goes_on(project: Path) -> None:
    path = put(project, "def f(x):\n    return x.t().view(-1)\n")
    (project / "seen.jsonl").write_text("not json\n")
    result = invoke("net.py", "--evidence", "seen.jsonl", "--in-place")
    assert result.exit_code == 2
    assert "seen.jsonl:1: " in result.stderr
    assert "reshape" in path.read_text()


def test_what_a_real_run_met_is_followed(project: Path) -> None:
    path = put(project, "def f(x):\n    return x.view(-1)\n\n\nf(torch.ones(2, 3))\nf(torch.ones(2, 3).t())\n")
    traced = CliRunner().invoke(app, ["trace", "--output", "seen.jsonl", "--python", sys.executable, "--", "net.py"])
    assert traced.exit_code == 1
    assert invoke("net.py", "--evidence", "seen.jsonl", "--in-place").exit_code == 0
    assert "return x.reshape(-1)" in path.read_text()


def explain(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["log", *arguments], input=stdin)


def test_log_explains_and_changes_nothing(project: Path) -> None:
    path = put(project, "def f(x):\n    return x.view(-1)\n\n\ndef g(y):\n    return y.view(-1)\n")
    text = path.read_text()
    result = explain("-", stdin=traceback(path, "x.view(-1)").encode())
    assert result.exit_code == 0
    assert "stdin: view size is not compatible" in result.stdout
    assert "net.py:5:14: failing" in result.stdout
    assert "+ x.reshape(-1)" in result.stdout
    assert "refused for the same kind of input: net.py:9:14; see `--sites risky`" in result.stdout
    assert path.read_text() == text


def test_log_explains_what_is_no_call_of_the_users_and_names_the_known_issue(project: Path) -> None:
    put(project, ROWS)
    generated = (
        '  File "/tmp/torchinductor_me/ab/cab.py", line 98, in call\n'
        "    buf2 = torch.ops.aten.linalg_matrix_exp.default(buf1)\n"
    )
    (project / "ci.log").write_text(f"Traceback (most recent call last):\n{generated}{REFUSED}\n")
    result = explain("ci.log", "net.py")
    assert "no call of your files is the one that failed" in result.stdout
    assert "pytorch #188222" in result.stdout
    assert "flatten(0, -3)" in result.stdout


def test_log_tells_each_failure_once_and_every_one(project: Path) -> None:
    path = put(project, "def f(x, y):\n    x = x.view(-1)\n    return x, y.view(32, 10)\n")
    first, second = traceback(path, "x.view(-1)"), traceback(path, "y.view(32, 10)", INVALID.format("32, 10", 640))
    (project / "ci.log").write_text(first + first + second)
    result = explain("ci.log")
    assert result.stdout.count("+ x.reshape(-1)") == 1
    assert result.stdout.count("wrong-size: ") == 1


def test_log_of_an_export_shows_the_size_that_the_source_tells(project: Path) -> None:
    body = "    def forward(self, x):\n        h = x.view(8, 12)\n        return h.view(8, 3, 4)\n"
    net = f"class Net(torch.nn.Module):\n{body}"
    sample = "(torch.rand(8, 3, 4),)"
    export = f'n = torch.export.Dim("n", max=64)\ntorch.export.export(Net(), {sample}, dynamic_shapes=({{0: n}},))\n'
    path = put(project, f"{net}\n\n{export}")
    violated = "torch._dynamo.exc.UserError: Constraints violated (n)! For more information, run with TORCH_LOGS"
    told = "  - You marked n as dynamic but your code specialized it to be a constant (8)."
    (project / "ci.log").write_text(traceback(path, "torch.export.export(", f"{violated}\n{told}"))
    output = explain("ci.log").stdout
    assert "ci.log: You marked n as dynamic but your code specialized it to be a constant (8)" in output
    assert "+ x.view(-1, 12)" in output


def test_log_says_where_there_is_nothing(project: Path) -> None:
    put(project, ROWS)
    (project / "ci.log").write_text("42 passed\n")
    result = explain("ci.log")
    assert (result.exit_code, result.stdout) == (0, "ci.log: no failure of a view, a shape or a bmm in it\n")


def test_a_run_lists_what_may_fail_next_and_risky_rewrites_it(project: Path) -> None:
    path = put(project, "def f(x):\n    return x.view(-1)\n\n\ndef g(y):\n    return y.view(-1)\n")
    put(project, "def h(z):\n    return z.view(-1)\n", "other.py")
    log = log_of(project, traceback(path, "x.view(-1)"))
    assert "input: net.py:9:14, 1 in other files; see `--sites risky`" in invoke(".", log).stdout
    assert len(sites(".", log, "--sites", "risky")) == 2
    refused = evidence_of(project, recorded(path, "x.view(-1)", refused=1, examples=[REFUSAL]))
    assert "input: net.py:9:14, 1 in other files; see `--sites risky`" in invoke(".", refused).stdout


def test_a_run_that_went_well_lists_nothing_that_may_fail(project: Path) -> None:
    path = put(project, "def f(x):\n    return x.view(-1)\n\n\ndef g(y):\n    return y.view(-1)\n")
    evidence = evidence_of(project, recorded(path, "x.view(-1)"))
    assert "Nothing to rewrite: 2 kept" in invoke(".", evidence).stdout
    assert "input:" not in invoke(".", evidence).stdout
