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


COUNTED_ON = {
    "a caller goes another way": (
        "def flat(x):\n    return x.t().view(-1)\n"
        "def f(x):\n    try:\n        return flat(x)\n    except RuntimeError:\n        return None\n"
    ),
    "a caller leaves it out": (
        "import contextlib\ndef flat(x, out):\n    out.append(x.t().view(-1))\n"
        "def f(x, out):\n    with contextlib.suppress(RuntimeError):\n        flat(x, out)\n"
    ),
    "suppressed": (
        "import contextlib\ndef f(x):\n    with contextlib.suppress(ValueError, RuntimeError):\n"
        "        return x.t().view(-1)\n"
    ),
    "a test of the error": (
        "import pytest\ndef test(x):\n    with pytest.raises(RuntimeError, match='view'):\n        x.t().view(-1)\n"
    ),
    "a method of unittest": (
        "class Test:\n    def test(self):\n        with self.assertRaises(RuntimeError):\n"
        "            torch.zeros(3, 4).t().view(-1)\n"
    ),
    "a test that is to fail": "import pytest\n@pytest.mark.xfail(strict=True)\ndef test(x):\n    x.t().view(-1)\n",
    "told from others by its message": (
        "def f(x):\n    try:\n        return x.t().view(-1)\n    except RuntimeError as error:\n"
        "        if 'contiguous' in str(error):\n            return None\n        raise\n"
    ),
}


@pytest.mark.parametrize("program", COUNTED_ON.values(), ids=COUNTED_ON)
def test_an_error_that_somebody_counts_on_stays(program: str) -> None:
    assert rewritten("import torch\n" + program, NAME) == "import torch\n" + program
    assert actions("import torch\n" + program, NAME) == [Action.REPORT]


NOT_COUNTED_ON = {
    "handed on": (
        "def f(x):\n    try:\n        return x.t().view(-1)\n    except RuntimeError as error:\n"
        "        raise ValueError('no') from error\n"
    ),
    "another error": (
        "def f(x):\n    try:\n        return x.t().view(-1)\n    except RuntimeError as error:\n"
        "        if 'out of memory' in str(error):\n            return None\n        raise\n"
    ),
    "another kind": ("import pytest\ndef test(x):\n    with pytest.raises(ValueError):\n        x.t().view(-1)\n"),
    "a caller tells of it": (
        "def flat(x):\n    return x.t().view(-1)\n"
        "def f(x):\n    try:\n        flat(x)\n    except RuntimeError as error:\n        message = str(error)\n"
        "        ok = False\n"
    ),
    "a caller takes any error": (
        "def flat(x):\n    return x.t().view(-1)\n"
        "def f(x):\n    try:\n        flat(x)\n    except Exception:\n        return None\n"
    ),
}


@pytest.mark.parametrize("program", NOT_COUNTED_ON.values(), ids=NOT_COUNTED_ON)
def test_an_error_that_nobody_counts_on_is_mended(program: str) -> None:
    assert actions("import torch\n" + program, NAME) == [Action.REWRITE]
