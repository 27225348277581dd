"""Failures that are provoked for real, read back from what they print."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping

import pytest

from codemod.evidence.failure import Kind, Stage
from codemod.evidence.tracebacks import read_log
from tests.evidence.real_logs import found_at, log_of, logs_of, marked

EAGER = (
    *("merged", "two_on_a_line", "through_comprehension", "over_lines", "as_other", "unbound", "renamed", "by_lambda"),
    *("by_literal", "reshaped", "as_bytes", "as_complex", "called", "module", "vmap", "device", "subclass", "fake"),
    *("chained", "logged", "backward", "worker", "listed", "summed", "threaded", "pooled", "anomalous"),
    "repeated",
)
WITHOUT_SITE = ("installed", "by_name", "no_batch", "anew", "graph")
ALL = (*EAGER, *WITHOUT_SITE, "handled")
TRACED = ("strided", "aot", "compiled_literal", "channels", "inductor", "export", "specialized", "specialized_strict")


def sites(logs: Mapping[str, str]) -> dict[str, list[tuple[int, int] | str]]:
    return {name: [found_at(failure) for failure in read_log(log)] for name, log in logs.items()}


def test_eager_failures_are_found_at_their_calls() -> None:
    logs = logs_of(*ALL)
    assert sites({name: logs[name] for name in EAGER}) == {name: marked(name) for name in EAGER}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="has no exception groups")
def test_a_failure_in_an_exception_group_is_found() -> None:
    found = sites(logs_of("grouped"))["grouped"]
    assert [place for place in found if isinstance(place, tuple)] == marked("grouped")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="has no notes")
def test_a_note_below_the_message_is_no_matter() -> None:
    assert sites(logs_of("noted")) == {"noted": marked("noted")}


def test_failures_without_a_call_of_the_users_say_so() -> None:
    found = sites(logs_of(*ALL))
    assert "raised in installed code" in found["installed"][0]
    assert "make it `.reshape()` there" in found["installed"][0]
    assert "the traceback of the call that failed is not in the log" in found["anew"][0]
    assert "run the model without it" in found["graph"][0]
    assert "calls a method by a name that is computed" in found["by_name"][0]


def test_a_failure_that_is_not_about_layout_is_other() -> None:
    (failure,) = read_log(logs_of(*ALL)["no_batch"])
    assert failure.kind is Kind.OTHER


def test_two_failures_of_a_handler_are_two() -> None:
    assert sites(logs_of(*ALL))["handled"] == marked("handled")


def test_one_log_of_all_programs_tells_each_site_once() -> None:
    found = [found_at(failure) for failure in read_log(log_of(*ALL))]
    places = [place for place in found if isinstance(place, tuple)]
    # fake tensors tell the sizes, and the summary of a frame has neither text nor columns: both tell of a site anew
    assert set(places) == {place for name in (*EAGER, "handled") for place in marked(name)}
    assert len(places) == len(set(places)) + 2


def test_traced_failures_are_found_at_their_calls() -> None:
    assert sites(logs_of(*TRACED)) == {name: marked(name) for name in TRACED}


def test_the_stage_of_traced_failures_is_told() -> None:
    stages = {name: read_log(log)[0].stage for name, log in logs_of(*TRACED).items()}
    assert stages == {
        "strided": Stage.DYNAMO,
        "aot": Stage.DYNAMO,
        "compiled_literal": Stage.DYNAMO,
        "channels": Stage.DECOMPOSITION,
        "inductor": Stage.DECOMPOSITION,
        "export": Stage.EXPORT,
        "specialized": Stage.EXPORT,
        "specialized_strict": Stage.EXPORT,
    }


def test_fake_tensors_tell_sizes_strides_and_target() -> None:
    (failure,) = read_log(logs_of(*TRACED)["strided"])
    assert (failure.sizes, failure.strides, failure.target) == ((2, 4, 3), (12, 1, 4), (2, -1))


def test_sizes_that_are_symbols_are_unknown() -> None:
    (failure,) = read_log(logs_of(*TRACED)["aot"])
    assert failure.sizes is not None and None in failure.sizes


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor lowers for the CPU only with a C++ compiler")
def test_a_dtype_view_that_only_inductor_refuses_is_found() -> None:
    (failure,) = read_log(logs_of("complex_pairs")["complex_pairs"])
    assert (failure.kind, failure.stage) == (Kind.DTYPE_VIEW, Stage.INDUCTOR)
    assert [found_at(failure)] == marked("complex_pairs")


def test_a_strict_export_names_the_op_and_no_line() -> None:
    (failure,) = read_log(logs_of("export_strict")["export_strict"])
    assert (failure.stage, failure.details.operation, failure.target) == (Stage.EXPORT, "view", (2, -1))
    assert "run the model without it" in found_at(failure)


def test_an_exported_program_that_gets_another_size_says_so() -> None:
    (failure,) = read_log(logs_of("other_size")["other_size"])
    assert failure.kind is Kind.EXPORTED_SIZE


@pytest.mark.skipif(shutil.which("g++") is None, reason="AOTInductor needs a C++ compiler")
def test_what_aotinductor_refuses_is_found() -> None:
    (failure,) = read_log(logs_of("packaged")["packaged"])
    assert (failure.kind, failure.stage) == (Kind.VIEW_REFUSED, Stage.AOTINDUCTOR)
    assert [found_at(failure)] == marked("packaged")


@pytest.mark.skipif(shutil.which("g++") is None, reason="AOTInductor needs a C++ compiler")
def test_a_package_that_fails_as_it_runs_names_the_op_in_its_frames_of_cpp() -> None:
    (failure,) = read_log(logs_of("package_run")["package_run"])
    assert (failure.kind, failure.stage) == (Kind.VIEW_REFUSED, Stage.AOTINDUCTOR)
    assert failure.details.operation == "linalg_matrix_exp"
