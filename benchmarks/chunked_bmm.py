"""Time and peak memory of the bmm helper, and of the loop of slices that people write, as ratios to `torch.bmm`.

    python benchmarks/chunked_bmm.py [--sizes N,M,P] [--rounds R] [--threads T]

Time: CPU time of the process, user and system, for calls that take turns in one process; the median over the rounds
of the ratio within a round.  Memory: how far the resident set rises above its height before the call at its peak, in
a process of its own for each figure (needs Linux); `-` where bmm's own rise is too small to tell.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import torch

BATCHES = (64, 5_000, 70_000)
CHUNKS = (256, 4_096)
SAMPLE_SECONDS = 0.004
"""A call that is shorter is repeated within a sample."""
LEAST_RISE = 4 << 20

Bmm = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Work = Callable[[], object]


def helper(chunk: int) -> Bmm:
    """The function that rewritten code calls."""
    path = Path(__file__).parent.parent / "codemod" / "guest" / "chunked_bmm.py"
    spec = importlib.util.spec_from_file_location("_chunked_bmm", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda a, b: module.chunked_bmm(a, b, chunk=chunk)


def loop(chunk: int) -> Bmm:
    """The form that circulates."""
    return lambda a, b: torch.cat([torch.bmm(a[i : i + chunk], b[i : i + chunk]) for i in range(0, a.shape[0], chunk)])


FORMS: dict[str, Callable[[int], Bmm]] = {"bmm": lambda chunk: torch.bmm, "helper": helper, "loop": loop}


def operands(batch: int, sizes: Sequence[int], backward: bool) -> tuple[torch.Tensor, torch.Tensor]:
    n, m, p = sizes
    return torch.randn(batch, n, m, requires_grad=backward), torch.randn(batch, m, p, requires_grad=backward)


def work(form: str, chunk: int, given: tuple[torch.Tensor, torch.Tensor]) -> Work:
    """One call, with its gradients where the operands want them."""
    a, b = given
    bmm = FORMS[form](chunk)
    if not a.requires_grad:
        return lambda: bmm(a, b)
    grad = torch.randn(a.shape[0], a.shape[1], b.shape[2])
    return lambda: torch.autograd.grad(bmm(a, b), (a, b), grad)


def cpu(call: Work, repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats


def time_ratios(chunk: int, batch: int, sizes: Sequence[int], backward: bool, rounds: int) -> tuple[float, ...]:
    """Seconds of bmm, then the ratios of the other forms to it."""
    given = operands(batch, sizes, backward)
    calls = [work(form, chunk, given) for form in FORMS]
    for call in calls:
        call()
    repeats = max(1, int(SAMPLE_SECONDS / max(cpu(calls[0], 3), 1e-6)))
    samples = [_sample(calls, repeats, first=i % len(calls)) for i in range(rounds)]
    ratios = [[seconds / row[0] for seconds in row[1:]] for row in samples]
    return median(row[0] for row in samples), *(median(column) for column in zip(*ratios, strict=True))


def _sample(calls: Sequence[Work], repeats: int, first: int) -> list[float]:
    """Seconds of each call, in the order of `calls`, whichever went first."""
    turns = [*range(first, len(calls)), *range(first)]
    found = {i: cpu(calls[i], repeats) for i in turns}
    return [found[i] for i in range(len(calls))]


def rise(form: str, chunk: int, batch: int, sizes: Sequence[int], backward: bool) -> int:
    """Bytes by which the resident set of this process rises at the peak of one call."""
    work(form, 2, operands(5, sizes, backward))()  # what is loaded and allocated once, by the first call
    call = work(form, chunk, operands(batch, sizes, backward))
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # sets VmHWM back to VmRSS
    kept = call()
    peak = _status("VmHWM")
    del kept
    return peak - before


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{field}:")).split()[1]) << 10


def rise_apart(form: str, chunk: int, batch: int, sizes: Sequence[int], backward: bool) -> int:
    """`rise` in a process of its own."""
    arguments = [form, *map(str, (chunk, batch, *sizes, int(backward)))]
    done = subprocess.run([sys.executable, __file__, "--rise", *arguments], capture_output=True, text=True, check=True)
    return int(done.stdout)


def row(chunk: int, batch: int, sizes: Sequence[int], backward: bool, rounds: int) -> str:
    seconds, *times = time_ratios(chunk, batch, sizes, backward, rounds)
    own, *rises = (rise_apart(form, chunk, batch, sizes, backward) for form in FORMS)
    memory = [f"{other / own:.2f}" if own >= LEAST_RISE else "-" for other in rises]
    cells = [f"{seconds * 1e3:.3f} ms", *(f"{ratio:.2f}" for ratio in times), f"{own / 2**20:.0f} MiB", *memory]
    name = f"{batch:,} in {chunk:,}s, {'forward and backward' if backward else 'forward'}"
    return f"{name:38}" + "".join(f"{cell:>13}" for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default="8,8,8", help="n,m,p of the matrices (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rise", nargs=7, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    if options.rise:
        form, chunk, batch, n, m, p, backward = options.rise[0], *map(int, options.rise[1:])
        print(rise(form, chunk, batch, (n, m, p), bool(backward)))
        return
    sizes = tuple(map(int, options.sizes.split(",")))
    titles = ("bmm", "helper", "loop", "bmm peak", "helper", "loop")
    print(f"{f'matrices {options.sizes}, {options.threads} thread(s)':38}" + "".join(f"{t:>13}" for t in titles))
    for backward in (False, True):
        for batch in BATCHES:
            for chunk in CHUNKS:
                print(row(chunk, batch, sizes, backward, options.rounds), flush=True)


if __name__ == "__main__":
    main()
