"""Comments by which users keep the tool away: `# torch-codemod: ignore[view-to-reshape] why`."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from codemod.syntax.parse import Syntax

_MARK = "torch-codemod:"
_COMMENT = re.compile(r"#\s*torch-codemod:\s*ignore(-file)?(?![\w-])(?:\s*\[([^\]]*)\])?")


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment; `transforms` None stands for all of them."""

    line: int
    transforms: frozenset[str] | None
    is_for_file: bool

    def names(self, transform: str) -> bool:
        return self.transforms is None or transform in self.transforms


@dataclass(frozen=True, slots=True)
class Suppressions:
    """The comments of one file, in order."""

    comments: tuple[Suppression, ...] = ()

    def covers(self, first_line: int, last_line: int, transform: str) -> int | None:
        """The line of the comment that keeps `transform` from a call on these lines; None where there is none.

        A comment on a line counts before one for the file, so that neither seems unused without reason.
        """
        found = [comment for comment in self.comments if comment.names(transform)]
        for comment in found:
            if not comment.is_for_file and first_line <= comment.line <= last_line:
                return comment.line
        return next((comment.line for comment in found if comment.is_for_file), None)

    def unused(self, used: Collection[int]) -> tuple[int, ...]:
        """The lines of the comments that are not among the `used` ones."""
        return tuple(comment.line for comment in self.comments if comment.line not in used)


def suppressions(syntax: Syntax) -> Suppressions:
    """The suppressions of a file; text in strings that looks like one does not count."""
    if _MARK not in syntax.text:
        return Suppressions()
    return Suppressions(tuple(_suppressions(syntax.text)))


def _suppressions(text: str) -> Iterator[Suppression]:
    # tokenize before 3.12 does not take \r for a line end
    lines = io.StringIO(re.sub(r"\r\n|\r", "\n", text))
    for token in tokenize.generate_tokens(lines.readline):
        if token.type == tokenize.COMMENT and (match := _COMMENT.search(token.string)):
            names = None if match[2] is None else frozenset(re.split(r"[\s,]+", match[2].strip()))
            yield Suppression(token.start[0], names, is_for_file=match[1] is not None)
