"""A connection to one broker, ready for requests: TCP, TLS, ApiVersions and SASL are done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

from eosctl.core.clients.settings import ClientSettings
from eosctl.errors import BrokerError, ProtocolError, UnauthorizedError, UnreachableError
from eosctl.kafka.native.sasl import make_mechanism
from eosctl.kafka.topics.stream import ConnectionLostError, Stream
from eosctl.wire.api import AnyApi, Api, BrokerVersions, decode_body, decode_response, encode_request, response_body
from eosctl.wire.cluster_messages import API_VERSIONS, ApiVersionsRequest, ApiVersionsResponse
from eosctl.wire.error_codes import (
    ILLEGAL_SASL_STATE,
    NONE,
    UNSUPPORTED_SASL_MECHANISM,
    UNSUPPORTED_VERSION,
    error_name,
)
from eosctl.wire.frames import LISTING_LIMIT_BYTES, FrameMemory

if TYPE_CHECKING:
    import ssl

Q = TypeVar("Q")
S = TypeVar("S")
_API_VERSIONS_FIRST_TRY = 3  # every broker since 2.4 has it, and 3.x brokers have no newer one
_SOFTWARE = ApiVersionsRequest("eosctl", "1")
_SESSION_USED = 0.85  # of its lifetime: where Java begins to log in again (SaslClientAuthenticator)


class Pending(Struct, Generic[S], frozen=True):
    """A request without a response yet."""

    api: Api[Any, S]
    version: int
    correlation_id: int


class Connection:
    """Requests and responses in order, on one stream; only one thread may use it at a time."""

    def __init__(self, stream: Stream, *, client_id: str) -> None:
        self.stream = stream
        self.client_id = client_id
        self.broker = str(stream.address)
        self.versions = BrokerVersions(())
        self._correlation_id = 0
        self._session_ends_s: float | None = None

    def open(
        self,
        settings: ClientSettings,
        *,
        tls: ssl.SSLContext | None,
        oauth_token: Callable[[], str],
        versions: BrokerVersions | None = None,
    ) -> None:
        """Connect and authenticate; `versions` from an earlier connection to this broker save a round trip."""
        try:
            self.stream.connect(tls)
            self.versions = versions or self._ask_versions(encrypted=tls is not None)
            if settings.security_protocol.upper().startswith("SASL"):
                self._authenticate(settings, oauth_token)
            self.stream.frames.limit_bytes = LISTING_LIMIT_BYTES
        except BaseException:
            self.close()
            raise

    def call(self, api: Api[Q, S], request: Q) -> S:
        """Send one request in the newest version that both sides speak, and return its response."""
        return self._exchange(api, request, self.version_of(api))

    def version_of(self, api: AnyApi) -> int:
        """Return the version in which `api` is spoken here; raises UnsupportedError."""
        return self.versions.choose(api, broker=self.broker)

    def pipeline(self, api: Api[Q, S], requests: list[Q]) -> list[S]:
        """Send several requests of one kind at once, and return their responses."""
        return self.call_together([(api, request) for request in requests])

    def call_together(self, requests: Sequence[tuple[Api[Any, Any], Any]]) -> list[Any]:
        """Send requests of several kinds at once, and return their responses; the broker takes them in this order."""
        asked = [(api, request, self.version_of(api), self.next_correlation_id()) for api, request in requests]
        self.stream.send(b"".join(self._encode(*each) for each in asked))
        return [
            decode_response(api, self.stream.receive_frame(), version=version, correlation_id=number)
            for api, _request, version, number in asked
        ]

    def send(self, api: Api[Q, S], request: Q, *, version: int) -> Pending[S]:
        """Send a request in a given version; `receive_in` returns its response.

        No other request may be sent in between.
        """
        number = self.next_correlation_id()
        self.stream.send(self._encode(api, request, version, number))
        return Pending(api, version, number)

    def receive_in(self, room: FrameMemory, pending: Pending[S]) -> S:
        """Receive the response to a sent request; its views are into `room`."""
        frame = self.stream.receive_frame_in(room)
        return decode_response(pending.api, frame, version=pending.version, correlation_id=pending.correlation_id)

    def next_correlation_id(self) -> int:
        """Return a number that no request on this connection has had (they wrap at 31 bits)."""
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        return self._correlation_id

    def is_ending(self) -> bool:
        """Return whether the login has expired (connections.max.reauth.ms, KIP-368): later requests are cut off.

        It is measured by wall time, as a deadline's clock stops during a question to the user.
        """
        return self._session_ends_s is not None and self.stream.deadline.clock.now_s() >= self._session_ends_s

    def close(self) -> None:
        """Close the stream."""
        self.stream.close()

    def _encode(self, api: Api[Q, Any], request: Q, version: int, correlation_id: int) -> bytes:
        return encode_request(api, request, version=version, correlation_id=correlation_id, client_id=self.client_id)

    def _exchange(self, api: Api[Q, S], request: Q, version: int) -> S:
        number = self.next_correlation_id()
        self.stream.send(self._encode(api, request, version, number))
        return decode_response(api, self.stream.receive_frame(), version=version, correlation_id=number)

    def _ask_versions(self, *, encrypted: bool) -> BrokerVersions:
        """Request ApiVersions.

        A broker that lacks our version responds in v0 with the error UNSUPPORTED_VERSION (KIP-511).
        """
        number = self.next_correlation_id()
        try:
            self.stream.send(self._encode(API_VERSIONS, _SOFTWARE, _API_VERSIONS_FIRST_TRY, number))
            frame = self.stream.receive_frame()
        except ConnectionLostError as exc:
            hint = (
                "It may be no Kafka listener, or want a client certificate."
                if encrypted
                else ("The listener may expect TLS: check security.protocol (SSL or SASL_SSL) and port.")
            )
            raise UnreachableError(f"no Kafka answer: {exc.message}", hint=hint) from exc
        except ProtocolError as exc:
            raise UnreachableError(f"no Kafka answer from {self.broker}: {exc.message}", hint=exc.hint) from exc
        refused = frame[4:6] == UNSUPPORTED_VERSION.to_bytes(2, "big")
        version = 0 if refused else _API_VERSIONS_FIRST_TRY
        if refused:
            decode_response(API_VERSIONS, frame, version=version, correlation_id=number)
            return _versions_of(self._exchange(API_VERSIONS, ApiVersionsRequest(), 0), self.broker)
        response_body(frame, correlation_id=number, tags=False, what=f"{API_VERSIONS.name} v{version} response")
        return _versions_of(_read_versions(frame[4:]), self.broker)

    def _authenticate(self, settings: ClientSettings, oauth_token: Callable[[], str]) -> None:
        """Log in, a message at a time.

        Over TLS a broker (Kafka 4.3) would leave a message that came with the one before it until its next poll, up to
        300 ms later.
        """
        from eosctl.wire.sasl_messages import SASL_AUTHENTICATE, SaslAuthenticateRequest

        mechanism = make_mechanism(settings, oauth_token)
        name = (settings.sasl_mechanism or "").upper()
        self._shake_hands(name)
        message: bytes | None = mechanism.first()
        while message is not None:
            answer = self.call(SASL_AUTHENTICATE, SaslAuthenticateRequest(message))
            if answer.error_code != NONE:
                reason = answer.error_message or error_name(answer.error_code)
                raise UnauthorizedError(
                    f"{self.broker} refused SASL {name}: {reason}", hint="Check user name, password or token."
                )
            message = mechanism.answer(answer.auth_bytes)
            if answer.session_lifetime_ms > 0:
                lifetime_s = answer.session_lifetime_ms / 1000
                self._session_ends_s = self.stream.deadline.clock.now_s() + _SESSION_USED * lifetime_s

    def _shake_hands(self, mechanism: str) -> None:
        from eosctl.wire.sasl_messages import SASL_HANDSHAKE, SaslHandshakeRequest

        answer = self.call(SASL_HANDSHAKE, SaslHandshakeRequest(mechanism))
        if answer.error_code == UNSUPPORTED_SASL_MECHANISM:
            raise UnauthorizedError(
                f"{self.broker} does not offer SASL {mechanism}",
                hint=f"It offers {', '.join(answer.mechanisms) or 'none'}: set sasl.mechanism to one of them.",
            )
        if answer.error_code == ILLEGAL_SASL_STATE:
            raise UnauthorizedError(
                f"{self.broker} does not authenticate with SASL here",
                hint="The listener is not a SASL one: use security.protocol PLAINTEXT or SSL, or another port.",
            )
        if answer.error_code != NONE:
            raise ProtocolError(f"{self.broker} answered the SASL handshake with {error_name(answer.error_code)}")


@lru_cache(maxsize=16)
def _read_versions(body: bytes) -> ApiVersionsResponse:
    """Read the response in the version tried first.

    Results are cached: the brokers of a cluster offer the same versions, and each connection asks anew.
    """
    version = _API_VERSIONS_FIRST_TRY
    return decode_body(
        API_VERSIONS.response,
        body,
        0,
        what=f"{API_VERSIONS.name} v{version} response",
        api=API_VERSIONS,
        version=version,
    )


def _versions_of(answer: ApiVersionsResponse, broker: str) -> BrokerVersions:
    if answer.error_code != NONE:
        raise BrokerError(f"{broker} answered ApiVersions with {error_name(answer.error_code)}")
    return BrokerVersions(answer.api_keys)
