"""How a request gets to one Connect worker, over urllib3, and its answer or the reason why there is none.

It waits out rebalances (409), follows no redirect, and sends credentials, connectors' configs and signatures only where
its ConnectAccess lets them go.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from functools import cached_property, partial
from http import HTTPStatus

import urllib3
from msgspec import Struct

from eosctl.connect.pools import open_pool, resolve_url
from eosctl.connect.session import ConnectSession
from eosctl.core.ids import RISKY_IN_PATH
from eosctl.core.kept.plan_file import json_of
from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.url import NOT_REACHED_HINT, parse_worker_url
from eosctl.deadline import Deadline
from eosctl.errors import (
    AlreadyExistsError,
    ConnectError,
    EosctlError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
    UnsupportedError,
)
from eosctl.machine.answers import LARGEST_ANSWER_BYTES, AnswerTooLargeError, EncodedAnswerError, read_answer

CONNECT_TIMEOUT_S = 5.0
REBALANCE_PATIENCE_S = 30.0
_FIRST_BACKOFF_S = 0.25
_LONGEST_BACKOFF_S = 2.0
# Jersey's own texts; Connect's texts name what is missing
_NO_SUCH_ENDPOINT = ("HTTP 404 Not Found", "HTTP 405 Method Not Allowed")
_UNAUTHORIZED_HINT = (
    "Give --connect-username with --connect-password-file, or --connect-token-file; or look at the worker's log."
)
_WITHHELD_HINT = (
    "Your credentials were not sent: this URL is known from the group only. Name it with -u, or say that every member "
    "may have them: --connect-trust-discovered."
)
_CLOSED = (urllib3.exceptions.ProtocolError, urllib3.exceptions.SSLError)
JSON = "application/json"
# what GET of a connector's config answers with 500 where other requests answer 409 (seen with 3.9.2 and 4.3.1)
_REBALANCE = "Request cannot be completed because a rebalance is expected"
_EXISTS = " already exists"  # the end of the message of DistributedHerder.doPutConnectorConfig (3.3 to 4.4)
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

    def is_truncated(self) -> bool:
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

    def already_exists(self) -> bool:
        """Check whether the request was to create what is there already."""
        return self.status == HTTPStatus.CONFLICT and (self.message() or "").endswith(_EXISTS)

    def is_rebalancing(self) -> bool:
        """Check whether a rebalance is the only reason why the request was refused."""
        return not self.already_exists() and (self.status == HTTPStatus.CONFLICT or self.message() == _REBALANCE)


def _since_text(request: str) -> str:
    """Return the words for the first Kafka version that has a request; empty where all have it."""
    method, path = request.split("?")[0].split(" ", 1)
    since = SINCE.get((method, path.rpartition("/")[2]))
    return f": it came with Kafka {since}" if since else ""


def _is_cut_short(error: Exception) -> bool:
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


def _is_question(method: str, target: str) -> bool:
    """Return whether a request changes nothing: a validation makes a plugin look at a config, and PUT carries it."""
    return method == "GET" or (method == "PUT" and target.endswith("/config/validate"))


def _not_json(media_type: str) -> str:
    return "JSON that Connect does not write" if media_type == JSON else media_type or "no JSON"


class WorkerSender:
    """Sender of requests to one worker; `url` is the normalised URL, without credentials."""

    def __init__(
        self,
        url: str,
        *,
        deadline: Deadline,
        access: ConnectAccess | None = None,
        session: ConnectSession | None = None,
    ) -> None:
        """Prepare the session without connecting. Without `access`, no credentials are sent and the URL is trusted.

        Questions go over the connections that `session` keeps; without one, each request has a connection of its own.
        Raises UsageError for an unusable URL, of the worker or its proxy, InputFileError for unusable certificates,
        UnsupportedError where the proxy takes a package that is missing.
        """
        parsed, access = parse_worker_url(url), access or ConnectAccess(trust_discovered=True)
        self.url = parsed.text
        self.require_trust = partial(access.require_trust, parsed.text)
        self._deadline = deadline
        self._headers = {"Accept": "application/json", "User-Agent": "eosctl"}
        authorization = access.authorization(parsed)
        if authorization is not None:
            self._headers["Authorization"] = authorization.reveal()
        self._withheld = access.has_credentials and not access.trusts(parsed)
        self._proxy = access.proxies.of(parsed.text)
        self._access = access
        self._kept = None if session is None else partial(session.pool, self.url, access, deadline.clock, self._open)
        (self._kept or self._open)()  # what can't be used is known before anything is asked

    def _open(self) -> urllib3.PoolManager:
        return open_pool(self._proxy, clock=self._deadline.clock, context=self._context)

    @cached_property
    def _context(self) -> ssl.SSLContext | None:
        if not self.url.startswith("https:"):
            return None
        from eosctl.connect.pools import make_rest_context

        return make_rest_context(self._access, with_certificate=not self._withheld)

    def mapping(self, method: str, target: str, *, body: object = None) -> Mapping[str, object]:
        """Return the JSON object of an answer; raises as `json` does, and ConnectError for anything else."""
        found = self.json(method, target, body=body)
        if not isinstance(found, dict):
            raise self.not_connect(f"{method} {target}", "its answer is not a JSON object")
        return found

    def json(self, method: str, target: str, *, body: object = None) -> object:
        """Return the JSON of an answer. Raises as `done` does, and ConnectError for an answer without JSON."""
        answer = self.done(method, target, body=body)
        found = answer.json()
        if found is None and answer.is_truncated():
            raise self._broke_off()
        if found is None:
            raise self.not_connect(f"{method} {target}", f"it answered with {_not_json(answer.media_type)}")
        return found

    def done(
        self, method: str, target: str, *, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Return the answer of a request that succeeded; repeat for a while one that meets a rebalance."""
        patience = Deadline.after(min(REBALANCE_PATIENCE_S, self._deadline.remaining_s()), self._deadline.clock)
        backoff_s = _FIRST_BACKOFF_S
        while True:
            answer = self.exchange(method, target, body=body, headers=headers)
            if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
                return answer
            if not answer.is_rebalancing() or patience.remaining_s() <= backoff_s:
                raise self.failure(f"{method} {target}", answer, body)
            patience.sleep(backoff_s)
            backoff_s = min(_LONGEST_BACKOFF_S, backoff_s * 2)

    def exchange(
        self, method: str, target: str, *, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send one request and return its answer, whatever the status. Raises UnreachableError when there is none."""
        self._deadline.check(f"waiting for the worker at {self.url}")
        sent = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8")
        content_type = {} if body is None else {"Content-Type": "application/json"}
        every = {**self._headers, **content_type, **(headers or {})}
        try:
            resolve_url(self.url, self._proxy, self._deadline)
            answer = self._kept_answer(method, target, sent, every) if _is_question(method, target) else None
            if answer is not None:
                return answer
            with self._open() as fresh:
                return self._answer(fresh, method, target, sent, {**every, "Connection": "close"})
        except AnswerTooLargeError as exc:
            raise self.not_connect(
                f"{method} {target}", f"its answer is larger than {LARGEST_ANSWER_BYTES >> 20} MiB"
            ) from exc
        except EncodedAnswerError as exc:
            raise self.not_connect(f"{method} {target}", f"its answer is encoded ({exc})") from exc
        except (urllib3.exceptions.HTTPError, OSError) as exc:
            raise self._unreachable(exc) from exc

    def _kept_answer(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer | None:
        """Ask over a kept connection; None where there is none, or the worker has closed it meanwhile.

        A question may be asked again. No write is sent like that: it could be lost, or done twice.
        """
        if self._kept is None:
            return None
        pool = self._kept()
        try:
            return self._answer(pool, method, target, body, headers)
        except (urllib3.exceptions.HTTPError, OSError) as exc:
            pool.clear()  # the others may have ended with this one
            if _is_cut_short(exc) or not isinstance(exc, _CLOSED):
                raise
            return None

    def _answer(
        self, pool: urllib3.PoolManager, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        left_s = self._deadline.remaining_s()
        if not left_s:  # a question that is asked again may have used it up
            raise self._deadline.passed(f"waiting for the worker at {self.url}")
        response = pool.request(
            method,
            self.url + target,
            body=body,
            headers=headers,
            timeout=urllib3.Timeout(connect=min(CONNECT_TIMEOUT_S, left_s), total=left_s),
            redirect=False,
            preload_content=False,
        )
        found = read_answer(response)
        media_type = response.headers.get("Content-Type", "").partition(";")[0]
        return Answer(response.status, found, media_type, response.headers.get("Date", ""))

    def _unreachable(self, error: Exception) -> UnreachableError:
        if _is_cut_short(error):
            return self._broke_off()
        if self._is_tls(error):
            hint = self._tls_hint(error)
        elif isinstance(error, urllib3.exceptions.ReadTimeoutError) and not self._is_of_proxy(error):
            hint = "The worker took the request and did not answer: look at its log, or give more --timeout."
        elif self._proxy is not None:
            hint = f"${self._proxy.variable} names the proxy; hosts in NO_PROXY are reached without one."
        else:
            hint = NOT_REACHED_HINT
        way = "" if self._proxy is None else f" through the proxy {self._proxy.shown}"
        message = f"the Connect worker at {self.url} can't be reached{way}: {reason_of(error)}"
        return UnreachableError(message, hint=hint)

    def _broke_off(self) -> UnreachableError:
        return UnreachableError(
            f"the Connect worker at {self.url} broke off its answer",
            hint="The connection was cut, or the worker ended. What was asked of it may be done all the same: look "
            "before you run again.",
        )

    def _is_of_proxy(self, error: urllib3.exceptions.ReadTimeoutError) -> bool:
        """Check whether the proxy has not opened the tunnel: it is the one that was asked."""
        return self._proxy is not None and error.url == self._proxy.shown

    def _is_tls(self, error: Exception) -> bool:
        """Check for a TLS failure. A worker that requires a client certificate may just close the connection."""
        hung_up = isinstance(error, urllib3.exceptions.ProtocolError) and self.url.startswith("https:")
        return hung_up or isinstance(error, urllib3.exceptions.SSLError | ssl.SSLError)

    def _tls_hint(self, error: Exception) -> str:
        if self._withheld:
            return _WITHHELD_HINT
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return "--connect-ca names a file of the authorities that the worker's certificate is from."
        return "Does it speak https? It may also want a certificate of yours: --connect-certificate."

    def failure(self, request: str, answer: Answer, body: object) -> EosctlError:
        """Translate an answer without success into an error. Values of a config in the request are hidden."""
        message = answer.message()
        if message is not None and isinstance(body, Mapping):
            from eosctl.core.clients.hidden_secrets import without_values

            config = body.get("config")
            message = without_values(message, config if isinstance(config, Mapping) else body)
        where = f"{request} at {self.url}"
        if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return UnauthorizedError(
                f"not allowed: {where} answered {answer.status} ({message or answer.media_type or 'no text'})",
                hint=_WITHHELD_HINT if self._withheld else _UNAUTHORIZED_HINT,
            )
        if 300 <= answer.status < 400:
            return self.not_connect(request, f"it redirects (HTTP {answer.status}), which Connect never does")
        if message is None and answer.status == HTTPStatus.BAD_REQUEST and RISKY_IN_PATH.search(request):
            return UnsupportedError(
                f"{where}: this worker refuses such a name in a URL",
                hint="Kafka 4.0+ (Jetty 12) takes no encoded slash, backslash, percent or control character in a path.",
            )
        if message is None:
            return self.not_connect(request, f"HTTP {answer.status} with {answer.media_type or 'no text'}")
        if message in _NO_SUCH_ENDPOINT:
            return UnsupportedError(
                f"{self.url} does not offer {request}{_since_text(request)}",
                hint="The worker may still be starting, be older than this request, or not be Kafka Connect at all.",
            )
        if answer.status == HTTPStatus.NOT_FOUND:
            return NotFoundError(f"{where}: {message}", hint="`eosctl workers list` shows what runs in the group.")
        if answer.already_exists():
            return AlreadyExistsError(f"{where}: {message}", hint=AlreadyExistsError.code.next)
        if answer.is_rebalancing():
            return ConnectError(
                f"{where}: {message}", hint="A rebalance went on all the time; run again when it is over."
            )
        return ConnectError(f"{where} answered {answer.status}: {message}")

    def not_connect(self, request: str, reason: str) -> ConnectError:
        """Return the error for an answer that Connect would not give."""
        hint = "Check port and path of the URL. A worker that starts answers 404 until it has read its topics."
        if self._proxy is not None:
            hint = f"It may be the proxy {self._proxy.shown} that answers (${self._proxy.variable}, NO_PROXY). {hint}"
        return ConnectError(
            f"{self.url} answers, but not as a Kafka Connect worker does ({request}): {reason}", hint=hint
        )
