import torch


def writer(t):
    a = 1
    b = 2
    c = 3
    d = 4
    e = 5
    f = 6
    t.zero_()
    return a


def middle(t):
    a = 1
    b = 2
    c = 3
    d = 4
    e = 5
    f = 6
    writer(t)
    return a


def outer(t):
    a = 1
    b = 2
    c = 3
    d = 4
    e = 5
    f = 6
    middle(t)
    return a


def use1(x):
    writer(x.t().view(-1))  # written-through
    return x


def use2(x):
    middle(x.t().view(-1))  # written-through
    return x


def use3(x):
    outer(x.t().view(-1))  # written-through
    return x


def use4(x):
    v = x.t().view(-1)  # written-through
    outer(v)
    return x


def rec(t, n):
    if n:
        rec(t, n - 1)
    else:
        t.zero_()


def use5(x):
    rec(x.t().view(-1), 3)  # written-through
    return x


def pong(t, n):
    a = 1
    b = 2
    c = 3
    d = 4
    e = 5
    ping(t, n - 1)
    return a


def ping(t, n):
    a = 1
    b = 2
    c = 3
    d = 4
    if n == 0:
        t.zero_()
    pong(t, n)
    return a


def use6(x):
    pong(x.t().view(-1), 3)  # written-through
    return x


class M:
    def run(self, t):
        a = 1
        b = 2
        c = 3
        d = 4
        e = 5
        self.go(t)
        return a

    def go(self, t):
        a = 1
        b = 2
        c = 3
        d = 4
        e = 5
        self.end(t)
        return a

    def end(self, t):
        a = 1
        b = 2
        c = 3
        d = 4
        e = 5
        t.zero_()
        return a


def use7(x):
    M().run(x.t().view(-1))  # written-through
    return x


def use8(x):
    m = M()
    v = x.t().view(-1)  # written-through
    m.run(v)
    return x
