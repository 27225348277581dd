"""Programs run under the recorder: theirs stays theirs, and what their calls meet is in the files.

Real runs, in processes of their own; each starts torch.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from textwrap import dedent

import pytest

from codemod.evidence.recorded import Recorded, Recordings, read_recordings
from codemod.evidence.tracebacks import read_log

RECORD = str(resources.files("codemod") / "guest" / "record.py")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended; stdout and stderr hold no file names of the recorder's."""

    status: int
    stdout: str
    stderr: str


def command(folder: Path, arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-I", "-S", RECORD, "--output", str(folder / "parts" / "part"), "--", *arguments]


def run(folder: Path, arguments: Sequence[str], environment: dict[str, str] | None = None) -> Ended:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})}
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, env=environment, timeout=120)
    return Ended(done.returncode, done.stdout, done.stderr)


def recorded(folder: Path) -> Recordings:
    recordings, errors = read_recordings(sorted((folder / "parts").glob("part.*.*")))
    assert errors == ()
    assert recordings.errors == 0
    return recordings


def trace(folder: Path, text: str, *arguments: str) -> tuple[Ended, Recordings]:
    """Run the text as `program.py`, without and with the recorder: the same comes out."""
    (folder / "program.py").write_text(dedent(text), encoding="utf-8")
    (folder / "parts").mkdir(exist_ok=True)
    ended = run(folder, command(folder, ["program.py", *arguments]))
    assert run(folder, [sys.executable, "program.py", *arguments]) == ended
    return ended, recorded(folder)


def called(folder: Path, recordings: Recordings) -> dict[str, Recorded]:
    """The sites by the text of their call; `line N` where there are no positions."""
    found = {}
    for site in recordings.sites:
        lines = Path(site.path).read_text(encoding="utf-8").splitlines()
        if site.column is None or site.end_column is None or site.end_line is None:
            found[f"line {site.line}"] = site
            continue
        assert site.line == site.end_line
        found[lines[site.line - 1][site.column - 1 : site.end_column - 1]] = site
    return found


needs_positions = pytest.mark.skipif(sys.version_info < (3, 11), reason="code objects have no positions")


@needs_positions
def test_each_form_of_a_call_is_recorded_at_its_place(tmp_path: Path) -> None:
    _, recordings = trace(
        tmp_path,
        """\
        import torch

        x = torch.arange(24.0).view(2, 3, 4)
        é = "é"; x.view_as(x)  # columns count characters
        x.reshape(6, 4)
        x.reshape_as(x)
        x.flatten(1)
        x.contiguous()
        x.bmm(x.transpose(1, 2))
        torch.bmm(x, x.transpose(1, 2)[:, :, :1])
        torch.reshape(x, (-1,))
        torch.flatten(x)
        torch.Tensor.view(x, 4, 6)
        torch.view_as_complex(x.view(2, 3, 2, 2))
        alias = x.view
        alias(size=(3, 8))
        x.view(torch.int32)
        torch.nn.Flatten()(x)
        """,
    )
    sites = called(tmp_path, recordings)
    assert {text: site.operation for text, site in sites.items()} == {
        "torch.arange(24.0).view(2, 3, 4)": "view",
        "x.view_as(x)": "view_as",
        "x.reshape(6, 4)": "reshape",
        "x.reshape_as(x)": "reshape_as",
        "x.flatten(1)": "flatten",
        "x.contiguous()": "contiguous",
        "x.bmm(x.transpose(1, 2))": "bmm",
        "torch.bmm(x, x.transpose(1, 2)[:, :, :1])": "bmm",
        "torch.reshape(x, (-1,))": "reshape",
        "torch.flatten(x)": "flatten",
        "torch.Tensor.view(x, 4, 6)": "view",
        "x.view(2, 3, 2, 2)": "view",
        "torch.view_as_complex(x.view(2, 3, 2, 2))": "view_as_complex",
        "alias(size=(3, 8))": "view",
        "x.view(torch.int32)": "view",
    }
    assert sites["x.view(torch.int32)"].dtype == 1
    assert sites["x.reshape(6, 4)"].dtype == 0
    assert sites["torch.arange(24.0).view(2, 3, 4)"].sizes == ((24,),)


@needs_positions
def test_what_calls_meet_is_counted(tmp_path: Path) -> None:
    _, recordings = trace(
        tmp_path,
        """\
        import torch

        def attempt(call):
            try:
                call()
            except RuntimeError as error:
                print(error)

        for batch in (1, 2, 5):
            x = torch.zeros(batch, 3, 4)
            y = x.transpose(1, 2)
            attempt(lambda: y.view(-1, 12))
            attempt(lambda: x.view(2, 12))
            y.reshape(batch, 12)
            y.contiguous()
            x.flatten()
            torch.bmm(x, y)
            w = x.view(-1)
            w.add_(1)
            x.reshape(-1)[0] = 1
            x.view(batch, 12)
            attempt(lambda: torch.view_as_complex(x))
        """,
    )
    sites = called(tmp_path, recordings)
    refused = sites["y.view(-1, 12)"]
    assert (refused.calls, refused.refused) == (3, 3)
    assert refused.sizes == ((1, 2, 5), (4,), (3,))
    assert [(item.sizes, item.target, item.outcome) for item in refused.examples][:1] == [
        ((1, 4, 3), (-1, 12), "refused")
    ]
    invalid = sites["x.view(2, 12)"]
    assert (invalid.calls, invalid.refused) == (3, 0)
    assert [(item.target, item.elements) for item in invalid.invalid] == [((2, 12), 12), ((2, 12), 60)]
    assert sites["y.reshape(batch, 12)"].would_be_refused == 3
    assert sites["y.contiguous()"].would_be_refused == 3
    assert sites["x.flatten()"].would_be_refused == 0
    assert sites["torch.bmm(x, y)"].batch == (1, 5)
    assert sites["x.view(-1)"].written > 0
    assert sites["x.reshape(-1)"].written > 0
    assert sites["x.view(batch, 12)"].written == 0
    assert sites["torch.view_as_complex(x)"].refused == 0  # a wrong last dim is no question of strides


@needs_positions
def test_examples_and_sizes_are_bounded_and_keep_a_new_outcome(tmp_path: Path) -> None:
    _, recordings = trace(
        tmp_path,
        """\
        import torch

        for n in range(2, 400):
            x = torch.zeros(n, 2)
            try:
                (x.t() if n == 300 else x).view(-1)
            except RuntimeError:
                pass
        """,
    )
    (site,) = called(tmp_path, recordings).values()
    assert (site.calls, site.refused) == (398, 1)
    assert len(site.examples) == 8
    assert "refused" in {example.outcome for example in site.examples}
    assert len(site.sizes[0]) <= 17
    assert site.sizes[0][-1] == 399


def test_tracebacks_are_those_of_an_untraced_run(tmp_path: Path) -> None:
    ended, _ = trace(
        tmp_path,
        """\
        import logging
        import sys
        import traceback

        import torch

        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return torch.ones(2, 3).t().view(-1)

        def refused(x):
            return x.t().view(-1)

        x = torch.ones(2, 3, requires_grad=True)
        for call in (refused, lambda x: Twice.apply(x).sum().backward(), lambda x: x.view(5)):
            try:
                call(x)
            except RuntimeError:
                traceback.print_exc()
                logging.exception("seen")
                assert sys.gettrace() is None
        try:
            refused(x)
        except RuntimeError as error:
            raise ValueError("chained") from error
        """,
    )
    assert ended.status == 1
    assert "torch-codemod" not in ended.stderr
    assert "x.t().view(-1)" in ended.stderr


def test_torch_that_cannot_be_imported_fails_as_ever(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("import missing_part\n")
    ended, _ = trace(tmp_path, "import torch\n")
    assert "No module named 'missing_part'" in ended.stderr
    (tmp_path / "torch" / "__init__.py").write_text("1 / 0\n")
    ended, _ = trace(tmp_path, "import torch\n")
    assert "ZeroDivisionError" in ended.stderr


def test_the_program_finds_all_as_it_is_without(tmp_path: Path) -> None:
    for name in ("record", "json", "transforms"):
        (tmp_path / f"{name}.py").write_text(f"mine = {name!r}\n")
    (tmp_path / "codemod").mkdir()
    (tmp_path / "codemod" / "__init__.py").write_text("mine = 'codemod'\n")
    ended, _ = trace(
        tmp_path,
        """\
        import atexit, os, sys

        atexit.register(print, "at exit")
        import codemod, json, record, transforms
        print([module.mine for module in (codemod, json, record, transforms)])
        sys.modules.pop("json"), sys.path.append(sys.path.pop(0))  # torch wants the real one
        import torch

        print(sys.argv, sys.path, __name__, __file__, __spec__, os.getcwd())
        print(sorted(vars()), sys.modules["__main__"].__dict__ is globals())
        print("record" in sys.modules, "sitecustomize" in sys.modules, [type(finder) for finder in sys.meta_path])
        print(torch.__spec__.origin, type(torch.__spec__.loader), type(torch.__loader__))
        torch.zeros(2, 3).view(6)
        sys.exit(3)
        """,
        "--output",
        "-m",
    )
    assert ended.status == 3
    assert "['codemod', 'json', 'record', 'transforms']" in ended.stdout
    assert ended.stdout.endswith("at exit\n")


def test_torch_stays_what_it_is(tmp_path: Path) -> None:
    ended, _ = trace(
        tmp_path,
        """\
        import copy, inspect, pickle, traceback, weakref

        import torch

        HANDLED = {torch.bmm: "bmm", torch.Tensor.view: "view", torch.flatten: "flatten"}

        class Named(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                print(HANDLED.get(func, func.__name__))
                return super().__torch_function__(func, types, args, kwargs or {})

        class Counted(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                print("mode", HANDLED.get(func, func.__name__))
                return func(*args, **(kwargs or {}))

        x = torch.zeros(2, 3, 3)
        named = x.as_subclass(Named)
        torch.bmm(named, named), named.view(-1), torch.flatten(named), named.view_as(x)
        with Counted():
            torch.bmm(x, x), x.view(-1)
        for function in HANDLED:
            assert pickle.loads(pickle.dumps(function)) is function
            assert copy.deepcopy(function) is function
            print(function.__name__, function.__doc__[:40], torch.overrides.is_tensor_method_or_property(function))
            try:
                inspect.signature(function)
            except ValueError:
                print("no signature")
        assert torch.Tensor.view is torch.Tensor.view and torch.bmm is torch._C._VariableFunctions.bmm
        print(torch.utils.swap_tensors(torch.nn.Parameter(x), torch.nn.Parameter(x)))
        p, q = torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(2))
        p.view(2)
        torch.utils.swap_tensors(p, q)
        y, z = torch.zeros(2), torch.zeros(2)
        y.view(2)
        torch.utils.swap_tensors(y, z)
        kept = weakref.ref(y)
        try:
            torch.utils.swap_tensors(y, z)
        except RuntimeError:
            traceback.print_exc()
        """,
    )
    assert ended.status == 0, ended.stderr


@needs_positions
def test_compilers_and_tracers_see_what_they_saw(tmp_path: Path) -> None:
    ended, recordings = trace(
        tmp_path,
        """\
        import torch

        def f(x):
            y = torch.Tensor.view(x.view(2, 6), 4, 3)
            return torch.bmm(y.reshape(1, 4, 3), y.t().reshape(1, 3, 4)).flatten()

        class Net(torch.nn.Module):
            def forward(self, x):
                return torch.flatten(torch.bmm(x.view(1, 3, 4), x.view(1, 4, 3)))

        x = torch.arange(12.0)
        seen = []
        print(torch.compile(f, backend=lambda g, _: seen.append(g.code) or g, fullgraph=True)(x))
        print(torch.compile(Net(), backend="eager", fullgraph=True, dynamic=True)(x))
        print(seen)
        print(torch.jit.script(Net())(x), torch.jit.trace(f, x).code)
        print(torch.func.vmap(lambda row: row.view(3, 1))(x.view(4, 3)).shape)
        print(torch.func.jacrev(lambda row: row.view(3, 4).flatten())(x).shape)
        print(torch.fx.symbolic_trace(Net()).code)
        for strict in (False, True):
            print(torch.export.export(Net(), (x,), strict=strict).graph)
        with torch.inference_mode():
            print(f(x))
        try:
            torch.compile(lambda x: x.view(3, 4).t().view(-1), backend="eager", fullgraph=True)(x)
        except Exception as error:
            print(type(error))
        """,
    )
    assert ended.status == 0, ended.stderr
    sites = called(tmp_path, recordings)
    assert sites["torch.Tensor.view(x.view(2, 6), 4, 3)"].traced > 0
    assert sites["x.view(2, 6)"].calls > 0
    assert sites["x.view(3, 4).t().view(-1)"].refused > 0


@needs_positions
def test_threads_backward_and_modules_are_seen(tmp_path: Path) -> None:
    _, recordings = trace(
        tmp_path,
        """\
        import threading

        import torch

        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad.contiguous().view(6).view(2, 3)

        class Net(torch.nn.Module):
            def forward(self, x):
                return Twice.apply(x).view(3, 2)

        def work():
            for _ in range(1000):
                Net()(torch.ones(2, 3, requires_grad=True)).sum().backward()

        threads = [threading.Thread(target=work) for _ in range(4)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        """,
    )
    sites = called(tmp_path, recordings)
    assert sites["Twice.apply(x).view(3, 2)"].calls == 4000
    assert sites["grad.contiguous().view(6)"].calls == 4000


def test_processes_that_a_program_starts_are_recorded(tmp_path: Path) -> None:
    _, recordings = trace(
        tmp_path,
        """\
        import multiprocessing, os, subprocess, sys

        import torch
        from torch.utils.data import DataLoader, Dataset

        class Items(Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, index):
                return torch.ones(2, 3).view(6)  # loaded

        def work(n):
            torch.ones(2, n).view(-1)  # worked
            return os.environ.get("PYTHONPATH") is not None

        if __name__ == "__main__":
            for method in ("fork", "spawn", "forkserver"):
                process = multiprocessing.get_context(method).Process(target=work, args=(3,))
                process.start()
                process.join()
                assert process.exitcode == 0
            print(len(list(DataLoader(Items(), num_workers=2))))
            text = "import sys, program; print(sys.path[1:]); program.work(5)"
            subprocess.run([sys.executable, "-c", text], check=True)
            if os.fork() == 0:
                work(7)
                os._exit(0)
            os.wait()
            if os.fork() == 0:
                work(9)
                os.kill(os.getpid(), 9)
            os.wait()
            sys.stdout.flush()
        """,
    )
    lines = (tmp_path / "program.py").read_text().splitlines()
    sites = {lines[site.line - 1].partition("# ")[2]: site for site in recordings.sites}
    assert sites["loaded"].calls == 4
    assert sites["worked"].calls == 6
    assert sites["worked"].sizes == ((2,), (3, 5, 7, 9))
    assert recordings.unfinished >= 1


def test_pytest_with_workers_passes_as_ever(tmp_path: Path) -> None:
    (tmp_path / "test_net.py").write_text(
        dedent(
            """\
            import pytest
            import torch

            @pytest.mark.parametrize("n", range(4))
            def test_view(n, monkeypatch):
                monkeypatch.setattr("builtins.open", None)
                assert torch.ones(2, n).view(-1).shape == (2 * n,)

            def test_refused():
                with pytest.raises(RuntimeError, match="not compatible"):
                    torch.ones(2, 3).t().view(-1)

            def test_wrong():
                torch.ones(2, 3).view(5)
            """
        )
    )
    (tmp_path / "parts").mkdir()
    arguments = ["-m", "pytest", "-n2", "-p", "no:cacheprovider", "test_net.py"]
    ended = run(tmp_path, command(tmp_path, arguments))
    assert ended.status == 1, ended.stderr
    assert "1 failed, 5 passed" in ended.stdout
    assert "torch-codemod" not in ended.stdout
    recordings = recorded(tmp_path)
    assert sum(site.calls for site in recordings.sites if site.path.endswith("test_net.py")) == 6
    assert sum(site.refused for site in recordings.sites) == 1


def test_under_a_tracer_the_recorder_is_in_no_file_and_the_log_tells_the_call(tmp_path: Path) -> None:
    program = """\
    import sys, torch

    files = set()

    def follow(frame, event, argument):
        files.add(frame.f_code.co_filename)
        return follow

    def refused(x):
        return x.t().view(-1)

    sys.settrace(follow)
    torch.zeros(4).view(2, 2)
    print([name for name in sorted(files) if "trace>" in name or "record.py" in name])
    refused(torch.ones(2, 3))
    """
    (tmp_path / "program.py").write_text(dedent(program))
    (tmp_path / "parts").mkdir()
    ended = run(tmp_path, command(tmp_path, ["program.py"]))
    assert ended.stdout == "['<torch-codemod trace>']\n"
    (failure,) = read_log(ended.stderr)
    assert failure.frames[-1].text == "return x.t().view(-1)"


def test_a_module_runs_as_main(tmp_path: Path) -> None:
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "__init__.py").write_text("")
    (tmp_path / "box" / "__main__.py").write_text(
        "import sys, torch\n"
        "print(sys.argv, sys.path[0], __name__, __spec__.name, __package__)\n"
        "torch.ones(6).view(2, 3)\n"
    )
    (tmp_path / "parts").mkdir()
    ended = run(tmp_path, command(tmp_path, ["-m", "box", "a"]))
    assert run(tmp_path, [sys.executable, "-m", "box", "a"]) == ended
    assert [site.line for site in recorded(tmp_path).sites] == [3]


@pytest.mark.parametrize(("name", "status"), [("SIGTERM", -15), ("SIGINT", -2), ("SIGKILL", -9)])
def test_a_killed_program_leaves_what_it_did(tmp_path: Path, name: str, status: int) -> None:
    (tmp_path / "program.py").write_text(
        "import time, torch\ntorch.ones(6).view(2, 3)\nprint('ready', flush=True)\ntime.sleep(60)\n"
    )
    (tmp_path / "parts").mkdir()
    process = subprocess.Popen(
        command(tmp_path, ["program.py"]), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "ready\n"
    time.sleep(0.05)
    process.send_signal(getattr(signal, name))
    assert process.wait(20) == status
    assert [site.calls for site in recorded(tmp_path).sites] == [1]


def test_the_users_own_sitecustomize_runs(tmp_path: Path) -> None:
    (tmp_path / "startup").mkdir()
    (tmp_path / "startup" / "sitecustomize.py").write_text("print('mine')\n")
    (tmp_path / "program.py").write_text("import sitecustomize\nprint(sitecustomize.__file__)\n")
    (tmp_path / "parts").mkdir()
    environment = {"PYTHONPATH": str(tmp_path / "startup")}
    ended = run(tmp_path, command(tmp_path, ["program.py"]), environment)
    assert ended == run(tmp_path, [sys.executable, "program.py"], environment)
    assert ended.stdout.startswith("mine\n")


def test_a_program_that_leaves_torch_alone_leaves_no_file(tmp_path: Path) -> None:
    ended, _ = trace(tmp_path, "print('done')\n")
    assert ended.stdout == "done\n"
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["part.site"]
