"""Every decoder of bytes that others wrote, on damaged ones: an answer or its declared error, and never a hang.

Damage is done to good input, for most random bytes fail at the first one. Frames of the wire: tests/wire; profiles and
their edits: tests/test_profiles.py and tests/profiles/test_profile_command.py; round trips of group bytes and offset
keys: tests/core.
"""

from __future__ import annotations

import io
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.connect.rest import _Answer
from eosctl.core import transaction_log
from eosctl.core.configs import records as config_records
from eosctl.core.java.jaas import parse_jaas
from eosctl.core.java.properties import parse_properties
from eosctl.core.offsets import migration
from eosctl.core.offsets import records as offset_records
from eosctl.core.offsets.names import parse_store
from eosctl.core.record_file import numbered_documents, read_records
from eosctl.core.workers.config import parse_worker_config
from eosctl.core.workers.url import parse_worker_url
from eosctl.deadline import Clock
from eosctl.errors import InputFileError, ProtocolError, UsageError
from eosctl.fence.rules import parse_id_lines
from eosctl.group import protocol as group_protocol
from eosctl.offsets.files.offsets_file import parse_offsets_file
from eosctl.state.audit_file import entry_in
from eosctl.state.journal import Journal
from eosctl.upgrade import plan_file as upgrade_plan
from tests.core.offsets.stores import NO_SPOOL

Decoder = Callable[[bytes], object]


def texts(decode: Callable[[str], object]) -> Decoder:
    """A decoder of text, on bytes: any of them is a character."""
    return lambda data: decode(data.decode("latin-1"))


def lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def plan_file(name: str, version: int, **plan: object) -> bytes:
    return json.dumps({"format": name, "version": version, "digest": "0" * 64, "plan": plan}).encode()


UPGRADE_PLAN = plan_file(
    "eosctl-upgrade-plan", 1, kafka_cluster_id="c", group_id="g", target="enabled",
    workers=[{"name": "w", "mode": "disabled", "version": "4.3.1"}], passes=[{"mode": "preparing", "workers": ["w"]}],
)  # fmt: skip
MIGRATION_PLAN = plan_file("eosctl-offsets-migration", 2, policy="newest", sources=[], targets=[], routes=[], tally={})


GROUP_BYTES = group_protocol.encode_metadata(
    group_protocol.Metadata(
        2, "http://w1:8083/", 42, group_protocol.Assignment(2, 0, "m0", "http://w0:8083/", 7, (("c", 0), ("c", -1)))
    )
)
ASSIGNMENT = group_protocol.encode_assignment(
    group_protocol.Assignment(2, 0, "m0", "http://w0:8083/", 7, (("c", 0), ("d", 3)), (("e", 1),), 5)
)
LOGGED = struct.pack(">hqhib", 1, 7, 3, 60_000, 1) + b"\x02\x02t\x03" + struct.pack(">ii", 0, 1) + b"\0"
LOGGED += struct.pack(">qq", 2_000, 1_000) + b"\x01\x00\x08" + struct.pack(">q", 6)
RECORD = b'{"topic": "t", "partition": 1, "offset": 2, "timestamp_ms": 3, "key": {"base64": "AAEC"}, "value": null}\n'
BODY = b'{"offsets": [{"partition": {"filename": "a"}, "offset": {"position": 1}}]}'
PROPERTIES = b"# c\nbootstrap.servers=h:9092, i\\\n  :9093\ngroup.id = g\nlisteners=http://:8083\na=\\u00e4\n"
JAAS = b'org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="b\\"c";'

# name: the decoder, what it may raise, good input
DECODERS: dict[str, tuple[Decoder, tuple[type[Exception], ...], bytes]] = {
    "group metadata": (group_protocol.decode_metadata, (ProtocolError,), GROUP_BYTES),
    "group assignment": (group_protocol.decode_assignment, (ProtocolError,), ASSIGNMENT),
    "transaction log key": (transaction_log.decode_key, (ProtocolError,), b"\0\0\0\x03g-1"),
    "transaction log value": (transaction_log.decode_value, (ProtocolError,), LOGGED),
    "config key": (lambda data: config_records.parse_key(config_records.decode_key_text(data)), (), b"task-a-b-12"),
    "config value": (config_records.decode_value, (config_records.UnparsableValueError,), b'{"tasks": 03, "a": [1e9]}'),
    "offset key": (offset_records.decode_key, (), b'["c",{"f":"a","n":[1,2.5]}]'),
    "offset key's identity": (lambda data: offset_records.decode_key(data).identity, (), b'["c",{"f":12345678901}]'),
    "offset value": (offset_records.shown_value, (), b'{"position": 1e999, "t": "\\ud800"}'),
    "record file": (lambda data: list(read_records(lines(data), name="f")), (InputFileError,), RECORD * 2),
    "backup": (lambda data: list(numbered_documents(lines(data), name="f")), (InputFileError,), RECORD * 2),
    "offsets file": (
        lambda data: parse_offsets_file(io.BytesIO(data), NO_SPOOL, name="f"),
        (InputFileError, UsageError), RECORD,
    ),
    "offsets body": (
        lambda data: parse_offsets_file(io.BytesIO(data), NO_SPOOL, name="f", connectors=["c"]),
        (InputFileError, UsageError), BODY,
    ),
    "ids": (lambda data: parse_id_lines(data, source="f"), (InputFileError,), b"g-1\r\n\n g-2\n"),
    "upgrade plan": (
        texts(lambda text: upgrade_plan.read_plan(text, path="f")), (InputFileError,), UPGRADE_PLAN,
    ),
    "migration plan": (
        texts(lambda text: migration.read_plan(text, path="f")), (InputFileError,), MIGRATION_PLAN,
    ),
    "properties": (texts(lambda text: parse_properties(text, source="f")), (InputFileError,), PROPERTIES),
    "worker config": (texts(lambda text: parse_worker_config(text, source="f")), (InputFileError,), PROPERTIES),
    "JAAS": (texts(parse_jaas), (ValueError, InputFileError), JAAS),
    "worker URL": (texts(parse_worker_url), (UsageError,), b"https://u:p@[::1]:8083/a%20b"),
    "store": (texts(parse_store), (UsageError,), b"topic@profile"),
    "REST answer": (lambda data: _Answer(200, data, "application/json").json(), (), b'{"version": "4.3.1"}'),
    "audit entry": (entry_in, (), b'{"id": "1", "outcome": null}'),
}  # fmt: skip


def damaged(good: bytes, chance: random.Random) -> bytes:
    """`good` with some bytes changed, cut out, doubled or put in."""
    data = bytearray(good)
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(data))
        until = min(len(data), at + chance.randint(0, 6))
        match chance.choice(["change", "cut", "double", "put", "end"]):
            case "change" if at < len(data):
                data[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x5C, 0x7B, data[at] ^ 1])
            case "cut":
                del data[at:until]
            case "double":
                data[at:at] = data[at:until]
            case "put":
                data[at:at] = chance.randbytes(chance.randint(0, 6))
            case "end":
                del data[at:]
    return bytes(data)


@pytest.mark.parametrize("name", DECODERS)
def test_damage_is_read_or_refused(name: str) -> None:
    """Plain code does the damage, the same on every run: an engine of examples took ten times as long for fewer."""
    decode, allowed, good = DECODERS[name]
    chance = random.Random(name)  # noqa: S311 - not for secrets
    for data in [damaged(good, chance) for _ in range(200)]:
        try:
            decode(data)
        except allowed:
            continue
        except Exception as exc:
            raise AssertionError(f"{data!r} is neither read nor refused") from exc


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize(
    "hostile",
    [
        b"", b"\0" * 64, b"\xff" * 64, b"\x7f" * 64, b"[" * 100_000, b'{"a":' * 100_000, b'["c",' + b"[" * 100_000,
        b"9" * 10_000, b'{"partition":' + b"9" * 10_000 + b"}", b'{"offsets":' + b"[" * 100_000, b"\\" * 9_999,
        b"\0\x02" + b"\xff\xff\xff\x7f" * 30, b'"' * 9_999,
    ],
)  # fmt: skip
def test_hostile_input_is_read_or_refused(name: str, hostile: bytes) -> None:
    """A plan file, a journal or a worker's answer of very deep JSON used to be a traceback."""
    decode, allowed, _ = DECODERS[name]
    try:
        decode(hostile)
    except allowed:
        return


_PARTITIONS = st.dictionaries(st.text(max_size=9), st.sets(st.integers(0, 2**31 - 1), max_size=3), max_size=3)


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + _varint(number >> 7)


@given(
    st.integers(-1, 2**63 - 1), st.integers(-1, 2**15 - 1), st.integers(0, 7), _PARTITIONS, st.integers(0, 2**62),
    st.one_of(st.none(), st.integers(0, 2**63 - 1)), st.booleans(),
)  # fmt: skip
def test_a_transaction_log_value_is_read_as_it_was_written(
    producer_id: int, epoch: int, status: int, partitions: dict[str, set[int]], at_ms: int, next_id: int | None,
    flexible: bool,
) -> None:  # fmt: skip
    data = struct.pack(">hqhib", int(flexible), producer_id, epoch, 60_000, status)
    data += _varint(len(partitions) + 1) if flexible else struct.pack(">i", len(partitions))
    for topic, numbers in partitions.items():
        name = topic.encode()
        data += (_varint(len(name) + 1) if flexible else struct.pack(">h", len(name))) + name
        data += _varint(len(numbers) + 1) if flexible else struct.pack(">i", len(numbers))
        data += struct.pack(f">{len(numbers)}i", *numbers) + (b"\0" if flexible else b"")
    data += struct.pack(">qq", at_ms, -1)
    if flexible:
        data += b"\0" if next_id is None else b"\1\1\x08" + struct.pack(">q", next_id)
    read = transaction_log.decode_value(data)
    assert (read.producer_id, read.producer_epoch, read.last_update_ms) == (producer_id, epoch, at_ms)
    assert read.partitions == tuple(sorted((topic, n) for topic, numbers in partitions.items() for n in numbers))
    assert read.next_producer_id == (next_id if flexible else None)
    assert read.started_ms is None


@given(st.text(max_size=20), st.integers(0, config_records.MAX_INT))
def test_a_task_count_record_is_read_as_it_was_written(connector: str, count: int) -> None:
    key = config_records.parse_key(config_records.decode_key_text(config_records.task_count_key(connector)))
    assert (key.kind, key.name) == (config_records.RecordKind.TASK_COUNT, connector)
    value = config_records.decode_value(config_records.task_count_value(count))
    assert isinstance(value, dict)
    assert config_records.int_field(value, "task-count") == count


def test_a_journal_of_very_deep_json_has_no_entries(tmp_path: Path) -> None:
    path = tmp_path / "deep.ndjson"
    path.write_bytes(b"[" * 100_000 + b"\n")
    assert Journal(path, Clock()).entries() == []


@given(st.data())
def test_a_journal_that_was_cut_off_keeps_its_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "fuzzed.ndjson"
    path.unlink(missing_ok=True)
    journal = Journal(path, Clock())
    whole = b"".join(b'{"event": "e", "number": %d}\n' % number for number in range(3))
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    kept = len([line for line in whole[:cut].split(b"\n") if line.endswith(b"}")])
    assert len(journal.entries()) == kept
    journal.write("end")
    assert [entry["event"] for entry in journal.entries()] == ["e"] * kept + ["end"]
