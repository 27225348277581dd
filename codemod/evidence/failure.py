"""What a log says about one failure: plain values, without the log."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(str, Enum):
    """What torch objects to; the value is the word for users."""

    VIEW_REFUSED = "view-refused"
    SHAPE_INVALID = "shape-invalid"
    DTYPE_VIEW = "dtype-view"
    BATCH_TOO_LARGE = "batch-too-large"
    LAUNCH_REFUSED = "launch-refused"
    SPECIALIZED = "specialized"
    CONSTRAINT_VIOLATED = "constraint-violated"
    EXPORTED_SIZE = "exported-size"
    OUTPUT_LIMIT = "output-limit"
    BLAS = "blas"
    OUT_OF_MEMORY = "out-of-memory"
    OTHER = "other"

    @property
    def explanation(self) -> str:
        """One sentence for users."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    Kind.VIEW_REFUSED: "The strides of the tensor do not allow a view of this shape.",
    Kind.SHAPE_INVALID: "The sizes asked for do not hold as many elements as the tensor.",
    Kind.DTYPE_VIEW: "A view as another dtype needs a last dimension in one piece: .reshape() does not help.",
    Kind.BATCH_TOO_LARGE: "The batch of a bmm is larger than the grid of the kernel, 65,535.",
    Kind.LAUNCH_REFUSED: "A kernel was refused, and nothing in the log names a bmm.",
    Kind.SPECIALIZED: "A size declared as dynamic is fixed to a number by the code.",
    Kind.CONSTRAINT_VIOLATED: "What the code asks of a dynamic size is not what was declared.",
    Kind.EXPORTED_SIZE: "The program was exported for other sizes: export this dim as dynamic, with bounds that fit.",
    Kind.OUTPUT_LIMIT: "One matrix alone is too large for the device: another batch does not help.",
    Kind.BLAS: "The library of the device failed: look at driver, memory and dtype, not at the batch.",
    Kind.OUT_OF_MEMORY: "The device has not enough memory.",
    Kind.OTHER: "Not a failure of shape or layout that is known here.",
}


class Stage(str, Enum):
    """What was running when torch objected."""

    EAGER = "eager"
    DYNAMO = "dynamo"
    EXPORT = "export"
    DECOMPOSITION = "decomposition"
    INDUCTOR = "inductor"
    AOTINDUCTOR = "aotinductor"


Sizes = tuple[int | None, ...]
"""Sizes or strides as a message prints them; None stands for a symbol such as `s0`."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One place of a traceback."""

    path: str
    """As printed: `~/x.py`, `D:\\x.py`, `Cell In[3]`, `<string>`."""
    line: int
    function: str = ""
    text: str | None = None
    """The source line, stripped; None where it is not printed."""
    column: int | None = None
    """Where the caret marks begin, 1-based in `text`."""
    end_column: int | None = None
    """Just past the caret marks."""


@dataclass(frozen=True, slots=True)
class Details:
    """What a message tells; None or empty where it does not."""

    sizes: Sizes | None = None
    strides: Sizes | None = None
    target: Sizes | None = None
    """As the call gave it, `-1` included, except where the message holds only the inferred sizes."""
    elements: int | None = None
    constants: tuple[tuple[str, int], ...] = ()
    """(name of the Dim, number it was specialised to)."""
    operation: str = ""
    """The op as dynamo, fx or generated code names it: `view`, `bmm`, `linalg_matrix_exp`."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure of a log."""

    kind: Kind
    message: str
    frames: tuple[Frame, ...] = ()
    """Outermost first; of the user's code where the log prints that apart, else all of them."""
    stage: Stage = Stage.EAGER
    details: Details = Details()
    is_apart: bool = False
    """The frames are those that the log prints apart for the user's code (`from user code:`)."""

    @property
    def sizes(self) -> Sizes | None:
        return self.details.sizes

    @property
    def strides(self) -> Sizes | None:
        return self.details.strides

    @property
    def target(self) -> Sizes | None:
        return self.details.target

    @property
    def elements(self) -> int | None:
        return self.details.elements
