"""Turn a batch size that is written into a `.view()` or `.reshape()` into `-1`.

A number in the place of the batch fits one batch only: the last one of a loader may be shorter, a caller may bring
another, an exported dim is pinned to it.  `-1` takes the batch as it comes.  Where the target has a `-1` of its own,
that one gets its size by name, or the batch is read from the receiver: `x.shape[0]`.

Left alone: every number that nothing in the file shows to be a batch that varies, which is nearly all of them; a
target with other numbers of elements than any batch would explain (reported); sizes on feature axes; a size of 0.
A call that was accepted means the same afterwards.  What goes is the refusal of a wrong number of elements.

Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html
"""

from __future__ import annotations

from typing import ClassVar, TypeVar

import libcst as cst

from codemod.evidence.failure import Kind
from codemod.finding import Action, Finding, Reason, Rewrite, Verdict
from codemod.layout.op_call import HardCoded, OpCall
from codemod.settings import Settings, SizeSpelling
from codemod.transform import Example, Transform

_Item = TypeVar("_Item", cst.Arg, cst.BaseElement)

_LOADER = """import torch
from torch.utils.data import DataLoader

BATCH = 4


def rows(x):
    b, c, h = x.shape
    return x.view({0}, c * h)


def run(data):
    return [rows(x) for x in DataLoader(data, batch_size=BATCH{1})]
"""
_CALLER = """import torch


def split(x, batch=1):
    b, c, h = x.shape
    return x.view({0}, c, h // 2, 2)


def main():
    return split(torch.ones({1}, 3, 4))
"""
_INFERRED = """import torch


def split(x, batch=1):
    b, c, h = x.shape
    x = x.view({0}, c, h // 2, 2)
    return x.view({1}, 2)


def main():
    return split(torch.ones(2, 3, 4))
"""
_EXPORTED = """import torch
from torch import nn
from torch.export import Dim, export


class Flat(nn.Module):
    def forward(self, x):
        return x.view({0}, -1)


def main():
    return export(Flat(), (torch.rand({1}, 3, 4),), dynamic_shapes={{"x": {{0: Dim("n", max=64)}}}})
"""


class SizeToMinusOne(Transform):
    """`settings.size` chooses between `-1` and `x.shape[0]`, which also refuses a wrong number of elements."""

    name: ClassVar[str] = "size-to-minus-one"
    summary: ClassVar[str] = "turn a hard-coded batch size into -1 where the batch is shown to vary"
    operations: ClassVar[frozenset[str]] = frozenset({"view", "reshape"})
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a loader's last batch is shorter",
            _LOADER.format("BATCH", ""),
            _LOADER.format("-1", ""),
            verdict="failing",
            check="rows(torch.ones(4, 2, 3))",
        ),
        Example(
            "the check of the size stays",
            _LOADER.format("BATCH", ""),
            _LOADER.format("x.shape[0]", ""),
            verdict="failing",
            settings=Settings(size=SizeSpelling.SHAPE),
            check="rows(torch.ones(4, 2, 3))",
        ),
        Example(
            "a call passes another batch than the default",
            _CALLER.format("batch", 5),
            _CALLER.format("-1", 5),
            verdict="failing",
            check="split(torch.ones(1, 3, 4))",
        ),
        Example(
            "the target has a -1 already",
            _INFERRED.format("batch", "batch, c, -1"),
            _INFERRED.format("-1", "x.shape[0], c, -1"),
            verdict="failing",
            check="split(torch.ones(1, 3, 4))",
        ),
        Example(
            "an exported dim is pinned to the example's batch",
            _EXPORTED.format(32, 32),
            _EXPORTED.format("x.shape[0]", 32),
            verdict="failing",
            check="Flat()(torch.ones(32, 2, 3))",
        ),
        Example(
            "the loader drops the shorter batch",
            _LOADER.format("BATCH", ", drop_last=True"),
            check="rows(torch.ones(4, 2, 3))",
        ),
        Example(
            "every call passes the batch that is written",
            _CALLER.format("batch", 1),
            check="main()",
        ),
        Example(
            "three numbers a point",
            "import torch\n\n\ndef points(x):\n    return x.view(3, -1)\n",
            check="points(torch.ones(3, 4))",
        ),
        Example(
            "nothing says that this number is a batch",
            "import torch\n\n\ndef rows(x):\n    return x.view(4, 6).reshape(8, 3)\n",
            check="rows(torch.ones(4, 2, 3))",
        ),
        Example(
            "the exported dim is not the one that is written",
            _EXPORTED.format(3, 32),
            check="Flat()(torch.ones(32, 2, 3))",
        ),
        Example(
            "more elements than a batch explains: -1 would hide it",
            "import torch\n\n\ndef rows(x):\n    return x.flatten().view(4, 6)\n\n\ndef main():\n"
            "    rows(torch.ones(4, 6))\n    rows(torch.ones(4, 9))\n",
            verdict="wrong-size",
            check="rows(torch.ones(4, 6))",
        ),
        Example(
            "a test that expects the refusal",
            "import pytest\nimport torch\n\n\ndef rows(x):\n    b, c = x.shape\n    return x.view(4, c)\n\n\n"
            "def test_rows():\n    with pytest.raises(RuntimeError):\n        rows(torch.ones(3, 6))\n",
            check="rows(torch.ones(4, 6))",
        ),
    )

    def decide(self, call: OpCall, settings: Settings) -> Finding | None:
        size = call.hard_coded
        if size is None:
            return self._unexplained(call)
        if size.contradicts:
            return self._report(call, Verdict.WRONG_SIZE, _wrong(call, size), size.contradicts)
        edit = _edit(size, settings)
        if edit is None or call.is_guarded:
            return self._report(call, Verdict.FAILING, _message(call, size), size.varies)
        rewrites = (Rewrite(self.name, edit),)
        return Finding(
            call.path,
            call.span,
            self.name,
            Verdict.FAILING,
            Action.REWRITE,
            _message(call, size),
            size.varies,
            rewrites,
        )

    def _unexplained(self, call: OpCall) -> Finding | None:
        """Seen to fail, and no size of the target is known to be the cause."""
        shown = call.seen.of(Kind.SHAPE_INVALID, Kind.SPECIALIZED)
        reasons = tuple(one.reason for one in shown)
        message = f".{call.operation}() got elements that do not fit, and which size is wrong cannot be told"
        return self._report(call, Verdict.WRONG_SIZE, message, reasons) if shown else None

    def _report(self, call: OpCall, verdict: Verdict, message: str, reasons: tuple[Reason, ...]) -> Finding:
        return Finding(call.path, call.span, self.name, verdict, Action.REPORT, message, reasons)

    def rewrite(self, call: cst.Call, rewrite: Rewrite) -> cst.BaseExpression:
        texts = {int(position): text for position, text in rewrite.arguments}
        first = call.args[0]
        if len(call.args) == 1 and isinstance(first.value, cst.Tuple | cst.List):
            elements = [_sized(element, texts.get(i)) for i, element in enumerate(first.value.elements)]
            return call.with_changes(args=[first.with_changes(value=first.value.with_changes(elements=elements))])
        return call.with_changes(args=[_sized(argument, texts.get(i)) for i, argument in enumerate(call.args)])


def _edit(size: HardCoded, settings: Settings) -> tuple[tuple[str, str], ...] | None:
    """The texts that go to positions of the target; None where no expression for them is known."""
    position = str(size.position)
    if settings.size is SizeSpelling.SHAPE and size.batch_text:
        return ((position, size.batch_text),)
    if size.inferred_at is None:
        return ((position, "-1"),)
    if size.inferred_text:
        return (position, "-1"), (str(size.inferred_at), size.inferred_text)
    return ((position, size.batch_text),) if size.batch_text else None


def _sized(item: _Item, text: str | None) -> _Item:
    return item if text is None else item.with_changes(value=cst.parse_expression(text))


def _message(call: OpCall, size: HardCoded) -> str:
    what = "a dim" if size.position else "the batch"
    return f".{call.operation}() fixes {what} at `{size.text}`; without it, a wrong number of elements is not refused"


def _wrong(call: OpCall, size: HardCoded) -> str:
    if size.text == "-1":
        return f".{call.operation}() regroups the elements in some calls: its -1 stands for another size than meant"
    return f".{call.operation}() gets elements that do not fit; -1 instead of `{size.text}` would only hide it"
