"""Holds many random programs against torch: `python -m tests.random_programs [COUNT] [--from SEED]`.

Prints each counterexample, made as short as it gets, and the share of the verdicts.  Exit code 1 where there is one.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import sys
import time
import warnings
from collections import Counter

from tests.random_programs.properties import Judged, judge
from tests.random_programs.writer import write_program


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--from", type=int, default=0, dest="start")
    options = parser.parse_args()
    verdicts, met, found, ran, began = Counter[str](), Counter[str](), 0, 0, time.time()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _give_up)
    shown: set[str] = set()
    for seed in range(options.start, options.start + options.count):
        signal.alarm(60)
        try:
            text = write_program(random.Random(seed).choice)
            judged = judge(text)
        except TimeoutError:
            print(f"--- seed {seed}: does not end", flush=True)
            continue
        finally:
            signal.alarm(0)
        verdicts += judged.verdicts
        met += judged.met
        ran += judged.runs > 0
        for what in judged.counterexamples[:1]:
            found += 1
            short = shortened(text, _kind(what))
            if short not in shown:
                shown.add(short)
                print(f"--- seed {seed}: {judge(short).counterexamples[0]}\n{_body(short)}", flush=True)
    print(f"{options.count} programs, {ran} of which run, in {time.time() - began:.0f} s; {found} counterexamples")
    for verdict, count in verdicts.most_common():
        print(f"{count:8} {verdict}, {met[verdict]} reached")
    return 1 if found else 0


def _give_up(number: int, frame: object) -> None:
    raise TimeoutError


def _body(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line and not line.startswith(("import", "from", "#")))


def _kind(what: str) -> str:
    return re.sub(r"line \d+: | for .*", "", what)


def shortened(text: str, kind: str) -> str:
    """Without all lines that the counterexample does not need."""
    lines = text.splitlines()
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for width in (8, 4, 3, 2, 1):
            i = len(lines) - width
            while i >= 0:
                candidate = [*lines[:i], *lines[i + width :]]
                if _shows("\n".join(candidate) + "\n", kind):
                    lines, is_smaller = candidate, True
                i -= 1
    return "\n".join(lines) + "\n"


def _shows(text: str, kind: str) -> bool:
    signal.alarm(5)  # a loop may have lost what ends it
    try:
        judged: Judged = judge(text)
    except (Exception, TimeoutError):
        return False
    finally:
        signal.alarm(0)
    return judged.runs > 0 and bool(judged.counterexamples) and _kind(judged.counterexamples[0]) == kind


if __name__ == "__main__":
    sys.exit(main())
