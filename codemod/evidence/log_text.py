"""From a log as it was saved or pasted to its plain lines."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_ANSI = re.compile(
    r"(?:\x1b|\u241b|\^\[)(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|[@-Z\\^_])"
    r"|\[\d{1,3}(?:;\d{1,3})*m"  # the escape was lost on the way
)
_BACKGROUND = re.compile(r"(?:\x1b|\u241b|\^\[)?\[(\d{0,3}(?:;\d{1,3})*)m")
_ARROW = re.compile(r"\s*-+>\s*\d+\s")

_HEADER = "Traceback (most recent call last)"
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": ""}

_FILE = re.compile(r'\bFile "[^"]+", line \d+')
_GLUED_FRAME = re.compile(r'\s*(?<!\S)(File "[^"]+", line \d+(?:, in (?:<\w+>|[\w.<>]+))?)[ \t]*')
_GLUED_CARETS = re.compile(r"[ \t][~^]*\^[~^]*(?=[ \t]|$)")
_GLUED_ERROR = re.compile(r"[ \t]+((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Failed|Unsupported): )")

_KNOWN_PREFIX = re.compile(
    r"\ufeff"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?(?:[ \t]|$)"
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?(?:[ \t]|$)"
    r"|[VIWEF]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ \S{1,300}?:\d+\](?: \[[\w/.:]+\])*(?: |$)"
)
_RANK_PREFIX = re.compile(r"(\[(?:rank|default|Rank |Node )?\d+\]:|\[\d+,\d+\]<std(?:err|out)>:) ?")
_OTHER_PREFIX = re.compile(
    r"(?P<prefix>.{1,120}?)(?<!\w)(?P<rest>(?:Original )?Traceback (?:of TorchScript )?\(most recent call last\))"
)
_MOST_PREFIXES = 64
_BORDER = re.compile(r"\s*[│┃|] ?(.*?)\s*[│┃|]\s*$")
_OPEN_BOX = re.compile(r"\s*[╭┌┏+][─━-]+ .*[─━-]+[╮┐┓+]\s*$")
_CLOSED_BOX = re.compile(r"\s*[╰└┗+][─━-]+[╯┘┛+]\s*$")


@dataclass(frozen=True, slots=True)
class Line:
    """One plain line: its number in the log, from 1, and the stream (rank, process) that wrote it."""

    number: int
    stream: str
    text: str


def decode_log(raw: bytes) -> str:
    """The text of a log file; never raises.  PowerShell's `>` writes UTF-16."""
    for bom, encoding in (
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
        (codecs.BOM_UTF8, "utf-8-sig"),
    ):
        if raw.startswith(bom):
            return raw.decode(encoding, errors="replace")
    return raw.decode("utf-8", errors="replace")


def plain_lines(text: str) -> tuple[Line, ...]:
    """The lines without colours, clocks, rank prefixes and boxes; joined lines are taken apart.

    A highlighted part of an IPython line becomes a line of carets below it.
    """
    raw_lines = enumerate(re.split(r"\r\n|\r|\n", text), start=1)
    pieces = [(number, piece) for number, raw in raw_lines for piece in _pieces(raw)]
    prefixes = _prefixes(piece for _, piece in pieces)
    lines: list[Line] = []
    is_boxed = False
    for number, piece in pieces:
        stream, bare = _without_prefix(piece, prefixes)
        is_boxed = (is_boxed or bool(_OPEN_BOX.match(bare))) and not _CLOSED_BOX.match(bare)
        lines += [Line(number, stream, single) for single in _apart(_without_border(bare) if is_boxed else bare)]
    return tuple(lines)


def _pieces(raw: str) -> Iterator[str]:
    """The line without colours; several where line ends were written as `\\n`."""
    if _HEADER in raw and "\\n" in raw:
        for part in _ESCAPED.sub(_unescape, raw).split("\n"):
            yield from _coloured(part)
    else:
        yield from _coloured(raw)


def _unescape(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    return _ESCAPES.get(escape, escape)


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


def _prefixes(pieces: Iterable[str]) -> tuple[str, ...]:
    """What stands before the heads of tracebacks, clocks and ranks aside: `worker_1 | `, `(Trainer pid=12) `."""
    bare = (_without_known(piece)[1] for piece in pieces if "(most recent call last)" in piece)
    found = (match["prefix"] for text in bare if (match := _OTHER_PREFIX.match(text)))
    prefixes = dict.fromkeys(prefix for prefix in found if not prefix.isspace() and _is_prefix(prefix))
    return tuple(prefixes)[:_MOST_PREFIXES]


def _without_prefix(text: str, prefixes: tuple[str, ...]) -> tuple[str, str]:
    """(stream, text) behind clocks, ranks and the `prefixes`."""
    stream, bare = _without_known(text)
    for prefix in prefixes:
        if bare.startswith(prefix):
            return stream + prefix, _without_known(bare[len(prefix) :])[1]
        if bare == prefix.rstrip():
            return stream + prefix, ""
    return stream, bare


def _is_prefix(prefix: str) -> bool:
    """Not what belongs to the head itself: an IPython error's name, a frame of a box, a sentence in front."""
    return not re.search(r"[─━╭]|--- |^\s*\w+(?:Error|Exception)\s{3,}|: $|Original $|[.!]\s*$", prefix) and bool(
        re.search(r"[^\w\s]", prefix) or prefix.count(" ") <= 3
    )


def _without_known(text: str) -> tuple[str, str]:
    stream = ""
    for _ in range(6):
        if rank := _RANK_PREFIX.match(text):
            stream, text = stream + rank[1], text[rank.end() :]
        elif (known := _KNOWN_PREFIX.match(text)) and known.end():
            text = text[known.end() :]
        else:
            break
    return stream, text


def _without_border(text: str) -> str:
    border = _BORDER.match(text)
    return border[1] if border else text


def _apart(text: str) -> Iterator[str]:
    """The lines that were glued to one; carets go, for what they stood under is lost."""
    if "File " not in text or not (_HEADER in text or text.count('File "') > 1):
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
