"""`torch-codemod verify`, through the application."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from codemod.cli.app import app

PROGRAM = (
    "import torch\n\ndef f(x):\n    return x.t().view(-1)\n\ndef example_inputs():\n    return (torch.ones(2, 3),)\n"
)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["verify", "--python", sys.executable, *arguments])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(PROGRAM)
    return tmp_path


def test_fixed_exits_0_where_the_rewrite_makes_every_rung_pass(project: Path) -> None:
    result = invoke("net.py:f", "--rungs", "eager,dynamo", "--fixed")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert [line.split()[:3] for line in lines[:4]] == [
        ["before", "eager", "failed"],
        ["before", "dynamo", "skipped"],
        ["after", "eager", "ok"],
        ["after", "dynamo", "ok"],
    ]
    assert lines[4:8] == [
        "net.py: rewritten in a copy",
        "before: first rung that fails: eager (failed)",
        "    forward: RuntimeError",
        "    view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead.",
    ]
    assert lines[8].endswith("net.py:4: in f")
    assert lines[9:] == ["        return x.t().view(-1)", "after: 2 rungs pass"]


def test_fixed_says_where_there_is_nothing_to_rewrite(project: Path) -> None:
    (project / "net.py").write_text(PROGRAM.replace("view", "reshape"))
    result = invoke("net.py:f", "--rungs", "eager", "--fixed")
    assert result.exit_code == 0, result.output
    row, *rest = result.stdout.splitlines()
    assert row.split()[:3] == ["before", "eager", "ok"]
    assert rest == [
        "nothing to rewrite, so there is no after; `torch-codemod run` tells what it keeps, and why",
        "before: 1 rung passes",
    ]


CONVOLVED = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        y = self.conv(x)
        return torch.matrix_exp(y)

def train():
    return torch.compile(Net())
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
def test_fixed_cures_a_known_issue_that_only_inductor_shows(project: Path) -> None:
    (project / "net.py").write_text(CONVOLVED)
    result = invoke("net.py:Net", "--inputs", "torch.randn(2, 3, 8, 8)", "--rungs", "eager,inductor", "--fixed")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    statuses = [(*line.split()[:3],) for line in lines[:4]]
    assert statuses == [
        ("before", "eager", "ok"),
        ("before", "inductor", "failed"),
        ("after", "eager", "ok"),
        ("after", "inductor", "ok"),
    ]
    assert lines[4:7] == [
        "net.py: rewritten in a copy",
        "before: first rung that fails: inductor (failed)",
        "    forward: RuntimeError in linalg_matrix_exp",
    ]
    assert "net.py:10: in forward" in result.stdout
    assert "known issue, pytorch #188222" in result.stdout
    assert lines[-1] == "after: 2 rungs pass"
    assert (project / "net.py").read_text() == CONVOLVED


def test_a_failing_rung_exits_1_and_json_tells_all_of_it(project: Path) -> None:
    (project / "net.py").write_text(PROGRAM.replace("x.t().view(-1)", "x + torch.compiler.is_compiling()"))
    result = invoke("net.py:f", "--rungs", "dynamo,eager", "--format", "json")
    assert result.exit_code == 1, result.output
    document = json.loads(result.stdout)
    (ladder,) = document.pop("ladders")
    assert document == {"version": 1, "target": "net.py:f", "changed": [], "exit_code": 1}
    assert [rung.pop("seconds") >= 0 for rung in ladder["rungs"]] == [True, True]
    empty = {"failure": None, "difference": None, "why": None, "known_issue": None}
    difference = {"where": "output at [0, 0]", "what": "2.0 for 1.0", "largest": 1.0, "allowed": pytest.approx(1.1e-4)}
    assert ladder == {
        "title": "",
        "rungs": [
            {"name": "eager", "status": "ok", **empty},
            {"name": "dynamo", "status": "differs", **empty, "difference": difference},
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["net.py"], "name what to run in it, as in `net.py:Model`"),
        (["none.py:f"], "none.py: no such file"),
        (["net.py:f", "--rungs", "eagre"], "--rungs: no rung `eagre`"),
        (["net.py:f", "--fixed", "--against", "HEAD"], "choose one"),
        (["net.py:f", "--sites", "all"], "give --fixed as well"),
        (["net.py:f", "--python", "no-such-python"], "--python no-such-python: no such interpreter; check the path"),
        (["net.py:g"], "net.py: no `g` in it; it has `f`, `example_inputs`"),
    ],
)
def test_wrong_usage_exits_2_and_says_what_to_do(project: Path, arguments: list[str], why: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert why in result.stderr


def test_the_active_environment_is_the_default_and_one_without_torch_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "bare"], cwd=project, check=True)
    monkeypatch.setenv("VIRTUAL_ENV", str(project / "bare"))
    result = CliRunner().invoke(app, ["verify", "net.py:f"])
    bare = project / "bare" / "bin" / "python"
    why = f"torch-codemod: {bare}: has no torch; name the interpreter of your environment with --python\n"
    assert (result.exit_code, result.output) == (2, why)


def test_rules_lists_the_known_issues_with_the_installed_torch() -> None:
    listed = CliRunner().invoke(app, ["rules"]).stdout
    assert "Known issues of torch itself (" in listed
    assert "matrix-exp-channels-last   present " in listed
    told = CliRunner().invoke(app, ["rules", "matrix-exp-channels-last"]).stdout
    assert "pytorch #188222" in told
    assert "https://github.com/pytorch/pytorch/issues/188222" in told
