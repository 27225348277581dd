"""Give `torch.export.Dim` an upper bound.

An exported program accepts any size of a `Dim` that has no `max`, and meets the limits of its kernels when it runs.
With a bound it refuses at the door, with a message that names the dim.

The bound comes from the settings (`max-batch`), or from what the file itself shows: a bmm over that dim, whose kernels
take the batch as a grid dimension, of which there are 65,535, in torch before 2.13.  Reported, and not rewritten: a Dim
of which neither is known, one for which a larger size was recorded, and one whose example input has size 0 or 1, which
torch.export takes for a constant.  Left alone: other Dims with a bound; `Dim.AUTO` and `Dim.DYNAMIC` without
brackets; those of another library.

Source: https://docs.pytorch.org/docs/stable/export.html, https://github.com/pytorch/pytorch/issues/178617
"""

from __future__ import annotations

import ast
from typing import ClassVar

import libcst as cst

from codemod.finding import Action, Finding, Reason, Rewrite, Verdict
from codemod.known_issues import is_mended
from codemod.layout.batch import GRID_ISSUE, GRID_LIMIT
from codemod.layout.op_call import OpCall
from codemod.layout.sites import TORCH_DIM
from codemod.layout.value import Number
from codemod.settings import Settings
from codemod.transform import Example, Transform

_NOT_KNOWN = Reason("neither the settings (`max-batch`) nor a bmm over this dim say how large it may get")
_FIXED = "Dim whose example input has size 0 or 1: torch.export refuses it, or, for AUTO, takes that size alone"
_NO_BOUND = 2**31 - 1
"""From here on a `max` says no more than that sizes are integers."""
_SPELLED = ("sys.maxsize", "int_oo", "float('inf')", "math.inf", "None")

_BMM = """import torch
from torch import nn
from torch.export import Dim, export


class Pairs(nn.Module):
    def forward(self, a, b):
        return torch.bmm(a, b)


def main():
    n = {0}
    return export(Pairs(), (torch.rand(4, 3, 5), torch.rand(4, 5, 2)), dynamic_shapes={{"a": {{0: n}}, "b": {{0: n}}}})
"""
_ROWS = """import torch
from torch.export import Dim


def dims():
    return {{"x": {{0: {0}}}}}
"""


class BoundDim(Transform):
    """A bound from the settings goes before one that the file shows."""

    name: ClassVar[str] = "bound-dim"
    summary: ClassVar[str] = "give torch.export.Dim an upper bound"
    operations: ClassVar[frozenset[str]] = frozenset({"Dim"})
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a bmm runs over the dim",
            _BMM.format('Dim("n")'),
            _BMM.format('Dim("n", max=65535)'),
            verdict="failing",
        ),
        Example(
            "the settings know the largest batch",
            _ROWS.format('Dim("n", min=2)'),
            _ROWS.format('Dim("n", min=2, max=1024)'),
            verdict="failing",
            settings=Settings(max_batch=1024),
        ),
        Example(
            "a bound that bounds nothing",
            _BMM.format('Dim("n", max=2**31 - 1)'),
            _BMM.format('Dim("n", max=65535)'),
            verdict="failing",
        ),
        Example("a bound is there", _BMM.format('Dim("n", max=256)')),
        Example("neither the settings nor the file know a bound", _ROWS.format('Dim("n")'), verdict="unknown"),
        Example("the minimum is above the bound", _BMM.format('Dim("n", min=100_000)'), verdict="unknown"),
        Example(
            "the example input has one row, which fixes the dim",
            _BMM.format('Dim("n", max=256)').replace("rand(4, ", "rand(1, "),
            verdict="failing",
        ),
        Example(
            "the code is for a torch whose kernels launch any batch",
            _BMM.format('Dim("n")'),
            verdict="unknown",
            settings=Settings(torch="2.13"),
        ),
        Example(
            "a Dim of another kind",
            'class Dim:\n    def __init__(self, name):\n        self.name = name\n\n\nn = Dim("n")\n',
            check="n.name",
        ),
    )

    def decide(self, call: OpCall, settings: Settings) -> Finding | None:
        if not call.observations or any(one.receiver != TORCH_DIM for one in call.observations):
            return None
        if any(keyword.arg is None for keyword in call.node.keywords):
            return None
        if _is_bounded(call):
            return self._report(call, Verdict.FAILING, _FIXED, call.fixing) if call.fixing else None
        bound = settings.max_batch or (GRID_LIMIT if _meets_grid(call, settings) else None)
        refused = _refused(call, bound)
        if bound is None or refused:
            message = "Dim without an upper bound: an exported program accepts sizes that its kernels may not"
            return self._report(call, Verdict.UNKNOWN, message, (refused or _NOT_KNOWN, *_recorded(call), *call.fixing))
        rewrites = (Rewrite(self.name, (("max", str(bound)),)),)
        message = "Dim without an upper bound: the exported program fails only when it runs"
        reasons = (*_reasons(call, settings), *_recorded(call), *call.fixing)
        return Finding(call.path, call.span, self.name, Verdict.FAILING, Action.REWRITE, message, reasons, rewrites)

    def _report(self, call: OpCall, verdict: Verdict, message: str, reasons: tuple[Reason, ...]) -> Finding:
        return Finding(call.path, call.span, self.name, verdict, Action.REPORT, message, reasons)

    def rewrite(self, call: cst.Call, rewrite: Rewrite) -> cst.BaseExpression:
        bound = cst.Integer(rewrite.get("max"))
        names = [argument.keyword.value if argument.keyword else "" for argument in call.args]
        if "max" in names:
            i = names.index("max")
            return call.with_changes(args=[*call.args[:i], call.args[i].with_changes(value=bound), *call.args[i + 1 :]])
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        added = cst.Arg(bound, keyword=cst.Name("max"), equal=equal)
        if not call.args:
            return call.with_changes(args=[added])
        *others, last = call.args
        added = added.with_changes(comma=last.comma)
        between = others[-1].comma if others else cst.Comma(whitespace_after=_gap(call, last))
        return call.with_changes(args=[*others, last.with_changes(comma=between), added])


def _gap(call: cst.Call, last: cst.Arg) -> cst.BaseParenthesizableWhitespace:
    """What stands before the first argument, where each has its own line."""
    is_tall = isinstance(last.comma, cst.Comma) and isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace)
    return call.whitespace_before_args if is_tall else cst.SimpleWhitespace(" ")


def _reasons(call: OpCall, settings: Settings) -> tuple[Reason, ...]:
    if settings.max_batch:
        return (Reason(f"the settings say that a batch has at most {settings.max_batch}"),)
    return (*call.batches, Reason(f"kernels of bmm take at most {GRID_LIMIT:,} matrices in one launch"))


def _meets_grid(call: OpCall, settings: Settings) -> bool:
    """Whether a bmm takes it whose kernels, in some torch that the code is for, end at the grid."""
    return bool(call.batches) and not is_mended(GRID_ISSUE, settings.torch)


def _refused(call: OpCall, bound: int | None) -> Reason | None:
    """The size that this bound would refuse, though the program or a recorded run has it."""
    least = _number(call, "min")
    if bound is None:
        return None
    if least is not None and least > bound:
        return Reason(f"the minimum, {least:,}, is above the bound that is known, {bound:,}")
    if call.largest is not None and call.largest > bound:
        return Reason(f"a run had more than the bound that is known, {bound:,}")
    return None


def _recorded(call: OpCall) -> tuple[Reason, ...]:
    return () if call.largest is None else (Reason(f"recorded: a batch of at most {call.largest:,}"),)


def _is_bounded(call: OpCall) -> bool:
    given = next((keyword.value for keyword in call.node.keywords if keyword.arg == "max"), None)
    if given is None or ast.unparse(given).endswith(_SPELLED):
        return False
    most = _number(call, "max")
    return most is None or most < _NO_BOUND


def _number(call: OpCall, keyword: str) -> int | None:
    for observation in call.observations:
        value = dict(observation.keywords).get(keyword)
        if isinstance(value, Number):
            return value.size.constant
    return None
