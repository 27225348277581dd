"""From a log as it was saved or pasted to its plain lines."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codemod.evidence.envelopes import HEADER, is_json, opened, texts_of
from codemod.evidence.packed import unpacked
from codemod.evidence.prefixes import prefixes_of, without_prefix

_ANSI = re.compile(
    r"(?:\x1b|\u241b|\^\[)(?:\[[0-9;:?]*[ -/]*[@-~]|[\]_PX^][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|[@-Z\\^_])"
    r"|\[\d{1,3}(?:;\d{1,3})*m"  # the escape was lost on the way
)
_BACKGROUND = re.compile(r"(?:\x1b|\u241b|\^\[)?\[(\d{0,3}(?:;\d{1,3})*)m")
_ARROW = re.compile(r"\s*-+>\s*\d+\s")

_FILE = re.compile(r'\bFile "[^"]+", line \d+')
_GLUED_FRAME = re.compile(r'\s*(?<!\S)(File "[^"]+", line \d+(?:, in (?:<\w+>|[\w.<>]+))?)[ \t]*')
_GLUED_CARETS = re.compile(r"[ \t][~^]*\^[~^]*(?=[ \t]|$)|[ \t]~*\^{2,}~*(?=\w)")
_GLUED_ERROR = re.compile(r"[ \t]+((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Failed|Unsupported): )")

_BORDER = re.compile(r"\s*[│┃|] ?(.*?)\s*[│┃|]\s*$")
_OPEN_BOX = re.compile(r"\s*[╭┌┏+][─━-]+ .*[─━-]+[╮┐┓+]\s*$")
_CLOSED_BOX = re.compile(r"\s*[╰└┗+][─━-]+[╯┘┛+]\s*$")


_NUMBERED = re.compile(r"\s*(?:[\w./\\-]{1,200}?[:-])?(?P<number>\d{1,9})(?:[:\t-] ?|[ |]{1,2}|$)")
_FEWEST = 4
"""Lines that are numbered one after the other."""

_LONG = 4_000_000
"""Characters from which a log is not read line by line."""
_BEFORE, _BEHIND, _STEP = 100_000, 200_000, 1_000
"""Characters around such a word; words nearer to one another than a step are one."""
_TELLING = ("Error", "Exception", "Traceback", "not compatible", "Constraints violated", "out of memory", "Cannot view")
"""One of them is at most so far from whatever `messages` knows."""


@dataclass(frozen=True, slots=True)
class Line:
    """One plain line: its number, from 1, among those that are read, and the stream (rank, process) that wrote it."""

    number: int
    stream: str
    text: str


def decode_log(raw: bytes) -> str:
    """The text of a log file, unpacked; never raises."""
    return "\n".join(map(_decoded, unpacked(raw)))


def _decoded(raw: bytes) -> str:
    """PowerShell's `>` writes UTF-16."""
    for bom, encoding in (
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
        (codecs.BOM_UTF8, "utf-8-sig"),
    ):
        if raw.startswith(bom):
            return raw.decode(encoding, errors="replace")
    # UTF-16 without its mark, or behind a beginning in another encoding, as `>>` of PowerShell writes it
    return raw.replace(b"\0", b"").decode("utf-8", errors="replace")


def plain_lines(text: str) -> tuple[Line, ...]:
    """The lines without colours, clocks, rank prefixes and boxes; joined lines are taken apart.

    A highlighted part of an IPython line becomes a line of carets below it.
    """
    whole = opened(_without_noise(text))
    in_json = is_json(whole)
    raw_lines = enumerate(_unnumbered(_undoubled(re.split(r"\r*\n|\r", whole))), start=1)
    held = ((number, held) for number, raw in raw_lines for held in texts_of(raw, in_json))
    pieces = [(number, piece) for number, raw in held for piece in _coloured(raw)]
    prefixes = prefixes_of([piece for _, piece in pieces])
    lines: list[Line] = []
    is_boxed = False
    for number, piece in pieces:
        stream, bare = without_prefix(piece, prefixes)
        is_boxed = (is_boxed or bool(_OPEN_BOX.match(bare))) and not _CLOSED_BOX.match(bare)
        lines += [Line(number, stream, single) for single in _apart(_without_border(bare) if is_boxed else bare)]
    return tuple(lines)


def _undoubled(lines: Sequence[str]) -> Sequence[str]:
    """Without the blank line that mail and forums put behind each."""
    is_doubled = len(lines) > 6 and not any(line.strip() for line in lines[1::2])
    return lines[::2] if is_doubled else lines


def _unnumbered(lines: Sequence[str]) -> Iterator[str]:
    """Without the numbers that a pager, `grep -n` or the page of a CI put before the lines of a traceback."""
    numbers = [_NUMBERED.match(line) for line in lines]
    index = 0
    while index < len(lines):
        behind = index + 1
        while behind < len(lines) and _is_next(numbers[behind - 1], numbers[behind]):
            behind += 1
        run = lines[index:behind]
        is_numbered = len(run) >= _FEWEST and any(HEADER in line for line in run)
        for line, number in zip(run, numbers[index:behind], strict=True):
            yield line[number.end() :] if is_numbered and number is not None else line
        index = behind


def _is_next(before: re.Match[str] | None, number: re.Match[str] | None) -> bool:
    return before is not None and number is not None and int(number["number"]) == int(before["number"]) + 1


def _without_noise(text: str) -> str:
    """Of a long log, what stands around the lines that may be of a failure."""
    if len(text) < _LONG:
        return text
    kept: list[tuple[int, int]] = []
    for place in sorted(_places(text)):
        start = text.rfind("\n", 0, max(place - _BEFORE, 0)) + 1
        end = text.find("\n", place + _BEHIND)
        if kept and start <= kept[-1][1]:
            start = kept.pop()[0]
        kept.append((start, end if end >= 0 else len(text)))
    return "\n".join(text[start:end] for start, end in kept)


def _places(text: str) -> Iterator[int]:
    """Where a word of a failure stands, once in each stretch."""
    for word in _TELLING:
        place = text.find(word)
        while place >= 0:
            yield place
            place = text.find(word, place + _STEP)


def _coloured(raw: str) -> Iterator[str]:
    if "\x1b" not in raw and "m" not in raw and "^[" not in raw and "\u241b" not in raw:
        yield raw
        return
    plain = _ANSI.sub("", raw)
    yield plain
    if plain is not raw and len(plain) != len(raw) and _ARROW.match(plain):
        yield from _marks(raw, plain)


def _marks(raw: str, plain: str) -> Iterator[str]:
    """The line of carets that the highlighted part stands for."""
    marked: list[str] = []
    is_marked, position = False, 0
    for code in _BACKGROUND.finditer(raw):
        marked.append(("^" if is_marked else " ") * len(_ANSI.sub("", raw[position : code.start()])))
        is_marked = _is_background(code[1], is_marked)
        position = code.end()
    line = "".join(marked)
    first = line.find("^")
    if first >= 0 and " " not in line[first:].rstrip():
        yield line.rstrip()


def _is_background(codes: str, before: bool) -> bool:
    numbers = [int(code or 0) for code in codes.split(";")]
    if numbers[0] in (38, 58) or (numbers[0] not in (0, 49) and len(numbers) == 1 and not 40 <= numbers[0] <= 48):
        return before
    return any(40 <= number <= 48 or 100 <= number <= 107 for number in numbers)


def _without_border(text: str) -> str:
    border = _BORDER.match(text)
    return border[1] if border else text


def _apart(text: str) -> Iterator[str]:
    """The lines that were glued to one; carets go, for what they stood under is lost."""
    if "File " not in text or not (HEADER in text or text.count('File "') > 1):
        yield text
        return
    if not _FILE.search(text):
        yield text
        return
    bare = _GLUED_CARETS.sub(" ", text)
    for index, part in enumerate(_GLUED_FRAME.split(bare)):
        if index % 2:
            yield f"  {part}"
        elif part.strip():
            source, error = _split_error(part)
            yield f"    {source.strip()}" if index else source
            if error:
                yield error


def _split_error(part: str) -> tuple[str, str]:
    match = _GLUED_ERROR.search(part)
    return (part[: match.start()], part[match.start() :].strip()) if match else (part, "")
