"""The one way onto the user's disk: whole files, each either old or new."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from codemod.result import FileChange, FileError


def write(path: str, change: FileChange) -> FileError | None:
    """Puts `change.after` in place of `change.before`; an error leaves the file as it was.

    Links are followed, mode and owner kept.  An empty `before` means that the file is new or empty.
    """
    target = Path(os.path.realpath(path))
    try:
        status = target.stat() if target.exists() else None
        if status and not os.access(target, os.W_OK):  # as the system sees it: root may write where others may not
            return FileError(path, "is read-only; left unchanged")
        return _replace(path, target, status, change)
    except OSError as error:
        return FileError(path, f"cannot write ({error.strerror or error}); left unchanged")


def _replace(path: str, target: Path, status: os.stat_result | None, change: FileChange) -> FileError | None:
    """Through a file in the same folder, which is gone afterwards whatever happens, Ctrl-C included."""
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with beside.open("xb") as file:
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
        if status:
            _keep_owner_and_mode(beside, status)
        if (target.read_bytes() if status else b"") != change.before:
            return FileError(path, "was changed by someone else during the run; left unchanged, run again")
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
    return None


def _keep_owner_and_mode(path: Path, status: os.stat_result) -> None:
    own = path.stat()
    if hasattr(os, "chown") and (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        os.chown(path, status.st_uid, status.st_gid)
    path.chmod(stat.S_IMODE(status.st_mode))  # after chown, which clears the set-id bits
