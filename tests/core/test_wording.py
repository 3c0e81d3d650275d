"""Counts in sentences."""

from __future__ import annotations

import pytest

from eosctl.core.wording import counted


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
