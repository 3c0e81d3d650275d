"""Admission to the exporter: by the web-config file as it is now, for each connection and each request.

As with exporter-toolkit, an unusable file admits nobody until it can be used; TLS itself and the rate limit are fixed
at the start. A file that requires less of clients than before may be half written: it admits nobody either, until it
requires the same again, or until a restart.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

from msgspec import Struct

from eosctl.deadline import Clock
from eosctl.errors import EosctlError, InputFileError, RefusedError
from eosctl.events import Event, OnEvent, unfailing
from eosctl.exporter.web.config import RateLimit, WebConfig, read_web_config
from eosctl.exporter.web.tls import Stamp, has_allowed_name, server_context, stamp


class Admission(Struct, frozen=True):
    """The decision on a request: OK, or the status of its answer; `headers` go with either.

    `is_known`: the client has shown a password or a certificate.
    """

    status: HTTPStatus
    headers: Mapping[str, str]
    is_known: bool = False


class WebAccess:
    """Reads the file again when it changed; may be used by many threads. Raises InputFileError
    and RefusedError when it is made."""

    def __init__(self, path: Path, clock: Clock, on_event: OnEvent) -> None:
        from eosctl.exporter.web.passwords import Passwords

        self._path, self._on_event = path, unfailing(on_event)
        self._lock = threading.Lock()
        self._config_stamp: Stamp = stamp(path)
        self._context_stamp: Stamp = ()
        self._config: WebConfig | None = read_web_config(path)
        self._demanded = self._config.demands()
        self._context: ssl.SSLContext | None = None
        self._told: str | None = None
        self._passwords = Passwords()
        self._bucket = Bucket(self._config.rate_limit, clock)
        self.has_tls = self._config.tls_server_config.is_enabled()
        if self.has_tls:
            self._context_now()

    def secure(self, connection: socket.socket) -> socket.socket:
        """Return the connection after its handshake; raises OSError, also where the files can't be used now."""
        if not self.has_tls:
            return connection
        try:
            config, context = self._context_now()
        except (InputFileError, RefusedError) as exc:
            self._tell(exc)
            raise OSError(exc.message) from exc
        secured = context.wrap_socket(connection, server_side=True)
        allowed = config.tls_server_config.client_allowed_sans
        if allowed and not has_allowed_name(secured, allowed):
            secured.close()
            raise OSError("the client's certificate has none of the allowed names")
        return secured

    def admit(self, authorization: str | None) -> Admission:
        """Judge a request by its header `Authorization`."""
        try:
            config = self._config_now()
        except (InputFileError, RefusedError) as exc:
            self._tell(exc)
            return Admission(HTTPStatus.INTERNAL_SERVER_ERROR, {})
        if not self._bucket.take():
            return Admission(HTTPStatus.TOO_MANY_REQUESTS, {})
        headers = config.http_server_config.headers
        users = config.basic_auth_users
        if users and not self._passwords.allow(authorization, users):
            return Admission(HTTPStatus.UNAUTHORIZED, {**headers, "WWW-Authenticate": "Basic"})
        return Admission(HTTPStatus.OK, headers, bool(config.demands()))

    def _config_now(self) -> WebConfig:
        """Return the file's present config; a file that could not be used is read again each time."""
        now = stamp(self._path)
        with self._lock:
            if self._config is None or now != self._config_stamp:
                self._config = None
                config = read_web_config(self._path)
                if missing := self._demanded - config.demands():
                    raise InputFileError(
                        f"{self._path} has no {' and no '.join(sorted(missing))} any more",
                        hint="Restart the exporter if that is meant.",
                    )
                self._config, self._config_stamp, self._told = config, now, None
                self._demanded = config.demands()
            return self._config

    def _context_now(self) -> tuple[WebConfig, ssl.SSLContext]:
        config = self._config_now()
        tls = config.tls_server_config
        now = stamp(self._path, tls.cert_file, tls.key_file, tls.client_ca_file)
        with self._lock:
            if self._context is None or now != self._context_stamp:
                self._context = None
                self._context, self._context_stamp = server_context(tls), now
                self._told = None
            return config, self._context

    def _tell(self, exc: EosctlError) -> None:
        """Report each reason once, not once per request."""
        with self._lock:
            is_new, self._told = exc.message != self._told, exc.message
        if is_new:
            self._on_event(Event(f"nobody is let in: {exc.message}", warning=True))


class Bucket:
    """A token bucket; without an interval it never runs out."""

    def __init__(self, limit: RateLimit, clock: Clock) -> None:
        self._interval_s, self._burst, self._clock = limit.interval_s(), limit.burst, clock
        self._tokens, self._at_s = float(limit.burst), clock.monotonic_s()
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Take a token, if there is one."""
        if not self._interval_s:
            return True
        with self._lock:
            now_s = self._clock.monotonic_s()
            self._tokens = min(self._burst, self._tokens + (now_s - self._at_s) / self._interval_s)
            self._at_s = now_s
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True
