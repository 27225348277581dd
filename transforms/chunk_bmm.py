"""Call `chunked_bmm` in place of a `torch.bmm` whose batch grows with the data.

The CUDA kernels that torch.compile generates for bmm take the batch as a grid dimension, of which there are
65,535, and others count elements with 32 bits.  A batch that is a product of sizes (frames of videos, points of
clouds), or that the data decides (edges, the rows of a mask), gets there.  `chunked_bmm` is torch.bmm up to these
limits, and takes the batch in parts beyond them.

Left alone: a batch that constants fix; one size of an input, times attention heads; a bmm that is called for parts of
the batch already; `out_dtype`; what is no torch.bmm; a file that exports with a `Dim` (see bound-dim), and TorchScript.
Where such a `Dim` has a bound that, by its own `max` or the settings' `max-batch`, lets in more than a launch takes,
the call gets `max_batch=` as well, without which an exported program holds one bmm whatever its batch.
Left alone too is code for torch 2.13 and later, by the settings' `torch` or by what the project's pyproject.toml asks
for: its kernels launch any batch.  Not so where a failure was logged, the elements are too many, a column is multiplied
by a row, or the settings name the function.
Reported: an operand that repeats one matrix with stride 0, and a single matrix that is too large by itself.

Source: https://github.com/pytorch/pytorch/issues/178617, https://github.com/pytorch/pytorch/issues/196431
"""

from __future__ import annotations

from typing import ClassVar

import libcst as cst

from codemod.evidence.failure import Kind
from codemod.finding import Action, Finding, Reason, Rewrite, Verdict
from codemod.known_issues import is_mended
from codemod.layout.batch import ELEMENT_LIMIT, GRID_ISSUE, GRID_LIMIT, is_outer_product, is_torch_bmm
from codemod.layout.op_call import BatchKind, Form, OpCall
from codemod.layout.size import Answer
from codemod.settings import Settings
from codemod.transform import Example, Transform

_FROM = "from _chunked_bmm import chunked_bmm\n"


def _program(text: str, is_chunked: bool = False) -> str:
    return f"import torch\n{_FROM if is_chunked else ''}\n\n{text}"


_FRAMES = (
    "def frames(x, y):\n    b, t, n, m = x.shape\n    return {0}(x.reshape(b * t, n, m), y.reshape(b * t, m, n){1})\n"
)
_EXPORTED = """import torch
from torch.export import Dim, export
{2}

class Pairs(torch.nn.Module):
    def forward(self, a, b):
        return {0}


def main():
    n = Dim("n", {1})
    return export(Pairs(), (torch.rand(4, 3, 5), torch.rand(4, 5, 2)), dynamic_shapes={{"a": {{0: n}}, "b": {{0: n}}}})
"""
_METHOD = "def flat(x, y):\n    return {0}\n"
_MASKED = "def masked(x, y, size):\n    hit = size > 1\n    return {0}(x[hit], y[hit])\n"


class ChunkBmm(Transform):
    """The settings' `dynamic-batch` names further functions whose batch is large."""

    name: ClassVar[str] = "chunk-bmm"
    summary: ClassVar[str] = "take a large batch of torch.bmm in parts"
    operations: ClassVar[frozenset[str]] = frozenset({"bmm"})
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a batch of frames of videos",
            _program(_FRAMES.format("torch.bmm", "")),
            _program(_FRAMES.format("chunked_bmm", ""), is_chunked=True),
            verdict="failing",
            check="frames(torch.rand(2, 3, 4, 5), torch.rand(2, 3, 5, 4))",
        ),
        Example(
            "a method; dims are flattened",
            _program(_METHOD.format("x.flatten(0, 1).bmm(y.flatten(0, 1))")),
            _program(_METHOD.format("chunked_bmm(x.flatten(0, 1), y.flatten(0, 1))"), is_chunked=True),
            verdict="failing",
            check="flat(torch.rand(2, 3, 4, 5), torch.rand(2, 3, 5, 4))",
        ),
        Example(
            "the data decides how many matrices there are",
            _program(_MASKED.format("torch.bmm")),
            _program(_MASKED.format("chunked_bmm"), is_chunked=True),
            verdict="failing",
            check="masked(torch.rand(3, 4, 5), torch.rand(3, 5, 4), torch.arange(3))",
        ),
        Example(
            "the settings name the function",
            _program("def pairs(x, y):\n    return torch.bmm(x, y)\n"),
            _program("def pairs(x, y):\n    return chunked_bmm(x, y)\n", is_chunked=True),
            verdict="failing",
            settings=Settings(dynamic_batch=("pairs",)),
            check="pairs(torch.rand(3, 4, 5), torch.rand(3, 5, 4))",
        ),
        Example(
            "an exported program, whose Dim lets more in than one launch takes",
            _EXPORTED.format("torch.bmm(a, b)", "max=200_000", ""),
            _EXPORTED.format("chunked_bmm(a, b, max_batch=200000)", "max=200_000", _FROM),
            verdict="failing",
            check="main().module()(torch.ones(70_000, 3, 5), torch.ones(70_000, 5, 2))",
        ),
        Example(
            "an exported program, whose bound the settings know",
            _EXPORTED.format("torch.bmm(a, b)", "min=2", ""),
            _EXPORTED.format("chunked_bmm(a, b, max_batch=100000)", "min=2", _FROM),
            verdict="failing",
            settings=Settings(max_batch=100_000),
        ),
        Example(
            "an exported program, whose Dim is small enough",
            _EXPORTED.format("torch.bmm(a, b)", "max=65_535", ""),
            verdict="safe",
        ),
        Example(
            "the project asks for torch 2.13, whose kernels launch any batch",
            _program(_FRAMES.format("torch.bmm", "")),
            verdict="unknown",
            settings=Settings(torch="2.13"),
            check="frames(torch.rand(2, 3, 4, 5), torch.rand(2, 3, 5, 4))",
        ),
        Example(
            "one batch of an input",
            _program("def pairs(x, y):\n    return torch.bmm(x, y)\n"),
            check="pairs(torch.rand(3, 4, 5), torch.rand(3, 5, 4))",
        ),
        Example(
            "heads of an attention in the batch",
            _program(
                "def scores(q, k, num_heads):\n    b, t, d = q.shape\n"
                "    q = q.reshape(b, t, num_heads, -1).transpose(1, 2).reshape(b * num_heads, t, -1)\n"
                "    k = k.reshape(b, t, num_heads, -1).transpose(1, 2).reshape(b * num_heads, t, -1)\n"
                "    return torch.bmm(q, k.transpose(1, 2))\n"
            ),
            check="scores(torch.rand(2, 3, 8), torch.rand(2, 3, 8), 2)",
        ),
        Example(
            "a single pair",
            _program("def one(x, y):\n    return x.unsqueeze(0).bmm(y.unsqueeze(0)).squeeze(0)\n"),
            verdict="safe",
            check="one(torch.rand(4, 5), torch.rand(5, 4))",
        ),
        Example(
            "one matrix for the whole batch: matmul needs no copies of it",
            _program("def shared(w, x):\n    return torch.bmm(w.unsqueeze(0).expand(x.size(0), -1, -1), x)\n"),
            verdict="layout-dependent",
            check="shared(torch.rand(4, 5), torch.rand(3, 5, 4))",
        ),
        Example(
            "taken in parts already",
            _program(
                "def parts(x, y, step):\n    b, t, n, m = x.shape\n"
                "    x, y = x.reshape(b * t, n, m), y.reshape(b * t, m, n)\n"
                "    return torch.cat([torch.bmm(p, q) for p, q in zip(x.split(step), y.split(step))])\n"
            ),
            verdict="safe",
            check="parts(torch.rand(2, 3, 4, 5), torch.rand(2, 3, 5, 4), 4)",
        ),
        Example(
            "the result has another dtype",
            _program(_FRAMES.format("torch.bmm", ", out_dtype=torch.float32")),
        ),
        Example(
            "a bmm of another kind",
            _program(
                "class Ring:\n    def bmm(self, x, y):\n        return x @ y\n\n\n"
                "def frames(x, y):\n    b, t, n, m = x.shape\n"
                "    return Ring().bmm(x.reshape(b * t, n, m), y.reshape(b * t, m, n))\n"
            ),
            verdict="not-a-shape-view",
            check="frames(torch.rand(2, 3, 4, 5), torch.rand(2, 3, 5, 4))",
        ),
    )

    def decide(self, call: OpCall, settings: Settings) -> Finding | None:
        if call.batch is None:
            return None
        verdict, action, message, reasons = _ruling(call, settings)
        most = _exported_most(call, settings)
        given = (("form", "method" if call.form is Form.METHOD else "function"),)
        if most:
            given = (*given, ("max_batch", str(most)))
        rewrites = (Rewrite(self.name, given),) if action is Action.REWRITE else ()
        return Finding(call.path, call.span, self.name, verdict, action, message, reasons, rewrites)

    def rewrite(self, call: cst.Call, rewrite: Rewrite) -> cst.BaseExpression:
        name = cst.Name("chunked_bmm")
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        args = list(call.args)
        if rewrite.get("form") != "function":
            args.insert(0, cst.Arg(cst.ensure_type(call.func, cst.Attribute).value, comma=comma))
        if most := rewrite.get("max_batch", ""):
            equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
            bound = cst.Arg(cst.Integer(most), keyword=cst.Name("max_batch"), equal=equal, comma=args[-1].comma)
            between = args[-2].comma if len(call.args) > 1 else comma
            args = [*args[:-1], args[-1].with_changes(comma=between), bound]
        return call.with_changes(func=name, args=args)

    def imports(self, rewrite: Rewrite) -> tuple[str, str]:
        return "", "chunked_bmm"


def _ruling(call: OpCall, settings: Settings) -> tuple[Verdict, Action, str, tuple[Reason, ...]]:
    batch = call.batch
    assert batch is not None
    is_torch = is_torch_bmm(call)
    if is_torch is Answer.NO:
        return Verdict.NOT_A_SHAPE_VIEW, Action.KEEP, "this bmm is not a plain torch.bmm", ()
    is_free = is_mended(GRID_ISSUE, settings.torch) and not _counts_elements(call)
    too_large = _too_large(call, is_free)
    if is_torch is Answer.MAYBE and not too_large:
        return Verdict.UNKNOWN, Action.KEEP, "whether this is torch.bmm of tensors could not be followed", ()
    if _exported_most(call, settings) and not is_free:
        reasons = _of_export(call, settings)
        return Verdict.FAILING, Action.REWRITE, "bmm gets a batch that may be too large for one launch", reasons
    if batch.bound_by and too_large:
        message = "bmm got a batch that is too large, and it is bounded otherwise"
        return Verdict.FAILING, Action.REPORT, message, (*too_large, *batch.bound_by)
    if limits := call.seen.of(Kind.OUTPUT_LIMIT, Kind.LAUNCH_REFUSED):
        message = "bmm was refused here in a run: parts of the batch may not help"
        return Verdict.FAILING, Action.REPORT, message, tuple(one.reason for one in limits)
    if batch.bound_by:
        return Verdict.SAFE, Action.KEEP, "bmm gets a batch that is bounded otherwise", batch.bound_by
    if batch.count == 1 and batch.elements is not None and batch.elements > ELEMENT_LIMIT:
        reason = Reason(f"a call in this file brings {batch.elements:,} elements in one matrix")
        return Verdict.UNKNOWN, Action.REPORT, "bmm of a single matrix: parts of the batch do not help", (reason,)
    if batch.count == 1 and batch.kind is BatchKind.CONSTANT:
        return Verdict.SAFE, Action.KEEP, "bmm gets one matrix", batch.reasons
    if batch.is_expanded and batch.kind in (BatchKind.INPUT, BatchKind.GROWING):
        message = "bmm gets one matrix repeated with stride 0; torch.matmul takes it as it is"
        return Verdict.LAYOUT_DEPENDENT, Action.REPORT, message, batch.reasons
    if too_large:
        action = Action.REPORT if call.is_guarded else Action.REWRITE
        return Verdict.FAILING, action, "bmm got a batch that is too large for one launch", too_large
    if _is_declared(call, settings):
        reason = Reason(f"the settings say that the batch of `{call.function}` is large")
        return Verdict.FAILING, Action.REWRITE, "bmm gets a batch that may be too large for one launch", (reason,)
    if batch.kind is BatchKind.GROWING and is_free:
        reason = Reason(f"kernels of torch {settings.torch}, the lowest that this code is for, launch any batch")
        return Verdict.UNKNOWN, Action.KEEP, "bmm gets a batch that may be large", (*batch.reasons, reason)
    if batch.kind is BatchKind.GROWING:
        action = Action.REPORT if call.is_guarded else Action.REWRITE
        return Verdict.FAILING, action, "bmm gets a batch that may be too large for one launch", batch.reasons
    verdict = Verdict.SAFE if batch.kind is BatchKind.CONSTANT else Verdict.UNKNOWN
    return verdict, Action.KEEP, "bmm gets a batch that nothing here makes large", batch.reasons


def _exported_most(call: OpCall, settings: Settings) -> int | None:
    """The largest batch that an export lets in, where that is more than one launch takes."""
    if call.batch is None or any(keyword.arg == "out" for keyword in call.node.keywords):
        return None
    bounds = [(dim.most or settings.max_batch or 0) * dim.share for dim in call.batch.exported]
    most = max(bounds, default=0)
    return most if GRID_LIMIT < most < ELEMENT_LIMIT else None


def _of_export(call: OpCall, settings: Settings) -> tuple[Reason, ...]:
    assert call.batch is not None
    most = _exported_most(call, settings)
    text = f"exported here with up to {most:,} matrices, more than the {GRID_LIMIT:,} that one launch takes"
    return (
        *(Reason(text, line=dim.line) for dim in call.batch.exported[:1]),
        Reason("an exported program holds chunks where `max_batch` says how many, in torch from 2.8 on"),
    )


def _counts_elements(call: OpCall) -> bool:
    """Whether the batch may pass the other limit, that of elements: numbers show it, or it is of outer products."""
    elements = call.batch.elements if call.batch is not None else None
    return (elements is not None and elements > ELEMENT_LIMIT) or any(map(is_outer_product, call.observations))


def _too_large(call: OpCall, is_free: bool) -> tuple[Reason, ...]:
    """What was seen of a batch that does not fit into one launch; with `is_free` only what was refused."""
    shown = tuple(one.reason for one in call.seen.of(Kind.BATCH_TOO_LARGE))
    recorded = call.seen.recorded
    if not is_free and recorded is not None and recorded.batch is not None and recorded.batch[1] > GRID_LIMIT:
        text = f"recorded: {recorded.batch[1]:,} matrices, more than the {GRID_LIMIT:,} that one launch takes"
        return (*shown, Reason(text))
    return shown


def _is_declared(call: OpCall, settings: Settings) -> bool:
    for declared in settings.dynamic_batch:
        path, _, function = declared.rpartition(":")
        is_here = not path or call.path == path or call.path.endswith(f"/{path}")
        if is_here and function in (call.function, call.function.rpartition(".")[2]):
            return True
    return False
