from __future__ import annotations

import pytest

from codemod.finding import Action
from tests.edit.rules import edit


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('f"{x.view(1)}"', 'f"{x.reshape(1)}"'),
        ('f"é {x.view(1)!r:>{y.view(2)}} {{x.view(3)}}"', 'f"é {x.reshape(1)!r:>{y.reshape(2)}} {{x.view(3)}}"'),
        ('f"a={x.view(1)} b = {y.view(2)}"', 'f"a={x.reshape(1)} b = {y.reshape(2)}"'),
        ('print("x.view(1)" f"{x.view(1)}")', 'print("x.view(1)" f"{x.reshape(1)}")'),
    ],
)
def test_call_in_an_fstring_is_rewritten_or_reported_but_never_misplaced(before: str, after: str) -> None:
    outcome = edit(before, "reshape")
    reported = any(found.action is Action.REPORT for found in outcome.findings)
    assert outcome.text == after or reported


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('f"{x.view(1)=}"', "also shows the call's text"),
        ('f"{x.view(1) = !s}"', "also shows the call's text"),
    ],
)
def test_self_documenting_expression_is_reported(text: str, why: str) -> None:
    outcome = edit(text, "reshape")
    assert outcome.text == text
    assert [why in found.reasons[-1].text for found in outcome.findings] == [True]


def test_new_text_with_quotes_is_not_put_into_an_fstring() -> None:
    assert edit('f"{x.view(1)}"; x.view(1)', "quote").text == 'f"{x.view(1)}"; x.view("q")'


@pytest.mark.parametrize(
    "text",
    [
        'f"{x.view(1)} {x.view(1)}"',
        'f"""\n{\nx.view(1)}\n {x.view(2)}"""',
        'y = ("a" f"{x.view(1)}"\n  f"""é{x.view(2)}\n{x.view(1)}""")',
        'rf"\\{x.view(1)}"; x.view(2)',
    ],
)
def test_many_fstrings_never_break_the_file(text: str) -> None:
    changed = edit(text, "reshape").text
    assert changed.replace("reshape", "view") == text
