"""Before and after: a rewritten copy, and a git revision."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from codemod.configuration import UsageError
from codemod.settings import Sites
from codemod.verify.compare import verify_against, verify_fixed
from codemod.verify.ladder import Climb
from codemod.verify.rung import Rung, Status

FAILING = "import torch\nfrom scale import SCALE\n\ndef f(x):\n    return x.t().view(-1) * SCALE\n"


def quiet(title: str, rung: Rung) -> None:
    pass


def asked(target: str, **given: object) -> Climb:
    return Climb(target, sys.executable, inputs="torch.ones(2, 3)", rungs=("eager",), timeout=60.0, **given)  # type: ignore[arg-type]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(FAILING)
    (tmp_path / "scale.py").write_text("SCALE = 2\n")
    return tmp_path


def test_a_failing_view_passes_in_the_rewritten_copy_and_the_file_stays(project: Path) -> None:
    result = verify_fixed(asked("net.py:f"), None, quiet)
    before, after = result.ladders
    assert (before.title, after.title, result.changed) == ("before", "after", ("net.py",))
    assert [ladder.rungs[0].status for ladder in result.ladders] == [Status.FAILED, Status.OK]
    assert result.exit_code == 0
    assert (project / "net.py").read_text() == FAILING


def test_a_copy_of_a_package_is_told_of_in_the_originals_paths(project: Path) -> None:
    package = project / "pkg"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "weights.txt").write_text("3")
    (package / "flat.py").write_text("def flat(x):\n    return x.view(-1)\n")
    (package / "net.py").write_text(
        "import pathlib\nfrom .flat import flat\n\ndef f(x):\n"
        "    assert pathlib.Path(__file__).with_name('weights.txt').read_text() == '3'\n    return flat(x.t())\n"
        "\n\ndef g(x):\n    return f(x).select(0, 9)\n"
    )
    result = verify_fixed(asked("pkg.net:g"), Sites.RISKY, quiet)
    after = result.ladders[1].rungs[0]
    assert after.failure is not None
    assert [Path(frame.path) for frame in after.failure.frames] == [package / "net.py"]
    unchanged = verify_fixed(asked("pkg.net:f"), Sites.FAILING, quiet)
    assert [ladder.title for ladder in unchanged.ladders] == ["before"]
    risky = verify_fixed(asked("pkg.net:f"), Sites.RISKY, quiet)
    assert risky.changed == ("pkg/flat.py",)
    assert risky.exit_code == 0


def test_another_result_than_the_revisions_is_named(project: Path) -> None:
    git(project, "init", "-q")
    (project / "net.py").write_text(FAILING.replace("view", "reshape"))
    git(project, "add", ".")
    git(project, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
    assert verify_against(asked("net.py:f"), "HEAD", quiet).exit_code == 0
    (project / "net.py").write_text(FAILING.replace("view", "reshape").replace("* SCALE", "* SCALE + 1"))
    result = verify_against(asked("net.py:f"), "HEAD", quiet)
    assert [ladder.title for ladder in result.ladders] == ["HEAD", "now"]
    now = result.ladders[1].rungs[0]
    assert now.status is Status.DIFFERS
    assert now.difference is not None
    assert (now.difference.where, now.difference.largest) == ("output at [0]", 1.0)
    assert result.exit_code == 1
    with pytest.raises(UsageError, match="--against no-such-revision: "):
        verify_against(asked("net.py:f"), "no-such-revision", quiet)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def test_a_module_that_is_not_there_is_refused(project: Path) -> None:
    with pytest.raises(UsageError, match=r"no\.such: no such module here"):
        verify_fixed(asked("no.such:f"), None, quiet)
