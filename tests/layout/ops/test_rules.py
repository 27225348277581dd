"""Every example of every op rule on real torch: what the rule claims of the result's sizes and strides must hold."""

from __future__ import annotations

import ast
import random
import re
from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from codemod.layout.frame import Frame
from codemod.layout.interpreter import FileInterpreter
from codemod.layout.layout import Dim, Layout, World
from codemod.layout.ops.rule import rules
from codemod.layout.program import survey
from codemod.layout.project import Project
from codemod.layout.size import ONE, Answer, Size
from codemod.layout.state import State
from codemod.layout.value import Choice, Mapping, Several, Tensor, Value

SEEDS = range(10)
IMPORTS = (
    "import torch\nimport numpy\nimport einops\nimport math\nimport torch.nn.functional as F\nfrom torch import nn\n"
)
SHAPES = {"v": (6,), "m": (4, 6), "x": (3, 4, 6), "y": (3, 4, 6), "z": (3, 4, 6), "image": (2, 4, 6, 8)}
EXAMPLES = sorted({(rule.names[0], example) for rule in rules().values() for example in rule.examples})


def strided(shape: tuple[int, ...], chance: random.Random) -> torch.Tensor:
    """Contiguous, permuted, cut out of a larger tensor, stepped or repeated."""
    order = list(range(len(shape)))
    kind = chance.choice(["plain", "plain", "permuted", "permuted", "cut", "stepped", "repeated"])
    if kind == "permuted":
        chance.shuffle(order)
    base = torch.randn([shape[i] for i in order])
    found = base.permute([order.index(i) for i in range(len(shape))])
    dim = chance.randrange(len(shape))
    if kind == "cut":
        return torch.cat([found, found], dim).narrow(dim, 0, shape[dim])
    if kind == "stepped":
        return torch.stack([found, found], dim + 1).flatten(dim, dim + 1)[
            (slice(None),) * dim + (slice(None, None, 2),)
        ]
    if kind == "repeated":
        return found.narrow(dim, 0, 1).expand(shape)
    return found


def inputs(seed: int) -> dict[str, torch.Tensor]:
    chance = random.Random(seed)
    torch.manual_seed(seed)
    found = {name: strided(shape, chance) for name, shape in SHAPES.items()}
    found["volume"] = torch.randn(2, 3, 4, 5, 6)
    found["mask"] = strided(SHAPES["x"], chance) > 0
    found["ids"] = torch.randint(0, 3, (4,))
    found["ids3"] = torch.randint(0, 3, (2, 3, 2))
    return found


def abstract(tensor: torch.Tensor) -> Tensor:
    dims = tuple(Dim(Size.of(n), Size.of(s)) for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return Tensor(Layout(dims), Layout(dims))


def value_of(example: str, given: dict[str, torch.Tensor]) -> Value:
    tree = ast.parse(f"{IMPORTS}{example}\n")
    program = survey(tree)
    interpreter = FileInterpreter(program, Project("."))
    state = State({name: abstract(tensor) for name, tensor in given.items()})
    frame = Frame(program, interpreter.notebook, interpreter, state, "t:", "t")
    statement = tree.body[-1]
    assert isinstance(statement, ast.Expr)
    return interpreter.evaluate(statement.value, frame)


def wrong(claimed: Layout, found: torch.Tensor) -> list[str]:
    """What is claimed and does not hold; sizes and boundaries that are left open claim nothing."""
    if claimed.rank is None:
        return ["not contiguous"] if claimed.is_contiguous and not found.is_contiguous() else []
    if claimed.rank != found.dim():
        return [f"rank {claimed.rank} of {found.dim()}"]
    sizes = [size.constant for size in claimed.sizes]
    faults = [f"size {s} of {n}" for s, n in zip(sizes, found.shape, strict=True) if s is not None and s != n]
    if claimed.is_contiguous and not found.is_contiguous():
        faults.append("not contiguous")
    if any(n in (0, 1) for n in found.shape) or ONE in claimed.sizes:
        return faults
    for i, answer in enumerate(claimed.boundaries):
        merges = found.stride(i) == found.shape[i + 1] * found.stride(i + 1)
        if (answer is Answer.YES and not merges) or (answer is Answer.NO and merges):
            faults.append(f"boundary {i} is said to be {answer.value}")
    return faults


def faults(value: Value, found: Any) -> list[str]:
    match value:
        case Choice(options):
            return min((faults(option, found) for option, _ in options), key=len)
        case Tensor() if isinstance(found, torch.Tensor):
            return [f"{world.value}: {text}" for world in World for text in wrong(value.layout(world), found)]
        case Several(items) if isinstance(found, tuple | list):
            return [text for item, part in zip(items, found, strict=False) for text in faults(item, part)]
        case Mapping(items) if isinstance(found, tuple):
            return [text for (_, item), part in zip(items, found, strict=False) for text in faults(item, part)]
        case _:
            return []


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[f"{name} {example}" for name, example in EXAMPLES])
@pytest.mark.filterwarnings("ignore")
def test_what_a_rule_claims_holds(name: str, example: str) -> None:
    if "einops" in example:
        pytest.importorskip("einops")
    ran = 0
    for seed in SEEDS:
        given = inputs(seed)
        claimed = value_of(example, given)
        names = {**given, "torch": torch, "F": F, "nn": nn, "numpy": numpy, **_optional()}
        try:
            found = eval(example, names)
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue
        ran += 1
        assert not faults(claimed, found), (
            seed,
            {n: t.stride() for n, t in given.items()},
            getattr(found, "shape", None),
        )
    assert ran, "the example never runs"


def _optional() -> dict[str, Any]:
    try:
        import einops.layers.torch
    except ImportError:
        return {}
    return {"einops": einops}


@pytest.mark.parametrize("name", [name for name in rules() if re.fullmatch(r"(torch)?\.\w+", name)])
def test_a_rule_takes_its_arguments_where_torch_does(name: str) -> None:
    """One rule serves several ops: `x.gather(dim, index)` and `x.take_along_dim(indices, dim)` need two."""
    asked = [p.name for p in rules()[name].parameters if p.kind != "World" and not p.is_keyword_only and not p.is_rest]
    taken = _SCHEMAS.get(name.rpartition(".")[2], [])
    assert not taken or any(_agree(asked, names) for names in taken), taken


def _agree(asked: list[str], taken: list[str]) -> bool:
    return all(taken.index(name) == i for i, name in enumerate(asked) if name in taken)


def _schemas() -> dict[str, list[list[str]]]:
    """Names of the arguments of every overload of every aten op, by its name."""
    found: dict[str, list[list[str]]] = {}
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        if namespace == "aten":
            names = ["input" if argument.name == "self" else argument.name for argument in schema.arguments]
            found.setdefault(name, []).append(names)
    return found


_SCHEMAS = _schemas()
