import torch
from torch import nn


class LayerScale(nn.Module):
    def __init__(self, dim, init_values=1e-5, inplace=False, device=None):
        super().__init__()
        self.inplace = inplace
        self.gamma = nn.Parameter(torch.empty(dim))

    def forward(self, x):
        return x.mul_(self.gamma) if self.inplace else x * self.gamma


class LayerScale2(LayerScale):
    def forward(self, x):
        if self.inplace:
            return x.mul_(self.gamma)
        return x * self.gamma


class A(nn.Module):
    def __init__(self, dim, iv=None, device=None):
        super().__init__()
        dd = {"device": device}
        self.ls = LayerScale(dim, init_values=iv, **dd) if iv else nn.Identity()

    def forward(self, x):
        return self.ls(x.t().view(-1))  # failing


class B(nn.Module):
    def __init__(self, dim, iv=None):
        super().__init__()
        self.ls = LayerScale2(dim, init_values=iv)

    def forward(self, x):
        return self.ls(x.t().view(-1))  # failing


class C(nn.Module):
    def __init__(self, dim, iv=None):
        super().__init__()
        self.ls = LayerScale2(dim, init_values=iv, inplace=True)

    def forward(self, x):
        return self.ls(x.t().view(-1))  # written-through


class D(nn.Module):
    def __init__(self, dim, iv=None, inplace=False):
        super().__init__()
        self.ls = LayerScale2(dim, init_values=iv, inplace=inplace)

    def forward(self, x):
        return self.ls(x.t().view(-1))  # written-through


def f(x, inplace=False):
    return x.mul_(2) if inplace else x * 2


def g(x):
    return f(x.t().view(-1))  # failing
