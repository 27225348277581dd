import functools
import threading
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce

import torch
from torch import nn


def fill(t, value=3.0):
    t.fill_(value)


class Keep:
    def __init__(self, t):
        self.t = t

    def zero(self):
        self.t.zero_()

    @property
    def held(self):
        return self.t


@dataclass
class Data:
    t: torch.Tensor
    n: int = 0


Row = namedtuple("Row", "t n")


def keep_method(x):
    k = Keep(x.t().view(-1))  # written-through
    k.zero()
    return x


def keep_attr(x):
    k = Keep(x.t().view(-1))  # written-through
    k.t.zero_()
    return x


def keep_prop(x):
    k = Keep(x.t().view(-1))  # written-through
    k.held.zero_()
    return x


def keep_by_name(x):
    v = x.t().view(-1)  # written-through
    k = Keep(v)
    k.t.zero_()
    return x


def data_attr(x):
    d = Data(x.t().view(-1))  # written-through
    d.t.zero_()
    return x


def row_attr(x):
    d = Row(x.t().view(-1), 1)  # written-through
    d.t.zero_()
    return x


def row_item(x):
    d = Row(x.t().view(-1), 1)  # written-through
    d[0].zero_()
    return x


def dict_item(x):
    d = {"v": x.t().view(-1)}  # written-through
    d["v"].zero_()
    return x


def dict_call(x):
    d = dict(v=x.t().view(-1))  # written-through
    d["v"].zero_()
    return x


def list_item(x):
    d = [x.t().view(-1)]  # written-through
    d[0].zero_()
    return x


def set_attr(x, o):
    o.v = x.t().view(-1)  # written-through
    o.v.zero_()
    return x


def set_attr_named(x, o):
    setattr(o, "v", x.t().view(-1))  # written-through
    o.v.zero_()
    return x


def partial_kw(x):
    p = partial(fill, value=2.0)
    p(x.t().view(-1))  # written-through
    return x


def partial_bound(x):
    p = partial(fill, x.t().view(-1))  # written-through
    p()
    return x


def partial_bound_kw(x):
    p = partial(fill, t=x.t().view(-1))  # written-through
    p(value=1.0)
    return x


def bound_method_of_view(x):
    p = x.t().view(-1).fill_  # written-through
    p(3)
    return x


def submit(x):
    with ThreadPoolExecutor() as pool:
        pool.submit(fill, x.t().view(-1)).result()  # written-through
    return x


def pool_map(x):
    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, [x.t().view(-1)]))  # written-through
    return x


def thread(x):
    t = threading.Thread(target=fill, args=(x.t().view(-1),))  # written-through
    t.start()
    t.join()
    return x


def map_two(x):
    list(map(fill, [x.t().view(-1)], [1.0]))  # written-through
    return x


def map_lambda(x):
    list(map(lambda t: t.zero_(), [x.t().view(-1)]))  # written-through
    return x


def map_method(x):
    list(map(torch.Tensor.zero_, [x.t().view(-1)]))  # written-through
    return x


def comp(x):
    [t.zero_() for t in (x.t().view(-1),)]  # written-through
    return x


def star(x):
    args = (x.t().view(-1), 2.0)  # written-through
    fill(*args)
    return x


def kwstar(x):
    kw = {"t": x.t().view(-1)}  # written-through
    fill(**kw)
    return x


def unpack(x):
    a, b = x.t().view(-1), 2  # written-through
    a.zero_()
    return x


def walrus(x):
    if (v := x.t().view(-1)) is not None:  # written-through
        v.zero_()
    return x


def ret_helper(x):
    def inner():
        return x.t().view(-1)  # written-through

    inner().zero_()
    return x


def gen_helper(x):
    def inner():
        yield x.t().view(-1)  # written-through

    for v in inner():
        v.zero_()
    return x


def cond(x, f):
    v = x.t().view(-1) if f else x  # written-through
    v.zero_()
    return x


def chain(x):
    v = w = x.t().view(-1)  # written-through
    w.zero_()
    return x


def global_var(x):
    global G
    G = x.t().view(-1)  # written-through
    clear()
    return x


def clear():
    G.zero_()


def enumerate_it(x):
    for i, v in enumerate([x.t().view(-1)]):  # written-through
        v.zero_()
    return x


def zip_it(x):
    for a, v in zip([1], [x.t().view(-1)]):  # written-through
        v.zero_()
    return x


def appended(x):
    l = []
    l.append(x.t().view(-1))  # written-through
    l[0].zero_()
    return x


def appended_loop(x):
    l = []
    for i in range(2):
        l.append(x.t().view(-1))  # written-through
    for v in l:
        v.zero_()
    return x


def foreach(x):
    torch._foreach_zero_([x.t().view(-1)])  # written-through
    return x


def setdata(x, y):
    x.t().view(-1).data[:] = y  # written-through
    return x


def setitem_call(x):
    x.t().view(-1).__setitem__(0, 3)  # written-through
    return x


def copyto(x, y):
    x.t().view(-1).data.copy_(y)  # written-through
    return x


def swap(x, y):
    v = x.t().view(-1)  # written-through
    v[0], v[1] = 1, 2
    return x


def aug_slice(x):
    v = x.t().view(-1)  # written-through
    v[:2] += 1
    return x


def for_target(x):
    v = x.t().view(-1)  # written-through
    for v[0] in range(3):
        pass
    return x


def with_target(x, c):
    v = x.t().view(-1)  # written-through
    with c as v[0]:
        pass
    return x


def delitem(x, op):
    import operator
    operator.setitem(x.t().view(-1), 0, 3)  # written-through
    return x


def nested_ret(x):
    def one(t):
        return t

    one(one(x.t().view(-1))).zero_()  # written-through
    return x


def lam_ret(x):
    (lambda t: t)(x.t().view(-1)).zero_()  # written-through
    return x


def reduce_it(x):
    reduce(lambda a, b: a.add_(b), [x.t().view(-1), 1])  # written-through
    return x


def memo(x):
    c = {}
    c["v"] = x.t().view(-1)  # written-through
    c["v"].zero_()
    return x


def attr_chain(x):
    class NS:
        pass
    ns = NS()
    ns.v = x.t().view(-1)  # written-through
    ns.v.zero_()
    return x


def np_write(x):
    a = x.t().view(-1).numpy()  # written-through
    a[0] = 3
    return x


def np_helper(x):
    def w(a):
        a[0] = 3
    w(x.t().view(-1).numpy())  # written-through
    return x


def detach_write(x):
    x.t().view(-1).detach().zero_()  # written-through
    return x


def module_inplace(x):
    nn.ReLU(True)(x.t().view(-1))  # written-through
    return x


def module_inplace_self(x):
    act = nn.Sequential(nn.ReLU(inplace=True))
    act(x.t().view(-1))  # written-through
    return x


def out_kw(x, y):
    torch.add(y, y, out=x.t().view(-1))  # written-through
    return x


def out_kw_dict(x, y):
    kw = dict(out=x.t().view(-1))  # written-through
    torch.add(y, y, **kw)
    return x
