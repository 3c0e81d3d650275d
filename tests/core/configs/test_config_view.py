"""Values of the config topic as they may be shown: the configs of connectors and the session key are not."""

from __future__ import annotations

import pytest

from eosctl.core.configs.view import without_secrets
from eosctl.core.records import Record


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        (b"session-key", b'{"key":"a2V5","algorithm":"H"}', b'{"key":"***","algorithm":"H"}'),
        (b"connector-c", b'{"properties":{"a":"1","x.password":"p"}}', b'{"properties":{"a":"1","x.password":"***"}}'),
        (
            b"task-c-0",
            b'{"properties":{"x":"${file:/f:k}"},"other":"p"}',
            b'{"properties":{"x":"${file:/f:k}"},"other":"***"}',
        ),
        (b"connector-c", b"not json p", b'"***"'),
        (b"connector-c", b'["p"]', b'"***"'),
        (b"connector-c", None, None),
        (b"commit-c", b'{"tasks":1}', b'{"tasks":1}'),
        (b'["connector-c",{}]', b'{"password":"p"}', b'{"password":"p"}'),
        (None, b"p", b"p"),
    ],
)
def test_values_of_the_config_topic(key: bytes | None, value: bytes | None, shown: bytes | None) -> None:
    assert without_secrets(Record("t", 0, 0, 0, key, value)) == Record("t", 0, 0, 0, key, shown)
