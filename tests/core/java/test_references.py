"""References of config providers in values: what is one, and how long it takes to find out."""

from __future__ import annotations

import time

import pytest

from eosctl.core.java.properties import is_reference, references, without_references


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("${file:/p:k}", ["${file:/p:k}"]),
        ("x${env:A}${b:c}y", ["${env:A}", "${b:c}"]),
        ("a${b:${c}", ["${b:${c}"]),
        ("${a$b:c}", ["${a$b:c}"]),
        ("${${a:b}", ["${a:b}"]),
        ("${a}", []),
        ("${:x}", []),
        ("${a:b", []),
        ("} ${a:b", []),
        ("", []),
    ],
)
def test_what_a_worker_must_resolve(value: str, found: list[str]) -> None:
    assert references(value) == found
    assert is_reference(value) is bool(found)
    assert len(without_references(value)) == len(value) - sum(map(len, found))


@pytest.mark.parametrize("value", ["${", "${a", "${a:", "${a:b}", "$", "}${a:"])
@pytest.mark.parametrize("end", ["", "}"])
def test_the_time_to_search_grows_with_the_text(value: str, end: str) -> None:
    text = value * 60_000 + end  # the square of it would take minutes
    begin = time.monotonic()
    is_reference(text)
    references(text)
    without_references(text)
    assert time.monotonic() - begin < 5
