"""Runs a program on real torch, and notes what its views met."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

Place = tuple[int, int]
"""Line and column at which a call ends."""
FILE = "program.py"
_view, _view_as = torch.Tensor.view, torch.Tensor.view_as
_REFUSED = "view size is not compatible"


def load(text: str) -> dict[str, Any]:
    """The names that the program defines."""
    scope: dict[str, Any] = {"__name__": "program"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, FILE, "exec"), scope)
    return scope


@dataclass
class Meetings:
    """What the views of a program met, by place."""

    reached: Counter[Place] = field(default_factory=Counter)
    refused: Counter[Place] = field(default_factory=Counter)
    refused_first: Counter[Place] = field(default_factory=Counter)
    """Where no view was refused in the run before."""
    lost: set[Place] = field(default_factory=set)
    """Refused, and a copy in its place would have been written to."""
    copies: list[tuple[Place, torch.Tensor, int]] = field(default_factory=list)
    is_refused: bool = False

    def begin(self) -> None:
        self.is_refused = False
        self.copies.clear()

    def end(self) -> None:
        for place, copy, before in self.copies:
            if copy._version != before:
                self.lost.add(place)


@contextlib.contextmanager
def copies_where_refused(meetings: Meetings | None = None) -> Iterator[None]:
    """A view that torch refuses gives a copy, and the program goes on."""

    def view(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _or_copy(_view, self, args, kwargs, meetings, sys._getframe(1))

    def view_as(self: Any, other: Any) -> Any:
        return _or_copy(_view_as, self, (other,), {}, meetings, sys._getframe(1))

    torch.Tensor.view, torch.Tensor.view_as = view, view_as  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        torch.Tensor.view, torch.Tensor.view_as = _view, _view_as  # type: ignore[method-assign]


def _or_copy(
    function: Any, of: Any, args: Any, kwargs: Any, meetings: Meetings | None, frame: FrameType
) -> torch.Tensor:
    place = place_of(frame)
    if meetings is not None:
        meetings.reached[place] += 1
    try:
        return function(of, *args, **kwargs)  # type: ignore[no-any-return]
    except RuntimeError as error:
        if _REFUSED not in str(error):
            raise
    if "size" in kwargs:
        kwargs = {"shape": kwargs["size"]}
    copy = of.reshape(*args, **kwargs) if function is _view else of.reshape_as(*args)
    if meetings is not None:
        meetings.refused[place] += 1
        meetings.refused_first[place] += not meetings.is_refused
        meetings.is_refused = True
        meetings.copies.append((place, copy.detach(), copy._version))
    return copy  # type: ignore[no-any-return]


def place_of(frame: FrameType) -> Place:
    positions = list(frame.f_code.co_positions())
    _, line, _, column = positions[frame.f_lasti // 2]
    return line or 0, column or 0
