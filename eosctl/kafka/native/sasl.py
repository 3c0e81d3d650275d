"""SASL mechanisms as conversations: a first message, then a response to each challenge. No sockets here.

Mechanisms eosctl speaks itself: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. GSSAPI is left to librdkafka.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from eosctl.core.allowances import Waiver
from eosctl.core.clients.settings import ClientSettings
from eosctl.errors import UnsupportedError, UsageError

_WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Mechanism(Protocol):
    """One conversation; `answer` returns None when nothing more is to be sent."""

    def first(self) -> bytes:
        """Return the client's first message."""

    def answer(self, challenge: bytes) -> bytes | None:
        """Return the response to the broker's challenge.

        Raises UnauthorizedError if the broker can't prove its identity.
        """


class Plain:
    """PLAIN (RFC 4616)."""

    def __init__(self, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()

    def first(self) -> bytes:
        """Return name and password."""
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:  # noqa: ARG002 - PLAIN is over after one message
        """Return None: nothing follows the first message."""
        return None


class OAuthBearer:
    """OAUTHBEARER (RFC 7628): one message with the token.

    The client answers an error challenge with ^A, then the broker gives the reason.
    """

    def __init__(self, token: str, extensions: dict[str, str]) -> None:
        pairs = "".join(f"{name}={value}\x01" for name, value in extensions.items())
        self._message = f"n,,\x01auth=Bearer {token}\x01{pairs}\x01".encode()

    def first(self) -> bytes:
        """Return the token and the extensions (KIP-342)."""
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        """Return ^A if the broker described an error, else None."""
        return b"\x01" if challenge else None


def is_spoken_natively(settings: ClientSettings) -> bool:
    """Return whether eosctl can log in by itself; otherwise librdkafka may be able to."""
    name = (settings.sasl_mechanism or "").upper()
    return not settings.security_protocol.upper().startswith("SASL") or name in {"", "OAUTHBEARER", *_WITH_PASSWORD}


def make_mechanism(settings: ClientSettings, oauth_token: Callable[[], str]) -> Mechanism:
    """Make the conversation for the configured mechanism; raises UsageError or UnsupportedError."""
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
        if name == "PLAIN":
            return Plain(username, password)
        from eosctl.kafka.native.scram import Scram  # loads cryptography only if needed

        return Scram(f"sha{name[-3:]}", username, password)
    if not name:
        raise UsageError("security.protocol asks for SASL, but sasl.mechanism is not set")
    raise no_native_login(settings)


def no_native_login(settings: ClientSettings) -> UnsupportedError:
    """Return the error for a mechanism that only librdkafka may know."""
    return UnsupportedError(
        f"eosctl can't ask about transactions with a login by SASL {settings.sasl_mechanism}: librdkafka, which may "
        "know that login, has no such requests",
        hint="Log in with SCRAM, PLAIN, OAUTHBEARER or a certificate, maybe at another listener. Of what eosctl does "
        f"with transactions, only `eosctl fence --via producer {Waiver.CREATE_UNKNOWN}` can do without, where "
        "librdkafka was built with Kerberos.",
    )
