"""The same real failure in the forms that people save and paste."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codemod.evidence.failure import Frame, Kind
from codemod.evidence.log_text import decode_log, plain_lines
from codemod.evidence.tracebacks import read_log
from tests.evidence.real_logs import PROGRAM, found_at, logs_of, marked
from tests.evidence.test_real_logs import ALL, TRACED

MODEL = """\
import torch


def rows(x):
    y = x.transpose(1, 2)
    return y.view(y.shape[0], -1) + x.view(2, -1)


def outer(x):
    return rows(x.relu())
"""
TEST = """\
import pytest
import torch
from model import outer

def test_shape() -> None:
    assert outer(torch.rand(2, 3, 4)).shape == (2, 12)
"""
OTHER = """\
def test_after():
    assert "x" == "y"
"""
WARNING = """\
/env/lib/python3.11/site-packages/torch/autograd/graph.py:829: UserWarning: Grad strides do not match bucket view \
strides. This is not an error, but may impair performance.
grad.sizes() = [64, 32, 1, 1], strides() = [32, 1, 32, 32]
bucket_view.sizes() = [64, 32, 1, 1], strides() = [32, 1, 1, 1] (Triggered internally at reducer.cpp:334.)
  return Variable._execution_engine.run_backward(  # Calls into the C++ engine
epoch 0: loss 1.1842
"""


def log(name: str) -> str:
    return logs_of(*ALL)[name]


def prefixed(text: str, prefix: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


def sites(text: str) -> list[tuple[int, int] | str]:
    return [found_at(failure) for failure in read_log(text)]


def test_a_warning_about_strides_is_no_failure() -> None:
    assert read_log(WARNING) == ()


def test_an_empty_log_holds_no_failure() -> None:
    assert read_log("") == ()


def test_frames_of_a_warning_are_not_those_of_the_next_failure() -> None:
    warned = 'x.py:3: UserWarning: slow\n  File "/repo/x.py", line 3, in f\n    g()\nepoch 1\n'
    assert sites(warned + log("called")) == marked("called")


@pytest.mark.parametrize(
    "prefix",
    [
        "[rank0]: ",
        "[rank1]:",
        "[default0]:[rank0]: ",
        "2026-03-01T12:00:00.1234567Z ",
        "2026-03-01 12:00:00,123 ",
        "[12:00:00] ",
        "build\tRun tests\t2026-03-01T12:00:00.1234567Z ",
        "E1202 19:27:33.328000 17137 torch/_guards.py:375] [0/0] ",
        "(RayTrainWorker pid=4242) ",
        "[1,0]<stderr>:",
        "worker-1  | ",
        "> ",
        "        ",
        "0: ",
        "worker-1: ",
        "10.0.0.12: ",
        "wandb: ",
        "ERROR stderr: ",
        "\x1b_bk;t=1700000000\x07",
    ],
)
def test_what_stands_before_each_line_goes(prefix: str) -> None:
    assert sites(prefixed(log("called"), prefix)) == marked("called")
    assert sites(prefixed(log("worker"), prefix)) == marked("worker")


@pytest.mark.parametrize(
    "prefix",
    [
        "Mar  1 12:00:{:02d} gpu-box python[1234]: ",
        "26/03/01 12:00:{:02d} ERROR Executor: ",
        "[2026-03-01, 12:00:{:02d} UTC] {{subprocess.py:93}} INFO - ",
        "[  12.{:03d}s] ",
        "+{}.25s ",
        "17000000{:02d} train ",
    ],
)
def test_clocks_that_go_on_within_a_traceback_go(prefix: str) -> None:
    lines = enumerate(log("called").splitlines())
    assert sites("".join(f"{prefix.format(second)}{line}\n" for second, line in lines)) == marked("called")


def test_nodes_that_write_in_turn_tell_one_failure() -> None:
    lines = log("called").splitlines()
    assert sites("".join(f"0: {line}\n1: {line}\n" for line in lines)) == marked("called")


def test_ranks_that_write_in_turn_tell_one_failure() -> None:
    lines = log("called").splitlines()
    mixed = "".join(f"[rank0]: {line}\n[rank1]: {line}\n" for line in lines)
    assert sites(mixed) == marked("called")


@pytest.mark.parametrize("name", ["called", "two_on_a_line", "worker", "chained"])
def test_line_ends_of_windows_and_their_loss(name: str) -> None:
    assert sites(log(name).replace("\n", "\r\n")) == marked(name)
    assert sites(json.dumps({"level": "error", "text": log(name)})) == marked(name)


def test_lines_glued_to_one_are_taken_apart() -> None:
    assert sites(" ".join(line.strip() for line in log("called").splitlines())) == marked("called")
    assert sites(log("called").replace("\n", "                    ")) == marked("called")


def test_paths_of_windows_are_mapped() -> None:
    windows = re.sub(r'File "[^"]*program\.py"', r'File "D:\\\\work space\\\\src\\\\program.py"', log("called"))
    assert sites(windows) == marked("called")


def test_utf_16_and_marks_are_decoded() -> None:
    for raw in (log("called").encode("utf-16"), b"\xef\xbb\xbf" + log("called").encode(), b"\xff\x00" * 3 + b"x"):
        decoded = decode_log(raw)
        assert sites(decoded) in (marked("called"), [])
    for encoding in ("utf-16-le", "utf-16-be"):
        assert sites(decode_log(b"epoch 1\n" + log("called").encode(encoding))) == marked("called")


def test_colours_go() -> None:
    coloured = re.sub(r"(File|line|Error)", "\x1b[1;35m\\1\x1b[0m", log("called"))
    assert sites(coloured) == marked("called")
    assert sites(coloured.replace("\x1b", "")) == marked("called")


def test_several_failures_come_in_their_order() -> None:
    text = "epoch 1\n" + log("as_other") + "epoch 2\n" + log("reshaped") + "done\n" + log("as_other")
    assert sites(text) == marked("as_other") + marked("reshaped")


def test_old_pythons_print_no_carets() -> None:
    bare = "\n".join(line for line in log("called").split("\n") if set(line.strip()) - {"^", "~"} or not line.strip())
    assert sites(bare) == marked("called")


def test_the_carets_of_python_3_13_are_read() -> None:
    program = "def over(x):\n    return (\n        x.mT\n        .view(2,\n            -1,\n            3)\n"
    program += "        .view(-1)\n    )\n"
    text = (
        'Traceback (most recent call last):\n  File "/repo/src/model.py", line 4, in over\n    .view(2,\n     ~~~~^^^\n'
        "        -1,\n        ^^^\n    ...<2 lines>...\n        3)\n        ^^\n"
        "RuntimeError: view size is not compatible with input tensor's size and stride\n"
    )
    (failure,) = read_log(text)
    assert failure.frames[-1].text == ".view(2,"
    assert found_at(failure, program, "src/model.py") == (4, 10)


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """{form: output} of one program that fails in pytest and under rich."""
    folder = tmp_path_factory.mktemp("forms")
    (folder / "model.py").write_text(MODEL)
    (folder / "test_model.py").write_text(TEST)
    (folder / "test_other.py").write_text(OTHER)
    script = """
import sys, pytest
for style in ("long", "short", "native", "auto", "line"):
    print("@@", style, flush=True)
    pytest.main(["-p", "no:cacheprovider", "--color", sys.argv[1], "--tb", style, "test_model.py"])
print("@@", "locals", flush=True)
pytest.main(["-p", "no:cacheprovider", "--color", sys.argv[1], "-vv", "--showlocals", "test_model.py"])
print("@@", "junit", flush=True)
pytest.main(["-p", "no:cacheprovider", "-q", "--junitxml", "junit.xml", "test_model.py", "test_other.py"])
print("@@", "xml", flush=True)
print(open("junit.xml").read())
print("@@", "rich", flush=True)
import torch, model
from rich.console import Console
try:
    model.outer(torch.rand(2, 3, 4))
except RuntimeError:
    Console(width=100, force_terminal=sys.argv[1] == "yes", legacy_windows=False).print_exception(show_locals=True)
"""
    outputs: dict[str, str] = {}
    for colour in ("no", "yes"):
        done = subprocess.run(
            [sys.executable, "-c", script, colour],
            cwd=folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
        )
        parts = re.split(r"^@@ (\w+)\n", done.stdout, flags=re.MULTILINE)[1:]
        outputs |= {f"{form} {colour}": text for form, text in zip(parts[::2], parts[1::2], strict=True)}
    return outputs


@pytest.mark.parametrize(
    "form",
    ["long no", "long yes", "short no", "short yes", "native no", "auto no", "auto yes", "locals no", "locals yes"],
)
def test_pytest_is_read(forms: Mapping[str, str], form: str) -> None:
    (failure,) = read_log(forms[form])
    assert failure.frames[-1].text == "return y.view(y.shape[0], -1) + x.view(2, -1)"
    if sys.version_info >= (3, 11):
        assert found_at(failure, MODEL, "src/model.py") == (6, 14)


def test_the_junit_file_of_pytest_is_read(forms: Mapping[str, str]) -> None:
    sites = [found_at(failure, MODEL, "src/model.py") for failure in read_log(forms["xml no"])]
    assert (6, 14) in sites or sys.version_info < (3, 11)


def test_the_function_around_a_line_of_pytest_is_not_one_that_ends_above_it() -> None:
    text = (
        "    def outer(x):\n        def inner(t):\n            return t.view(-1)\n    \n        return torch.cat([\n"
        ">           x.view(-1),\nE           RuntimeError: view size is not compatible with input tensor's size\n\n"
        "src/model.py:6: RuntimeError\n"
    )
    (failure,) = read_log(text)
    assert failure.frames[-1].function == "outer"


def test_carets_behind_characters_of_two_columns_choose_no_call() -> None:
    line = 'z = f("日本語日本語日本語日本語", x.view(-1), y.view(-1))'
    carets = " " * (line.index("y.view")) + "^^^^^^^^^^"
    text = (
        f'Traceback (most recent call last):\n  File "/src/model.py", line 1, in <module>\n    {line}\n    {carets}\n'
        "RuntimeError: view size is not compatible with input tensor's size and stride\n"
    )
    (failure,) = read_log(text)
    assert "2 calls fit" in str(found_at(failure, line, "src/model.py"))


@pytest.mark.parametrize("mode", ["Verbose", "Plain"])
def test_other_modes_of_ipython_are_read(mode: str) -> None:
    heads = {
        "Verbose": "File /repo/model.py:6, in rows(x=tensor([[[0.6939, 0.7677],\n     ...46],\n         [0.2275]]]))\n"
        "      4 def rows(x):\n      5     y = x.mT\n----> 6     return y.view(2, -1)\n        y = tensor([[0.1]])\n",
        "Plain": "  File /repo/main.py:3\n    rows(x): print(x)\n"
        "  File /repo/model.py:6 in rows\n    return y.view(2, -1)\n",
    }
    (failure,) = read_log(
        f"RuntimeError      Traceback (most recent call last)\n{heads[mode]}"
        "RuntimeError: view size is not compatible with input tensor's size and stride\n"
    )
    assert failure.frames[-1] == Frame("/repo/model.py", 6, "rows", "return y.view(2, -1)")


def test_tracebacks_glued_without_blanks_are_read() -> None:
    (failure,) = read_log(log("called").strip().replace("\n", "") + "\n")
    assert found_at(failure) == marked("called")[0]


def test_pytest_with_one_line_a_failure_names_no_call(forms: Mapping[str, str]) -> None:
    (failure,) = read_log(forms["line no"])
    assert failure.kind is Kind.VIEW_REFUSED


@pytest.mark.parametrize("form", ["rich no", "rich yes"])
def test_rich_boxes_are_read(forms: Mapping[str, str], form: str) -> None:
    (failure,) = read_log(forms[form])
    assert failure.frames[-1].line == 6
    assert failure.frames[-1].function == "rows"
    assert failure.frames[-1].text == "return y.view(y.shape[0], -1) + x.view(2, -1)"
    assert failure.frames[-1].path.endswith("model.py")


def test_ipython_is_read_with_and_without_colours() -> None:
    for name in ("ipython_colours.txt", "ipython_plain.txt"):
        text = (PROGRAM.parent / "logs" / name).read_text(encoding="utf-8")
        in_module, in_cell, in_function = read_log(text)
        assert [frame.path for frame in in_module.frames] == ["Cell In[2]", "/repo/model.py", "/repo/model.py"]
        assert in_module.frames[-1].text == "return y.view(y.shape[0], -1) + x.view(2, -1)"
        assert in_cell.frames[-1].text == "print(y.view(2, -1), x.view(-1))"
        assert [frame.function for frame in in_function.frames] == ["", "f"]
        if "colours" in name:
            assert found_at(in_module, MODEL, "src/model.py") == (6, 14)
            cells = "# cell\ny = x.mT\nprint(y.view(2, -1), x.view(-1))\n"
            assert found_at(in_cell, cells, "src/play.ipynb") == (3, 9)


def test_the_cell_of_an_old_ipython_is_read() -> None:
    text = (
        "RuntimeError                              Traceback (most recent call last)\n"
        "<ipython-input-3-8f0a> in <module>()\n----> 1 rows(x)\n\n"
        "~/src/model.py in rows(x)\n      4 \n      5     y = x.transpose(1, 2)\n"
        "----> 6     return y.view(2, -1)\n\n"
        "RuntimeError: view size is not compatible with input tensor's size and stride\n"
    )
    assert found_at(read_log(text)[0], MODEL.replace("y.shape[0]", "2").replace(" + x.view(2, -1)", "")) != "x"
    assert [(frame.path, frame.line) for frame in read_log(text)[0].frames] == [
        ("<ipython-input-3-8f0a>", 1),
        ("~/src/model.py", 6),
    ]


@pytest.mark.parametrize(
    ("head", "is_cell"),
    [
        ("<ipython-input-5-3f1a> in <cell line: 4>()", True),
        ("/tmp/ipython-input-3-392906.py in <cell line: 0>()", True),
        ("File <command-4231837>:4", True),
        ("File <command-4231837>:4, in rows(x)", True),
        ("/home/me/x.ipynb Cell 5 in <cell line: 4>()", True),
        ("File ~/src/model.py:4", False),
    ],
)
def test_cells_and_modules_of_other_notebooks_are_read(head: str, is_cell: bool) -> None:
    text = (
        "RuntimeError                              Traceback (most recent call last)\n"
        f"{head}\n      3 \n----> 4 x.mT.view(2, -1)\n      5 \n\n"
        "RuntimeError: view size is not compatible with input tensor's size and stride\n"
    )
    (failure,) = read_log(text)
    path = "src/play.ipynb" if is_cell else "src/model.py"
    assert found_at(failure, "import torch\nx = torch.rand(2, 3)\n\nx.mT.view(2, -1)\n", path) == (4, 6)


def test_names_that_rich_puts_below_long_paths_are_read() -> None:
    text = (
        "╭────────── Traceback (most recent call last) ───────────╮\n"
        "│ /home/me/a/long/path/model.py:6 in                     │\n│ rows                     │\n"
        "│                     │\n│   5 │   y = x.transpose(1, 2)                     │\n"
        "│ ❱ 6 │   return y.view(2, -1)                     │\n╰────────────────────────────────────╯\n"
        "RuntimeError: view size is not compatible with input tensor's size and stride\n"
    )
    (failure,) = read_log(text)
    assert (failure.frames[-1].function, failure.frames[-1].line) == ("rows", 6)


OUTER = '  File "/repo/src/model.py", line 10, in outer\n    return rows(x.view(3, -1))\n'
INNER = '  File "/repo/src/model.py", line 6, in rows\n    return y.view(2, -1)\n'
MODULE = '  File "/repo/src/model.py", line 14, in <module>\n    outer(x)\n'
SAID = "view size is not compatible with input tensor's size and stride"


@pytest.mark.parametrize(
    "text",
    [
        f"Exception has occurred: RuntimeError\n{SAID}\n{INNER}{OUTER}{MODULE}RuntimeError: {SAID}\n",
        f"Exception has occurred: RuntimeError       (note: paused)\n{SAID}\n{INNER}{OUTER}RuntimeError: {SAID}\n",
        f"RuntimeError: {SAID}\n{MODULE}{OUTER}{INNER}",
        f"RuntimeError: {SAID}\n{INNER}{OUTER}{MODULE}",
    ],
)
def test_frames_below_the_message_are_read_from_the_right_end(text: str) -> None:
    (failure,) = read_log(text)
    assert failure.frames[-1].text == "return y.view(2, -1)"


def test_frames_below_a_message_that_another_error_ends_are_not_its_own() -> None:
    told, other = read_log(f"{SAID}\n{MODULE}ValueError: other\n")
    assert (told.frames, other.frames[-1].line) == ((), 14)


def test_frames_that_lost_all_their_blanks_are_read() -> None:
    assert sites("\n".join(line.strip() for line in log("called").splitlines())) == marked("called")


def test_the_rest_of_a_frames_head_is_read() -> None:
    lines = log("called").splitlines()
    last = max(i for i, line in enumerate(lines) if 'File "' in line)
    assert sites("\n".join([lines[last].partition("tests")[2], *lines[last + 1 :]])) == marked("called")


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_any_text_is_read(text: str) -> None:
    read_log(text)


PIECES = [
    *('File "', '", line 3, in f\n', "Traceback (most recent call last)", "\n", "E   ", "> ", "x.py:3: in f"),
    *("Cell In[3], line 4", "----> 3 x", "RuntimeError: shape '[3]' is invalid for input of size 4"),
    *("from user code:\n", "\x1b[31m", "│ ", "╭─ x ─╮", "^^^", "    ", "[rank0]: ", "\\n"),
    *("Original Traceback (most recent call last)", "During handling of the above exception, another"),
    *("x.py:3: RuntimeError", "<--- HERE", "❱ 3 x", "/a/x.py:3 in f", "~~~^^", "(((", "shape '["),
    *("call_method view(*(", "...<2 lines>..."),
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=40))
def test_pieces_of_logs_in_any_order_are_read(pieces: list[str]) -> None:
    read_log("".join(pieces))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["called", "worker", "chained", "as_complex"]), st.data())
def test_real_logs_with_holes_are_read(name: str, data: st.DataObject) -> None:
    text = log(name)
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    for failure in read_log(text[:start] + data.draw(st.text(max_size=9)) + text[end:]):
        found_at(failure)


@pytest.mark.parametrize("name", ["called", "worker"])
def test_a_long_log_is_read_in_time_that_grows_with_its_length(name: str) -> None:
    once = ("step 1 loss 0.5 lr 1e-3 view of the data\n" * 200 + log(name)) * 5

    def seconds(text: str) -> float:
        start = time.process_time()
        read_log(text)
        return time.process_time() - start

    assert seconds(once * 16) < 16 * 4 * max(min(seconds(once) for _ in range(3)), 0.005)


def archive(**members: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return packed.getvalue()


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, lzma.compress, lambda raw: archive(a="", b=raw.decode())]
)
def test_packed_logs_are_unpacked(pack: Callable[[bytes], bytes]) -> None:
    raw = log("called").encode()
    assert sites(decode_log(pack(raw))) == marked("called")
    assert sites(decode_log(gzip.compress(b"epoch 1\n") + gzip.compress(raw))) == marked("called")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, lambda raw: archive(a=raw.decode())])
def test_damaged_packed_logs_are_read_as_far_as_they_go(pack: Callable[[bytes], bytes]) -> None:
    packed = pack(log("called").encode())
    for end in range(0, len(packed), 7):
        read_log(decode_log(packed[:end]))
        read_log(decode_log(packed[:end] + b"xx" + packed[end:]))


def test_a_gzip_log_that_was_cut_off_is_read() -> None:
    raw = log("called").encode() + b"".join(b"%d\n" % number for number in range(9000))
    assert sites(decode_log(gzip.compress(raw)[:-2000])) == marked("called")


def test_what_is_far_from_any_failure_is_not_read_line_by_line() -> None:
    noise = "2026-12-03 07:00:01,123 INFO step 1 loss 0.5 memory 12GB view of the data\n" * 100_000
    for text in (noise + log("called") + noise, log("called") + noise, noise + log("called").rstrip("\n")):
        assert sites(text) == marked("called")
        assert len(plain_lines(text)) < 10_000
    assert read_log(noise) == ()
    assert sites(log("worker") + noise + log("called")) == [*marked("worker"), *marked("called")]


@pytest.mark.parametrize(
    "line", ["a" * 300_000, "File " * 60_000, "^ " * 150_000, "[" * 300_000, ": in " * 60_000, "x.py:3" * 50_000]
)
def test_one_very_long_line_does_not_hang(line: str) -> None:
    start = time.process_time()
    read_log(f"Traceback (most recent call last)\n{line}\n" + line + "view (" + line)
    assert time.process_time() - start < 5


def test_traced_logs_bear_a_prefix() -> None:
    for name in ("strided", "channels"):
        assert sites(prefixed(logs_of(*TRACED)[name], "[rank0]: ")) == marked(name)


def test_lines_are_numbered_and_streams_told_apart() -> None:
    lines = plain_lines("a\n[rank0]: b\n[rank1]: c\n")
    assert [(line.number, line.text) for line in lines] == [(1, "a"), (2, "b"), (3, "c"), (4, "")]
    assert len({line.stream for line in lines}) == 3
