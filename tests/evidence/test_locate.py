"""Whose code failed, and in which of the given files."""

from __future__ import annotations

import pytest

from codemod.evidence.failure import Details, Failure, Frame, Kind, Stage
from codemod.evidence.locate import user_frame

NOTHING = Details()
SITE = "/env/lib/python3.11/site-packages"


def failure(
    *frames: Frame | str, stage: Stage = Stage.EAGER, details: Details = NOTHING, is_apart: bool = False
) -> Failure:
    made = (frame if isinstance(frame, Frame) else Frame(frame, 3, "f", "x.view(-1)") for frame in frames)
    return Failure(Kind.VIEW_REFUSED, "RuntimeError: it", tuple(made), stage, details, is_apart)


def path_of(printed: str, *given: str) -> str | None:
    return user_frame(failure(printed), given).path


@pytest.mark.parametrize(
    "path",
    [
        f"{SITE}/timm/layers/norm.py",
        "/usr/lib/python3/dist-packages/x.py",
        "/opt/conda/lib/python3.9/functools.py",
        "C:\\Python311\\Lib\\site-packages\\torch\\nn\\modules\\module.py",
        "C:\\Program Files\\Python311\\Lib\\random.py",
        "<frozen runpy>",
        "<string>",
        "<eval_with_key>.0 from /repo/x.py:18 in forward",
        "/tmp/torchinductor_user/ab/cab.py",
    ],
)
def test_installed_and_generated_code_is_never_the_users(path: str) -> None:
    user = user_frame(failure("/repo/model.py", path), ["model.py", "norm.py", "x.py", "module.py", "random.py"])
    assert user.path is None
    assert "no call of your files" in user.why


@pytest.mark.parametrize(
    ("installed", "given", "found"),
    [
        ("netlib/nn/heads.py", ["src/netlib/nn/heads.py", "src/netlib/heads.py"], "src/netlib/nn/heads.py"),
        ("netlib/nn/heads.py", ["C:\\work\\netlib\\nn\\heads.py"], "C:\\work\\netlib\\nn\\heads.py"),
        ("netlib/nn/heads.py", ["src/nn/heads.py", "heads.py"], None),
        ("netlib/nn/heads.py", ["third_party/netlib/nn/heads.py"], None),
        ("netlib/nn/heads.py", ["venv/lib/site-packages/netlib/nn/heads.py"], None),
        ("netlib/nn/heads.py", ["a/netlib/nn/heads.py", "b/netlib/nn/heads.py"], None),
        ("netlib/nn/heads.py", ["other/netlib/nn/heads.py"], None),
        ("heads.py", ["src/heads.py"], None),
    ],
)
def test_an_installed_copy_of_a_given_file_stands_for_it(installed: str, given: list[str], found: str | None) -> None:
    told = failure("/repo/train.py", f"{SITE}/torch/nn/modules/module.py", f"{SITE}/{installed}")
    texts = {path: "y = x\n" if path.startswith("other") else "    x.view(-1)\n" for path in given}
    assert user_frame(told, given, texts.get).path == found


def test_a_failure_without_frames_says_so() -> None:
    assert "no traceback" in user_frame(failure(), ["model.py"]).why


def test_a_file_that_is_not_given_is_named() -> None:
    assert "/repo/other.py is none" in user_frame(failure("/repo/other.py"), ["model.py"]).why


def test_two_files_that_fit_are_not_guessed() -> None:
    user = user_frame(failure("/repo/model.py"), ["a/model.py", "b/model.py"])
    assert user.path is None
    assert "a/model.py or b/model.py" in user.why


def test_two_files_that_fit_are_told_apart_by_the_line() -> None:
    texts = {"a/model.py": "x.view(-1)\n", "b/model.py": "pass\n"}
    assert user_frame(failure("/repo/model.py"), list(texts), texts.get).path == "a/model.py"


@pytest.mark.parametrize(
    ("printed", "given", "path"),
    [
        ("/repo/src/model.py", ["model.py", "src/model.py", "other/model.py"], "src/model.py"),
        ("D:\\work space\\src\\model.py", ["src/model.py", "other/model.py"], "src/model.py"),
        ("~/project/src/model.py", ["/home/me/elsewhere/src/model.py"], "/home/me/elsewhere/src/model.py"),
        ("./model.py", ["model.py", "other/model.py"], "model.py"),
        ("/app/model.py", ["model.py", "tests/model.py"], "model.py"),
        ("src/model.py", [".\\src\\model.py"], ".\\src\\model.py"),
        ("/repo/models.py", ["model.py"], None),
        ("/repo/a_model.py", ["model.py"], None),
    ],
)
def test_paths_are_matched_from_their_end(printed: str, given: list[str], path: str | None) -> None:
    assert path_of(printed, *given) == path


def test_what_stands_between_the_call_and_its_op_does_not_hide_the_call() -> None:
    device = Frame(f"{SITE}/torch/utils/_device.py", 122, "__torch_function__", "return func(*args, **kwargs)")
    assert user_frame(failure("/repo/model.py", device), ["model.py"]).path == "model.py"


def test_a_mode_of_the_users_is_not_the_call() -> None:
    mode = Frame("/repo/mode.py", 5, "__torch_function__", "return func(*args, **kwargs)")
    assert user_frame(failure("/repo/model.py", mode), ["model.py", "mode.py"]).path == "model.py"


def test_frames_apart_that_end_in_a_package_name_no_call() -> None:
    assert user_frame(failure("/repo/model.py", f"{SITE}/timm/x.py", is_apart=True), ["model.py"]).path is None


def test_an_op_of_generated_code_that_nobody_wrote_names_no_call() -> None:
    generated = Frame("/tmp/torchinductor_user/ab/cab.py", 9, "call", "torch.ops.aten.linalg_cholesky_ex.default(buf1)")
    details = Details(operation="linalg_cholesky_ex")
    user = user_frame(failure("/repo/model.py", generated, stage=Stage.INDUCTOR, details=details), ["model.py"])
    assert user.path is None
    assert "by the op linalg_cholesky_ex" in user.why


def test_a_cell_is_found_by_its_line() -> None:
    cell = Frame("Cell In[3]", 2, "", "x.view(-1)")
    texts = {"a.ipynb": "y = 1\nx.view(-1)\n", "b.ipynb": "x.view(1)\n", "a.py": "x.view(-1)\n"}
    assert user_frame(failure(cell), list(texts), texts.get).path == "a.ipynb"
    assert "none of the given files" in user_frame(failure(cell), ["b.ipynb"], texts.get).why


def test_a_cell_that_two_notebooks_hold_is_not_guessed() -> None:
    cell = Frame("<ipython-input-3-8f0a>", 2, "", "x.view(-1)")
    assert "a.ipynb or b.ipynb" in user_frame(failure(cell), ["a.ipynb", "b.ipynb"], lambda path: "x.view(-1)\n").why
