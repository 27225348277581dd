"""Each project under examples/: how it ends before and after the tool has been over it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from codemod.cli.app import app

EXAMPLES = Path(__file__).parent.parent / "examples"
CASES = {
    "attention_block/attention.py": ([], "view size is not compatible", ["self.out(mixed.reshape(b, t, c))"]),
    "vision_channels_last/model.py": (
        ["--sites", "risky"],
        "view size is not compatible",
        ["self.head(x.reshape(x.size(0), -1))", "self.pool(x).view(x.size(0), -1)"],
    ),
    "exported_bmm/export.py": ([], "the batch is bounded by [int_oo]", ['Dim("batch", max=65535)']),
    "training_script/train.py": ([], "shape '[8, 6]' is invalid", ["x.view(-1, c * h)"]),
}


@pytest.mark.parametrize("name", CASES)
def test_an_example_fails_before_and_passes_after(name: str, tmp_path: Path) -> None:
    options, error, expected = CASES[name]
    program = tmp_path / Path(name).name
    shutil.copy(EXAMPLES / name, program)
    before = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert before.returncode == 1
    assert error in before.stderr
    result = CliRunner().invoke(app, ["run", str(program), "--in-place", "--no-cache", *options])
    assert result.exit_code == 0, result.output
    for text in expected:
        assert text in program.read_text()
    after = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert after.returncode == 0, after.stderr


def test_every_example_is_run() -> None:
    assert {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.py")} == set(CASES)


def test_the_story_of_the_readme(tmp_path: Path) -> None:
    """Error, explanation, diff, mended: as the README tells it, word for word."""
    readme = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    shutil.copy(EXAMPLES / "vision_channels_last/model.py", tmp_path)

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    def tool(*arguments: str) -> subprocess.CompletedProcess[str]:
        done = run(sys.executable, "-m", "codemod", *arguments)
        assert done.returncode == 0, done.stderr
        return done

    for command in (
        "cd examples/vision_channels_last && python model.py 2> error.log",
        "torch-codemod log error.log",
        "torch-codemod run --log error.log --diff",
        "torch-codemod run --log error.log --in-place && python model.py",
    ):
        assert f"$ {command}\n" in readme
    (tmp_path / "error.log").write_text(run(sys.executable, "model.py").stderr)
    assert tool("log", "error.log").stdout.rstrip() in readme
    assert "+        return self.head(x.reshape(x.size(0), -1))" in tool("run", "--log", "error.log", "--diff").stdout
    tool("run", "--log", "error.log", "--in-place")
    assert run(sys.executable, "model.py").returncode == 0


def test_the_readme_shows_what_a_run_over_the_examples_prints() -> None:
    readme = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    command = [sys.executable, "-m", "codemod", "run", "examples", "--no-cache"]
    printed = subprocess.run(command, cwd=EXAMPLES.parent, capture_output=True, text=True).stdout
    block = readme.partition("$ torch-codemod run examples\n")[2].partition("```")[0]
    first, last = block.strip().split("\n...\n")
    assert printed.startswith(f"{first}\n")
    assert printed.endswith(f"{last}\n")
