"""A few hundred random programs on real torch; `python -m tests.random_programs` runs thousands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.random_programs.properties import judge
from tests.random_programs.writer import write_program

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="columns of calls came with Python 3.11")


@st.composite
def programs(draw: st.DrawFn) -> str:
    def pick(several: Sequence[Any], /) -> Any:
        return several[draw(st.integers(0, len(several) - 1))]

    return write_program(pick)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=200, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_verdicts_and_edits_hold_when_the_program_runs(text: str) -> None:
    assert judge(text).counterexamples == [], text
