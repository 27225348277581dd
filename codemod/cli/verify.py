"""`torch-codemod verify`: at which stage between eager and AOTInductor a model breaks."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from codemod.cli import output as out
from codemod.settings import Sites

if TYPE_CHECKING:
    from codemod.verify.ladder import Climb
    from codemod.verify.rung import Rung
    from codemod.verify.verdict import Verification


class Format(str, Enum):
    TEXT = "text"
    JSON = "json"


def verify(
    target: str = typer.Argument(..., help="`file.py:function`, `file.py:Class` or `module:name`.", show_default=False),
    inputs: str = typer.Option(None, "--inputs", metavar="ARGUMENTS", help='As in a call: "torch.randn(2, 3), n=4".'),
    python: str = typer.Option(
        None, "--python", metavar="PY", help="The interpreter.  [default: the active environment's]"
    ),
    timeout: float = typer.Option(300.0, "--timeout", min=1.0, help="Seconds a rung may take."),
    rungs: str = typer.Option("", "--rungs", metavar="NAMES", help="Only these, separated by commas."),
    no_gradients: bool = typer.Option(False, "--no-gradients", help="Forward only, under no_grad, as in inference."),
    fixed: bool = typer.Option(False, "--fixed", help="Then the same on a copy that `run --in-place` has rewritten."),
    sites: Sites = typer.Option(None, "--sites", help="Which views --fixed rewrites.  [default: failing]"),
    against: str = typer.Option("", "--against", metavar="REV", help="The program of this git revision first."),
    format: Format = typer.Option(Format.TEXT, "--format", help="Format of the result."),
) -> None:
    """Run a function or a model eagerly, compiled, exported and packaged, and name the first rung that fails.

    Inputs come from example_inputs() beside it: a tuple of arguments, or (arguments, keywords).  Sizes that vary for
    export come from `dynamic_shapes`.  Exit code: 0 no rung fails, 1 one does (with --fixed: afterwards), 2 the usage
    is wrong.
    """
    from codemod.configuration import UsageError
    from codemod.guest_process import interpreter_with_torch
    from codemod.verify.ladder import Climb

    try:
        _check_usage(target, fixed, against, sites)
        asked = Climb(target, interpreter_with_torch(python), inputs, not no_gradients, timeout, _rungs(rungs))
        verification = _verified(asked, fixed, against, sites, is_shown=format is Format.TEXT)
    except UsageError as error:
        raise out.refuse(str(error)) from None
    except KeyboardInterrupt:
        typer.echo("interrupted; nothing of yours was changed", err=True)
        raise typer.Exit(130) from None
    _report(verification, format)
    raise typer.Exit(verification.exit_code)


def _check_usage(target: str, fixed: bool, against: str, sites: Sites | None) -> None:
    from codemod.configuration import UsageError

    place, _, name = target.rpartition(":")
    if not place or not name:
        raise UsageError(f"{target}: name what to run in it, as in `{target or 'model.py'}:Model`")
    if place.endswith(".py") and not Path(place).is_file():
        raise UsageError(f"{place}: no such file; check the path")
    if fixed and against:
        raise UsageError("--fixed compares with a rewritten copy, --against with a revision; choose one")
    if sites is not None and not fixed:
        raise UsageError("--sites says what --fixed rewrites; give --fixed as well")


def _rungs(given: str) -> tuple[str, ...]:
    """The chosen rungs, from eager up."""
    from codemod.configuration import check_names
    from codemod.verify.rung import RUNGS

    chosen = tuple(name.strip() for name in given.split(",") if name.strip())
    check_names("--rungs", chosen, RUNGS, "rung")
    return tuple(name for name in RUNGS if name in chosen) if chosen else RUNGS


def _verified(asked: Climb, fixed: bool, against: str, sites: Sites | None, *, is_shown: bool) -> Verification:
    from codemod.report.verification import row
    from codemod.verify import compare

    width = max(len(name) for name in asked.rungs)

    def tell(title: str, rung: Rung) -> None:
        if is_shown:
            out.show([row(title, rung, width)])

    if fixed:
        return compare.verify_fixed(asked, sites, tell)
    return compare.verify_against(asked, against, tell) if against else compare.verify(asked, tell)


def _report(verification: Verification, format: Format) -> None:
    from codemod.report.verification import conclusion, render_json

    if format is Format.JSON:
        out.put(render_json(verification))
    else:
        out.show(conclusion(verification))
