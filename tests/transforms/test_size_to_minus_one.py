"""Hard-coded sizes: most stay; a batch that is shown to vary goes."""

from __future__ import annotations

import pytest

from codemod.finding import Action, Verdict
from codemod.settings import Settings, SizeSpelling
from tests.transforms.programs import findings, rewritten

NAME = "size-to-minus-one"
HEADER = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n"

LEFT_ALONE = {
    "feature axes": """
def f(x):
    b = x.shape[0]
    return x.view(b, 3, 4, -1), x.view(2, 3, -1)
""",
    "a parameter of the model": """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64, 3))

    def forward(self, x):
        return x @ self.weight.view(64, -1)

def main(data):
    return [M()(x) for x in DataLoader(data, batch_size=64)]
""",
    "another constant of the same value": """
HIDDEN = 32
def f(x):
    b, c = x.shape
    return x.t().reshape(HIDDEN, -1)
def main(data):
    return [f(x) for x in DataLoader(data, batch_size=32)]
""",
    "a size read from the tensor": """
def f(x):
    batch = x.shape[0]
    return x.view(batch, -1)
def main():
    f(torch.ones(2, 3)), f(torch.ones(4, 3))
""",
    "the batch is an argument without default": """
def f(x, batch):
    return x.view(batch, -1)
def main():
    f(torch.ones(2, 3), 2), f(torch.ones(4, 3), 4)
""",
    "a try that counts on the refusal": """
def f(x):
    b, c = x.shape
    return x.view(4, c)
def main():
    try:
        f(torch.ones(3, 5))
    except RuntimeError:
        pass
""",
    "a sharded axis": """
def f(q, heads, width):
    b, t, _ = q.shape
    return q.view(b, t, heads, width)
def main():
    q = torch.rand(2, 4, 32)
    f(q, 8, 4), f(q.chunk(4, -1)[0], 8, 4)
""",
    "two calls of different meaning": """
def f(x):
    return x.view(4, -1)
def main():
    f(torch.ones(4, 3)), f(torch.ones(2, 6))
""",
    "numpy": """
import numpy as np
BATCH = 4
def f(data):
    for x in DataLoader(data, batch_size=BATCH):
        pass
    return np.ones(8).reshape(BATCH, 2)
""",
    "a loader of a batch sampler": """
def f(x):
    return x.view(8, 3)
def main(data, sampler):
    return [f(x) for x in DataLoader(data, batch_sampler=sampler)]
""",
}


@pytest.mark.parametrize("program", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_left_alone(program: str) -> None:
    assert rewritten(HEADER + program, NAME) == HEADER + program


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.view(BATCH, -1)", "x.view(x.shape[0], -1)"),
        ("x.view((BATCH, c * h))", "x.view((-1, c * h))"),
        ("x.view(size=(BATCH, c, -1))", "x.view(size=(-1, c, h))"),
        ("x.reshape(BATCH, c * h)", "x.reshape(-1, c * h)"),
        ("x.view(8, c * h)", "x.view(-1, c * h)"),
        ("(x * 2).view(BATCH, c, -1)", "(x * 2).view(-1, c, h)"),
        ("(x * 2).view(BATCH, -1)", "(x * 2).view(b, -1)"),
        ("x.view(  # all\n        BATCH, c * h)", "x.view(  # all\n        -1, c * h)"),
        ("x.transpose(0, 1).reshape(c, BATCH, h)", "x.transpose(0, 1).reshape(c, -1, h)"),
    ],
)
def test_the_batch_of_a_loader(before: str, after: str) -> None:
    program = (
        HEADER + "BATCH = 8\ndef f(x):\n    b, c, h = x.shape\n    return {}\n"
        "def main(data):\n    return [f(x) for x in DataLoader(data, batch_size=BATCH)]\n"
    )
    assert rewritten(program.format(before), NAME) == program.format(after)


def test_the_receiver_of_unknown_rank_at_the_loaders_batch() -> None:
    program = HEADER + (
        "def train(net, data, args):\n    for x, y in DataLoader(data, batch_size=args.batch_size):\n"
        "        net(x.view({}, 784), y)\n"
    )
    assert rewritten(program.format("args.batch_size"), NAME) == program.format("-1")


def test_both_views_of_a_shuffle_with_a_batch_of_one() -> None:
    program = (
        HEADER
        + """
def shuffle(x, groups, batch=1):
    _, c, h, w = x.shape
    x = x.view({}, groups, c // groups, h, w)
    x = x.transpose(1, 2).contiguous()
    return x.view({}, h, w)

def main():
    shuffle(torch.rand(1, 6, 2, 2), 2)
    shuffle(torch.rand(3, 6, 2, 2), 2)
"""
    )
    assert rewritten(program.format("batch", "batch, -1"), NAME) == program.format("-1", "-1, c")


def test_elements_that_no_batch_explains_are_reported() -> None:
    program = HEADER + (
        "BATCH = 2\ndef f(z):\n    return z.reshape(-1, 4).view(BATCH, 3, 4)\n"
        "def main():\n    f(torch.rand(6, 4))\n    f(torch.rand(6, 8))\n"
    )
    (finding,) = findings(program, NAME)
    assert finding.verdict is Verdict.WRONG_SIZE
    assert finding.action is Action.REPORT
    assert "48 elements" in finding.reasons[0].text
    assert finding.reasons[0].line == 9


def test_a_shorter_batch_is_taken_for_one() -> None:
    program = HEADER + (
        "BATCH = 2\ndef f(z):\n    return z.reshape(-1, 4).view({}, 3, 4)\n"
        "def main():\n    f(torch.rand(6, 4))\n    f(torch.rand(3, 4))\n"
    )
    assert rewritten(program.format("BATCH"), NAME) == program.format("-1")


def test_the_shape_keeps_the_check() -> None:
    program = (
        HEADER + "def f(x, batch=1):\n    b, c, h = x.shape\n    return x.view({}, c * h)\n\nf(torch.ones(3, 4, 5))\n"
    )
    settings = Settings(size=SizeSpelling.SHAPE)
    assert rewritten(program.format("batch"), NAME, settings) == program.format("x.shape[0]")


REGROUPED = """
def heads(q, batch, n, d):
    return q.view(batch, -1, n, d)

def main():
    whole = torch.rand(2, 6, 32)
    heads(whole, 2, 8, 4)
    heads(whole[..., :16], 2, 8, 4)
"""


def test_a_minus_one_that_regroups_in_one_call_is_reported() -> None:
    (finding,) = findings(HEADER + REGROUPED, NAME)
    assert finding.verdict is Verdict.WRONG_SIZE
    assert finding.action is Action.REPORT


def test_what_regroups_does_not_become_a_reshape_either() -> None:
    assert rewritten(HEADER + REGROUPED, "view-to-reshape") == HEADER + REGROUPED


@pytest.mark.parametrize(
    "program",
    [
        "def f(x):\n    return x.view(2, -1)\n\nf(torch.ones(2, 3)), f(torch.ones(2, 3, 4))\n",
        "def f(x):\n    return x.view(2, -1, 4)\n\nf(torch.ones(2, 3, 4)), f(torch.ones(2, 3, 2, 4))\n",
        "def f(x):\n    return x.view(2, -1, 8, 4)\n\nf(torch.ones(2, 3, 32)), f(torch.ones(2, 6, 32))\n",
    ],
)
def test_a_minus_one_that_flattens_is_no_finding(program: str) -> None:
    assert not findings(HEADER + program, NAME)


@pytest.mark.parametrize(
    "program",
    [
        "def f(x, group=4):\n    n, c = x.shape\n    return x.view(group, -1, c)\n\n"
        "f(torch.ones(4, 3)), f(torch.ones(8, 3)), f(torch.ones(6, 3))\n",
        "N = 4\n\ndef f(x):\n    return x.view(N, -1, 3)\n\ndef main(data):\n"
        "    return [f(x.reshape(-1, 3)) for x in DataLoader(data, batch_size=N)]\n",
    ],
    ids=["groups of rows", "rows folded into the batch"],
)
def test_a_number_that_groups_beside_a_minus_one_stays(program: str) -> None:
    assert rewritten(HEADER + program, NAME) == HEADER + program
