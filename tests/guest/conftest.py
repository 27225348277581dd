"""Standing on a rung within the tests' own process."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.guest.standing import Stand, guest


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """Stands on a rung with a program; `eager` first is what it is compared with."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    saved = tmp_path / "eager.pt"

    def stand(rung: str, program: str, name: str = "f", inputs: str | None = None, **asked: object) -> dict[str, Any]:
        file = tmp_path / "program_under_test.py"
        file.write_text(f"import torch\n{program}")
        sys.modules.pop(file.stem, None)
        request = {
            "target": f"{file}:{name}",
            "rung": rung,
            "inputs": inputs,
            "path": [],
            "gradients": True,
            "track_inputs": True,
            "save": str(saved) if rung == "eager" else None,
            "reference": str(saved) if rung != "eager" else None,
            "answer": str(tmp_path / "answer"),
        }
        torch._dynamo.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # in a process of its own they go to a log
            answer: dict[str, Any] = guest.stand({**request, **asked})
        return answer

    yield stand
    for module in set(sys.modules) - known:
        if module == "program_under_test":
            del sys.modules[module]
