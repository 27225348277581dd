"""The guest file as a module, and a rung compared with eager."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from importlib import resources
from types import ModuleType
from typing import Any

Stand = Callable[..., dict[str, Any]]


def _load() -> ModuleType:
    path = resources.files("codemod") / "guest" / "ladder.py"
    spec = importlib.util.spec_from_file_location("guest_ladder", str(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


guest = _load()


def climb(stand: Stand, rung: str, program: str, **asked: Any) -> dict[str, Any]:
    eager = stand("eager", program, **asked)
    assert eager["status"] == "ok", eager
    return stand(rung, program, track_inputs=eager["track_inputs"], **asked)
