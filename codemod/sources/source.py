"""One file of the user: its bytes, the text they stand for, and the safe way back to the disk."""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path

from codemod.result import FileError

_NUL = re.compile("\0")


@dataclass(frozen=True, slots=True)
class Source:
    """A file decoded once; `text` has no byte order mark and the file's own line ends."""

    path: str
    raw: bytes
    text: str
    encoding: str
    """The codec's name without a `-sig`; the byte order mark is kept apart."""
    bom: bytes = b""

    def encode(self, text: str) -> bytes:
        """`text` as this file would hold it; raises UnicodeEncodeError for what its encoding cannot say."""
        return self.bom + text.encode(self.encoding)


def read(path: str) -> Source | FileError:
    """The Source at `path`; a vanished, unreadable or undecodable file is a FileError."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        return FileError(path, f"cannot read ({error.strerror or error}); left unchanged")
    return decode(path, raw)


def decode(path: str, raw: bytes) -> Source | FileError:
    """The Source that `raw` stands for, by its byte order mark and PEP 263 cookie."""
    bom = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
    try:
        encoding = _cookie(raw)
        text = raw[len(bom) :].decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        return FileError(path, f"cannot decode ({_fact(error)}); left unchanged")
    if nul := _NUL.search(text):
        line = 1 + len(re.findall(r"\r\n?|\n", text[: nul.start()]))
        return FileError(path, "not a text file (holds a NUL character); left unchanged", line)
    source = Source(path, raw, text, encoding, bom)
    if source.encode(text) != raw:
        return FileError(path, f"cannot be written back byte for byte in {encoding}; left unchanged")
    return source


def _cookie(raw: bytes) -> str:
    encoding = tokenize.detect_encoding(io.BytesIO(raw).readline)[0]
    return "utf-8" if encoding == "utf-8-sig" else codecs.lookup(encoding).name


def _fact(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.object[error.start]:#04x} at offset {error.start} is not {error.encoding}"
    return error.msg if isinstance(error, SyntaxError) else str(error)
