"""What must hold of a program: of the verdicts at its views, and of what the tool makes of it."""

from __future__ import annotations

import inspect
import random
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch

from codemod.engine import process_raw
from codemod.finding import Action, Verdict
from codemod.layout.analyse import analyse
from codemod.layout.project import Project
from codemod.layout.verdict import rule_on
from codemod.result import FileError
from codemod.settings import Settings, Sites
from codemod.sources.source import Source, decode
from codemod.syntax.parse import parse
from tests.random_programs.running import FILE, Meetings, Place, copies_where_refused, load
from tests.random_programs.writer import SAMPLES

SIZES = {
    2: [(4, 6), (8, 10), (6, 4), (4, 4), (1, 6), (4, 1), (0, 6), (4, 0)],
    3: [(2, 6, 8), (4, 6, 10), (2, 4, 4), (6, 2, 2), (1, 6, 8), (2, 1, 8), (2, 6, 1), (0, 6, 8), (2, 6, 0)],
    4: [
        *[(2, 4, 6, 8), (4, 4, 2, 10), (2, 4, 4, 4), (4, 2, 8, 6), (6, 4, 8, 2), (1, 4, 6, 8), (2, 1, 6, 8)],
        *[(2, 4, 1, 8), (2, 4, 6, 1), (2, 4, 1, 1), (1, 4, 1, 8), (0, 4, 6, 8), (2, 4, 0, 8)],
    ],
}
PLAIN = 2
"""The first so many sizes are the samples'."""


@dataclass
class Judged:
    """What one program showed."""

    verdicts: Counter[str] = field(default_factory=Counter)
    counterexamples: list[str] = field(default_factory=list)
    runs: int = 0
    met: Counter[str] = field(default_factory=Counter)
    """Verdicts of the sites that some run reached."""


def layouts(shape: Sequence[int]) -> Iterator[torch.Tensor]:
    """Tensors of these sizes; the contiguous one first."""
    r = len(shape)
    filled = torch.arange(1.0, 1 + _numel(shape)).reshape(tuple(shape)) % 7 - 2.5
    yield filled.clone()
    yield filled.transpose(-1, -2).contiguous().transpose(-1, -2)
    yield filled.permute(*reversed(range(r))).contiguous().permute(*reversed(range(r)))
    if r > 2:
        yield filled.transpose(0, 1).contiguous().transpose(0, 1)
        yield filled.transpose(0, 2).contiguous().transpose(0, 2)
        yield filled.movedim(1, -1).contiguous().movedim(-1, 1)
    for i in range(r):
        yield torch.stack([filled, filled], i + 1).flatten(i, i + 1).clone().index_select(i, _evens(shape[i]))
        yield _strided(filled, i, 2)
    yield filled[:1].expand(*shape) if shape[0] else filled
    if shape[-1]:
        yield filled[..., :1].expand(*shape)
    yield torch.cat([filled.flatten()[:3], filled.flatten()])[min(3, filled.numel()) :].view(*shape)


def _evens(size: int) -> torch.Tensor:
    return torch.arange(0, 2 * size, 2)


def _strided(filled: torch.Tensor, i: int, step: int) -> torch.Tensor:
    """Every `step`th along dim `i` of a larger tensor."""
    larger = filled.repeat_interleave(step, i)
    key = (slice(None),) * i + (slice(None, None, step),)
    return larger[key]


def _numel(shape: Sequence[int]) -> int:
    found = 1
    for size in shape:
        found *= size
    return found


TRIED = 40
"""Inputs a program is run on, beside the plain ones."""
COMPARED = 10
"""Of those, on how many a rewritten program is compared with what it was."""


def inputs(text: str, rank: int) -> list[tuple[bool, dict[str, Any]]]:
    """Keyword arguments, and whether they are plain: contiguous, and of the samples' sizes."""
    scope = load(text)
    function = scope["Net"].forward if "Net" in scope else scope["run"]
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    every = [
        (k < PLAIN and i == 0, x, y, flag, 2 + (k & 1))
        for k, shape in enumerate(SIZES[rank])
        for i, x in enumerate(_layouts(shape))
        for y in ([x, _layouts(shape)[0]] if "y" in names else [None])
        for flag in ((True, False) if "flag" in names else (True,))
    ]
    plain = [one for one in every if one[0]]
    others = [one for one in every if not one[0]]
    chance = random.Random(len(text))
    chosen = [*plain, *chance.sample(others, min(TRIED, len(others)))]
    return [
        (is_plain, {k: v for k, v in {"x": x, "y": y, "flag": flag, "n": n}.items() if k in names})
        for is_plain, x, y, flag, n in chosen
    ]


@cache
def _layouts(shape: tuple[int, ...]) -> list[torch.Tensor]:
    return list(layouts(shape))


def _rank(text: str) -> int:
    """Noted by the writer in the first line."""
    return int(text.partition("rank ")[2][0])


def call(scope: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    torch.default_generator.manual_seed(0)  # torch.manual_seed takes a stack trace each time
    function = scope["Net"]() if "Net" in scope else scope["run"]
    return function(**given)


def copied(given: Mapping[str, Any]) -> dict[str, Any]:
    """The same sizes, strides and values, in storage of their own."""
    return {name: _copy(value) if isinstance(value, torch.Tensor) else value for name, value in given.items()}


def _copy(value: torch.Tensor) -> torch.Tensor:
    storage = value.untyped_storage().clone()
    return torch.empty(0, dtype=value.dtype).set_(storage, value.storage_offset(), value.size(), value.stride())


def meet(text: str, tried: Sequence[tuple[bool, dict[str, Any]]]) -> tuple[Meetings, int]:
    scope = load(text)
    meetings, passed = Meetings(), 0
    for _, given in tried:
        meetings.begin()
        try:
            with copies_where_refused(meetings):
                call(scope, copied(given))
            passed += 1
        except Exception:
            pass
        meetings.end()
    return meetings, passed


def _is_refused(text: str, place: Place, meetings: Meetings) -> bool:
    """By an input of the rank that the program was written for, or of another that it accepts."""
    if meetings.refused[place]:
        return True
    return any(meet(text, inputs(text, rank))[0].refused[place] for rank in SIZES if rank != _rank(text))


def verdicts_of(text: str) -> dict[Place, list[tuple[Verdict, str]]]:
    source = decode(FILE, text.encode())
    assert isinstance(source, Source), source
    syntax = parse(source)
    assert not isinstance(syntax, FileError), syntax
    found: dict[Place, list[tuple[Verdict, str]]] = {}
    for site in analyse(syntax, Project(".")):
        if site.operation in ("view", "view_as"):
            place = (site.node.end_lineno or 0, site.node.end_col_offset or 0)
            ruling = rule_on(site)
            found.setdefault(place, []).append((ruling.verdict, "; ".join(r.text for r in ruling.reasons)))
    return found


def judge(text: str) -> Judged:
    judged = Judged()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tried = list(inputs(text, _rank(text)))
        meetings, judged.runs = meet(text, tried)
        try:
            told = verdicts_of(text)
        except Exception as error:
            judged.counterexamples.append(f"error: {error!r}")
            return judged
        for place, rulings in told.items():
            for verdict, _ in rulings:
                judged.verdicts[verdict.value] += 1
                judged.met[verdict.value] += bool(meetings.reached[place])
                if verdict is Verdict.SAFE and meetings.refused_first[place]:
                    judged.counterexamples.append(f"line {place[0]}: safe, and refused")
                if verdict is Verdict.FAILING and meetings.reached[place] and not _is_refused(text, place, meetings):
                    judged.counterexamples.append(f"line {place[0]}: failing, and never refused")
        judged.counterexamples += _rewritten(text, tried, meetings)
    return judged


_SETTINGS = {sites: Settings(sites=sites) for sites in Sites}


def _rewritten(text: str, tried: Sequence[tuple[bool, dict[str, Any]]], meetings: Meetings) -> Iterator[str]:
    done = {text}
    for settings in _SETTINGS.values():
        result = process_raw(FILE, text.encode(), settings)
        if result.errors:
            yield f"error: {result.errors[0].why}"
            return
        for finding in result.findings:
            if finding.action is Action.REWRITE and any(line == finding.span.line for line, _ in meetings.lost):
                yield f"line {finding.span.line}: rewritten ({settings.sites.value}), and a write is lost"
        if result.change is None:
            continue
        new = result.change.after.decode()
        if new in done:
            continue
        done.add(new)
        again = process_raw(FILE, new.encode(), settings)
        if again.change is not None and settings.sites is Sites.FAILING:
            yield f"a second run ({settings.sites.value}) changes it again"
        yield from _same_results(text, new, tried[:1] + tried[-COMPARED:])


def _same_results(old: str, new: str, tried: Sequence[tuple[bool, dict[str, Any]]]) -> Iterator[str]:
    before, after = load(old), load(new)
    for _, given in tried:
        for with_gradients in (False, True):
            told = [partial(_outcome, scope, given, with_gradients)() for scope in (before, after)]
            if told[0] is None:
                break
            if told[1] is None or not _is_same(told[0], told[1]):
                yield f"rewritten, and the results differ for {_spell(given)}"
                return


def _spell(given: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}: {tuple(v.shape)} {v.stride()}" if isinstance(v, torch.Tensor) else f"{name}={v}"
        for name, v in given.items()
    )


def _outcome(scope: Mapping[str, Any], given: Mapping[str, Any], with_gradients: bool) -> list[Any] | None:
    """Results, inputs as they are left, and how writes to one show in the other; None where it raises."""
    given = copied(given)
    tensors = [value for value in given.values() if isinstance(value, torch.Tensor)]
    roots: list[torch.Tensor] = []
    if with_gradients:
        roots = [t.clone().requires_grad_() for t in tensors]
        kept = iter(roots)
        given = {k: _grown(next(kept)) if isinstance(v, torch.Tensor) else v for k, v in given.items()}
        tensors = [value for value in given.values() if isinstance(value, torch.Tensor)]
    try:
        results = _flat(call(scope, given))
        if with_gradients:
            total = sum((r.float().sum() for r in results if r.is_floating_point()), torch.zeros(()))
            if not total.requires_grad:
                return []
            total.backward()  # type: ignore[no-untyped-call]
            return [root.grad for root in roots]
    except Exception:
        return None
    results, tensors = [t.detach() for t in results], [t.detach() for t in tensors]
    found: list[Any] = [t.clone() for t in (*results, *tensors)]
    found += [t.shape for t in tensors]
    for one in (*results, *tensors):
        with torch.no_grad():
            try:
                one.fill_(3)
            except RuntimeError:
                continue
        found += [t.clone() for t in (*results, *tensors)]
    return found


def _grown(root: torch.Tensor) -> torch.Tensor:
    """Not a leaf, so that it may be written in place; strides stay."""
    return root * 1


def _flat(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _flat(item)]
    return []


def _is_same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(_is_equal, one, other))


def _is_equal(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return bool(one == other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return torch.equal(one, other) or bool(torch.equal(torch.nan_to_num(one), torch.nan_to_num(other)))


__all__ = ["SAMPLES", "Judged", "judge"]
