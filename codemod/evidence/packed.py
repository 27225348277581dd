"""Logs as collectors and CI services keep them: packed, one or several in a file."""

from __future__ import annotations

import bz2
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol


class _Decompressor(Protocol):
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


_PACKERS: Mapping[bytes, Callable[[], _Decompressor]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(wbits=31),  # gzip, with its head
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": lzma.LZMADecompressor,
}
_ARCHIVE = b"PK\x03\x04"
_UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, ValueError, EOFError, OSError)


def unpacked(raw: bytes) -> Iterator[bytes]:
    """The logs in it, in order of their names; what is not packed is itself.  Of a damaged one what can be read."""
    if raw.startswith(_ARCHIVE):
        yield from _members(raw)
        return
    packer = next((made for magic, made in _PACKERS.items() if raw.startswith(magic)), None)
    yield b"".join(_parts(raw, packer)) if packer is not None else raw


def _parts(raw: bytes, packer: Callable[[], _Decompressor]) -> Iterator[bytes]:
    """One after the other, as a log that was rotated and put together has them."""
    while raw:
        one = packer()
        try:
            yield one.decompress(raw)
        except _UNREADABLE:
            return
        raw = one.unused_data


def _members(raw: bytes) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            for name in sorted(archive.namelist()):
                yield archive.read(name)
    except _UNREADABLE:  # encrypted ones too
        return
