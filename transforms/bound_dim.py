"""Give `torch.export.Dim` an upper bound.

An exported program accepts any size of a `Dim` that has no `max`, and meets the limits of its kernels when it runs.
With a bound it refuses at the door, with a message that names the dim.  (AOTInductor's package does so only with
AOTI_RUNTIME_CHECK_INPUTS=1, and then refuses sizes 0 and 1 as well.)

The bound comes from the settings (`max-batch`), or from what the file itself shows: a bmm over that dim, whose kernels
take the batch as a grid dimension, of which there are 65,535, in torch before 2.13.  The same holds for `Dim.DYNAMIC`
and `Dim.AUTO`, also without brackets in `dynamic_shapes`, where such a bound is known.
Reported, and not rewritten: a Dim of which neither is known, one for which a larger size was recorded or is in the
example input, and one whose example input has size 0 or 1, which torch.export takes for a constant; a bound that
AOTInductor will not check.  The bound of the settings is for dims that no export of the file shows to be others.

`torch._dynamo.mark_dynamic` takes `min` and `max` together or not at all: with one of them tracing fails, and the other
is added.  Without either it is left alone, as a larger batch makes torch.compile compile anew; it gets the settings'
bound where the tensor's size is known and fits.
Left alone: other Dims with a bound, and those of another library.

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
from codemod.layout.program import DIM_HINTS
from codemod.layout.sites import TORCH_DIM, TORCH_MARK
from codemod.layout.value import Number, Tensor
from codemod.settings import Settings
from codemod.transform import Example, Transform

_NOT_KNOWN = Reason("neither the settings (`max-batch`) nor a bmm over this dim say how large it may get")
_UNCHECKED = Reason("AOTInductor checks no bound unless AOTI_RUNTIME_CHECK_INPUTS=1, and then refuses 0 and 1 as well")
_LEAST = 2
"""Sizes 0 and 1 are constants for torch.compile, whatever `min` says."""
_FIXED = "Dim whose example input has size 0 or 1: torch.export refuses it, or, for AUTO, takes that size alone"
_NO_BOUND = 2**31 - 1
"""From here on a `max` says no more than that sizes are integers."""
_HINTED = ("min", "max")
"""What a hint takes by position; everything else takes them by name only."""
_ONE_BOUND = "mark_dynamic with one of min and max: torch.compile fails unless both are given"
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
_HINTS = _BMM.replace("    n = {0}\n", "").replace("{{0: n}}", "{{0: {0}}}", 1).replace("{{0: n}}", "{{0: {1}}}", 1)
_MARKED = """import torch


def marked(x):
    torch._dynamo.mark_dynamic(x, 0, {0})
    return torch.compile(torch.relu)(x)
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
    operations: ClassVar[frozenset[str]] = frozenset({"Dim", "mark_dynamic"})
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
        Example(
            "hints, which need not be called",
            _HINTS.format("Dim.DYNAMIC", "Dim.AUTO(min=2)"),
            _HINTS.format("Dim.DYNAMIC(max=65535)", "Dim.AUTO(min=2, max=65535)"),
            verdict="failing",
        ),
        Example(
            "mark_dynamic with one bound of two",
            _MARKED.format("max=64"),
            _MARKED.format("max=64, min=2"),
            verdict="failing",
        ),
        Example("mark_dynamic without bounds", _MARKED.format("").replace(", )", ")")),
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
        if any(keyword.arg is None for keyword in call.node.keywords) or _has_starred(call):
            return None
        if call.operation == "mark_dynamic":
            return self._decide_mark(call, settings)
        if not call.observations or any(one.receiver != TORCH_DIM for one in call.observations):
            return None
        return self._decide_dim(call, settings)

    def _decide_dim(self, call: OpCall, settings: Settings) -> Finding | None:
        if _is_bounded(call):
            return self._decide_bounded(call, settings)
        bound = _bound(call, settings)
        if not call.node.keywords and _is_hint(call) and not call.node.args and (bound is None or call.fixing):
            return self._report(call, Verdict.FAILING, _FIXED, call.fixing) if call.fixing else None
        refused = _refused(call, bound)
        if bound is None or refused:
            message = "Dim without an upper bound: an exported program accepts sizes that its kernels may not"
            return self._report(call, Verdict.UNKNOWN, message, (refused or _NOT_KNOWN, *_recorded(call), *call.fixing))
        message = "Dim without an upper bound: the exported program fails only when it runs"
        reasons = (*_reasons(call, settings), *_recorded(call), *call.fixing, *_unchecked(call))
        return self._rewrite(call, message, reasons, max=bound)

    def _decide_bounded(self, call: OpCall, settings: Settings) -> Finding | None:
        if call.fixing:
            return self._report(call, Verdict.FAILING, _FIXED, call.fixing)
        if call.packages and _bound(call, settings) is not None:
            message = "Dim whose upper bound is not checked when the packaged program runs"
            return self._report(call, Verdict.UNKNOWN, message, _unchecked(call))
        return None

    def _decide_mark(self, call: OpCall, settings: Settings) -> Finding | None:
        given = {k.arg for k in call.node.keywords if k.arg in ("min", "max") and not _is_none(k.value)}
        sizes = _marked_sizes(call)
        if sizes is None:
            return None
        if given and any(size in (0, 1) for size in sizes):
            return self._report(
                call, Verdict.FAILING, "mark_dynamic of a size 0 or 1, which torch takes for a constant"
            )
        if given == {"max"}:
            return self._rewrite(call, _ONE_BOUND, (), min=_LEAST)
        bound = settings.max_batch if _marks_batch(call) else None
        refused = _refused(call, bound)
        fits = bound is not None and not refused and all(size is None or size <= bound for size in sizes)
        if given == {"min"}:
            return (
                self._rewrite(call, _ONE_BOUND, (), max=bound)
                if fits
                else self._report(call, Verdict.FAILING, _ONE_BOUND)
            )
        if given or not fits or not all(size is not None and size >= _LEAST for size in sizes):
            return None
        return self._rewrite(call, "mark_dynamic without bounds", _reasons(call, settings), min=_LEAST, max=bound)

    def _rewrite(self, call: OpCall, message: str, reasons: tuple[Reason, ...], **bounds: int | None) -> Finding:
        rewrites = (Rewrite(self.name, tuple((name, str(bound)) for name, bound in bounds.items())),)
        return Finding(call.path, call.span, self.name, Verdict.FAILING, Action.REWRITE, message, reasons, rewrites)

    def _report(self, call: OpCall, verdict: Verdict, message: str, reasons: tuple[Reason, ...] = ()) -> Finding:
        return Finding(call.path, call.span, self.name, verdict, Action.REPORT, message, reasons)

    def rewrite(self, call: cst.Call, rewrite: Rewrite) -> cst.BaseExpression:
        for name in ("min", "max"):
            if bound := rewrite.get(name, ""):
                call = _with_bound(call, name, cst.Integer(bound))
        return call


def _with_bound(call: cst.Call, name: str, bound: cst.Integer) -> cst.Call:
    i = _given_at(call, name)
    if i is not None:
        return call.with_changes(args=[*call.args[:i], call.args[i].with_changes(value=bound), *call.args[i + 1 :]])
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    added = cst.Arg(bound, keyword=cst.Name(name), equal=equal)
    if not call.args:
        return call.with_changes(args=[added])
    *others, last = call.args
    added = added.with_changes(comma=last.comma)
    between = others[-1].comma if others else cst.Comma(whitespace_after=_gap(call, last))
    return call.with_changes(args=[*others, last.with_changes(comma=between), added])


def _given_at(call: cst.Call, name: str) -> int | None:
    """Position of the argument; a hint takes `min` and `max` without their names as well."""
    names = [argument.keyword.value if argument.keyword else "" for argument in call.args]
    if name in names:
        return names.index(name)
    is_hint = isinstance(call.func, cst.Attribute) and call.func.attr.value in DIM_HINTS
    at = _HINTED.index(name)
    return at if is_hint and at < len(names) and not names[at] else None


def _gap(call: cst.Call, last: cst.Arg) -> cst.BaseParenthesizableWhitespace:
    """What stands before the first argument, where each has its own line."""
    is_tall = isinstance(last.comma, cst.Comma) and isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace)
    return call.whitespace_before_args if is_tall else cst.SimpleWhitespace(" ")


def _reasons(call: OpCall, settings: Settings) -> tuple[Reason, ...]:
    if settings.max_batch:
        return (Reason(f"the settings say that a batch has at most {settings.max_batch}"),)
    each = (Reason(f"each is {call.share} matrices of it"),) if call.share > 1 else ()
    return (*call.batches, *each, Reason(f"kernels of bmm take at most {GRID_LIMIT:,} matrices in one launch"))


def _bound(call: OpCall, settings: Settings) -> int | None:
    """From the settings, for what may be a batch; else of the kernels that take it."""
    if settings.max_batch is not None and call.is_batch is not False and not _makes_several(call):
        return settings.max_batch
    is_shared = _is_hint(call) and call.is_batch is False  # maybe one name for dims that have nothing in common
    return GRID_LIMIT // call.share if _meets_grid(call, settings) and not is_shared else None


def _meets_grid(call: OpCall, settings: Settings) -> bool:
    """Whether a bmm takes it whose kernels, in some torch that the code is for, end at the grid."""
    return bool(call.batches) and not is_mended(GRID_ISSUE, settings.torch)


def _makes_several(call: OpCall) -> bool:
    """`dims("batch", "time")`: one bound for all."""
    return len(call.node.args) > 1 and not _is_hint(call)


def _is_hint(call: OpCall) -> bool:
    return isinstance(call.node.func, ast.Attribute) and call.node.func.attr in DIM_HINTS


def _has_starred(call: OpCall) -> bool:
    return any(isinstance(argument, ast.Starred) for argument in call.node.args)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _marks_batch(call: OpCall) -> bool:
    index = call.node.args[1:2] or [k.value for k in call.node.keywords if k.arg == "index"]
    return any(isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0 for node in index)


def _marked_sizes(call: OpCall) -> list[int | None] | None:
    """Of dim 0 of what is marked, where numbers; None where it is no mark of torch's."""
    if not call.observations or any(seen.receiver != TORCH_MARK for seen in call.observations):
        return None
    marked = [seen.arguments[0] for seen in call.observations]
    if not _marks_batch(call):
        return [None for _ in marked]
    layouts = [value.default.exposed(1) if isinstance(value, Tensor) else None for value in marked]
    return [
        layout.dims[0].size.constant if layout and layout.dims and not layout.dims[0].pack else None
        for layout in layouts
    ]


def _unchecked(call: OpCall) -> tuple[Reason, ...]:
    return (*call.packages, _UNCHECKED) if call.packages else ()


def _refused(call: OpCall, bound: int | None) -> Reason | None:
    """The size that this bound would refuse, though the program or a recorded run has it."""
    least = _number(call, "min")
    if bound is None:
        return None
    if least is not None and least > bound:
        return Reason(f"the minimum, {least:,}, is above the bound that is known, {bound:,}")
    if call.largest is not None and call.largest > bound:
        return Reason(f"a run had more than the bound that is known, {bound:,}")
    if call.sample is not None and call.sample > bound:
        return Reason(f"an example input has {call.sample:,}, more than the bound that is known, {bound:,}")
    return None


def _recorded(call: OpCall) -> tuple[Reason, ...]:
    return () if call.largest is None else (Reason(f"recorded: a batch of at most {call.largest:,}"),)


def _is_bounded(call: OpCall) -> bool:
    given = _given(call, "max")
    if given is None or ast.unparse(given).endswith(_SPELLED):
        return False
    most = _number(call, "max")
    return most is None or most < _NO_BOUND


def _given(call: OpCall, name: str) -> ast.expr | None:
    found = next((keyword.value for keyword in call.node.keywords if keyword.arg == name), None)
    at = _HINTED.index(name)
    return call.node.args[at] if found is None and _is_hint(call) and at < len(call.node.args) else found


def _number(call: OpCall, name: str) -> int | None:
    for observation in call.observations:
        given = dict(zip(_HINTED, observation.arguments, strict=False)) if _is_hint(call) else {}
        value = {**given, **dict(observation.keywords)}.get(name)
        if isinstance(value, Number):
            return value.size.constant
    return None
