"""Records of connectors' output topics, as `audit` looks into them, and a connector's file, as `rehearse` takes it."""

from __future__ import annotations

import json

from eosctl.audit.log.fields import ChangeEvents, Database, encoded, member_of, number_in, read_json, shown
from eosctl.core.records import Record
from eosctl.rehearse.rules import fit_connector, read_connector
from tests.fuzz.mutation import BETWEEN
from tests.fuzz.reader import DisagreementError, Reader

_EVENTS = [ChangeEvents(database, has_keys=True, snapshots_once=True) for database in Database]


def _read_value(data: bytes) -> object:
    """What is unique in a record, and its number; two values are equal where their bytes are."""
    key, _between, value = data.partition(BETWEEN)
    record = Record("t", 0, 0, 0, key, value)
    whole = read_json(value)
    members = [whole, member_of(whole, "id"), member_of(whole, "after", "0"), value, key]
    for each in members:
        if encoded(each) != encoded(each):
            raise DisagreementError("a value is not itself")
    return [(shown(each), number_in(each)) for each in members], [events.read(record) for events in _EVENTS]


def _values() -> list[bytes]:
    source = {"snapshot": "false", "db": "d", "schema": "s", "table": "t", "file": "b.1", "pos": 4, "row": 0, "lsn": 7}
    event: dict[str, object] = {
        "before": None,
        "after": {"id": 1, "0": 1.50},
        "source": source,
        "op": "c",
        "transaction": {"total_order": 2},
    }
    documents = (event, {"schema": {}, "payload": event}, {"id": 12}, {"id": "order-17"}, [1, 2.5e3], "row-3", 5)
    keys = ({"id": 1}, None)
    return [json.dumps(key).encode() + BETWEEN + json.dumps(each).encode() for key in keys for each in documents]


def _read_connector_file(data: bytes) -> object:
    """With and without the envelope of name and config."""
    return fit_connector(
        read_connector(data.decode("utf-8", "surrogateescape"), source="f"), brokers=1, kafka_version=(4, 3)
    )


def _connector_files() -> list[bytes]:
    config = {
        "connector.class": "a.FileStreamSource",
        "tasks.max": 2,
        "flag": True,
        "topic.creation.default.replication.factor": "3",
    }
    return [json.dumps(each).encode() for each in (config, {"name": "c", "config": config})]


VALUES = [
    Reader("values", _read_value, _values),
    Reader("connector-file", _read_connector_file, _connector_files),
]
