"""PEM as it occurs in settings: on one line, or with its lines glued together; OpenSSL needs separate lines. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\s*([A-Za-z0-9+/=\s]+?)\s*-----END \1-----")
_PADDED = re.compile(rf"\s*{_BLOCK.pattern}")
_TRUSTED_FOR_SERVERS = bytes.fromhex("300c300a06082b06010505070301")
"""X509_CERT_AUX of OpenSSL: trusted for serverAuth. It makes any certificate an anchor, not only a self-signed one."""


def pem_lines(text: str) -> str:
    """Put each PEM block of `text` on lines of its own, 64 characters long; the rest stays as it is.

    Source: `DefaultSslEngineFactory.PemStore`, Kafka 4.3, which treats all blanks inside a block alike.
    """
    return _PADDED.sub(lambda block: "\n" + pem_block(block[1], re.sub(r"\s+", "", block[2])), text).lstrip("\n")


def pem_block(label: str, base64_text: str) -> str:
    """Format one block of PEM."""
    lines = [base64_text[start : start + 64] for start in range(0, len(base64_text), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"])


def certificates_pem(certificates: Iterable[bytes]) -> str:
    """Convert certificates from DER to PEM."""
    return "".join(pem_block("CERTIFICATE", base64.b64encode(each).decode()) + "\n" for each in certificates)


def anchors_pem(text: str) -> str:
    """Convert the certificates in `text` to OpenSSL's TRUSTED CERTIFICATE, so that each is a trust anchor, as in Java.

    Raises ValueError for a block that is not base64.
    """
    found = (
        base64.b64decode("".join(block[2].split())) for block in _BLOCK.finditer(text) if block[1] == "CERTIFICATE"
    )
    return "".join(
        pem_block("TRUSTED CERTIFICATE", base64.b64encode(each + _TRUSTED_FOR_SERVERS).decode()) + "\n"
        for each in found
    )
