"""TLS of the exporter: a context per state of the files; a renewed certificate is used from the next connection on."""

from __future__ import annotations

import os
import ssl
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from eosctl.errors import InputFileError
from eosctl.exporter.web.config import TlsServer
from eosctl.machine.files import file_in_memory

_VERSIONS = {
    "TLS10": ssl.TLSVersion.TLSv1,
    "TLS11": ssl.TLSVersion.TLSv1_1,
    "TLS12": ssl.TLSVersion.TLSv1_2,
    "TLS13": ssl.TLSVersion.TLSv1_3,
}
_CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}
_VERIFY = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_TLS13_SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")

Stamp = tuple[tuple[int, int, int] | None, ...]


def stamp(*paths: str | Path) -> Stamp:
    """Return a value that changes when one of the files does; None for a missing file."""
    return tuple(_stamp(path) for path in paths if path)


def _stamp(path: str | Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def server_context(tls: TlsServer) -> ssl.SSLContext:
    """Make a TLS context from the files as they are now; raises InputFileError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = _VERSIONS[tls.min_version], _VERSIONS[tls.max_version]
    if tls.prefer_server_cipher_suites:
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    suites = [openssl_name(each) for each in tls.cipher_suites if each not in _TLS13_SUITES]
    if suites:
        _load("cipher_suites", "", lambda: context.set_ciphers(":".join(suites)))
    if tls.curve_preferences:
        context.set_ecdh_curve(_CURVES[tls.curve_preferences[0]])
    context.verify_mode = _VERIFY[tls.client_auth_type]
    with _as_file(tls.cert, tls.cert_file) as cert, _as_file(tls.key, tls.key_file) as key:
        what = f"{tls.cert_file or 'cert'} with {tls.key_file or 'key'}"
        _load("cert_file and key_file", what, lambda: context.load_cert_chain(cert, key, password=""))
    if tls.client_ca:
        _load("client_ca", "", lambda: context.load_verify_locations(cadata=tls.client_ca))
    elif tls.client_ca_file:
        _load("client_ca_file", tls.client_ca_file, lambda: context.load_verify_locations(tls.client_ca_file))
    elif tls.client_auth_type != "NoClientCert":
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)  # as Go does without an authority
    return context


def openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a cipher suite with an IANA name, as Go writes it."""
    name = suite.removeprefix("TLS_").replace("_WITH_", "-").replace("AES_", "AES").replace("_CBC", "")
    return name.replace("POLY1305_SHA256", "POLY1305").replace("_", "-")


def has_allowed_name(connection: ssl.SSLSocket, allowed: tuple[str, ...]) -> bool:
    """Check whether the client's certificate has one of these subject alternative names."""
    certificate: dict[str, Any] = dict(connection.getpeercert() or {})
    return any(value in allowed for _kind, value in certificate.get("subjectAltName", ()))


def _as_file(text: str, path: str) -> AbstractContextManager[str]:
    return nullcontext(path) if path else file_in_memory(text)


def _load(key: str, what: str, load: object) -> None:
    """Load files; raises InputFileError, which names the key of the web-config file."""
    assert callable(load)  # noqa: S101 - a lambda of above
    try:
        load()
    except (OSError, ValueError) as exc:  # ssl.SSLError is an OSError
        reason = getattr(exc, "reason", None) or getattr(exc, "strerror", None) or str(exc)
        raise InputFileError(
            f"tls_server_config: {key}{f' ({what})' if what else ''} can't be used: {reason}",
            hint="Check that the files are there, readable, in PEM, and belong together.",
        ) from exc
