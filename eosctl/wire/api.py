"""An API: its key, its versions, both layouts; and frames of a header and a body.

An encoded frame includes its four size bytes; a frame to decode lacks them (`frames` has cut them off).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from eosctl.errors import NoTransactionsError, ProtocolError, UnreachableError, UnsupportedError
from eosctl.wire.primitives import NULLABLE_STRING, Data
from eosctl.wire.schema import NotCarriedError, Struct, decoding, encoding, skip_tags

Q = TypeVar("Q")
S = TypeVar("S")
_API_VERSIONS = 18


class Api(msgspec.Struct, Generic[Q, S], frozen=True):
    """One API: the versions eosctl speaks (`oldest` to `newest`), and the Kafka release that brought each version."""

    key: int
    name: str
    request: Struct[Q]
    response: Struct[S]
    oldest: int
    newest: int
    flexible_from: int
    releases: Mapping[int, str]

    def flexible(self, version: int) -> bool:
        """Return whether this version has compact lengths and tagged fields (KIP-482)."""
        return version >= self.flexible_from

    def response_header_tags(self, version: int) -> bool:
        """Return whether the response header has tags.

        ApiVersions never has, because its reader can't know the version (KIP-511).
        """
        return self.flexible(version) and self.key != _API_VERSIONS

    def release_of(self, version: int) -> str:
        """Return the first Kafka release that has `version`, as far as known."""
        return next((self.releases[v] for v in sorted(self.releases) if v >= version), "a newer release")


class RequestHeader(NamedTuple):
    """The header of a request; `body` is the offset of the request's body in its frame."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: int


AnyApi = Api[Any, Any]
"""An API with any request and response."""


def request_header(api: AnyApi, *, version: int, correlation_id: int, client_id: str) -> bytes:
    """Request header v1, or v2 for flexible versions (the client id stays a classic string in both)."""
    out = bytearray(struct.pack(">hhi", api.key, version, correlation_id))
    NULLABLE_STRING.classic.write(out, client_id)
    if api.flexible(version):
        out.append(0)
    return bytes(out)


def _frame(header: bytes, layout: Struct[Any], value: object, *, version: int, flexible: bool) -> bytes:
    out = bytearray(4)
    out += header
    layout.codec(version, flexible=flexible).write(out, value)
    struct.pack_into(">i", out, 0, len(out) - 4)
    return bytes(out)


def encode_request(api: Api[Q, Any], request: Q, *, version: int, correlation_id: int, client_id: str) -> bytes:
    """Encode a request frame; raises UnsupportedError if `version` can't carry a field that is set."""
    with encoding(f"{api.name} v{version} request"):
        header = request_header(api, version=version, correlation_id=correlation_id, client_id=client_id)
        try:
            return _frame(header, api.request, request, version=version, flexible=api.flexible(version))
        except NotCarriedError as exc:
            raise UnsupportedError(
                f"{exc.field_name.replace('_', ' ')} needs Kafka {api.release_of(exc.since_version)} "
                f"({api.name} v{exc.since_version}); this broker has v{version}"
            ) from exc


def decode_request_header(frame: bytes, apis: Mapping[int, AnyApi]) -> RequestHeader:
    """Decode the header of a request frame; `apis` (key -> Api) determines which versions are flexible."""
    with decoding("request header"):
        key, version, correlation_id = struct.unpack_from(">hhi", frame)
        client_id, offset = NULLABLE_STRING.classic.read(frame, 8)
        if key not in apis:
            raise ProtocolError(f"API {key} is not known")
        if apis[key].flexible(version):
            offset = skip_tags(frame, offset)
        return RequestHeader(key, version, correlation_id, client_id, offset)


def decode_request(api: Api[Q, object], frame: bytes, header: RequestHeader) -> Q:
    """Decode the body of a request frame whose header was read before."""
    return decode_body(
        api.request, frame, header.body, what=f"{api.name} v{header.version} request", api=api, version=header.version
    )


def encode_response(api: Api[Any, S], response: S, *, version: int, correlation_id: int) -> bytes:
    """Encode a response frame."""
    with encoding(f"{api.name} v{version} response"):
        header = struct.pack(">i", correlation_id) + (b"\0" if api.response_header_tags(version) else b"")
        return _frame(header, api.response, response, version=version, flexible=api.flexible(version))


def decode_response(api: Api[Any, S], frame: Data, *, version: int, correlation_id: int) -> S:
    """Decode the response in a frame; raises ProtocolError if it answers another request or has trailing bytes."""
    what = f"{api.name} v{version} response"
    offset = response_body(frame, correlation_id=correlation_id, tags=api.response_header_tags(version), what=what)
    return decode_body(api.response, frame, offset, what=what, api=api, version=version)


def response_body(frame: Data, *, correlation_id: int, tags: bool, what: str) -> int:
    """Check the header of a response frame and return the offset of the body."""
    with decoding(what):
        (answered,) = struct.unpack_from(">i", frame)
        if answered != correlation_id:
            raise ProtocolError(f"answers request {answered}, expected {correlation_id}")
        return skip_tags(frame, 4) if tags else 4


def decode_body(layout: Struct[S], frame: Data, offset: int, *, what: str, api: AnyApi, version: int) -> S:
    """Decode one message that must end exactly where the frame ends."""
    with decoding(what):
        value, end = layout.codec(version, flexible=api.flexible(version)).read(frame, offset)
        if end != len(frame):
            raise ProtocolError(f"{len(frame) - end} bytes left over")
    message: S = value
    return message


class Offered(NamedTuple):
    """The versions of one API that a broker offers."""

    oldest: int
    newest: int


_METADATA, _VOTE = 3, 52
"""API keys: KRaft controllers vote and report no metadata."""


class BrokerVersions:
    """The API versions that a broker offers, from its ApiVersions response."""

    def __init__(self, offered: Iterable[tuple[int, int, int]]) -> None:
        self._offered = {key: Offered(oldest, newest) for key, oldest, newest in offered}

    def choose(self, api: AnyApi, *, broker: str) -> int:
        """Choose the newest version that both sides speak; raises UnsupportedError that names the release with one.

        Raises UnreachableError if a controller responds instead of a broker.
        """
        offered = self._offered.get(api.key)
        if _METADATA not in self._offered and _VOTE in self._offered:
            raise UnreachableError(
                f"{broker} is the listener of a controller, not of a broker: it does not offer {api.name}",
                hint="Give a broker's listener with --bootstrap-server.",
            )
        if offered is None:
            raise self._not_offered(api, broker)
        version = min(api.newest, offered.newest)
        if version < max(api.oldest, offered.oldest):
            raise UnsupportedError(
                f"broker {broker} offers {api.name} v{offered.oldest} to v{offered.newest}, "
                f"eosctl speaks v{api.oldest} (Kafka {api.release_of(api.oldest)}) to v{api.newest}"
            )
        return version

    def _not_offered(self, api: AnyApi, broker: str) -> UnsupportedError:
        """Return the error for an API that is missing; a newer broker is advised only where age can be the reason."""
        from eosctl.core.brokers import APPLICATION_APIS, INIT_PRODUCER_ID, INSPECTION_APIS, is_left_out, kind_of

        transactional = {*APPLICATION_APIS, *INSPECTION_APIS, 27}  # 27: WriteTxnMarkers
        without = bool(self._offered) and api.key in transactional and INIT_PRODUCER_ID not in self._offered
        kind = kind_of((), None, (broker,))
        if kind.name or is_left_out(self._offered, api.key):
            reason = "the broker offers APIs that came later, so its age is not the reason"
            whose = f"the broker is {kind}" if kind.name else reason
            hint = kind.advice if without else f"Brokers of this kind, or a proxy before them, leave {api.name} out."
        else:
            whose = f"it came with Kafka {api.release_of(0)}"
            hint = "Connect to a newer broker, or to a broker rather than a controller or proxy."
        if without:
            return NoTransactionsError(f"broker {broker} offers no transactions, nor {api.name}: {whose}", hint=hint)
        return UnsupportedError(f"broker {broker} does not offer {api.name}: {whose}", hint=hint)
