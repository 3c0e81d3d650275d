"""JSON as typed classes: what fits, and the words for what does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import pytest

from eosctl.core.kept.plan_file import WrongMemberError, json_of, typed


class Mode(StrEnum):
    ON = "on"


@dataclass(frozen=True, slots=True)
class Worker:
    name: str
    mode: Mode = Mode.ON


@dataclass(frozen=True, slots=True)
class Group:
    workers: tuple[Worker, ...]
    members: Mapping[str, int | None]
    place: str | None = None


def test_json_becomes_a_value_of_the_class_and_what_it_does_not_have_is_left_out() -> None:
    data = {"workers": [{"name": "w", "mode": "on", "later": 1}], "members": {"w": None}, "event": "begin"}
    assert typed(data, Group) == Group((Worker("w"),), {"w": None})


@pytest.mark.parametrize(
    ("data", "words", "is_missing"),
    [
        ({"members": {}}, "it has no 'workers'", True),
        ({"members": {}, "workers": [{"name": "w"}, {}]}, "workers[1] has no 'name'", True),
        ({"members": {}, "workers": [{"name": 7}]}, "workers[0].name: expected str, got int", False),
        ({"members": {}, "workers": [{"name": "w", "mode": "up"}]}, "workers[0].mode: invalid enum value 'up'", False),
        ({"members": {"w": "x"}, "workers": []}, "members[...]: expected int or null, got str", False),
        ({"members": {}, "workers": [], "place": 1}, "place: expected str or null, got int", False),
        ([1], "expected object, got array", False),
        (None, "expected object, got null", False),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(data: object, words: str, is_missing: bool) -> None:
    with pytest.raises(WrongMemberError) as caught:
        typed(data, Group)
    assert (str(caught.value), caught.value.is_missing) == (words, is_missing)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": "\xc3\xa4"}', {"a": "ä"}),
        (b"\xef\xbb\xbf[]", []),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        ('"\\\\ud800"', "\\ud800"),
        ("null", None),
    ],
)
def test_json_of_others_is_read(text: bytes | str, value: object) -> None:
    assert json_of(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"\xff", b'"\xed\xa0\x80"', b'"\\ud800"', b'{"\\uDFFF": 1}', b'["\\ude00\\ud83d"]', '"\ud800"'),
        *(b"[" * 100_000, b"9" * 5_000),
    ],
)
def test_json_that_is_none_or_that_nobody_can_send_is_a_value_error(text: bytes | str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its callers say what it is of
        json_of(text)


def test_half_of_a_surrogate_pair_can_be_mended() -> None:
    assert json_of(b'{"\\ud800a": ["b\\udfff", 1]}', mend=True) == {"?a": ["b?", 1]}
