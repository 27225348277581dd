"""The guest that stands on one rung, here within the tests' own process."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.guest.standing import Stand, climb, guest

SAME = "def f(x, scale=2.0):\n    return {'scaled': x * scale, 'count': x.shape[0], 'rest': (None, x.long())}\n"


@pytest.mark.parametrize("rung", ["dynamo", "aot_eager", "aot_eager_decomp_partition", "export", "run_decompositions"])
def test_equal_results_of_any_structure_are_ok(stand: Stand, rung: str) -> None:
    assert climb(stand, rung, SAME, inputs="torch.randn(2, 3), scale=torch.tensor(3.0)")["status"] == "ok"


@pytest.mark.parametrize(
    "inputs",
    [
        "return torch.ones(2, 3), torch.ones(3)",
        "return [torch.ones(2, 3), torch.ones(3)]",
        "return (torch.ones(2, 3),), {'bias': torch.ones(3)}",
        "return {'x': torch.ones(2, 3), 'bias': torch.ones(3)}",
    ],
)
def test_example_inputs_may_give_arguments_in_any_form(stand: Stand, inputs: str) -> None:
    program = f"def f(x, bias):\n    return x + bias\n\ndef example_inputs():\n    {inputs}\n"
    assert climb(stand, "export", program)["status"] == "ok"


def test_a_single_tensor_is_one_argument(stand: Stand) -> None:
    program = "def f(x):\n    return x + 1\n\ndef example_inputs():\n    return torch.ones(2)\n"
    assert stand("eager", program)["status"] == "ok"


def test_a_function_without_parameters_needs_no_inputs(stand: Stand) -> None:
    assert stand("eager", "def f():\n    return torch.ones(2)\n")["status"] == "ok"


def test_dynamic_shapes_are_those_beside_the_function(stand: Stand) -> None:
    program = (
        "batch = torch.export.Dim('batch', max=64)\n"
        "def dynamic_shapes():\n    return {'x': {0: batch}}\n"
        "def f(x):\n    return x.reshape(BATCH, -1)\n"
    )
    inputs = "torch.randn(4, 3)"
    assert climb(stand, "export", program.replace("BATCH", "x.shape[0]"), inputs=inputs)["status"] == "ok"
    fixed = climb(stand, "export", program.replace("BATCH", "4"), inputs=inputs)
    assert fixed["status"] == "failed"
    assert fixed["failure"]["stage"] == "export"
    assert "batch" in fixed["failure"]["message"]


def test_a_class_is_built_by_make_model_where_that_builds_one(stand: Stand) -> None:
    program = (
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, width):\n        super().__init__()\n        self.linear = torch.nn.Linear(width, 2)\n"
        "    def forward(self, x):\n        return self.linear(x)\n"
    )
    refused = stand("eager", program, name="Net", inputs="torch.ones(1, 3)")
    assert refused["status"] == "refused"
    assert refused["why"].endswith("needs `width` to be built; write make_model() beside it, which returns one")
    made = f"{program}\ndef make_model():\n    return Net(3)\n"
    assert climb(stand, "export", made, name="Net", inputs="torch.ones(1, 3)")["status"] == "ok"


@pytest.mark.parametrize(
    ("program", "name", "inputs", "why"),
    [
        ("def f(x):\n    return x\n", "g", None, "no `g` in it; it has `f`"),
        ("f = 3\n", "f", None, "a int; name a function or a class"),
        ("def f(x):\n    return x\n", "f", None, "no inputs; write example_inputs() beside it"),
        ("def f(x):\n    return x\n", "f", "torch.ones(", "--inputs: "),
        (
            "def f(x):\n    return x\n\ndef example_inputs():\n    return 1 / 0\n",
            "f",
            None,
            "example_inputs(): division",
        ),
        ("import no_such_module\n", "f", None, "program_under_test.py:2: cannot be imported (ModuleNotFoundError"),
        ("raise SystemExit(3)\n", "f", None, "cannot be imported (SystemExit: 3)"),
    ],
)
def test_what_cannot_be_run_is_refused(stand: Stand, program: str, name: str, inputs: str | None, why: str) -> None:
    answer = stand("eager", program, name=name, inputs=inputs)
    assert answer["status"] == "refused"
    assert why in answer["why"]


def test_a_failure_names_stage_class_message_and_the_users_line(stand: Stand) -> None:
    answer = stand(
        "eager", "def f(x):\n    return g(x)\n\ndef g(x):\n    return x.t().view(-1)\n", inputs="torch.ones(2, 3)"
    )
    failure = answer["failure"]
    assert (answer["status"], failure["stage"], failure["type"]) == ("failed", "forward", "RuntimeError")
    assert failure["message"].startswith("view size is not compatible")
    assert [(frame["function"], frame["text"]) for frame in failure["frames"]] == [
        ("f", "return g(x)"),
        ("g", "return x.t().view(-1)"),
    ]


def test_a_failure_that_only_a_package_has_lines_of_names_those(stand: Stand, tmp_path: Path) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "of_others.py").write_text(
        "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x.t().view(-1)\n"
    )
    program = f"import sys\nsys.path.append({str(tmp_path / 'site-packages')!r})\nfrom of_others import Net"
    inputs = "torch.ones(2, 3)"
    bare = stand("eager", f"{program} as f\n", inputs=inputs)["failure"]
    assert [frame["text"] for frame in bare["frames"]] == ["return x.t().view(-1)"]
    called = stand("eager", f"{program}\ndef f(x):\n    return Net()(x)\n", inputs=inputs)["failure"]
    assert [frame["text"] for frame in called["frames"]] == ["return Net()(x)"]


def test_a_failure_in_backward_says_so(stand: Stand) -> None:
    program = (
        "class Flat(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x.clone()\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        return grad.t().view(-1)\n"
        "def f(x):\n    return Flat.apply(x)\n"
    )
    failure = stand("eager", program, inputs="torch.ones(2, 3)")["failure"]
    assert failure["stage"] == "backward"
    assert failure["frames"][-1]["text"] == "return grad.t().view(-1)"
    assert stand("eager", program, inputs="torch.ones(2, 3)", gradients=False)["status"] == "ok"


def test_an_exit_of_the_program_is_a_failure(stand: Stand) -> None:
    failure = stand("eager", "def f(x):\n    raise SystemExit(5)\n", inputs="1")["failure"]
    assert (failure["type"], failure["message"]) == ("SystemExit", "5")


def test_a_view_on_fake_tensors_names_the_operation_and_the_users_line(stand: Stand) -> None:
    program = "def f(x):\n    y = x.roll(1, 1)\n    return y.permute(0, 2, 3, 1).view(-1)\n"
    inputs = "torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)"
    failure = climb(stand, "dynamo", program, inputs=inputs)["failure"]
    assert (failure["stage"], failure["type"], failure["operation"]) == ("compile", "ValueError", "view")
    assert failure["message"].startswith("Cannot view a tensor with shape torch.Size([2, 4, 4, 3])")
    assert [frame["text"] for frame in failure["frames"]] == ["return y.permute(0, 2, 3, 1).view(-1)"]


def test_a_view_behind_a_decomposition_names_the_operation_and_the_users_line(stand: Stand) -> None:
    program = "def f(x):\n    y = torch.cat([x, x], 1)\n    return y.permute(0, 2, 3, 1).view(-1)\n"
    inputs = "torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)"
    failure = climb(stand, "aot_eager_decomp_partition", program, inputs=inputs)["failure"]
    assert (failure["type"], failure["operation"]) == ("ValueError", "view")
    assert [frame["text"] for frame in failure["frames"]] == ["return y.permute(0, 2, 3, 1).view(-1)"]


def test_a_graph_break_is_a_failure_of_its_own_kind(stand: Stand) -> None:
    failure = climb(
        stand, "dynamo", "def f(x):\n    print('x')\n    return x + x.sum().item()\n", inputs="torch.ones(2)"
    )
    assert failure["failure"]["type"] == "Unsupported"


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("x + 1 if torch.compiler.is_compiling() else x", "output"),
        ("x[:1] if torch.compiler.is_compiling() else x", "shape [1, 3] for [2, 3]"),
        ("x.double() if torch.compiler.is_compiling() else x", "dtype torch.float64 for torch.float32"),
        ("x / 0 if torch.compiler.is_compiling() else x", "inf for"),
        ("(x, x) if torch.compiler.is_compiling() else x", "their structure is not eager's"),
        ("(x, 1) if torch.compiler.is_compiling() else (x, 2)", "1 for 2"),
        ("x.detach() * 1 if torch.compiler.is_compiling() else x * 1", "the gradient of input[0]"),
    ],
)
def test_other_values_shapes_dtypes_and_gradients_differ(stand: Stand, expression: str, what: str) -> None:
    answer = climb(stand, "dynamo", f"def f(x):\n    return {expression}\n", inputs="torch.randn(2, 3)")
    assert answer["status"] == "differs"
    told = answer["difference"]
    assert what in f"{told['where']}: {told['what']}"


def test_the_gradient_of_a_parameter_is_compared(stand: Stand) -> None:
    program = (
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.weight = torch.nn.Parameter(torch.ones(3))\n"
        "    def forward(self, x):\n"
        "        weight = self.weight.detach() if torch.compiler.is_compiling() else self.weight\n"
        "        return x * weight\n"
    )
    for rung in ("dynamo", "export"):
        answer = climb(stand, rung, program, name="Net", inputs="torch.randn(2, 3)")
        assert answer["status"] == "differs"
        assert answer["difference"]["where"].startswith("the gradient of weight")


def test_differences_within_the_tolerance_of_the_dtype_are_none(stand: Stand) -> None:
    off = "def f(x):\n    return x * (1 + OFF) if torch.compiler.is_compiling() else x\n"
    assert climb(stand, "dynamo", off.replace("OFF", "1e-6"), inputs="torch.randn(9)")["status"] == "ok"
    assert climb(stand, "dynamo", off.replace("OFF", "1e-6"), inputs="torch.randn(9).double()")["status"] == "differs"
    assert climb(stand, "dynamo", "def f(x):\n    return x * float('nan')\n", inputs="torch.ones(2)")["status"] == "ok"


def test_random_numbers_are_the_same_on_every_rung(stand: Stand) -> None:
    program = "def f(x):\n    return torch.nn.functional.dropout(x, 0.5) + torch.rand(3)\n"
    assert climb(stand, "dynamo", program, inputs="torch.randn(3)")["status"] == "ok"


def test_an_input_that_is_written_to_is_not_asked_for_its_gradient(stand: Stand) -> None:
    program = "def f(x, y):\n    return x.add_(1) * y\n"
    eager = stand("eager", program, inputs="torch.ones(3), torch.ones(3)")
    assert (eager["status"], eager["track_inputs"]) == ("ok", False)
    assert climb(stand, "dynamo", program, inputs="torch.ones(3), torch.ones(3)")["status"] == "ok"


def test_strides_of_the_inputs_are_kept(stand: Stand) -> None:
    program = "def f(x):\n    assert x.stride() == (1, 2)\n    return x * 1\n"
    assert stand("eager", program, inputs="torch.randn(3, 2).t()")["status"] == "ok"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_program_that_needs_a_gpu_is_skipped_without_one(stand: Stand) -> None:
    for program, inputs in (("def f(x):\n    return x.cuda()\n", "torch.ones(1)"), (SAME, "torch.ones(1).cuda()")):
        answer = stand("eager", program, inputs=inputs)
        assert answer["status"] == "skipped"
        assert answer["why"].startswith("no GPU: ")


@pytest.mark.parametrize("rung", ["inductor", "inductor_dynamic", "aot_inductor"])
def test_what_needs_a_compiler_is_skipped_without_one(stand: Stand, rung: str, tmp_path: Path) -> None:
    from torch._inductor import config

    with config.patch("cpp.cxx", (None, str(tmp_path / "no_such_compiler"))):
        answer = climb(stand, rung, "def f(x):\n    return x + 1\n", inputs="torch.ones(2)")
    assert answer["status"] == "skipped"
    assert answer["why"].startswith("no C++ compiler (")


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
def test_what_inductor_says_without_a_place_is_told_of_the_node_that_it_was_at(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does where it compares symbolic strides, outside of any lowering."""
    from torch._inductor.graph import GraphLowering

    run = GraphLowering.run_node

    def run_node(self: GraphLowering, n: torch.fx.Node) -> object:
        if "sin" in str(n.target):
            raise TypeError("cannot determine truth value of Relational: 1 < s53")
        return run(self, n)

    monkeypatch.setattr(GraphLowering, "run_node", run_node)
    answer = climb(stand, "inductor", "def f(x):\n    y = x + 1\n    return y.sin() * 2\n", inputs="torch.ones(2)")
    failure = answer["failure"]
    assert (failure["type"], failure["operation"]) == ("TypeError", "sin"), failure
    assert [frame["text"] for frame in failure["frames"]] == ["return y.sin() * 2"]


def test_a_module_of_a_package_is_imported_by_its_dotted_name(tmp_path: Path) -> None:
    package = tmp_path / "pkg" / "sub"
    package.mkdir(parents=True)
    (tmp_path / "pkg" / "__init__.py").touch()
    (package / "__init__.py").write_text("SCALE = 2\n")
    (package / "net.py").write_text(
        "import sys\nfrom . import SCALE\nimport __main__\n\n"
        "def f(x):\n    assert __name__ == 'pkg.sub.net'\n    assert not vars(__main__).get('main')\n"
        "    assert not any(path.endswith('guest') for path in sys.path)\n    return x * SCALE\n"
    )
    request = {
        "target": "pkg/sub/net.py:f",
        "rung": "eager",
        "inputs": "torch.ones(2)",
        "path": [],
        "gradients": True,
        "track_inputs": True,
        "save": None,
        "reference": None,
        "timeout": 60.0,
        "answer": str(tmp_path / "answer"),
        "stack": str(tmp_path / "stack"),
    }
    (tmp_path / "request").write_text(json.dumps(request))
    done = subprocess.run(
        [sys.executable, str(guest.__file__), "request"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads((tmp_path / "answer").read_text())["status"] == "ok"


def test_the_guest_is_python_3_9() -> None:
    import ast

    ast.parse(Path(str(guest.__file__)).read_text(), feature_version=(3, 9))
