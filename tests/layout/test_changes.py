"""What changes between a tensor's birth and its view: control flow, names that others bind, writes in place.

Each program was once told wrong.  Claims stand at the line that they are about.
"""

from __future__ import annotations

import sys

import pytest

from tests.layout.verdicts import check

CONTROL_FLOW = {
    "try mid": """
def f(x, h):
    y = x.contiguous()
    try:
        y = y.t()
        h()
        y = y.contiguous()
    except ValueError:
        return y.view(-1)  # failing
    return y.view(-1)  # safe
""",
    "try finally": """
def f(x, h):
    y = x.t()
    try:
        h()
        y = y.contiguous()
    finally:
        y.view(-1)  # failing
""",
    "else of a loop": """
def f(x, n):
    y = x.contiguous()
    while n:
        n -= 1
        if n == 2:
            break
        y = y.t()
    else:
        y = x.contiguous()
    return y.view(-1)  # failing
def g(x, n):
    y = torch.zeros(4, 3).t()
    for i in range(n):
        if i == x:
            break
    else:
        y = y.contiguous()
    return y.view(-1)  # failing
def h(x):
    y = torch.zeros(4, 3).t()
    for i in (1, 2):
        if i == x:
            y = y.contiguous()
            break
    else:
        return y.view(-1)  # failing
    return y.view(-1)  # safe
""",
    "finally on the way out of a round": """
def f(n):
    y = torch.zeros(4, 3)
    for i in range(n):
        try:
            if i == 1:
                break
        finally:
            y = torch.zeros(4, 3).t()
        y = y.contiguous()
    return y.view(-1)  # failing
def g(n):
    y = torch.zeros(4, 3)
    for i in range(n):
        try:
            continue
        finally:
            y = torch.zeros(4, 3).t()
    return y.view(-1)  # failing
""",
    "three rounds": """
def f(x, n):
    a = torch.zeros(3, 4); b = torch.zeros(3, 4); c = torch.zeros(3, 4)
    d = torch.zeros(4, 3).t()
    for i in range(n):
        a.view(-1)  # unknown
        a = b
        b = c
        c = d
    return a.view(-1)  # failing
""",
    "many paths": """
def f(x, kind):
    if kind == 0:
        y = torch.zeros(2, 3)
    elif kind == 1:
        y = torch.zeros(3, 3)
    elif kind == 2:
        y = torch.zeros(4, 3)
    elif kind == 3:
        y = torch.zeros(5, 3)
    elif kind == 4:
        y = torch.zeros(6, 3)
    else:
        y = x.contiguous()
    return y.view(-1)  # safe
def g(x, kind):
    if kind == 0:
        y = torch.zeros(2, 3)
    elif kind == 1:
        y = torch.zeros(3, 3)
    elif kind == 2:
        y = torch.zeros(4, 3)
    elif kind == 3:
        y = torch.zeros(5, 3)
    elif kind == 4:
        y = torch.zeros(6, 3)
    else:
        y = x.unsqueeze(0)
    return y.view(-1)  # layout-dependent
def h(x, kind):
    if kind == 0:
        y = torch.zeros(2, 3)
    elif kind == 1:
        y = torch.zeros(3, 3)
    elif kind == 2:
        y = torch.zeros(4, 3)
    elif kind == 3:
        y = torch.zeros(5, 3)
    elif kind == 4:
        y = torch.zeros(6, 3)
    else:
        y = torch.zeros(6, 3).t()
    return y.view(-1)  # failing
def sizes(x, kind):
    if kind == 0:
        y = torch.zeros(2, 3)
    elif kind == 1:
        y = torch.zeros(3, 3)
    elif kind == 2:
        y = torch.zeros(4, 3)
    elif kind == 3:
        y = torch.zeros(5, 3)
    elif kind == 4:
        y = torch.zeros(6, 3)
    z = y

    if kind == 0:
        y = torch.zeros(2, 3)
    elif kind == 1:
        y = torch.zeros(3, 3)
    elif kind == 2:
        y = torch.zeros(4, 3)
    elif kind == 3:
        y = torch.zeros(5, 3)
    elif kind == 4:
        y = torch.zeros(6, 3)
    w = torch.zeros(z.shape[0], 7, 2).transpose(0, 1)
    return w.view(7, y.shape[0], -1)  # unknown
def written(x, kind):
    if kind == 0:
        y = torch.zeros(2, 3)
    elif kind == 1:
        y = torch.zeros(3, 3)
    elif kind == 2:
        y = torch.zeros(4, 3)
    elif kind == 3:
        y = torch.zeros(5, 3)
    elif kind == 5:
        y = x.t().view(3, -1)  # written-through
    elif kind == 4:
        y = torch.zeros(6, 3)
    y.zero_()
""",
    "unbound method in a loop": """
def f(x, n):
    y = x.contiguous()
    for _ in range(n):
        torch.Tensor.view(y, -1)  # failing
        y = y.t().contiguous().t()
def g(x, is_turned):
    y = x.contiguous()
    if is_turned:
        y = y.view(-1)  # safe
    else:
        y = y.t().view(-1)  # written-through
    torch.Tensor.zero_(y)
""",
    "loops swap": """
def f(n):
    a, b = torch.zeros(3, 4), torch.zeros(4, 3)
    for _ in range(n):
        a.view(-1)  # failing
        a, b = b, a.t()
    return a
""",
    "walrus in comprehension": """
def f(xs):
    y = torch.zeros(3, 4)
    [y := z.t() for z in xs]
    return y.view(-1)  # unknown
""",
    "walrus short": """
def f(x, flag):
    y = torch.zeros(3, 4).t()
    flag and (y := y.contiguous())
    return y.view(-1)  # failing
""",
    "suppress": """
import contextlib
def f(x, h):
    y = torch.zeros(3, 4).t()
    with contextlib.suppress(ValueError):
        h()
        y = y.contiguous()
    return y.view(-1)  # failing
""",
    "swap": """
def f(n):
    a, b = torch.zeros(3, 4), torch.zeros(4, 3).t()
    for _ in range(n):
        a, b = b, a
    return a.view(-1)  # failing
""",
    "match": """
def f(m):
    y = torch.zeros(4, 3).t()
    match m:
        case 1:
            y = y.contiguous()
    return y.view(-1)  # failing
""",
    "while else": """
def f(n):
    y = torch.zeros(4, 3).t()
    while n:
        n -= 1
        y = y.contiguous()
        break
    else:
        y.view(-1)  # failing
    return y
""",
}

SHARED_NAMES = {
    "nonlocal": """
def f(x):
    y = x.contiguous()
    def g():
        nonlocal y
        y = y.t()
    g()
    return y.view(-1)  # unknown
""",
    "global": """
Y = torch.zeros(3, 4)
def g():
    global Y
    Y = Y.t()
def f():
    g()
    return Y.view(-1)  # unknown
""",
    "global inplace": """
Y = torch.zeros(3, 4)
def g():
    Y.t_()
def f():
    g()
    return Y.view(-1)  # unknown
""",
    "module level": """
def f(x):
    return TABLE[0].view(-1)  # unknown
TABLE = [torch.zeros(3, 4)]
TABLE[0] = torch.zeros(4, 3).t()
""",
    "rebound by assignment": """
def h(x):
    return torch.zeros(3, 4)
h = wrapped(h)
def f(x):
    return h(x).view(-1)  # unknown
""",
    "import fallback": """
try:
    from fast import h
except ImportError:
    def h(x):
        return torch.zeros(3, 4)
def f(x):
    return h(x).view(-1)  # unknown
""",
    "two definitions": """
def h(x):
    return torch.zeros(3, 4)
def h(x):
    return torch.zeros(4, 3).t()
def f(x):
    return h(x).view(-1)  # failing
""",
    "conditional definitions": """
import sys
if sys.argv:
    def h(x):
        return torch.zeros(4, 3).t()
else:
    def h(x):
        return torch.zeros(4, 3)
def f(x):
    return h(x).view(-1)  # failing
""",
    "shadowed F": """
import mine as F
def f(x):
    return F.relu(torch.zeros(3, 4)).view(-1)  # unknown
""",
    "closure flips": """
def f():
    x = torch.zeros(3, 4)
    def g():
        x.t_()
    g()
    return x.view(-1)  # unknown
""",
}

IN_PLACE = {
    "list alias t_": """
def f():
    x = torch.zeros(3, 4)
    l = [x]
    x.t_()
    return l[0].view(-1)  # unknown
""",
    "helper flips in place": """
def flip(z):
    z.t_()
def f():
    y = torch.zeros(3, 4)
    flip(y)
    return y.view(-1)  # unknown
""",
    "unbound t_": """
def f():
    y = torch.zeros(3, 4)
    torch.Tensor.t_(y)
    return y.view(-1)  # unknown
""",
    "contiguous alias t_": """
def f():
    x = torch.zeros(3, 4)
    y = x.contiguous()
    x.t_()
    return y.view(-1)  # unknown
""",
    "out strided": """
def f(x, y):
    o = torch.empty(4, 3)
    return torch.mul(x.contiguous(), y.contiguous(), out=o.t()).view(-1)  # failing
def g():
    o = torch.empty(4, 3)
    r = torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5), out=torch.empty(2, 5, 3).mT)
    return r.view(-1)  # failing
def h(x, out=None):
    return torch.mul(x.contiguous(), 2, out=out).view(-1)  # layout-dependent
def k(x):
    return torch.mul(x.contiguous(), 2, out=None).view(-1)  # safe
def m(x, os):
    values, indices = torch.sort(x.contiguous(), out=os)
    return values.view(-1)  # layout-dependent
""",
    "swapped": """
def f():
    x, y = torch.zeros(3, 4), torch.zeros(4, 3).t()
    torch.utils.swap_tensors(x, y)
    return x.view(-1), y.view(-1)  # unknown
""",
    "out resize": """
def f():
    x = torch.zeros(3, 4)
    y = torch.empty(0)
    torch.add(x.t(), x.t(), out=y)
    return y.view(-1)  # unknown
""",
    "bound on the object of an object": """
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.zeros(3, 4)
        self.b = nn.Parameter(torch.zeros(3, 4))
        self.c = torch.zeros(3, 4)
        self.d = torch.zeros(3, 4)
        self.l = nn.Linear(3, 4)
    def forward(self):
        self.a.view(-1)  # unknown
        self.b.view(-1)  # unknown
        self.c.view(-1)  # unknown
        self.d.view(-1)  # safe
        self.l.weight.view(-1)  # unknown
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.all = nn.ModuleList([Inner()])
        self.inner.a = torch.zeros(4, 3).t()
        self.inner.b.data = torch.zeros(4, 3).t()
        self.all[0].c = torch.zeros(4, 3).t()
        self.inner.l.weight = nn.Parameter(torch.zeros(4, 3).t())
""",
    "brought by a caller, or taken away, from outside": """
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 5)
        self.b = torch.zeros(3, 4)
        self.c = nn.Linear(4, 5)
    def forward(self, x):
        self.a(x).view(-1)  # layout-dependent
        self.b.view(-1)  # layout-dependent
        y = x.t()
        if self.c is not None:
            y = self.c(x)
        return y.view(-1)  # layout-dependent
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.inner.c = None
    def set_head(self, new):
        self.inner.a = new
        self.inner.b = new.bias
""",
    "lists of modules": """
class Turn(nn.Module):
    def forward(self, x):
        return x.t()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ModuleList()
        for i in range(3):
            self.a.append(nn.Linear(4, 4))
        self.b = nn.ModuleList([nn.Linear(4, 4)])
        self.b.append(Turn())
        self.c = nn.Sequential(nn.Linear(4, 4))
        self.c.append(Turn())
        self.d = nn.Sequential(nn.Linear(4, 4))
        self.e = nn.ModuleList([nn.Linear(4, 4)])
        self.e[0] = Turn()
        self.f = nn.Sequential(nn.Linear(4, 4))
        self.g = nn.Sequential()
        for i in range(3):
            self.g.add_module(f"{i}", Turn())
        self.g.add_module("last", nn.AvgPool2d(2))
        self.h = nn.Sequential()
        for i in range(3):
            stage = nn.Sequential()
            for j in range(i):
                stage.add_module(f"{j}", Turn())
            stage.add_module("last", nn.MaxPool2d(2))
            self.h.add_module(f"{i}", stage)
    def edit(self):
        self.d[0] = Turn()
    def forward(self, x):
        x = x.contiguous()
        self.a[0](x).view(-1)  # safe
        for m in self.b:
            m(x).view(-1)  # failing
        self.c(x).view(-1)  # failing
        self.d(x).view(-1)  # unknown
        self.e[0](x).view(-1)  # failing
        self.f(x).view(-1)  # safe
        self.g[1](x).view(-1)  # unknown
        self.g(x).view(-1)  # layout-dependent
        self.h(x).view(-1)  # layout-dependent
""",
    "what is one of several": """
def f(a):
    xs = [torch.zeros(4, 3).t()] if a else [torch.zeros(3, 4)]
    xs.append(torch.zeros(3, 4))
    return xs[0].view(-1)  # failing
def g(a):
    x = torch.zeros(4, 3) if a else torch.zeros(3, 4).t()
    x.t_()
    return x.view(-1)  # failing
def h(a):
    xs = [torch.zeros(3, 4)] if a else [torch.zeros(3, 4), torch.zeros(3, 4)]
    xs[0] = torch.zeros(4, 3).t()
    return xs[0].view(-1)  # failing
def k(a):
    d = {"a": torch.zeros(3, 4)} if a else {"b": torch.zeros(3, 4)}
    e = d
    d["a"] = torch.zeros(4, 3).t()
    return e["a"].view(-1)  # unknown
class A:
    def one(self):
        self.x = torch.zeros(4, 3).t()
    def two(self):
        self.x = torch.zeros(3, 4)
    def f(self, a):
        g = self.one if a else self.two
        g()
        return self.x.view(-1)  # failing
""",
    "what a list or dict of an object holds": """
class A:
    shared = [torch.zeros(3, 4)]
    def __init__(self):
        self.xs = [torch.zeros(3, 4)]
        self.d = {"a": torch.zeros(3, 4)}
        self.e = {"a": torch.zeros(3, 4)}
        self.ys = [torch.zeros(3, 4)]
        self.zs = [torch.zeros(3, 4)]
        self.zs.append(torch.zeros(4, 3))
        self.buffer = torch.zeros(3, 4)
    def edit(self, y):
        self.xs[0] = y
        self.d["a"] = y
        self.e.update(a=y)
        self.ys.insert(0, y)
        self.shared[0] = y
        self.buffer[0] = 1
    def f(self):
        self.xs[0].view(-1)  # unknown
        self.d["a"].view(-1)  # unknown
        self.e["a"].view(-1)  # unknown
        self.ys[0].view(-1)  # unknown
        self.shared[0].view(-1)  # unknown
        self.zs[0].view(-1)  # safe
        self.buffer.view(-1)  # safe
""",
    "what is read is not what was bound": """
class Property:
    @property
    def x(self):
        return self._x
    @x.setter
    def x(self, value):
        self._x = value.t()
    def f(self):
        self.x = torch.zeros(3, 4)
        return self.x.view(-1)  # unknown
class Turned:
    def __get__(self, instance, owner):
        return torch.zeros(4, 3).t()
    def __set__(self, instance, value):
        pass
class Described:
    x = Turned()
    def f(self):
        self.x = torch.zeros(3, 4)
        return self.x.view(-1)  # unknown
class Setting:
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value.t())
    def f(self):
        self.x = torch.zeros(3, 4)
        return self.x.view(-1)  # unknown
class Turning(torch.Tensor):
    def contiguous(self):
        return self
def f():
    x = torch.zeros(4, 3).t().as_subclass(Turning)
    return x.contiguous().view(-1)  # not-a-shape-view
def g(x):
    return x.as_subclass(torch.Tensor).contiguous().view(-1)  # safe
""",
    "a default that calls share": """
def first(x, seen=[]):
    seen.append(x)
    return seen[0]
def second(x, dims=[0, 1]):
    return x.permute(dims)
def f(x):
    first(x)
    return first(torch.zeros(3, 4)).view(-1)  # unknown
def g():
    return second(torch.zeros(3, 4)).view(-1)  # safe
""",
    "the order in which bases are asked": """
class Dense:
    def op(self, x):
        return x.contiguous()
    def f(self, x):
        return self.op(x.t()).view(-1)  # failing
class Plain:
    def op(self, x):
        return x
class Both(Plain, Dense):
    pass
class Deep(Dense):
    pass
class Side:
    def op(self, x):
        return x.t()
class Diamond(Deep, Side):
    def g(self, x):
        return self.op(x.t()).view(-1)  # safe
""",
    "hooks and another forward": """
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.forward = self.other
    def other(self, x):
        return x.t()
    def forward(self, x):
        return x.contiguous()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 5)
        self.a.register_forward_hook(lambda m, i, o: o.t())
        self.b = nn.Linear(4, 5)
        self.b.register_forward_hook(self.keep)
        self.c = nn.Linear(4, 5)
        self.c.register_forward_hook(self.make("c"))
        self.d = nn.Linear(4, 5)
        self.d.forward = lambda x: x.t()
        self.e = Own()
        self.f = nn.Linear(4, 5)
        self.f.register_forward_hook(lambda m, i, o: self.seen.append(o))
        self.seen = []
    def keep(self, m, i, o):
        self.seen.append(o)
    def make(self, name):
        def hook(m, i, o):
            return o.t()
        return hook
    def forward(self, x):
        y = x.contiguous()
        self.a(y).view(-1)  # unknown
        self.b(y).view(-1)  # safe
        self.c(y).view(-1)  # unknown
        self.d(y).view(-1)  # unknown
        self.e(y).view(-1)  # unknown
        self.f(y).view(-1)  # safe
""",
    "imatmul": """
def f():
    y = torch.zeros(4, 3).t()
    y @= torch.zeros(4, 4)
    return y.view(-1)  # safe
""",
    "alias t_": """
def f():
    x = torch.zeros(3, 4)
    z = x
    z.t_()
    return x.view(-1)  # unknown
""",
    "alias contiguous t_": """
def f():
    x = torch.zeros(3, 4)
    z = x.contiguous()
    z.t_()
    return x.view(-1)  # unknown
""",
    "alias through list": """
def f():
    x = torch.zeros(3, 4)
    zs = [x]
    for z in zs:
        z.t_()
    return x.view(-1)  # unknown
""",
    "expression flips": """
def f():
    x = torch.zeros(3, 4)
    y = x.t_()
    return x.view(-1)  # failing
""",
    "nested call flips": """
def f():
    x = torch.zeros(3, 4)
    y = torch.relu(x.t_())
    return x.view(-1)  # failing
""",
    "lambda flips": """
def f():
    x = torch.zeros(3, 4)
    (lambda z: z.t_())(x)
    return x.view(-1)  # unknown
""",
    "map flips": """
def flip(z):
    return z.t_()
def f():
    x = torch.zeros(3, 4)
    list(map(flip, [x]))
    return x.view(-1)  # unknown
""",
    "method flips": """
class A:
    def flip(self, z):
        z.t_()
    def f(self):
        x = torch.zeros(3, 4)
        self.flip(x)
        return x.view(-1)  # unknown
""",
    "data": """
def f():
    x = torch.zeros(3, 4)
    x.data = torch.zeros(4, 3).t()
    return x.view(-1)  # failing
""",
    "data of alias": """
def f():
    x = torch.zeros(3, 4)
    y = x
    y.data = torch.zeros(4, 3).t()
    return x.view(-1)  # unknown
""",
    "param data": """
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(3, 4))
    def load(self):
        self.w.data = torch.zeros(4, 3).t()
    def forward(self):
        return self.w.view(-1)  # unknown
""",
    "resize_ / set_": """
def f(x):
    y = torch.zeros(3, 4)
    y.set_(torch.zeros(4, 3).t())
    z = torch.zeros(3, 4)
    z.data = torch.zeros(4, 3).t()
    w = torch.zeros(3, 4)
    w.as_strided_((3, 2), (4, 2))
    return y.view(-1), z.view(-1), w.view(-1)  # unknown
""",
    "as_strided, empty_strided": """
def f(x):
    y = torch.zeros(3, 4).as_strided((3, 2), (4, 1))
    z = torch.empty_strided((3, 4), (1, 3))
    w = torch.as_strided(torch.zeros(12), (3, 4), (1, 3))
    return y.view(-1), z.view(-1), w.view(-1)  # unknown
""",
}

CONTAINERS = {
    "list reassign": """
def f(xs):
    ys = [torch.zeros(3, 4), torch.zeros(3, 4)]
    ys[0] = torch.zeros(4, 3).t()
    a, b = ys
    return a.view(-1)  # failing
""",
    "list insert": """
def f(xs):
    ys = [torch.zeros(3, 4), torch.zeros(3, 4)]
    ys.insert(0, torch.zeros(4, 3).t())
    return ys[0].view(-1)  # failing
""",
    "list alias append": """
def f(xs):
    ys = [torch.zeros(3, 4)]
    zs = ys
    zs[0] = torch.zeros(4, 3).t()
    return ys[0].view(-1)  # unknown
""",
    "list extend/iadd": """
def f(xs):
    ys = [torch.zeros(3, 4)]
    ys += [torch.zeros(4, 3).t()]
    for y in ys:
        y.view(-1)  # failing
    zs = [torch.zeros(3, 4)]
    zs.extend([torch.zeros(4, 3).t()])
    for y in zs:
        y.view(-1)  # failing
    ws = [torch.zeros(3, 4), torch.zeros(4, 3).t()]
    ws.reverse()
    return ws[0].view(-1)  # failing
""",
    "dict mutated": """
def f(xs):
    d = {"a": torch.zeros(3, 4)}
    e = d
    e["a"] = torch.zeros(4, 3).t()
    return d["a"].view(-1)  # unknown
""",
    "helper mutates dict": """
def put(d):
    d["a"] = torch.zeros(4, 3).t()
def f(xs):
    d = {"a": torch.zeros(3, 4)}
    put(d)
    return d["a"].view(-1)  # unknown
""",
    "dict update": """
def f(m):
    d = {"a": torch.zeros(3, 4)}
    d.update(a=torch.zeros(4, 3).t())
    e = dict(a=torch.zeros(3, 4))
    e |= {"a": torch.zeros(4, 3).t()}
    g = {"a": torch.zeros(3, 4), **{"a": torch.zeros(4, 3).t()}}
    h = {"a": torch.zeros(3, 4)}
    h.setdefault("b", torch.zeros(4, 3).t())
    d["a"].view(-1)  # unknown
    e["a"].view(-1)  # unknown
    g["a"].view(-1)  # unknown
    for k in h.values():
        k.view(-1)  # unknown
""",
    "slice assign list": """
def f(m):
    l = [torch.zeros(3, 4), torch.zeros(3, 4)]
    l[:] = [torch.zeros(4, 3).t()] * 2
    return l[0].view(-1)  # failing
""",
    "sorted, reversed": """
def f(m):
    l = [torch.zeros(3, 4), torch.zeros(4, 3).t()]
    for a in reversed(l):
        a.view(-1)  # failing
    a, b = reversed(l)
    a.view(-1)  # failing
    x, y = sorted(l)
    x.view(-1)  # unknown
    x, y = list(reversed(l))
    x.view(-1)  # failing
    x = list(reversed(l))[0]
    x.view(-1)  # failing
    del l[0]
    l[0].view(-1)  # unknown
""",
    "tuple unpack with star": """
def f(m):
    a, *b, c = torch.zeros(3, 4), torch.zeros(4, 3).t(), torch.zeros(3, 4)
    b[0].view(-1)  # failing
    c.view(-1)  # safe
""",
    "iter/next": """
def f(m):
    l = iter([torch.zeros(3, 4), torch.zeros(4, 3).t()])
    next(l)
    next(l).view(-1)  # unknown
    z = zip([torch.zeros(3, 4)], [torch.zeros(4, 3).t()])
    for a, b in z:
        b.view(-1)  # failing
""",
    "star call": """
def g(a, b):
    return b
def f(m):
    args = (torch.zeros(3, 4), torch.zeros(4, 3).t())
    g(*args).view(-1)  # failing
    kw = {"a": torch.zeros(3, 4), "b": torch.zeros(4, 3).t()}
    g(**kw).view(-1)  # failing
    g(b=args[1], a=args[0]).view(-1)  # failing
""",
}

ATTRIBUTES = {
    "subclass override": """
class A(nn.Module):
    def h(self, x):
        return x.contiguous()
    def forward(self, x):
        return self.h(x).view(-1)  # failing
class B(A):
    def h(self, x):
        return x.t()
""",
    "setattr": """
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.zeros(3, 4)
        setattr(self, "w", torch.zeros(4, 3).t())
    def forward(self):
        return self.w.view(-1)  # unknown
""",
    "from outside": """
class A:
    def __init__(self):
        self.w = torch.zeros(3, 4)
    def go(self):
        return self.w.view(-1)  # unknown
def f():
    a = A()
    a.w = torch.zeros(4, 3).t()
    return a.go()
""",
    "monkey": """
class A:
    def h(self):
        return torch.zeros(3, 4)
    def go(self):
        return self.h().view(-1)  # unknown
A.h = lambda self: torch.zeros(4, 3).t()
""",
    "helper mutates object": """
def put(o):
    o.w = torch.zeros(4, 3).t()
class O: pass
def f(xs):
    o = O()
    o.w = torch.zeros(3, 4)
    put(o)
    return o.w.view(-1)  # unknown
""",
    "alias object": """
class O: pass
def f(xs):
    o = O()
    p = o
    o.w = torch.zeros(3, 4)
    p.w = torch.zeros(4, 3).t()
    return o.w.view(-1)  # unknown
""",
    "self cache flipped": """
class A(nn.Module):
    def flip(self):
        self.cache = self.cache.t()
    def forward(self):
        self.cache = torch.zeros(3, 4)
        self.flip()
        return self.cache.view(-1)  # unknown
""",
    "self buffer t_": """
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.zeros(3, 4)
    def flip(self):
        self.w.t_()
    def forward(self):
        return self.w.view(-1)  # unknown
""",
    "sub attribute": """
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.zeros(3, 4)
    def forward(self):
        return self.w.view(-1)  # failing
class B(A):
    def __init__(self):
        super().__init__()
        self.w = torch.zeros(4, 3).t()
""",
    "sub attribute alike": """
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.zeros(3, 4)
    def forward(self):
        return self.w.view(-1)  # safe
class B(A):
    def __init__(self):
        super().__init__()
        self.w = torch.zeros(4, 3)
""",
    "handed on": """
class Old(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(3, 4)
        self.w = torch.zeros(3, 4).t()
class New(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(3, 4)
        self.w = torch.zeros(3, 4)
    def forward(self, x):
        self.w.view(-1)  # failing
        return self.query(x.contiguous()).view(-1)  # safe
def swap(old, new):
    new.query = old.query
    new.w = old.w
""",
    "settled by the constructor": """
class Net(nn.Module):
    def __init__(self, is_fused):
        super().__init__()
        self.is_fused = is_fused
        if self.is_fused:
            self.mel = nn.Linear(3, 4)
        self.proj = nn.Linear(3, 4) if not self.is_fused else None
    def forward(self, x):
        if self.is_fused:
            return self.mel(x.contiguous()).view(-1)  # safe
        return self.proj(x.contiguous()).view(-1)  # safe
""",
    "bound by other methods": """
class A(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("bias", torch.zeros(1, n))
        self.w = None
        self.v = torch.zeros(3, n)
        self.u = torch.zeros(3, n)
        self.cache = None
    def resize(self, n, x):
        if n > 3:
            self.register_buffer("bias", torch.zeros(1, n))
        self.w = torch.zeros(4, n)
        self.v = torch.zeros(4, n).t()
        self.u = self.u.t()
        self.cache = x
    def forward(self):
        self.bias.view(-1)  # safe
        self.w.view(-1)  # safe
        self.v.view(-1)  # failing
        self.u.view(-1)  # unknown
        self.cache.view(-1)  # layout-dependent
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.zeros(4, 3).t()
class B(Base):
    def reset(self):
        self.w = torch.zeros(4, 3)
    def forward(self):
        self.w.view(-1)  # failing
""",
    "registered or bound": """
class Linear(nn.Module):
    def __init__(self, has_bias):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 4))
        if has_bias:
            self.bias = nn.Parameter(torch.zeros(4, 3).t())
        else:
            self.register_parameter("bias", None)
    def forward(self, x):
        return x if self.bias is None else self.bias
class Net(nn.Module):
    def __init__(self, has_bias):
        super().__init__()
        self.lin = Linear(has_bias)
    def forward(self):
        return self.lin(torch.zeros(3, 4)).view(-1)  # layout-dependent
""",
    "unsettled by the constructor": """
class Net(nn.Module):
    def __init__(self, is_fused):
        super().__init__()
        self.is_fused = False
        self.w = torch.zeros(3, 4) if self.is_fused else torch.zeros(3, 4).t()
        self.is_fused = True
        self.v = torch.zeros(3, 4) if is_fused else torch.zeros(3, 4).t()
    def forward(self, is_fused):
        if self.is_fused:
            self.w.view(-1)  # layout-dependent
        if is_fused:
            self.v.view(-1)  # failing
""",
    "property overriding": """
class A(nn.Module):
    @property
    def w(self):
        return torch.zeros(3, 4)
    def forward(self):
        return self.w.view(-1)  # failing
class B(A):
    @property
    def w(self):
        return torch.zeros(4, 3).t()
""",
    "register_buffer then reassign": """
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.zeros(3, 4))
    def load(self):
        self.w = torch.zeros(4, 3).t()
    def forward(self):
        return self.w.view(-1)  # failing
""",
}

RANKS = {
    "the other way is made contiguous": """
def f(x, flag):
    y = torch.zeros(3, 4) if flag else torch.zeros(4, 3).t()
    not flag and (y := y.contiguous()) is None
    return y.view(-1)  # safe
""",
    "dims moved that are not there, or twice": """
def f(x, flag):
    y = torch.tensor(1.0)
    if flag:
        y.movedim(0, 0).view(-1)  # unknown
    return torch.zeros(2, 3).movedim((0, -2), (1, 1)).view(-1)  # unknown
""",
    "a dim from the front that may be one of those from the back": """
def f(x):
    z = x.mT
    z.view(z.shape[0], z.shape[1], z.shape[2])  # layout-dependent
    z.view(*z.shape[:2], -1)  # unknown
""",
}

DECORATORS = {
    "decorated": """
def deco(fn):
    def inner(x):
        return fn(x).t()
    return inner
@deco
def h(x):
    return torch.zeros(3, 4)
def f(x):
    return h(x).view(-1)  # unknown
""",
    "decorated transparent": """
import functools
def deco(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        print("x")
        return fn(*args, **kwargs)
    return inner
@deco
def h(x):
    return torch.zeros(4, 3).t()
def f(x):
    return h(x).view(-1)  # failing
""",
    "lambda": """
def f(x):
    h = lambda z: z.t()
    return h(torch.zeros(3, 4)).view(-1)  # failing
""",
}

TESTS_ASKED_TWICE = {
    "same test text twice": """
import random
def f(x):
    y = torch.zeros(3, 4).t()
    if random.random() > 0.5:
        y = y.contiguous()
    if random.random() > 0.5:
        y = y.view(-1)  # layout-dependent
    return y
""",
    "self flag set": """
class A(nn.Module):
    def forward(self, x):
        y = torch.zeros(3, 4).t()
        if self.on:
            y = y.contiguous()
        self.on = True
        if self.on:
            y = y.view(-1)  # layout-dependent
        return y
""",
    "self flag toggled": """
class A(nn.Module):
    def toggle(self):
        self.on = not self.on
    def forward(self, x):
        y = torch.zeros(3, 4).t()
        if self.on:
            y = y.contiguous()
        self.toggle()
        if self.on:
            y = y.view(-1)  # layout-dependent
        return y
""",
    "loop with flag": """
def f(x, cond, n):
    y = torch.zeros(3, 4)
    for i in range(n):
        if cond():
            y = y.t()
        else:
            y.view(-1)  # failing
    return y
""",
}

WRITES = {
    "one of many tuples": """
def pair(x, kind):
    if kind == 0:
        return x, torch.zeros(1)
    if kind == 1:
        return x + 1, torch.zeros(2)
    if kind == 2:
        return x + 2, torch.zeros(3)
    if kind == 3:
        return x + 3, torch.zeros(4)
    if kind == 4:
        return x + 4, torch.zeros(5)
    return x, x.t().view(-1)  # written-through
def f(x, kind):
    a, b = pair(x, kind)
    b[0] = 1
    return a
def g(x, kind):
    found = []
    for k in kind:
        found += [x.t().view(-1), pair(x, k)]  # written-through
    a, b = found
    a[0] = 1
""",
    "held by what is forgotten": """
def f(x, blocks):
    kept = ()
    for block in blocks:
        x = block(x)
        kept += (x.view(-1),)  # unknown
    return kept
def g(x, blocks):
    kept = ()
    for block in blocks:
        x = block(x)
        kept += (x.view(-1),)  # written-through
    kept[0].zero_()
    return kept
""",
    "put into a dict": """
def f(xs, known):
    kept = {}
    for x in xs:
        kept["a"] = x.t().view(-1)  # written-through
        kept["b"] = x
        known[x] = x.t().view(-1)  # failing
        known[0] = x
    kept["a"].zero_()
    return kept
""",
    "through an op that is not known": """
def f(x):
    y = x.t().view(-1)  # written-through
    torch.broadcast_tensors(y, y)[0].add_(1)
    z = x.t().view(-1)  # written-through
    z.an_op()[0].zero_()
    for row in torch.an_op(x.t().view(-1)):  # written-through
        row.zero_()
""",
    "written through dict": """
def f(x, k):
    d = {}
    d[k] = x.t().view(-1)  # written-through
    d[k].zero_()
    return x
""",
    "written through dict literal": """
def f(x, k):
    d = {"a": x.t().view(-1)}  # written-through
    d["a"].zero_()
    return x
""",
    "written through list": """
def f(x, k):
    d = [x.t().view(-1)]  # written-through
    for v in d:
        v.zero_()
    return x
""",
    "written via extend/insert": """
def f(x, k):
    d = []
    d.insert(0, x.t().view(-1))  # written-through
    d[0].zero_()
    e = []
    e.extend([x.t().view(-1)])  # written-through
    e[0].zero_()
    g = []
    g += [x.t().view(-1)]  # written-through
    g[0].zero_()
    h = dict(a=x.t().view(-1))  # written-through
    h["a"].zero_()
    return x
""",
    "written in helper": """
def z(v):
    v.zero_()
def f(x):
    y = x.t().view(-1)  # written-through
    z(y)
    return x
""",
    "written via closure": """
def f(x):
    y = x.t().view(-1)  # written-through
    def z():
        y.zero_()
    z()
    return x
""",
    "written via map/partial/foreach": """
import functools
def f(x):
    y = x.t().view(-1)  # written-through
    torch._foreach_add_([y], 1)
    return x
""",
    "written via out in tuple": """
def f(x, a):
    y = x.t().view(-1)  # written-through
    torch.sort(a, out=(y, y.long()))
    return x
""",
    "written via attribute": """
class A:
    def f(self, x):
        self.flat = x.t().view(-1)  # written-through
        self.flat.zero_()
        return x
""",
    "object attr": """
class O: pass
def f(x):
    o = O()
    o.flat = x.t().view(-1)  # written-through
    o.flat.zero_()
    return x
""",
    "written via generator / enumerate / zip": """
def f(x):
    for i, y in enumerate([x.t().view(-1)]):  # written-through
        y.zero_()
    for a, y in zip([1], [x.t().view(-1)]):  # written-through
        y.zero_()
    return x
""",
    "numpy": """
def f(x):
    y = x.t().view(-1).numpy()  # written-through
    y[0] = 1
    return x
""",
    "numpy shared from_numpy": """
def f(x):
    y = torch.from_numpy(x.t().view(-1).numpy())  # written-through
    y.zero_()
    return x
""",
    "conditional alias": """
def f(x, flag):
    y = x.t().view(-1)  # written-through
    z = y if flag else None
    if z is not None:
        z.zero_()
    return x
""",
    "walrus write": """
def f(x, flag):
    (y := x.t().view(-1)).zero_()  # written-through
    return x
""",
    "chained view write": """
def f(x):
    x.t().view(-1)[0] = 1  # written-through
    x.t().view(-1)[:2].fill_(1)  # written-through
    x.t().view(-1).data.fill_(1)  # written-through
    x.t().view(-1).detach().fill_(1)  # written-through
    x.t().view(-1).narrow(0, 0, 1).copy_(x[0, 0])  # written-through
    return x
""",
    "star": """
def f(x, *ys):
    ys[0].t().view(-1)  # failing
    for y in ys:
        y.t().view(-1).zero_()  # written-through
""",
    "swap write": """
def f(x):
    y, z = x.t().view(-1), x  # written-through
    z, y = y, z
    z.zero_()
    return x
""",
    "F inplace": """
def f(x):
    y = x.t().view(-1)  # written-through
    F.relu(y, inplace=True)
    y2 = x.t().view(-1)  # written-through
    nn.ReLU(inplace=True)(y2)
    y3 = x.t().view(-1)  # written-through
    F.relu_(y3)
    y4 = x.t().view(-1)  # written-through
    nn.init.normal_(y4)
    y5 = x.t().view(-1)  # written-through
    y5 += 1
    y6 = x.t().view(-1)  # written-through
    F.dropout(y6, 0.5, True, True)
    y7 = x.t().view(-1)  # written-through
    torch.nn.utils.clip_grad_norm_(y7, 1)
    y8 = x.t().view(-1)  # written-through
    y8.__setitem__(0, 1)
    y9 = x.t().view(-1)  # written-through
    y9.__iadd__(1)
    return x
""",
}


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(program, id=name)
        for group in (
            CONTROL_FLOW,
            SHARED_NAMES,
            IN_PLACE,
            CONTAINERS,
            ATTRIBUTES,
            DECORATORS,
            TESTS_ASKED_TWICE,
            WRITES,
        )
        for name, program in group.items()
    ],
)
def test_what_changes_on_the_way_is_seen(program: str) -> None:
    check(program)


def test_statements_of_a_class_body_are_passed() -> None:
    check("""
class Net(nn.Module):
    names = {}
    names["a"] = 1

def run(x):
    return x.t().view(-1)  # failing

run(torch.zeros(2, 3))
""")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="`except*` came with Python 3.11")
def test_exception_groups_are_seen() -> None:
    check("""
def f(x, h):
    y = torch.zeros(3, 4)
    try:
        y = y.t()
    except* ValueError:
        pass
    return y.view(-1)  # failing
""")
