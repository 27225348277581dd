"""Programs that torch refuses, each run for real: `python program.py NAME...` prints their tracebacks to stderr.

A call that fails stands on a line that ends in `# site: NAME...`; where several calls stand there, `NAME@n` says which.
"""

from __future__ import annotations

import logging
import multiprocessing
import sys
import tempfile
import threading
import traceback
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy
import torch
import torch.fx
from torch import nn
from torch.utils.data import DataLoader, Dataset

X = torch.rand(2, 3, 4)


def merged(x):
    y = x.transpose(1, 2)
    return y.view(2, -1) * 2  # site: merged called module vmap device subclass fake chained export logged grouped


def flat(x):
    y = x.mT
    return y.view(2, -1)  # site: listed summed threaded pooled noted


def two_on_a_line(x):
    return x.view(6, 4).sum() + x.mT.view(6, 4).sum()  # site: two_on_a_line@2


def through_comprehension(x):
    return [x.mT[:k].view(-1).sum() for k in (1, 2)]  # site: through_comprehension


def repeated(x, n=6):
    return repeated(x, n - 1) if n else x.mT.view(-1)  # site: repeated


def over_lines(x):
    return x.mT.view(  # site: over_lines
        2,
        -1,
    ).view(-1)


def as_other(x):
    return x.mT.view_as(x)  # site: as_other


def unbound(x):
    return torch.Tensor.view(x.mT, -1)  # site: unbound


def renamed(x):
    flat = x.mT.view
    return flat(-1)  # site: renamed


def by_lambda(x):
    flat = lambda t: t.view(-1)  # noqa: E731  # site: by_lambda
    return flat(x.mT)


def by_literal(x):
    return x.view(6, 4).view(40, 10) + x.view(3, 8)  # site: by_literal@2


def reshaped(x):
    return x.reshape(5, -1)  # site: reshaped


def as_bytes(x):
    return x.mT.view(torch.int8)  # site: as_bytes


def as_complex(x):
    return torch.view_as_complex(x[..., :2].transpose(0, 2).transpose(1, 2))  # site: as_complex


def no_batch(x):
    return torch.bmm(x, x)


class Merge(nn.Module):
    def forward(self, x):
        return merged(x)


class Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return (grad.view(-1) * 2).view(ctx.shape)  # site: backward@1 anomalous@1


class Passing(torch.Tensor):
    pass


class Pictures(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        picture = numpy.zeros((4, 4, 3), dtype="float32")
        return torch.from_numpy(picture.transpose(2, 0, 1)).view(-1)  # site: worker


def called(x):
    return sum(merged(one) for one in (x, x))


def module(x):
    return nn.Sequential(nn.ReLU(), Merge())(x)


def vmap(x):
    return torch.vmap(merged)(torch.rand(5, 2, 3, 4))


def device(x):
    with torch.device("cpu"):
        return merged(x)


def subclass(x):
    return merged(x.as_subclass(Passing))


def fake(x):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return merged(torch.rand(2, 3, 4))


def chained(x):
    try:
        return merged(x)
    except RuntimeError as error:
        raise ValueError("the batch is bad") from error


def logged(x):
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    try:
        merged(x)
    except RuntimeError:
        logging.exception("step failed")


def listed(x):
    try:
        flat(x)
    except RuntimeError as error:
        print(traceback.format_tb(error.__traceback__), error, file=sys.stderr)


def summed(x):
    try:
        flat(x)
    except RuntimeError as error:
        print(error, traceback.extract_tb(error.__traceback__), file=sys.stderr)


def threaded(x):
    thread = threading.Thread(target=flat, args=(x,))
    thread.start()
    thread.join()


def pooled(x):
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(flat, x).result()


def noted(x):
    try:
        flat(x)
    except RuntimeError as error:
        error.add_note("in layer 3, at shape [2, 12]")
        raise


def anew(x):
    try:
        return merged(x)
    except RuntimeError as error:
        raise ValueError(f"bad batch: {error}") from None


def anomalous(x):
    with torch.autograd.detect_anomaly():
        backward(x)


def graph(x):
    return torch.fx.Interpreter(torch.fx.symbolic_trace(Merge())).run(x)


def grouped(x):
    try:
        merged(x)
    except RuntimeError as error:
        raise ExceptionGroup("two of them", [error, error]) from None  # noqa: F821


def backward(x):
    start = x.clone().requires_grad_()
    Backward.apply(start).mT.sum(0).mul(torch.rand(4, 3)).sum().backward()


def worker(x):
    return next(iter(DataLoader(Pictures(), batch_size=2, num_workers=1)))


def installed(x):
    """Fails in a package, below a line of ours that holds views."""
    with tempfile.TemporaryDirectory() as folder:
        packages = Path(folder, "site-packages")
        packages.mkdir()
        Path(packages, "flatlib.py").write_text("def flat(x):\n    return x.view(-1)\n")
        sys.path.insert(0, str(packages))
        import flatlib

        return flatlib.flat(x.view(2, 12).view(2, 3, 4).mT)


def by_name(x):
    return getattr(x.mT, "".join(("vi", "ew")))(-1)


def handled(x):
    try:
        x.mT.view(24)  # site: handled
    except RuntimeError:
        x.mT.view(1, 24)  # site: handled


def strided(x):
    y = x.roll(1, 1)
    return y.mT.view(2, -1)  # site: strided aot


def compiled_literal(x):
    return x.view(3, 8).view(5, 10).softmax(-1)  # site: compiled_literal@2


def channels(x):
    return torch.cat([x, x], 1).permute(0, 2, 3, 1).view(-1)  # site: channels inductor packaged


convolution = nn.Conv2d(4, 6, 1)


def complex_pairs(x):
    return convolution(x).view(torch.complex64)  # site: complex_pairs


class Flat(nn.Module):
    def forward(self, z):
        return z.view(32, -1)  # site: specialized specialized_strict


def compiled(function, x, backend, **options):
    torch._dynamo.reset()
    return torch.compile(function, backend=backend, **options)(x)


def images(x):
    return torch.rand(2, 4, 3, 3).to(memory_format=torch.channels_last)


class Channels(nn.Module):
    def forward(self, x):
        return channels(x)


class Exponential(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(4, 6, 1)

    def forward(self, x):
        return torch.matrix_exp(self.convolution(x))


class Lines(nn.Module):
    def forward(self, x):
        return x.relu()


def package(module, x):
    """The program that AOTInductor makes."""
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        exported = torch.export.export(module.eval(), (x,), strict=False)
        path = torch._inductor.aoti_compile_and_package(exported, package_path=f"{folder}/model.pt2")
        return torch._inductor.aoti_load_package(path)


def flat_export(is_strict):
    dynamic = {"z": {0: torch.export.Dim("n", max=64)}}
    return torch.export.export(Flat(), (torch.rand(32, 3, 4),), dynamic_shapes=dynamic, strict=is_strict)


PROGRAMS = {
    "backward": backward,
    "worker": worker,
    "strided": lambda x: compiled(strided, x, "eager", fullgraph=True),
    "aot": lambda x: compiled(strided, x, "aot_eager", dynamic=True),
    "compiled_literal": lambda x: compiled(compiled_literal, x, "eager"),
    "channels": lambda x: compiled(channels, images(x), "aot_eager_decomp_partition"),
    "inductor": lambda x: compiled(channels, images(x), "inductor"),
    "complex_pairs": lambda x: compiled(complex_pairs, torch.rand(2, 4, 8, 8), "inductor"),
    "export": lambda x: torch.export.export(Merge(), (x,), strict=False),
    "export_strict": lambda x: torch.export.export(Merge(), (x,), strict=True),
    "other_size": lambda x: torch.export.export(Lines(), (x,), strict=False).module()(x[:1]),
    "packaged": lambda x: package(Channels(), images(x)),
    "package_run": lambda x: package(Exponential(), torch.rand(2, 4, 6, 6))(torch.rand(2, 4, 6, 6)),
    "specialized": lambda x: flat_export(False),
    "specialized_strict": lambda x: flat_export(True),
}


def main() -> None:
    for name in sys.argv[1:]:
        print(f"@@ {name}", file=sys.stderr, flush=True)
        try:
            (PROGRAMS.get(name) or globals()[name])(X)
        except Exception:
            traceback.print_exc()
        sys.stderr.flush()


if __name__ == "__main__":
    with torch.no_grad() if sys.argv[1:] == ["complex_pairs"] else torch.enable_grad():
        main()
