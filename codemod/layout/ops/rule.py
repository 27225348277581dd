"""How an op rule is declared: one function that maps layouts to a layout, under the names that torch gives the op.

A rule knows one world at a time and says only what torch's own code fixes.  Its parameters carry torch's names and
say by their annotation what they need to be:

    Layout          a tensor; one that is not followed comes as a tensor of unknown rank and strides
    Layouts         a sequence of tensors; None where it is not known
    Tensors         tensors, given one by one or as a sequence; None where they are not known
    Index           an int; None where it is not known
    Indices         ints, given one by one or as a tuple; None where they are not known
    Dims            ints, given as one int or as a tuple; None where they are not known
    Shape           sizes, given one by one or as a tuple; None where not even their number is known
    Extent          one size; UNKNOWN where it is not known
    Flag, Text      a truth value, a text; None where it is not known
    Value           the abstract value as it is
    World           under which assumption the layouts hold

Keywords that the rule does not name change nothing, and neither do positions behind `*ignored`.
An argument that the call leaves out has the parameter's default, which should be torch's.

UNKNOWN as a size or stride in the answer becomes a fresh symbol, as does a pack without owner.  None as the answer is
a tensor of which nothing is known.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import TypeVar

from codemod.layout.layout import Layout
from codemod.layout.lazy import lazy
from codemod.layout.record import record
from codemod.layout.size import Size
from codemod.layout.viewable import Target

Layouts = tuple[Layout, ...] | None
Tensors = Layouts


class AnyNumber(tuple[Layout, ...]):
    """The Layouts of a list of unknown length, which stand for all of its elements."""

    __slots__ = ()


Index = int | None
Indices = tuple[int, ...] | None
Dims = tuple[int, ...] | None
Shape = Target | None
Extent = Size
Flag = bool | None
Text = str | None


class Alias(Enum):
    """Does the result share storage with the first tensor argument?"""

    ALWAYS = "always"
    NEVER = "never"
    MAYBE = "maybe"


@record(frozen=True, slots=True)
class Parts:
    """A tuple of tensors of one layout that cut `dim`, of `size`, of the input into parts; UNKNOWN where it is gone."""

    layout: Layout
    size: Size
    dim: int


@record(frozen=True, slots=True)
class Fields:
    """A named tuple."""

    items: tuple[tuple[str, Layout | None], ...]


Outcome = Layout | Parts | Fields | Size | Target | tuple["Outcome", ...] | None


REQUIRED = inspect.Parameter.empty
"""The default of a parameter that has none."""


@record(frozen=True, slots=True)
class Parameter:
    name: str
    kind: str
    """The annotation, as written."""
    default: object
    is_keyword_only: bool
    is_rest: bool = False
    """`*ignored`: takes whatever else is given by position, and is not passed on."""


@record(frozen=True)
class Rule:
    names: tuple[str, ...]
    function: Callable[..., Outcome]
    parameters: tuple[Parameter, ...]
    alias: Alias = Alias.NEVER
    examples: tuple[str, ...] = ()
    """Python expressions over tensors `x`, `y`, `z`, `image` (4-d) and modules, that the tests run on real torch."""
    layouts: tuple[str, ...] = ()
    """Names of the parameters that are tensors."""
    knows_world: bool = False
    """It tells the worlds apart by more than the layouts given."""

    @lazy
    def constructor(self) -> tuple[Parameter, ...]:
        """The parameters of a torch.nn module's constructor, which may be given by position."""
        return tuple(replace(p, is_keyword_only=False) for p in self.parameters if p.is_keyword_only)


_DECLARED: dict[str, Rule] = {}


F = TypeVar("F", bound=Callable[..., Outcome])


def op(*names: str, alias: Alias = Alias.NEVER, examples: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Declare the rule of an op.  `.view` is a tensor method; other names are import paths.

    The keyword-only parameters of a `torch.nn` module's rule are those of its constructor, in torch's order.
    """

    def declare(function: F) -> F:
        parameters = _parameters(function)
        layouts = tuple(p.name for p in parameters if p.kind in ("Layout", "Layout | None", "Layouts", "Tensors"))
        knows_world = any(p.kind == "World" for p in parameters)
        rule = Rule(names, function, parameters, alias, examples, layouts, knows_world)
        for name in names:
            if name in _DECLARED:
                raise ValueError(f"two rules for {name}")
            _DECLARED[name] = rule
        return function

    return declare


@cache
def rules() -> Mapping[str, Rule]:
    """Every declared rule by name; the files of this folder are found by being there."""
    package = importlib.import_module(__package__)
    for found in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{__package__}.{found.name}")
    return MappingProxyType(_DECLARED)


def _parameters(function: Callable[..., Outcome]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(
            parameter.name,
            str(parameter.annotation),
            parameter.default,
            parameter.kind is inspect.Parameter.KEYWORD_ONLY,
            parameter.kind is inspect.Parameter.VAR_POSITIONAL,
        )
        for parameter in inspect.signature(function).parameters.values()
    )
