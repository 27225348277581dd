"""Report what is written in place to a `.reshape()`, `.flatten()` or `.contiguous()` and then thrown away.

These ops return a view where there is one, and a copy where there is none.  Written to a view, the values reach the
tensor; written to a copy that has no name, they are lost, without an error.  `.view()` refuses instead, and indexing
the tensor itself always works.

Left alone: what is a view for every layout that reaches it; a result that is read afterwards, or returned.

Source: https://docs.pytorch.org/docs/stable/tensor_view.html; https://github.com/pytorch/pytorch/issues/88999
"""

from __future__ import annotations

from typing import ClassVar

from codemod.finding import Action, Finding, Verdict
from codemod.layout.op_call import OpCall
from codemod.layout.verdict import rule_on
from codemod.settings import Settings
from codemod.transform import Example, Transform


class LostWrite(Transform):
    """Only reports: whether the copy or the write was meant is for the author to say."""

    name: ClassVar[str] = "lost-write"
    summary: ClassVar[str] = "report in-place writes to a reshape that may be a copy"
    operations: ClassVar[frozenset[str]] = frozenset({"reshape", "reshape_as", "flatten", "contiguous", "ravel"})
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a caller may pass a transposed tensor",
            "def load(x, values):\n    x.reshape(-1).copy_(values)\n",
            verdict="written-through",
        ),
        Example(
            "items of a copy",
            "def clear(x, at):\n    x.t().flatten()[at] = 0\n    return x\n",
            verdict="written-through",
            check="clear(torch.ones(2, 3), 1)",
        ),
        Example(
            "a name that is only written",
            "def clear(x):\n    flat = x.t().reshape(-1)\n    flat[0] = 0\n    return x\n",
            verdict="written-through",
            check="clear(torch.ones(2, 3))",
        ),
        Example(
            "a fresh tensor is contiguous",
            "import torch\n\n\ndef mask(at):\n    m = torch.zeros(3, 4)\n    m.reshape(-1)[at] = 1\n    return m\n",
            check="mask(5)",
        ),
        Example(
            "a dim is split: always a view",
            "def halves(x):\n    b, c = x.shape\n    x.t().reshape(2, c // 2, b)[0] = 0\n    return x\n",
            check="halves(torch.ones(2, 4))",
        ),
        Example(
            "what was written is returned",
            "def flat(x):\n    y = x.t().reshape(-1)\n    y[0] = 0\n    return y\n",
            check="flat(torch.ones(2, 3))",
        ),
        Example(
            "the result of the write is used",
            "def flat(x):\n    return (x.t() * 2).flatten().clamp_(0, 1)\n",
            check="flat(torch.ones(2, 3))",
        ),
    )

    def decide(self, call: OpCall, settings: Settings) -> Finding | None:
        if not call.is_temporary or not call.writes:
            return None
        ruling = rule_on(call)
        if ruling.verdict is not Verdict.WRITTEN_THROUGH:
            return None
        message = f".{call.operation}() may be a copy, and what is written to it would be lost"
        return Finding(call.path, call.span, self.name, Verdict.WRITTEN_THROUGH, Action.REPORT, message, ruling.reasons)
