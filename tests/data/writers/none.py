"""As its neighbours, and nothing writes: a copy serves as well."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce

import thirdparty
import torch
from torch import nn


def total(t, scale=1.0):
    return t.sum() * scale


def fill(t):
    t.fill_(3.0)


class Reader:
    def __init__(self, t):
        self.t = t
        self.sum = t.sum()
        self.calls = [t.shape]

    def total(self):
        self.calls.append(self.t.shape)
        return self.t.sum()

    def __call__(self, t):
        return t + self.t


@dataclass
class Data:
    t: torch.Tensor
    n: int = 0


def called(x):
    return total(x.t().view(-1))  # failing


def called_local(x):
    def inner(t):
        u = t.clone()
        u.zero_()
        return u

    return inner(x.t().view(-1))  # failing


def called_lambda(x):
    g = lambda t: t.add(1)
    return g(x.t().view(-1))  # failing


def beside(x):
    v = x.t().view(-1)  # failing
    fill(x)
    return v


def beside_local(x):
    class Local:
        def go(self, t):
            t.zero_()

    v = x.t().view(-1)  # failing
    Local().go(x)
    return v


def kept(x):
    r = Reader(x.t().view(-1))  # failing
    return r.total() + r.t + r.sum


def kept_called(x, y):
    r = Reader(x.t().view(-1))  # failing
    return r(y)


def kept_data(x):
    d = Data(x.t().view(-1))  # failing
    return d.t.sum() + d.n


def with_partial(x):
    return partial(total, scale=2.0)(x.t().view(-1))  # failing


def submitted(x):
    with ThreadPoolExecutor() as pool:
        return pool.submit(total, x.t().view(-1)).result()  # failing


def submitted_beside(x, y, pool):
    v = x.t().view(-1)  # failing
    pool.submit(fill, y)
    return v


def mapped(x):
    return list(map(total, [x.t().view(-1)]))  # failing


def reduced(x):
    return reduce(lambda a, b: a.add(b), [x.t().view(-1), 1])  # failing


def outside(x):
    y = thirdparty.wrap(x.t().view(-1))  # failing
    y = y + 1
    return y


def by_getattr(x):
    return getattr(x.t().view(-1), "sum")()  # failing


def module(x):
    return nn.ReLU()(x.t().view(-1))  # failing


@contextmanager
def flat(x):
    yield x.t().view(-1)  # failing


def entered(x):
    with flat(x) as v:
        return v.sum()


class Flat:
    def __init__(self, x):
        self.x = x

    @property
    def flat(self):
        return self.x.t().view(-1)  # failing

    def __iter__(self):
        yield self.x.t().view(-1)  # failing


def read(x):
    f = Flat(x)
    return f.flat.sum() + sum(v.sum() for v in f)


def generated(x):
    def inner():
        yield x.t().view(-1)  # failing

    return [v.sum() for v in inner()]


def deep(t):
    a = 1
    b = 2
    c = 3
    d = 4
    e = 5
    deeper(t)
    return a + b + c + d + e


def deeper(t):
    a = 1
    b = 2
    c = 3
    d = 4
    e = 5
    total(t)
    return a + b + c + d + e


def called_deep(x):
    return deep(x.t().view(-1))  # failing


def recursive(t, n):
    return recursive(t, n - 1) if n else t.sum()


def called_recursive(x):
    return recursive(x.t().view(-1), 3)  # failing
