"""Codecs, per API and version: golden bytes, round trips, and nothing but ProtocolError on bytes that are wrong."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from eosctl.errors import ProtocolError
from eosctl.wire.api import (
    Api,
    decode_body,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from eosctl.wire.cluster_messages import API_VERSIONS, FIND_COORDINATOR, METADATA, FindCoordinatorRequest, KeyType
from eosctl.wire.primitives import NULLABLE_STRING, STRING
from eosctl.wire.sasl_messages import SASL_HANDSHAKE, SaslHandshakeRequest
from eosctl.wire.schema import Struct
from eosctl.wire.transaction_listing_messages import (
    LIST_TRANSACTIONS,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from eosctl.wire.transaction_messages import (
    DESCRIBE_TRANSACTIONS,
    INIT_PRODUCER_ID,
    DescribeTransactionsRequest,
    InitProducerIdRequest,
    InitProducerIdResponse,
    decode_fence_answer,
    fence_encoder,
)
from tests.wire.samples import APIS, VERSIONS, messages

BY_KEY = {api.key: api for api in APIS}
QUICK = settings(
    max_examples=12, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck), database=None
)
each_version = pytest.mark.parametrize(
    ("api", "version"), VERSIONS, ids=[f"{api.name}-v{version}" for api, version in VERSIONS]
)


def body_of(layout: Struct[Any], api: Api[Any, Any], version: int, message: Any) -> bytes:
    out = bytearray()
    layout.codec(version, flexible=api.flexible(version)).write(out, message)
    return bytes(out)


@pytest.mark.parametrize(
    ("api", "version", "request_", "golden"),
    [
        (INIT_PRODUCER_ID, 1, InitProducerIdRequest("g-c-0", 90_000), "0005672d632d3000015f90"),
        (INIT_PRODUCER_ID, 2, InitProducerIdRequest("g-c-0", 90_000), "06672d632d3000015f9000"),
        (INIT_PRODUCER_ID, 3, InitProducerIdRequest("g-c-0", 90_000), "06672d632d3000015f90ffffffffffffffffffff00"),
        (INIT_PRODUCER_ID, 5, InitProducerIdRequest("g-c-0", 90_000), "06672d632d3000015f90ffffffffffffffffffff00"),
        (FIND_COORDINATOR, 3, FindCoordinatorRequest("g-c-0", KeyType.TRANSACTION), "06672d632d300100"),
        (
            FIND_COORDINATOR,
            6,
            FindCoordinatorRequest(key_type=KeyType.TRANSACTION, coordinator_keys=("g-c-0", "g-c-1")),
            "010306672d632d3006672d632d3100",
        ),
        (LIST_TRANSACTIONS, 0, ListTransactionsRequest(), "010100"),
        (LIST_TRANSACTIONS, 1, ListTransactionsRequest(duration_filter=60_000), "0101000000000000ea6000"),
        (
            LIST_TRANSACTIONS,
            2,
            ListTransactionsRequest(transactional_id_pattern="g-c-.*"),
            "0101ffffffffffffffff07672d632d2e2a00",
        ),
        (DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(("g-c-0",)), "0206672d632d3000"),
    ],
)
def test_golden_requests(api: Api[Any, Any], version: int, request_: Any, golden: str) -> None:
    assert body_of(api.request, api, version, request_).hex() == golden


@pytest.mark.parametrize("version", range(1, 6))
def test_golden_init_producer_id_response(version: int) -> None:
    golden = bytes.fromhex("00000000000000000000000000070039") + (b"\0" if version >= 2 else b"")
    answer = InitProducerIdResponse(producer_id=7, producer_epoch=57)
    assert body_of(INIT_PRODUCER_ID.response, INIT_PRODUCER_ID, version, answer) == golden


def exchanges(api: Api[Any, Any], version: int, count: int) -> Iterator[tuple[Any, Any]]:
    """So many requests, each with an answer."""
    return zip(messages(api.request, version, count), messages(api.response, version, count), strict=True)


@each_version
def test_requests_and_responses_survive_the_round_trip(api: Api[Any, Any], version: int) -> None:
    numbers = (0, 1, 255, 256, 0x01020304, (1 << 31) - 1)
    for (request, response), number in zip(exchanges(api, version, 18), numbers * 3, strict=True):
        frame = encode_request(api, request, version=version, correlation_id=number, client_id="eosctl")
        assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
        header = decode_request_header(frame[4:], BY_KEY)
        assert (header.api_key, header.version, header.correlation_id) == (api.key, version, number)
        assert (header.client_id, decode_request(api, frame[4:], header)) == ("eosctl", request)
        answer = encode_response(api, response, version=version, correlation_id=number)
        assert decode_response(api, answer[4:], version=version, correlation_id=number) == response


def wrong_lengths(frame: bytes) -> Iterator[bytes]:
    """Every prefix of a frame, and the frame with a byte more."""
    yield from (frame[:end] for end in range(len(frame)))
    yield frame + b"\0"


def is_refused(decode: Callable[[bytes], object], wrong: bytes) -> bool:
    """Whether it is a ProtocolError; `pytest.raises` took longer than the decoding, for thousands of frames."""
    try:
        decode(wrong)
    except ProtocolError:
        return True
    return False


@each_version
def test_every_prefix_and_every_extra_byte_is_a_protocol_error(api: Api[Any, Any], version: int) -> None:
    def of_answer(wrong: bytes) -> object:
        return decode_response(api, wrong, version=version, correlation_id=7)

    def of_request(wrong: bytes) -> object:
        return decode_request(api, wrong, decode_request_header(wrong, BY_KEY))

    for request, response in exchanges(api, version, 4):
        answer = encode_response(api, response, version=version, correlation_id=7)[4:]
        asked = encode_request(api, request, version=version, correlation_id=7, client_id="c")[4:]
        assert [wrong for wrong in wrong_lengths(answer) if not is_refused(of_answer, wrong)] == []
        assert [wrong for wrong in wrong_lengths(asked) if not is_refused(of_request, wrong)] == []


@each_version
def test_garbage_is_a_protocol_error_or_a_message(api: Api[Any, Any], version: int) -> None:
    """Whatever the bytes, nothing but ProtocolError comes out, and what decodes is encoded again without complaint."""
    chance = random.Random(f"{api.name}{version}")  # noqa: S311 - not for secrets
    for _ in range(150):
        body = chance.randbytes(chance.randrange(40))
        try:
            message = decode_body(api.response, body, 0, what="garbage", api=api, version=version)
        except ProtocolError:
            continue
        assert body_of(api.response, api, version, message) is not None


@each_version
def test_a_flipped_byte_never_escapes_as_another_error(api: Api[Any, Any], version: int) -> None:
    chance = random.Random(version)  # noqa: S311 - not for secrets
    for response in messages(api.response, version, 4):
        frame = bytearray(encode_response(api, response, version=version, correlation_id=7)[4:])
        for _ in range(10):
            frame[chance.randrange(len(frame))] = chance.randrange(256)
            try:
                decode_response(api, bytes(frame), version=version, correlation_id=7)
            except ProtocolError:
                continue


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80\x00\x00\x00"])
def test_an_absurd_count_is_refused_without_work(count: bytes) -> None:
    body = b"\0\0\0\0" + count  # METADATA v5: throttle, then the number of brokers
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode_body(METADATA.response, body, 0, what="absurd", api=METADATA, version=5)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_an_overlong_varint_is_refused() -> None:
    with pytest.raises(ProtocolError, match="varint"):
        decode_body(
            LIST_TRANSACTIONS.response, b"\0" * 6 + b"\xff" * 9, 0, what="varint", api=LIST_TRANSACTIONS, version=0
        )


def test_null_where_none_may_be_is_refused_both_ways() -> None:
    with pytest.raises(ProtocolError, match="null"):
        body_of(DESCRIBE_TRANSACTIONS.request, DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest((None,)))  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match="null"):
        decode_body(DESCRIBE_TRANSACTIONS.request, b"\x02\0\0", 0, what="null", api=DESCRIBE_TRANSACTIONS, version=0)


def test_a_value_that_does_not_fit_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="InitProducerId v4 request can't be written"):
        encode_request(
            INIT_PRODUCER_ID, InitProducerIdRequest("x", 1 << 40), version=4, correlation_id=1, client_id="c"
        )


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 128, 20_000])
def test_texts_on_both_sides_of_a_one_byte_length(size: int) -> None:
    """Lengths of one byte are read by themselves: the text's end, and that of the bytes, are where they were."""
    out = bytearray(b"before")
    STRING.compact.write(out, "x" * size)
    assert STRING.compact.read(bytes(out) + b"behind", len(b"before")) == ("x" * size, len(out))
    assert NULLABLE_STRING.compact.read(b"\0", 0) == (None, 1)
    for codec, cut in ((STRING, bytes(out[:-1]) if size else b"before"), (STRING, b"before\0")):
        with pytest.raises((ProtocolError, IndexError)):
            codec.compact.read(cut, len(b"before"))


def test_a_string_that_is_not_utf8_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="UTF-8"):
        decode_body(DESCRIBE_TRANSACTIONS.request, b"\x02\x02\xff\0", 0, what="x", api=DESCRIBE_TRANSACTIONS, version=0)


def test_unknown_tags_are_skipped_and_accounted_for() -> None:
    """A newer broker may add tagged fields (KIP-482): tag 9 of three bytes, behind a message and in its header."""
    plain = encode_response(INIT_PRODUCER_ID, InitProducerIdResponse(producer_id=7), version=4, correlation_id=1)[4:]
    tags = b"\x01\x09\x03abc"
    answer = decode_fence_answer(plain[:4] + tags + plain[5:-1] + tags, version=4, correlation_id=1)
    assert answer.producer_id == 7
    for wrong in (b"\x01\x09\x04abc", b"\x02\x09\x03abc\x08\x00", b"\x02\x09\x00\x09\x00"):
        with pytest.raises(ProtocolError):
            decode_fence_answer(plain[:-1] + wrong, version=4, correlation_id=1)


def test_an_entry_of_a_listing_may_have_tags_and_long_texts() -> None:
    """Entries of the usual shape are read in place; the ones before and behind others are read from where they are."""
    usual = ListedTransaction("g-c-0", 7, "Empty")
    long = [
        usual._replace(transactional_id="x" * size) for size in (126, 127, 16_383)
    ]  # and a byte of each is a length
    long += [usual._replace(transaction_state="y" * size + "\0") for size in (125, 126, 300)]
    entries = (usual, ListedTransaction("é" * 64, -1, ""), usual, ListedTransaction("", 1 << 62, "漢"), *long, usual)
    listed = ListTransactionsResponse(transaction_states=entries)
    frame = encode_response(LIST_TRANSACTIONS, listed, version=2, correlation_id=1)[4:]
    assert decode_response(LIST_TRANSACTIONS, frame, version=2, correlation_id=1) == listed
    entry = body_of(LIST_TRANSACTIONS.response, LIST_TRANSACTIONS, 2, listed._replace(transaction_states=(usual,)))
    tagged = entry[:-2] + b"\x01\x09\x03abc" + entry[-1:]
    read = decode_body(LIST_TRANSACTIONS.response, tagged, 0, what="tags", api=LIST_TRANSACTIONS, version=2)
    assert read.transaction_states == (usual,)
    for wrong in (entry.replace(b"g-c-0", b"g-c-\xff"), entry.replace(b"Empty", b"Empt\xff")):
        with pytest.raises(ProtocolError, match="UTF-8"):
            decode_body(LIST_TRANSACTIONS.response, wrong, 0, what="x", api=LIST_TRANSACTIONS, version=2)


@pytest.mark.parametrize("text", [b"\x06g-c-0", b"\x06Empty"])
def test_a_null_in_an_entry_of_a_listing_is_no_text(text: bytes) -> None:
    listed = ListTransactionsResponse(transaction_states=(ListedTransaction("g-c-0", 7, "Empty"),))
    body = body_of(LIST_TRANSACTIONS.response, LIST_TRANSACTIONS, 2, listed).replace(text, b"\0")
    with pytest.raises(ProtocolError, match="can't be null"):
        decode_body(LIST_TRANSACTIONS.response, body, 0, what="x", api=LIST_TRANSACTIONS, version=2)


def test_a_known_tag_must_fill_its_size() -> None:
    body = b"\0\0" + b"\x01" + b"\0\0\0\0" + b"\x01" + b"\x01\x09" + struct.pack(">q", 5) + b"!"
    with pytest.raises(ProtocolError, match="left over in tag 1"):
        decode_body(API_VERSIONS.response, body, 0, what="tags", api=API_VERSIONS, version=3)


def test_an_answer_to_another_request_is_a_protocol_error() -> None:
    frame = encode_response(INIT_PRODUCER_ID, InitProducerIdResponse(), version=4, correlation_id=1)[4:]
    with pytest.raises(ProtocolError, match="answers request 1, expected 2"):
        decode_response(INIT_PRODUCER_ID, frame, version=4, correlation_id=2)
    with pytest.raises(ProtocolError, match="answers request 1, expected 2"):
        decode_fence_answer(frame, version=4, correlation_id=2)


@pytest.mark.parametrize("version", range(1, 6))
@pytest.mark.parametrize("transactional_id", ["g-c-0", "", "ü" * 40, "x" * 300])
def test_the_template_makes_the_same_bytes_as_the_layout(version: int, transactional_id: str) -> None:
    encode = fence_encoder(version=version, client_id="eosctl", transaction_timeout_ms=30_000)
    slow = encode_request(
        INIT_PRODUCER_ID,
        InitProducerIdRequest(transactional_id, 30_000),
        version=version,
        correlation_id=77,
        client_id="eosctl",
    )
    assert encode(transactional_id, 77) == slow


@pytest.mark.parametrize("version", range(1, 6))
@given(
    throttle_ms=st.integers(0, 1 << 30),
    error=st.integers(-1, 130),
    producer_id=st.integers(-1, 1 << 62),
    epoch=st.integers(-1, 32767),
)
@QUICK
def test_the_short_cut_reads_the_same_answer_as_the_layout(
    version: int, throttle_ms: int, error: int, producer_id: int, epoch: int
) -> None:
    answer = InitProducerIdResponse(throttle_ms, error, producer_id, epoch)
    frame = encode_response(INIT_PRODUCER_ID, answer, version=version, correlation_id=9)[4:]
    assert decode_fence_answer(frame, version=version, correlation_id=9) == answer


def test_the_header_of_api_versions_has_no_tags_even_when_flexible() -> None:
    assert [API_VERSIONS.response_header_tags(version) for version in (2, 3, 4)] == [False] * 3
    assert FIND_COORDINATOR.response_header_tags(3)


def test_a_request_of_an_unknown_api_is_a_protocol_error() -> None:
    frame = encode_request(SASL_HANDSHAKE, SaslHandshakeRequest("PLAIN"), version=1, correlation_id=1, client_id="c")
    with pytest.raises(ProtocolError, match="API 17"):
        decode_request_header(frame[4:], {})
