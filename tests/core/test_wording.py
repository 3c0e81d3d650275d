"""Counts and times in sentences."""

from __future__ import annotations

import pytest

from eosctl.core.wording import counted, rfc3339


@pytest.mark.parametrize(
    ("number", "noun", "plural", "text"),
    [
        (0, "task", None, "0 tasks"),
        (1, "task", None, "1 task"),
        (2, "recorded id", None, "2 recorded ids"),
        (12_345, "key", None, "12,345 keys"),
        (1, "key has", "keys have", "1 key has"),
        (2, "key has", "keys have", "2 keys have"),
    ],
)
def test_counted(number: int, noun: str, plural: str | None, text: str) -> None:
    assert counted(number, noun, plural) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_042, "2023-11-14T22:13:20.042Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "+10000-01-01T00:00:00.000Z"),
        (2**63 - 1, "+292278994-08-17T07:12:55.807Z"),
        (-1, None),
        (-(2**63), None),
        (None, None),
    ],
)
def test_times_are_rfc3339_utc(ms: int | None, text: str | None) -> None:
    """A timestamp behind the year 9999 ended `txn producers` with an unexpected error: clients choose it."""
    assert rfc3339(ms) == text
