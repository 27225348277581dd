"""Classes made from a torch.nn module do what it does, where nothing of theirs comes before it."""

from __future__ import annotations

import pytest

from tests.layout.verdicts import check

PROGRAMS = {
    "a method that goes on to the module": """
class Norm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.float())
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = Norm(width)
        self.plain = nn.LayerNorm(width)
    def forward(self, x: torch.Tensor):
        x = torch.rand(2, 3, 4).transpose(1, 2)
        self.plain(x).view(-1)  # safe
        return self.norm(x).view(-1)  # safe
""",
    "super with arguments, and keywords": """
class Heads(nn.Linear):
    def forward(self, x):
        return super(Heads, self).forward(input=x)
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.heads = Heads(width, width)
    def forward(self, x):
        y = self.heads(torch.rand(5, 7, 4))
        y.view(-1)  # safe
        return y.transpose(1, 2).view(-1)  # failing
""",
    "a class that only inherits": """
class Heads(nn.Linear):
    def reset_parameters(self):
        nn.init.zeros_(self.weight)
class Narrow(Heads):
    pass
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = Narrow(4, 6)
    def forward(self, x):
        return self.heads(torch.rand(5, 7, 4)).view(35, 6)  # safe
""",
    "channels_last reaches a convolution of one's own": """
class Same(nn.Conv2d):
    def forward(self, x):
        return super().forward(F.pad(x, (1, 1, 1, 1)))
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = Same(3, 6, 3)
    def forward(self, x: torch.Tensor):
        return self.conv(x).view(2, -1)  # layout-dependent
""",
    "what the module's forward goes through is replaced": """
class Odd(nn.Conv1d):
    def _conv_forward(self, input, weight, bias):
        return super()._conv_forward(input, weight, bias).transpose(1, 2)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = Odd(3, 6, 3)
    def forward(self):
        return self.conv(torch.rand(2, 3, 9)).view(-1)  # unknown
""",
    "a method of the class before the module's": """
class Turned(nn.Linear):
    def __call__(self, x):
        return super().__call__(x).transpose(1, 2)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.turned = Turned(4, 6)
    def forward(self):
        return self.turned(torch.rand(2, 3, 4)).view(-1)  # unknown
""",
    "a method of a base between": """
class Turned(nn.Linear):
    def forward(self, x):
        return super().forward(x).transpose(1, 2)
class Block(Turned):
    def forward(self):
        return super().forward(torch.rand(2, 3, 4)).view(-1)  # failing
""",
    "another base may come first": """
from elsewhere import Turning
class Both(Turning, nn.Linear):
    def forward(self, x):
        return super().forward(x)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.both = Both(4, 6)
    def forward(self):
        return self.both(torch.rand(2, 3, 4)).view(-1)  # unknown
""",
    "what the constructor was told is not known": """
class Reader(nn.LSTM):
    def __init__(self, width, **more):
        super().__init__(width, width, **more)
    def forward(self, x):
        y, _ = super().forward(x)
        return y.view(-1)  # unknown
""",
    "what the constructor was told is known": """
class Reader(nn.LSTM):
    pass
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Reader(4, 4, batch_first=True), Reader(4, 4)
    def forward(self):
        y, _ = self.first(torch.rand(2, 3, 4))
        z, _ = self.second(torch.rand(2, 3, 4))
        z.view(-1)  # safe
        return y.view(-1)  # failing
""",
    "one that may work in place writes what it is given": """
class Act(nn.ReLU):
    def forward(self, x):
        return super().forward(x)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = Act(inplace=True)
    def forward(self, x):
        x = torch.rand(3, 4).t()
        self.act(x.view(-1))  # written-through
        return x
""",
}


BASES = """
class Base:
    def heads(self, x):
        return x.transpose(1, 2)
    def fill(self, x):
        x.fill_(1.0)
    @property
    def table(self):
        return torch.rand(3, 4).t()
"""

METHODS = {
    "the next of the bases": """
class Middle(Base):
    pass
class Own(Middle):
    def heads(self, x):
        y = super().heads(torch.rand(2, 3, 4))
        y.view(-1)  # failing
        return y.reshape(-1)
    def show(self):
        x = torch.rand(2, 3, 4)
        self.heads(x).view(-1)  # safe
        super().heads(x).view(-1)  # failing
        super(Own, self).heads(x).view(-1)  # failing
        return super().table.view(-1)  # failing
""",
    "what it writes": """
class Own(Base):
    def show(self):
        x = torch.rand(3, 4).t()
        super().fill(x.view(-1))  # written-through
        return x
""",
    "of another class than that of the method": """
class Middle(Base):
    def heads(self, x):
        return x
class Own(Middle):
    def heads(self, x):
        return super(Middle, self).heads(torch.rand(2, 3, 4)).view(-1)  # unknown
""",
    "a base that is not followed may come first": """
from elsewhere import Mixin
class Own(Mixin, Base):
    def show(self):
        return super().heads(torch.rand(2, 3, 4)).view(-1)  # unknown
""",
    "a subclass puts another class between": """
class Flat(Base):
    def heads(self, x):
        return x
class Own(Base):
    def show(self):
        return super().heads(torch.rand(2, 3, 4)).view(-1)  # unknown
class Both(Own, Flat):
    pass
""",
    "what the class binds to the name": """
class Middle(Base):
    heads = torch.relu
class Own(Middle):
    def show(self):
        return super().heads(torch.rand(2, 3, 4)).view(-1)  # unknown
""",
    "a method that goes on to itself": """
class Loop(Base):
    def heads(self, x):
        return super().heads(self.heads(x)).view(-1)  # unknown
""",
}


@pytest.mark.parametrize("program", METHODS.values(), ids=METHODS.keys())
def test_methods_of_bases_are_followed(program: str) -> None:
    check(BASES + program)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_verdicts_are_as_claimed(program: str) -> None:
    check(program)
