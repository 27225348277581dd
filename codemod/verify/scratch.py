"""A copy of the user's program to rewrite, or as a git revision had it; the user's own files stay as they are."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path

from codemod.configuration import UsageError, configured
from codemod.in_place import write_changes
from codemod.registry import transforms
from codemod.result import RunResult
from codemod.runner import run
from codemod.settings import Settings, Sites
from codemod.sources.walk import walk

_LEFT_OUT = shutil.ignore_patterns("__pycache__", ".git", ".venv", "node_modules")


@dataclass(frozen=True, slots=True)
class Whole:
    """What has to be copied for one file: its topmost package, or the file alone."""

    file: Path
    top: Path

    @property
    def folder(self) -> Path:
        """Where imports find it."""
        return self.top.parent

    def within(self, scratch: Path) -> Path:
        """The file's place in a copy."""
        return scratch / self.file.relative_to(self.folder)


def whole_of(file: Path) -> Whole:
    file = Path(os.path.normpath(file.absolute()))
    top = file
    while (top.parent / "__init__.py").is_file():
        top = top.parent
    return Whole(file, top)


def copy(whole: Whole, scratch: Path) -> None:
    """Python files are copied, all others linked."""
    if whole.top.is_dir():
        shutil.copytree(whole.top, scratch / whole.top.name, copy_function=_copy_or_link, ignore=_LEFT_OUT)
    else:
        shutil.copy2(whole.top, scratch)


def check_out(whole: Whole, revision: str, scratch: Path) -> None:
    """The program of a git revision.  Raises UsageError where git does not give it."""
    command = ["git", "archive", "--format=tar", revision, "--", f"./{whole.top.name}"]
    try:
        done = subprocess.run(command, cwd=whole.folder, capture_output=True, check=True)
    except FileNotFoundError:
        raise UsageError("--against: there is no git here; install it") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(f"--against {revision}: {said[-1] if said else 'git failed'}") from None
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        for member in archive:
            text = archive.extractfile(member)  # None for folders and links
            if text is not None:
                place = scratch / member.name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(text.read())


def rewrite(whole: Whole, scratch: Path, sites: Sites | None = None) -> tuple[str, ...]:
    """What `torch-codemod run --in-place` makes of the copy; the paths of the changed files, within the program.

    The project's settings hold, without their patterns of paths.  Raises UsageError where a file cannot be processed.
    """
    settings = _settings(whole)
    settings = replace(settings, sites=sites or settings.sites)
    files = walk([str(scratch / whole.top.name)]).files
    result = write_changes(RunResult(tuple(run(files, settings, os.cpu_count() or 1))))
    if result.errors:
        error = result.errors[0]
        raise UsageError(f"--fixed: {Path(error.path).relative_to(scratch)}: {error.why}")
    return tuple(str(Path(file.path).relative_to(scratch)) for file in result.files if file.change is not None)


def _settings(whole: Whole) -> Settings:
    return replace(configured([str(whole.file)], list(transforms())), root=".", exclude=(), per_file_ignores=())


def _copy_or_link(source: str, copied: str) -> None:
    if source.endswith(".py"):
        shutil.copy2(source, copied)
    else:
        Path(copied).symlink_to(source)
