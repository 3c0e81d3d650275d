"""Version choice, frames and error codes: the small tables and buffers around the codecs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.errors import ProtocolError, UnreachableError, UnsupportedError
from eosctl.wire.api import Api, BrokerVersions, encode_request
from eosctl.wire.cluster_messages import FIND_COORDINATOR, FindCoordinatorRequest
from eosctl.wire.error_codes import error_name
from eosctl.wire.frames import FrameBuffer
from eosctl.wire.producer_messages import WRITE_TXN_MARKERS, TxnMarker, WriteTxnMarkersRequest
from eosctl.wire.transaction_listing_messages import LIST_TRANSACTIONS, ListTransactionsRequest
from eosctl.wire.transaction_messages import DESCRIBE_TRANSACTIONS, INIT_PRODUCER_ID, InitProducerIdRequest
from tests.wire.samples import APIS


@pytest.mark.parametrize(("offered", "chosen"), [((0, 9), 5), ((0, 3), 3), ((4, 4), 4), ((1, 1), 1)])
def test_the_newest_common_version_is_chosen(offered: tuple[int, int], chosen: int) -> None:
    assert BrokerVersions([(22, *offered)]).choose(INIT_PRODUCER_ID, broker="b:1") == chosen


def test_an_api_the_broker_lacks_names_the_release_that_brought_it() -> None:
    with pytest.raises(UnsupportedError, match=r"b:1 does not offer DescribeTransactions: it came with Kafka 3\.0"):
        BrokerVersions([]).choose(DESCRIBE_TRANSACTIONS, broker="b:1")


@pytest.mark.parametrize("offered", [(6, 9), (0, 0)])
def test_no_common_version_is_unsupported(offered: tuple[int, int]) -> None:
    with pytest.raises(UnsupportedError, match=r"eosctl speaks v1 \(Kafka 2\.0\) to v5"):
        BrokerVersions([(22, *offered)]).choose(INIT_PRODUCER_ID, broker="b:1")


@pytest.mark.parametrize(
    ("api", "version", "request_", "message"),
    [
        (
            LIST_TRANSACTIONS,
            1,
            ListTransactionsRequest(transactional_id_pattern="x"),
            "transactional id pattern needs Kafka 4.1 (ListTransactions v2); this broker has v1",
        ),
        (
            LIST_TRANSACTIONS,
            0,
            ListTransactionsRequest(duration_filter=1),
            "duration filter needs Kafka 3.8 (ListTransactions v1); this broker has v0",
        ),
        (
            INIT_PRODUCER_ID,
            2,
            InitProducerIdRequest("x", 1, producer_id=7),
            "producer id needs Kafka 2.5 (InitProducerId v3); this broker has v2",
        ),
        (
            WRITE_TXN_MARKERS,
            1,
            WriteTxnMarkersRequest((TxnMarker(1, 1, False, (), 0, transaction_version=2),)),
            "transaction version needs Kafka 4.2 (WriteTxnMarkers v2); this broker has v1",
        ),
        (
            FIND_COORDINATOR,
            3,
            FindCoordinatorRequest(coordinator_keys=("a",)),
            "coordinator keys needs Kafka 3.0 (FindCoordinator v4); this broker has v3",
        ),
    ],
)
def test_a_field_the_version_can_not_carry_is_refused(
    api: Api[Any, Any], version: int, request_: Any, message: str
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        encode_request(api, request_, version=version, correlation_id=1, client_id="c")
    assert caught.value.message == message


def test_a_field_that_ended_is_refused_too() -> None:
    with pytest.raises(ProtocolError, match="key ended before this version"):
        encode_request(FIND_COORDINATOR, FindCoordinatorRequest("x"), version=4, correlation_id=1, client_id="c")


def test_every_version_has_a_release() -> None:
    for api in APIS:
        assert all(version in api.releases for version in range(api.oldest, api.newest + 1)), api.name


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_frames_are_cut_wherever_the_stream_was_split(chunk: int) -> None:
    stream = b"".join(len(body).to_bytes(4, "big") + body for body in (b"one", b"", b"three" * 50))
    frames, seen = FrameBuffer(), []
    for start in range(0, len(stream), chunk):
        frames.feed(stream[start : start + chunk])
        while (frame := frames.next_frame()) is not None:
            seen.append(frame)
    assert seen == [b"one", b"", b"three" * 50]


def test_the_buffer_forgets_what_was_read() -> None:
    frames = FrameBuffer()
    body = b"x" * 400_000
    for _ in range(20):
        frames.feed(len(body).to_bytes(4, "big") + body + b"\0\0\0\1")
        assert frames.next_frame() == body
        frames.feed(b"!")
        assert frames.next_frame() == b"!"
        assert len(frames._data) < 3 * len(body)


@pytest.mark.parametrize(
    ("head", "hint"),
    [
        (b"\x15\x03\x03\x00", "TLS"),
        (b"HTTP", "HTTP"),
        (b"\xff\xff\xff\xff", "may not be a Kafka listener"),
        (b"\x7f\xff\xff\xff", "may not be a Kafka listener"),
    ],
)
def test_a_size_that_can_not_be_is_refused_with_a_guess(head: bytes, hint: str) -> None:
    frames = FrameBuffer(limit_bytes=1 << 20)
    frames.feed(head + b"more")
    with pytest.raises(ProtocolError) as caught:
        frames.next_frame()
    assert hint in (caught.value.hint or "")


def test_error_codes_are_those_of_kafka_4_4_0() -> None:
    lines = (Path(__file__).parent / "captured" / "errors-4.4.0.txt").read_text().splitlines()
    assert len(lines) == 138
    for line in lines:
        code, name, _retriable = line.split()
        assert error_name(int(code)) == name


def test_an_error_code_from_the_future_has_a_name() -> None:
    assert error_name(4711) == "UNKNOWN_ERROR_4711"
    assert error_name(-2) == "UNKNOWN_ERROR_-2"


def test_a_controller_is_no_old_broker() -> None:
    """It was said to be a broker of before Kafka 0.11, with exit code 1."""
    controller = BrokerVersions([(52, 0, 1), (18, 0, 4)])
    with pytest.raises(UnreachableError, match="b:1 is the listener of a controller, not of a broker"):
        controller.choose(DESCRIBE_TRANSACTIONS, broker="b:1")
    both = BrokerVersions([(52, 0, 1), (3, 0, 12), (22, 0, 4)])
    assert both.choose(INIT_PRODUCER_ID, broker="b:1") == 4
