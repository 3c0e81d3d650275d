"""Kafka's version from what workers of several distributions say."""

from __future__ import annotations

import pytest

from eosctl.core.versions import is_older, kafka_version, shown_version


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("4.3.1", (4, 3)),
        ("3.2", (3, 2)),
        ("4.3.0-rc1", (4, 3)),
        ("4.4.0-SNAPSHOT", (4, 4)),
        ("5.4.0-ccs", (2, 4)),
        ("5.5.1-ce", (2, 5)),
        ("6.1.1-ce", (2, 7)),
        ("7.0.0-ccs", (3, 0)),
        ("7.2.1-ce", (3, 2)),
        ("7.6.0-ccs", (3, 6)),
        ("7.8.0-0-ccs", (3, 8)),
        ("7.9.0-ccs", (3, 9)),
        ("8.1.0-ccs", (4, 1)),
        ("9.0.0-ccs", None),
        (f"4.{'3' * 5000}.1", None),
        ("3.4.1.7.2.18.0-641", (3, 4)),
        ("3.7.0.redhat-00007", (3, 7)),
        ("3.7.0-acme", None),
        ("3.7.0.acme-1", None),
        ("trunk", None),
        ("4", None),
        ("4.x", None),
        ("\u0664.3", None),
        (None, None),
    ],
)
def test_versions(said: str | None, version: tuple[int, int] | None) -> None:
    """`7.6.0-ccs` was taken for a Kafka 7.6, newer than all that a version is compared with."""
    assert kafka_version(said) == version


def test_what_is_not_known_is_not_older() -> None:
    assert is_older("7.2.1-ccs", (3, 3))
    assert not is_older("7.3.0-ccs", (3, 3))
    assert not is_older("3.0.0-acme", (3, 3))
    assert not is_older(None, (3, 3))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("4.3.1", "4.3.1"),
        ("3.2", "3.2"),
        ("3.7.0.redhat-00007", "3.7.0.redhat-00007"),
        ("7.6.0-ccs", "7.6.0-ccs (Kafka 3.6)"),
        ("3.7.0-acme", "3.7.0-acme (of an unknown distribution)"),
    ],
)
def test_what_is_shown(said: str, shown: str) -> None:
    assert shown_version(said) == shown
