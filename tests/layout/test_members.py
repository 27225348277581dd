"""What attributes are, wherever the class or its methods bind them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.layout.verdicts import check

BOUND_FROM_ITSELF = {
    "a buffer that is cut or grown": """
class Head(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Buffer(torch.zeros((1, width)))
    def resize(self, width):
        old = self.bias.shape[-1]
        if width <= old:
            new = self.bias[:, :width]
        else:
            new = torch.cat([self.bias, torch.zeros((1, width - old))], dim=1)
        self.bias = nn.Buffer(new)
    def forward(self, x: torch.Tensor):
        y = F.linear(x, torch.rand(7, 5)) + self.bias
        return y.view(-1, y.shape[-1])  # safe
    def show(self):
        return self.bias.view(-1)  # safe
""",
    "strides that grow with each call": """
class Table(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rows = torch.zeros(3, width)
    def turn(self):
        self.rows = self.rows.t()
    def forward(self):
        return self.rows.view(-1)  # unknown
""",
    "rows are cut off, columns are not": """
class Table(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rows = torch.zeros(3, width)
        self.columns = torch.zeros(3, width)
    def cut(self, n):
        self.rows = self.rows[:n]
    def narrow(self, n):
        self.columns = self.columns[:, :n]
    def forward(self):
        self.rows.view(-1)  # safe
        return self.columns.view(-1)  # unknown
""",
    "what a caller adds each time": """
class Table(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rows = torch.zeros(3, width)
    def fill(self, value):
        self.rows = value + self.rows
    def forward(self):
        return self.rows.view(-1)  # unknown
""",
    "a parameter keeps the strides of its data": """
class Table(nn.Module):
    def __init__(self, rows: torch.Tensor):
        super().__init__()
        self.rows = nn.Parameter(rows.permute(0, 1, 2))
        self.copied = nn.Parameter(rows.permute(0, 1, 2).contiguous())
    def forward(self):
        self.copied.view(-1)  # safe
        return self.rows.view(-1)  # layout-dependent
""",
    "a parameter of what a method of the class returns": """
class Table(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.index = nn.Buffer(self.indices(n))
        first, second = self.both(n)
        self.first, self.second = nn.Buffer(first), nn.Buffer(second)
    def indices(self, n):
        return torch.zeros(n, n)
    def both(self, n):
        x = torch.zeros(n, n)
        return x, x[:, 1:]
    def forward(self):
        self.index.view(-1)  # safe
        self.first.view(-1)  # safe
        return self.second.view(-1)  # failing
""",
}


@pytest.mark.parametrize("program", BOUND_FROM_ITSELF.values(), ids=BOUND_FROM_ITSELF.keys())
def test_verdicts_are_as_claimed(program: str) -> None:
    check(program)


VECTORS = [
    nn.Linear(4, 6),
    nn.Bilinear(4, 5, 6),
    *(kind(4, 6, 3) for kind in (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d)),
    *(kind(6) for kind in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)),
    nn.InstanceNorm2d(6, affine=True),
    nn.GroupNorm(2, 6),
]


@pytest.mark.parametrize("module", VECTORS, ids=lambda module: type(module).__name__)
def test_a_bias_has_one_dim(module: nn.Module) -> None:
    bias = module.bias
    assert isinstance(bias, torch.Tensor)
    if not isinstance(module, nn.Conv3d):
        module.to(memory_format=torch.channels_last)
    assert bias.view(1, -1, 1, 1).is_contiguous()
    name = type(module).__name__
    check(
        f"""
class Block(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.inner = nn.{name}(3, 6, 2)
    def forward(self):
        return self.inner.bias.view(1, -1, 1, 1)  # safe
"""
    )


@pytest.mark.parametrize("module", [nn.BatchNorm2d(6), nn.GroupNorm(2, 6), nn.PReLU(6)], ids=lambda m: type(m).__name__)
def test_the_weight_of_a_norm_has_one_dim(module: nn.Module) -> None:
    weight = module.weight
    assert isinstance(weight, torch.Tensor) and weight.dim() == 1
    check(
        f"""
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.{type(module).__name__}(6)
    def forward(self):
        return self.inner.weight.view(1, -1, 1, 1)  # safe
"""
    )


def test_a_norm_over_several_dims_has_a_bias_of_as_many() -> None:
    assert nn.LayerNorm((2, 3)).bias.dim() == 2
    check(
        """
class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.inner = nn.LayerNorm(sizes)
    def forward(self):
        return self.inner.bias.view(-1)  # layout-dependent
"""
    )


OBJECTS_OF_ONE_NAME = """
class Holder:
    def __init__(self, t):
        self.t = t
class A:
    def __init__(self):
        self.h = Holder(torch.zeros(3, 4))
    def forward(self):
        return self.h.t.view(-1)  # safe
class B:
    def __init__(self):
        self.h = Holder(torch.zeros(3, 4).t())
    def forward(self):
        return self.h.t.view(-1)  # failing
class C:
    def forward(self, h):
        self.h = Holder(torch.zeros(3, 4).t())
        return self.h.t.view(-1)  # failing
def f():
    h = Holder(torch.zeros(3, 4))
    h.t.view(-1)  # safe
    h = Holder(torch.zeros(3, 4).t())
    return h.t.view(-1)  # failing
"""


def test_objects_of_one_class_that_bear_one_name_are_not_mixed() -> None:
    check(OBJECTS_OF_ONE_NAME)
