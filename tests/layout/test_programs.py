"""Random programs on real tensors: what is said to be safe never fails, and what is said to fail does.

Sizes of 1 are left out, but for those that a program makes itself: a tensor may have any stride there, and a few ops
take their memory order from it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
import torch

from tests.layout.verdicts import rulings

SHAPES = [(2, 4, 6, 8), (4, 2, 8, 6), (2, 3, 5, 7), (6, 4, 2, 2), (3, 2, 2, 5)]


def statement(name: str, rank: int, chance: random.Random) -> tuple[str, int]:
    """An expression of a tensor of that rank, and the rank of its result."""
    i, j = chance.randrange(rank), chance.randrange(rank)
    skipped = ":, " * i
    kept = chance.randrange(rank)
    front = "".join(f"{name}.shape[{d}], " for d in range(kept))
    order = chance.sample(range(rank), rank)
    return chance.choice(
        [
            (f"{name}.transpose({i}, {j})", rank),
            (f"{name}.transpose(-1, -2)", rank),
            (f"{name}.permute({', '.join(map(str, order))})", rank),
            (f"{name}[{skipped}1:]", rank),
            (f"{name}[{skipped}::2]", rank),
            (f"{name}[{skipped}0]", rank - 1),
            (f"{name}.narrow({i}, 0, 1)", rank),
            (f"{name}.contiguous()", rank),
            (f"torch.relu({name})", rank),
            (f"{name} + {name}", rank),
            (f"torch.cat([{name}, {name}], {i})", rank),
            (f"torch.stack([{name}, {name}], {i})", rank + 1),
            (f"{name}.unsqueeze({i})", rank + 1),
            (f"{name}.unsqueeze({i}).expand({'-1, ' * i}3, {'-1, ' * (rank - i)})", rank + 1),
            (f"{name}.flatten({min(i, j)}, {max(i, j)})", rank - abs(i - j)),
            (f"{name}.chunk(2, {i})[0]", rank),
            (f"{name}.split(2, {i})[0]", rank),
            (f"{name}.unbind({i})[0]", rank - 1),
            (f"{name}.softmax({i})", rank),
            (f"{name}.sum({i})", rank - 1),
            (f"{name}.max({i}, keepdim=True)[0]", rank),
            (f"F.pad({name}, (1, 1))", rank),
            (f"{name}.clone().transpose_({i}, {j})", rank),
            (f"{name}.reshape({front}-1)", kept + 1),
            (f"{name}.view({front}-1)", kept + 1),
            (f"{name}.view({name}.shape)", rank),
        ]
    )


def program(seed: int) -> str:
    chance = random.Random(seed)
    lines, ranks = ["    b, c, h, w = x.shape"], {"x": 4}
    for number in range(chance.randint(2, 6)):
        name = chance.choice(list(ranks)[-3:])
        if ranks[name] < 2:
            continue
        expression, rank = statement(name, ranks[name], chance)
        lines.append(f"    v{number} = {expression}")
        ranks[f"v{number}"] = rank
    last = list(ranks)[-1]
    kept = chance.randrange(max(ranks[last], 1))
    sizes = "".join(f"{last}.shape[{d}], " for d in range(kept))
    lines.append(f"    return {last}.view({sizes}-1)")
    return "import torch\nimport torch.nn.functional as F\ndef f(x):\n" + "\n".join(lines) + "\n"


def layouts(shape: tuple[int, ...]) -> Iterator[torch.Tensor]:
    """Contiguous first, then what a caller may bring."""
    b, c, h, w = shape
    yield torch.randn(shape)
    yield torch.randn(shape).to(memory_format=torch.channels_last)
    yield torch.randn(w, h, c, b).permute(3, 2, 1, 0)
    yield torch.randn(b, c, h, 2 * w)[..., ::2]
    yield torch.randn(b, c + 2, h, w)[:, 1:-1]


def refused(text: str) -> tuple[Counter[int], set[int], int]:
    """By line how often torch refused a view; the lines for a contiguous input; how many of those went through."""
    scope: dict[str, object] = {}
    exec(compile(text, "program", "exec"), scope)
    function = scope["f"]
    assert callable(function)
    lines, by_default, passed = Counter[int](), set[int](), 0
    for shape in SHAPES:
        for number, x in enumerate(layouts(shape)):
            try:
                function(x)
                passed += number == 0
            except (RuntimeError, IndexError) as error:
                if "view size is not compatible" not in str(error):
                    continue
                traceback = error.__traceback__
                while traceback is not None and traceback.tb_next is not None:
                    traceback = traceback.tb_next
                assert traceback is not None
                lines[traceback.tb_lineno] += 1
                if number == 0:
                    by_default.add(traceback.tb_lineno)
    return lines, by_default, passed


@pytest.mark.parametrize("seeds", [range(start, start + 50) for start in range(0, 400, 50)], ids=str)
def test_verdicts_hold_when_the_program_runs(seeds: range) -> None:
    told = Counter[str]()
    for seed in seeds:
        text = program(seed)
        lines, by_default, passed = refused(text)
        for line, ruling in rulings(text).items():
            told[ruling.verdict.value] += 1
            assert ruling.verdict.value != "safe" or not lines[line], f"{text}\nline {line} is not safe"
            if ruling.verdict.value == "failing" and passed == len(SHAPES):
                assert line in by_default, f"{text}\nline {line} does not fail"
    assert told["safe"] and told["failing"], "the programs show nothing"
