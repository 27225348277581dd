"""What torch's own words say: the kind of a failure and the sizes in its message."""

from __future__ import annotations

import re

from codemod.evidence.failure import Details, Kind, Sizes

_LONGEST = 20_000
"""Characters of a message that are looked at: Inductor prints whole graphs."""

# The first that is found decides: what wraps another message stands behind it.
_KINDS = (
    (Kind.VIEW_REFUSED, r"view size is not compatible with input tensor'?s size and stride"),
    (Kind.VIEW_REFUSED, r"Cannot view a tensor with shape \S.{0,400}? and strides"),
    (Kind.VIEW_REFUSED, r"input is not contiguous(?: at|\b.{0,40}\bview)"),  # torch before 0.4
    (Kind.SHAPE_INVALID, r"shape '\[[^\]]*\]' is invalid for input (?:of size|with)"),
    (Kind.SHAPE_INVALID, r"size '\[[^\]]*\]' is invalid for input (?:of|with) "),  # torch before 0.4
    (Kind.SHAPE_INVALID, r"Could not reshape a tensor with shape "),
    (Kind.SHAPE_INVALID, r"[Cc]annot reshape tensor of 0 elements into shape "),
    (Kind.DTYPE_VIEW, r"self\.(?:stride|size|storage_offset|dim)\([^)]*\) .{1,60} to view \w+ as \w+"),
    (Kind.DTYPE_VIEW, r"Tensor must have a (?:last dimension (?:with stride 1|of size 2)|stride divisible by 2)"),
    (Kind.DTYPE_VIEW, r"Tensor must have a storage_offset divisible by 2"),
    (Kind.SPECIALIZED, r"(?:You marked \S+ as dynamic but your code )?specialized it to be a constant \(\d+\)"),
    (Kind.SPECIALIZED, r"(?:Not all values of .{1,200}? )?was inferred to be a constant \(\d+\)"),
    (Kind.CONSTRAINT_VIOLATED, r"Constraints violated \("),
    (Kind.EXPORTED_SIZE, r"Guard failed: \S+\.size\(\)\[\d+\]"),
    (Kind.EXPORTED_SIZE, r"input_handles\[\d+\]: (?:unmatched dim value|dim value is too (?:small|large))"),
    (Kind.EXPORTED_SIZE, r"Expected input at \S+\.shape\[\d+\] to be "),
    (Kind.OUTPUT_LIMIT, r"Output size of the matrix multiplication is larger than currently supported by the MPS"),
    (Kind.OUTPUT_LIMIT, r"MPSGra?ph does not support tensor dims larger than INT_MAX"),
    (Kind.BLAS, r"\b(?:CU|HIP|ROC)BLAS(?:LT)?_STATUS_\w+"),
    (Kind.OUT_OF_MEMORY, r"\bout of memory\b|OutOfMemoryError|not enough memory: you tried to allocate"),
    (Kind.LAUNCH_REFUSED, r"Triton Error \[\w+\]: invalid argument"),
    (Kind.LAUNCH_REFUSED, r"(?:CUDA|HIP) (?:driver )?error: invalid (?:configuration )?argument"),
)
_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _KINDS)
_WORDS = (
    "view",
    "invalid",
    "reshape",
    "Tensor must",
    "constant",
    "Constraints",
    "contiguous",
    "memory",
    "BLAS",
    "MPS",
    "Output size",
    "Guard failed",
    "input_handles",
    "Expected input at",
)
"""One of them is in whatever the expressions above find."""

_LIST = r"(?:torch\.Size\()?[\[(]([^\])]*)[\])]\)?"
_VIEWED = re.compile(rf"with shape {_LIST}(?: and strides {_LIST})? as a tensor with shape {_LIST}")
_INVALID = re.compile(r"'\[([^\]]*)\]' is invalid for input (?:of size|with) (\d+)?")
_NO_ELEMENTS = re.compile(r"tensor of 0 elements into shape \[([^\]]*)\]")
_CONSTANT = re.compile(r"marked (\S+) as dynamic but your code specialized it to be a constant \((\d+)\)")
_INFERRED = re.compile(r"values of (\w+)\b.{0,400}?\bwas inferred to be a constant \((\d+)\)")
_CALLED = re.compile(r"call_(?:method|function) (?:<[^<>]*?method )?['\"]?(\w+)[^(]{0,200}\(\*\((.*?)\), \*\*\{")
_EXECUTED = re.compile(r"call_(?:method|function)\[target=([\w.]+)\]\(args = \((.*?)\), kwargs")
_DISPATCHED = re.compile(r"\bat::_ops::(\w+?)(?:_dtype|_out)?::(?:call|redispatch)\(")
_NUMBER = re.compile(r"-?\d+")


def recognise(message: str) -> tuple[Kind, Details] | None:
    """The kind and the details of a message; None where it is nothing known here."""
    if not any(word in message for word in _WORDS):
        return None
    flat = " ".join(message[:_LONGEST].split())
    for kind, pattern in _PATTERNS:
        if pattern.search(flat):
            return kind, _details(flat)
    return None


def quote(message: str) -> str:
    """From the words on that tell the kind, to the end of their line; of other messages the first line."""
    lines = message.strip().split("\n") if recognise(message) else []
    for _, pattern in _PATTERNS:
        for line in lines:
            if found := pattern.search(line):
                return " ".join(line[found.start() :].split())
    return " ".join(message.strip().partition("\n")[0].split())


def _details(flat: str) -> Details:
    operation, asked = _call(flat)
    constants = tuple((name, int(number)) for name, number in (_CONSTANT.findall(flat) + _INFERRED.findall(flat)))
    common = Details(constants=tuple(dict.fromkeys(constants)), operation=operation)
    if viewed := _VIEWED.search(flat):
        strides = _sizes(viewed[2]) if viewed[2] is not None else None
        return _with(common, _sizes(viewed[1]), strides, asked or _sizes(viewed[3]))
    if invalid := _INVALID.search(flat):
        return _with(common, target=_sizes(invalid[1]), elements=int(invalid[2]) if invalid[2] else None)
    if empty := _NO_ELEMENTS.search(flat):
        return _with(common, target=_sizes(empty[1]), elements=0)
    return common


def _with(
    common: Details,
    sizes: Sizes | None = None,
    strides: Sizes | None = None,
    target: Sizes | None = None,
    elements: int | None = None,
) -> Details:
    return Details(sizes, strides, target, elements, common.constants, common.operation)


def _sizes(listed: str) -> Sizes:
    """The numbers of `2, s0, -1,` (before torch 1.0 `2 x -1`); None for what is no number."""
    parts = [part.strip() for part in re.split(r",| x ", listed) if part.strip()]
    return tuple(int(part) if _NUMBER.fullmatch(part) else None for part in parts)


def _call(flat: str) -> tuple[str, Sizes | None]:
    """(op, sizes asked for) of the call that dynamo or fx prints: `view(*(FakeTensor(...), 2, -1), **{})`."""
    if called := _CALLED.search(flat):
        return called[1], _asked(called[2])
    if executed := _EXECUTED.search(flat):
        return _operation(executed[1]), _asked(executed[2])
    # of the frames in C++ the outermost is what Python, or a compiled program, called
    dispatched = _DISPATCHED.findall(flat)
    return (dispatched[-1] if dispatched else ""), None


def _operation(target: str) -> str:
    """`view` of `view`, `torch.ops.aten.view.default` and `torch.bmm`."""
    parts = target.split(".")
    if "aten" in parts[:-1]:
        return parts[parts.index("aten") + 1]
    return parts[-1]


def _asked(arguments: str) -> Sizes | None:
    """The sizes behind the receiver, spread or in brackets; None where something else is among them."""
    behind = re.sub(r"^(?:\w+\((?:[^()]|\([^()]*\))*\)|%?\w+)(?:,|$)", "", arguments, count=1).strip(" ()[],")
    if not behind or not re.fullmatch(r"(?:-?\w+(?:\*\w+)*|%\w+)(?:, ?(?:-?\w+(?:\*\w+)*|%\w+))*", behind):
        return None
    return _sizes(behind)
