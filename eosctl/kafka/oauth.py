"""Where an OAUTHBEARER token comes from: a file, or a token endpoint (client credentials)."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from eosctl.core.client_settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.errors import InputFileError, ProtocolError, UnauthorizedError, UnreachableError, UsageError


def fetch_token(settings: ClientSettings, deadline: Deadline) -> str:
    """A bearer token; raises UsageError when the settings name no source."""
    if settings.oauth_token_file:
        return _read_token(settings.oauth_token_file)
    if settings.oauth_token_endpoint_url:
        return _request_token(settings, settings.oauth_token_endpoint_url, deadline)
    raise UsageError("SASL OAUTHBEARER needs a token", hint="Name a token file, or a token endpoint and a client id.")


def _read_token(path: str) -> str:
    try:
        token = Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as exc:
        raise InputFileError(f"can't read the token file {path}: {exc}") from exc
    if not token:
        raise InputFileError(f"the token file {path} is empty")
    return token


def _request_token(settings: ClientSettings, url: str, deadline: Deadline) -> str:
    """The client credentials grant (RFC 6749, 4.4), as `HttpAccessTokenRetriever` of Kafka 4.3 sends it."""
    import urllib3

    deadline.check(f"asking {url} for a token")
    secret = settings.oauth_client_secret.reveal() if settings.oauth_client_secret else ""
    credentials = base64.b64encode(f"{settings.oauth_client_id}:{secret}".encode()).decode()
    fields = {"grant_type": "client_credentials"} | ({"scope": settings.oauth_scope} if settings.oauth_scope else {})
    try:
        with urllib3.PoolManager(ca_certs=settings.ssl_ca_location) as http:
            answer = http.request(
                "POST",
                url,
                fields=fields,
                encode_multipart=False,
                headers={"Authorization": f"Basic {credentials}", "Accept": "application/json"},
                timeout=max(deadline.remaining_s(), 0.001),
                retries=False,
            )
            status, body = answer.status, answer.data
    except urllib3.exceptions.HTTPError as exc:
        raise UnreachableError(f"can't get a token from {url}: {exc}") from exc
    if status != 200:
        raise UnauthorizedError(f"{url} refused a token: HTTP {status} {body[:200].decode(errors='replace')}")
    return _token_of(body, url)


def _token_of(body: bytes, url: str) -> str:
    try:
        token = json.loads(body)["access_token"]
    except (ValueError, KeyError, TypeError) as exc:
        raise ProtocolError(f"{url} answered without an access_token") from exc
    return str(token)
