"""The rungs, one process each, from eager up."""

from __future__ import annotations

import json
import re
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from codemod.configuration import UsageError
from codemod.known_issues import match
from codemod.verify.process import Ended, run_guest
from codemod.verify.rung import RUNGS, Difference, Failure, Frame, Rung, Status

_STACK_FRAME = re.compile(r'^  File "(?P<path>[^"]+)", line (?P<line>\d+) in (?P<function>.+)$', re.M)


@dataclass(frozen=True, slots=True)
class Climb:
    """What is verified, and how."""

    target: str
    """`file.py:function`, `file.py:Class` or `module:name`."""
    python: str
    inputs: str | None = None
    """The text of a call's arguments; None: example_inputs() gives them."""
    gradients: bool = True
    timeout: float = 300.0
    """Seconds a rung."""
    rungs: tuple[str, ...] = RUNGS
    paths: tuple[str, ...] = field(default=())
    """Folders that the program's imports are looked for in, after its own."""


def climb(asked: Climb, folder: Path, reference: Path | None = None) -> Iterator[Rung]:
    """Each rung as it is done; those that have nothing to be compared with are skipped.

    `folder` gets the files of the run, eager's results among them.  With `reference`, another run's eager results, the
    eager rung is compared too.  Raises UsageError for what cannot be run as asked.
    """
    saved = folder / "eager.pt"
    eager, answer = _stand(asked, "eager", folder, reference=reference, save=saved)
    if "eager" in asked.rungs or eager.status is not Status.OK:
        yield eager
    compared = reference if reference is not None else saved
    for name in asked.rungs:
        if name == "eager":
            continue
        if not saved.exists():
            why = "there is no GPU" if eager.status is Status.SKIPPED else f"eager {eager.status.value}"
            yield Rung(name, Status.SKIPPED, 0.0, why=f"{why}: nothing to compare with")
            continue
        yield _stand(asked, name, folder, reference=compared, track_inputs=bool(answer.get("track_inputs")))[0]


def locate(asked: Climb) -> str:
    """The file of a target that is given as a module.  Raises UsageError where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        _, answer = _stand(asked, "locate", Path(folder))
    return str(answer["file"])


def _stand(
    asked: Climb,
    name: str,
    folder: Path,
    *,
    reference: Path | None = None,
    save: Path | None = None,
    track_inputs: bool = True,
) -> tuple[Rung, dict[str, Any]]:
    """The rung with the guest's own answer, which is empty where it gave none."""
    request, answer, stack = (folder / f"{name}{suffix}" for suffix in (".request", ".answer", ".stack"))
    told = {
        **asdict(asked),
        "rung": name,
        "path": asked.paths,
        "track_inputs": track_inputs,
        "reference": str(reference) if reference else None,
        "save": str(save) if save else None,
        "answer": str(answer),
        "stack": str(stack),
    }
    request.write_text(json.dumps(told), encoding="utf-8")
    begun = time.monotonic()
    ended = run_guest(asked.python, "ladder", [str(request)], asked.timeout, folder / f"{name}.log")
    seconds = time.monotonic() - begun
    if not answer.exists():
        return Rung(name, _status_of(ended), seconds, failure=_ending(ended, asked, stack)), {}
    given: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    if given["status"] == "refused":
        raise UsageError(given["why"])
    return _rung(name, given), given


def _status_of(ended: Ended) -> Status:
    return Status.TIMED_OUT if ended.code is None else Status.CRASHED


def _ending(ended: Ended, asked: Climb, stack: Path) -> Failure:
    """Of a process that left no answer; the user's frames are those that the guest's fault handler wrote."""
    said = [line for line in ended.err.splitlines() if line.strip()]
    if ended.code is None:
        kind, message = "TimeoutExpired", f"not done after {asked.timeout:g} seconds{_busy_with(stack)}"
    else:
        kind = signal.Signals(-ended.code).name if ended.code < 0 else f"exit code {ended.code}"
        message = said[-1].strip() if said else "the process ended without a word"
    return Failure("run", kind, message, frames=_stopped_in(asked, stack))


def _busy_with(stack: Path) -> str:
    """What took the time, where the compiler rather than the program did."""
    frames = {Path(match["path"]).name for match in _STACK_FRAME.finditer(_text(stack))}
    if "cpp_builder.py" in frames:
        return ", while a C++ compiler worked on Inductor's kernels; --timeout gives it more"
    if frames & {"compile_fx.py", "convert_frame.py", "aot_autograd.py"}:
        return ", while torch compiled; --timeout gives it more"
    return ""


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _stopped_in(asked: Climb, stack: Path) -> tuple[Frame, ...]:
    """The frames in the folder of the target, innermost last."""
    place = Path(asked.target.rpartition(":")[0])
    own = str((place.parent if place.suffix == ".py" else Path()).absolute())
    found = [match for match in _STACK_FRAME.finditer(_text(stack)) if match["path"].startswith(own)]
    return tuple(Frame(m["path"], int(m["line"]), m["function"], _line(m["path"], int(m["line"]))) for m in found[::-1])


def _line(path: str, number: int) -> str:
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def _rung(name: str, given: dict[str, Any]) -> Rung:
    """The guest's answer as a value, with the known issue that a failure above eager is."""
    failure, difference = given.get("failure"), given.get("difference")
    rung = Rung(name, Status(given["status"]), given.get("seconds", 0.0), why=given.get("why"))
    if difference is not None:
        rung = replace(rung, difference=Difference(**difference))
    if failure is None:
        return rung
    frames = tuple(Frame(**frame) for frame in failure.pop("frames"))
    found = None
    if name != "eager":
        found = match(failure["message"], failure["operation"], name, eager_passes=True)
    return replace(rung, failure=Failure(**failure, frames=frames), known_issue=found.name if found else None)
