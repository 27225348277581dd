"""What the analysis says of views in small programs.  Claims stand at the line that they are about."""

from __future__ import annotations

import pytest

from tests.layout.verdicts import check, rulings

SAFE = {
    "a shape that was compared": """
def f(x, b, t):
    if x.contiguous().shape != (b, t):
        return x
    y = x.t()
    if y.shape != (t, b):
        raise ValueError(y.shape)
    return y.view(t, b)  # safe
""",
    "sizes that names stand for stay theirs": """
def f(x, rows, width):
    x = torch.zeros_like(x.contiguous())
    b, t, c = x.shape
    assert x.shape == (rows, t, width)
    return x.transpose(0, 1).view(t, b, 2, c // 2)  # safe
""",
    "cut to a size that is smaller whatever it is": """
def f(n, w):
    x = torch.zeros(n, w + 1, 2 * w - 1)[:, :w, w - 1 :]
    return x.view(n, 1, w, w)  # safe
""",
    "unpacked from the shape of one of two": """
def f(x, y, is_first):
    z = torch.zeros_like(x.contiguous()) if is_first else torch.zeros_like(y.contiguous())
    z = z[:, 1:]
    b, t, c = z.shape
    return z.view(b, t, 2, c // 2)  # safe
""",
    "a number that is one of several is the same wherever it is read": """
def f(n, is_large):
    if is_large:
        w = n * 2
    else:
        w = n + 5
    side = w
    return torch.zeros(3, 4, side).transpose(0, 1).view(4, 3, side, 1)  # safe
""",
    "a size that is not followed stays apart": """
def f(n, sizes):
    x = torch.zeros(n, max(sizes), 4).transpose(0, 1)
    return x.view(x.shape[0], n, 2, 2)  # safe
""",
    "sizes that are elements of an argument": """
def f(size: tuple[int, int]):
    return torch.zeros(size[1], size[0]).t().view(size[0], size[1])  # safe
""",
    "a size that only the others fix": """
def f(n, m, parts):
    b, t, c = torch.zeros(n, m, 4).shape
    x = torch.zeros(b, t, 4, 8).transpose(1, 2)
    return x.view(b, 4, parts, 8)  # safe
""",
    "an attribute that is a layer or None is called": """
class M(nn.Module):
    def __init__(self, width, is_open):
        super().__init__()
        self.proj = None
        if is_open:
            self.proj = nn.Linear(width, width)

    def forward(self, x):
        return self.proj(x.transpose(1, 2)).view(-1)  # safe
""",
    "transposed in place and back": """
def f():
    x = torch.zeros(2, 3)
    x.t_()
    x.t_()
    return x.view(-1)  # safe
""",
    "the shape that an axis was shifted through": """
def f(s):
    shape = s.shape
    z = s.new_zeros(*shape[:2], shape[3] + 1, shape[2])
    return z[..., 1:, :].view(shape)  # safe
""",
    "behind a field that a class was built with": """
class M(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.proj = nn.Linear(config.width, config.width)

    def forward(self, x):
        b, t, _ = x.shape
        return self.proj(x).view(b, t, self.heads, -1).transpose(1, 2).contiguous().view(-1)  # safe
""",
    "a name of a loop before is bound anew": """
def f(x, n):
    y = x.t()
    for i in range(n):
        y = torch.relu(y)
    y = torch.zeros(n, 3)
    return y.view(-1)  # safe
""",
    "a pure split of a transposed tensor": """
def f(x):
    b, t, c = x.shape
    return x.transpose(0, 1).view(t, b, 4, c // 4)  # safe
""",
    "the leading dims are kept by a star": """
def f(x, heads):
    y = x.transpose(0, 1)
    return y.view(*y.shape[:-1], heads, -1)  # safe
""",
    "arguments spread from a dict that is written out": """
class M(nn.Module):
    def __init__(self, width, device=None, dtype=None):
        super().__init__()
        dd = {"device": device, "dtype": dtype}
        self.proj = nn.Linear(width, width, **dd)

    def forward(self, x):
        return self.proj(x.transpose(1, 2)).view(-1)  # safe
""",
    "a number by its annotation, whatever is passed": """
class Norm(nn.Module):
    def __init__(self, width, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class M(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.proj = nn.Linear(config.width, config.width)
        self.norm = Norm(config.width, eps=config.eps)

    def forward(self, x):
        return self.norm(self.proj(x)).view(-1)  # safe
""",
    "contiguous and clone": """
def f(x):
    y = x.permute(0, 2, 1).contiguous()
    return y.view(-1)  # safe
""",
    "a linear layer returns a contiguous tensor": """
class M(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.proj = nn.Linear(d, d)

    def forward(self, x):
        return self.proj(x.transpose(0, 1)).view(-1)  # safe
""",
    "softmax does too": """
def f(x):
    return x.transpose(1, 2).softmax(-1).view(-1)  # safe
""",
    "back and forth": """
def f(x):
    y = torch.zeros(2, 3, 4)
    return y.transpose(1, 2).transpose(1, 2).view(-1)  # safe
""",
    "pixels after a convolution": """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        y = self.conv(x)
        b, c, h, w = y.shape
        return y.view(b, c, h * w)  # safe
""",
    "pooled to one pixel": """
def f(x):
    return F.adaptive_avg_pool2d(x, 1).view(x.size(0), -1)  # safe
""",
    "a size of one between": """
def f(n):
    return torch.zeros(n, 5).unsqueeze(1).transpose(1, 2).view(-1)  # safe
""",
    "both branches are contiguous": """
def f(x):
    y = x.t()
    if not y.is_contiguous():
        y = y.contiguous()
    return y.view(-1)  # safe
""",
    "an assertion of the author": """
def f(x):
    assert x.is_contiguous()
    return x.view(-1)  # safe
""",
    "a list of fresh tensors": """
def f(n):
    rows = []
    for i in range(n):
        rows.append(torch.zeros(3, 4))
    return torch.stack(rows).view(-1)  # safe
""",
    "a helper that returns a copy": """
def dense(x):
    return x.t().contiguous()


def f(x):
    return dense(x).view(-1)  # safe
""",
}

FAILING = {
    "sizes that an assertion tells": """
class M(nn.Module):
    def forward(self, weights, v, t, b, width):
        x = torch.bmm(weights, v)
        assert list(x.size()) == [b * self.heads, t, self.dim]
        return x.transpose(0, 1).view(t, b, width)  # failing
""",
    "stacked of what differs by the path": """
def f(mask, b, t):
    if mask is None:
        mask = torch.ones(b, t)
    return torch.stack((mask, mask, mask), dim=1).permute(0, 2, 1).view(b, 3 * t)  # failing
""",
    "split by a number that is one of several": """
class M(nn.Module):
    def __init__(self, width, heads, dim=None):
        super().__init__()
        self.heads = heads
        self.dim = dim or width // heads
        self.inner = heads * self.dim

    def forward(self, x):
        b, _, h, w = x.shape
        x = torch.zeros(b, self.inner * 3, h, w)
        q, k, v = torch.split(x, [self.inner, self.inner, self.inner], dim=1)
        return q.view(b * self.heads, self.dim, -1), k, v  # failing
""",
    "a product with what is not followed has the rank of the other operand at least": """
class M(nn.Module):
    def __init__(self, dim, heads, attend):
        super().__init__()
        self.heads, self.attend = heads, attend
        self.v = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        v = self.v(x).view(b, t, self.heads, c // self.heads).transpose(1, 2)  # safe
        return (self.attend(x) @ v).transpose(1, 2).view(b, t, c)  # failing
""",
    "an operand that repeats a dim leaves its place to the next": """
def f(n, m):
    rows = torch.zeros(m).expand(n, m)
    return (rows + torch.zeros(m, n).t()).view(-1)  # failing
""",
    "a grid repeats each of its axes": """
def f(n, m):
    rows, columns = torch.meshgrid(torch.arange(n), torch.arange(m), indexing="ij")
    return rows.view(-1), columns.view(-1)  # failing
""",
    "windows put together where a rest was padded": """
def f(x, window):
    b, h, w, c = x.shape
    more = (window - h % window) % window
    height = h + more
    rows, columns = height // window, w // window
    x = torch.zeros(b * rows * columns, window * window, c)
    x = x.view(b, rows, columns, window, window, c).transpose(2, 3)  # safe
    return x.view(b, height, w, c)  # failing
""",
    "each of too many alternatives is a product": """
def f(q, k, v, a, b, c, d):
    h, t = q.shape[:2]
    q, k, v = (torch.zeros(2, h, t, 8), torch.zeros(2, h, t, 8), torch.zeros(2, h, t, 8))
    if a:
        q = q * 2
    if b:
        q = torch.zeros(2, h, t, 8)
    if c:
        k = torch.zeros(2, h, t, 8)
    if d:
        k = k.transpose(1, 2).contiguous().transpose(1, 2)
    if a:
        v = torch.ones(2, h, t, 8)
    return (q @ k.transpose(-1, -2) @ v).transpose(1, 2).view(2, t, h * 8)  # failing
""",
    "dims that are counted from the front where others were from behind": """
def f(weights, bank, indices):
    x = (weights.unsqueeze(-1) * bank[indices].contiguous()).sum(-2)
    return x.transpose(1, 2).view(-1, 4)  # failing
""",
    "the order of two products that are repeated against each other": """
def f(q, rows, columns):
    b, h, w, c = q.shape
    q = torch.zeros(b, h, w, c)
    left = torch.einsum("bhwc,hkc->bhwk", q, torch.zeros(h, 5, c))
    right = torch.einsum("bhwc,wkc->bhwk", q, torch.zeros(w, 6, c))
    return (left[:, :, :, :, None] + right[:, :, :, None, :]).view(b, h * w, 30)  # failing
""",
    "fewer dims than cannot be merged, of sizes that nothing tells": """
def f(a, b, c, n, width):
    y = torch.stack((a, b, c), dim=1).permute(0, 2, 1, 3)
    return y.view(n, width)  # failing
""",
    "windows that are put together again": """
def f(windows, window, height, width):
    c = windows.shape[-1]
    x = windows.view(-1, height // window, width // window, window, window, c)  # layout-dependent
    return x.permute(0, 1, 3, 2, 4, 5).view(-1, height, width, c)  # failing
""",
    "windows of a size in a tuple": """
def f(x, size: tuple[int, int]):
    b, h, w, c = x.shape
    x = x.view(b, h // size[0], size[0], w // size[1], size[1], c)  # layout-dependent
    return x.permute(0, 1, 3, 2, 4, 5).view(-1, size[0], size[1], c)  # failing
""",
    "heads of an unbound projection": """
class M(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qk = nn.Linear(width, 2 * width)

    def forward(self, x):
        b, t, c = x.shape
        q, k = self.qk(x).reshape(b, t, 2, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = q @ k.transpose(2, 3) @ k
        return y.transpose(1, 2).view(b, t, -1)  # failing
""",
    "transposed in place": """
def f():
    x = torch.zeros(2, 3)
    x.t_()
    return x.view(-1)  # failing
""",
    "given other data": """
def f():
    x = torch.zeros(2, 3)
    x.data = torch.zeros(3, 2).t()
    return x.view(-1)  # failing
""",
    "a loop hands on what it transposes": """
def f(x, n):
    y = torch.zeros(2, n)
    for _ in range(n):
        z = y.contiguous()
        y = z.t()
    return z.t().view(-1)  # failing
""",
    "two functions below a caller that hands it on": """
def flat(x):
    return torch.relu(x.transpose(0, 1).view(-1))  # failing

def caller(x):
    y = flat(x)
    y[0] = 1
""",
    "heads merged behind a transpose": """
def f(x):
    b, h, t, d = x.shape
    return x.transpose(1, 2).view(b, t, h * d)  # failing
""",
    "elementwise ops keep the order": """
def f(x):
    y = torch.relu(x.transpose(1, 2)) * 2.0 + 1
    return y.view(y.size(0), -1)  # failing
""",
    "a part of the last dim": """
def f(x):
    a, b = torch.chunk(x, 2, dim=-1)
    return a.view(x.size(0), -1) if x.dim() == 3 else None  # failing
""",
    "an expanded dim": """
def f(x):
    y = torch.zeros(3, 1, 4).expand(3, 5, 4)
    return y.view(15, 4)  # failing
""",
    "one branch is enough": """
def f(x, flip):
    y = torch.zeros(2, 3)
    if flip:
        y = y.t()
    return y.view(-1)  # failing
""",
    "a helper that transposes": """
def swapped(x):
    return x.transpose(0, 1)


def f(n):
    return swapped(torch.zeros(n, 3)).view(-1)  # failing
""",
    "a caller in the file passes a slice": """
def rows(x):
    return x.view(-1, 4)  # failing


def f():
    return rows(torch.zeros(3, 5, 4)[:, :2])
""",
    "the output of a batch-first LSTM": """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 5, batch_first=True)

    def forward(self, x):
        y, _ = self.rnn(x)
        return y.view(y.size(0), -1)  # failing
""",
    "a gradient in a custom backward": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad.view(-1)  # failing
""",
    "in a comprehension": """
def f(xs):
    return [x.t().view(-1) for x in xs]  # failing
""",
    "in a lambda": """
def f(xs):
    return map(lambda x: x.t().view(-1), xs)  # failing
""",
    "at the module's top level": """
y = torch.zeros(2, 3).t().view(-1)  # failing
""",
    "in a nested function": """
def outer(x):
    y = x.t()

    def inner():
        return y.view(-1)  # failing

    return inner()
""",
    "after a loop": """
def f(x, n):
    y = torch.zeros(2, 3)
    for _ in range(n):
        y = y.t()
    return y.view(-1)  # failing
""",
    "contiguous as a statement of its own does nothing": """
def f(x):
    y = x.t()
    y.contiguous()
    return y.view(-1)  # failing
""",
}

DEPENDENT = {
    "a pixel cut out of an image is not channels_last": """
def f(x):
    b, c, h, w = x.shape
    return F.pad(x.narrow(3, 0, 1).narrow(2, 0, 1), (1, 1)).view(-1)  # layout-dependent
""",
    "only where a loop never runs": """
def f(layers):
    x = torch.zeros(2, 3).t()
    for layer in layers:
        x = x.contiguous()
    return x.view(-1)  # layout-dependent
""",
    "viewed like another tensor, of who knows how many dims": """
def f(m, x):
    return m.view(x.shape[:-2]).view(-1)  # layout-dependent
""",
    "a view that was accepted, and may have kept the dims apart": """
def f(p):
    return p.view(2, 3).view(-1)  # layout-dependent
""",
    "an index takes all dims but one, of who knows how many": """
def f(u, i):
    return u[:, i].view(-1, 1)  # layout-dependent
""",
    "a slice of the channels keeps them together": """
def f(x):
    y = x[:, :-4]
    b, _, h, w = y.shape
    return y.view(b, -1)  # layout-dependent
""",
    "an argument of a public function": """
def f(x):
    return x.view(x.size(0), -1)  # layout-dependent
""",
    "channels merged with pixels after a convolution": """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.conv(x).relu().view(x.size(0), -1)  # layout-dependent
""",
    "a convolution's weight": """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.conv.weight.view(8, -1)  # layout-dependent
""",
}

WRITTEN = {
    "what a caller two calls up gets": """
def flat(x):
    return x.transpose(0, 1).view(-1)  # written-through

def between(x):
    return flat(x)

def caller(x):
    y = between(x)
    y[0] = 1
""",
    "what a method keeps of a function's result": """
def flat(x):
    y = x.transpose(0, 1).view(-1)  # written-through
    return y

class A:
    def keep(self, x):
        z = flat(x)
        self.cache = z
""",
    "copy_": """
def f(p, values):
    p.data.view(-1).copy_(values)  # written-through
""",
    "item assignment": """
def f(x, i):
    x.view(-1)[i] = 0.0  # written-through
""",
    "out=": """
def f(x, a, b):
    torch.add(a, b, out=x.view(-1))  # written-through
""",
    "received into": """
import torch.distributed as dist
def f(x):
    y = x.t().view(-1)  # written-through
    dist.all_reduce(y)
    return x
def g(x):
    y = x.t().view(-1)  # failing
    dist.send(y, 1)
    return x
""",
    "an optimizer": """
def f(x):
    y = x.t().view(-1)  # written-through
    return torch.optim.SGD([y], lr=0.1)
""",
    "functions that write": """
import operator
def f(x):
    np.copyto(x.t().view(-1).numpy(), 1)  # written-through
    return x
def g(x):
    y = x.t().view(-1)  # written-through
    operator.iadd(y, 1)
    return x
def h(x):
    y = memoryview(x.t().view(-1).numpy())  # written-through
    y[0] = 1
    return x
""",
    "an initialiser": """
def f(w):
    nn.init.constant_(w.data.view(w.size(0), -1), 0.5)  # written-through
""",
    "numpy": """
def f(x, i):
    x.view(-1).numpy()[i] = 1.0  # written-through
""",
    "through a name and a slice": """
def f(x):
    y = x.t().view(-1)  # written-through
    z = y[2:]
    z += 1
    return x
""",
    "what nothing else leads to": """
class A:
    def __init__(self, x):
        self.w = torch.ones(2, 3).t().view(-1)  # failing
        self.v = x.t().view(-1)  # written-through

def f(x):
    y = torch.full_like(x.t(), 1.0).view(-1)  # failing
    y[0] = 2
    return y

def g(x):
    y = (x.t() * 2).view(-1)  # failing
    y[0] = 2
    return y

def h(x):
    z = x.t() * 2
    y = z.view(-1)  # written-through
    y[0] = 2
    return y, z

def i(x):
    y = (z := x.t() * 2).view(-1)  # written-through
    y[0] = 2
    return y, z

def j(x):
    y = x.t().float().view(-1)  # written-through
    y[0] = 2
    return y

def k(x, o):
    y = torch.mul(x.t(), 2, out=o.t()).view(-1)  # written-through
    y[0] = 2
    return y

def keep(x):
    global K
    K = x.t() * 2
    return K

def m(x):
    y = keep(x).view(-1)  # written-through
    y[0] = 2
    return y
""",
    "in a helper": """
def clear(t):
    t.zero_()


def f(x):
    clear(x.t().view(-1))  # written-through
""",
    "what a caller gets of a product that no name holds": """
def f(weights, values, bias):
    y = (weights @ values).transpose(1, 2).view(2, 4, 15)  # failing
    y += bias
    torch.bmm(bias, values).mT.view(-1).add_(1)  # failing
    return y

def g(x):
    return f(torch.rand(2, 3, 4, 4), torch.rand(2, 3, 4, 5), x)
""",
    "a product whose name is bound anew or not read again": """
def f(weights, values, bias):
    y = weights @ values
    n, h, t, d = y.shape
    y = y.transpose(1, 2)
    y = y.view(n, t, h * d)  # failing
    y += bias
    product = torch.matmul(weights, values)
    z = product.mT.view(n, -1)  # failing
    z.zero_()
    return y, z

def g(x):
    return f(torch.rand(2, 3, 4, 4), torch.rand(2, 3, 4, 5), x)
""",
    "a product that something holds": """
def f(weights, values, found):
    a = weights @ values
    found.append(a)
    a = a.mT.view(24, -1)  # written-through
    a += 1
    b = weights @ values
    first = lambda: b[0]
    b = b.mT.view(24, -1)  # written-through
    b += 1
    c = weights @ values
    c = d = weights @ values
    c = c.mT.view(24, -1)  # written-through
    c += 1
    e = weights @ values
    for k in range(2):
        e = e.mT.view(24, -1)  # written-through
        e += 1
    return found, first, d, e

def g():
    return f(torch.rand(2, 3, 4, 4), torch.rand(2, 3, 4, 5), [])
""",
    "a product that a name holds": """
def f(weights, values):
    held = torch.matmul(weights, values)
    y = held.transpose(1, 2).view(2, 4, 15)  # written-through
    y[0] = 1
    z = (other := weights @ values).transpose(1, 2).view(2, 4, 15)  # written-through
    z[0] = 1
    return held, other

def g():
    return f(torch.rand(2, 3, 4, 4), torch.rand(2, 3, 4, 5))
""",
    "a fresh tensor may be written": """
def f(shape, hits):
    mask = torch.zeros(shape, dtype=torch.bool)
    mask.view(-1)[hits] = True  # safe
    return mask
""",
}

OTHERS = {
    "more alternatives than are told apart": """
def f(x, g, a, b, c):
    if a == 1:
        y = torch.zeros(3, 4)
    elif a == 2:
        y = torch.zeros(2, 3, 4).transpose(0, 1)
    elif a == 3:
        y = g.y
    else:
        y = x[0]
    if b == 1:
        w = torch.zeros(5, 4)
    elif b == 2:
        w = g.w
    else:
        w = x[1].t()
    bias = None
    if c:
        bias = g.bias
    F.linear(y, w, bias).view(-1)  # safe
    torch.broadcast_to(y, w.shape).view(-1)  # unknown
""",
    "the sizes that a tensor of this rank has": """
def f(x):
    y = x[:, 1:]
    return y.view(y.shape[-2], y.size(1))  # unknown
def g(x):
    y = x.transpose(1, 0)
    return y.view(6, y.size(1), y.size(2))  # unknown
def h(x):
    y = x.transpose(1, 0)
    return y.view(6, y.size(2), y.size(1))  # failing
""",
    "an element that is written between": """
def f(size: list):
    y = torch.zeros(size[1], size[0]).t()
    size[0], size[1] = size[1], size[0]
    return y.view(size[0], size[1])  # unknown
""",
    "a dict that was changed before it is spread": """
class M(nn.Module):
    def __init__(self, width, options):
        super().__init__()
        dd = {"kernel_size": 1}
        dd.update(options)
        self.conv = nn.Conv2d(width, width, **dd)

    def forward(self, x):
        y = self.conv(x)
        return y.view(-1)  # unknown
""",
    "defaults that a spread dict may replace": """
def turned(x, swap=False):
    if swap:
        return x.transpose(0, 1)
    return x


def f(options):
    x = torch.zeros(3, 4)
    return turned(x, **options).view(-1)  # failing
""",
    "dims counted from both ends may be the same": """
def f(x):
    y = torch.stack([x.split(2, 1)[0], x.split(2, 1)[0]], 0).transpose(-1, -2)
    return y.view(y.shape[0], y.shape[1], y.shape[2], y.shape[3], -1)  # layout-dependent
""",
    "another name of what is transposed in place": """
def f():
    x = torch.zeros(2, 3, 4)
    y = x
    z = x.transpose_(0, 1)
    return y.view(-1)  # unknown
""",
    "resized in place": """
def f():
    x = torch.zeros(2, 3).t()
    x.resize_(2, 2)
    return x.view(-1)  # unknown
""",
    "set to another storage": """
def f(w):
    x = torch.zeros(2, 3)
    x.set_(w)
    return x.view(-1)  # unknown
""",
    "a function sees what is bound below it": """
def f(x):
    y = torch.zeros(3, 4)

    def inner():
        return y.view(-1)  # unknown

    y = x.t()
    return inner()
""",
    "a function sees what an object has by then": """
class A:
    def f(self, x):
        self.y = torch.zeros(3, 4)

        def inner():
            return self.y.view(-1)  # unknown

        self.y = x.t()
        return inner()
""",
    "a field that is called like a method": """
def f(posterior):
    return posterior.mean.view(-1)  # unknown
""",
    "a method of what may be None": """
def f(x, on):
    y = torch.zeros(3, 4).t() if on else None
    return y.view(-1)  # failing
""",
    "the helper that takes a bmm in chunks": """
from pkg._chunked_bmm import chunked_bmm

def f(x, y):
    return chunked_bmm(x, y).view(-1)  # safe
""",
    "a dim that is written out may be just that": """
def f(x):
    b, t, c = x.shape
    return x.transpose(1, 2).view(b, 8, -1)  # unknown
""",
    "a size of another tensor may be the same": """
def f(x, m):
    b, t, _, h, w = m.size()
    first, second = torch.split(x, [2, 2], dim=2)
    return first.view(-1, 2, h, w)  # unknown
""",
    "which dim a squeeze takes": """
class M(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv1d(channels, 1, 7)

    def forward(self, x):
        return self.conv(x).squeeze(0).transpose(1, 0).view(-1)  # unknown
""",
    "a field of what a model returns": """
def f(model, x):
    return model(x).logits.view(-1)  # layout-dependent
""",
    "modules that are moved": """
class N(nn.Module):
    def forward(self, x):
        return x.contiguous()
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4).to("cpu")
        self.b = N().to(dtype=torch.float32).eval()
        self.c = nn.Linear(3, 4)
    def forward(self, x):
        self.a(x.contiguous()).view(-1)  # safe
        self.b(x).view(-1)  # safe
        return self.c.half()(x.contiguous()).view(-1)  # safe
""",
    "a list that grows in loops": """
def f(n, rows):
    found, indices = {}, []
    for one in rows:
        for other in rows:
            key = (one, other)
            if key not in found:
                found[key] = len(found)
            indices.append(found[key])
    return torch.tensor(indices, dtype=torch.long).view(n, n)  # safe
""",
    "as_tensor": """
def f(x, xs, data):
    torch.as_tensor([1.0, 2.0]).view(-1)  # safe
    torch.as_tensor(x.t()).view(-1)  # failing
    torch.as_tensor(data.pos, dtype=torch.float32).view(-1)  # layout-dependent
    y = torch.as_tensor(x.t().view(-1))  # written-through
    y.zero_()
""",
    "a parameter of either": """
class M(nn.Module):
    def __init__(self, n, is_wide):
        super().__init__()
        if is_wide:
            data = torch.zeros(1, n)
        else:
            data = torch.zeros(1, 3)
        self.bias = nn.Buffer(data)
    def forward(self):
        return self.bias.view(-1)  # safe
""",
    "short calls in a row": """
def make(n):
    return nn.Linear(n, n)
class Head(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.decoder = make(n)
    def forward(self, x):
        x = self.decoder(x)
        return x
class Heads(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.head = Head(n)
    def forward(self, x):
        return self.head(x)
class M(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.cls = Heads(n)
    def forward(self, x):
        return self.cls(x).view(-1, 3)  # safe
""",
    "parts of arguments": """
def f(data, config, idxs):
    pos, col = data.pos, data.col
    (pos[col] - pos[0]).view(-1)  # layout-dependent
    data.x.t().view(-1)  # failing
    data["x"].view(-1)  # layout-dependent
    config.make(data).t().view(-1)  # layout-dependent
    (data.x + len(config)).view(-1)  # layout-dependent
    (data.x + unheard_of(data)).view(-1)  # unknown
    torch.tensor(idxs).view(-1)  # layout-dependent
    torch.tensor([i for i in idxs]).view(-1)  # safe
    return (data.x > 0).nonzero().view(-1)  # layout-dependent
class M(nn.Module):
    def __init__(self, norm_layer):
        super().__init__()
        self.norm = norm_layer(3)
    def forward(self, x):
        self.norm(x).view(-1)  # layout-dependent
        return self.norm(x).transpose(1, 2).view(-1)  # layout-dependent
""",
    "a product with a number": """
def f(x):
    return torch.matmul(x, torch.ones(())).view(-1)  # unknown
""",
    "match on a truth value": """
def f(x, on):
    match on:
        case True:
            return x.t().view(-1)  # failing
        case _:
            return x.contiguous().view(-1)  # safe
""",
    "a dtype": """
def f(x):
    return x.view(torch.uint8)  # not-a-shape-view
""",
    "a dtype by name": """
def f(x):
    return x.view(dtype=torch.uint8)  # not-a-shape-view
""",
    "the dtype of another tensor": """
def f(x, y):
    return x.view(y.dtype)  # not-a-shape-view
""",
    "numpy's view": """
def f(n):
    return np.zeros(n).view(np.uint8)  # not-a-shape-view
""",
    "a class of the file": """
class Page:
    def view(self, request):
        return request


def f(page: Page):
    return page.view(1)  # not-a-shape-view
""",
    "super": """
class T(torch.Tensor):
    def view(self, *shape):
        return super().view(*shape)  # not-a-shape-view
""",
    "what a function returns": """
def f(g, x):
    return g(x).view(-1)  # layout-dependent
""",
    "unknown, but a split": """
def f(g, x):
    y = g(x)
    return y.view(*y.shape[:-1], 2, -1)  # safe
""",
}

PROGRAMS = SAFE | FAILING | DEPENDENT | WRITTEN | OTHERS


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_verdicts_are_as_claimed(program: str) -> None:
    check(program)


def test_reasons_name_the_place_where_the_strides_began() -> None:
    text = "def f(x):\n    y = x.transpose(1, 2)\n    z = y * 2\n    return z.view(z.size(0), -1)\n"
    (ruling,) = rulings(text).values()
    assert (ruling.reasons[0].text, ruling.reasons[0].line) == ("strided since transpose(1, 2)", 2)


def test_a_test_that_was_made_before_decides_again() -> None:
    check(
        """
def f(x, flip):
    y = torch.zeros(2, 3)
    if flip:
        y = y.t()
    if not flip:
        return y.view(-1)  # safe
    return y.contiguous().view(-1)  # safe
"""
    )


def test_a_name_bound_anew_is_another_test() -> None:
    check(
        """
def f(x, flip, g):
    y = torch.zeros(2, 3)
    if flip:
        y = y.t()
    flip = g()
    if not flip:
        return y.view(-1)  # failing
    return None
"""
    )


def test_reasons_do_not_show_how_the_analysis_names_an_object() -> None:
    text = (
        "class Out:\n    pass\n\n\ndef make():\n    return Out()\n\n\n"
        "def f():\n    out = make()\n    return out.tokens.view(2, -1)\n"
    )
    (ruling,) = rulings(text).values()
    assert [reason.text for reason in ruling.reasons] == ["what `tokens` is"]


def test_a_dim_from_the_front_may_be_one_of_those_from_the_back() -> None:
    check(
        """
def f(x):
    z = x.mT
    z.view(z.shape[0], z.shape[1], z.shape[2])  # layout-dependent
    z.view(*z.shape[:2], -1)  # unknown
"""
    )
