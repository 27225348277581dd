"""The text of a log out of what carries it: records of a collector, a notebook's file, a web page, a note."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

HEADER = "Traceback (most recent call last)"

_TEXTS = ("log", "data", "text", "message", "msg", "textPayload", "line", "content")
"""Keys under which collectors keep a line."""
_ERROR = (("exc_type", "type"), ("exc_value", "value"))
_LONGEST_RECORD = 1_000_000
_ITEM = re.compile(r'\s*("(?:[^"\\]|\\.)*"),?\s*')
_NEXT_ITEM = re.compile(r"""\\n["'], ?["']""")
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": ""}

_ENTITY = re.compile(r"&(?:quot|apos|lt|gt|amp|nbsp|#\d{1,6}|#x[0-9a-fA-F]{1,5});")
_TAGS = "a|b|br|code|div|em|error|failure|font|i|p|pre|span|strong|system-err|system-out|td|testcase|tr"
_TAG = re.compile(rf"</?(?:{_TAGS})\b[^<>]*>")
_CLOSING = re.compile(rf"</(?:{_TAGS})>")
_LINK = re.compile(r"\[([^\[\]\n]+)\]\((?:https?|file|command|vscode[\w+-]*):[^)\s]*\)")
_EMPHASIS = re.compile(r"(\s*)(\*\*|`+)(\S.*?)\2\s*")
_TYPOGRAPHIC = re.compile(r"tensor’s|File [“”]|shape [‘’]\[")
_STRAIGHT = str.maketrans("‘’“”", "''\"\"")


def opened(text: str) -> str:
    """Without the marks of HTML, markdown, CSV and word processors; their line ends become line ends."""
    if _CLOSING.search(text):
        text = _TAG.sub("", text)
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    if 'File ""' in text:
        text = text.replace('""', '"')
    return text.translate(_STRAIGHT) if _TYPOGRAPHIC.search(text) else text


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
        yield from found.removesuffix("\n").split("\n")
    elif HEADER in raw and "\\n" in raw:
        yield from _ESCAPED.sub(_unescape, _NEXT_ITEM.sub(r"\\n", raw)).split("\n")
    else:
        emphasis = _EMPHASIS.fullmatch(raw) if "*" in raw or "`" in raw else None
        yield emphasis[1] + emphasis[3] if emphasis else raw


def _record(raw: str) -> str | None:
    bare = raw.strip().lstrip("[,").rstrip(",]")
    if not (bare.startswith('{"') and bare.endswith("}")) or len(bare) > _LONGEST_RECORD:
        return None
    record = _loaded(bare)
    leaves = tuple(_leaves("", record)) if isinstance(record, dict) else ()
    whole = next((text for _, text in leaves if HEADER in text), None)
    if whole is None and '"frames"' in bare:
        whole = "\n".join(_printed(record)) or None
    return whole if whole is not None else next((text for key in _TEXTS for name, text in leaves if name == key), None)


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
