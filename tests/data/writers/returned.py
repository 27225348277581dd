from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
import torch


def fill(t):
    t.fill_(1)


def late(x):
    def w():
        v.zero_()

    v = x.t().view(-1)  # written-through
    w()
    return x


def late_lambda(x):
    w = lambda: v.zero_()
    v = x.t().view(-1)  # written-through
    w()
    return x


def early(x):
    v = x.t().view(-1)  # written-through

    def w():
        v.zero_()

    w()
    return x


def early_lambda(x, pool):
    v = x.t().view(-1)  # written-through
    pool.submit(lambda: v.zero_())
    return x


def bound_method(x, pool):
    v = x.t().view(-1)  # written-through
    pool.submit(v.zero_)
    return x


def identity(f):
    return f


def deco(f):
    def inner(*a):
        return f(*a)
    return inner


@deco
def get(x):
    return x.t().view(-1)  # written-through


def use(x):
    get(x).zero_()
    return x


@deco
def same(v):
    return v


def use_same(x):
    same(x.t().view(-1)).zero_()  # written-through
    return x


@deco
def clear(v):
    v.zero_()


def use_clear(x):
    clear(x.t().view(-1))  # written-through
    return x


@contextmanager
def flat(x):
    yield x.t().view(-1)  # written-through


def use_flat(x):
    with flat(x) as v:
        v.zero_()
    return x


class Get:
    def __init__(self, x):
        self.x = x

    @property
    def flat(self):
        return self.x.t().view(-1)  # written-through

    def get(self):
        return self.x.t().view(-1)  # written-through

    @staticmethod
    def stat(x):
        return x.t().view(-1)  # written-through

    @classmethod
    def cls(cls, x):
        return x.t().view(-1)  # written-through

    def __getitem__(self, i):
        return self.x.t().view(-1)  # written-through

    def __iter__(self):
        yield self.x.t().view(-1)  # written-through

    def __enter__(self):
        return self.x.t().view(-1)  # written-through

    def __exit__(self, *a):
        pass

    def __call__(self):
        return self.x.t().view(-1)  # written-through


def use_get(x):
    g = Get(x)
    g.flat.zero_()
    g.get().zero_()
    Get.stat(x).zero_()
    Get.cls(x).zero_()
    g[0].zero_()
    for v in g:
        v.zero_()
    with g as v:
        v.zero_()
    g().zero_()
    return x


def outside(x):
    import thirdparty
    thirdparty.wrap(x.t().view(-1)).zero_()  # written-through
    return x


def outside2(x, wrap):
    v = x.t().view(-1)  # written-through
    w = wrap(v)
    w += 1
    return x


async def agen(x):
    yield x.t().view(-1)  # written-through


async def use_agen(x):
    async for v in agen(x):
        v.zero_()


async def aw(x):
    return x.t().view(-1)  # written-through


async def use_aw(x):
    (await aw(x)).zero_()
    v = await aw(x)
    v.zero_()


class Get1:
    def __init__(self, x):
        self.x = x

    @property
    def flat(self):
        return self.x.t().view(-1)  # written-through


def use_flat(x):
    g = Get1(x)
    g.flat.zero_()
    return x


class Get2:
    def __init__(self, x):
        self.x = x

    def __iter__(self):
        yield self.x.t().view(-1)  # written-through


def use_it(x):
    g = Get2(x)
    for v in g:
        v.zero_()
    return x


class Get3:
    def __init__(self, x):
        self.x = x

    def __enter__(self):
        return self.x.t().view(-1)  # written-through

    def __exit__(self, *a):
        pass


def use_with(x):
    g = Get3(x)
    with g as v:
        v.zero_()
    return x


def use_with2(x):
    with Get3(x) as v:
        v.zero_()
    return x


class Get4:
    def __init__(self, x):
        self.x = x

    def get(self):
        return self.x.t().view(-1)  # written-through


def use_get4(x):
    g = Get4(x)
    g.get().zero_()
    return x
