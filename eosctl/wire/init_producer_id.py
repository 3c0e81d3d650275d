"""InitProducerId, fast: fencing sends one request per id, so frames are cut from a template and answers read in place.

The bytes are those of the declared layout in `transaction_messages` (a test compares them); an answer of any other
shape than the usual one is given to that layout.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from eosctl.wire.api import decode_response, request_header
from eosctl.wire.primitives import write_varint
from eosctl.wire.transaction_messages import INIT_PRODUCER_ID, InitProducerIdResponse

_ANY_PRODUCER = struct.pack(">qh", -1, -1)
_CLASSIC_ANSWER = struct.Struct(">iihqh")  # correlation id, throttle, error, producer id, epoch
_FLEXIBLE_ANSWER = struct.Struct(">iBihqhB")  # the same, with two empty tagged sections
_PREFIX = struct.Struct(">ihhi")


def fence_encoder(*, version: int, client_id: str, transaction_timeout_ms: int) -> Callable[[str, int], bytes]:
    """Return a function of (transactional id, correlation id) that encodes the frame of InitProducerId(-1, -1)."""
    flexible = INIT_PRODUCER_ID.flexible(version)
    header_tail = request_header(INIT_PRODUCER_ID, version=version, correlation_id=0, client_id=client_id)[8:]
    tail = (
        struct.pack(">i", transaction_timeout_ms)
        + (_ANY_PRODUCER if version >= 3 else b"")
        + (b"\0" if flexible else b"")
    )
    rest = 8 + len(header_tail) + len(tail)

    def encode(transactional_id: str, correlation_id: int) -> bytes:
        name = transactional_id.encode()
        if flexible:
            length = bytearray()
            write_varint(length, len(name) + 1)
        else:
            length = bytearray(struct.pack(">h", len(name)))
        prefix = _PREFIX.pack(rest + len(length) + len(name), INIT_PRODUCER_ID.key, version, correlation_id)
        return b"".join((prefix, header_tail, length, name, tail))

    return encode


def decode_fence_answer(frame: bytes, *, version: int, correlation_id: int) -> InitProducerIdResponse:
    """Decode the response in a frame; raises ProtocolError as `api.decode_response` does."""
    if INIT_PRODUCER_ID.flexible(version):
        if len(frame) == _FLEXIBLE_ANSWER.size:
            answered, head_tags, throttle_ms, error, producer_id, epoch, tags = _FLEXIBLE_ANSWER.unpack(frame)
            if answered == correlation_id and head_tags == 0 and tags == 0:
                return InitProducerIdResponse(throttle_ms, error, producer_id, epoch)
    elif len(frame) == _CLASSIC_ANSWER.size:
        answered, throttle_ms, error, producer_id, epoch = _CLASSIC_ANSWER.unpack(frame)
        if answered == correlation_id:
            return InitProducerIdResponse(throttle_ms, error, producer_id, epoch)
    return decode_response(INIT_PRODUCER_ID, frame, version=version, correlation_id=correlation_id)
