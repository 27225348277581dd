"""What only a real process on a real terminal shows."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FAILING = "import torch\n\n\ndef f(x):\n    return x.t().view(-1)\n"
MENDED = FAILING.replace("view", "reshape")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "codemod", "run", "--no-cache", *arguments]


def on_a_terminal(arguments: list[str], folder: Path, **environment: str) -> str:
    """Everything that the command writes to a terminal, stdout and stderr."""
    ours, theirs = pty.openpty()
    env = {"TERM": "xterm", "COLUMNS": "200", **os.environ, **environment}
    env.pop("NO_COLOR", None)
    with subprocess.Popen(arguments, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
    os.close(ours)
    assert process.returncode == 0, seen
    return seen.decode()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(FAILING)
    return tmp_path


def test_a_terminal_gets_colours_and_a_pipe_the_same_text_without(project: Path) -> None:
    seen = on_a_terminal(command("net.py"), project)
    piped = subprocess.run(command("net.py"), cwd=project, capture_output=True, text=True, check=True).stdout
    assert COLOUR.search(seen)
    assert not COLOUR.search(piped)
    assert COLOUR.sub("", seen).replace("\r\n", "\n") == piped


def test_a_diff_is_coloured_on_a_terminal_only(project: Path) -> None:
    seen = on_a_terminal(command("net.py", "--diff"), project)
    piped = subprocess.run(command("net.py", "--diff"), cwd=project, capture_output=True, text=True, check=True).stdout
    assert COLOUR.search(seen)
    assert piped.startswith("--- ")
    assert COLOUR.sub("", seen).replace("\r\n", "\n") == piped


def test_a_short_run_shows_no_progress(project: Path) -> None:
    assert "files" not in on_a_terminal(command("--format", "json", "--output", "out.json", "net.py"), project)


def test_a_long_run_shows_progress_on_stderr_alone(project: Path) -> None:
    shown = "import codemod.cli.progress as p; p.SHOWN_AFTER_SECONDS = -1.0; from codemod.cli.app import main; main()"
    arguments = [sys.executable, "-c", shown, "run", "--no-cache", "net.py"]
    assert "files" in on_a_terminal([*arguments, "--format", "json", "--output", "out.json"], project)
    piped = subprocess.run(arguments, cwd=project, capture_output=True, text=True, check=True)
    assert piped.stderr == ""


def test_an_ascii_terminal_is_no_reason_to_end(project: Path) -> None:
    (project / "net.py").write_text(FAILING.replace("x", "größe"), encoding="utf-8")
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    result = subprocess.run(command("net.py"), cwd=project, capture_output=True, env=env, check=False)
    assert result.returncode == 0, result.stderr
    assert rb"gr\xf6\xdfe.t().reshape(-1)" in result.stdout


def _cpu_seconds(pid: int) -> float:
    """Of the process and its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    mine = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return mine + sum(_cpu_seconds(int(child)) for child in children)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads the CPU time of a process from /proc")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_leaves_every_file_old_or_new_and_says_so(tmp_path: Path, jobs: str) -> None:
    old = FAILING + "\n\n" + FAILING[len("import torch") :] * 400
    for i in range(40):  # far more than is done before the signal comes
        (tmp_path / f"net_{i:03}.py").write_text(old)
    arguments = command("--in-place", "--jobs", jobs, ".")
    with subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True) as process:
        while _cpu_seconds(process.pid) < 3:  # it is past its imports, and those of its workers, on any machine
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.decode() == "interrupted; every file is either old or new, run again for the rest\n"
    assert {path.name[:4] for path in tmp_path.iterdir()} == {"net_"}
    assert {path.read_text() for path in tmp_path.iterdir()} <= {old, old.replace("view", "reshape")}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_what_cannot_be_written_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    (locked / "a.py").write_text(FAILING)
    (tmp_path / "b.py").write_text(FAILING)
    locked.chmod(0o555)
    try:
        result = subprocess.run(command("--in-place", "."), cwd=tmp_path, capture_output=True, text=True, check=False)
    finally:
        locked.chmod(0o755)
    assert result.returncode == 2
    assert "locked/a.py" in result.stderr
    assert (locked / "a.py").read_text() == FAILING
    assert (tmp_path / "b.py").read_text() == MENDED
