"""Faults of torch itself that look like faults of the user's code: how to tell them, and what cures them.

The tests run those that show on a CPU: each fails as it is described here, and its cure makes it pass.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata

from packaging.version import Version

_TORCH = "https://github.com/pytorch/pytorch"
_REFUSED = r"view size is not compatible with input tensor's size and stride"
_REFUSED_IN_A_TRACE = r"Cannot view a tensor with shape .* and strides"
_COMPILED = ("inductor", "inductor_dynamic", "aot_inductor")
_DECOMPOSED = ("aot_eager_decomp_partition", *_COMPILED)
_ALL = ("dynamo", "aot_eager", "export", "run_decompositions", *_DECOMPOSED)


@dataclass(frozen=True, slots=True)
class KnownIssue:
    """One fault, in the versions `since` <= torch < `fixed`; `fixed` None where no release is known to be free of it.

    It is recognised by the stage, by one of the regexes on the message, and by the operation where `operations` are
    given.  `stages` are rungs of `verify`.
    """

    name: str
    number: int | None
    """Of torch's issue or pull request; None where it has none."""
    title: str
    operations: tuple[str, ...]
    stages: tuple[str, ...]
    since: str
    """The first release that it was seen in, or that is known to hold the code."""
    fixed: str | None
    recognise: tuple[str, ...]
    cure: str
    source: str
    needs_cuda: bool = False
    needs_eager: bool = False
    """The same message comes from a fault of the user's; only where eager passes is it this."""

    def is_in(self, version: str) -> bool:
        """Whether that release of torch has it, as far as is known."""
        release = _release(version)
        return _release(self.since) <= release and (self.fixed is None or release < _release(self.fixed))

    def state(self, version: str | None) -> str:
        """In a few words; `version` is that of the installed torch, None where there is none."""
        cuda = ", CUDA only" if self.needs_cuda else ""
        if version is None:
            return f"since {self.since}"
        return ("present" if self.is_in(version) else "not here") + cuda

    def is_shown_by(self, message: str, operation: str | None, stage: str, eager_passes: bool) -> bool:
        if stage not in self.stages or (self.needs_eager and not eager_passes):
            return False
        if self.operations and operation not in self.operations:
            return False
        return any(re.search(pattern, message) for pattern in self.recognise)


KNOWN_ISSUES = (
    KnownIssue(
        name="matrix-exp-channels-last",
        number=188222,
        title="matrix_exp refuses the channels_last tensor that Inductor makes of a convolution's output",
        operations=("linalg_matrix_exp", "matrix_exp"),
        stages=_COMPILED,
        since="2.13",
        fixed=None,
        recognise=(_REFUSED,),
        cure="torch.matrix_exp(y.flatten(0, -3)).unflatten(0, y.shape[:-2]), as `compiled-layout` writes it; "
        ".contiguous() does not help",
        source=f"{_TORCH}/issues/188222",
    ),
    KnownIssue(
        name="aliased-outputs",
        number=161937,
        title="two outputs that are views of one tensor are made again of a base that the compiler laid out otherwise",
        operations=("gen_alias_from_base",),
        stages=_COMPILED,
        since="2.4",
        fixed=None,
        recognise=(_REFUSED,),
        cure="return .clone() of the views; view_replay_for_aliased_outputs = False gives wrong values",
        source=f"{_TORCH}/issues/161937",
    ),
    KnownIssue(
        name="complex-view-after-conv",
        number=None,
        title=".view(complex dtype) meets the channels_last tensor that Inductor makes of a convolution's output",
        operations=("view.dtype", "view_dtype"),
        stages=_COMPILED,
        since="2.13",
        fixed=None,
        recognise=(r"self\.stride\(-1\) must be 1 to view \w+ as Complex\w+",),
        cure="torch.view_as_complex(y.unflatten(-1, (-1, 2))); .contiguous() does not help",
        source=f"{_TORCH}/blob/v2.13.0/torch/_inductor/lowering.py",
    ),
    KnownIssue(
        name="channels-last-lost",
        number=None,
        title="a tensor that is channels_last in eager is not so in a trace, as after cat and roll; a view is refused",
        operations=(),
        stages=_ALL,
        since="2.13",
        fixed=None,
        recognise=(_REFUSED_IN_A_TRACE,),
        cure="write .reshape() for the view",
        source=f"{_TORCH}/blob/v2.13.0/torch/_refs/__init__.py",
        needs_eager=True,
    ),
    KnownIssue(
        name="symbolic-sizes-compared",
        number=185510,
        title="Inductor orders strides that hold symbolic sizes, and cannot tell which is larger",
        operations=(),
        stages=_COMPILED,
        since="2.13",
        fixed=None,
        recognise=(r"cannot determine truth value of Relational",),
        cure="not dynamic=True, which leaves every size open, but torch._dynamo.mark_dynamic(x, 0) for those that vary",
        source=f"{_TORCH}/issues/185510",
        needs_eager=True,
    ),
    KnownIssue(
        name="bmm-template-grid",
        number=178617,
        title="the Triton template for bmm puts the batch into CUDA's grid y, which ends at 65,535",
        operations=("bmm", "baddbmm"),
        stages=_COMPILED,
        since="2.0",
        fixed="2.13",
        recognise=(r"invalid configuration argument", r"CUDA_ERROR_INVALID_VALUE", r"Triton Error \[CUDA\]: invalid"),
        cure="torch 2.13 or later; before that the helper of `chunk-bmm`",
        source=f"{_TORCH}/pull/178617",
        needs_cuda=True,
    ),
    KnownIssue(
        name="bmm-outer-product-offsets",
        number=196431,
        title="bmm with one column by one row counts its elements in 32 bits on CUDA: beyond 2**31 it writes elsewhere",
        operations=("bmm",),
        stages=("eager", *_ALL),
        since="2.13",
        fixed=None,
        recognise=(r"illegal memory access",),
        cure="the helper of `chunk-bmm`, or TORCH_DISABLE_NATIVE_JIT=1",
        source=f"{_TORCH}/pull/196431",
        needs_cuda=True,
    ),
)


def match(message: str, operation: str | None, stage: str, *, eager_passes: bool = False) -> KnownIssue | None:
    """The known issue that a failure is; `stage` is a rung, `operation` what failed there (`linalg_matrix_exp`)."""
    shown = (issue for issue in KNOWN_ISSUES if issue.is_shown_by(message, operation, stage, eager_passes))
    return next(shown, None)


def is_mended(number: int, lowest: str | None) -> bool:
    """Whether all releases of torch from `lowest` on are known to be free of the issue; False where that is None."""
    fixed = next((issue.fixed for issue in KNOWN_ISSUES if issue.number == number), None)
    return lowest is not None and fixed is not None and Version(fixed) <= Version(lowest)


def installed_torch() -> str | None:
    """The version beside this tool, found without importing it; None where there is none."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


def _release(version: str) -> tuple[int, ...]:
    """(2, 13) of `2.13.0+cpu`: patch releases are taken for alike."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
