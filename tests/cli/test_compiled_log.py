"""`run --log` with a log of compiled code, which names the op and the function and no line of the user's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from codemod.cli.app import app

NET = "import torch\n\n\ndef f(conv, x):\n    {body}\n    return torch.matrix_exp(y)\n"
LOG = """\
Traceback (most recent call last):
  File "/repo/drive.py", line 9, in <module>
    fast(conv, x)
  File "/venv/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py", line 1039, in compile_wrapper
    return fn(*args, **kwargs)
  File "/repo/net.py", line 4, in f
    def f(conv, x):
  File "/venv/lib/python3.11/site-packages/torch/_functorch/_aot_autograd/utils.py", line 138, in call_func
    out = normalize_as_list(f(args))
  File "/tmp/torchinductor_me/gx/cgx.py", line 125, in call
    buf3 = torch.ops.aten.linalg_matrix_exp.default(buf2)
RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans across two \
contiguous subspaces). Use .reshape(...) instead.
"""


@pytest.mark.parametrize(
    ("body", "action", "last"),
    [
        ("n, c, _, _ = x.shape; y = x.relu()", "rewrite", "a caller may pass a strided `x`"),
        ("y = conv(x)", "report", "cure: torch.matrix_exp(y.flatten(0, -3)).unflatten(0, y.shape[:-2])"),
        (
            "n, c, _, _ = x.shape; y = x[0]",
            "report",
            "cure: torch.matrix_exp(y.flatten(0, -3)).unflatten(0, y.shape[:-2])",
        ),
    ],
)
def test_what_a_log_shows_is_rewritten_where_the_source_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, action: str, last: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET.format(body=body))
    (tmp_path / "ci.log").write_text(LOG)
    arguments = ["run", "--no-cache", "--format", "json", "--log", "ci.log", "net.py"]
    (site,) = json.loads(CliRunner().invoke(app, arguments).stdout)["sites"]
    assert (site["transform"], site["verdict"], site["action"]) == ("compiled-layout", "failing", action)
    assert site["reasons"][0]["text"].startswith("ci.log: view size is not compatible")
    assert site["reasons"][-1]["text"] == last
    assert bool(site["replacement"]) == (action == "rewrite")
