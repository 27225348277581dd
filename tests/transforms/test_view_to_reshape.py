"""Which views are rewritten, beyond the examples."""

from __future__ import annotations

import pytest

from codemod.finding import Action
from codemod.settings import Settings, Sites, To
from tests.transforms.programs import actions, rewritten

NAME = "view-to-reshape"
ALL = Settings(sites=Sites.ALL)

NOT_FOLLOWED = {
    "a function of a module": "from lib import ops\ndef f(x):\n    return ops.view(x, [-1, 3])\n",
    "a function of a module with dots": "import lib.ops\ndef f(x):\n    return lib.ops.view(x, -1)\n",
    "a function by its own name": "from lib import view\ndef f(x):\n    return view(x, [-1])\n",
    "an argument that is called": "def f(x, view):\n    return view(x, [-1])\n",
}


@pytest.mark.parametrize("program", NOT_FOLLOWED.values(), ids=NOT_FOLLOWED)
def test_what_may_be_no_tensor_method_is_left_alone_at_every_level(program: str) -> None:
    assert rewritten(program, NAME, ALL) == program


def test_a_method_under_a_bare_name_is_reported() -> None:
    program = "import torch\nview = torch.Tensor.view\ndef f(x):\n    return view(x.t(), -1)\n"
    assert rewritten(program, NAME) == program
    assert actions(program, NAME) == [Action.REPORT]


def test_a_second_contiguous_is_never_added() -> None:
    program = "def f(x, is_on):\n    y = x if is_on else None\n    return y.view(-1)\n"
    settings = Settings(sites=Sites.ALL, to=To.CONTIGUOUS)
    once = rewritten(program, NAME, settings)
    assert "y.contiguous().view(-1)" in once
    assert rewritten(once, NAME, settings) == once
