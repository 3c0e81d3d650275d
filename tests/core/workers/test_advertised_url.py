"""Where a worker says that it is reached, by its file (`RestServer.advertisedUrl`)."""

from __future__ import annotations

import pytest

from eosctl.core.workers.url import advertised

BOTH = "https://A:8443, http://B:8083"


@pytest.mark.parametrize(
    ("properties", "url"),
    [
        ({"listeners": BOTH}, "http://b:8083"),
        ({"listeners": BOTH, "rest.advertised.listener": " HTTPS "}, "https://a:8443"),
        ({"listeners": "https://a:1,https://b:2"}, "https://a:1"),
        (
            {"listeners": "http://a:1", "rest.advertised.host.name": "w1 ", "rest.advertised.port": " 80 "},
            "http://w1:80",
        ),
        ({"listeners": "http://[::1]:8083"}, "http://[::1]:8083"),
        ({"rest.advertised.host.name": "w1"}, "http://w1:8083"),
    ],
)
def test_the_url(properties: dict[str, str], url: str) -> None:
    """The first listener counted, whatever its scheme; blanks at an end made another host."""
    assert advertised(properties).url == url


@pytest.mark.parametrize(
    ("properties", "host", "port"),
    [
        ({}, None, 8083),
        ({"listeners": "http://:9000"}, None, 9000),
        ({"listeners": "http://0.0.0.0:9000"}, None, 9000),
        ({"listeners": "http://[::]:9000"}, None, 9000),
        ({"listeners": "http://a:0"}, "a", None),
        ({"listeners": "http://a:1", "rest.advertised.listener": "https"}, None, None),
        ({"listeners": "nonsense"}, None, None),
        ({"rest.advertised.port": "${port}"}, None, None),
    ],
)
def test_what_the_file_does_not_say(properties: dict[str, str], host: str | None, port: int | None) -> None:
    found = advertised(properties)
    assert (found.host, found.port, found.url, found.unresolved) == (host, port, None, ())


@pytest.mark.parametrize(
    ("properties", "host", "port"),
    [
        ({"listeners": "http://${env:POD_IP}:8083"}, None, None),
        ({"listeners": "${file:/a,b:c}", "rest.advertised.host.name": "w1"}, "w1", None),
        ({"rest.advertised.host.name": "${env:POD_NAME}.connect"}, None, 8083),
        ({"listeners": "http://w1:1", "rest.advertised.port": "${env:PORT}"}, "w1", None),
    ],
)
def test_what_only_the_worker_can_resolve(properties: dict[str, str], host: str | None, port: int | None) -> None:
    """`${env:POD_NAME}` was taken for the name of a host, which no member has."""
    found = advertised(properties)
    assert (found.host, found.port, found.url) == (host, port, None)
    assert found.unresolved == tuple(name for name, value in properties.items() if "${" in value)
