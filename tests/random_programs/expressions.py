"""Expressions of one tensor, and targets for a view of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from string import ascii_lowercase
from typing import Any

import torch

Pick = Callable[[Sequence[Any]], Any]
Numbers = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Sample:
    """A name, and what it is in two trials of different sizes."""

    name: str
    first: torch.Tensor
    second: torch.Tensor

    @property
    def rank(self) -> int:
        return self.first.dim()

    def size(self, i: int) -> tuple[int, int]:
        return self.first.shape[i], self.second.shape[i]

    def called(self, name: str) -> Sample:
        return replace(self, name=name)


def sized(of: Sample, i: int, numbers: Numbers, pick: Pick) -> str:
    """An expression for the size of dim `i`."""
    named = [name for name, pair in numbers.items() if pair == of.size(i)]
    fixed = [str(of.first.shape[i])] if of.first.shape[i] == of.second.shape[i] else []
    back = f"{of.name}.shape[{i - of.rank}]"
    return pick([f"{of.name}.shape[{i}]", *named, f"{of.name}.size({i})", *fixed, back])  # type: ignore[no-any-return]


def expression(of: Sample, others: Mapping[str, Sample], numbers: Numbers, pick: Pick) -> str:
    """An op on the tensor; it may not fit."""
    n, r = of.name, of.rank
    families = [_pointwise, _copies]
    if r >= 1:
        families += [_pieces, _pieces, _reductions, _joins, _views]
    if r >= 2:
        families += [_permutes, _permutes, _permutes, _matmul]
    if r in (3, 4):
        families += [_spatial]
    if others:
        families += [_pairs]
    return pick(pick(families)(n, r, of, others, numbers, pick))  # type: ignore[no-any-return]


def _dim(r: int, pick: Pick) -> int:
    i = pick(range(r))
    return pick([i, i, i - r])  # type: ignore[no-any-return]


def _permutes(n: str, r: int, of: Sample, others: Any, numbers: Numbers, pick: Pick) -> list[str]:
    i, j = _dim(r, pick), _dim(r, pick)
    rest = list(range(r))
    order = []
    while rest:
        order.append(rest.pop(pick(range(len(rest)))))
    spelled = ", ".join(map(str, order))
    found = [
        f"{n}.transpose({i}, {j})",
        f"{n}.permute({spelled})",
        f"{n}.permute([{spelled}])",
        f"torch.transpose({n}, {i}, {j})",
        f"{n}.transpose(dim0={i}, dim1={j})",
        f"{n}.mT",
        f"{n}.swapaxes({i}, {j})",
        f"{n}.movedim({i}, {j})",
        f"torch.permute({n}, ({spelled}))",
        f"torch.moveaxis({n}, {i}, {j})",
        f"torch.einsum('{ascii_lowercase[:r]}->{''.join(ascii_lowercase[d] for d in order)}', {n})",
        f"{n}.permute(dims=({spelled}))",
    ]
    if r == 2:
        found += [f"{n}.t()", f"{n}.T", f"torch.t({n})"]
    return found


def _pieces(n: str, r: int, of: Sample, others: Any, numbers: Numbers, pick: Pick) -> list[str]:
    i = _dim(r, pick)
    front = pick([":, " * (i % r), "" if i % r == 0 else ":, " * (i % r)])
    inner = pick(["1:", ":-1", "::2", "0", ":2", "None", "1:2", "[0, 1]", "-1", "torch.arange(2)", "1::2", ":1", "0:0"])
    return [
        f"{n}[{front}{inner}]",
        f"{n}[..., {inner}]",
        f"{n}.narrow({i}, 0, {pick([1, 2])})",
        f"{n}.select({i}, 0)",
        f"{n}.chunk(2, {i})[{pick([0, 1, -1])}]",
        f"{n}.chunk(2, dim={i})[0]",
        f"{n}.split(2, {i})[0]",
        f"torch.split({n}, {pick([1, 2])}, dim={i})[-1]",
        f"{n}.unbind({i})[0]",
        f"{n}.tensor_split(2, {i})[0]",
        f"{n}.index_select({i}, torch.tensor([1, 0]))",
        f"torch.chunk({n}, 2, {i})[0]",
        f"{n}.unfold({i}, 2, {pick([1, 2])})",
        f"{n}.diagonal()" if r >= 2 else f"{n}[:1]",
        f"{n}[{n}[..., 0] > 0.5]" if r >= 2 else f"{n}[{n} > 0.5]",
        f"{n}[[0, 1], :1]" if r >= 2 else f"{n}[[0, 1]]",
        f"{n}.take_along_dim({n}.argsort({i}), {i})",
        f"{n}.gather({i}, {n}.argsort({i}))",
    ]


def _views(n: str, r: int, of: Sample, others: Any, numbers: Numbers, pick: Pick) -> list[str]:
    i, j = sorted((pick(range(r)), pick(range(r))))
    k = pick(range(r + 1))
    ones = "-1, " * k
    more = ", -1" * (r - k)
    return [
        f"{n}.unsqueeze({k})",
        f"{n}.unsqueeze({k}).expand({ones}{pick([1, 2, 3])}{more})",
        f"{n}.squeeze({i})",
        f"{n}.squeeze()",
        f"{n}.flatten({i}, {j})",
        f"{n}.flatten({i})",
        f"torch.flatten({n}, {i})",
        f"{n}.unflatten({i}, ({pick([2, -1, 1])}, -1))" if i < r else n,
        f"{n}.unflatten({i}, (2, {n}.shape[{i}] // 2))",
        f"{n}.expand_as({n})",
        f"{n}.reshape({target_sizes(of, numbers, pick)})",
        f"{n}.expand({pick([1, 2])}, {', '.join(['-1'] * r)})",
        f"{n}.repeat({pick([1, 2])}{', 1' * (r - 1)})",
        f"{n}.detach()",
        f"{n}.broadcast_to(2, {', '.join(f'{n}.shape[{d}]' for d in range(r))})",
        f"{n}.data",
        f"{n}.movedim(0, -1)",
        f"{n}.as_strided({n}.shape, {n}.stride())",
        f"{n}.view_as({n})",
        f"{n}.real",
        f"torch.atleast_3d({n})",
        f"{n}.ravel()",
    ]


def _pointwise(n: str, r: int, of: Sample, others: Any, numbers: Numbers, pick: Pick) -> list[str]:
    return [
        f"torch.relu({n})",
        f"{n} + 1",
        f"{n} * {n}",
        f"F.gelu({n})",
        f"-{n}",
        f"{n}.sigmoid()",
        f"{n}.float()",
        f"{n}.to(torch.float64)",
        f"{n}.half().float()",
        f"{n} > 0.5",
        f"torch.where({n} > 0.5, {n}, 0.0)",
        f"{n}.masked_fill({n} > 0.5, 0.0)",
        f"F.dropout({n}, 0.0)",
        f"{n}.clamp(min=0)",
        f"2 - {n}",
        f"{n} / 2",
        f"{n}.exp()",
        f"torch.zeros_like({n})",
        f"{n}.long()",
        f"F.relu({n}, inplace=True)",
        f"{n}.clone()",
        f"{n}.to({n}.dtype)",
        f"{n} @ 1" if r == 0 else f"{n}.pow(2)",
        f"torch.empty_like({n}).fill_(1)",
        f"torch.rand_like({n})",
    ]


def _copies(n: str, r: int, of: Sample, others: Any, numbers: Numbers, pick: Pick) -> list[str]:
    found = [
        f"{n}.contiguous()",
        f"{n}.clone()",
        f"{n}.clone(memory_format=torch.contiguous_format)",
        f"{n}.clone(memory_format=torch.preserve_format)",
        f"torch.zeros({n}.shape)",
        f"torch.ones(*{n}.shape)",
        f"{n}.new_zeros({n}.size())",
        f"torch.tensor({n}.tolist())",
        f"{n}.new_empty({n}.shape).copy_({n})",
        f"{n}.type(torch.float64)",
        f"{n}.cpu()",
        f"{n}.to('cpu')",
        f"torch.empty_strided({n}.shape, {n}.stride()).copy_({n})",
        f"torch.from_numpy({n}.numpy())",
        f"torch.as_tensor({n})",
        f"torch.tensor({n})",
    ]
    if r == 4:
        found += [f"{n}.contiguous(memory_format=torch.channels_last)", f"{n}.to(memory_format=torch.channels_last)"]
        found += [f"torch.zeros({n}.shape).to(memory_format=torch.channels_last)"]
        found += [f"torch.empty_like({n}, memory_format=torch.contiguous_format).copy_({n})"]
    return found


def _reductions(n: str, r: int, of: Sample, others: Any, numbers: Numbers, pick: Pick) -> list[str]:
    i = _dim(r, pick)
    keep = pick(["", ", keepdim=True"])
    return [
        f"{n}.sum({i}{keep})",
        f"{n}.mean(dim={i}{keep})",
        f"{n}.max({i}{keep})[0]",
        f"{n}.max({i}{keep}).values",
        f"{n}.argmax({i}{keep})",
        f"torch.amax({n}, {i}{keep})",
        f"{n}.softmax({i})",
        f"F.softmax({n}, dim={i})",
        f"F.log_softmax({n}, {i})",
        f"{n}.cumsum({i})",
        f"{n}.sort({i})[0]",
        f"{n}.topk(2, {i})[0]",
        f"{n}.topk(1, dim={i}).indices",
        f"{n}.norm(dim={i}{keep})",
        f"F.normalize({n}, dim={i})",
        f"{n}.flip({i})",
        f"{n}.roll(1, {i})",
        f"{n}.std({i}{keep})",
        f"{n}.var(dim={i}, keepdim=True)",
        f"{n}.median({i}{keep})[0]",
        f"{n}.argsort({i})",
        f"{n}.sum(dim=({i},){keep})",
        f"{n}.logsumexp({i}{keep})",
        f"{n}.any({i}{keep})",
        f"{n}.prod({i}{keep})",
        f"{n}.repeat_interleave(2, {i})",
        f"F.layer_norm({n}, {n}.shape[-1:])",
        f"{n}.kthvalue(1, {i}{keep})[0]",
        f"{n}.cummax({i})[0]",
        f"{n}.nonzero()",
        f"F.one_hot(({n} > 0.5).long(), 2)",
        f"{n}.tril()" if r >= 2 else f"{n}.cumprod(0)",
        f"torch.unique({n})",
        f"{n}.diff(dim={i})",
    ]


def _joins(n: str, r: int, of: Sample, others: Any, numbers: Numbers, pick: Pick) -> list[str]:
    i, k = _dim(r, pick), pick(range(r + 1))
    turned = f"{n}.transpose(0, 1).contiguous().transpose(0, 1)" if r >= 2 else f"{n}[:]"
    return [
        f"torch.cat([{n}, {n}], {i})",
        f"torch.cat(({n}, {n} + 1), dim={i})",
        f"torch.stack([{n}, {n}], {k})",
        f"torch.stack(({n}, {n}), dim={k})",
        f"torch.cat([{turned}, {turned}], {i})",
        f"torch.cat([{n}, {turned}], {i})",
        f"torch.cat([{n}], {i})",
        f"torch.stack([{turned}, {turned}], {k})",
        f"torch.cat({n}.chunk(2, {i}), {i})",
        f"{n} + {turned}",
        f"{turned} * {n}",
        f"F.pad({n}, (1, {pick([1, 0])}))",
        f"F.pad({n}, (0, 0{', 1, 0' if r >= 2 else ''}), value=1.0)",
        f"torch.hstack([{n}, {n}])",
        f"torch.vstack([{n}, {n}])",
    ]


def _matmul(n: str, r: int, of: Sample, others: Any, numbers: Numbers, pick: Pick) -> list[str]:
    letters = "abcd"[: r - 2]
    found = [
        f"{n} @ {n}.transpose(-1, -2)",
        f"torch.matmul({n}.mT, {n})",
        f"{n} @ torch.ones({n}.shape[-1], 4)",
        f"F.linear({n}, torch.ones(4, {n}.shape[-1]))",
        f"torch.einsum('...ij,...kj->...ik', {n}, {n})",
        f"torch.einsum('{letters}ij,{letters}kj->{letters}ki', {n}, {n})",
        f"torch.einsum('{letters}ij,{letters}ij->{letters}j', {n}, {n})",
        f"torch.einsum('{letters}ij->ij{letters}', {n})",
        f"F.scaled_dot_product_attention({n}, {n}, {n})" if r >= 3 else f"{n}.mm({n}.t())",
        f"torch.tensordot({n}, {n}, dims=([0], [0]))" if r == 2 else f"{n}.matmul({n}.mT)",
        f"torch.cdist({n}, {n})",
        f"({n} @ {n}.mT).softmax(-1) @ {n}",
        f"{n} @ {n}[..., 0, :].unsqueeze(-1)",
        f"{n} @ torch.ones({n}.shape[-1])",
    ]
    if r == 3:
        found += [
            f"torch.bmm({n}, {n}.transpose(1, 2))",
            f"{n}.bmm({n}.mT)",
            f"torch.baddbmm({n} @ {n}.mT, {n}, {n}.mT)",
        ]
    if r == 2:
        found += [f"torch.outer({n}[0], {n}[0])", f"torch.mm({n}, {n}.t())", f"torch.addmm({n} @ {n}.T, {n}, {n}.T)"]
        found += [f"torch.meshgrid({n}[0], {n}[0], indexing='ij')[{pick([0, 1])}]"]
    return found


def _spatial(n: str, r: int, of: Sample, others: Any, numbers: Numbers, pick: Pick) -> list[str]:
    if r == 3:
        return [
            f"F.max_pool1d({n}, 2)",
            f"F.conv1d({n}, torch.ones(4, {n}.shape[1], 1))",
            f"F.avg_pool1d({n}, 2)",
            f"F.interpolate({n}, scale_factor=2)",
            f"F.adaptive_avg_pool1d({n}, 2)",
            f"F.batch_norm({n}, None, None, training=True)",
        ]
    return [
        f"F.max_pool2d({n}, 2)",
        f"F.avg_pool2d({n}, 2)",
        f"F.conv2d({n}, torch.ones(4, {n}.shape[1], 1, 1))",
        f"F.conv2d({n}, torch.ones({n}.shape[1], 1, 3, 3), padding=1, groups={n}.shape[1])",
        f"F.interpolate({n}, scale_factor=2)",
        f"F.interpolate({n}, size=(4, 4), mode='bilinear')",
        f"F.adaptive_avg_pool2d({n}, {pick([1, '(2, 2)', '(1, 1)'])})",
        f"F.pixel_shuffle({n}, 2)",
        f"F.pixel_unshuffle({n}, 2)",
        f"F.unfold({n}, 2)",
        f"F.batch_norm({n}, None, None, training=True)",
        f"F.group_norm({n}, 2)",
        f"F.instance_norm({n})",
        f"F.pad({n}, (1, 1, 1, 1), mode='reflect')",
        f"F.grid_sample({n}, torch.zeros({n}.shape[0], 3, 3, 2))",
        f"F.channel_shuffle({n}, 2)",
        f"F.dropout2d({n}, 0.0)",
        f"F.conv_transpose2d({n}, torch.ones({n}.shape[1], 4, 2, 2), stride=2)",
        f"torch.fft.fft2({n}).real",
    ]


def _pairs(n: str, r: int, of: Sample, others: Mapping[str, Sample], numbers: Numbers, pick: Pick) -> list[str]:
    """Together with another tensor, of the same sizes where there is one."""
    same = [s for s in others.values() if s.first.shape == of.first.shape and s.second.shape == of.second.shape]
    m = pick(same or list(others.values())).name
    i = _dim(r, pick) if r else 0
    return [
        f"{n} + {m}",
        f"{m} * {n}",
        f"torch.where({n} > 0.5, {n}, {m})",
        f"torch.cat([{n}, {m}], {i})",
        f"torch.stack([{n}, {m}])",
        f"torch.maximum({n}, {m})",
        f"{n} @ {m}",
        f"{n}.expand_as({m})",
        f"{n}.reshape_as({m})",
        f"{n}.to({m})",
        f"{n}.type_as({m})",
        f"torch.lerp({n}, {m}, 0.5)",
        f"{n} - {m}.mean(-1, keepdim=True)",
        f"torch.add({n}, {m}, alpha=2)",
        f"{n}.copy_({m})",
        f"torch.broadcast_tensors({n}, {m})[{pick([0, 1])}]",
        f"torch.addcmul({n}, {m}, {m})",
    ]


def target_sizes(of: Sample, numbers: Numbers, pick: Pick) -> str:
    """Sizes with as many elements, spelled in one of many ways."""
    n, r = of.name, of.rank
    if r == 0:
        return pick(["-1", "1", "1, 1", "()"])  # type: ignore[no-any-return]
    whole = [
        "-1",
        f"{sized(of, 0, numbers, pick)}, -1",
        f"-1, {sized(of, r - 1, numbers, pick)}",
        f"*{n}.shape[:-1], -1",
        f"*{n}.shape[:{r // 2}], -1",
        f"{n}.shape",
        f"{n}.shape[:-1] + (-1,)",
        f"({sized(of, 0, numbers, pick)}, -1)",
        f"[-1, {sized(of, r - 1, numbers, pick)}]",
        f"{n}.shape[0], *{n}.shape[1:]",
        f"torch.Size([{n}.numel()])",
        f"{n}.size()",
        f"{n}.numel()",
        f"1, {n}.shape[0], -1",
        f"-1, 1, {n}.shape[-1]",
    ]
    return pick([_grouped, _grouped, _grouped, lambda *_: pick(whole)])(of, numbers, pick)  # type: ignore[no-any-return]


def _grouped(of: Sample, numbers: Numbers, pick: Pick) -> str:
    """Adjacent dims merged, kept or split."""
    r = of.rank
    cuts = [0, *[i for i in range(1, r) if pick([True, False])], r]
    parts: list[str] = []
    for start, stop in pairwise(cuts):
        sizes = [sized(of, i, numbers, pick) for i in range(start, stop)]
        merged = " * ".join(sizes)
        pairs = [of.size(i) for i in range(start, stop)]
        products = tuple(_product(pair[j] for pair in pairs) for j in (0, 1))
        named = [name for name, pair in numbers.items() if pair == products]
        form = pick(["merge", "merge", "split", "unit"])
        if form == "split" and all(p % 2 == 0 for p in products):
            halved = f"{merged} // 2" if stop - start == 1 else f"({merged}) // 2"
            parts += pick([["2", halved], [halved, "2"]])
        elif form == "unit":
            parts += pick([["1", merged], [merged, "1"]])
        else:
            parts.append(pick([merged, *named]))
    if pick([False, True]):
        parts[pick(range(len(parts)))] = "-1"
    spelled = ", ".join(parts)
    return pick([spelled, spelled, f"({spelled},)", f"[{spelled}]"])  # type: ignore[no-any-return]


def _product(numbers: Any) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def target(of: Sample, others: Mapping[str, Sample], numbers: Numbers, pick: Pick) -> str:
    """A view of the tensor."""
    n = of.name
    as_large = [s.name for s in others.values() if _is_as_large(s, of)]
    sizes = target_sizes(of, numbers, pick)
    forms = [f"{n}.view({sizes})"] * 4 + [f"torch.Tensor.view({n}, {sizes})"]
    if sizes[:1] in "([" and sizes[-1:] in ")]":
        forms.append(f"{n}.view(size={sizes})")
    if as_large:
        other = pick(as_large)
        forms += [f"{n}.view_as({other})", f"{n}.view({other}.shape)", f"{n}.view(*{other}.size())"]
    forms.append(f"{n}.view({sizes}).view(-1)")
    return pick(forms)  # type: ignore[no-any-return]


def _is_as_large(one: Sample, other: Sample) -> bool:
    return one.first.numel() == other.first.numel() and one.second.numel() == other.second.numel()
