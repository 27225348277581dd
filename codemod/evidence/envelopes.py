"""The text of a log out of what carries it: records of a collector, a notebook's file, a web page, a note."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

HEADER = "Traceback (most recent call last)"

_TEXTS = ("log", "data", "text", "message", "msg", "textpayload", "line", "content")
"""Keys under which collectors keep a line, in lower case: the journal writes `MESSAGE`."""
_ERROR = (("exc_type", "type"), ("exc_value", "value"))
_LONGEST_RECORD = 1_000_000
_ITEM = re.compile(r'\s*("(?:[^"\\]|\\.)*"),?\s*')
_NEXT_ITEM = re.compile(r"""\\n["'], ?["']""")
_STRING = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_LIST = re.compile(rf"\[(?={_STRING})({_STRING}(?:, ?{_STRING})*)\]")
_STRINGS = re.compile(_STRING)
_SUMMARY = re.compile(
    r"\[?<FrameSummary file (?P<path>[^<>]+), line (?P<line>\d+) in (?P<function><?\w+>?)>(?:, ?|\])?"
)
_COMMAND = re.compile(r"::(?:error|warning|notice|debug)\b[^:]*(?::[^:]+)*::|##teamcity\[")
"""Commands to GitHub Actions and TeamCity, each with line ends of its own."""
_PERCENT = {"%0A": "\n", "%0D": "", "%25": "%"}
_BARRED = {"|n": "\n", "|r": "", "|'": "'", "|[": "[", "|]": "]", "||": "|"}
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": ""}

_ENTITY = re.compile(r"&(?:quot|apos|lt|gt|amp|nbsp|#\d{1,6}|#x[0-9a-fA-F]{1,5});")
_TAGS = "a|b|br|code|div|em|error|failure|font|i|p|pre|span|strong|system-err|system-out|td|testcase|tr"
_TAG_RUN = re.compile(rf"(?:</?(?:{_TAGS})\b[^<>]*>)+")
_BREAKS = re.compile(r"</?(?:br|div|error|failure|p|pre|system-err|system-out|testcase|tr)\b")
_CLOSING = re.compile(rf"</(?:{_TAGS})>")
_LINK = re.compile(r"\[([^\[\]\n]+)\]\((?:https?|file|command|vscode[\w+-]*):[^)\s]*\)")
_EMPHASIS = re.compile(r"(\s*)(\*\*|`+)(\S.*?)\2\s*")
_TYPOGRAPHIC = re.compile(r"tensor’s|File [“”]|shape [‘’]\[")
_STRAIGHT = str.maketrans("‘’“”", "''\"\"")


def opened(text: str) -> str:
    """Without the marks of HTML, markdown, CSV and word processors; their line ends become line ends."""
    if _CLOSING.search(text):
        text = _TAG_RUN.sub(_untagged, text)
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    text = text.replace("\u00a0", " ")
    if 'File ""' in text:
        text = text.replace('""', '"')
    return text.translate(_STRAIGHT) if _TYPOGRAPHIC.search(text) else text


def _untagged(tags: re.Match[str]) -> str:
    """What stands for tags in a row: a line end where they make one and none is beside them."""
    around = tags.string[max(tags.start() - 1, 0) : tags.start()] + tags.string[tags.end() : tags.end() + 1]
    return "\n" if _BREAKS.search(tags[0]) and "\n" not in around else ""


def is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def texts_of(raw: str, is_json: bool) -> Iterator[str]:
    """What a line holds: a record's text, a string of a list (`is_json`: in such a file), what `repr` wrote, or itself.

    Where line ends were written as `\\n`, several.
    """
    found: object = _record(raw)
    if found is None and is_json and (item := _ITEM.fullmatch(raw)):
        found = _loaded(item[1])
    if isinstance(found, str):
        for line in found.removesuffix("\n").split("\n"):
            yield from texts_of(line, False)  # a collector's record may hold that of a program
    elif command := _COMMAND.match(raw):
        yield from _commanded(raw[command.end() :], "%0A" in raw)
    elif "<FrameSummary file " in raw:
        yield from filter(str.strip, _SUMMARY.sub(_summarised, raw).split("\n"))
    elif 'File "' in raw and (listed := _LIST.search(raw)) is not None:
        yield from filter(str.strip, _listed(raw, listed))
    elif HEADER in raw and "\\n" in raw:
        yield from _ESCAPED.sub(_unescape, _NEXT_ITEM.sub(r"\\n", raw)).split("\n")
    else:
        emphasis = _EMPHASIS.fullmatch(raw) if "*" in raw or "`" in raw else None
        yield emphasis[1] + emphasis[3] if emphasis else raw


def _commanded(text: str, is_percent: bool) -> Iterator[str]:
    escapes = _PERCENT if is_percent else _BARRED
    pattern = "|".join(map(re.escape, escapes))
    yield from re.sub(pattern, lambda escape: escapes[escape[0]], text).split("\n")


def _summarised(summary: re.Match[str]) -> str:
    return f'\n  File "{summary["path"]}", line {summary["line"]}, in {summary["function"]}\n'


def _listed(raw: str, listed: re.Match[str]) -> Iterator[str]:
    """What stands around a list of strings, and the lines that they hold: `traceback.format_tb` as it is printed."""
    yield raw[: listed.start()]
    for string in _STRINGS.findall(listed[1]):
        yield from _ESCAPED.sub(_unescape, string[1:-1]).removesuffix("\n").split("\n")
    yield raw[listed.end() :].strip()


def _record(raw: str) -> str | None:
    bare = raw.strip().lstrip("[,").rstrip(",]")
    if not (bare.startswith('{"') and bare.endswith("}")) or len(bare) > _LONGEST_RECORD:
        return None
    records = _loaded(f"[{bare}]")
    texts = [text for record in records if (text := _text(bare, record))] if isinstance(records, list) else []
    return "\n".join(text.removesuffix("\n") for text in texts) if texts else None


def _text(bare: str, record: object) -> str | None:
    leaves = tuple(_leaves("", record)) if isinstance(record, dict) else ()
    whole = next((text for _, text in leaves if HEADER in text), None)
    if whole is None and '"frames"' in bare:
        whole = "\n".join(_printed(record)) or None
    return (
        whole
        if whole is not None
        else next((text for key in _TEXTS for name, text in leaves if name.lower() == key), None)
    )


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _leaves(key: str, value: object) -> Iterator[tuple[str, str]]:
    """(key, text) of all that is text, also in records within."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(name, item)


def _printed(value: object, error: str = "") -> Iterator[str]:
    """Tracebacks that a record holds frame by frame, as structlog and Sentry write them, in Python's own form."""
    if isinstance(value, list):
        for item in value:
            yield from _printed(item, error)
    elif isinstance(value, dict):
        named = [next((value[key] for key in keys if isinstance(value.get(key), str)), "") for keys in _ERROR]
        error = ": ".join(named) if all(named) else error
        frames = value.get("frames")
        if isinstance(frames, list) and (lines := [line for frame in frames for line in _frame(frame)]):
            yield from (f"{HEADER}:", *lines, error)
        else:
            for item in value.values():
                yield from _printed(item, error)


def _frame(frame: object) -> Iterator[str]:
    if not isinstance(frame, dict):
        return
    path = frame.get("abs_path") or frame.get("filename")
    if isinstance(path, str) and isinstance(frame.get("lineno"), int):
        yield f'  File "{path}", line {frame["lineno"]}, in {frame.get("function") or frame.get("name") or "<module>"}'
        text = frame.get("context_line") or frame.get("line")
        if isinstance(text, str):
            yield f"    {text.strip()}"


def _unescape(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    return _ESCAPES.get(escape, escape)
