"""What is compiled, what reaches it, and what is only reported; the programs are those of #188222."""

from __future__ import annotations

import pytest

from codemod.finding import Action, Finding, Verdict
from codemod.settings import Settings, Sites
from tests.transforms.programs import findings, rewritten

NET = """\
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        y = self.conv(x)
        return {site}

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        return self.net(x)

{compiled}
"""
SITE = "torch.matrix_exp(y)"
CURED = "torch.matrix_exp(y.flatten(0, -3)).unflatten(0, y.shape[:-2])"
COMPILED = "fast = torch.compile(Net())"


def net(site: str = SITE, compiled: str = COMPILED) -> str:
    return NET.format(site=site, compiled=compiled)


def function(body: str, before: str = "", parameters: str = "x, w", after: str = "fast = torch.compile(f)") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"import torch\nimport torch.nn.functional as F\n\n{before}\ndef f({parameters}):\n{lines}\n{after}\n"


def only(text: str, settings: Settings | None = None) -> Finding:
    (found,) = findings(text, "compiled-layout", settings)
    return found


@pytest.mark.parametrize(
    "compiled",
    [
        "",
        "fast = torch.compile(Net(), backend='aot_eager')",
        "fast = torch.compile(Net(), backend=BACKEND)",
        "fast = torch.compile(Net(), options={'triton.cudagraphs': False})",
        "fast = torch.compile(Net(), **options)",
        "fast = torch.compile(Net(), disable=True)",
        "fast = torch.compile(nn.Linear(2, 2))",
        "pattern = re.compile('Net')",
        "exported = torch.export.export(Net(), (x,))",
        "torch._inductor.config.layout_optimization = False\nfast = torch.compile(Net())",
        "@torch.compile\ndef other(x):\n    return x",
    ],
)
def test_what_nothing_compiles_with_inductor_is_left_alone(compiled: str) -> None:
    found = only(net(compiled=compiled))
    assert (found.verdict, found.action) == (Verdict.LAYOUT_DEPENDENT, Action.KEEP)


@pytest.mark.parametrize(
    "compiled",
    [
        COMPILED,
        "fast = torch.compile(model=Net().eval(), mode='reduce-overhead', fullgraph=True)",
        "fast = torch.compile(Outer(), backend='inductor', disable=False)",
        "net = Net()\nnet.compile(dynamic=True)",
        "net = Outer().to('cpu')\nnet = torch.compile(net)",
        "def train():\n    net = Net()\n    net = net.train()\n    net = torch.compile(net)",
        "def pack(x):\n    ep = torch.export.export(Net(), (x,))\n    torch._inductor.aoti_compile_and_package(ep)",
        "@torch.compile\ndef step(x):\n    return Outer()(x)",
        "class Trainer:\n    def __init__(self):\n        self.net = Net()\n"
        "        self.step = torch.compile(self.step)\n    def step(self, x):\n        return self.net(x)",
        "fast = torch.compile(lambda x: Net()(x))",
    ],
)
def test_a_compiler_of_the_file_reaches_the_function(compiled: str) -> None:
    text = net(compiled=compiled)
    found = only(text)
    assert (found.verdict, found.action) == (Verdict.FAILING, Action.REWRITE)
    assert found.reasons[0].text == "compiled by Inductor"
    assert found.reasons[1].line == 11
    assert rewritten(text, "compiled-layout") == net(CURED, compiled)


def test_a_function_that_is_kept_out_of_the_graph_is_left_alone() -> None:
    text = net(compiled=COMPILED).replace(
        "    def forward(self, x):\n        y", "    @torch.compiler.disable\n    def forward(self, x):\n        y"
    )
    assert only(text).action is Action.KEEP


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("y = F.avg_pool2d(x, 2)", "layout-dependent"),
        ("y = F.conv3d(x, w)", "layout-dependent"),
        ("y = F.conv2d(x, w).softmax(-1)", "layout-dependent"),
        ("y = F.interpolate(F.conv2d(x, w), scale_factor=2)", "layout-dependent"),
        ("y = F.group_norm(F.conv2d(x, w), 2)", "layout-dependent"),
        ("y = F.conv2d(x, w)\ny = y @ y", "layout-dependent"),
        ("n, c, _, _ = x.shape\ny = F.conv2d(x, w)[:, [0, 2]]", "layout-dependent"),
        ("n, c, _, _ = x.shape\ny = F.conv2d(x, w).flatten(0, 1)", "safe"),
        ("n, c, _, _ = x.shape\ny = F.conv2d(x, w)[0]", "safe"),
        ("y = x.unsqueeze(0)", "layout-dependent"),
        ("c, n, m = x.shape\ny = x.transpose(0, 2)", "safe"),
        ("n, m = x.shape\ny = x.t()", "safe"),
        ("n, c, h, w = x.shape\ny = x.contiguous()", "layout-dependent"),
        ("n, c, h, w = x.shape\ny = x.mT", "layout-dependent"),
    ],
)
def test_what_no_convolution_reaches_is_left_alone(body: str, verdict: str) -> None:
    found = only(function(f"{body}\nreturn torch.matrix_exp(y)"))
    assert (found.verdict.value, found.action) == (verdict, Action.KEEP)


@pytest.mark.parametrize(
    "body",
    [
        "y = F.conv_transpose2d(x, w)",
        "y = F.conv2d(x, w).relu() + x[:, :1]",
        "y = F.batch_norm(F.conv2d(x, w), None, None, training=True)",
        "y = F.max_pool2d(F.conv2d(x, w), 2)",
        "y = torch.cat([F.conv2d(x, w), F.conv2d(x, w)], 1)",
        "y = F.conv2d(x, w)\ny = y - y.mT",
    ],
)
def test_ops_that_keep_the_order_of_a_convolution(body: str) -> None:
    text = function(f"n, c, _, _ = x.shape\n{body}\nreturn torch.matrix_exp(y)")
    assert rewritten(text, "compiled-layout") == text.replace(SITE, CURED)


@pytest.mark.parametrize("body", ["y = x.transpose(0, 1)", "y = x[::2]", "y = x.permute(0, 2, 3, 1)"])
def test_a_batch_that_eager_refuses_is_mended_without_a_compiler(body: str) -> None:
    text = function(f"n, c, h, w = x.shape\n{body}\nreturn torch.linalg.matrix_exp(y)", after="")
    assert rewritten(text, "compiled-layout") == text.replace(
        "torch.linalg.matrix_exp(y)", f"torch.linalg.{CURED.removeprefix('torch.')}"
    )


@pytest.mark.parametrize(
    ("imported", "name"),
    [
        ("from torch import matrix_exp", "matrix_exp"),
        ("from torch.linalg import matrix_exp as expm", "expm"),
        ("import torch.linalg as la", "la.matrix_exp"),
        ("expm = torch.Tensor.matrix_exp", "torch.Tensor.matrix_exp"),
    ],
)
def test_other_names_of_the_op(imported: str, name: str) -> None:
    text = function(f"n, c, h, w = x.shape\ny = x.transpose(0, 1)\nreturn {name}(y)", before=f"{imported}\n")
    cured = CURED.replace("torch.matrix_exp", name)
    assert rewritten(text, "compiled-layout") == text.replace(f"{name}(y)", cured)


@pytest.mark.parametrize(
    ("site", "reason"),
    [
        ("torch.matrix_exp(self.conv(x))", "its input has no name"),
        ("torch.matrix_exp(self.conv(x).contiguous())", "its input has no name"),
        ("torch.matrix_exp(input=y)", "the way it is called"),
        ("torch.matrix_exp(self.conv(x).clone(memory_format=torch.contiguous_format))", "its input has no name"),
    ],
)
def test_what_cannot_be_rewritten_is_reported_with_its_cure(site: str, reason: str) -> None:
    found = only(net(site))
    assert (found.verdict, found.action) == (Verdict.FAILING, Action.REPORT)
    said = [told.text for told in found.reasons]
    assert any(text.startswith(reason) for text in said)
    assert said[-1] == f"cure: {CURED}"


def test_what_a_caller_brings_is_reported_where_others_may_bring_a_single_matrix() -> None:
    text = net("expm(y)").replace("class Net", "def expm(y):\n    return torch.matrix_exp(y)\n\nclass Net", 1)
    found = only(text)
    assert (found.verdict, found.action) == (Verdict.FAILING, Action.REPORT)
    assert [(reason.text, reason.line) for reason in found.reasons[:3]] == [
        ("compiled by Inductor", 25),
        ("Inductor makes the output of this convolution channels_last", 14),
        ("called from `Net.forward`", 15),
    ]
    assert found.reasons[3].text.startswith("its input may have no batch dim")


def test_a_copy_that_inductor_leaves_out_does_not_count() -> None:
    found = only(function("a, b, n, m = x.shape\nreturn torch.matrix_exp(x.transpose(0, 1).contiguous())"))
    assert (found.verdict, found.action) == (Verdict.FAILING, Action.REPORT)
    kept = only(function("a, b, n, m = x.shape\nreturn torch.matrix_exp(x.transpose(0, 1).contiguous())", after=""))
    assert (kept.verdict, kept.action) == (Verdict.LAYOUT_DEPENDENT, Action.KEEP)


def test_an_error_that_is_counted_on_is_reported() -> None:
    text = function("y = F.conv2d(x, w)\ntry:\n    return torch.matrix_exp(y)\nexcept RuntimeError:\n    return None")
    assert only(text).action is Action.REPORT


def test_a_site_of_one_layout_only_is_rewritten_when_it_is_asked_for() -> None:
    text = function("n, c, h, w = x.shape\ny = x + 1\nreturn y.matrix_exp()", after="")
    assert only(text).action is Action.KEEP
    cured = "y.flatten(0, -3).matrix_exp().unflatten(0, y.shape[:-2])"
    assert rewritten(text, "compiled-layout", Settings(sites=Sites.RISKY)) == text.replace("y.matrix_exp()", cured)
    unranked = only(function("y = x + 1\nreturn torch.matrix_exp(y)", after=""), Settings(sites=Sites.RISKY))
    assert unranked.action is Action.REPORT


def test_a_matrix_exp_of_the_users_is_left_alone() -> None:
    text = function("return matrix_exp(x)", before="def matrix_exp(x):\n    return x\n")
    assert all(found.action is Action.KEEP for found in findings(text, "compiled-layout", Settings(sites=Sites.ALL)))


@pytest.mark.parametrize(
    ("site", "compiled", "is_reported"),
    [
        ("y.view(torch.complex64)", COMPILED, True),
        ("y.relu().view(dtype=torch.cfloat)", COMPILED, True),
        ("y.view(torch.complex64)", "", False),
        ("y.view(torch.int32)", COMPILED, False),
        ("(y @ y).view(torch.complex64)", COMPILED, False),
        ("y.view(2, -1)", COMPILED, False),
    ],
)
def test_a_view_as_complex_numbers_behind_a_compiled_convolution(site: str, compiled: str, is_reported: bool) -> None:
    found = findings(net(site, compiled), "compiled-layout")
    assert [finding.action for finding in found] == ([Action.REPORT] if is_reported else [])
