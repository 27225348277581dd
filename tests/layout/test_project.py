from __future__ import annotations

import ast
from pathlib import Path

import pytest

from codemod.cache import Cache
from codemod.engine import process
from codemod.finding import Finding
from codemod.layout.project import LINES, _renumber
from codemod.result import FileResult
from codemod.settings import Settings

IMPORTS = "import torch\nfrom torch import nn\n"
TURNED = "def turned(x):\n    return x.transpose(1, 2)\n"
MERGED = "    b, h, t, d = x.shape\n    return turned(x).view(b, t, h * d)\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(**files: str) -> None:
    """`pkg__net="..."` is `pkg/net.py`."""
    for name, text in files.items():
        path = Path(name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def package(*names: str) -> None:
    for name in names:
        Path(name).mkdir(parents=True, exist_ok=True)
        (Path(name) / "__init__.py").touch()


def the_view(path: str) -> Finding:
    result = process(path, Settings())
    assert not result.errors, result.errors
    (finding,) = (f for f in result.findings if f.transform == "view-to-reshape")
    return finding


def test_a_function_beside_the_script_is_followed() -> None:
    write(ops=TURNED, train=f"from ops import turned\n\n\ndef f(x):\n{MERGED}")
    assert the_view("train.py").verdict.value == "failing"


@pytest.mark.parametrize(
    "line",
    [
        "from .ops import turned",
        "from pkg.ops import turned",
        "from . import turned",
        "from pkg import turned",
        "from .more import turned",
        "from .ops import *",
    ],
)
def test_every_way_to_import_a_function_leads_to_it(line: str) -> None:
    package("pkg")
    write(pkg__ops=TURNED, pkg__more="from .ops import turned as turned\n", pkg__net=f"{line}\n\n\ndef f(x):\n{MERGED}")
    Path("pkg/__init__.py").write_text("from .ops import turned\n")
    assert the_view("pkg/net.py").verdict.value == "failing"


@pytest.mark.parametrize(
    ("line", "name"),
    [("import ops", "ops.turned"), ("import pkg.ops", "pkg.ops.turned"), ("from pkg import ops as o", "o.turned")],
)
def test_a_function_is_reached_through_its_module(line: str, name: str) -> None:
    package("pkg")
    write(ops=TURNED, pkg__ops=TURNED, train=f"{line}\n\n\ndef f(x):\n{MERGED.replace('turned', name)}")
    assert the_view("train.py").verdict.value == "failing"


def test_a_package_is_found_from_a_folder_beside_it() -> None:
    package("src/pkg")
    write(src__pkg__ops=TURNED, tests__test_ops=f"from pkg.ops import turned\n\n\ndef f(x):\n{MERGED}")
    assert the_view("tests/test_ops.py").verdict.value == "failing"


def test_a_copy_in_another_file_makes_the_view_safe() -> None:
    write(
        ops="def turned(x):\n    return x.transpose(1, 2).contiguous()\n",
        train=f"from ops import turned\n\n\ndef f(x):\n{MERGED}",
    )
    assert the_view("train.py").verdict.value == "safe"


def test_a_module_of_another_file_is_called_with_what_it_was_made_of() -> None:
    package("pkg")
    write(
        pkg__heads=f"{IMPORTS}\n\nclass Heads(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.n = n\n\n    def forward(self, x):\n        b, t, c = x.shape\n"
        "        return x.view(b, t, self.n, c // self.n).transpose(1, 2)\n",
        pkg__net=f"{IMPORTS}from .heads import Heads\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.heads = Heads(4)\n\n    def forward(self, x):\n"
        "        return self.heads(x).view(x.shape[0], -1)\n",
    )
    assert the_view("pkg/net.py").verdict.value == "failing"


def test_methods_and_attributes_of_a_base_in_another_file_are_inherited() -> None:
    package("pkg")
    write(
        pkg__base=f"{IMPORTS}\n\nclass Base(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.table = nn.Parameter(torch.zeros(3, 4))\n\n"
        "    def turned(self):\n        return self.table.t()\n",
        pkg__net=f"{IMPORTS}from .base import Base\n\n\nclass Net(Base):\n    def flat(self):\n"
        "        return self.turned().view(-1)\n",
    )
    assert the_view("pkg/net.py").verdict.value == "failing"


def test_a_property_is_read_through_its_getter() -> None:
    write(
        train=f"{IMPORTS}\n\nclass Table(nn.Module):\n    @property\n    def turned(self):\n"
        "        return torch.zeros(3, 4).t()\n\n    @turned.setter\n    def turned(self, value):\n        pass\n\n"
        "    def flat(self):\n        return self.turned.view(-1)\n"
    )
    assert the_view("train.py").verdict.value == "failing"


def test_of_two_methods_of_one_name_the_last_is_called() -> None:
    write(
        train=f"{IMPORTS}\n\nclass Table(nn.Module):\n    def turned(self):\n        return torch.zeros(3, 4)\n\n"
        "    def turned(self):\n        return torch.zeros(3, 4).t()\n\n"
        "    def flat(self):\n        return self.turned().view(-1)\n"
    )
    assert the_view("train.py").verdict.value == "failing"


def test_a_write_in_another_file_reaches_the_storage() -> None:
    write(
        fill="def fill(x):\n    x.zero_()\n",
        train="from fill import fill\n\n\ndef f(p):\n    fill(p.t().view(-1))\n",
    )
    finding = the_view("train.py")
    assert finding.verdict.value == "written-through"
    assert (finding.reasons[0].path, finding.reasons[0].line) == ("fill.py", 2)


def test_reasons_name_the_file_that_they_are_in() -> None:
    write(ops=f"\n\n{TURNED}", train=f"from ops import turned\n\n\ndef f(x):\n{MERGED}")
    places = [(reason.path, reason.line) for reason in the_view("train.py").reasons if "transpose" in reason.text]
    assert places == [("ops.py", 4)]


def test_a_file_that_cannot_be_read_leaves_its_functions_unknown() -> None:
    write(ops="def turned(x:\n", train=f"from ops import turned\n\n\ndef f(x):\n{MERGED}")
    assert the_view("train.py").verdict.value == "unknown"


def test_imports_in_a_circle_come_to_an_end() -> None:
    package("pkg")
    write(pkg__a="from .b import turned\n", pkg__b="from .a import turned\n")
    write(pkg__net=f"from .a import turned\n\n\ndef f(x):\n{MERGED}")
    assert the_view("pkg/net.py").verdict.value == "unknown"


def test_functions_that_call_each_other_across_files_come_to_an_end() -> None:
    write(
        a="from b import turned\n\n\ndef again(x):\n    return turned(x)\n",
        b="from a import again\n\n\ndef turned(x):\n    return again(x)\n",
        train=f"from b import turned\n\n\ndef f(x):\n{MERGED}",
    )
    assert the_view("train.py").verdict.value == "unknown"


def test_a_function_given_as_an_attribute_keeps_the_imports_of_its_own_file() -> None:
    package("pkg/a", "pkg/b")
    write(
        pkg__a__ops=TURNED,
        pkg__b__ops="def turned(x):\n    return x.clone()\n",
        pkg__a__base="from .ops import turned\n\n\nclass Base:\n    def __init__(self):\n        self.act = turned\n",
        pkg__b__net="from ..a.base import Base\nfrom .ops import turned\n\n\n"
        "class Net(Base):\n    def forward(self, x):\n"
        "        b, h, t, d = x.shape\n        return self.act(x).view(b, t, h * d)\n",
    )
    package("pkg")
    assert the_view("pkg/b/net.py").verdict.value == "failing"


def the_cached(cache: Cache) -> FileResult:
    return cache.look_up("train.py", Settings())


def test_the_cache_forgets_what_rests_on_a_file_that_changed(folder: Path) -> None:
    write(ops=TURNED, train=f"from ops import turned\n\n\ndef f(x):\n{MERGED}")
    cache = Cache(folder / "cache")
    assert the_cached(cache).findings[0].verdict.value == "failing"
    write(ops="def turned(x):\n    return x.transpose(1, 2).contiguous()\n")
    assert the_cached(cache).findings[0].verdict.value == "safe"


def test_the_cache_forgets_what_rests_on_a_file_that_was_not_there(folder: Path) -> None:
    write(train=f"from ops import turned\n\n\ndef f(x):\n{MERGED}")
    cache = Cache(folder / "cache")
    assert the_cached(cache).findings[0].verdict.value == "unknown"
    write(ops=TURNED)
    assert the_cached(cache).findings[0].verdict.value == "failing"


def test_lines_of_another_file_are_renumbered_at_every_node() -> None:
    text = Path(ast.__file__).read_text(encoding="utf-8")
    known, expected = ast.parse(text), ast.parse(text)
    _renumber(known, LINES)
    ast.increment_lineno(expected, LINES)
    assert ast.dump(known, include_attributes=True) == ast.dump(expected, include_attributes=True)
