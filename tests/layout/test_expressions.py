"""Tuples that are put together, `or`, and what a test shows of a value's class."""

from __future__ import annotations

import pytest

from tests.layout.verdicts import check

TUPLES = {
    "the first element of a tuple to which more is added": """
def f(x: torch.Tensor, outputs):
    found = (x.contiguous(),) + outputs[1:]
    found[0].view(-1)  # safe
    first, *rest = found
    first.view(-1)  # safe
    rest[0].view(-1)  # unknown
    found[1].view(-1)  # unknown
    found[-1].view(-1)  # unknown
    for each in found:
        each.view(-1)  # unknown
    more = (x.t(),) + found
    more[1].view(-1)  # safe
    more[0].view(-1)  # failing
    more = found + (x.t(),)
    more[0].view(-1)  # safe
    more[1:][0].view(-1)  # unknown
    found += (x.t(),)
    return found[0].view(-1)  # safe
""",
    "a list is not one: what is inserted moves all of it": """
def f(x: torch.Tensor, outputs):
    found = [x.contiguous()] + outputs[1:]
    found.insert(0, x.t())
    return found[0].view(-1)  # unknown
""",
    "a tuple that differs by path": """
def f(x: torch.Tensor, y: torch.Tensor, more):
    x, y = x.contiguous(), y.contiguous()
    found = (x, y) if more else (x,)
    hidden = (y,) + found[1:]
    hidden[0].view(-1)  # safe
    turned = (torch.rand(2, 3).t(),) if more else (y, y)
    hidden = (y,) + turned
    hidden[0].view(-1)  # safe
    return hidden[1].view(-1)  # failing
""",
    "what the rest holds may be written": """
def f(x: torch.Tensor, more):
    y = x.t().view(-1)  # written-through
    found = (x,) + more + (y,)
    first, *rest = found
    rest[-1].add_(1)
    return found
""",
}


@pytest.mark.parametrize("program", TUPLES.values(), ids=TUPLES.keys())
def test_tuples_are_put_together(program: str) -> None:
    check(program)


ALTERNATIVES = {
    "one size or the other, but the same one everywhere": """
class Mlp(nn.Module):
    def __init__(self, width, hidden=None):
        super().__init__()
        hidden = hidden or width
        self.first = nn.Linear(width, hidden)
    def forward(self, x, hidden, size):
        if hidden:
            return x
        x = self.first(x)
        b, n, c = x.shape
        return x.transpose(1, 2).view(b, c, size[0], size[1])  # safe
""",
    "a test of the constructor says nothing of an argument of that name": """
class Mlp(nn.Module):
    def __init__(self, width, hidden=None):
        super().__init__()
        self.first = nn.Linear(width, hidden or 7)
    def forward(self, x: torch.Tensor, hidden):
        y = self.first(x).contiguous()
        if hidden:
            return y.view(-1, 7)  # safe
        return y.view(-1)  # safe
""",
}


@pytest.mark.parametrize("program", ALTERNATIVES.values(), ids=ALTERNATIVES.keys())
def test_alternatives_go_together(program: str) -> None:
    check(program)


KINDS = {
    "an object of a class of the file": """
import math
class Attention(nn.Module):
    def __init__(self, heads: int, table: torch.Tensor):
        super().__init__()
        self.heads = heads
        self.table = torch.zeros(heads, heads)
        self.turned = torch.zeros(2, 3).t()
def init(module):
    if isinstance(module, Attention):
        angles = torch.arange(module.heads).float() * (2.0 * math.pi / module.heads)
        grid = torch.stack([angles.cos(), angles.sin()], -1)
        grid = (grid / grid.abs().max(-1, keepdim=True)[0]).view(module.heads, 1, 1, 2)  # safe
        module.table.view(-1)  # safe
        module.turned.view(-1)  # failing
    elif isinstance(module, nn.Linear):
        module.turned.view(-1)  # layout-dependent
    else:
        module.table.view(-1)  # layout-dependent
""",
}


@pytest.mark.parametrize("program", KINDS.values(), ids=KINDS.keys())
def test_a_test_shows_the_class(program: str) -> None:
    check(program)


DATA = {
    "lists of numbers": """
def f(x: torch.Tensor, n, rows):
    b, t, c = x.shape
    y = torch.tensor([[1.0, 2.0], [3.0, n]])
    shifted = x.permute(0, 2, 1).contiguous() + torch.tensor([0.0, 128.0, 128.0])
    return shifted.view(-1)  # safe
""",
    "arrays in the order that numpy gives them": """
class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        side = np.array([0.7] + [1] * 7)
        self.scale = nn.Parameter(torch.from_numpy(np.outer(side, side) * 0.25).float())
        self.turned = nn.Parameter(torch.from_numpy(np.array([[1, 2], [3, 4]]).T))
        self.by_columns = torch.from_numpy(np.array([[1, 2], [3, 4]], order="F"))
        self.halves = torch.from_numpy(0.5 * np.transpose(np.zeros((2, 3, 4)), (1, 0, 2)))
    def forward(self):
        self.scale.view(-1)  # safe
        self.turned.view(-1)  # failing
        self.by_columns.view(-1)  # unknown
        return self.halves.view(-1)  # failing
""",
    "a list that may be empty": """
def f(numbers):
    found = []
    for number in numbers:
        found.append(int(number))
    return torch.from_numpy(np.array(found)).view(-1)  # safe
""",
    "the larger of two numbers is a number": """
def f(x: torch.Tensor, n: int, m: int):
    y = torch.arange(n) * (1.0 / max(n - 1, m))
    return y.view(1, 1, -1)  # safe
""",
}


@pytest.mark.parametrize("program", DATA.values(), ids=DATA.keys())
def test_data_has_the_sizes_of_its_lists(program: str) -> None:
    check(program)


SPREAD = {
    "a shape that differs by path": """
class Block(nn.Module):
    def __init__(self, width, n: int = 1):
        super().__init__()
        shape = (width,) if n == 1 else (n, width)
        self.query = nn.Parameter(torch.zeros(*shape, dtype=torch.float32))
    def forward(self, x: torch.Tensor, is_flat):
        b, t, c = x.shape
        shape = (b, -1) if is_flat else (b, t, 2, -1)
        x.contiguous().view(*shape)  # safe
        x.contiguous().transpose(1, 2).view(*shape)  # failing
        split = (t, b, -1) if is_flat else (t, b, 2, -1)
        x.contiguous().transpose(0, 1).view(*split)  # safe
        return self.query.view(-1, self.query.shape[-1])  # safe
""",
    "a function that is given one of several lists": """
def turned(x, y=None):
    return x.t() if y is None else y
def f(is_pair):
    given = (torch.rand(2, 3), torch.rand(2, 3)) if is_pair else (torch.rand(2, 3),)
    turned(*given).view(-1)  # layout-dependent
    one = (torch.rand(2, 3),) if is_pair else (torch.rand(4, 3).contiguous(),)
    return torch.relu(*one).view(-1)  # safe
""",
}


@pytest.mark.parametrize("program", SPREAD.values(), ids=SPREAD.keys())
def test_each_of_several_lists_is_unpacked(program: str) -> None:
    check(program)
