"""Real models on every rung of `verify`, before and after the tool's rewrite of the whole package.

    python benchmarks/verified_models.py [--python PYTHON] [--timeout SECONDS] [NAME...]

PYTHON has the packages (transformers, kornia, pytorchcv).  Each package is copied; where MODELS names files, the
repairs in them are taken back: `.reshape(` becomes `.view(`, and `.contiguous().view(` loses its `.contiguous()`.  The
others are as they were published, and run with inputs in channels_last.  Weights are random, configurations small.

Results and gradients of both are compared with the published model's, in eager and with contiguous inputs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codemod.verify.ladder import Climb, climb
from codemod.verify.rung import RUNGS, Rung, Status
from codemod.verify.scratch import copy, rewrite, whole_of

TARGET = "verified_model.py"


@dataclass(frozen=True, slots=True)
class Model:
    """A program that stands in the package; `undone` are files of it."""

    package: str
    program: str
    undone: tuple[str, ...] = ()
    memory_format: str = "contiguous_format"
    """Of the model and of its input."""

    def text(self, memory_format: str) -> str:
        return f"import torch\n\nMEMORY_FORMAT = torch.{memory_format}\n{self.program}"


IMAGES = """
def example_inputs():
    return (torch.rand(2, 3, {size}, {size}).to(memory_format=MEMORY_FORMAT),)
"""
MODELS = {
    "VGG": Model(
        "pytorchcv",
        "from .models.vgg import VGG as Model\n\n"
        "def make_model():\n"
        "    channels = [[8], [8], [16], [16], [16]]\n"
        "    return Model(channels, num_classes=10).eval().to(memory_format=MEMORY_FORMAT)\n" + IMAGES.format(size=224),
        memory_format="channels_last",
    ),
    "CenterNet": Model(
        "pytorchcv",
        "from .models.centernet import CenterNet as Model\n\n"
        "def make_model():\n"
        "    backbone = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, 8, 1), torch.nn.ReLU())\n"
        "    model = Model(backbone, 16, [16], topk=10, num_classes=4)\n"
        "    return model.eval().to(memory_format=MEMORY_FORMAT)\n" + IMAGES.format(size=64),
        memory_format="channels_last",
    ),
    "Swin": Model(
        "transformers",
        "from .models.swin.configuration_swin import SwinConfig\n"
        "from .models.swin.modeling_swin import SwinModel as Model\n\n"
        "def make_model():\n"
        "    sizes = {'image_size': 32, 'patch_size': 2, 'window_size': 4, 'embed_dim': 8}\n"
        "    return Model(SwinConfig(**sizes, depths=[2, 2], num_heads=[2, 4])).eval()\n" + IMAGES.format(size=32),
        undone=("models/swin/modeling_swin.py",),
    ),
    "TinyViT": Model(
        "kornia",
        "from .models.tiny_vit import TinyViT as Model\n\n"
        "def make_model():\n"
        "    sizes = {'embed_dims': (16, 16, 32, 32), 'num_heads': (1, 1, 2, 2), 'depths': (1, 1, 1, 1)}\n"
        "    return Model(64, num_classes=10, window_sizes=(4, 4, 4, 2), **sizes).eval()\n" + IMAGES.format(size=64),
        undone=("models/tiny_vit.py",),
    ),
}


def package_of(name: str, python: str) -> Path:
    ask = f"import importlib.util as util; print(util.find_spec({name!r}).submodule_search_locations[0])"
    return Path(subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip())


def take_back(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(".contiguous().view(", ".view(").replace(".reshape(", ".view("), encoding="utf-8")


def stand(file: Path, asked: Climb, reference: Path | None = None) -> tuple[list[Rung], Path]:
    """The rungs with the place of eager's results."""
    place = Path(tempfile.mkdtemp(dir=file.parents[2]))
    return list(climb(replace(asked, target=f"{file}:Model"), place, reference)), place / "eager.pt"


def verified(model: Model, asked: Climb, scratch: Path) -> tuple[list[Rung], list[Rung], tuple[str, ...]]:
    """The rungs before and after, and the files that the rewrite changed."""
    published, before, after = (scratch / name for name in ("published", "before", "after"))
    package = whole_of(package_of(model.package, asked.python) / "__init__.py")
    for folder in (published, before, after):
        folder.mkdir()
    for folder, layout in ((published, "contiguous_format"), (before, model.memory_format)):
        copy(package, folder)
        (folder / model.package / TARGET).write_text(model.text(layout), encoding="utf-8")
    for path in model.undone:
        take_back(before / model.package / path)
    eager, reference = stand(published / model.package / TARGET, replace(asked, rungs=("eager",)))
    if not reference.exists():
        raise SystemExit(f"{model.package} as it was published: {eager[0].failure or eager[0].why}")
    whole = whole_of(before / model.package / TARGET)
    copy(whole, after)
    changed = rewrite(whole, after)
    ladders = [stand(folder / model.package / TARGET, asked, reference)[0] for folder in (before, after)]
    return ladders[0], ladders[1], changed


def told(name: str, model: Model, asked: Climb) -> Iterator[str]:
    how = "repairs taken back" if model.undone else model.memory_format
    with tempfile.TemporaryDirectory() as scratch:
        before, after, changed = verified(model, asked, Path(scratch).resolve())
        yield f"{name} of {model.package}, {how}: {len(changed)} files rewritten"
        for old, new in zip(before, after, strict=True):
            yield f"  {old.name:28}{_cell(old):24}{_cell(new)}".rstrip()
        for title, rungs in (("before", before), ("after", after)):
            yield from (f"  {title}: {line}" for line in _first_fault(rungs, Path(scratch).resolve() / title))


def _cell(rung: Rung) -> str:
    return rung.status.value + (f" {rung.seconds:.1f} s" if rung.status is not Status.SKIPPED else "")


def _first_fault(rungs: Sequence[Rung], folder: Path) -> Iterator[str]:
    fault = next((rung for rung in rungs if rung.status.is_fault), None)
    if fault is None:
        return
    known = f" (known issue {fault.known_issue})" if fault.known_issue else ""
    if fault.difference is not None:
        yield f"{fault.name}: {fault.difference.where}: {fault.difference.what}"
    if fault.failure is not None:
        yield f"{fault.name}: {fault.failure.message.splitlines()[0]}{known}"
        for frame in fault.failure.frames[-1:]:
            yield f"{frame.path.removeprefix(f'{folder}/')}:{frame.line}: {frame.text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has the packages")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds a rung (default: %(default)g)")
    parser.add_argument("--rungs", default=",".join(RUNGS))
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MODELS)}")
    given = parser.parse_args()
    asked = Climb("", given.python, timeout=given.timeout, rungs=tuple(given.rungs.split(",")))
    print(f"{'':30}{'before':24}after")
    for name in given.names or MODELS:
        for line in told(name, MODELS[name], asked):
            print(line, flush=True)


if __name__ == "__main__":
    main()
