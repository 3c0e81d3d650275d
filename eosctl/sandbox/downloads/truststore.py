"""A Java trust store made of a PEM bundle: $SSL_CERT_FILE, as Python and pip read it, for Java as well.

A Java that came as a wheel trusts its own list of authorities only, not the company's. The JKS format is
`sun.security.provider.JavaKeyStore` (OpenJDK 8 to 25), trusted-certificate entries only.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
import time
from collections.abc import Sequence
from pathlib import Path

_PASSWORD = "changeit"  # noqa: S105 - a checksum's seed, as in every JDK; the certificates in it are public
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def trust_options(ca_file: Path, directory: Path) -> list[str]:
    """Return JVM options that make Java trust the certificates of a PEM bundle; write the store into `directory`."""
    store = directory / "truststore.jks"
    store.write_bytes(encode_jks(read_pem(ca_file.read_text(encoding="utf-8", errors="replace"))))
    name = "javax.net.ssl.trustStore"
    return [f"-D{name}={store}", f"-D{name}Type=JKS", f"-D{name}Password={_PASSWORD}"]


def read_pem(text: str) -> list[bytes]:
    """Return the certificates (DER) of a PEM bundle, in order; skip text between them."""
    blocks = [block.partition(_END)[0] for block in text.split(_BEGIN)[1:]]
    return [ssl.PEM_cert_to_DER_cert(f"{_BEGIN}{block}{_END}") for block in blocks]


def encode_jks(certificates: Sequence[bytes]) -> bytes:
    """Encode a JKS file of trusted certificates: magic, version 2, entries, and a keyed SHA-1 over all of it."""
    now_ms = int(time.time() * 1000)
    parts = [struct.pack(">III", 0xFEEDFEED, 2, len(certificates))]
    for number, certificate in enumerate(certificates):
        entry = struct.pack(">I", 2) + _utf(f"ca-{number}") + struct.pack(">Q", now_ms) + _utf("X.509")
        parts.append(entry + struct.pack(">I", len(certificate)) + certificate)
    body = b"".join(parts)
    seed = _PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite"
    return body + hashlib.sha1(seed + body).digest()  # noqa: S324 - the format's own checksum


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")
