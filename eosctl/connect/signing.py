"""Signatures of requests between Connect workers, made with the session key in the config topic.

It does no I/O; the key comes from the newest `session-key` record (KIP-507, `InternalRequestSignature` 4.3).

The addresses of a worker's host.
"""

from __future__ import annotations

import base64

from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, UnsupportedError
from eosctl.machine.resolving import resolve


def addresses_of(host: str, deadline: Deadline) -> frozenset[str]:
    """Resolve the host name to all of its addresses; empty where it can't be resolved in time."""
    try:
        return frozenset(str(info[4][0]) for info in resolve(host, 0, deadline))
    except EosctlError:
        return frozenset()


SIGNATURE_HEADER = "X-Connect-Authorization"
ALGORITHM_HEADER = "X-Connect-Request-Signature-Algorithm"

# Java's Mac names, of those that hashlib has too; Connect's default is HmacSHA256
_DIGESTS = {
    "hmacsha1": "sha1",
    "hmacsha224": "sha224",
    "hmacsha256": "sha256",
    "hmacsha384": "sha384",
    "hmacsha512": "sha512",
}


def signature_headers(session_key: bytes, body: bytes = b"", *, algorithm: str = "HmacSHA256") -> dict[str, str]:
    """Return the two headers that sign the raw request `body`. Raises UnsupportedError for a MAC that Python lacks."""
    digest = _DIGESTS.get(algorithm.lower())
    if digest is None:
        raise UnsupportedError(
            f"requests can't be signed with {algorithm}",
            hint="eosctl knows " + ", ".join(name.replace("hmacsha", "HmacSHA") for name in _DIGESTS) + ".",
        )
    import hmac

    signature = hmac.new(session_key, body, digest).digest()
    return {SIGNATURE_HEADER: base64.b64encode(signature).decode("ascii"), ALGORITHM_HEADER: algorithm}
