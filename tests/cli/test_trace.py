"""`torch-codemod trace`, through the console script's application and as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from codemod.cli.app import app
from codemod.evidence.recorded import read_recordings
from codemod.guest_process import find_interpreter

PROGRAM = """\
import sys
import torch

try:
    torch.ones(2, 3).t().view(-1)
except RuntimeError:
    print(sys.argv[1:], sys.stdin.read())
sys.exit(7)
"""


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["trace", *arguments])


def trace(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    given = [sys.executable, "-m", "codemod", "trace", "--python", sys.executable, *arguments]
    return subprocess.run(given, cwd=folder, input=stdin, capture_output=True, text=True, timeout=120)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def test_a_program_keeps_its_exit_code_arguments_and_streams(project: Path) -> None:
    ended = trace(project, "--output", "seen.jsonl", "--", "program.py", "--output", "x", stdin="given")
    assert (ended.returncode, ended.stdout) == (7, "['--output', 'x'] given\n")
    assert ended.stderr == "torch-codemod: 1 site recorded, 1 refused; written to seen.jsonl\n"
    recordings, errors = read_recordings([project / "seen.jsonl"])
    assert errors == ()
    (site,) = recordings.sites
    assert (site.path, site.line, site.operation) == (str((project / "program.py").resolve()), 5, "view")
    assert site in recordings.of("program.py", site.hash)


def test_the_evidence_file_has_this_form(project: Path) -> None:
    trace(project, "--", "program.py")
    header, site, end = [json.loads(line) for line in (project / "evidence.jsonl").read_text().splitlines()]
    assert header["torch-codemod-evidence"] == 1
    assert set(header) == {"torch-codemod-evidence", "torch", "python"}
    assert end == {"end": "merged", "errors": 0, "unfinished": 0}
    if sys.version_info >= (3, 11):
        assert (site.pop("column"), site.pop("end_column"), site.pop("end_line")) == (5, 34, 5)
    assert len(site.pop("hash")) == 64
    assert site == {
        "path": str((project / "program.py").resolve()),
        "line": 5,
        "operation": "view",
        "calls": 1,
        "traced": 0,
        "refused": 1,
        "would_be_refused": 0,
        "dtype": 0,
        "written": 0,
        "invalid": [],
        "sizes": [[3], [2]],
        "examples": [{"sizes": [3, 2], "strides": [1, 3], "target": [-1], "outcome": "refused"}],
        "batch": None,
    }


def test_a_command_of_the_environment_is_run_as_by_its_first_line(project: Path) -> None:
    bin_ = project / "bin"
    bin_.mkdir()
    (bin_ / "fit").write_text(f"#!{sys.executable}\nimport os\n{PROGRAM}")
    (bin_ / "fit").chmod(0o755)
    given = [sys.executable, "-m", "codemod", "trace", "--python", sys.executable, "--", "fit", "x"]
    environment = {**os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}
    ended = subprocess.run(given, cwd=project, input="given", capture_output=True, text=True, env=environment)
    assert (ended.returncode, ended.stdout) == (7, "['x'] given\n")
    assert "1 site recorded, 1 refused" in ended.stderr


def test_the_interpreter_may_stand_in_front(project: Path) -> None:
    given = [sys.executable, "-m", "codemod", "trace", "--", sys.executable, "program.py", "x"]
    ended = subprocess.run(given, cwd=project, input="given", capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (7, "['x'] given\n")
    assert "1 site recorded, 1 refused" in ended.stderr


def test_the_options_of_an_interpreter_in_front_are_its_own(project: Path) -> None:
    (project / "program.py").write_text("import sys\nprint(sys.flags.optimize, sys.flags.dev_mode, sys.argv)\n")
    for program in (["program.py", "x"], ["-m", "program", "x"]):
        given = [sys.executable, "-m", "codemod", "trace", "--", sys.executable, "-OO", "-X", "dev", *program]
        ended = subprocess.run(given, cwd=project, capture_output=True, text=True)
        assert (ended.returncode, ended.stdout[:7], ended.stdout[-7:]) == (0, "2 True ", ", 'x']\n")


def test_a_program_that_kills_itself_ends_as_in_a_shell(project: Path) -> None:
    (project / "program.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    ended = trace(project, "--", "program.py")
    assert ended.returncode == 137
    assert "nothing recorded" in ended.stderr
    assert not (project / "evidence.jsonl").exists()


RANKS = """\
import torch
import torch.distributed as dist
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(12, 2)

    def forward(self, x):
        rows = x.view(x.shape[0], -1)
        return self.fc(rows + x.mT.view(x.shape[0], -1))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    nn.parallel.DistributedDataParallel(Net())(torch.rand(3 + dist.get_rank(), 3, 4))
"""


def test_ranks_of_torchrun_are_recorded_and_their_log_names_the_call(project: Path) -> None:
    (project / "train.py").write_text(RANKS)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ended = trace(project, "--", *launcher, "train.py")
    assert ended.returncode == 1
    recordings, _ = read_recordings([project / "evidence.jsonl"])
    passed, refused = recordings.sites
    assert (passed.line, passed.calls, passed.sizes[0], refused.calls, refused.refused) == (12, 2, (3, 4), 2, 2)
    (project / "ranks.log").write_text(ended.stderr)
    for evidence in ("--log=ranks.log", "--evidence=evidence.jsonl"):
        given = ["run", "--no-cache", "--format", "json", "--select", "view-to-reshape", evidence, "train.py"]
        sites = json.loads(CliRunner().invoke(app, given).stdout)["sites"]
        assert [site["verdict"] for site in sites] == ["layout-dependent", "failing"]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_reaches_the_program(project: Path, name: str) -> None:
    (project / "program.py").write_text(
        "import signal, sys, time\n"
        f"signal.signal(signal.{name}, lambda *_: sys.exit(5))\n"
        "print('ready', flush=True)\ntime.sleep(60)\n"
    )
    given = [sys.executable, "-m", "codemod", "trace", "--python", sys.executable, "--", "program.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(given, cwd=project, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, getattr(signal, name))
        assert process.wait(20) == 5


def test_ctrl_c_at_a_terminal_reaches_a_program_once_though_its_stdin_is_a_pipe(project: Path) -> None:
    (project / "program.py").write_text(
        "import signal, sys, time\nseen = []\nsignal.signal(signal.SIGINT, lambda *_: seen.append(1))\n"
        "print('ready', flush=True)\nwhile not seen: time.sleep(0.01)\ntime.sleep(1)\nsys.exit(len(seen))\n"
    )
    given = [sys.executable, "-m", "codemod", "trace", "--python", sys.executable, "--", "program.py"]
    master, terminal = os.openpty()
    # a session whose terminal is this one
    script = "import fcntl, os, sys, termios; fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)\n"
    script += "os.execv(sys.argv[2], sys.argv[2:])"
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", script, str(terminal), *given],
        cwd=project,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
        pass_fds=[terminal],
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.write(master, b"\x03")
        assert process.wait(20) == 1
    os.close(master)
    os.close(terminal)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a full device")
def test_evidence_that_cannot_be_written_leaves_the_exit_code(project: Path) -> None:
    given = [sys.executable, "-m", "codemod", "trace", "--output", "/dev/full", "--", sys.executable, "program.py"]
    ended = subprocess.run(given, cwd=project, input="given", capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (7, "[] given\n")
    why = "--output /dev/full: cannot be written (No space left on device); record anew"
    assert ended.stderr.endswith(f"torch-codemod: {why}\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "nothing to run; end with `-- script.py` or `-- -m module`"),
        (["--", "-m"], "nothing to run; end with `-- script.py` or `-- -m module`"),
        (["--", "missing.py"], "missing.py: no such script; check the path"),
        (["--", "python"], "nothing to run; end with `-- script.py` or `-- -m module`"),
        (
            ["--", "no-command", "x"],
            "no-command: neither a script nor a command written in Python; try `-- -m no-command`",
        ),
        (["--", "sh", "x.sh"], "sh: neither a script nor a command written in Python; try `-- -m sh`"),
        (["--", "python", "-u"], "nothing to run; end with `-- script.py` or `-- -m module`"),
        (["--", "python", "-sE", "x.py"], "-sE: with it Python does not load the recorder; leave it out"),
        (["--", "python", "-c", "1"], "-c: neither a script nor -m; begin with one of them after `--`"),
        (["--", "-c", "1"], "-c: neither a script nor -m; begin with one of them after `--`"),
        (["--output", ".", "--", "program.py"], "--output .: is a folder; check the path"),
        (["--output", "no/x", "--", "program.py"], "--output no/x: its folder does not exist; check the path"),
        (["--python", "no-python", "--", "program.py"], "--python no-python: no such interpreter; check the path"),
    ],
)
def test_what_cannot_be_started_is_said(project: Path, arguments: list[str], why: str) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, result.output) == (2, f"torch-codemod: {why}\n")


def test_an_interpreter_without_torch_is_named(project: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "bare"], cwd=project, check=True)
    bare = str(project / "bare" / "bin" / "python")
    result = invoke("--python", bare, "--", "program.py")
    assert result.exit_code == 2
    assert f"{bare}: has no torch; name the interpreter of your environment with --python" in result.output


def test_the_active_environment_is_the_default(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "bare"], cwd=project, check=True)
    monkeypatch.setenv("VIRTUAL_ENV", str(project / "bare"))
    assert find_interpreter() == str(project / "bare" / "bin" / "python")
    monkeypatch.delenv("VIRTUAL_ENV")
    monkeypatch.setenv("PATH", "")
    assert find_interpreter() == sys.executable
