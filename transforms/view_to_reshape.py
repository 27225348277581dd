"""Turn a `.view()` that torch refuses into a `.reshape()`.

A view needs the dims that it merges to lie one after the other in memory.  Behind a transpose, an expand or a slice
they may not, and torch raises `view size is not compatible with input tensor's size and stride`.  `.reshape()` is
the same view where there is one, and a copy where there is none.

Left alone: a view that works, whatever strides reach it; one whose result is written in place, since the write
would be lost in a copy; `.view(dtype)`; `.view` of what is not a tensor; one inside a `try` that counts on the error.

Source: aten/src/ATen/TensorUtils.cpp, computeStride_impl; https://docs.pytorch.org/docs/stable/tensor_view.html
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import ClassVar

import libcst as cst

from codemod.evidence.failure import Kind
from codemod.evidence.shown import UNSEEN
from codemod.finding import Action, Finding, Reason, Rewrite, Verdict
from codemod.layout.op_call import Form, OpCall
from codemod.layout.verdict import Ruling, rule_on
from codemod.settings import Settings, Sites, To
from codemod.transform import Example, Transform

_REWRITTEN = {
    Sites.FAILING: frozenset({Verdict.FAILING}),
    Sites.RISKY: frozenset({Verdict.FAILING, Verdict.LAYOUT_DEPENDENT}),
    Sites.ALL: frozenset({Verdict.FAILING, Verdict.LAYOUT_DEPENDENT, Verdict.UNKNOWN}),
}
_COUNTERPARTS = {"view": "reshape", "view_as": "reshape_as"}


class ViewToReshape(Transform):
    """The cure is chosen by the settings: `.reshape(...)`, or `.contiguous().view(...)`."""

    name: ClassVar[str] = "view-to-reshape"
    summary: ClassVar[str] = "turn a .view() that torch refuses into .reshape()"
    operations: ClassVar[frozenset[str]] = frozenset({"view", "view_as"})
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "heads are merged behind a transpose",
            "def merge(x):\n    b, h, t, d = x.shape\n    return x.transpose(1, 2).view(b, t, h * d)\n",
            "def merge(x):\n    b, h, t, d = x.shape\n    return x.transpose(1, 2).reshape(b, t, h * d)\n",
            verdict="failing",
            check="merge(torch.arange(120.0).view(2, 3, 4, 5))",
        ),
        Example(
            "the size goes by its name",
            "def flat(x):\n    return x.t().view(size=(-1,))\n",
            "def flat(x):\n    return x.t().reshape(shape=(-1,))\n",
            verdict="failing",
            check="flat(torch.arange(6.0).view(2, 3))",
        ),
        Example(
            "a copy is asked for by name",
            "def flat(x):\n    return x.t().view(-1)\n",
            "def flat(x):\n    return x.t().contiguous().view(-1)\n",
            verdict="failing",
            settings=Settings(to=To.CONTIGUOUS),
            check="flat(torch.arange(6.0).view(2, 3))",
        ),
        Example(
            "an unbound method",
            "import torch\n\n\ndef flat(x):\n    return torch.Tensor.view(x.t(), -1)\n",
            "import torch\n\n\ndef flat(x):\n    return torch.Tensor.reshape(x.t(), -1)\n",
            verdict="failing",
            check="flat(torch.arange(6.0).view(2, 3))",
        ),
        Example(
            "splitting a dim is legal for any strides",
            "def split(x):\n    b, t, c = x.shape\n    return x.transpose(0, 1).view(t, b, 2, c // 2)\n",
            verdict="safe",
            check="split(torch.arange(24.0).view(2, 3, 4))",
        ),
        Example(
            "already contiguous",
            "def merge(x):\n    b, t, d = x.shape\n    return x.transpose(1, 2).contiguous().view(b, t * d)\n",
            verdict="safe",
            check="merge(torch.arange(24.0).view(2, 3, 4))",
        ),
        Example(
            "already contiguous, if it is a tensor at all",
            "def column(x, is_on):\n    y = x if is_on else None\n    return y.contiguous().view(-1, 1)\n",
            verdict="safe",
            settings=Settings(sites=Sites.ALL, to=To.CONTIGUOUS),
            check="column(torch.arange(6.0).view(2, 3).t(), True)",
        ),
        Example(
            "only a caller could bring strides that do not fit",
            "def rows(x):\n    return x.view(-1, x.size(-1))\n",
            verdict="layout-dependent",
            check="rows(torch.arange(24.0).view(2, 3, 4))",
        ),
        Example(
            "a write must reach the parameter",
            "def load(p, values):\n    p.t().view(-1).copy_(values)\n",
            verdict="written-through",
        ),
        Example(
            "bits are read as another dtype",
            "import torch\n\n\ndef bits(x):\n    return x.t().contiguous().view(torch.int32)\n",
            verdict="not-a-shape-view",
            check="bits(torch.arange(6.0).view(2, 3))",
        ),
        Example(
            "the error is part of the control flow",
            "def flat(x):\n    try:\n        return x.t().view(-1)\n    except RuntimeError:\n        return None\n",
            verdict="failing",
            check="flat(torch.arange(6.0).view(2, 3))",
        ),
    )

    def decide(self, call: OpCall, settings: Settings) -> Finding | None:
        ruling = rule_on(call)
        if ruling.verdict is Verdict.UNKNOWN and _is_made_contiguous(call):
            ruling = Ruling(Verdict.SAFE)
        dtype = call.seen.of(Kind.DTYPE_VIEW)
        if dtype:
            reasons = tuple(one.reason for one in dtype)
            verdict, message = Verdict.NOT_A_SHAPE_VIEW, dtype[0].kind.explanation.rstrip(".")
            return Finding(call.path, call.span, self.name, verdict, Action.REPORT, message, reasons)
        action = _action(call, ruling, settings)
        rewrites = (_rewrite(call, settings),) if action is Action.REWRITE else ()
        message = _message(call, ruling)
        if action is Action.REPORT and isinstance(call.node.func, ast.Name):
            ruling = replace(ruling, reasons=(*ruling.reasons, Reason(f"`{call.node.func.id}` is not a method here")))
        return Finding(call.path, call.span, self.name, ruling.verdict, action, message, ruling.reasons, rewrites)

    def rewrite(self, call: cst.Call, rewrite: Rewrite) -> cst.BaseExpression:
        function = cst.ensure_type(call.func, cst.Attribute)
        if rewrite.get("to") == To.CONTIGUOUS.value:
            dense = cst.Call(cst.Attribute(function.value, cst.Name("contiguous")))
            return call.with_changes(func=function.with_changes(value=dense))
        renamed = function.with_changes(attr=function.attr.with_changes(value=_COUNTERPARTS[function.attr.value]))
        return call.with_changes(func=renamed, args=[_renamed(argument, function) for argument in call.args])


def _action(call: OpCall, ruling: Ruling, settings: Settings) -> Action:
    if ruling.verdict is Verdict.WRITTEN_THROUGH:
        is_refused = ruling.unwritten in _REWRITTEN[settings.sites]
        return Action.REPORT if call.writes or is_refused else Action.KEEP  # a write that may come is no news yet
    if ruling.verdict not in _REWRITTEN[settings.sites]:
        return Action.KEEP
    if call.seen.of(Kind.VIEW_REFUSED) and not _is_borne_out(call):
        return Action.REPORT
    if not call.observations:
        return Action.REPORT  # what nobody looked into may be a function of a module, or a view as another dtype
    if not all(observation.is_target_a_shape for observation in call.observations):
        return Action.KEEP
    if call.hard_coded is not None and call.hard_coded.is_moved:
        return Action.KEEP
    if call.hard_coded is not None and call.hard_coded.contradicts:
        return Action.REPORT  # its sizes are wrong as well: reshape would take them without a word
    is_method = isinstance(call.node.func, ast.Attribute)
    return Action.REWRITE if is_method and not call.is_guarded else Action.REPORT


def _is_borne_out(call: OpCall) -> bool:
    """Does the source allow what was seen: the file of the log is this one, and the argument is never a dtype?"""
    if not all(observation.is_target_a_shape for observation in call.observations):
        return False
    is_of_this_text = any(one.is_of_this_text for one in call.seen.of(Kind.VIEW_REFUSED))
    return is_of_this_text or rule_on(replace(call, seen=UNSEEN)).verdict is not Verdict.SAFE


def _is_made_contiguous(call: OpCall) -> bool:
    """`x.contiguous().view(...)`: whatever `x` is, another copy would not help."""
    match call.node.func:
        case ast.Attribute(value=ast.Call(func=ast.Attribute(attr="contiguous"), args=[], keywords=[])):
            return True
        case _:
            return False


def _rewrite(call: OpCall, settings: Settings) -> Rewrite:
    """An unbound `torch.Tensor.view(x, ...)` has no receiver to make contiguous."""
    to = To.RESHAPE if call.form is Form.UNBOUND else settings.to
    return Rewrite(ViewToReshape.name, (("to", to.value),))


def _renamed(argument: cst.Arg, function: cst.Attribute) -> cst.Arg:
    if function.attr.value == "view" and argument.keyword is not None and argument.keyword.value == "size":
        return argument.with_changes(keyword=argument.keyword.with_changes(value="shape"))
    return argument


def _message(call: OpCall, ruling: Ruling) -> str:
    name = f".{call.operation}()"
    match ruling.verdict:
        case Verdict.FAILING if call.seen.of(Kind.VIEW_REFUSED):
            return f"{name} was refused here in a run"
        case Verdict.FAILING if call.is_guarded:
            return f"{name} is refused here, and an `except` counts on it"
        case Verdict.FAILING:
            return f"{name} merges dims that do not lie one after the other in memory"
        case Verdict.LAYOUT_DEPENDENT:
            return f"{name} works for contiguous tensors only"
        case Verdict.WRITTEN_THROUGH:
            return f"{name} may be refused, and what is written through it would be lost in a copy"
        case Verdict.UNKNOWN:
            return f"{name} may or may not fit: not all of it could be followed"
        case Verdict.NOT_A_SHAPE_VIEW:
            return f"{name} is not a change of shape"
        case _:
            return f"{name} fits every layout that reaches it"
