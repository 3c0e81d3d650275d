"""The messages of a login: SaslHandshake, SaslAuthenticate. Layouts: the message JSON of Apache Kafka 4.3."""

from __future__ import annotations

from typing import NamedTuple

from eosctl.wire.api import Api
from eosctl.wire.primitives import BYTES, INT16, INT64, NULLABLE_STRING, STRING
from eosctl.wire.schema import Array, since, struct_of


class SaslHandshakeRequest(NamedTuple):
    mechanism: str


class SaslHandshakeResponse(NamedTuple):
    error_code: int = 0
    mechanisms: tuple[str, ...] = ()


SASL_HANDSHAKE = Api(
    key=17,
    name="SaslHandshake",
    request=struct_of(SaslHandshakeRequest, mechanism=STRING),
    response=struct_of(SaslHandshakeResponse, error_code=INT16, mechanisms=Array(STRING)),
    oldest=1,
    newest=1,
    flexible_from=1 << 15,
    releases={0: "0.10", 1: "1.0"},
)


class SaslAuthenticateRequest(NamedTuple):
    auth_bytes: bytes


class SaslAuthenticateResponse(NamedTuple):
    error_code: int = 0
    error_message: str | None = None
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0


SASL_AUTHENTICATE = Api(
    key=36,
    name="SaslAuthenticate",
    request=struct_of(SaslAuthenticateRequest, auth_bytes=BYTES),
    response=struct_of(
        SaslAuthenticateResponse,
        error_code=INT16,
        error_message=NULLABLE_STRING,
        auth_bytes=BYTES,
        session_lifetime_ms=since(1, INT64, ignorable=True),
    ),
    oldest=0,
    newest=2,
    flexible_from=2,
    releases={0: "1.0", 1: "2.2", 2: "2.5"},
)
