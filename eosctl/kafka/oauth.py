"""The sources of an OAUTHBEARER token: a file, a command, or a token endpoint (client credentials)."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import threading
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from msgspec import Struct

from eosctl.core.clients.settings import ClientSettings, checked_token, is_token, seconds_of, token_end_s
from eosctl.deadline import Deadline
from eosctl.errors import (
    DeadlineError,
    EosctlError,
    InputFileError,
    ProtocolError,
    UnauthorizedError,
    UnreachableError,
    UsageError,
)
from eosctl.kafka.tls import make_tls_context
from eosctl.machine.answers import response_within
from eosctl.machine.children import SECRET_COMMAND_TIMEOUT_S, output_of
from eosctl.machine.resolving import resolve

_LARGEST_ANSWER_BYTES = 1 << 20
_UNKNOWN_LIFETIME_S = 300.0  # a token that does not say when it ends is asked for again after that
_RENEW_AFTER = 0.8  # of its lifetime: sasl.login.refresh.window.factor of Java


class Token(Struct, frozen=True):
    """A bearer token, and its end in seconds since the epoch; messages name its `source`."""

    text: str
    expires_s: float
    source: str
    __repr__ = object.__repr__  # the token is not shown


class TokenSource:
    """One token for all connections, fetched again before it ends; safe for several threads."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._renew_s = 0.0

    def token(self, deadline: Deadline) -> str:
        """Return a token with enough lifetime left; raises the errors of `fetch_token`."""
        with self._lock:
            now_s = deadline.clock.now_s()
            if self._token is None or now_s >= self._renew_s:
                self._token = self._renewed(now_s, deadline)
                self._renew_s = now_s + _RENEW_AFTER * max(self._token.expires_s - now_s, 0.0)
            return self._token.text

    def _renewed(self, now_s: float, deadline: Deadline) -> Token:
        """Return a new token, or the old one while it is valid if there is no new one."""
        try:
            return fetch_token(self._settings, deadline)
        except DeadlineError:
            raise
        except EosctlError:
            if self._token is None or now_s >= self._token.expires_s:
                raise
            return self._token


def fetch_token(settings: ClientSettings, deadline: Deadline) -> Token:
    """Get a bearer token; raises UsageError if the settings name no source, and the errors of the source."""
    now_s = deadline.clock.now_s()
    if settings.oauth_token is not None:
        return _token(settings.oauth_token.reveal(), now_s, "sasl.oauthbearer.token")
    if settings.oauth_token_command:
        return _of_command(settings.oauth_token_command, deadline)
    if settings.oauth_token_file:
        return _token(read_token_file(settings.oauth_token_file), now_s, settings.oauth_token_file)
    if settings.oauth_token_endpoint_url:
        return _request_token(settings, settings.oauth_token_endpoint_url, deadline)
    raise UsageError(
        "SASL OAUTHBEARER needs a token",
        hint="Name a token file, a command (sasl.oauthbearer.token_command), or a token endpoint and a client id.",
    )


def _of_command(command: str, deadline: Deadline) -> Token:
    where = "sasl.oauthbearer.token_command"
    deadline.check(f"waiting for {where}")
    timeout_s = max(min(SECRET_COMMAND_TIMEOUT_S, deadline.remaining_s()), 0.001)
    printed = output_of(command, where, timeout_s=timeout_s)
    token = checked_token(printed, where, hint=f"It must print a token, and nothing else. Run it by hand: {command}")
    return _token(token, deadline.clock.now_s(), where)


def read_token_file(path: str) -> str:
    """Read the token in a file, without blanks around it; raises InputFileError."""
    try:
        token = Path(path).read_text(encoding="ascii")
    except (OSError, ValueError) as exc:
        raise InputFileError(f"can't read the token file {path}: {exc}") from exc
    return checked_token(token, path)


def _token(text: str, now_s: float, source: str, *, lifetime_s: float = _UNKNOWN_LIFETIME_S) -> Token:
    """Make a token that ends when its JWT says so (`exp`), else after `lifetime_s`.

    Raises InputFileError for a text that is no token.
    """
    token = checked_token(text, source)
    end_s = token_end_s(token)
    return Token(token, now_s + lifetime_s if end_s is None else end_s, source)


def _request_token(settings: ClientSettings, url: str, deadline: Deadline) -> Token:
    """Request a token by the client credentials grant (RFC 6749, 4.4), as `HttpAccessTokenRetriever` of Kafka 4.3 does.

    The endpoint is another server than the brokers: it is verified with authorities of its own, or those of the system.
    """
    from eosctl.core.clients.logins import without_logins

    parts, shown = _endpoint_of(url), without_logins(url)
    deadline.check(f"asking {shown} for a token")
    secret = settings.oauth_client_secret.reveal() if settings.oauth_client_secret else ""
    credentials = base64.b64encode(f"{settings.oauth_client_id}:{secret}".encode()).decode()
    more = {"scope": settings.oauth_scope, "audience": settings.oauth_audience}
    fields = {"grant_type": "client_credentials"} | {name: value for name, value in more.items() if value}
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        url,
        data=urllib.parse.urlencode(fields).encode(),
        headers={"Authorization": f"Basic {credentials}", "Accept": "application/json"},
    )
    authorities = ClientSettings((), ssl_ca_location=settings.oauth_ca_location, ssl_ca_pem=settings.oauth_ca_pem)
    context = make_tls_context(authorities)
    if not _is_proxied(parts):  # its name need only be known to the proxy
        resolve(parts.hostname or "", parts.port or 0, deadline)
    try:
        with _opener(context, deadline).open(request, timeout=max(deadline.remaining_s(), 0.001)) as answer:
            if answer.status >= 300:
                reason = answer.read(200).decode(errors="replace")
                raise UnauthorizedError(f"{shown} refused a token: HTTP {answer.status} {reason}")
            return _token_of(answer.read(_LARGEST_ANSWER_BYTES), shown, deadline.clock.now_s())
    except (OSError, http.client.HTTPException) as exc:
        hint = "A CA of its own: ssl.truststore.* in sasl.jaas.config." if "CERTIFICATE" in str(exc) else None
        reason = "the URL of its proxy can't be one" if isinstance(exc, http.client.InvalidURL) else exc
        raise UnreachableError(f"can't get a token from {shown}: {reason}", hint=hint) from exc


def _endpoint_of(url: str) -> urllib.parse.SplitResult:
    """Return the parts of a token endpoint's URL.

    Raises UsageError if urllib would refuse it, or if it contains a user.
    """
    reason = None
    try:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("https", "http") or not parts.hostname or parts.port == 0:
            reason = "it is not an http(s) URL"
        elif "@" in parts.netloc:
            reason = "there is a user in it"
        elif not all("!" <= each <= "~" for each in url):
            reason = "there is a blank, a control character, or what is not ASCII in it"
    except ValueError:
        reason = "its host or port can't be one"
    if reason is None:
        return parts
    from eosctl.core.clients.logins import without_logins

    shown = without_logins("".join(url.split()))
    raise UsageError(
        f"the token endpoint {shown} can't be used: {reason}",
        hint="Write https://HOST/PATH; clientId and clientSecret stand in sasl.jaas.config.",
    )


def _opener(context: ssl.SSLContext, deadline: Deadline) -> urllib.request.OpenerDirector:
    """Return an opener for one server, through the environment's proxy if there is one, that reads until the deadline.

    It follows no redirect: the client's password is part of the request.
    """
    answers = response_within(deadline)

    class InTime(urllib.request.AbstractHTTPHandler):
        def do_open(self, http_class: Any, req: urllib.request.Request, **arguments: Any) -> Any:
            connection: Any = type("TimedConnection", (http_class,), {"response_class": answers})
            return super().do_open(connection, req, **arguments)

    class Http(InTime, urllib.request.HTTPHandler):
        pass

    class Https(InTime, urllib.request.HTTPSHandler):
        pass

    opener = urllib.request.OpenerDirector()
    for handler in (urllib.request.ProxyHandler(), Http(), Https(context=context)):
        opener.add_handler(handler)
    return opener


def _is_proxied(url: urllib.parse.SplitResult) -> bool:
    """Return whether urllib uses a proxy of the environment ($https_proxy, $no_proxy) instead of the host of `url`."""
    return url.scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(url.hostname or "")


def _token_of(body: bytes, url: str, now_s: float) -> Token:
    try:
        answer = json.loads(body)
        text = answer["access_token"]
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise ProtocolError(f"{url} answered without an access_token") from exc
    if not isinstance(text, str) or not is_token(text):
        raise ProtocolError(f"{url} answered with an access_token that can't be one")
    lifetime_s = seconds_of(answer.get("expires_in"))
    return _token(text, now_s, url, lifetime_s=lifetime_s if lifetime_s and lifetime_s > 0 else _UNKNOWN_LIFETIME_S)
