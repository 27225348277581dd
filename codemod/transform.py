"""The contract between the engine and one rewriting rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import libcst as cst

from codemod.finding import Finding, Rewrite
from codemod.layout.op_call import OpCall
from codemod.settings import Settings


@dataclass(frozen=True, slots=True)
class Example:
    """A small program before and after; `after` None means that it is left alone.

    The tests run both texts on real torch: `check` is a Python expression of the inputs, evaluated in each
    program's namespace, whose values must be equal; gradients and aliasing are compared by the test.
    """

    title: str
    before: str
    after: str | None = None
    verdict: str | None = None
    """Verdict expected at the last site of `before`; None: not claimed."""
    settings: Settings = field(default_factory=Settings)
    check: str | None = None


class Transform(ABC):
    """One rule: looks at one call, says what it found, and rewrites a call that the engine hands back."""

    name: ClassVar[str]
    summary: ClassVar[str]
    operations: ClassVar[frozenset[str]]
    """The `OpCall.operation`s that `decide` wants to see."""
    examples: ClassVar[tuple[Example, ...]]

    @abstractmethod
    def decide(self, call: OpCall, settings: Settings) -> Finding | None:
        """The finding at this call; None where the rule has nothing to say."""

    def rewrite(self, call: cst.Call, rewrite: Rewrite) -> cst.BaseExpression:
        """The expression that takes the call's place.

        `call` is parsed from the call's own source, with its receiver replaced by a name: use `call.func` as it is,
        never its text.  Comments and blanks inside the call are in the tree.
        """
        raise NotImplementedError(f"{self.name} only reports")

    def imports(self, rewrite: Rewrite) -> tuple[str, str] | None:
        """(module, name) that the rewritten call needs; the module `""` stands for the project's helper file."""
        return None
