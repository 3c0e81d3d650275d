"""Records of Connect's topics, as parts of an example: keys and values in turn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa

from eosctl.core.configs.fold import fold_config_topic
from eosctl.core.configs.view import aborted_records, differing_connectors, state_document, without_secrets
from eosctl.core.ids import WorkerId
from eosctl.core.offsets.findings import record_findings
from eosctl.core.offsets.records import (
    OffsetKey,
    decode_key,
    duplicate_spellings,
    is_nothing,
    json_text,
    key_owner,
    newest_commits,
    renamed_key,
    shown_partition,
    shown_value,
    typed_offset,
    typed_partition,
)
from eosctl.core.offsets.views import fold_store, offset_views
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.engine.columns import VALUES, are_nothing
from eosctl.engine.keys import owners_of, renamed
from eosctl.engine.reading.newest import records_table
from eosctl.engine.stores import Listed, in_order
from eosctl.group.topics import connectors_as_written, departures, read_statuses, status_history, version_at
from tests.fuzz.mutation import BETWEEN
from tests.fuzz.reader import DisagreementError, Reader


def _records(data: bytes) -> Iterator[Record]:
    parts = data.split(BETWEEN)
    for number, key in enumerate(parts[::2]):
        value = parts[2 * number + 1] if 2 * number + 1 < len(parts) else None
        yield Record("t", 0, number, 1_700_000_000_000 + number, key, value or None)


def _shown(document: object) -> str:
    """As output has it: what UTF-8 can't carry is for the sink to mend, and not looked at here."""
    return json.dumps(document, default=str)


def _read_config(data: bytes) -> object:
    records = list(_records(data))
    state, half = fold_config_topic(records), fold_config_topic(records[: len(records) // 2])
    _shown(state_document(state))
    _shown(aborted_records(records[::2], records))
    return differing_connectors(state, half), [without_secrets(each) for each in records]


_CONFIG = [
    (b"connector-src", b'{"properties":{"connector.class":"FileStreamSource","topics":"t","tasks.max":"2","p":null}}'),
    (b"task-src-0", b'{"properties":{"task.class":"T","password":"x"}}'),
    (b"task-src-1", b'{"properties":{"task.class":"T"}}'),
    (b"commit-src", b'{"tasks":2}'),
    (b"tasks-fencing-src", b'{"task-count":2}'),
    (b"target-state-src", b'{"state":"STARTED","state.v2":"STOPPED"}'),
    (b"session-key", b'{"key":"a2V5","algorithm":"HmacSHA256","creation-timestamp":1700000000000}'),
    (b"restart-connector-src", b'{"include-tasks":true,"only-failed":false}'),
    (b"logger-cluster-org.apache", b'{"level":"DEBUG"}'),
    (b"task-count-src", b'{"tasks":1}'),
    (b"connector-a-b", b'{"properties":{"offsets.storage.topic":"own"}}'),
    (b"connector-src", b""),
]


def _joined(records: list[tuple[bytes, bytes]]) -> bytes:
    return BETWEEN.join(part for record in records for part in record)


def _configs() -> list[bytes]:
    return [_joined(_CONFIG), *(_joined([*_CONFIG[:5], each]) for each in _CONFIG[5:]), _joined(_CONFIG[3:])]


def _read_status(data: bytes) -> object:
    records = list(_records(data))
    statuses, history = read_statuses(records), status_history(records)
    gone = departures(history, members=[WorkerId("w1:8083")], connectors=["src", "a-b"], since_ms=0)
    written = connectors_as_written(fold_config_topic(_records(_joined(_CONFIG[:-1]))), statuses)
    return _shown([each.in_words() for each in written.values()]), gone, version_at(statuses, statuses)


_STATUS = [
    (
        b"status-connector-src",
        b'{"state":"RUNNING","trace":null,"worker_id":"W1:8083","version":"4.3.1"}',
    ),
    (b"status-task-src-0", b'{"state":"RUNNING","trace":null,"worker_id":"w2:8083","generation":3}'),
    (b"status-task-src-1", b'{"state":"FAILED","trace":"a\\n\\tat b","worker_id":"w1:8083","generation":3}'),
    (b"status-task-src-0", b'{"state":"RUNNING","worker_id":"w1:8083","generation":4}'),
    (b"status-task-a-b-12", b'{"state":"UNASSIGNED","worker_id":"w2:8083","generation":2}'),
    (b"status-topic-t:connector-src", b'{"topic":{"name":"t","connector":"src","task":0,"discoverTimestamp":1}}'),
    (b"status-connector-src", b""),
]


def _statuses() -> list[bytes]:
    return [_joined(_STATUS), _joined(_STATUS[:3]), _joined(_STATUS[3:]), *(_joined([each]) for each in _STATUS)]


def _read_offsets(data: bytes) -> object:
    """Keys and values one by one, and all of them as columns, which say the same."""
    records = list(_records(data))
    keys, values = [each.key for each in records], [each.value for each in records]
    column = pa.array(keys, VALUES)
    owners = [owner and owner.connector for owner in map(key_owner, keys)]
    found = owners_of(column)
    found.validate(full=True)
    if found.to_pylist() != owners:
        raise DisagreementError(f"owners {found.to_pylist()} and {owners}")
    if are_nothing(pa.array(values, VALUES)).to_pylist() != list(map(is_nothing, values)):
        raise DisagreementError("deletions")
    decoded = list(map(decode_key, keys))
    spellings = duplicate_spellings([key for key in decoded if isinstance(key, OffsetKey)])
    shown = [(json_text(shown_value(value)) if value and shown_value(value) is not value else "") for value in values]
    if len(data) % 8 == 0:  # they take as long as all else
        _compare_names(keys, column, found)
        Listed([in_order(records_table("t", records, partitions=1))]).unowned()
    return spellings, [shown_partition(key) for key in decoded], shown, newest_commits(records)


_RENAMES = {"orders": "new", "": "empty", ",": "comma"}


def _compare_names(keys: Sequence[bytes | None], column: pa.Array, found: pa.Array) -> None:
    """Keys under new names, one by one and as columns."""
    for key, other in zip(keys, renamed(column, found, _RENAMES).to_pylist(), strict=True):
        owner = key_owner(key)
        name = None if owner is None else _RENAMES.get(owner.connector)
        if other != (key if owner is None or name is None or key is None else renamed_key(key, owner, name)):
            raise DisagreementError("renamed keys")


def _read_store(data: bytes) -> object:
    """The records of an offsets topic as views and findings show them."""
    records = tuple(_records(data))
    store = fold_store(TopicRead("t", (Bounds(0, 0, len(records), len(records)),), records, len(records)))
    views = [
        list(offset_views({"global": store}, connector, dedicated_in_use=False))
        for connector in sorted(store.connectors)
    ]
    return views, _shown([each.message for each in record_findings(store)])


def _read_typed(data: bytes) -> object:
    """What is typed as a source partition and an offset, or stands in a body."""
    first, _between, second = data.partition(BETWEEN)
    return typed_partition("c", first.decode("utf-8", "surrogateescape")), typed_offset(second.decode("latin-1"))


_OFFSETS = [
    (b'["orders",{"server":"db","n":1,"b":true,"x":null}]', b'{"lsn":123456789,"txId":5,"ts_usec":1700000000000000}'),
    (b'["orders",{"n":1,"server":"db","b":true,"x":null}]', b'{"lsn": 12}'),
    (b'["orders",{"filename":"/tmp/\\u00e4 b"}]', b'{"position":1.5}'),
    (b'[",orders",{"p":1}]', b"null"),
    (b'["a",{"b":",\\"]"}]', b'{"position":[1,{"a":"\\ud83d\\ude00"}]}'),
    (b'[ "c" , null ]', b""),
    (b'["",{}]', b'{"gtids":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5","file":"mysql-bin.1","pos":4,"server_id":1}'),
    (b"garbage", b"\xff"),
    (b"", b"007"),
    ('["ü",{"s":"ß"}]'.encode(), b'{"resume_token":"82"}'),
]


def _offset_records() -> list[bytes]:
    return [_joined(_OFFSETS), _joined(_OFFSETS[:3]), _joined(_OFFSETS[3:7]), *(_joined([each]) for each in _OFFSETS)]


TOPICS = [
    Reader("config-topic", _read_config, _configs),
    Reader("status-topic", _read_status, _statuses),
    Reader("offsets", _read_offsets, _offset_records),
    Reader("offsets-store", _read_store, _offset_records),
    Reader("typed-offsets", _read_typed, lambda: [b'{"filename":"a"}' + BETWEEN + b'{"position":1,"s":{"x":[1.5]}}']),
]
