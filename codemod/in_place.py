"""The changes of a run, put on the disk."""

from __future__ import annotations

from dataclasses import replace

from codemod.result import FileError, FileResult, RunResult
from codemod.sources.write import write


def write_changes(result: RunResult) -> RunResult:
    """The run with its changes written, in order; a file that could not be written has an error and no findings.

    Not before every file has been looked at: what is found in one must not depend on which others are written already.
    Helpers first, once each: code that imports one never stands there without it.
    """
    helpers = {file.helper.path: file.helper for file in result.files if file.helper is not None}
    failed = {path: error for path, change in helpers.items() if (error := write(path, change)) is not None}
    return replace(result, files=tuple(_written(file, failed) for file in result.files))


def _written(file: FileResult, failed: dict[str, FileError]) -> FileResult:
    """`failed` holds the helpers that could not be written, by their path."""
    error = failed.get(file.helper.path) if file.helper is not None else None
    if error is None and file.change is not None:
        error = write(file.path, file.change)
    return file if error is None else FileResult(file.path, errors=(*file.errors, error))
