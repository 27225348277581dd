from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from codemod.result import FileError
from codemod.sources.source import Source, decode, read


@pytest.mark.parametrize(
    ("raw", "text", "encoding"),
    [
        (b"", "", "utf-8"),
        ("é\r\n\ry\n\x0c\u2028".encode(), "é\r\n\ry\n\x0c\u2028", "utf-8"),
        (codecs.BOM_UTF8 + "é".encode(), "é", "utf-8"),
        (codecs.BOM_UTF8 + b"# coding: utf-8\n", "# coding: utf-8\n", "utf-8"),
        ("# -*- coding: latin-1 -*-\né".encode("latin-1"), "# -*- coding: latin-1 -*-\né", "iso8859-1"),
        (
            "#!/bin/x\n# vim: fileencoding=cp1251\nж".encode("cp1251"),
            "#!/bin/x\n# vim: fileencoding=cp1251\nж",
            "cp1251",
        ),
        ("# coding: shift_jis\nテ".encode("shift_jis"), "# coding: shift_jis\nテ", "shift_jis"),
    ],
)
def test_text_is_decoded_once_and_written_back_byte_for_byte(raw: bytes, text: str, encoding: str) -> None:
    source = decode("train.py", raw)
    assert isinstance(source, Source)
    assert (source.text, source.encoding) == (text, encoding)
    assert source.encode(source.text) == raw


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"\xff\xfex\x00", "cannot decode (invalid or missing encoding declaration); left unchanged"),
        (b"x = 1\n" * 3 + b"\xe9", "cannot decode (byte 0xe9 at offset 18 is not utf-8); left unchanged"),
        (b"# coding: nonsense\n", "cannot decode (unknown encoding: nonsense); left unchanged"),
        (b"# coding: rot13\n", "cannot decode"),
        (b"x\n\0", "not a text file (holds a NUL character); left unchanged"),
    ],
)
def test_what_is_no_text_is_an_error(raw: bytes, why: str) -> None:
    error = decode("train.py", raw)
    assert isinstance(error, FileError)
    assert error.why.startswith(why)


def test_missing_file_and_folder_are_errors(tmp_path: Path) -> None:
    missing = str(tmp_path / "gone.py")
    assert read(missing) == FileError(missing, "cannot read (No such file or directory); left unchanged")
    assert isinstance(read(str(tmp_path)), FileError)
