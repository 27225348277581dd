"""Writes small programs of tensor ops, statement by statement.

Each statement is tried on two sample inputs of different sizes before the next is written, so that programs run, and
sizes are spelled by expressions that hold for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from tests.random_programs.expressions import Sample, expression, sized, target
from tests.random_programs.running import copies_where_refused, load


class Pick(Protocol):
    """Chooses one of several; what a test's search shrinks towards stands first."""

    def __call__(self, several: Sequence[Any], /) -> Any: ...


SAMPLES = {
    2: ((4, 6), (8, 10)),
    3: ((2, 6, 8), (4, 6, 10)),
    4: ((2, 4, 6, 8), (4, 4, 2, 10)),
}
"""By rank; channels stay the same, so that layers fit."""


@dataclass
class Writer:
    """A program under way: `run(x, ...)`, or a module of which `forward` is called."""

    pick: Pick
    rank: int
    is_module: bool
    parameters: list[str] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    seen: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """What each local name is in the two trials."""
    count: int = 0

    def text(self, result: str = "locals()") -> str:
        lines = [
            f"# rank {self.rank}",
            "import torch",
            "import torch.nn.functional as F",
            "from torch import nn",
            "",
            "",
        ]
        for helper in self.helpers:
            lines += [*helper.splitlines(), "", ""]
        body = [*self.body, f"return {result}"]
        names = ", ".join(self.parameters)
        if not self.is_module:
            return "\n".join([*lines, f"def run({names}):", *indented(body), ""])
        init = ["super().__init__()", *self.attributes]
        inside = ["def __init__(self):", *indented(init)]
        for method in self.methods:
            inside += ["", *method.splitlines()]
        inside += ["", f"def forward(self, {names}):", *indented(body)]
        return "\n".join([*lines, "class Net(nn.Module):", *indented(inside), ""])

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def samples(self) -> dict[str, Sample]:
        """Names of tensors."""
        return {
            name: Sample(name, a, b)
            for name, (a, b) in self.seen.items()
            if isinstance(a, torch.Tensor)
            and isinstance(b, torch.Tensor)
            and a.dim() == b.dim() <= 6
            and a.numel() < 50_000
        }

    def numbers(self) -> dict[str, tuple[int, int]]:
        return {name: (a, b) for name, (a, b) in self.seen.items() if type(a) is int and type(b) is int}

    def tensor(self) -> Sample:
        """One of the latest tensors, more often than not."""
        found = list(self.samples().values())
        return self.pick([*reversed(found[-4:]), *found])  # type: ignore[no-any-return]

    def try_out(self) -> bool:
        """Does the program run, for both samples and either way of the flag?  Notes what its names are."""
        try:
            module = load(self.text())
            with copies_where_refused():
                outcomes = [
                    [self._run(module, i, flag) for i in (0, 1)]
                    for flag in ((True, False) if "flag" in self.parameters else (True,))
                ]
        except Exception:
            return False
        if not all(isinstance(seen, dict) for run in outcomes for seen in run):
            return False  # a sample leaves by a `return` of its own
        names = [name for name in outcomes[0][0] if all(name in seen for run in outcomes for seen in run)]
        for pair in outcomes[1:]:
            names = [n for n in names if all(_kind(pair[i][n]) == _kind(outcomes[0][i][n]) for i in (0, 1))]
        self.seen = {name: (outcomes[0][0][name], outcomes[0][1][name]) for name in names if name != "self"}
        return True

    def _run(self, module: Mapping[str, Any], i: int, flag: bool) -> dict[str, Any]:
        torch.default_generator.manual_seed(0)
        given = {"flag": flag, "n": 2, "x": torch.rand(SAMPLES[self.rank][i]), "y": torch.rand(SAMPLES[self.rank][i])}
        arguments = [given[name.partition("=")[0].partition(":")[0]] for name in self.parameters]
        call = module["Net"]() if self.is_module else module["run"]
        return call(*arguments)  # type: ignore[no-any-return]

    def add(self, *lines: str) -> bool:
        """Append the statement if the program still runs."""
        before = self.seen
        self.body += lines
        if self.try_out():
            return True
        del self.body[len(self.body) - len(lines) :]
        self.seen = before
        return False


def _kind(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (value.shape, value.dtype)
    return value if type(value) is int else type(value)


def indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]


def write_program(pick: Pick) -> str:
    """A program and what it is called with is told by its parameters: `x` and `y` tensors, `flag`, `n` a count."""
    rank = pick([4, 3, 2])
    writer = Writer(pick, rank, pick([False, False, True]))
    writer.parameters = [*["x"], *pick([[], ["y"], ["flag"], ["flag", "n"], ["y", "flag"]])]
    writer.try_out()
    if pick([False, True]):
        writer.add(", ".join("bchw"[:rank]) + f" = {pick(['x.shape', 'x.size()'])}")
    for _ in range(pick([2, 3, 4, 5, 6, 7, 8])):
        if writer.samples():
            pick(_STATEMENTS)(writer)
    if writer.samples():
        _view(writer)
    names = list(writer.samples()) or ["x"]
    return writer.text(pick([names[-1], f"{names[-1]}, {pick(names)}", f"[{names[-1]}, {pick(names)}]"]))


def _name(writer: Writer, of: Sample) -> str:
    return writer.pick([writer.fresh(), writer.fresh(), of.name])  # type: ignore[no-any-return]


def _assign(writer: Writer) -> None:
    of = writer.tensor()
    writer.add(f"{_name(writer, of)} = {expression(of, writer.samples(), writer.numbers(), writer.pick)}")


def _chain(writer: Writer) -> None:
    """Several ops in one expression."""
    of = writer.tensor()
    name, text = _name(writer, of), of.name
    sample = of
    for _ in range(writer.pick([2, 3])):
        text = expression(sample.called(text), {}, {}, writer.pick)
        values = [_value(text, {of.name: value}) for value in (of.first, of.second)]
        if not all(isinstance(value, torch.Tensor) for value in values):
            return
        sample = Sample(text, *values)
    writer.add(f"{name} = {text}")


def _value(text: str, names: dict[str, Any]) -> Any:
    try:
        with copies_where_refused():
            return eval(text, {"torch": torch, "F": torch.nn.functional, **names})
    except Exception:
        return None


def _view(writer: Writer) -> None:
    of = writer.tensor()
    for _ in range(3):
        if writer.add(f"{_name(writer, of)} = {target(of, writer.samples(), writer.numbers(), writer.pick)}"):
            return


def _unpack(writer: Writer) -> None:
    of = writer.tensor()
    if of.first.dim():
        names = [writer.fresh() for _ in range(of.first.dim())]
        writer.add(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {of.name}.{writer.pick(['shape', 'size()'])}")


def _number(writer: Writer) -> None:
    of = writer.tensor()
    sizes = [sized(of, i, writer.numbers(), writer.pick) for i in range(of.first.dim())]
    if sizes:
        one, other = writer.pick(sizes), writer.pick(sizes)
        writer.add(f"{writer.fresh()} = {writer.pick([one, f'{one} * {other}', f'{one} // 2', f'{one} + 2'])}")


def _same_shape(writer: Writer, of: Sample) -> list[str]:
    """Expressions that leave the sizes as they are, and strides not."""
    n, r = of.name, of.first.dim()
    found = [f"{n}.contiguous()", f"{n}.clone()", f"{n} * 2", f"torch.relu({n})", n]
    for i in range(r):
        for j in range(i + 1, r):
            found.append(f"{n}.transpose({i}, {j}).contiguous().transpose({i}, {j})")
    if r == 4:
        found.append(f"{n}.contiguous(memory_format=torch.channels_last)")
    if r >= 1:
        found += [f"torch.cat([{n}, {n}], {r - 1})[..., :{n}.shape[-1]]", f"{n}.flip(0)", f"{n}.softmax(-1)"]
        found.append(f"{n}.new_zeros({n}.shape)")
    if r >= 2 and of.first.shape[-1] == of.first.shape[-2] and of.second.shape[-1] == of.second.shape[-2]:
        found.append(f"{n}.transpose(-1, -2)")
    return found


def _branch(writer: Writer) -> None:
    if "flag" not in writer.parameters:
        return
    of = writer.tensor()
    same = _same_shape(writer, of)
    name = _name(writer, of)
    if_true, if_false = f"{name} = {writer.pick(same)}", f"{name} = {writer.pick(same)}"
    test = writer.pick(["flag", "not flag", "flag is True", "flag and n > 1" if "n" in writer.parameters else "flag"])
    form = writer.pick(["if", "else", "conditional", "early", "and"])
    if form == "if":
        writer.add(f"if {test}:", f"    {of.name} = {writer.pick(same)}")
    elif form == "else":
        writer.add(f"if {test}:", f"    {if_true}", "else:", f"    {if_false}")
    elif form == "conditional":
        writer.add(f"{name} = {writer.pick(same)} if {test} else {writer.pick(same)}")
    elif form == "and":
        writer.add(f"{test} and ({of.name} := {writer.pick(same)}) is None")
    else:
        writer.add(f"if {test} and {of.name}.numel() == 0:", f"    return {of.name}")


def _loop(writer: Writer) -> None:
    of = writer.tensor()
    same = _same_shape(writer, of)
    head = writer.pick(["for i in range(2):", "for _ in [0, 1, 2]:", "for i in range(n):", "while n > 0:"])
    if ("n >" in head or "(n)" in head) and "n" not in writer.parameters:
        head = "for i in range(2):"
    other = writer.tensor()
    inside = [f"{of.name} = {writer.pick(same)}"]
    if other.name != of.name and other.first.shape == of.first.shape and other.second.shape == of.second.shape:
        inside = writer.pick(
            [inside, [f"{of.name}, {other.name} = {other.name}, {of.name}"], [f"{of.name} = {other.name}"]]
        )
    if writer.pick([False, True]):
        inside = [f"{writer.fresh()} = {target(of, {}, {}, writer.pick)}", *inside]
    if "while" in head:
        inside = ["n = n - 1", *inside]
    elif writer.pick([False, False, True]):
        inside.append(writer.pick(["if i == 0: continue", "if i > 0: break", "pass"]))
    writer.add(head, *indented(inside))


def _helper(writer: Writer) -> None:
    """A function or method of its own."""
    of = writer.tensor()
    name, z = f"helper{len(writer.helpers) + len(writer.methods)}", Sample("z", of.first, of.second)
    lines, values = [], {"z": z}
    current = z
    for i in range(writer.pick([1, 2, 3])):
        make = writer.pick([expression, expression, target])
        text = make(current, values, {}, writer.pick)
        found = [_value(text, {k: (s.first, s.second)[j] for k, s in values.items()}) for j in (0, 1)]
        if not all(isinstance(value, torch.Tensor) for value in found):
            return
        current = Sample(f"w{i}", *found)
        values[current.name] = current
        lines.append(f"{current.name} = {text}")
    before = len(writer.helpers), len(writer.methods)
    is_method = writer.is_module and writer.pick([True, False])
    head = f"def {name}({'self, ' if is_method else ''}z):"
    text = "\n".join([head, *indented([*lines, f"return {current.name}"])])
    (writer.methods if is_method else writer.helpers).append(text)
    call = f"{'self.' if is_method else ''}{name}({writer.pick([of.name, f'z={of.name}'])})"
    if not writer.add(f"{_name(writer, of)} = {call}"):
        del writer.helpers[before[0] :], writer.methods[before[1] :]


def _layer(writer: Writer) -> None:
    """A part of the module."""
    of = writer.tensor()
    shapes = (of.first.shape, of.second.shape)
    if not writer.is_module or not of.first.dim():
        return
    name = f"part{len(writer.attributes)}"
    made, call = writer.pick(_layers(of)) if _layers(of) else ("", "")
    if not made:
        return
    writer.attributes.append(f"self.{name} = {made}")
    if not writer.add(f"{_name(writer, of)} = {call.format(f'self.{name}', of.name)}"):
        writer.attributes.pop()
    del shapes


def _layers(of: Sample) -> list[tuple[str, str]]:
    first, second, found = of.first, of.second, []
    rank = first.dim()
    if first.shape[-1] == second.shape[-1]:
        d = first.shape[-1]
        found += [(f"nn.Linear({d}, 4)", "{0}({1})"), (f"nn.LayerNorm({d})", "{0}({1})")]
        found += [(f"nn.Parameter(torch.ones({d}))", "{1} * {0}"), (f"nn.Linear({d}, 6)", "F.linear({1}, {0}.weight)")]
    if rank == 4 and first.shape[1] == second.shape[1]:
        c = first.shape[1]
        found += [
            (f"nn.Conv2d({c}, 6, 3, padding=1)", "{0}({1})"),
            (f"nn.Conv2d({c}, 6, 1)", "{0}({1})"),
            (f"nn.BatchNorm2d({c})", "{0}({1})"),
            ("nn.MaxPool2d(2)", "{0}({1})"),
            ("nn.AdaptiveAvgPool2d(1)", "{0}({1})"),
            (f"nn.GroupNorm(2, {c})", "{0}({1})"),
            (f"nn.Sequential(nn.Conv2d({c}, 4, 1), nn.ReLU())", "{0}({1})"),
            (f"nn.ConvTranspose2d({c}, 4, 2, stride=2)", "{0}({1})"),
            ("nn.Upsample(scale_factor=2)", "{0}({1})"),
        ]
    if rank == 3 and first.shape[1] == second.shape[1]:
        found += [(f"nn.Conv1d({first.shape[1]}, 4, 1)", "{0}({1})")]
    if rank == 3 and first.shape[2] == second.shape[2]:
        found += [(f"nn.LSTM({first.shape[2]}, 4, batch_first=True)", "{0}({1})[0]")]
        found += [(f"nn.GRU({first.shape[2]}, 4)", "{0}({1})[0]")]
    found += [("nn.ReLU(inplace=True)", "{0}({1})"), ("nn.Dropout(0.0)", "{0}({1})"), ("nn.Identity()", "{0}({1})")]
    found += [("nn.Flatten()", "{0}({1})"), ("nn.Softmax(dim=-1)", "{0}({1})"), ("nn.Flatten(0, 1)", "{0}({1})")]
    return found


def _write(writer: Writer) -> None:
    """In place, through whatever aliases there are."""
    of, other = writer.tensor(), writer.tensor()
    n, r = of.name, of.first.dim()
    if not r:
        return
    i, j = writer.pick(range(r)), writer.pick(range(r))
    forms = [f"{n}.add_(1)", f"{n}[0] = 0", f"{n}.mul_(2)", f"{n} += 1", f"{n}.zero_()", f"{n}[..., 0] *= 2"]
    forms += [f"{n}.transpose_({i}, {j})", f"{n}.unsqueeze_({i})", f"{n}.squeeze_()", f"{n}.squeeze_({i})"]
    forms += [f"{n}.copy_({n}.flip(0))", f"torch.relu_({n})", f"{n}.swapaxes_({i}, {j})"]
    forms += [f"torch.mul({n}, 2, out={other.name})", f"{n}.data = {other.name}", f"{n}.data.add_(1)"]
    forms += [f"torch.add({n}, 1, out={n})", f"{n}.set_({other.name})", f"nn.init.zeros_({n})"]
    writer.add(writer.pick(forms))


def _turn(writer: Writer) -> None:
    """Strides that a view may not fit."""
    of = writer.tensor()
    r = of.rank
    if r < 2:
        return
    i, j = writer.pick(range(r)), writer.pick(range(r))
    forms = [f"{of.name}.transpose({i}, {j})", f"{of.name}[..., ::2]", f"{of.name}[{':, ' * i}1:]", f"{of.name}.mT"]
    writer.add(f"{_name(writer, of)} = {writer.pick(forms)}")
    _view(writer)


def _alias(writer: Writer) -> None:
    of, other = writer.tensor(), writer.tensor()
    a, b = writer.fresh(), writer.fresh()
    n, m = of.name, other.name
    forms: list[list[str]] = [
        [f"{a} = {n}"],
        [f"{a}, {b} = {n}, {m}"],
        [f"{b} = [{n}, {m}]", f"{a} = {b}[{writer.pick([0, 1, -1])}]"],
        [f"{b} = {{'k': {n}, 'l': {m}}}", f"{a} = {b}[{writer.pick([repr('k'), repr('l')])}]"],
        [f"{b} = ({n}, {m})", f"{a}, _ = {b}"],
        [f"{b} = []", f"{b}.append({n})", f"{b}.append({m})", f"{a} = {b}[0]"],
        [f"{b} = [{n}]", f"{b} += [{m}]", f"{a} = {b}.pop()"],
        [f"{b} = lambda z: {expression(of.called('z'), {}, {}, writer.pick)}", f"{a} = {b}({n})"],
        [f"{b} = [{expression(of.called('z'), {}, {}, writer.pick)} for z in ({n}, {n})]", f"{a} = {b}[1]"],
        [f"{a} = torch.stack([z for z in {n}])"],
        [f"for {a} in ({n}, {m}):", "    pass"],
        ["with torch.no_grad():", f"    {a} = {expression(of, {}, {}, writer.pick)}"],
        ["try:", f"    {a} = {expression(of, {}, {}, writer.pick)}", "finally:", "    pass"],
        ["try:", f"    {a} = {n}", "except ValueError:", f"    {a} = {m}"],
        ["def inner():", f"    return {expression(of, {}, {}, writer.pick)}", f"{a} = inner()"],
        [f"if ({a} := {expression(of, {}, {}, writer.pick)}).dim() > 0:", "    pass"],
    ]
    writer.add(*writer.pick(forms))


def _keep(writer: Writer) -> None:
    """An attribute that `forward` sets and reads."""
    if not writer.is_module:
        return
    of = writer.tensor()
    writer.add(f"self.kept = {of.name}", f"{writer.fresh()} = self.kept")


_STATEMENTS: list[Callable[[Writer], None]] = [
    *[_assign] * 6,
    *[_view] * 2,
    *[_turn] * 3,
    *[_chain] * 2,
    *[_layer] * 2,
    _unpack,
    _number,
    _branch,
    _branch,
    _loop,
    _helper,
    _helper,
    _write,
    _alias,
    _alias,
    _keep,
]

__all__ = ["SAMPLES", "Pick", "Writer", "math", "write_program"]
