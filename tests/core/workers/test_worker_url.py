"""A worker's URL as users write it: one spelling, what can't be one, and no password in what is said."""

from __future__ import annotations

import pytest

from eosctl.core.workers.url import parse_worker_url
from eosctl.errors import UsageError


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("w1:8083", "http://w1:8083"),
        ("localhost", "http://localhost:80"),
        ("http://w1:8083/", "http://w1:8083"),
        ("https://W1/connect//", "https://w1:443/connect"),
        ("http://[::1]:8083", "http://[::1]:8083"),
        (" http://w1:8083 ", "http://w1:8083"),
    ],
)
def test_worker_urls_have_one_spelling(given: str, text: str) -> None:
    assert parse_worker_url(given).text == text


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("", "no host"),
        ("http://", "no host"),
        ("ftp://w1:21", "neither http nor https"),
        ("http://w1:99999", "Port out of range"),
        ("http://w1:port", "Port could not be cast"),
        ("http://w1:8083/?x=1", "query"),
        ("http://w 1:8083", "space"),
        ("http://[::1", "Invalid IPv6"),
    ],
)
def test_unusable_worker_urls(given: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_worker_url(given)


def test_an_unusable_url_does_not_show_its_password() -> None:
    with pytest.raises(UsageError) as caught:
        parse_worker_url("ftp://me:secret@w1:21")
    assert "secret" not in caught.value.message


def test_a_url_does_not_show_its_password_when_it_is_printed() -> None:
    assert "p@ss" not in repr(parse_worker_url("http://me:p%40ss@h:1"))
