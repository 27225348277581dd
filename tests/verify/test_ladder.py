"""The ladder with real processes: what each rung shows of small programs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from codemod.configuration import UsageError
from codemod.verify.ladder import Climb, climb
from codemod.verify.rung import Rung, Status

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")


def rungs_of(folder: Path, program: str, rungs: tuple[str, ...], name: str = "f", **asked: object) -> list[Rung]:
    file = folder / "program.py"
    file.write_text(f"import torch\n{program}")
    place = folder / "run"
    place.mkdir()
    given = {"inputs": "torch.ones(2, 3)", "timeout": 120.0, **asked}
    return list(climb(Climb(f"{file}:{name}", sys.executable, rungs=rungs, **given), place))  # type: ignore[arg-type]


def test_a_crash_is_a_result_with_signal_and_line(tmp_path: Path) -> None:
    program = "import os\n\ndef f(x):\n    if torch.compiler.is_compiling():\n        return x\n    os.abort()\n"
    eager, skipped = rungs_of(tmp_path, program, ("eager", "dynamo"))
    assert (eager.status, skipped.status) == (Status.CRASHED, Status.SKIPPED)
    assert eager.failure is not None
    assert eager.failure.type == "SIGABRT"
    assert [frame.text for frame in eager.failure.frames] == ["os.abort()"]
    assert skipped.why == "eager crashed: nothing to compare with"


def test_a_hang_is_ended_at_the_time_limit_with_all_that_it_started(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys, time\n\ndef f(x):\n"
        f"    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"    open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "    time.sleep(600)\n"
    )
    (eager,) = rungs_of(tmp_path, program, ("eager",), timeout=8.0)
    assert eager.status is Status.TIMED_OUT
    assert eager.failure is not None
    assert eager.failure.message == "not done after 8 seconds"
    assert [frame.text for frame in eager.failure.frames] == ["time.sleep(600)"]
    assert _is_gone(int((tmp_path / "child").read_text()))


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_command_that_is_told_to_stop_leaves_nothing_running(tmp_path: Path, number: int) -> None:
    started = tmp_path / "started"
    (tmp_path / "program.py").write_text(
        "import os, pathlib, subprocess, sys, time\n\ndef f():\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"    told = pathlib.Path({str(started)!r})\n"
        "    told.with_suffix('.new').write_text(f'{os.getpid()} {child.pid}')\n"
        "    told.with_suffix('.new').rename(told)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-m", "codemod", "verify", "program.py:f", "--python", sys.executable]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    told = {**os.environ, "TMPDIR": str(scratch)}
    with subprocess.Popen(command, cwd=tmp_path, env=told, stderr=subprocess.PIPE) as verify:
        _wait_for(started.exists)
        verify.send_signal(number)
        assert verify.wait(20) == (130 if number == signal.SIGINT else 128 + number)
    for process in started.read_text().split():
        _wait_for(partial(_is_gone, int(process)))
    assert not list(scratch.glob("*/*.request")), "the files of the run are gone too"


def _wait_for(shown: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not shown():
        assert time.monotonic() < ends
        time.sleep(0.1)


def test_a_compiler_that_takes_too_long_is_told_from_a_program_that_hangs(tmp_path: Path) -> None:
    program = (
        "import time\n\n@torch.library.custom_op('mine::slow', mutates_args=())\n"
        "def slow(x: torch.Tensor) -> torch.Tensor:\n    return x.clone()\n\n"
        "@slow.register_fake\ndef _(x):\n    time.sleep(600)\n\ndef f(x):\n    return slow(x)\n"
    )
    whole = "torch.ones(2, dtype=torch.int64)"
    eager, dynamo = rungs_of(tmp_path, program, ("eager", "dynamo"), timeout=20.0, inputs=whole)
    assert (eager.status, dynamo.status) == (Status.OK, Status.TIMED_OUT)
    assert dynamo.failure is not None
    assert dynamo.failure.message == "not done after 20 seconds, while torch compiled; --timeout gives it more"


def _is_gone(pid: int) -> bool:
    for _ in range(50):
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.1)
    return False


def test_a_process_that_leaves_without_a_word_is_a_crash(tmp_path: Path) -> None:
    (eager,) = rungs_of(tmp_path, "import os\n\ndef f(x):\n    os._exit(0)\n", ("eager",))
    assert eager.status is Status.CRASHED
    assert eager.failure is not None
    assert (eager.failure.type, eager.failure.message) == ("exit code 0", "the process ended without a word")


def test_what_the_program_prints_does_not_get_in_the_way(tmp_path: Path) -> None:
    (eager,) = rungs_of(tmp_path, "def f(x):\n    print('x' * 10_000)\n    return x\n", ("eager",))
    assert eager.status is Status.OK


def test_an_interpreter_without_torch_is_refused(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(UsageError, match=r"cannot import torch .*; name an interpreter that can with --python"):
        list(climb(Climb("program.py:f", str(bare)), tmp_path))
    with pytest.raises(UsageError, match="cannot be started"):
        list(climb(Climb("program.py:f", str(tmp_path / "none")), tmp_path))


@needs_compiler
def test_a_model_passes_every_rung_with_a_dynamic_batch(tmp_path: Path) -> None:
    program = (
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.linear = torch.nn.Linear(4, 4)\n"
        "    def forward(self, x):\n        return torch.relu(self.linear(x)).t().reshape(-1)\n"
        "dynamic_shapes = {'x': {0: torch.export.Dim('batch', min=2, max=64)}}\n"
        "def example_inputs():\n    return (torch.randn(3, 4),)\n"
    )
    rungs = ("eager", "export", "aot_inductor")
    found = rungs_of(tmp_path, program, rungs, name="Net", inputs=None)
    assert [(rung.name, rung.status.value) for rung in found] == [(name, "ok") for name in rungs], found
    assert all(rung.seconds >= 0.0 for rung in found)


def test_rungs_that_need_a_compiler_say_so_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    (rung,) = rungs_of(tmp_path, "def f(x):\n    return x + 1\n", ("inductor",))
    assert rung.status is Status.SKIPPED
    assert rung.why is not None
    assert rung.why.startswith("no C++ compiler (")
