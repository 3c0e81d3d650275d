"""Admission to the exporter: by the web-config file as it is now, for each connection and each request.

As with exporter-toolkit, an unusable file admits nobody until it can be used; TLS itself and the rate limit are fixed
at the start. A file that requires less of clients than before may be half written: it admits nobody either, until it
requires the same again, or until a restart.

Basic authentication uses bcrypt: the hash of a repeated password, right or wrong, is computed once. Right and wrong
ones are remembered separately, so that trying wrong ones displaces no right one. An unknown user costs as much as a
known one. Passwords are not kept, only keyed digests of them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import socket
import ssl
import threading
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

import bcrypt
from msgspec import Struct

from eosctl.deadline import Clock, Event, OnEvent, unfailing
from eosctl.errors import EosctlError, InputFileError, RefusedError
from eosctl.exporter.web.config import (
    RateLimit,
    Stamp,
    WebConfig,
    has_allowed_name,
    read_web_config,
    server_context,
    stamp,
)

_MOST_SEEN = 100
_LONGEST = 72  # bytes of a password that count for bcrypt, as for htpasswd and Go


class Passwords:
    """Judges the header `Authorization`; may be used by many threads."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._right, self._wrong = dict[bytes, None](), dict[bytes, None]()
        self._decoys = dict[int, str]()
        self._lock, self._computing = threading.Lock(), threading.Lock()
        self.computed = 0

    def allow(self, header: str | None, users: Mapping[str, str]) -> bool:
        """Check whether it names one of the users (name -> bcrypt hash) with the right password."""
        found = _credentials(header)
        if found is None:
            return False
        user, password = found
        hashed = users.get(user)
        compared = hashed or self._decoy(users)
        digest = hashlib.blake2b(key=self._key)
        for part in (user.encode(), compared.encode(), password):
            digest.update(len(part).to_bytes(8, "big") + part)
        seen = digest.digest()
        if seen in self._wrong:
            return False
        if seen not in self._right:
            is_right = self._is_right(password, compared)
            self._keep(seen, self._right if is_right else self._wrong)
            if not is_right:
                return False
        return hashed is not None

    def _is_right(self, password: bytes, hashed: str) -> bool:
        """Compare one password at a time, so that no client can occupy all cores with hashes."""
        with self._computing:
            self.computed += 1
            try:
                return bcrypt.checkpw(password[:_LONGEST], hashed.encode())
            except ValueError:  # a NUL in the password
                return False

    def _decoy(self, users: Mapping[str, str]) -> str:
        """Return a hash of a random password, as expensive as those of the users."""
        cost = max((int(each[4:6]) for each in users.values()), default=10)
        with self._computing:
            if cost not in self._decoys:
                self._decoys[cost] = bcrypt.hashpw(secrets.token_bytes(16), bcrypt.gensalt(cost)).decode()
            return self._decoys[cost]

    def _keep(self, digest: bytes, seen: dict[bytes, None]) -> None:
        with self._lock:
            while len(seen) >= _MOST_SEEN:
                seen.pop(next(iter(seen)))
            seen[digest] = None


def _credentials(header: str | None) -> tuple[str, bytes] | None:
    scheme, _space, text = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(text.strip(), validate=True).partition(b":")
        return (user.decode("utf-8"), password) if colon else None
    except (binascii.Error, ValueError):
        return None


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
