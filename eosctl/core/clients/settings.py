"""How to reach and authenticate to a Kafka cluster: the one value that both kinds of Kafka client are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from eosctl.core.frozen import frozen


class Secret(str):
    """A string that never shows itself: `repr` and formatting print `***`; pass `.reveal()` to a client only."""

    __slots__ = ()

    def reveal(self) -> str:
        """The secret itself."""
        return str.__str__(self)

    def __repr__(self) -> str:
        return "***"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return "***"


@frozen
class ClientSettings:
    """Client settings under librdkafka-neutral names; paths are of PEM files unless they say otherwise.

    `bootstrap_servers` are `host:port` or `[v6]:port`. `security_protocol` is PLAINTEXT, SSL, SASL_PLAINTEXT or
    SASL_SSL. `extra` holds librdkafka properties that eosctl passes on without reading them.
    """

    bootstrap_servers: tuple[str, ...]
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: Secret | None = None
    oauth_token: Secret | None = None
    oauth_token_command: str | None = None
    oauth_token_file: str | None = None
    oauth_token_endpoint_url: str | None = None
    oauth_client_id: str | None = None
    oauth_client_secret: Secret | None = None
    oauth_scope: str | None = None
    oauth_ca_location: str | None = None
    oauth_ca_pem: str | None = None
    oauth_extensions: Mapping[str, str] = field(default_factory=dict)
    ssl_ca_location: str | None = None
    ssl_ca_pem: str | None = None
    ssl_certificate_location: str | None = None
    ssl_certificate_pem: str | None = None
    ssl_key_location: str | None = None
    ssl_key_pem: Secret | None = None
    ssl_key_password: Secret | None = None
    ssl_check_hostname: bool = True
    client_id: str = "eosctl"
    request_timeout_ms: int = 30_000
    extra: Mapping[str, str] = field(default_factory=dict)
