"""Frames as Python, pytest, IPython, rich and TorchScript print them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from unicodedata import east_asian_width

from codemod.evidence.failure import Frame

_PYTHON = re.compile(
    r'(?P<indent>\s*)(?:(?:> ?)?File "|(?=[^\s"]+", line \d+, in ))(?P<path>[^"\n]+)", line (?P<line>\d+)'
    r"(?:, in (?P<function>[^,]*[^,\s]))?\s*$"
)
_CARETS = re.compile(r"\s*[~^]*[~^][~^]*\s*$")
_REPEATED = re.compile(r"\s*\[Previous line repeated \d+ more times?\]")
_ELIDED = re.compile(r"\s*\.\.\.<\d+ lines?>\.\.\.\s*$")
_CELL = re.compile(
    r"(?P<path>(?:Cell |Input )In ?\[\d+\]),(?: in <cell)? line:? (?P<line>\d+)(?:>.*|, in (?P<function>[\w.<>]+).*)?$"
    r"|File (?P<command><command-\d+>)(?::|, line )(?P<at>\d+)(?:, in (?P<called>[\w.<>]+).*)?$"  # Databricks
    r"|(?P<old>Input In ?\[\d+\]), in (?P<name>[\w.<>]+)\(.*$"
)
_IPYTHON = re.compile(
    r"(?:File )?(?P<path>\S[^(]*?):(?P<line>\d+), in (?P<function>[\w.<>]+)(?:\(.*)?$"
    r"|File (?P<module>\S[^(]*?\.py):(?P<at>\d+)$"
)
_OLD_IPYTHON = re.compile(
    r"(?P<path><ipython-input-[\w-]+>|\S[^()]*\.py|\S[^()]*\.ipynb Cell \d+'?)"
    r" in (?P<function>[\w.<>]+|<cell line: \d+>)(?:\(.*\))?\s*$"
)
_PLAIN = re.compile(r"\s*File (?P<path>\S[^\"]*?):(?P<line>\d+)(?: in (?P<function>[\w.<>]+))?\s*$")
_IPYTHON_ARROW = re.compile(r"\s*-+>\s*(?P<line>\d+)(?: (?P<text>.*))?$")
_IPYTHON_CONTEXT = re.compile(r"\s*(?:\d+\b.*|\(\.\.\.\)|\.\.\.)$|\s*$")
_RICH = re.compile(r"\s*(?P<path>\S.*?):(?P<line>\d+) in(?: (?P<function>[\w.<>]+))?\s*$")
_RICH_ARROW = re.compile(r"\s*[❱>] +(?P<line>\d+)(?: [│|\s]*(?P<text>.*))?$")
_PYTEST_SHORT = re.compile(r"(?P<path>\S.*?\.\w+):(?P<line>\d+): in (?P<function>[\w.<>]+)\s*$")
_PYTEST_LONG = re.compile(r"(?P<path>\S.*?\.\w+):(?P<line>\d+):\s*(?P<error>(?:\w+\.)*\w+)?\s*$")
_PYTEST_CODE = re.compile(r">(?P<text>\s.*)$")
_DEF = re.compile(r"\s*(?:async\s+)?def (\w+)\(")
_SEPARATOR = re.compile(r"(?:_ ){5,}|_{3,} .* _{3,}|={5,}|-{5,}")
_SCRIPT_MARK = re.compile(r"(?P<before>\s*)(?P<marks>~+)\s*<--- HERE")
_PATHS = ("path", "old", "command", "module")
_FUNCTIONS = ("function", "name", "called")
_LINES = ("line", "at")
"""Groups of the heads above: which of them a head has tells its form."""
_FAR = 600
"""Lines that are looked through for the marked one of a frame."""

Found = tuple[Frame, int]
"""A frame and the index of the line behind it."""


def frame_at(lines: Sequence[str], index: int) -> Found | None:
    """The frame that begins (with pytest's long form: ends) at `lines[index]`."""
    line = lines[index]
    if 'File "' in line or '", line ' in line:
        return _python(lines, index)
    if "Cell In" in line or "Input In" in line or ", in " in line or "<ipython-input" in line or "<command-" in line:
        return _ipython(lines, index)
    if ": in " in line:
        return _pytest_short(lines, index)
    if " in " in line or line.rstrip().endswith(" in"):
        return _rich(lines, index) or _plain(lines, index) or _ipython(lines, index)
    if ".py:" in line:
        return _pytest_long(lines, index) or _plain(lines, index) or _ipython(lines, index)
    return None


def is_pytest_end(line: str) -> bool:
    """Whether the line names place and error, `x.py:6: RuntimeError`, as pytest ends a traceback."""
    match = _PYTEST_LONG.match(line)
    return match is not None and bool(match["error"])


def _python(lines: Sequence[str], index: int) -> Found | None:
    head = _PYTHON.match(lines[index])
    if head is None:
        return None
    function = head["function"] or ""
    if (script := _script(lines, index, head)) is not None:
        return script
    indent, behind = len(head["indent"]), index + 1
    source = _source(lines, behind, indent)
    if source is None:
        return Frame(head["path"], int(head["line"]), function), behind
    behind += 1
    marks = lines[behind] if behind < len(lines) and _CARETS.match(lines[behind]) else ""
    # where all blanks in front were lost, the carets stand under nothing
    marks = marks if (indent or _indent(source)) and not _is_wide(source[: len(marks.rstrip())]) else ""
    # of what is repeated only the line is the same, and the carets are those of the first
    marks = "" if _is_repeated(lines, behind) else marks
    frame = _marked(Frame(head["path"], int(head["line"]), function), source, marks)
    return frame, _behind(lines, behind, indent)


def _is_repeated(lines: Sequence[str], index: int) -> bool:
    """Whether Python says, behind carets or at once, that it leaves out frames like the one above."""
    while index < len(lines) and lines[index].strip() and _CARETS.match(lines[index]):
        index += 1
    return index < len(lines) and bool(_REPEATED.match(lines[index]))


def _source(lines: Sequence[str], index: int, indent: int) -> str | None:
    """The source line printed under a frame whose head has `indent` blanks."""
    line = lines[index] if index < len(lines) else ""
    if not line.strip() or _PYTHON.match(line) or _CARETS.match(line) or _REPEATED.match(line):
        return None
    return line if not indent or _indent(line) > indent else None


def _behind(lines: Sequence[str], index: int, indent: int) -> int:
    """Past carets and the further lines that Python 3.13 prints of a statement."""
    while index < len(lines) and (_CARETS.match(lines[index]) or _REPEATED.match(lines[index])):
        index += 1
        further = index
        while further < len(lines) and indent and _indent(lines[further]) > indent and lines[further].strip():
            further += 1
        index = further
    if index < len(lines) and _ELIDED.match(lines[index]):
        while index < len(lines) and lines[index].strip() and _indent(lines[index]) > indent:
            index += 1
    return index


def _script(lines: Sequence[str], index: int, head: re.Match[str]) -> Found | None:
    """TorchScript prints lines around the failing one and marks it from below."""
    for place in range(index + 2, min(index + 14, len(lines))):
        if mark := _SCRIPT_MARK.match(lines[place]):
            marks = mark["before"] + mark["marks"]
            frame = Frame(head["path"], int(head["line"]), head["function"] or "")
            return _marked(frame, lines[place - 1], marks), place + 1
        if 'File "' in lines[place]:
            break
    return None


def _marked(frame: Frame, source: str, marks: str) -> Frame:
    text = source.strip()
    column, end = None, None
    if marks.strip():
        column = _indent(marks) - _indent(source) + 1
        end = min(len(marks.rstrip()) - _indent(source), len(text)) + 1
        if not 0 < column < end:
            column = end = None
    return Frame(frame.path, frame.line, frame.function, text, column, end)


def _is_wide(text: str) -> bool:
    """Whether characters in it fill two columns: some Pythons count one and some two of them before the carets."""
    return not text.isascii() and any(east_asian_width(character) in "WF" for character in text)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _ipython(lines: Sequence[str], index: int) -> Found | None:
    line = lines[index].strip()
    head = _CELL.match(line) or _IPYTHON.match(line) or _OLD_IPYTHON.match(line)
    if head is None:
        return None
    for place in range(_behind_arguments(lines, index), min(index + 1 + _FAR, len(lines))):
        if arrow := _IPYTHON_ARROW.match(lines[place]):
            return _arrow_frame(lines, place, head, arrow)
        if not _IPYTHON_CONTEXT.match(lines[place]):
            break
    number = next((head[name] for name in _LINES if head.groupdict().get(name)), None)
    if number is None or not line.startswith(("File ", "Cell ", "Input ")):
        return None
    path, function = _head(head)
    return Frame(path, int(number), function), index + 1


def _plain(lines: Sequence[str], index: int) -> Found | None:
    """A frame as IPython prints it under `%xmode Plain`."""
    head = _PLAIN.match(lines[index])
    source = _source(lines, index + 1, 1) if head is not None else None
    if head is None or source is None or _IPYTHON_ARROW.match(source) or _IPYTHON_CONTEXT.match(source):
        return None
    return Frame(head["path"], int(head["line"]), head["function"] or "", source.strip()), index + 2


def _behind_arguments(lines: Sequence[str], index: int) -> int:
    """Past the head of a frame, whose arguments may be printed over several lines."""
    if lines[index].count("(") <= lines[index].count(")"):
        return index + 1
    for place in range(index, min(index + _FAR, len(lines))):
        if _IPYTHON_ARROW.match(lines[place]):
            break
        if lines[place].rstrip().endswith(")"):
            return place + 1
    return index + 1


def _head(head: re.Match[str]) -> tuple[str, str]:
    """(path, function) of an IPython or rich head."""
    groups = head.groupdict()
    path = next((groups[name] for name in _PATHS if groups.get(name)), "")
    return path.strip(), next((groups[name] for name in _FUNCTIONS if groups.get(name)), "")


def _rich(lines: Sequence[str], index: int) -> Found | None:
    head = _RICH.match(lines[index])
    if head is None or not (head["function"] or _is_name(lines, index + 1)):
        return None
    for place in range(index + 1, min(index + 40, len(lines))):
        if arrow := _RICH_ARROW.match(lines[place]):
            found, behind = _arrow_frame(lines, place, head, arrow, _folded(lines, index))
            return replace(found, function=found.function or lines[index + 1].strip()), behind
        if _RICH.match(lines[place]):
            break
    return None


def _is_name(lines: Sequence[str], index: int) -> bool:
    """Whether the line is a function's name, which rich puts below where the path fills its box."""
    return index < len(lines) and bool(re.fullmatch(r"\s*[\w.<>]+\s*", lines[index]))


def _folded(lines: Sequence[str], index: int) -> str:
    """The first part of a path that rich broke at the border of its box."""
    before = lines[index - 1].strip() if index else ""
    return (
        before
        if re.match(r"(?:[/~]|[A-Za-z]:\\)\S*$", before) and not lines[index].strip().startswith(("/", "~"))
        else ""
    )


def _arrow_frame(
    lines: Sequence[str], place: int, head: re.Match[str], arrow: re.Match[str], folded: str = ""
) -> Found:
    source = " " * arrow.start("text") + (arrow["text"] or "")
    behind = place + 1
    marks = lines[behind] if behind < len(lines) and lines[behind].strip() and _CARETS.match(lines[behind]) else ""
    path, function = _head(head)
    frame = _marked(Frame(folded + path, int(arrow["line"]), function), source, marks)
    return frame, behind + bool(marks)


def _pytest_short(lines: Sequence[str], index: int) -> Found | None:
    head = _PYTEST_SHORT.match(lines[index])
    if head is None:
        return None
    frame = Frame(head["path"], int(head["line"]), head["function"])
    source = _source(lines, index + 1, 1)
    if source is None:
        return frame, index + 1
    marks = lines[index + 2] if index + 2 < len(lines) and _CARETS.match(lines[index + 2]) else ""
    return _marked(frame, source, marks), index + 2 + bool(marks)


def _pytest_long(lines: Sequence[str], index: int) -> Found | None:
    """pytest's long form has the place below the code: the marked line is looked for upwards."""
    head = _PYTEST_LONG.match(lines[index])
    if head is None:
        return None
    for place in range(index - 1, max(index - _FAR, -1), -1):
        if code := _PYTEST_CODE.match(lines[place]):
            marks = lines[place + 1] if _CARETS.match(lines[place + 1]) and lines[place + 1].strip() else ""
            source = f" {code['text']}"
            frame = Frame(head["path"], int(head["line"]), _function_above(lines, place, _indent(source)))
            return _marked(frame, source, marks), index + 1
        if _SEPARATOR.match(lines[place]) or _PYTEST_LONG.match(lines[place]):
            break
    return None


def _function_above(lines: Sequence[str], place: int, indent: int) -> str:
    """The function around the line, which has `indent` blanks: not one that ends above it."""
    for above in range(place - 1, max(place - _FAR, -1), -1):
        own = _indent(lines[above])
        if own < indent and (match := _DEF.match(lines[above])):
            return match[1]
        indent = min(indent, own) if lines[above].strip() else indent
        if _SEPARATOR.match(lines[above]):
            break
    return ""
