"""The web-config file of Prometheus' exporter-toolkit (0.14), read strictly, and the exporter's TLS made from it.

An unknown key is an error. Settings that Python's TLS does not support are refused, never ignored: a client certificate
that is requested and not verified, and more than one curve. HTTP/2 is not served; `http2` may have either value.

There is one TLS context per state of the files; a renewed certificate is used from the next connection on.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from eosctl.core.kept.plan_file import yaml_of
from eosctl.errors import InputFileError
from eosctl.machine.files import NamedFiles, file_in_memory

ClientAuth = Literal["NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"]
TlsVersion = Literal["TLS10", "TLS11", "TLS12", "TLS13"]
_HEADERS: Mapping[str, tuple[str, ...]] = {
    "Content-Security-Policy": (),
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
}
_UNVERIFIED = ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert")
_BCRYPT = re.compile(r"\$2[aby]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DOCS = "The keys are those of Prometheus' exporter-toolkit (docs/web-configuration.md there)."


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys that are not declared are refused."""


class TlsServer(_Strict, frozen=True, kw_only=True):
    """`tls_server_config`; relative paths are below the folder of the file."""

    cert: str = ""
    key: str = ""
    client_ca: str = ""
    cert_file: str = ""
    key_file: str = ""
    client_ca_file: str = ""
    client_auth_type: str = "NoClientCert"
    client_allowed_sans: tuple[str, ...] = ()
    min_version: TlsVersion = "TLS12"
    max_version: TlsVersion = "TLS13"
    cipher_suites: tuple[str, ...] = ()
    prefer_server_cipher_suites: bool = True
    curve_preferences: tuple[Literal["CurveP256", "CurveP384", "CurveP521", "X25519"], ...] = ()

    def is_enabled(self) -> bool:
        """Check whether any of its settings requires TLS."""
        named = (self.cert, self.key, self.cert_file, self.key_file, self.client_ca, self.client_ca_file)
        return any(named) or self.client_auth_type != "NoClientCert"


class HttpServer(_Strict, frozen=True, kw_only=True):
    """`http_server_config`."""

    http2: bool = True
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class RateLimit(_Strict, frozen=True, kw_only=True):
    """`rate_limit`: a token each `interval`, no more than `burst` of them; an interval of 0 is no limit."""

    interval: str | int = 0
    burst: int = 0

    def interval_s(self) -> float:
        """Return the seconds between two tokens; raises ValueError."""
        if self.interval in (0, "0"):
            return 0.0
        parts = _DURATION.findall(str(self.interval))
        if not parts or "".join(map("".join, parts)) != self.interval:
            raise ValueError(f"rate_limit.interval is no duration: {self.interval}")
        return float(sum(float(number) * _UNITS_S[unit] for number, unit in parts))


class WebConfig(_Strict, frozen=True, kw_only=True):
    """The whole file; `basic_auth_users` is user -> bcrypt hash."""

    tls_server_config: TlsServer = TlsServer()
    http_server_config: HttpServer = HttpServer()
    basic_auth_users: dict[str, str] = msgspec.field(default_factory=dict)
    rate_limit: RateLimit = RateLimit()

    def demands(self) -> frozenset[str]:
        """Return the keys that require clients to identify themselves."""
        tls = self.tls_server_config
        asked = {
            "basic_auth_users": bool(self.basic_auth_users),
            "client_auth_type": tls.client_auth_type == "RequireAndVerifyClientCert",
            "client_allowed_sans": bool(tls.client_allowed_sans),
        }
        return frozenset(key for key, is_asked in asked.items() if is_asked)


def read_web_config(path: Path) -> WebConfig:
    """Read the file at `path`; raises InputFileError with the fault and its place.

    Raises RefusedError where other users can change it, or read its key.
    """
    files = NamedFiles()
    try:
        text = files.read(path).decode("utf-8")
    except UnicodeDecodeError:
        raise InputFileError(f"cannot read {path}: it is not UTF-8", hint="Check --web-config-file.") from None
    files.require_private(path, "who may ask the exporter", readable=True)
    document = yaml_of(text, source=str(path), once=True, hint=_DOCS)
    try:
        config = msgspec.convert({} if document is None else document, WebConfig)
        _check(config)
    except (msgspec.ValidationError, ValueError) as exc:
        raise InputFileError(f"{path}: {exc}", hint=_DOCS) from exc
    tls = config.tls_server_config
    absolute = {
        name: str(path.parent / named)
        for name in ("cert_file", "key_file", "client_ca_file")
        if (named := getattr(tls, name))
    }
    tls = msgspec.structs.replace(tls, **absolute)
    if tls.key:
        files.require_private(path, "a private key")
    elif tls.key_file:
        files.require_private(tls.key_file, "a private key")
    return msgspec.structs.replace(config, tls_server_config=tls)


def _check(config: WebConfig) -> None:
    """Raise ValueError for settings that are invalid, or not supported here."""
    _check_tls(config.tls_server_config)
    config.rate_limit.interval_s()
    for name, value in config.http_server_config.headers.items():
        if name not in _HEADERS:
            raise ValueError(f"http_server_config.headers: {name} can't be set; known: {', '.join(_HEADERS)}")
        if _HEADERS[name] and value not in _HEADERS[name]:
            raise ValueError(f"http_server_config.headers: {name} is one of {', '.join(_HEADERS[name])}")
        if not value.isprintable() or not value.isascii():
            raise ValueError(f"http_server_config.headers: {name} has a character that no header may have")
    for user, hashed in config.basic_auth_users.items():
        if _BCRYPT.fullmatch(hashed) is None:
            raise ValueError(
                f"basic_auth_users: the password of {user} is no bcrypt hash; `htpasswd -nBC 10 ''` prints one"
            )


def _check_tls(tls: TlsServer) -> None:
    if not tls.is_enabled():
        return
    for name in ("cert", "key", "client_ca"):
        if getattr(tls, name) and getattr(tls, f"{name}_file"):
            raise ValueError(f"tls_server_config: {name} and {name}_file are both given")
        if name != "client_ca" and not getattr(tls, name) and not getattr(tls, f"{name}_file"):
            raise ValueError(f"tls_server_config: {name}_file is missing")
    if tls.client_auth_type in _UNVERIFIED:
        raise ValueError(
            f"tls_server_config.client_auth_type: {tls.client_auth_type} asks for a certificate that nobody verifies, "
            "which this server can't; use RequireAndVerifyClientCert"
        )
    if tls.client_auth_type not in get_args(ClientAuth):
        raise ValueError(f"tls_server_config.client_auth_type: {tls.client_auth_type} is unknown")
    if (tls.client_ca or tls.client_ca_file) and tls.client_auth_type == "NoClientCert":
        raise ValueError("tls_server_config: client_ca_file needs a client_auth_type")
    if tls.client_allowed_sans and tls.client_auth_type != "RequireAndVerifyClientCert":
        raise ValueError("tls_server_config: client_allowed_sans needs client_auth_type RequireAndVerifyClientCert")
    if tls.min_version > tls.max_version:
        raise ValueError("tls_server_config: min_version is above max_version")
    if len(tls.curve_preferences) > 1:
        raise ValueError("tls_server_config.curve_preferences: this server can take one curve, or all without the key")


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
