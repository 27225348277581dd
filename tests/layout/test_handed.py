"""Functions that are handed on as values: in loops, tables, arguments and lambdas."""

from __future__ import annotations

import pytest

from tests.layout.verdicts import check

FLAT = """
def flat(t):
    return t.view(-1)  # {}
def other(t):
    return t.view(-1)  # {}
def turned(t):
    return t.t()
def copied(t):
    return t.contiguous()
"""

REFUSED = {
    "a loop over a tuple": """
def f():
    for fn in (flat, other):
        fn(torch.rand(2, 3).t())
""",
    "a loop over a list with a name": """
def f():
    fns = [flat, other]
    for fn in fns:
        fn(torch.rand(2, 3).t())
""",
    "a loop over a list of the module": """
FNS = [flat, other]
def f():
    for fn in FNS:
        fn(torch.rand(2, 3).t())
""",
    "numbered": """
def f():
    for i, fn in enumerate((flat, other)):
        fn(torch.rand(2, 3 + i).t())
""",
    "zipped": """
def f(a=3):
    for fn, t in zip((flat, other), (torch.rand(2, 3).t(), torch.rand(2, a).t())):
        fn(t)
""",
    "a table": """
TABLE = {"flat": flat, "other": other}
def f(name):
    return TABLE[name](torch.rand(2, 3).t())
""",
    "the items of a table": """
TABLE = {"flat": flat, "other": other}
def f():
    for name, fn in TABLE.items():
        fn(torch.rand(2, 3).t())
""",
    "the values of a table": """
def f():
    for fn in {"flat": flat, "other": other}.values():
        fn(torch.rand(2, 3).t())
""",
    "a comprehension": """
def f():
    return [fn(torch.rand(2, 3).t()) for fn in (flat, other)]
""",
    "arguments": """
def call(fn, t):
    return fn(t)
def f():
    call(flat, torch.rand(2, 3).t())
    call(t=torch.rand(2, 3).t(), fn=other)
""",
    "mapped": """
def f():
    list(map(flat, [torch.rand(2, 3).t()]))
    return list(map(other, [torch.rand(2, 3).t()]))
""",
    "another name": """
def f(on):
    fn = flat if on else other
    fn(torch.rand(2, 3).t())
""",
    "rounds that hand on": """
def f():
    x = torch.rand(2, 3)
    for fn in (copied, turned, flat):
        x = fn(x)
    x = torch.rand(2, 3)
    for fn in (copied, turned, other):
        x = fn(x)
""",
}


@pytest.mark.parametrize("program", REFUSED.values(), ids=REFUSED.keys())
def test_what_a_function_is_given_under_another_name_is_seen(program: str) -> None:
    check(FLAT.format("failing", "failing") + program)


APART = {
    "rows": """
def f():
    for fn, t in ((other, torch.rand(2, 3)), (flat, torch.rand(2, 3).t())):
        fn(t)
""",
    "rows with a name": """
def f():
    rows = [(other, torch.rand(2, 3)), (flat, torch.rand(2, 3).t())]
    for fn, t in rows:
        fn(t)
""",
}


@pytest.mark.parametrize("program", APART.values(), ids=APART.keys())
def test_a_function_meets_only_what_stands_beside_it(program: str) -> None:
    check(FLAT.format("failing", "layout-dependent") + program)


TOGETHER = {
    "rows that grow": """
def f():
    rows = []
    rows.append((other, torch.rand(2, 3)))
    rows.append((flat, torch.rand(2, 3).t()))
    for fn, t in rows:
        fn(t)
""",
    "by a number": """
def f():
    fns, ts = [other, flat], [torch.rand(2, 3), torch.rand(2, 3).t()]
    for i in range(2):
        fns[i](ts[i])
""",
}


@pytest.mark.parametrize("program", TOGETHER.values(), ids=TOGETHER.keys())
def test_what_goes_with_which_function_is_not_guessed(program: str) -> None:
    check(FLAT.format("layout-dependent", "layout-dependent") + program)


OTHERS = {
    "methods": """
class Net(nn.Module):
    def first(self, x):
        return x.view(-1)  # failing
    def second(self, x):
        return x.view(-1)  # failing
    def forward(self):
        for step in (self.first, self.second):
            step(torch.rand(2, 3).t())
""",
    "functions inside": """
def f():
    def flat(t):
        return t.view(-1)  # failing
    for fn in [flat]:
        fn(torch.rand(2, 3).t())
""",
    "lambdas": """
def f():
    for fn in (lambda t: t.contiguous(),
               lambda t: t.view(-1),  # failing
               lambda t: t.view(t.shape)):  # safe
        fn(torch.rand(2, 3).t())
def g():
    flat = lambda t: t.view(-1)  # failing
    return flat(torch.rand(2, 3).t())
def h(ts):
    return list(map(lambda t: t.view(-1), ts))  # failing
def i():
    h([torch.rand(2, 3).t()])
""",
    "what the last one leaves": """
def turned(t):
    return t.t()
def copied(t):
    return t.contiguous()
def f(x=None):
    x = torch.rand(2, 3)
    for fn in (copied, turned):
        y = fn(x)
    y.view(-1)  # failing
    for fn in (turned, copied):
        y = fn(x)
    return y.view(-1)  # safe
def g(c, d):
    x = torch.rand(2, 3)
    for fn in (turned, copied):
        y = fn(x)
        if c:
            break
    y.view(-1)  # failing
    for fn in (turned, copied):
        if c:
            continue
        y = fn(x)
    else:
        y.view(-1)  # failing
    return None
def h(c):
    x = torch.rand(2, 3)
    for fn in (turned, copied):
        y = fn(x)
        if not c:
            return y
    return y.view(-1)  # safe
""",
}


@pytest.mark.parametrize("program", OTHERS.values(), ids=OTHERS.keys())
def test_verdicts_are_as_claimed(program: str) -> None:
    check(program)


TABLES = {
    "a table of the module, to which any file may add": """
def copied(t):
    return t.contiguous()
def turned(t):
    return t.t()
TABLE = {"copied": copied, "again": copied}
OTHER = {"turned": turned}
def f(name, x):
    y = TABLE["copied"](x)
    y.view(-1)  # safe
    y = TABLE[name](x)
    y.view(-1)  # unknown
    for fn in TABLE.values():
        y = fn(x)
        y.view(-1)  # unknown
    y = OTHER["turned"](x)
    return y.view(-1)  # failing
""",
}


@pytest.mark.parametrize("program", TABLES.values(), ids=TABLES.keys())
def test_a_table_is_not_complete(program: str) -> None:
    check(program)


CHANGED = {
    "grown": """
def f():
    ts = [torch.rand(2, 3)]
    for t in ts:
        ts.append(torch.rand(2, 3).t())
        t.view(-1)  # failing
""",
    "written": """
def f():
    ts = [torch.rand(2, 3), torch.rand(2, 3)]
    for t in ts:
        t.view(-1)  # failing
        ts[1] = torch.rand(2, 3).t()
""",
    "of functions": """
def turned(t):
    return t.t()
def copied(t):
    return t.contiguous()
def f():
    fns = [copied]
    for fn in fns:
        y = fn(torch.rand(2, 3))
        fns.append(turned)
        y.view(-1)  # failing
""",
    "under another name": """
def f():
    ts = [torch.rand(2, 3)]
    us = ts
    for i, t in enumerate(us):
        ts.append(torch.rand(2, 3).t())
        t.view(-1)  # unknown
""",
}


@pytest.mark.parametrize("program", CHANGED.values(), ids=CHANGED.keys())
def test_a_list_that_is_changed_while_a_loop_runs_over_it_is_not_as_it_was(program: str) -> None:
    check(program)
