"""How to reach and authenticate to a Kafka cluster: the one value that both kinds of Kafka client are made from.

Bootstrap servers are checked once for both kinds of client, in the forms that Java accepts: `host:port`, or
`LISTENER://host:port`. The characters and the expiry of bearer tokens are read here too, which is pure.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from eosctl.errors import InputFileError, UsageError

_SERVER = re.compile(r"(?:[A-Za-z0-9%._-]*://)?(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+):(\d{1,5})", re.ASCII)


def checked_servers(servers: Sequence[str], origin: str) -> tuple[str, ...]:
    """Return `servers` without listener names, which Java drops as well (`Utils.HOST_PORT_PATTERN`, Kafka 4.3).

    Raises UsageError if there are none, or if one is not a host and port.
    """
    if not servers:
        raise UsageError(f"no bootstrap server is named ({origin})", hint="Write HOST:PORT, several with commas.")
    return tuple(_checked(server, origin) for server in servers)


def _checked(server: str, origin: str) -> str:
    match = _SERVER.fullmatch(server)
    if match is None or not 0 < int(match[2]) < 65536:
        raise UsageError(f"{server!r} is not a bootstrap server ({origin})", hint="Write HOST:PORT, or [IPV6]:PORT.")
    return f"{match[1]}:{match[2]}"


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
    oauth_audience: str | None = None
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


_LATEST_S = 253_402_300_799.0  # the end of the year 9999: a later end is ignored


def is_token(text: str) -> bool:
    """Return whether a text can be a bearer token.

    It becomes a part of a line of a protocol, which a line break in it would end.
    """
    return bool(text) and all("!" <= each <= "~" for each in text)


def checked_token(text: str, where: str, *, hint: str = "It must be one token, and nothing else.") -> str:
    """Return the token without blanks around it; raises InputFileError, which does not show it."""
    token = text.strip()
    if not is_token(token):
        reason = "it is empty" if not token else "there is a blank, a line break, or what is not ASCII in it"
        raise InputFileError(f"{where}: that is no token: {reason}", hint=hint)
    return token


def token_end_s(token: str) -> float | None:
    """Return when a JWT ends by its `exp`, in seconds since the epoch; None for another token, or one without."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return seconds_of(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return None


def seconds_of(number: object) -> float | None:
    """Return a number of JSON as seconds; None for any other value, and for a number that is not a valid time."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not -_LATEST_S < number < _LATEST_S:
        return None
    return float(number)
