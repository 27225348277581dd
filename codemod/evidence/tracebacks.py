"""From the text of a log to its failures."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from codemod.evidence.failure import Details, Failure, Frame, Kind, Stage
from codemod.evidence.frames import frame_at, is_pytest_end
from codemod.evidence.log_text import plain_lines
from codemod.evidence.messages import recognise
from codemod.evidence.paths import RECORDER, is_foreign, is_generated

_HEAD = re.compile(r"Traceback (?:of TorchScript\b.{0,40}?)?\(most recent call last\)")
_INNER_HEAD = re.compile(r"Original Traceback|Traceback of TorchScript")
_INNER_BEFORE = re.compile(r"-- Process \d+ terminated with the following error|^\s*\"\"\"\s*$")
_DEBUGGER = re.compile(r"\s*Exception has occurred: (?P<name>[\w.]+)")
"""A debugger of VS Code: the message comes first, then the frames, innermost first."""
_JOINT = re.compile(r"During handling of the above exception, another|The above exception was the direct cause of")
_APART = {
    "from user code:": Stage.DYNAMO,
    "User stack:": Stage.DYNAMO,
    "Original traceback:": Stage.DECOMPOSITION,
    "Found from :": Stage.INDUCTOR,
}
"""Heads of frames that torch prints apart for the user's code, and the stage that prints them."""
_NAME = re.compile(r"\s*(?P<name>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?::(?:\s.*)?)?$")
_ERROR_NAME = re.compile(r"(?:Error|Exception|Interrupt|Failed|Unsupported|Exit|Failure|Violation)$")
_PYTEST_ERROR = re.compile(r"E(?:\s{2,}|$)")
_SECTION = re.compile(
    r"(?:_ ){5,}|_{3,} \S.* _{3,}\s*$|={3,} .* ={3,}\s*$|-{60,}\s*$|\[Inferior|exit status|Error: Process completed"
)
_TOLD = frozenset({Kind.VIEW_REFUSED, Kind.SHAPE_INVALID, Kind.DTYPE_VIEW, Kind.SPECIALIZED})
"""What is a failure even where no traceback stands above it."""
_TOLD_WORDS = re.compile(
    r"view size is|view a tensor|is invalid for input|to view|reshape|Tensor must have|a constant \("
)
_WRAPPERS = re.compile(r"(?:\w+\.)*(?:ChildFailedError|ProcessRaisedException|CalledProcessError)\b")
_GENERATED_OP = re.compile(
    r"torch\.ops\.\w+\.(\w+)|extern_kernels\.(\w+)|\btriton_tem_fused_(?:\w+_)?(b?mm|baddbmm|addmm)_"
)
_AOT = re.compile(r"torch/_inductor/package/|torch/export/pt2_archive/")
_EXPORT = re.compile(r"torch/_?export/|torch/_dynamo/functional_export")
_LONGEST_CHAIN = 40
_MESSAGE_LINES = 60
_FAR_LINES = 400
"""How far below a torch error the user's frames are looked for: Inductor prints graphs in between."""
_NEAR_LINES = 12


@dataclass(frozen=True, slots=True)
class _Block:
    """One printed traceback with its message."""

    number: int
    frames: tuple[Frame, ...]
    message: str
    apart: tuple[Frame, ...] = ()
    apart_stage: Stage | None = None
    is_joined: bool = False
    """Belongs to the block before it: its cause, its context, or what it wraps."""


@dataclass(frozen=True, slots=True)
class _Message:
    text: str
    apart: tuple[Frame, ...]
    apart_stage: Stage | None
    behind: int


def read_log(text: str) -> tuple[Failure, ...]:
    """The failures of a log in their order; one that several ranks or wrappers tell is one."""
    streams: dict[str, list[tuple[int, str]]] = {}
    for line in plain_lines(text):
        streams.setdefault(line.stream, []).append((line.number, line.text))
    found: list[tuple[int, Failure]] = []
    for numbered in streams.values():
        blocks = _blocks([line for _, line in numbered])
        chains = _chains(_untraced(replace(block, number=numbered[block.number][0])) for block in blocks)
        found += [pair for chain in chains for pair in _failures(chain)]
    return _merged([failure for _, failure in sorted(found, key=lambda pair: pair[0])])


def _untraced(block: _Block) -> _Block:
    return replace(block, frames=tuple(frame for frame in block.frames if frame.path != RECORDER))


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    """The tracebacks of one stream, and known messages that stand alone; numbers are indices into `lines`."""
    index, frames, is_joined, is_direct = 0, [], False, False
    while index < len(lines):
        line = lines[index]
        if found := frame_at(lines, index):
            frames.append(found[0])
            index, is_direct = found[1], True
        elif _PYTEST_ERROR.match(line):
            behind, blocks = _pytest(lines, index, tuple(frames), is_joined)
            yield from blocks
            index, frames, is_joined = behind, [], False
        elif frames and _is_error(line, is_direct):
            message = _message(lines, index)
            yield _Block(index, tuple(frames), message.text, message.apart, message.apart_stage, is_joined)
            index, frames, is_joined = message.behind, [], False
        elif frames and is_direct and _is_told(line):
            yield _Block(index, tuple(frames), line.strip(), is_joined=is_joined)
            index, frames, is_joined = index + 1, [], False
        elif (debugged := _debugged(lines, index)) is not None:
            yield debugged[0]
            index, frames, is_joined = debugged[1], [], False
        elif _HEAD.search(line):
            is_joined = is_joined or _is_inner(lines, index)
            index, frames = index + 1, []
        else:
            alone, behind = (None, index + 1) if frames else _alone(lines, index)
            if alone is not None:
                yield alone
            is_joined = is_joined or (not frames and bool(_JOINT.search(line)))
            frames = [] if _SECTION.match(line) and line.startswith("___") else frames
            index, is_direct = behind, False


def _is_inner(lines: Sequence[str], index: int) -> bool:
    return bool(_INNER_HEAD.search(lines[index])) or (index > 0 and bool(_INNER_BEFORE.search(lines[index - 1])))


def _is_error(line: str, is_direct: bool) -> bool:
    """Whether the line behind frames is `Name: message`; anything of that form where it follows them directly."""
    match = _NAME.match(line.split(": ", 1)[0] + ":" if ": " in line else line)
    return match is not None and (is_direct or bool(_ERROR_NAME.search(match["name"])))


def _alone(lines: Sequence[str], index: int) -> tuple[_Block | None, int]:
    """(block, behind) of a known message that ends no traceback; collectors of errors print the frames below it."""
    line = lines[index]
    if not _is_told(line):
        return None, index + 1
    frames, behind = _frames(lines, index + 1)
    if not frames or (behind < len(lines) and _is_error(lines[behind], True)):
        return _Block(index, (), line.strip()), index + 1
    is_innermost_first = frames[-1].function == "<module>" != frames[0].function
    return _Block(index, frames[::-1] if is_innermost_first else frames, line.strip()), behind


def _is_told(line: str) -> bool:
    known = recognise(line) if _TOLD_WORDS.search(line) and "Warning:" not in line else None
    return known is not None and known[0] in _TOLD


def _debugged(lines: Sequence[str], index: int) -> tuple[_Block, int] | None:
    """(block, behind) of what a debugger prints from this line on."""
    head = _DEBUGGER.match(lines[index])
    if head is None:
        return None
    for place in range(index + 1, min(index + _MESSAGE_LINES, len(lines))):
        frames, behind = _frames(lines, place)
        if frames:
            message = "\n".join(lines[index + 1 : place])
            return _Block(index, frames[::-1], f"{head['name']}: {message}"), behind
        if _ends_message(lines[place]):
            break
    return None


def _message(lines: Sequence[str], index: int) -> _Message:
    """The message that begins at `index`, with the frames that torch prints behind it for the user's code."""
    behind = _paragraph_end(lines, index)
    text = "\n".join(lines[index:behind])
    is_torch = lines[index].lstrip().startswith("torch.")
    place, far = index + 1, index + (_FAR_LINES if is_torch else _NEAR_LINES)
    apart: tuple[Frame, ...] = ()
    stage = None
    while place < min(max(far, behind), len(lines)) and not _ends_message(lines[place]):
        if (head := _APART.get(lines[place].strip())) is not None:
            frames, place = _frames(lines, place + 1)
            apart, stage = (frames, head) if frames else (apart, stage)
            behind = max(behind, place)
            continue
        if lines[place].startswith("While executing ") or "Hint:" in lines[place]:
            text += "\n" * (place >= behind) + (lines[place] if place >= behind else "")
        place += 1
    return _Message(text, apart, stage, behind)


def _paragraph_end(lines: Sequence[str], index: int) -> int:
    for place in range(index + 1, min(index + _MESSAGE_LINES, len(lines))):
        line = lines[place]
        if not line.strip() or _ends_message(line) or line.strip() in _APART:
            return place
    return min(index + _MESSAGE_LINES, len(lines))


def _ends_message(line: str) -> bool:
    return bool(_HEAD.search(line) or _JOINT.search(line) or _SECTION.match(line))


def _frames(lines: Sequence[str], index: int) -> tuple[tuple[Frame, ...], int]:
    frames: list[Frame] = []
    while index < len(lines) and (found := frame_at(lines, index)):
        frames.append(found[0])
        index = found[1]
    return tuple(frames), index


def _pytest(
    lines: Sequence[str], index: int, frames: tuple[Frame, ...], is_joined: bool
) -> tuple[int, tuple[_Block, ...]]:
    """(behind, blocks) of the lines that pytest marks with `E`; the place of its long form stands below them."""
    behind = index
    while behind < len(lines) and _PYTEST_ERROR.match(lines[behind]):
        behind += 1
    told = textwrap.dedent("\n".join(f" {line[1:]}" for line in lines[index:behind])).split("\n")
    if (place := _pytest_end(lines, behind)) is not None and (found := frame_at(lines, place)):
        frames, behind = (*frames, found[0]), found[1]
    message = _message(told, 0)
    outer = _Block(index, frames, message.text, message.apart, message.apart_stage, is_joined)
    inner = [replace(block, number=index, is_joined=True) for block in _blocks(told[message.behind :])]
    return behind, (outer, *inner)


def _pytest_end(lines: Sequence[str], index: int) -> int | None:
    """The place of an error, below the lines marked with `E` and what `--showlocals` prints."""
    for place in range(index, min(index + _FAR_LINES, len(lines))):
        if is_pytest_end(lines[place]):
            return place
        if _ends_message(lines[place]) or _PYTEST_ERROR.match(lines[place]) or lines[place].startswith(">"):
            break
    return None


def _chains(blocks: Iterator[_Block]) -> Iterator[tuple[_Block, ...]]:
    chain: list[_Block] = []
    for block in blocks:
        if chain and (not block.is_joined or len(chain) == _LONGEST_CHAIN):
            yield tuple(chain)
            chain = []
        chain.append(block)
    if chain:
        yield tuple(chain)


def _failures(chain: tuple[_Block, ...]) -> Iterator[tuple[int, Failure]]:
    """What a chain of exceptions tells: each known failure once, else the last exception."""
    known = [block for block in chain if recognise(block.message)]
    told: list[tuple[_Block, Failure]] = []
    for block in known or chain[-1:]:
        failure = _failure(block, chain)
        if not any(_is_retold(failure, block, before) for _, before in told):
            told.append((block, failure))
    yield from ((block.number, failure) for block, failure in told)


def _failure(block: _Block, chain: tuple[_Block, ...]) -> Failure:
    kind, details = recognise(block.message) or (Kind.OTHER, Details())
    frames = _spliced(block, chain)
    apart = _apart(block, chain, kind)
    operation = details.operation or _generated_operation(frames)
    if kind is Kind.LAUNCH_REFUSED and (operation == "bmm" or any("bmm" in (f.text or "") for f in frames[-3:])):
        kind = Kind.BATCH_TOO_LARGE
    chosen = apart.apart if apart else frames
    stage = _stage(frames, chosen, apart.apart_stage if apart else None)
    return Failure(kind, block.message, chosen, stage, replace(details, operation=operation), apart is not None)


def _apart(block: _Block, chain: tuple[_Block, ...], kind: Kind) -> _Block | None:
    """The block of the chain that tells the same and has the user's frames apart."""
    for other in (block, *chain):
        if other.apart and (known := recognise(other.message)) and known[0] is kind:
            return other
    return None


def _spliced(block: _Block, chain: tuple[_Block, ...]) -> tuple[Frame, ...]:
    """The frames with those above the `try` that caught the exception, which only the next traceback shows."""
    if not block.frames:
        return ()
    first = block.frames[0]
    for other in chain[chain.index(block) + 1 :]:
        for place in range(len(other.frames) - 1, -1, -1):
            frame = other.frames[place]
            if (frame.path, frame.function) == (first.path, first.function):
                return (*other.frames[:place], *block.frames)
    return block.frames


def _is_retold(failure: Failure, block: _Block, before: Failure) -> bool:
    """Whether the block only passes on the failure `before`: it re-raises, or torch's own code raises it again."""
    if failure.kind is not before.kind:
        return False
    last = block.frames[-1] if block.frames else None
    return last is None or is_foreign(last.path) or (last.text or "").startswith("raise")


def _generated_operation(frames: tuple[Frame, ...]) -> str:
    """The op of the innermost line of code that Inductor wrote."""
    texts = (frame.text or "" for frame in reversed(frames) if is_generated(frame.path))
    match = next((match for text in texts if (match := _GENERATED_OP.search(text))), None)
    return next((group for group in match.groups() if group), "") if match else ""


def _stage(frames: tuple[Frame, ...], chosen: tuple[Frame, ...], apart: Stage | None) -> Stage:
    """From torch's own frames, and from the head of those that stand `apart`."""
    paths = [frame.path.replace("\\", "/") for frame in frames + chosen]
    functions = [frame.function for frame in frames]
    if any(_AOT.search(path) for path in paths) or any(function.startswith("aoti_") for function in functions):
        return Stage.AOTINDUCTOR
    if any(_EXPORT.search(path) for path in paths):
        return Stage.DECOMPOSITION if any("decompos" in function for function in functions) else Stage.EXPORT
    if apart is not None:
        return apart
    if any(is_generated(path) or "torch/_inductor/" in path for path in paths):
        return Stage.INDUCTOR
    return Stage.DYNAMO if any("torch/_dynamo/symbolic_convert" in path for path in paths) else Stage.EAGER


def _merged(failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """Without those told before, and without those of no place where the same is told with one."""
    placed = {_words(failure) for failure in failures if _place(failure)}
    kept: dict[object, Failure] = {}
    is_known = any(failure.kind is not Kind.OTHER for failure in failures)
    for failure in failures:
        if _place(failure) is None and _words(failure) in placed:
            continue
        if is_known and failure.kind is Kind.OTHER and _WRAPPERS.match(failure.message):
            continue
        last = _place(failure) or next(reversed(failure.frames), None)
        kept.setdefault((_words(failure), last and (last.path, last.line, last.column, last.text)), failure)
    return tuple(kept.values())


def _place(failure: Failure) -> Frame | None:
    return next((frame for frame in reversed(failure.frames) if not is_foreign(frame.path)), None)


def _words(failure: Failure) -> object:
    """What makes two tellings the same: all of a known kind that hold the same numbers, else the message."""
    if failure.kind is Kind.OTHER:
        return " ".join(failure.message.split())
    details = failure.details
    return failure.kind, details.sizes, details.strides, details.target, details.elements, details.constants
