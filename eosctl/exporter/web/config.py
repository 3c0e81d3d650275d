"""The web-config file of Prometheus' exporter-toolkit (0.14), read strictly: an unknown key is an error.

Settings that Python's TLS does not support are refused, never ignored: a client certificate that is requested and not
verified, and more than one curve. HTTP/2 is not served; `http2` may have either value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import msgspec

from eosctl.core.kept.yaml_document import yaml_of
from eosctl.errors import InputFileError
from eosctl.machine.files import NamedFiles

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
