"""How to reach and authenticate to a Kafka cluster: the one value that both kinds of Kafka client are made from."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Secret:
    """A text that never shows itself: it prints as `***` and is not a string. Pass `reveal()` to a client only.

    Functions that join, cut or encode strings do not accept it. An empty one is false; those with the same text are
    equal.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the secret itself."""
        return self._text

    def __repr__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return "***"

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


def revealed(secret: Secret | None) -> str | None:
    """Return the text of a secret, None without one; an empty secret is still a secret."""
    return None if secret is None else secret.reveal()


class ClientSettings(Struct, frozen=True):
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
    oauth_extensions: Mapping[str, str] = {}
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
    extra: Mapping[str, str] = {}
