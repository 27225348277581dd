"""What the analysis found at one call: the value that a Transform decides on."""

from __future__ import annotations

import ast
from enum import Enum

from codemod.evidence.shown import UNSEEN, Seen
from codemod.finding import Reason, Span
from codemod.layout.record import record
from codemod.layout.size import Size
from codemod.layout.value import Condition, Value
from codemod.layout.viewable import Judgement, Target


class Form(Enum):
    """How the op is called."""

    METHOD = "x.op(...)"
    UNBOUND = "torch.Tensor.op(x, ...)"
    FUNCTION = "torch.op(x, ...)"


@record(frozen=True, slots=True)
class Observation:
    """The call as it was met on one path: with these values, from these callers."""

    receiver: Value
    """The tensor operated on, whatever the form."""
    arguments: tuple[Value, ...]
    """Without the receiver."""
    keywords: tuple[tuple[str, Value], ...]
    target: Target | None = None
    """The sizes asked for by view, view_as or reshape; None where not even their number is known."""
    is_target_a_shape: bool = True
    """False where the argument may be a dtype, so that `.reshape` might not take it."""
    default: Judgement | None = None
    """With everything that the source does not fix contiguous; None where the receiver is not a tensor."""
    any: Judgement | None = None
    """With everything that the source does not fix of any strides."""
    uncopied: tuple[Judgement, Judgement] | None = None
    """`default` and `any` without the `.contiguous()` or `.clone()` that matrix_exp gets: Inductor may leave it out."""
    when: frozenset[Condition] = frozenset()
    """The tests, beside those of arguments alone, that must come out so for the receiver to be this one of several."""
    callers: tuple[Reason, ...] = ()
    """The calls through which the path came, outermost first; empty where the function was taken by itself."""
    names: tuple[tuple[str, Size], ...] = ()
    """Expressions for sizes at this place, `b` and `x.shape[0]`; noted for bmm, and where a target begins with a
    fixed number in a function taken by itself."""


class BatchKind(Enum):
    """How many matrices a bmm may get."""

    CONSTANT = "fixed by literals, settings or parameters of the model"
    INPUT = "one size of an input, times constants"
    GROWING = "a product of sizes, a flattened batch, or a count that the data decides"
    UNKNOWN = "not followed"


@record(frozen=True, slots=True)
class BatchDim:
    """A dim of an export that is the batch of a bmm."""

    line: int
    """Of the export."""
    share: int
    """How many matrices each of its elements is."""
    most: int | None
    """Its upper bound as it is written, where that is a number."""


@record(frozen=True, slots=True)
class Batch:
    """Where the batch of a bmm comes from."""

    kind: BatchKind
    reasons: tuple[Reason, ...] = ()
    is_expanded: bool = False
    """An operand repeats one matrix with stride 0."""
    count: int | None = None
    """How many matrices at most, where that is a number."""
    elements: int | None = None
    """Of the largest operand or result in calls of this file, where all sizes are numbers."""
    bound_by: tuple[Reason, ...] = ()
    """What already keeps the batch small or fixed to one graph: a chunk loop, an exported Dim, TorchScript."""
    exported: tuple[BatchDim, ...] = ()
    """The exported dims that it is, times constants, where nothing but them keeps it small."""


@record(frozen=True, slots=True)
class HardCoded:
    """A target's size that is written as a number, or as a name bound to one, and what says that it should not be."""

    position: int
    text: str
    varies: tuple[Reason, ...] = ()
    """What shows that this size is the batch and differs between calls; empty: nothing does."""
    contradicts: tuple[Reason, ...] = ()
    """Calls of this file whose elements do not fit, in a way that another batch size would not explain."""
    inferred_at: int | None = None
    """Position of the target's own `-1`."""
    inferred_text: str = ""
    """An expression for the size that the target's own `-1` stands for; empty: none is known."""
    batch_text: str = ""
    """An expression for the batch as the receiver has it, `x.shape[0]`; empty: none is known."""
    is_moved: bool = False
    """The target's own `-1` is at the wrong dim: what it comes to now is not what the call is to become."""


@record(frozen=True, slots=True)
class OpCall:
    """One call of an op that some Transform cares for.  Holds a syntax node: it stays in the worker that parsed it."""

    path: str
    operation: str
    """view, view_as, reshape, reshape_as, flatten, contiguous, bmm, Dim, mark_dynamic, matrix_exp."""
    form: Form
    span: Span
    node: ast.Call
    """Of a `Dim.AUTO` that is not called, a call of it without arguments, which the tree does not hold."""
    observations: tuple[Observation, ...]
    """Empty where the analysis did not reach the call."""
    writes: tuple[Reason, ...] = ()
    """Places that write in place to the result or to an alias of it."""
    keeps: tuple[Reason, ...] = ()
    """Places that keep the result as an attribute, where it may go on sharing storage."""
    is_unshared: bool = False
    """Of a call that is written or kept: nothing but its result holds the receiver's memory."""
    is_temporary: bool = False
    """The result has no name: what is written to it can be read only through the receiver."""
    is_guarded: bool = False
    """Stands in a `try` whose handler takes the RuntimeError: refusing is part of the program's control flow."""
    function: str = ""
    """Qualified name of the function that holds the call."""
    hard_coded: HardCoded | None = None
    """Of view and reshape, where a size is hard-coded and something in the file speaks to it."""
    batch: Batch | None = None
    """Of bmm."""
    compiled: tuple[Reason, ...] = ()
    """Of matrix_exp and view: the `torch.compile` of this file that reaches it."""
    batches: tuple[Reason, ...] = ()
    """Of Dim: the bmm calls of this file that take it as their batch."""
    share: int = 1
    """Of Dim: how many matrices of those bmm calls each of its elements is."""
    largest: int | None = None
    """Of Dim: the largest batch that was recorded at a bmm which takes that very size."""
    fixing: tuple[Reason, ...] = ()
    """Of Dim: exports whose example input has size 0 or 1 there, which torch takes for a constant."""
    sample: int | None = None
    """Of Dim: the largest size there of an example input."""
    is_batch: bool | None = None
    """Of Dim: whether the exports of this file have it as dim 0, and nowhere else; None where none has it."""
    packages: tuple[Reason, ...] = ()
    """Of Dim: what packages programs of this file for AOTInductor."""
    seen: Seen = UNSEEN
    """What logs and recorded runs show of it."""
