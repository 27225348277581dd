"""Where the batch of a bmm comes from decides."""

from __future__ import annotations

import pytest

from codemod.finding import Action, Verdict
from codemod.settings import Settings
from tests.transforms.programs import findings, rewritten

NAME = "chunk-bmm"
HEADER = "import torch\nfrom torch import nn\n"

LEFT_ALONE = {
    "two arguments": """
def f(a, b):
    return torch.bmm(a, b.transpose(1, 2))
""",
    "attention with heads of the configuration": """
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.head_dim = heads, width // heads
        self.q, self.k = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        b, t, _ = x.shape
        shape = (b * self.heads, -1, self.head_dim)
        q = self.q(x).view(b, t, self.heads, self.head_dim).transpose(1, 2).reshape(*shape)
        k = self.k(x).view(b, t, self.heads, self.head_dim).transpose(1, 2).reshape(*shape)
        return torch.bmm(q, k.transpose(1, 2)).softmax(-1)
""",
    "heads that come out of a shape": """
def f(q, k):
    b, heads, t, d = q.shape
    return torch.bmm(q.reshape(b * heads, t, d), k.reshape(b * heads, t, d).transpose(1, 2))
""",
    "experts of a parameter": """
class Experts(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n, d, d))

    def forward(self, x):
        return torch.bmm(x.view(self.weight.shape[0], -1, x.shape[-1]), self.weight)
""",
    "a slice for each step": """
def f(a, b, step):
    a, b = a.flatten(0, 1), b.flatten(0, 1)
    for i in range(0, a.size(0), step):
        part = a[i : i + step]
        yield torch.bmm(part, b[i : i + step])
""",
    "other products": """
def f(a, b):
    a, b = a.flatten(0, 1), b.flatten(0, 1)
    return a @ b, torch.matmul(a, b), torch.baddbmm(a, a, b), torch.einsum("bij,bjk->bik", a, b)
""",
    "an object with a bmm of its own": """
def f(ring, x):
    return ring.bmm(x.flatten(0, 1), x.flatten(0, 1))
""",
    "an exported dim": """
from torch.export import Dim
N = Dim("n", max=64)
def f(a, b):
    return torch.bmm(a.flatten(0, 1), b.flatten(0, 1))
""",
    "scripted": """
@torch.jit.script
def f(a, b):
    return torch.bmm(a.flatten(0, 1), b.flatten(0, 1))
""",
    "the helper itself": """
def chunked_bmm(a, b, step=32768):
    a, b = a.flatten(0, 1), b.flatten(0, 1)
    if a.size(0) <= step:
        return torch.bmm(a, b)
    return torch.cat([torch.bmm(p, q) for p, q in zip(a.split(step), b.split(step))])
""",
    "in a string": '''
TEXT = """torch.bmm(a.flatten(0, 1), b.flatten(0, 1))"""
''',
}


@pytest.mark.parametrize("program", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_left_alone(program: str) -> None:
    assert rewritten(HEADER + program, NAME) == HEADER + program


GROWING = {
    "frames": ("b, t, n, m = x.shape", "torch.bmm(x.view(b * t, n, m), y)"),
    "flattened": ("", "torch.bmm(x.flatten(0, 1), y)"),
    "all leading dims": ("", "torch.bmm(x.reshape(-1, x.shape[-2], x.shape[-1]), y)"),
    "a mask": ("hit = y[:, 0, 0] > 0", "torch.bmm(x[hit], y[hit])"),
    "found by nonzero": ("i = torch.nonzero(mask)[:, 0]", "torch.bmm(x[i], y[i])"),
    "windows of pixels": (
        "b, h, w, n, m = x.shape",
        "torch.bmm(x.reshape(b * (h // 2) * (w // 2), 4 * n, m), y)",
    ),
    "a count that a caller shows": ("", "torch.bmm(torch.ones(70000, 2, 3), y)"),
    "the result has a place": ("", "torch.bmm(x.flatten(0, 1), y, out=mask)"),
}


@pytest.mark.parametrize(("lines", "call"), GROWING.values(), ids=GROWING)
def test_a_batch_that_grows(lines: str, call: str) -> None:
    program = HEADER + f"def f(x, y, mask):\n    {lines or 'pass'}\n    return {call}\n"
    (finding,) = findings(program, NAME)
    assert finding.action is Action.REWRITE, finding.reasons
    assert finding.reasons
    assert finding.replacement == call.replace("torch.bmm", "chunked_bmm")


def test_the_reason_names_the_sizes() -> None:
    program = HEADER + "def f(x, y):\n    b, t, n, m = x.shape\n    return torch.bmm(x.view(b * t, n, m), y)\n"
    (finding,) = findings(program, NAME)
    assert finding.reasons[0].text == "the batch is `b` times `t`: it grows with each of them"


def test_a_call_in_the_file_brings_the_product() -> None:
    program = HEADER + (
        "def scores(a, b):\n    return {}(a, b)\n\ndef f(x, y):\n    return scores(x.flatten(0, 1), y.flatten(0, 1))\n"
    )
    after = rewritten(program.format("torch.bmm"), NAME)
    assert "return chunked_bmm(a, b)" in after
    renamed = rewritten("from torch import bmm as product\n" + program.format("product"), NAME)
    assert "return chunked_bmm(a, b)" in renamed


def test_the_import_is_added_once() -> None:
    program = HEADER + "def f(x, y):\n    x, y = x.flatten(0, 1), y.flatten(0, 1)\n    return x.bmm(y).bmm(x)\n"
    after = rewritten(program, NAME)
    assert after.count("import chunked_bmm") == 1
    assert "chunked_bmm(chunked_bmm(x, y), x)" in after
    assert rewritten(after, NAME) == after


def test_a_matrix_that_is_too_large_alone_is_reported() -> None:
    program = HEADER + (
        "def f(a, b):\n    return torch.bmm(a, b)\n\n"
        "def main():\n    row = torch.empty(1, 72250, 1, device='meta')\n    f(row, row.transpose(1, 2))\n"
    )
    (finding,) = findings(program, NAME)
    assert finding.action is Action.REPORT


@pytest.mark.parametrize("declared", ["f", "Net.f", "program.py:f", "program.py:Net.f"])
def test_the_settings_name_a_function(declared: str) -> None:
    program = HEADER + "class Net:\n    def f(self, a, b):\n        return torch.bmm(a, b)\n"
    (finding,) = findings(program, NAME, Settings(dynamic_batch=(declared,)))
    assert finding.action is Action.REWRITE


FREE = Settings(torch="2.13")
FRAMES = "def f(x, y):\n    b, t, n, m = x.shape\n    return torch.bmm(x.view(b * t, n, m), y)\n"


def test_code_for_a_torch_that_launches_any_batch_is_left_alone() -> None:
    (finding,) = findings(HEADER + FRAMES, NAME, FREE)
    assert (finding.action, finding.verdict.value) == (Action.KEEP, "unknown")
    assert finding.reasons[-1].text == "kernels of torch 2.13, the lowest that this code is for, launch any batch"


@pytest.mark.parametrize(
    ("program", "settings"),
    [
        (FRAMES, Settings(torch="2.12.1")),
        ("def f(x, y):\n    return torch.bmm(x.flatten(0, 1).unsqueeze(-1), y.flatten(0, 1).unsqueeze(1))\n", FREE),
        ("def f(x, y):\n    return torch.bmm(x, y)\n", Settings(torch="2.13", dynamic_batch=("f",))),
        (
            "def f(a, b):\n    return torch.bmm(a, b)\n\n"
            "def main():\n    a = torch.empty(70000, 200, 200, device='meta')\n    f(a, a)\n",
            FREE,
        ),
    ],
    ids=["an older torch too", "outer products", "named by the settings", "too many elements"],
)
def test_what_a_newer_torch_does_not_mend(program: str, settings: Settings) -> None:
    (finding,) = findings(HEADER + program, NAME, settings)
    assert finding.action is Action.REWRITE


GROWING = "\ndef f(x, y):\n    b, t, n, m = x.shape\n    return {0}(x.reshape(b * t, n, m), y.reshape(b * t, m, n))\n"


@pytest.mark.parametrize(
    "dims",
    [
        "from torch.export import Dim as D\nN = D('n', max=64)\n",
        "from torch.export import Dim as D\nSPEC = {}\nSPEC['x'] = {0: D.AUTO}\n",
        "from torch.export import dims\nN, M = dims('n', 'm', max=64)\n",
        "import torch.export as ex\nN = ex.Dim.DYNAMIC(max=64)\n",
        "import torch\nN = torch.export.Dim('n', max=64)\n",
    ],
)
def test_an_exported_dim_by_whatever_name_is_to_be_bounded_instead(dims: str) -> None:
    (finding,) = findings(HEADER + dims + GROWING.format("torch.bmm"), NAME)
    assert finding.action is Action.KEEP
    assert any("bound that instead" in reason.text for reason in finding.reasons)


@pytest.mark.parametrize(
    "dims",
    ["from xarray import Dim\nN = Dim('n')\n", "from units import registry\nN = registry.AUTO()\n", "N = 'Dim(n)'\n"],
)
def test_another_dim_bounds_no_bmm(dims: str) -> None:
    (finding,) = findings(HEADER + dims + GROWING.format("torch.bmm"), NAME)
    assert finding.action is Action.REWRITE


def test_a_bmm_by_another_name_is_found() -> None:
    text = "from torch import bmm as product\n" + GROWING.format("product")
    assert "return chunked_bmm(" in rewritten(text, NAME)


def test_a_batch_is_not_that_of_a_scale_beside_what_is_not_followed() -> None:
    program = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, config, helper):
        super().__init__()
        self.cap = nn.Buffer(torch.tensor(config.cap))
        self.helper = helper

    def forward(self, q):
        scores = self.helper(q) / self.cap
        b, h, t, s = scores.shape
        rows = scores.reshape(-1, t, s)
        return torch.bmm(rows, rows.transpose(1, 2))
"""
    (finding,) = findings(program, NAME)
    assert finding.verdict is not Verdict.SAFE
