"""Where an OAUTHBEARER token comes from: a file, or a token endpoint (client credentials)."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from eosctl.core.client_settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.errors import InputFileError, ProtocolError, UnauthorizedError, UnreachableError, UsageError

_LARGEST_ANSWER_BYTES = 1 << 20


def fetch_token(settings: ClientSettings, deadline: Deadline) -> str:
    """A bearer token; raises UsageError when the settings name no source."""
    if settings.oauth_token_file:
        return read_token_file(settings.oauth_token_file)
    if settings.oauth_token_endpoint_url:
        return _request_token(settings, settings.oauth_token_endpoint_url, deadline)
    raise UsageError("SASL OAUTHBEARER needs a token", hint="Name a token file, or a token endpoint and a client id.")


def read_token_file(path: str) -> str:
    """The token in a file, blanks around it removed; raises InputFileError."""
    try:
        token = Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as exc:
        raise InputFileError(f"can't read the token file {path}: {exc}") from exc
    if not token:
        raise InputFileError(f"the token file {path} is empty")
    return token


def _request_token(settings: ClientSettings, url: str, deadline: Deadline) -> str:
    """The client credentials grant (RFC 6749, 4.4), as `HttpAccessTokenRetriever` of Kafka 4.3 sends it."""
    deadline.check(f"asking {url} for a token")
    if not url.startswith(("https://", "http://")):
        raise UsageError(f"the token endpoint {url!r} is not an http(s) URL")
    secret = settings.oauth_client_secret.reveal() if settings.oauth_client_secret else ""
    credentials = base64.b64encode(f"{settings.oauth_client_id}:{secret}".encode()).decode()
    fields = {"grant_type": "client_credentials"} | ({"scope": settings.oauth_scope} if settings.oauth_scope else {})
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        url,
        data=urllib.parse.urlencode(fields).encode(),
        headers={"Authorization": f"Basic {credentials}", "Accept": "application/json"},
    )
    context = ssl.create_default_context(cafile=settings.ssl_ca_location)
    try:
        with urllib.request.urlopen(request, timeout=max(deadline.remaining_s(), 0.001), context=context) as answer:  # noqa: S310
            return _token_of(answer.read(_LARGEST_ANSWER_BYTES), url)
    except urllib.error.HTTPError as exc:
        with exc:
            reason = exc.read(200).decode(errors="replace")
        raise UnauthorizedError(f"{url} refused a token: HTTP {exc.code} {reason}") from exc
    except OSError as exc:
        raise UnreachableError(f"can't get a token from {url}: {exc}") from exc


def _token_of(body: bytes, url: str) -> str:
    try:
        token = json.loads(body)["access_token"]
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise ProtocolError(f"{url} answered without an access_token") from exc
    return str(token)
