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
