"""The command line, through the real console script's application."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from codemod.cli.app import app

FAILING = "import torch\n\n\ndef f(x):\n    return x.t().view(-1)\n"
MENDED = FAILING.replace("view", "reshape")
SAFE = "import torch\n\n\ndef f(x):\n    return x.t().contiguous().view(-1)\n"


def invoke(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["run", *arguments], input=stdin)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "net.py").write_text(FAILING)
    (tmp_path / "safe.py").write_text(SAFE)
    return tmp_path


def test_preview_changes_nothing(project: Path) -> None:
    result = invoke()
    assert result.exit_code == 0
    assert "net.py:5:18: failing: .view() merges dims" in result.stdout
    assert "x.t().reshape(-1)" in result.stdout
    assert (project / "net.py").read_text() == FAILING


def test_in_place_writes_and_a_second_run_has_nothing_to_do(project: Path) -> None:
    assert invoke("--in-place").exit_code == 0
    assert (project / "net.py").read_text() == MENDED
    assert (project / "safe.py").read_text() == SAFE
    assert invoke("--check").exit_code == 0


def test_check_exits_1_where_something_would_be_rewritten(project: Path) -> None:
    assert invoke("--check").exit_code == 1
    assert invoke("--check", "safe.py").exit_code == 0


@pytest.mark.parametrize("text", [FAILING, FAILING.rstrip("\n"), FAILING.replace("\n", "\r\n"), "# é\n" + FAILING])
def test_the_diff_applies_byte_for_byte(project: Path, text: str) -> None:
    (project / "net.py").write_bytes(text.encode())
    result = invoke("net.py", "--diff")
    (project / "change.diff").write_bytes(result.stdout_bytes)
    subprocess.run(["git", "apply", "change.diff"], cwd=project, check=True)
    assert (project / "net.py").read_bytes() == text.replace(".view", ".reshape").encode()


def test_json_holds_kept_sites_too(project: Path) -> None:
    report = json.loads(invoke("--format", "json").stdout)
    assert report["version"] == 1
    assert [(site["path"], site["verdict"], site["action"]) for site in report["sites"]] == [
        ("net.py", "failing", "rewrite"),
        ("safe.py", "safe", "keep"),
    ]
    assert report["sites"][0] == {
        "path": "net.py",
        "line": 5,
        "column": 18,
        "end_line": 5,
        "end_column": 26,
        "transform": "view-to-reshape",
        "verdict": "failing",
        "action": "rewrite",
        "replacement": "x.t().reshape(-1)",
        "message": ".view() merges dims that do not lie one after the other in memory",
        "reasons": [
            {"text": "strided since t()", "path": None, "line": 5},
            {"text": "merges dims 0 and 1 of it here", "path": None, "line": None},
        ],
    }
    assert report["files"] == {"seen": 2, "changed": 1, "skipped": []}


def test_one_worker_and_many_say_the_same(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codemod.runner.POOL_FROM_BYTES", 0)
    alone = invoke("--format", "json", "--jobs", "1", "--no-cache").stdout
    assert invoke("--format", "json", "--jobs", "2", "--no-cache").stdout == alone


def test_the_cache_gives_the_same_answer(project: Path) -> None:
    first = invoke("--format", "json").stdout
    assert (project / "cache").exists()
    assert invoke("--format", "json").stdout == first
    (project / "net.py").write_text(SAFE)
    assert invoke("--check").exit_code == 0


def test_stdin_comes_back_rewritten(project: Path) -> None:
    assert invoke("-", "--in-place", stdin=FAILING.encode()).stdout == MENDED
    assert invoke("-", "--in-place", stdin=SAFE.encode()).stdout == SAFE
    assert "a/src/net.py" in invoke("-", "--diff", "--stdin-filename", "src/net.py", stdin=FAILING.encode()).stdout


def test_a_broken_file_does_not_stop_the_others(project: Path) -> None:
    (project / "broken.py").write_text("def f(:\n    x.view(1)\n")
    result = invoke("--in-place")
    assert result.exit_code == 2
    assert "broken.py:1: cannot parse" in result.stderr
    assert (project / "net.py").read_text() == MENDED


def test_a_missing_path_is_named(project: Path) -> None:
    result = invoke("nowhere", "net.py")
    assert result.exit_code == 2
    assert "nowhere: no such file or folder; check the path" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--select", "view-to-reshap"], "did you mean `view-to-reshape`?"),
        (["--in-place", "--check"], "--in-place writes the files, --check leaves them; choose one"),
        (["--config", "none.toml"], "--config none.toml: no such file; check the path"),
        (["--sites", "some"], "some"),
    ],
)
def test_wrong_usage_says_place_fact_and_next_step(project: Path, arguments: list[str], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_settings_come_from_pyproject(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.torch-codemod]\nto = "contiguous"\nexclude = ["safe.py"]\n')
    result = invoke("--diff")
    assert "+    return x.t().contiguous().view(-1)" in result.stdout
    assert "+    return x.t().reshape(-1)" in invoke("--diff", "--to", "reshape").stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool.torch-codemod]\nsite = 1\n",
            "pyproject.toml:2: [tool.torch-codemod] has no setting `site`; did you mean `sites`?",
        ),
        (
            "[tool.torch-codemod]\nsites = 1\n",
            "pyproject.toml:2: [tool.torch-codemod] sites must be one of 'failing', 'risky', 'all', not 1",
        ),
        ("[tool.torch-codemod\n", "not valid TOML"),
    ],
)
def test_a_broken_pyproject_is_a_usage_error(project: Path, text: str, message: str) -> None:
    (project / "pyproject.toml").write_text(text)
    result = invoke()
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_comment_suppresses_and_an_unused_one_is_named(project: Path) -> None:
    comment = "  # torch-codemod: ignore[view-to-reshape] the caller never transposes"
    (project / "net.py").write_text(FAILING.rstrip() + comment + "\n")
    assert invoke("--check").exit_code == 0
    (project / "safe.py").write_text(SAFE.rstrip() + comment + "\n")
    assert "safe.py:5: this suppression comment suppresses nothing; remove it" in invoke().stdout


def test_a_notebook_is_rewritten_in_its_cells(project: Path) -> None:
    cell = {"cell_type": "code", "execution_count": None, "id": "a", "metadata": {}, "outputs": [], "source": FAILING}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (project / "net.ipynb").write_text(json.dumps(notebook, indent=1))
    assert "net.ipynb:cell 1:5:18: failing" in invoke("net.ipynb").stdout
    invoke("net.ipynb", "--in-place")
    assert json.loads((project / "net.ipynb").read_text())["cells"][0]["source"] in (MENDED, MENDED.splitlines(True))


def test_an_unused_comment_in_a_notebook_is_named_by_its_cell(project: Path) -> None:
    safe = SAFE.rstrip() + "  # torch-codemod: ignore[view-to-reshape] why\n"
    cells = [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# one\n\ntwo"},
        {"cell_type": "code", "execution_count": None, "id": "b", "metadata": {}, "outputs": [], "source": "x = 1"},
        {"cell_type": "code", "execution_count": None, "id": "c", "metadata": {}, "outputs": [], "source": safe},
    ]
    document = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (project / "net.ipynb").write_text(json.dumps(document))
    assert "net.ipynb:cell 3:5: this suppression comment suppresses nothing" in invoke("net.ipynb").stdout


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            'per-file-ignores = { "a.py" = ["view-to-reshap"] }',
            "pyproject.toml:2: [tool.torch-codemod] per-file-ignores",
        ),
        ('selct = ["view-to-reshape"]', "has no setting `selct`; did you mean `select`?"),
    ],
)
def test_names_in_the_settings_are_checked(project: Path, table: str, message: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.torch-codemod]\n{table}\n")
    result = invoke()
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_selected_transform_runs_though_the_file_ignores_it(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.torch-codemod]\nignore = ["view-to-reshape"]\n')
    assert invoke("--check").exit_code == 0
    assert invoke("--check", "--select", "view-to-reshape").exit_code == 1


def test_help_does_not_import_what_only_a_run_needs() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from codemod.cli.app import app; "
        "CliRunner().invoke(app, ['run', '--help']); "
        "print([m for m in ('libcst', 'torch', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_run_does_not_import_torch(project: Path) -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from codemod.cli.app import app; "
        "CliRunner().invoke(app, ['run', 'net.py', '--no-cache']); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_rules_lists_and_explains() -> None:
    listed = CliRunner().invoke(app, ["rules"]).stdout
    assert "view-to-reshape" in listed
    assert "chunk-bmm" in listed
    explained = CliRunner().invoke(app, ["rules", "view-to-reshape"]).stdout
    assert "Left alone:" in explained
    assert "+     return x.transpose(1, 2).reshape(b, t, h * d)" in explained


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("", 1),
        ('[project]\ndependencies = ["torch>=2.4"]\n', 1),
        ('[project]\ndependencies = ["torch>=2.13"]\n', 0),
        ('[project.optional-dependencies]\ngpu = ["torch>=2.13"]\n', 0),
        ('[tool.torch-codemod]\ntorch = "2.13"\n', 0),
        ('[project]\ndependencies = ["torch>=2.13"]\n[tool.torch-codemod]\ntorch = "2.4"\n', 1),
        ("[project]\ndependencies = 3\n", 1),
        ("broken = [", 1),
    ],
)
def test_the_torch_that_a_project_asks_for_decides_on_bmm(project: Path, text: str, rewritten: int) -> None:
    (project / "pairs.py").write_text("import torch\n\n\ndef f(x, y):\n    return x.flatten(0, 1).bmm(y)\n")
    (project / "pyproject.toml").write_text(text)
    result = invoke("run", "--select", "chunk-bmm", "--format", "json", "pairs.py")
    actions = [site["action"] for site in json.loads(result.stdout)["sites"]]
    assert actions == ["rewrite" if rewritten else "keep"]


def test_a_torch_that_is_no_version_is_a_usage_error(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.torch-codemod]\ntorch = ">=2.13"\n')
    result = invoke("run", ".")
    assert result.exit_code == 2
    assert "torch must be the lowest version to run on" in result.stderr
