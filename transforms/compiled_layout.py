"""Take the leading dims as one around a `matrix_exp` that meets strides which it refuses.

`matrix_exp` of a batch takes all leading dims as one with a view.  It refuses a batch that was transposed or cut, and
one that is channels_last.  A program that never sees such a batch may still fail once it is compiled: Inductor makes
the output of a two-dimensional convolution channels_last, and leaves a `.contiguous()` behind it out.  Dims that are
taken as one before the call, and apart again behind it, fit any strides, and change neither values nor gradients.

Rewritten: what torch refuses in eager, what a convolution reaches within a function that this file compiles, and what
was refused in a run (`--log`).  Left alone: one batch dim or none; a function that nothing here compiles, and one for
another backend or with options; what an op makes of the convolution that is contiguous under Inductor too (softmax, a
matrix product).  Only reported: an input without a name, which would be computed twice; one that may have fewer than
three dims; and `.view(torch.complex64)` of such a convolution, since `view_as_complex`, which works, has a gradient
where the view has none.

Source: https://github.com/pytorch/pytorch/issues/188222; aten/src/ATen/native/LinearAlgebra.cpp, mexp
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import libcst as cst

from codemod.evidence.failure import Kind
from codemod.evidence.shown import UNSEEN
from codemod.finding import Action, Finding, Reason, Rewrite, Verdict
from codemod.layout.layout import Layout
from codemod.layout.op_call import Form, Observation, OpCall
from codemod.layout.origin import OriginKind
from codemod.layout.size import ONE
from codemod.layout.value import Foreign, Qualified, Tensor
from codemod.layout.verdict import Ruling, rule_on
from codemod.layout.viewable import Judgement, Legality
from codemod.settings import Settings, Sites
from codemod.transform import Example, Transform

_REWRITTEN = {
    Sites.FAILING: frozenset({Verdict.FAILING}),
    Sites.RISKY: frozenset({Verdict.FAILING, Verdict.LAYOUT_DEPENDENT}),
    Sites.ALL: frozenset({Verdict.FAILING, Verdict.LAYOUT_DEPENDENT, Verdict.UNKNOWN}),
}
_CHOSEN = Reason("Inductor chooses the strides of what it computes, and leaves out a `.contiguous()` before it")
_CURE = "torch.matrix_exp(y.flatten(0, -3)).unflatten(0, y.shape[:-2])"
_COMPLEX = frozenset({"torch.complex32", "torch.complex64", "torch.complex128", "torch.cfloat", "torch.cdouble"})

_NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        y = self.conv(x){0}
        return {1}


def run(x):
    torch.manual_seed(0)
    return {2}(x)
"""
_EXP = "torch.matrix_exp(y)"
_CURED = "torch.matrix_exp(y.flatten(0, -3)).unflatten(0, y.shape[:-2])"
_LATER = "\n\n\ndef compiled():\n    return torch.compile(Net()){0}\n"
_IMAGE = "run(torch.rand(2, 3, 4, 4))"

_CONVOLVED = """\
def f(x, w):
    y = torch.nn.functional.conv2d(x, w, padding=1).relu()
    y = torch.nn.functional.max_pool2d(y, 2)
    return {0}


def compiled():
    return torch.compile(f, dynamic=True)
"""


def _function(text: str) -> str:
    return f"import torch\n\n\n{text}"


class CompiledLayout(Transform):
    """The input is named, so that its sizes can be read again."""

    name: ClassVar[str] = "compiled-layout"
    summary: ClassVar[str] = "mend matrix_exp of strides that it refuses, above all behind a compiled convolution"
    operations: ClassVar[frozenset[str]] = frozenset({"matrix_exp", "view"})
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a convolution that the file compiles",
            _NET.format("", _EXP, "Net()") + _LATER.format(""),
            _NET.format("", _CURED, "Net()") + _LATER.format(""),
            verdict="failing",
            check=_IMAGE,
        ),
        Example(
            "dims of the batch are transposed: eager refuses it as well",
            _function("def f(x):\n    b, h, n, _ = x.shape\n    y = x.transpose(0, 1)\n    return y.matrix_exp()\n"),
            _function(
                "def f(x):\n    b, h, n, _ = x.shape\n    y = x.transpose(0, 1)\n"
                "    return y.flatten(0, -3).matrix_exp().unflatten(0, y.shape[:-2])\n"
            ),
            verdict="failing",
            check="f(torch.rand(2, 3, 4, 4))",
        ),
        Example(
            "a function that is compiled, and ops that keep the order",
            _function(_CONVOLVED.format("torch.linalg.matrix_exp(y)")),
            _function(_CONVOLVED.format("torch.linalg.matrix_exp(y.flatten(0, -3)).unflatten(0, y.shape[:-2])")),
            verdict="failing",
            check="f(torch.rand(2, 3, 6, 6), torch.rand(3, 3, 3, 3))",
        ),
        Example(
            "nothing here compiles it",
            _NET.format("", _EXP, "Net()"),
            verdict="layout-dependent",
            check=_IMAGE,
        ),
        Example(
            "another backend keeps eager's strides",
            _NET.format("", _EXP, "Net()") + "\n\ndef compiled():\n    return torch.compile(Net(), backend='eager')\n",
            verdict="layout-dependent",
            check=_IMAGE,
        ),
        Example(
            "the input has no name",
            _NET.format("", "torch.matrix_exp(self.conv(x).contiguous())", "Net()") + _LATER.format(""),
            verdict="failing",
            check=_IMAGE,
        ),
        Example(
            "one batch dim, which is never merged with another",
            _NET.format("", "torch.matrix_exp(y.mean(1))", "Net()") + _LATER.format(""),
            verdict="safe",
            check=_IMAGE,
        ),
        Example(
            "a matrix product is contiguous for every backend",
            _NET.format("", "torch.matrix_exp(y @ y.mT)", "Net()") + _LATER.format(""),
            verdict="layout-dependent",
            check=_IMAGE,
        ),
        Example(
            "pairs read as complex numbers: the view that works has a gradient as well",
            _NET.format("", "y.view(torch.complex64)", "Net()") + _LATER.format(""),
            verdict="layout-dependent",
            check=_IMAGE,
        ),
    )

    def decide(self, call: OpCall, settings: Settings) -> Finding | None:
        if call.operation == "view":
            return self._complex_view(call)
        ruling = _ruling(call)
        missing = _missing(call)
        action = _action(call, ruling, missing, settings)
        if action is Action.REPORT:
            ruling = Ruling(ruling.verdict, (*ruling.reasons, *missing, Reason(f"cure: {_CURE}")))
        rewrites = (Rewrite(self.name, (("form", call.form.name),)),) if action is Action.REWRITE else ()
        message = _MESSAGES[ruling.verdict]
        return Finding(call.path, call.span, self.name, ruling.verdict, action, message, ruling.reasons, rewrites)

    def rewrite(self, call: cst.Call, rewrite: Rewrite) -> cst.BaseExpression:
        if rewrite.get("form") == Form.METHOD.name:
            function = cst.ensure_type(call.func, cst.Attribute)
            receiver = function.value
            folded: cst.Call = call.with_changes(func=function.with_changes(value=_flattened(receiver)))
        else:
            first, *rest = call.args
            receiver = first.value
            folded = call.with_changes(args=[first.with_changes(value=_flattened(receiver)), *rest])
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        leading = cst.Subscript(
            cst.Attribute(receiver.deep_clone(), cst.Name("shape")),
            [cst.SubscriptElement(cst.Slice(None, cst.UnaryOperation(cst.Minus(), cst.Integer("2"))))],
        )
        arguments = [cst.Arg(cst.Integer("0"), comma=comma), cst.Arg(leading)]
        return cst.Call(cst.Attribute(folded, cst.Name("unflatten")), arguments)

    def _complex_view(self, call: OpCall) -> Finding | None:
        """torch wants stride 1 of the last dim, and a channels_last tensor has another."""
        if not call.compiled:
            return None
        lines = {line for seen in call.observations for line in _complex_convolutions(seen)}
        if not lines:
            return None
        reasons = (
            *call.compiled,
            *(
                Reason("Inductor makes the output of this convolution channels_last", line=line)
                for line in sorted(lines)
            ),
            Reason(
                "cure: torch.view_as_complex(y.unflatten(-1, (-1, 2))), which has a gradient where the view has none"
            ),
        )
        message = "a view as complex numbers is refused where Inductor makes its input channels_last"
        return Finding(call.path, call.span, self.name, Verdict.LAYOUT_DEPENDENT, Action.REPORT, message, reasons)


_MESSAGES = {
    Verdict.FAILING: "matrix_exp takes leading dims as one that do not lie one after the other in memory",
    Verdict.LAYOUT_DEPENDENT: "matrix_exp takes leading dims as one, which works for contiguous tensors only",
    Verdict.UNKNOWN: "matrix_exp may or may not fit: not all of it could be followed",
    Verdict.SAFE: "matrix_exp gets one batch dim at most",
    Verdict.NOT_A_SHAPE_VIEW: "this matrix_exp is not torch's",
}


def _flattened(receiver: cst.BaseExpression) -> cst.Call:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    last = cst.UnaryOperation(cst.Minus(), cst.Integer("3"))
    return cst.Call(
        cst.Attribute(receiver, cst.Name("flatten")), [cst.Arg(cst.Integer("0"), comma=comma), cst.Arg(last)]
    )


def _ruling(call: OpCall) -> Ruling:
    source = _of_source(replace(call, seen=UNSEEN))
    refused = tuple(one.reason for one in call.seen.of(Kind.VIEW_REFUSED))
    if not refused:
        return source
    return Ruling(Verdict.FAILING, (*refused[:2], *_contradiction(source), *source.reasons))


def _contradiction(source: Ruling) -> tuple[Reason, ...]:
    if source.verdict not in (Verdict.SAFE, Verdict.NOT_A_SHAPE_VIEW):
        return ()
    text = f"the source says that it is {source.verdict.value}: the file has changed since, or torch-codemod is wrong"
    return (Reason(text),)


def _of_source(call: OpCall) -> Ruling:
    eager = rule_on(call)
    if eager.verdict in (Verdict.FAILING, Verdict.NOT_A_SHAPE_VIEW) or not call.observations:
        return eager
    if all(_batch_dims(judged.layout) == 1 for seen in call.observations for judged in _judged(seen)):
        return Ruling(Verdict.SAFE)
    if call.compiled:
        reasons = tuple(reason for seen in call.observations for reason in _refused_by_inductor(seen))
        if reasons:
            return Ruling(Verdict.FAILING, (*call.compiled, *dict.fromkeys(reasons)))
    if eager.verdict is Verdict.SAFE:
        return Ruling(Verdict.LAYOUT_DEPENDENT, (_CHOSEN,))
    return eager


def _batch_dims(layout: Layout) -> int | None:
    """How many leading dims there may be with more than one element; 1 stands for none as well, None for any number."""
    leading = layout.dims[:-2]
    if layout.rank is None:
        return None
    return max(sum(dim.size != ONE for dim in leading), 1)


def _judged(seen: Observation) -> Iterator[Judgement]:
    return (judged for judged in (seen.default, seen.any) if judged is not None)


def _refused_by_inductor(seen: Observation) -> Iterator[Reason]:
    """Why the strides of a compiled program do not fit, where it is known that they do not."""
    default, free = seen.uncopied or (seen.default, seen.any)
    if default is None or free is None:
        return
    if default.legality is Legality.REFUSED:
        yield Reason("Inductor leaves out the copy that makes it contiguous")
    elif free.legality is not Legality.LEGAL and _least_rank(free.layout) >= 3:  # else its op is not followed
        for origin in free.origins:
            if origin.kind is OriginKind.CONVOLUTION:
                yield Reason("Inductor makes the output of this convolution channels_last", line=origin.line)
                yield from seen.callers[-2:]


def _complex_convolutions(seen: Observation) -> Iterator[int | None]:
    """Lines of the convolutions that reach a view as complex numbers."""
    is_complex = any(_is_complex(value) for value in (*seen.arguments, *(value for _, value in seen.keywords)))
    if is_complex and isinstance(seen.receiver, Tensor) and _least_rank(seen.receiver.any) >= 3:
        for origin in seen.receiver.any.origins:
            if origin.kind is OriginKind.CONVOLUTION:
                yield origin.line


def _is_complex(value: object) -> bool:
    return isinstance(value, Qualified) and value.name in _COMPLEX


def _missing(call: OpCall) -> tuple[Reason, ...]:
    """What stands in the way of a rewrite."""
    found = []
    operand = _operand(call)
    if operand is None:
        found.append(Reason("the way it is called is not followed"))
    elif not isinstance(operand, ast.Name):
        found.append(Reason("its input has no name, and would be computed twice: bind it to one first"))
    if not all(isinstance(o.receiver, Tensor) and _least_rank(o.receiver.default) >= 3 for o in call.observations):
        found.append(Reason("its input may have no batch dim, or be something else than a tensor"))
    if call.seen.of(Kind.VIEW_REFUSED) and _contradiction(_of_source(replace(call, seen=UNSEEN))):
        found.append(Reason("no path of this source leads to what was seen"))
    if call.is_guarded:
        found.append(Reason("an `except` around it counts on the error"))
    return tuple(found)


def _operand(call: OpCall) -> ast.expr | None:
    """The one tensor that it is given."""
    match call.form, call.node:
        case Form.METHOD, ast.Call(func=ast.Attribute(value=receiver), args=[], keywords=[]):
            return receiver
        case Form.FUNCTION | Form.UNBOUND, ast.Call(func=ast.Attribute() | ast.Name(), args=[given], keywords=[]):
            return given
        case _:
            return None


def _least_rank(layout: Layout) -> int:
    return sum(dim.pack is None for dim in layout.dims)


def _action(call: OpCall, ruling: Ruling, missing: tuple[Reason, ...], settings: Settings) -> Action:
    if ruling.verdict not in _REWRITTEN[settings.sites] or not call.observations:
        return Action.KEEP
    if any(isinstance(seen.receiver, Foreign) for seen in call.observations):
        return Action.KEEP
    return Action.REPORT if missing else Action.REWRITE
