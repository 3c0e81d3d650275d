"""Answers of brokers, and what they hold: record batches, what members of a Connect group say, the transaction log."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from contextlib import suppress
from random import Random

from eosctl.core import transaction_log
from eosctl.engine.reading.batches import BatchDecoder
from eosctl.engine.reading.heads import batches_in, headers_in, headers_texts
from eosctl.errors import ProtocolError
from eosctl.group.protocol import (
    Assignment,
    Metadata,
    decode_assignment,
    decode_metadata,
    encode_assignment,
    encode_metadata,
    held_work,
    owned_work,
)
from eosctl.kafka.native.scram import Scram
from eosctl.wire.api import decode_response, encode_response
from eosctl.wire.log.batches import OldFormatError, decode_batches
from eosctl.wire.log.records import CompressedError, visible_records
from tests.engine.record_batches import CODECS, Written, any_log, batch_of
from tests.fuzz.mutation import BETWEEN
from tests.fuzz.reader import DisagreementError, Reader
from tests.wire.samples import VERSIONS, messages


def _read_answer(data: bytes) -> object:
    """The first byte says of which API and version; each answer is the one to the request that it names."""
    api, version = VERSIONS[data[0] % len(VERSIONS) if data else 0]
    frame = data[1:]
    answered = int.from_bytes(frame[:4], "big", signed=True)
    return decode_response(api, memoryview(frame), version=version, correlation_id=answered)


def _answers() -> list[bytes]:
    return [
        bytes([number]) + encode_response(api, message, version=version, correlation_id=7)[4:]
        for number, (api, version) in enumerate(VERSIONS)
        for message in messages(api.response, version, 6)
    ]


def _read_batches(data: bytes) -> object:
    """As columns, the records one by one, and the heads alone, with and without a look at the checksums."""
    view = memoryview(data)
    heads = [
        decode_batches(view, topic="t", partition=0, position=0, check_crc=check_crc) for check_crc in (False, True)
    ]
    try:
        found = batches_in(view, topic="t", partition=0)
    except OldFormatError:
        return heads
    if len(found.begins) != len(heads[0]):
        raise DisagreementError(f"{len(found.begins)} batches and {len(heads[0])}")
    decoder, rows = BatchDecoder(), 0
    pieces = list(decoder.add(0, found.visible([(1, 0), (2, 0)]), first=0, stop=1 << 62))
    for piece in [*pieces, *decoder.pieces()]:
        piece.columns.validate(full=True)
        rows += len(piece.columns)
        raws = piece.columns["headers"]
        texts = headers_texts(raws)
        if (
            sum(len(headers_in(raw)) > 0 for raw in raws.to_pylist() if raw is not None)
            != len(texts) - texts.null_count
        ):
            raise DisagreementError("headers")
    with suppress(CompressedError):  # which is not read one by one
        parts = visible_records(view, topic="t", partition=0, aborted=[(1, 0), (2, 0)])
        one_by_one = sum(len(records) for _base, _last, records in parts)
        if one_by_one != rows:
            raise DisagreementError(f"{rows} records and {one_by_one}")
    return heads, rows


def _logs() -> list[bytes]:
    logs = (any_log(Random(number), most=12).data for number in range(200))  # noqa: S311 - not for secrets
    small = [Written(number, 1, b'["c",{"p":%d}]' % number, b'{"o":1}', [(b"h", b"v")]) for number in range(3)]
    return [*(log for log in logs if len(log) < 6_000), *(batch_of(5, small, codec=codec) for codec in CODECS)]


def _read_group(data: bytes) -> object:
    """What a member says, and what it was told; both are what they are made of."""
    metadata = assignment = None
    try:
        metadata = decode_metadata(data)
    except ProtocolError:
        assignment = decode_assignment(data)
    if metadata is not None and decode_metadata(encode_metadata(metadata)) != metadata:
        raise DisagreementError("metadata")
    if assignment is not None and set(decode_assignment(encode_assignment(assignment)).assigned) != set(
        assignment.assigned
    ):
        raise DisagreementError("assignment")
    return owned_work(metadata, assignment), held_work(metadata, assignment)


def _group_bytes() -> list[bytes]:
    told = [
        Assignment(2, 0, "m0", "http://w0:8083/", 7, (("c", 0), ("c", -1), ("c", 1)), (("e", 1),), 5),
        Assignment(1, 1, "m0-\u00fc", "", -1, (("d", 3),)),
        Assignment(0, 0, "m0", "http://w0:8083/", 7, (("c", 0), ("d", 3))),
    ]
    said = [Metadata(each.version, "http://w1:8083/", 42, each if each.version else None) for each in told]
    return [*map(encode_assignment, told), *map(encode_metadata, said), encode_metadata(Metadata(2, "", 0))]


def _read_transaction_log(data: bytes) -> object:
    key, _between, value = data.partition(BETWEEN)
    return transaction_log.decode_key(key), transaction_log.decode_value(value)


def _transaction_log() -> list[bytes]:
    key = b"\0\0\0\x03g-1" + BETWEEN
    classic = struct.pack(">hqhib", 0, 7, 3, 60_000, 1) + struct.pack(">i", 1)
    classic += b"\0\x01t" + struct.pack(">iii", 2, 0, 1) + struct.pack(">qq", 2_000, -1)
    flexible = struct.pack(">hqhib", 1, 7, 3, 60_000, 1) + b"\x02\x02t\x03" + struct.pack(">ii", 0, 1) + b"\0"
    flexible += struct.pack(">qq", 2_000, 1_000)
    tags = (
        b"\x04\x00\x08"
        + struct.pack(">q", 6)
        + b"\x01\x08"
        + struct.pack(">q", 8)
        + b"\x02\x02\x00\x02\x03\x02\x00\x01"
    )
    return [key + classic, key + flexible + b"\0", key + flexible + tags]


_USER = "user"


def _read_scram(data: bytes) -> object:
    """A conversation in which the broker says this; the iterations are those that it asks for, if few."""
    scram = Scram("sha256", _USER, "password", nonce="nonce")
    first, _between, last = data.partition(BETWEEN)
    return scram.first(), scram.answer(first), scram.answer(last)


def _scram() -> Sequence[bytes]:
    """The signature is the right one for what the reader has said, so that there is one conversation that ends well."""
    first = b"r=nonceMORE,s=QSXCR+Q6sek8bf92,i=4096"
    scram = Scram("sha256", _USER, "password", nonce="nonce")
    scram.answer(first)
    signature = base64.b64encode(scram._server_signature or b"")
    return [first + BETWEEN + b"v=" + signature, first + BETWEEN + b"e=other-error"]


WIRE = [
    Reader("wire", _read_answer, _answers),
    Reader("batches", _read_batches, _logs, most_mib=800),
    Reader("group", _read_group, _group_bytes),
    Reader("transaction-log", _read_transaction_log, _transaction_log),
    Reader("scram", _read_scram, _scram, most_s=20),
]
