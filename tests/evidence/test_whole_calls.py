"""Calls whose method's name stands on a line of its own."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from codemod.evidence.recorded import Recorded, Recordings
from codemod.evidence.whole_calls import with_whole_calls

TEXT = "y = (\n    é.t()\n    .view(\n        f(x),\n    )\n)\nz = x.view(1)\n"
NAMED = Recorded("", "", 3, 5, 6, 6, "view")


def recorded(folder: Path, site: Recorded, text: str = TEXT) -> Recorded:
    path = folder / "net.py"
    path.write_text(text, encoding="utf-8")
    return replace(site, path=str(path), hash=sha256(text.encode()).hexdigest())


def test_a_call_of_one_line_stays(tmp_path: Path) -> None:
    given = Recordings((recorded(tmp_path, Recorded("", "", 7, 7, 5, 14, "view")),))
    assert with_whole_calls(given) == given


def test_a_changed_file_and_a_site_without_columns_stay(tmp_path: Path) -> None:
    site = recorded(tmp_path, NAMED)
    given = Recordings((replace(site, hash="0"), replace(site, column=None, end_line=None, end_column=None)))
    assert with_whole_calls(given) == given
    (tmp_path / "net.py").unlink()
    assert with_whole_calls(given) == given


def test_a_call_begins_with_its_receiver(tmp_path: Path) -> None:
    (site,) = with_whole_calls(Recordings((recorded(tmp_path, NAMED),))).sites
    assert (site.line, site.column, site.end_line, site.end_column) == (2, 5, 5, 6)
