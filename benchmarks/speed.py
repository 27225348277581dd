"""Cost of a cold one-worker run, as a ratio to parsing the files that hold `.view(` or `bmm(`.

    python benchmarks/speed.py FOLDER

Prints user+sys CPU seconds and peak memory of both, each in a process of its own, and the cost by fixes in one file.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

PARSE = """
import ast, gc, sys, warnings
from pathlib import Path
gc.disable()
warnings.simplefilter("ignore")
for path in sorted(Path(sys.argv[1]).rglob("*.py")):
    raw = path.read_bytes()
    if b".view(" in raw or b"bmm(" in raw:
        ast.parse(raw)
"""

ROUNDS = 3


def cpu(command: list[str]) -> float:
    """User and system seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def tool(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "codemod", "run", "--no-cache", "--jobs", "1", *arguments]


def main(folder: str) -> None:
    parse = run = 0.0
    for _ in range(ROUNDS):  # in turns: other work on the machine slows both
        parse += cpu([sys.executable, "-c", PARSE, folder]) / ROUNDS
        run += cpu(tool("--format", "json", folder)) / ROUNDS
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"parse {parse:.2f} s, run {run:.2f} s, ratio {run / parse:.1f}; largest process {peak} MiB")
    print(f"--help {cpu([sys.executable, '-m', 'codemod', '--help']):.2f} s")
    with tempfile.TemporaryDirectory() as scratch:
        for count in (100, 200, 400, 800):
            file = Path(scratch) / f"fixes_{count}.py"
            file.write_text("import torch\n" + "y = torch.zeros(2, 3).t().view(-1)\n" * count)
            print(f"{count} fixes in one file: {cpu(tool(str(file))):.2f} s")


if __name__ == "__main__":
    main(sys.argv[1])
