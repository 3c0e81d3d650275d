"""SASL mechanisms as conversations: a first message, then an answer to each challenge. No sockets here.

Mechanisms eosctl speaks itself: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. GSSAPI is left to librdkafka.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Protocol

from eosctl.core.client_settings import ClientSettings
from eosctl.errors import ProtocolError, UnauthorizedError, UnsupportedError, UsageError

_WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_MIN_ITERATIONS, _MAX_ITERATIONS = 4096, 10_000_000


class Mechanism(Protocol):
    """One conversation; `answer` returns None when nothing more is to be said."""

    def first(self) -> bytes:
        """The client's first message."""

    def answer(self, challenge: bytes) -> bytes | None:
        """The answer to what the broker said; raises UnauthorizedError when the broker can't prove itself."""


class Plain:
    """RFC 4616."""

    def __init__(self, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()

    def first(self) -> bytes:
        """Name and password."""
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:  # noqa: ARG002 - PLAIN is over after one message
        """Nothing."""
        return None


class Scram:
    """RFC 5802 and 7677, without SASLprep: Kafka takes names and passwords as plain UTF-8.

    Source: `ScramFormatter.normalize` and `ScramSaslClient`, Kafka 4.3.
    """

    def __init__(self, digest: str, username: str, password: str, *, nonce: str | None = None) -> None:
        self._digest = digest
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        self._first_bare = f"n={username.replace('=', '=3D').replace(',', '=2C')},r={self._nonce}"
        self._server_signature: bytes | None = None

    def first(self) -> bytes:
        """The user's name and our nonce."""
        return f"n,,{self._first_bare}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        """The proof after the first challenge, nothing after the second, whose signature is checked."""
        if self._server_signature is None:
            return self._prove(challenge.decode())
        self._verify(_attributes(challenge.decode()))
        return None

    def _prove(self, server_first: str) -> bytes:
        attributes = _attributes(server_first)
        try:
            nonce, salt, iterations = attributes["r"], base64.b64decode(attributes["s"]), int(attributes["i"])
        except (KeyError, ValueError) as exc:
            raise ProtocolError("malformed SCRAM challenge") from exc
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise UnauthorizedError("the broker's SCRAM nonce does not continue ours: refused")
        if not _MIN_ITERATIONS <= iterations <= _MAX_ITERATIONS:
            raise UnauthorizedError(f"the broker asks for {iterations} SCRAM iterations: refused")
        final_bare = f"c=biws,r={nonce}"
        salted = hashlib.pbkdf2_hmac(self._digest, self._password, salt, iterations)
        transcript = f"{self._first_bare},{server_first},{final_bare}".encode()
        client_key = self._hmac(salted, b"Client Key")
        client_signature = self._hmac(hashlib.new(self._digest, client_key).digest(), transcript)
        proof = bytes(a ^ b for a, b in zip(client_key, client_signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), transcript)
        return f"{final_bare},p={base64.b64encode(proof).decode()}".encode()

    def _verify(self, attributes: dict[str, str]) -> None:
        if "e" in attributes:
            raise UnauthorizedError(f"SCRAM authentication failed: {attributes['e']}")
        expected = base64.b64encode(self._server_signature or b"").decode()
        if not hmac.compare_digest(attributes.get("v", "").encode(), expected.encode()):
            raise UnauthorizedError("the broker could not prove that it knows the SCRAM password")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._digest).digest()


def _attributes(message: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in message.split(","))


class OAuthBearer:
    """RFC 7628: one message with the token; an error challenge is answered with ^A, then the broker says why."""

    def __init__(self, token: str, extensions: dict[str, str]) -> None:
        pairs = "".join(f"{name}={value}\x01" for name, value in extensions.items())
        self._message = f"n,,\x01auth=Bearer {token}\x01{pairs}\x01".encode()

    def first(self) -> bytes:
        """The token and the extensions (KIP-342)."""
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        """^A when the broker described an error, else nothing."""
        return b"\x01" if challenge else None


def is_spoken_natively(settings: ClientSettings) -> bool:
    """Whether eosctl can log in by itself; else librdkafka may be able to."""
    name = (settings.sasl_mechanism or "").upper()
    return not settings.security_protocol.upper().startswith("SASL") or name in {"", "OAUTHBEARER", *_WITH_PASSWORD}


def make_mechanism(settings: ClientSettings, oauth_token: Callable[[], str]) -> Mechanism:
    """The conversation for the configured mechanism; raises UsageError or UnsupportedError."""
    name = (settings.sasl_mechanism or "").upper()
    if name == "OAUTHBEARER":
        return OAuthBearer(oauth_token(), dict(settings.oauth_extensions))
    if name in _WITH_PASSWORD:
        if settings.sasl_username is None or settings.sasl_password is None:
            raise UsageError(
                f"SASL {name} needs a user name and a password",
                hint="Set sasl.jaas.config, or sasl.username and sasl.password, in the --command-config file.",
            )
        username, password = settings.sasl_username, settings.sasl_password.reveal()
        return Plain(username, password) if name == "PLAIN" else Scram(f"sha{name[-3:]}", username, password)
    if not name:
        raise UsageError("security.protocol asks for SASL, but sasl.mechanism is not set")
    raise no_native_login(settings)


def no_native_login(settings: ClientSettings) -> UnsupportedError:
    """The error for a mechanism that only librdkafka may know."""
    return UnsupportedError(
        f"eosctl can't ask about transactions with a login by SASL {settings.sasl_mechanism}: librdkafka, which may "
        "know that login, has no such requests",
        hint="Log in with SCRAM, PLAIN, OAUTHBEARER or a certificate, maybe at another listener. Of what eosctl does "
        "with transactions, only `eosctl fence --via producer --create-unknown` can do without, where librdkafka was "
        "built with Kerberos.",
    )
