"""Where the bmm helper works, and the loop of slices that people write; time and peak memory as ratios to `torch.bmm`.

    python benchmarks/chunked_bmm.py [--sizes N,M,P] [--rounds R] [--threads T] [--skip-traced | --skip-measured]

Works: the results (and gradients) of whole numbers are those of torch.bmm, to the last bit, at all of BATCHES, in the
first of CHUNKS; else the batches at which they are not, or `refused` by the tracer.  Graphs: how many torch.compile
makes of a form over all of them.  Launches: the bmm kernels that ran in AOTInductor's package (needs a C++ compiler).

Time: CPU time of the process, user and system, for calls that take turns in one process; the median over the rounds
of the ratio within a round.  Memory: how far the resident set rises above its height before the call at its peak, in
a process of its own for each figure (needs Linux); `-` where bmm's own rise is too small to tell.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

import torch
from torch._dynamo.testing import CompileCounter

BATCHES = (0, 1, 2, 63, 64, 65, 100, 5_000, 70_000)
MEASURED = (64, 5_000, 70_000)
CHUNKS = (4_096, 256)
SAMPLE = 7
"""The batch that programs are exported with."""
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
    sys.modules["_chunked_bmm"] = module  # dynamo looks a function's module up by name
    spec.loader.exec_module(module)
    return lambda a, b: module.chunked_bmm(a, b, chunk=chunk, max_batch=max(BATCHES))


def loop(chunk: int) -> Bmm:
    """The form that circulates."""
    return lambda a, b: torch.cat([torch.bmm(a[i : i + chunk], b[i : i + chunk]) for i in range(0, a.shape[0], chunk)])


FORMS: dict[str, Callable[[int], Bmm]] = {"bmm": lambda chunk: torch.bmm, "helper": helper, "loop": loop}


class Pairs(torch.nn.Module):
    def __init__(self, bmm: Bmm) -> None:
        super().__init__()
        self.bmm = bmm

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return self.bmm(a, b)


def whole_numbers(batch: int, sizes: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Exact in any order of summing."""
    n, m, p = sizes
    return torch.randint(-4, 5, (batch, n, m)).float(), torch.randint(-4, 5, (batch, m, p)).float()


def product(bmm: Bmm, given: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    return (bmm(*given),)


def gradients(bmm: Bmm, given: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    a, b = (tensor.clone().requires_grad_() for tensor in given)
    return torch.autograd.grad(bmm(a, b).square().sum(), (a, b))


def standing(make: Callable[[], Bmm], sizes: Sequence[int], of: Callable[..., tuple[torch.Tensor, ...]]) -> str:
    """`works`, or at which batches it does not."""
    torch._dynamo.reset()
    try:
        bmm = make()
    except Exception:  # of any kind, by the tracer's many rooms
        return "refused"
    bad = [f"{batch:,}" for batch in BATCHES if not _is_right(bmm, whole_numbers(batch, sizes), of)]
    return f"not {' '.join(bad)}" if bad else "works"


def _is_right(bmm: Bmm, given: tuple[torch.Tensor, torch.Tensor], of: Callable[..., tuple[torch.Tensor, ...]]) -> bool:
    try:
        return all(map(torch.equal, of(bmm, given), of(torch.bmm, given)))
    except Exception:
        return False


def exported(bmm: Bmm, dim: object, strict: bool, sizes: Sequence[int]) -> torch.export.ExportedProgram:
    shapes = {"a": {0: dim}, "b": {0: dim}}
    return torch.export.export(Pairs(bmm), whole_numbers(SAMPLE, sizes), dynamic_shapes=shapes, strict=strict)


def packaged(program: torch.export.ExportedProgram, folder: str) -> Bmm:
    """The profiler sees the launches of its kernels."""
    package = torch._inductor.aoti_compile_and_package(
        program, package_path=f"{folder}/pairs.pt2", inductor_configs={"cpp.enable_kernel_profile": True}
    )
    return torch._inductor.aoti_load_package(package)  # type: ignore[no-any-return]


def launches(bmm: Bmm, batch: int, sizes: Sequence[int]) -> int:
    given = whole_numbers(batch, sizes)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        bmm(*given)
    return sum(event.name == "aoti_torch_cpu_bmm_out" for event in profile.events())


def graphs(bmm: Bmm, sizes: Sequence[int]) -> str:
    """How many, and of how many batches where they are refused from some batch on."""
    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(bmm, backend=counter, fullgraph=True, dynamic=True)
    done = sum(_is_right(compiled, whole_numbers(batch, sizes), product) for batch in BATCHES)
    return f"{counter.frame_count}" + (f", {done} of {len(BATCHES)} batches" if done < len(BATCHES) else "")


def traced_rows(sizes: Sequence[int]) -> Iterator[tuple[str, list[str]]]:
    """(what, the standing of each form)."""
    bmms = [form(CHUNKS[0]) for form in FORMS.values()]
    yield "eager", [standing(lambda bmm=bmm: bmm, sizes, product) for bmm in bmms]
    yield "eager, gradients", [standing(lambda bmm=bmm: bmm, sizes, gradients) for bmm in bmms]
    for what, of in (("compile", product), ("compile, gradients", gradients)):
        yield (
            what,
            [standing(lambda bmm=bmm: torch.compile(bmm, dynamic=True, fullgraph=True), sizes, of) for bmm in bmms],
        )
    yield "graphs compiled", [graphs(bmm, sizes) for bmm in bmms]
    dims = {"Dim": torch.export.Dim("batch"), "DYNAMIC": torch.export.Dim.DYNAMIC, "AUTO": torch.export.Dim.AUTO}
    for name, dim in dims.items():
        for strict in (False, True):
            makes = [lambda bmm=bmm: exported(bmm, dim, strict, sizes).module() for bmm in bmms]  # noqa: B023
            yield f"export, {name}{', strict' if strict else ''}", [standing(make, sizes, product) for make in makes]
    yield from _packaged_rows(bmms, torch.export.Dim.DYNAMIC, sizes)


def _packaged_rows(bmms: Sequence[Bmm], dim: object, sizes: Sequence[int]) -> Iterator[tuple[str, list[str]]]:
    packages: list[Bmm | None] = []
    for bmm in bmms:
        with tempfile.TemporaryDirectory() as folder:
            try:
                packages.append(packaged(exported(bmm, dim, False, sizes), folder))
            except Exception:
                packages.append(None)
    yield "AOTInductor", [standing(lambda p=p: p, sizes, product) if p else "refused" for p in packages]
    for batch in (CHUNKS[0], CHUNKS[0] + 1, BATCHES[-1]):
        counts = [_launches_or_none(package, batch, sizes) for package in packages]
        yield f"AOTInductor, launches at {batch:,}", counts


def _launches_or_none(package: Bmm | None, batch: int, sizes: Sequence[int]) -> str:
    try:
        return str(launches(package, batch, sizes)) if package else "-"
    except RuntimeError:
        return "-"


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
    parser.add_argument("--skip-traced", action="store_true", help="do not look where the forms work")
    parser.add_argument("--skip-measured", action="store_true", help="do not measure time and memory")
    parser.add_argument("--rise", nargs=7, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    if options.rise:
        form, chunk, batch, n, m, p, backward = options.rise[0], *map(int, options.rise[1:])
        print(rise(form, chunk, batch, (n, m, p), bool(backward)))
        return
    sizes = tuple(map(int, options.sizes.split(",")))
    if not options.skip_traced:
        print_traced(sizes)
    if not options.skip_measured:
        print_measured(sizes, options.rounds, options.threads)


def print_traced(sizes: Sequence[int]) -> None:
    warnings.simplefilter("ignore")
    logging.disable()  # what tracers say of the loop
    title = f"batches up to {max(BATCHES):,} in {CHUNKS[0]:,}s"
    print(f"{title:38}" + "".join(f"{form:>42}" for form in FORMS))
    for what, cells in traced_rows(sizes):
        print(f"{what:38}" + "".join(f"{cell:>42}" for cell in cells), flush=True)


def print_measured(sizes: Sequence[int], rounds: int, threads: int) -> None:
    titles = ("bmm", "helper", "loop", "bmm peak", "helper", "loop")
    what = f"matrices {','.join(map(str, sizes))}, {threads} thread(s)"
    print(f"{what:38}" + "".join(f"{title:>13}" for title in titles))
    for backward in (False, True):
        for batch in MEASURED:
            for chunk in CHUNKS:
                print(row(chunk, batch, sizes, backward, rounds), flush=True)


if __name__ == "__main__":
    main()
