"""What stands before the lines of a log: clocks, ranks, hosts, names of loggers."""

from __future__ import annotations

import re
from collections.abc import Sequence

_KNOWN = re.compile(
    r"\ufeff"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?(?:[ \t]|$)"
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?(?:[ \t]|$)"
    r"|[VIWEF]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ \S{1,300}?:\d+\](?: \[[\w/.:]+\])*(?: |$)"
)
_RANK = re.compile(r"(\[(?:rank|default|Rank |Node )?\d+\]:|\[\d+,\d+\]<std(?:err|out)>:) ?")
_BEFORE_HEAD = re.compile(
    r"(?P<prefix>.{1,120}?)(?<!\w)(?P<rest>(?:Original )?Traceback (?:of TorchScript )?\(most recent call last\))"
)
_BEFORE_FRAME = re.compile(r'(.{1,120}?)\s*File "')
_VARYING = re.compile(
    r"\d{1,4}[-/]\d\d[-/]\d{1,4}|\d\d?:\d\d:\d\d(?:[.,]\d+)?| *(?<![\d.,])\d+[.,]\d+(?![\d.,])|(?<!\w)\d{9,}(?!\w)"
)
"""Dates, clocks, seconds since the start or since 1970: another in each line."""
_MOST = 64

Prefixes = re.Pattern[str] | None
"""One of those that the log shows, with blanks that may be missing at the end of a line."""


def prefixes_of(lines: Sequence[str]) -> Prefixes:
    """What stands before the heads of tracebacks, clocks and ranks aside: `worker_1 | `, `(Trainer pid=12) `."""
    heads = (_without_known(line)[1] for line in lines if "(most recent call last)" in line)
    found = dict.fromkeys(match["prefix"] for head in heads if (match := _BEFORE_HEAD.match(head)))
    if not found:
        return None
    frames = (_BEFORE_FRAME.match(_without_known(line)[1]) for line in lines if 'File "' in line)
    framed = {_name(match[1]) for match in frames if match}
    kept = [one for one in found if not one.isspace() and (_name(one) in framed or _is_prefix(one))]
    written = dict.fromkeys(_written(prefix) for prefix in kept[:_MOST])
    return re.compile("|".join(written)) if written else None


def without_prefix(text: str, prefixes: Prefixes) -> tuple[str, str]:
    """(stream, text) behind clocks, ranks and the `prefixes`."""
    stream, bare = _without_known(text)
    match = prefixes.match(bare) if prefixes is not None else None
    if match is None:
        return stream, bare
    rest = bare[match.end() :]
    # the field of a CSV file ends in a quote too
    rest = rest.removesuffix('"') if match[0].endswith('"') else rest
    return stream + _name(match[0]), _without_known(rest)[1]


def _name(prefix: str) -> str:
    """The same for all lines of one stream."""
    return _VARYING.sub("#", prefix).rstrip()


def _written(prefix: str) -> str:
    """The regular expression for it."""
    bare = prefix.rstrip()
    fixed = _VARYING.split(bare)
    blanks = re.escape(prefix[len(bare) :])
    return f"(?:{_VARYING.pattern})".join(map(re.escape, fixed)) + (rf"(?:{blanks}|\s*$)" if blanks else "")


def _is_prefix(prefix: str) -> bool:
    """Not what belongs to the head itself: an IPython error's name, a frame of a box, a sentence in front."""
    return not re.search(r"[─━╭]|--- |^\s*\w+(?:Error|Exception)\s{3,}|: $|Original $|[.!]\s*$", prefix) and bool(
        re.search(r"[^\w\s]", prefix) or prefix.count(" ") <= 3
    )


def _without_known(text: str) -> tuple[str, str]:
    stream = ""
    for _ in range(6):
        if rank := _RANK.match(text):
            stream, text = stream + rank[1], text[rank.end() :]
        elif (known := _KNOWN.match(text)) and known.end():
            text = text[known.end() :]
        else:
            break
    return stream, text
