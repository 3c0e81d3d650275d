"""Where workers are reached whose advertised names lead nowhere from here, and who is trusted on the way."""

from __future__ import annotations

import pytest

from eosctl.core.workers.config import parse_connect_map, reachable_url
from eosctl.errors import UsageError

POD = "http://connect-2.connect.svc:8083"


@pytest.mark.parametrize(
    ("mapping", "url", "reached"),
    [
        ("http://w1:8083=http://127.0.0.1:18083", "http://w1:8083/", "http://127.0.0.1:18083"),
        ("w1:8083=https://lb.example/connect", "http://w1:8083", "https://lb.example:443/connect"),
        ("w1=127.0.0.1", "https://w1:8443", "https://127.0.0.1:8443"),
        ("w1=127.0.0.1:9", "https://w1:8443", "https://127.0.0.1:9"),
        ("connect-*.connect.svc:8083=http://127.0.0.1:1808*", POD, "http://127.0.0.1:18082"),
        ("*.connect.svc=*.example.com", POD, "http://connect-2.example.com:8083"),
        ("*-*.connect.svc=http://*/*", POD, "http://connect:80/2"),
        ("*=http://lb", POD, "http://lb:80"),
        ("W1=lb", "http://w1:8083", "http://lb:8083"),
        ("[::1]:8083=lb", "http://[::1]:8083", "http://lb:8083"),
        ("w1:8084=lb", "http://w1:8083", "http://w1:8083"),
        ("https://w1:8083=lb", "http://w1:8083", "http://w1:8083"),
        ("w*1=lb", "http://w1.evil/1:8083", "http://w1.evil/1:8083"),
    ],
)
def test_where_a_worker_is_reached(mapping: str, url: str, reached: str) -> None:
    assert reachable_url(url, parse_connect_map([mapping])) == reached


def test_the_first_that_is_about_the_worker_counts() -> None:
    mappings = parse_connect_map(["w1=a", "w*=b", "*=c"])
    assert [reachable_url(f"http://{host}:1", mappings) for host in ("w1", "w2", "x")] == [
        "http://a:1", "http://b:1", "http://c:1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["w1", "w1=", "=lb", "w1=lb*", "w1=ftp://lb", "w1=http://", "w1=http://me:pw@lb:1", "w1=w2=lb"]
)
def test_what_maps_no_worker(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_connect_map([text])
    assert "pw" not in caught.value.message.replace("password", "")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("w*=http://127.0.0.1:1808*", {"http://127.0.0.1"}),
        ("w1=lb", {"http://lb", "https://lb"}),
        ("w1=https://LB:1/path", {"https://lb"}),
        ("*=https://*:8443", set()),
        ("*.a=*.b", set()),
    ],
)
def test_a_host_that_the_group_tells_is_not_named_by_the_user(text: str, named: set[str]) -> None:
    """Whoever may join the group tells its URL: a password must not go there by way of a *."""
    [mapping] = parse_connect_map([text])
    assert mapping.named_origins() == named
