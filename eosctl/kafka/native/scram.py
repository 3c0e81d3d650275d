"""SCRAM as a conversation: see `sasl`."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from eosctl.errors import ProtocolError, UnauthorizedError

_MIN_ITERATIONS, _MAX_ITERATIONS = 4096, 10_000_000


class Scram:
    """SCRAM (RFC 5802 and 7677), without SASLprep: Kafka takes names and passwords as plain UTF-8.

    Source: `ScramFormatter.normalize` and `ScramSaslClient`, Kafka 4.3.
    """

    def __init__(self, digest: str, username: str, password: str, *, nonce: str | None = None) -> None:
        self._digest = digest
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        self._first_bare = f"n={username.replace('=', '=3D').replace(',', '=2C')},r={self._nonce}"
        self._server_signature: bytes | None = None

    def first(self) -> bytes:
        """Return the user's name and our nonce."""
        return f"n,,{self._first_bare}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        """Return the proof after the first challenge, None after the second, whose signature is checked."""
        if self._server_signature is None:
            return self._prove(_text(challenge))
        self._verify(_attributes(_text(challenge)))
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


def _text(challenge: bytes) -> str:
    try:
        return challenge.decode()
    except UnicodeDecodeError as exc:
        raise ProtocolError("a SCRAM challenge is not UTF-8") from exc


def _attributes(message: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in message.split(","))
