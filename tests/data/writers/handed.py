import functools

import torch
from torch import nn


def fill(t):
    t.fill_(3.0)


x = torch.randn(3, 4)
fill(x.t().view(-1))  # written-through


class Filler:
    def __init__(self, value=3.0):
        self.value = value

    def fill(self, t):
        t.fill_(self.value)

    def __call__(self, t):
        t.fill_(self.value)


class Writes:
    def __init__(self, t):
        t.zero_()


def local_function(x):
    def inner(t):
        t.zero_()

    inner(x.t().view(-1))  # written-through
    return x


def local_lambda(x):
    g = lambda t: t.zero_()
    g(x.t().view(-1))  # written-through
    return x


def local_object(x):
    f = Filler()
    f.fill(x.t().view(-1))  # written-through
    return x


def local_object_called(x):
    f = Filler()
    f(x.t().view(-1))  # written-through
    return x


def bound_method(x):
    op = Filler().fill
    op(x.t().view(-1))  # written-through
    return x


def by_name(x):
    f = Filler()
    v = x.t().view(-1)  # written-through
    f.fill(v)
    return x


def by_name_function(x):
    v = x.t().view(-1)  # written-through
    fill(v)
    return x


def local_class(x):
    class Local:
        def go(self, t):
            t.zero_()

    Local().go(x.t().view(-1))  # written-through
    return x


def decorated(x):
    @torch.no_grad()
    def inner(t):
        t.zero_()

    inner(x.t().view(-1))  # written-through
    return x


def nested(x):
    def outer(t):
        def inner(u):
            u.zero_()

        inner(t)

    outer(x.t().view(-1))  # written-through
    return x


def partial(x):
    p = functools.partial(torch.fill_, value=3)
    p(x.t().view(-1))  # written-through
    return x


def partial_own(x):
    p = functools.partial(fill)
    v = x.t().view(-1)  # written-through
    p(v)
    return x


def by_getattr(x):
    getattr(x.t().view(-1), "fill_")(3)  # written-through
    return x


def mapped(x):
    list(map(Filler(), [x.t().view(-1)]))  # written-through
    return x


def constructor(x):
    Writes(x.t().view(-1))  # written-through
    return x


def constructor_by_name(x):
    v = x.t().view(-1)  # written-through
    Writes(v)
    return x


def local_import(x):
    from torch.nn import init

    init.zeros_(x.t().view(-1))  # written-through
    return x


def renamed(x):
    g = fill
    g(x.t().view(-1))  # written-through
    return x


def chosen(x, flag):
    g = fill if flag else torch.zero_
    g(x.t().view(-1))  # written-through
    return x


def from_dict(x):
    table = {"fill": fill}
    table["fill"](x.t().view(-1))  # written-through
    return x


f = Filler()
f(x.t().view(-1))  # written-through
f.fill(x.t().view(-1))  # written-through
g = lambda t: t.zero_()
g(x.t().view(-1))  # written-through
v = x.t().view(-1)  # written-through
fill(v)
