"""Numbers of configurations, as Integer.parseInt and Long.parseLong read them after String.trim."""

from __future__ import annotations

import pytest

from eosctl.core.java.properties import LONG_BITS, MOST_PORT, java_number, whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7), (" 1000000", 1000000), ("5\t\n", 5), ("+6", 6), ("-1", -1), ("007", 7), ("\x00 4", 4),
        ("2147483647", 2147483647), ("-2147483648", -2147483648), ("\u0664", 4),
        ("", None), (" ", None), ("2147483648", None), ("1_000", None), ("1.0", None), ("1e3", None), ("0x10", None),
        ("+", None), ("- 1", None), ("\u00a04", None), ("${file:x:y}", None), ("4 5", None), ("\u00b2", None),
        ("9" * 5000, None),
    ],
)  # fmt: skip
def test_a_number_is_what_java_reads(text: str, number: int | None) -> None:
    assert java_number(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7), ("0", 0), ("000", 0), (f"{'0' * 5000}12", 12), ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None), ("9" * 5000, None), ("", None), ("-1", None), ("+1", None), (" 1", None),
        ("\u0664", None), ("\u00b2", None), ("1_0", None),
    ],
)  # fmt: skip
def test_a_whole_number_is_ascii_digits(text: str, number: int | None) -> None:
    assert whole_number(text) == number


def test_a_whole_number_may_have_a_bound() -> None:
    assert (whole_number("65535", most=MOST_PORT), whole_number("65536", most=MOST_PORT)) == (65535, None)


def test_a_long_is_longer() -> None:
    assert java_number("9223372036854775807", bits=LONG_BITS) == 2**63 - 1
    assert java_number("9223372036854775808", bits=LONG_BITS) is None
