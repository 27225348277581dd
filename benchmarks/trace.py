"""What recording costs: the time of an attention model's steps under `trace`, as a ratio to the same without.

    python benchmarks/trace.py [--rounds R] [--steps N]

CPU time of the process, one thread, the best of some samples in each run; runs with and without take turns, and the
median ratio is shown.  The smaller the tensors, the larger the share of the calls themselves: the last line is the
call alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

RECORD = Path(__file__).parent.parent / "codemod" / "guest" / "record.py"
SHAPES = ((2, 16, 64), (8, 64, 128), (8, 128, 512))
"""(batch, steps in time, width)"""

PROGRAM = """\
import sys, time, torch

torch.set_num_threads(1)

class Attention(torch.nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.qkv, self.out, self.heads = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width), heads

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(c, 2))
        q, k, v = (part.reshape(b * self.heads, t, -1) for part in (q, k, v))
        mixed = torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(-1), v)
        return self.out(mixed.view(b, self.heads, t, -1).transpose(1, 2).contiguous().view(b, t, c))

def best(call, steps):
    samples = []
    for _ in range(8):
        start = time.process_time()
        for _ in range(steps):
            call()
        samples.append((time.process_time() - start) / steps)
    return min(samples)

*shape, steps = map(int, sys.argv[1:])
if shape:
    x, net = torch.randn(shape), Attention(shape[-1])
    print(best(lambda: net(x).sum().backward(), steps))
else:
    x = torch.randn(4, 4)
    print(best(lambda: x.view(16), steps * 100))
"""


def seconds(command: Sequence[str]) -> float:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


def ratio(folder: Path, arguments: Sequence[str], rounds: int) -> tuple[float, float]:
    """Seconds without, and the ratio."""
    program = [str(folder / "program.py"), *arguments]
    recorded = [sys.executable, "-I", "-S", str(RECORD), "--output", str(folder / "part"), "--", *program]
    pairs = [(seconds([sys.executable, *program]), seconds(recorded)) for _ in range(rounds)]
    return min(without for without, _ in pairs), median(under / without for without, under in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(PROGRAM)
        for shape in (*SHAPES, ()):
            arguments = [*map(str, shape), str(max(given.steps // max(shape[0] if shape else 1, 1), 5))]
            without, cost = ratio(folder, arguments, given.rounds)
            print(f"{shape or 'one view'!s:>16}  {without * 1e6:9.1f} us  x {cost:.2f}")


if __name__ == "__main__":
    main()
