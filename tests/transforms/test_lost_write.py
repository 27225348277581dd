"""Writes to a copy: reported only where they can be lost."""

from __future__ import annotations

import pytest

from codemod.finding import Action, Verdict
from tests.transforms.programs import findings, rewritten

NAME = "lost-write"
HEADER = "import torch\nfrom torch import nn\nFORMAT = torch.channels_last\n"

LEFT_ALONE = {
    "a fresh tensor": "x = torch.zeros(3, 4)\nx.flatten()[0] = 1\nx.reshape(-1).fill_(2)\nx.contiguous().zero_()\n",
    "a tensor that nobody else can read": "def f(v):\n    x = torch.eye(3).t().contiguous()\n    x[0] = v\n",
    "a split": "def f(x):\n    b, c = x.shape\n    x.t().reshape(2, c // 2, b).zero_()\n",
    "a result that is returned": "def f(x):\n    return x.t().reshape(-1).zero_()\n",
    "a name that is read": "def f(x):\n    y = x.t().flatten()\n    y.zero_()\n    return y\n",
    "a name that is handed on": "def f(x, g):\n    y = x.t().flatten()\n    y[0] = 1\n    g(y)\n",
    "a name that is used in a closure": "def f(x):\n    y = x.t().flatten()\n    y[0] = 1\n    return lambda: y\n",
    "views": "def f(x):\n    x.t().view(-1).zero_()\n",
    "numpy": "import numpy as np\ndef f():\n    np.ones((2, 3)).T.reshape(-1)[0] = 1\n",
    "nothing is written": "def f(x):\n    x.t().reshape(-1)\n    return x.reshape(-1).sum()\n",
}


@pytest.mark.parametrize("program", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_left_alone(program: str) -> None:
    assert not findings(HEADER + program, NAME)


LOST = {
    "copied into": "x.reshape(-1).copy_(v)",
    "an item": "x.flatten()[0] = v",
    "augmented": "x.flatten()[1:] += v",
    "flattened from dim 1": "x.flatten(1).mul_(2)",
    "through a slice": "x.reshape(-1)[:2].add_(v)",
    "through a transpose": "x.reshape(-1, 2).t().fill_(0)",
    "of a transpose": "x.t().contiguous().zero_()",
    "in another memory format": "x = torch.zeros(1, 2, 3, 4)\n    x.contiguous(memory_format=FORMAT).zero_()",
    "out": "torch.add(v, v, out=x.ravel())",
    "an init function": "nn.init.zeros_(x.flatten())",
    "like another": "x.reshape_as(v).zero_()",
    "through a name": "y = x.reshape(-1)\n    y[0] = v\n    y.add_(1)",
    "every second": "x = torch.zeros(8)\n    x[::2].contiguous().fill_(1)",
}


@pytest.mark.parametrize("statement", LOST.values(), ids=LOST)
def test_reported(statement: str) -> None:
    program = f"{HEADER}def f(x, v):\n    {statement}\n    return x\n"
    (finding,) = findings(program, NAME)
    assert finding.verdict is Verdict.WRITTEN_THROUGH
    assert finding.action is Action.REPORT
    assert finding.reasons
    assert rewritten(program, NAME) == program
