"""What holds for all tests."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def active_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the tests is the active one, whether they are run from an activated shell or not."""
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
