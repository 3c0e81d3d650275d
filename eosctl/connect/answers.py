"""A Connect worker's answer over REST, or the reason why there is none."""

from __future__ import annotations

import json
from http import HTTPStatus

import urllib3
from msgspec import Struct

from eosctl.core.kept.typed_json import json_of

JSON = "application/json"
# what GET of a connector's config answers with 500 where other requests answer 409 (seen with 3.9.2 and 4.3.1)
_REBALANCE = "Request cannot be completed because a rebalance is expected"
# the first Kafka that has a request, by its method and the end of its path
SINCE = {
    ("GET", "topics"): "2.5 (KIP-558)",
    ("POST", "restart"): "3.0 (KIP-745)",
    ("PUT", "fence"): "3.3 (KIP-618)",
    ("GET", "offsets"): "3.5 (KIP-875)",
    ("PUT", "stop"): "3.5 (KIP-875)",
    ("PATCH", "offsets"): "3.6 (KIP-875)",
}


class Answer(Struct, frozen=True):
    """The status, the body and what of the headers counts."""

    status: int
    body: bytes
    media_type: str
    date: str = ""

    def json(self) -> object:
        """Return the body as JSON; None where there is none or it is something else."""
        try:
            return json_of(self.body)
        except ValueError:
            return None

    def breaks_off(self) -> bool:
        """Check whether the body is a JSON document cut short: without a content length, a cut looks like the end."""
        try:
            json.loads(self.body)
        except ValueError:
            return self.media_type == JSON
        except RecursionError:
            return False
        return False

    def message(self) -> str | None:
        """Return Connect's own `message`; None when the body is not one of Connect's errors."""
        document = self.json()
        if isinstance(document, dict) and isinstance(document.get("message"), str):
            return str(document["message"])
        return None

    def asks_for_patience(self) -> bool:
        """Check whether a rebalance is the only reason why the request was refused."""
        return self.status == HTTPStatus.CONFLICT or self.message() == _REBALANCE


def came_with(request: str) -> str:
    """Return the words for the first Kafka version that has a request; empty where all have it."""
    method, path = request.split("?")[0].split(" ", 1)
    since = SINCE.get((method, path.rpartition("/")[2]))
    return f": it came with Kafka {since}" if since else ""


def is_cut_short(error: Exception) -> bool:
    """Check whether the connection ended within an answer; an earlier end may be for want of a client certificate."""
    if not isinstance(error, urllib3.exceptions.ProtocolError):
        return False
    in_body = str(error.args[0]).startswith("Connection broken")
    return in_body or any(str(cause).startswith("HTTP/") for cause in error.args[1:])


def reason_of(error: BaseException) -> str:
    """Return the innermost cause in one line; urllib3 wraps it in texts about pools and object addresses."""
    inner = error.__cause__ or next((part for part in error.args if isinstance(part, Exception)), None)
    if inner is not None:
        return reason_of(inner)
    if isinstance(error, TimeoutError | urllib3.exceptions.TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
