"""Which proxy is on the way to a worker, by the environment."""

from __future__ import annotations

import pytest

from eosctl.core.workers.proxies import proxies_of
from eosctl.errors import UsageError

BOTH = {"HTTP_PROXY": "http://p:3128", "HTTPS_PROXY": "http://s:3128", "ALL_PROXY": "socks5h://a:1080"}


def way(environ: dict[str, str], url: str) -> str | None:
    proxy = proxies_of(environ).of(url)
    return None if proxy is None else proxy.shown


@pytest.mark.parametrize(
    ("environ", "url", "proxy"),
    [
        ({}, "http://w:8083", None),
        (BOTH, "http://w:8083", "http://p:3128"),
        (BOTH, "https://w:8083", "http://s:3128"),
        ({"ALL_PROXY": "socks://a:1080"}, "https://w:8083", "socks5h://a:1080"),
        ({"HTTP_PROXY": "http://p:1", "http_proxy": "small:2"}, "http://w:8083", "http://small:2"),
        ({"HTTP_PROXY": " "}, "http://w:8083", None),
        (BOTH, "http://localhost:8083", None),
        (BOTH, "http://127.0.0.9:8083", None),
        (BOTH, "http://[::1]:8083", None),
    ],
)
def test_the_proxy_of_a_url(environ: dict[str, str], url: str, proxy: str | None) -> None:
    assert way(environ, url) == proxy


@pytest.mark.parametrize(
    ("no_proxy", "url", "goes_directly"),
    [
        ("*", "http://w:8083", True),
        ("other, w", "http://w:8083", True),
        ("example.com", "http://w.example.com:8083", True),
        (".example.com", "http://w.Example.com:8083", True),
        ("*.example.com", "http://w.example.com:8083", True),
        ("example.com", "http://notexample.com:8083", False),
        ("w:8083", "http://w:8083", True),
        ("w:8084", "http://w:8083", False),
        ("10.0.0.0/8", "http://10.1.2.3:8083", True),
        ("10.0.0.0/8", "http://11.1.2.3:8083", False),
        ("10.0.0.0/99", "http://10.1.2.3:8083", False),
        ("10.0.0.0/8", "http://w:8083", False),
        ("fd00::1", "http://[fd00::1]:8083", True),
    ],
)
def test_what_is_reached_without_one(no_proxy: str, url: str, goes_directly: bool) -> None:
    assert (way({**BOTH, "no_proxy": no_proxy}, url) is None) is goes_directly


def test_a_password_is_not_shown() -> None:
    proxy = proxies_of({"HTTP_PROXY": "http://me:p@ss@p:3128/"}).of("http://w:1")
    assert proxy is not None
    assert (proxy.shown, "p@ss" in repr(proxy)) == ("http://p:3128", False)


@pytest.mark.parametrize("text", ["ftp://p:1", "http://", "http://p:port", "socks9://p:1"])
def test_what_is_no_proxy_is_an_error_where_it_is_used(text: str) -> None:
    """Not before: most commands of a command line ask no worker."""
    proxies = proxies_of({"HTTPS_PROXY": text})
    assert proxies.of("http://w:1") is None
    with pytest.raises(UsageError, match=r"\$HTTPS_PROXY: .* is not the URL of a proxy"):
        proxies.of("https://w:1")
