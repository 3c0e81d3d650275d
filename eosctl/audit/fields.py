"""Fields of a window's committed records, for `--unique` and `--sequence`: how they are chosen and read.

Records come through confluent-kafka, which decompresses them, as read_committed shows them: what was aborted is no
duplicate, and an open transaction hides what lies behind its first record. Those partitions are named.

For `--unique auto`, the unique fields are those of the connector's records, as far as its config shows them; choosing
them is pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from msgspec.structs import astuple

from eosctl.app import App
from eosctl.audit.log.fields import ChangeEvents, Database, FieldPath, NamedFields
from eosctl.audit.log.values import FieldValue, WriterKind
from eosctl.core.configs.losses import DEBEZIUM
from eosctl.core.configs.records import MIRROR_SOURCE, PROPERTY, is_class, pruned_class
from eosctl.core.records import Place, Record, Span
from eosctl.deadline import Deadline
from eosctl.errors import UsageError
from eosctl.ports import TopicReader

OPEN_S = 5.0
"""How long a reader waits for transactions that hide records of its window."""
_AGAIN_S = 0.25

WriterOf = Callable[[Place, int], WriterKind]
"""The writer of the record of a partition at an offset."""
Take = Callable[[FieldValue], object]


@dataclass(slots=True)
class FieldRead:
    """The counts of the connector's records, and of those that lack the field.

    `hidden` partitions were read to that offset. `unknown` counts records of unknown producers, `passed` those that
    have no such field by design.
    """

    records: int = 0
    without: int = 0
    unknown: int = 0
    passed: int = 0
    hidden: dict[Place, int] = field(default_factory=dict)


def read_field(
    app: App,
    fields: NamedFields | ChangeEvents,
    spans: Iterable[Span],
    *,
    writer_of: WriterOf,
    take: Take,
    take_unknown: Take | None = None,
) -> FieldRead:
    """Give the fields' value in each committed record of `spans` to `take`, in each partition's order.

    Records of others are left out; those of unknown producers go to `take_unknown`. A record is forgotten as soon as it
    was looked at. A transaction that was open when the log's end was looked up gets a moment to end. Raises what
    TopicReader.read raises; DeadlineError where the time is too short for all.
    """
    read = FieldRead()
    by_topic: defaultdict[str, list[Span]] = defaultdict(list)
    for span in spans:
        by_topic[span.topic].append(span)

    def look(records: Sequence[Record]) -> Sequence[Record]:
        for record in records:
            writer = writer_of((record.topic, record.partition), record.offset)
            if writer is WriterKind.OWN:
                read.records += 1
                _look_at(record, fields, read, take)
            elif writer is WriterKind.UNKNOWN:
                read.unknown += 1
                if take_unknown is not None:
                    _look_at(record, fields, FieldRead(), take_unknown)
        return ()

    for topic, its in by_topic.items():
        with app.with_whole_timeout().topics() as store:
            _await_open_transactions(app, store, its)
            bounds = store.read(
                topic,
                since={span.partition: span.first for span in its},
                until={span.partition: span.stop for span in its},
                keep=look,
                renews=True,
            ).bounds
        stable = {bound.partition: bound.lso for bound in bounds}
        read.hidden |= {
            (topic, span.partition): stable[span.partition] for span in its if stable[span.partition] < span.stop
        }
    return read


def _look_at(record: Record, fields: NamedFields | ChangeEvents, read: FieldRead, take: Take) -> None:
    if fields.passes(record):
        read.passed += 1
        return
    found = fields.read(record)
    if found is None:
        read.without += 1
    else:
        take(FieldValue(record.topic, record.partition, record.offset, record.timestamp_ms, *astuple(found)))


def _await_open_transactions(app: App, store: TopicReader, spans: Sequence[Span]) -> None:
    """Wait until nothing in the spans of one topic is hidden, or OPEN_S have passed: a source at work is nearly always
    in a transaction, and short ones end at once."""
    stops = {span.partition: span.stop for span in spans}
    for _ in Deadline.after(min(OPEN_S, app.deadline.remaining_s() / 2), app.clock).rounds(_AGAIN_S):
        bounds = store.bounds(spans[0].topic)
        if all(bound.lso >= stops.get(bound.partition, 0) for bound in bounds):
            return


_NAME_IT = "Name what is unique, say --unique value.after.id, or several fields that are unique together, with commas."
_KNOWN = "auto knows FileStream, JDBC, MirrorMaker 2, and Debezium's PostgreSQL, MySQL and MariaDB connectors."
_FLATTENED = ("ExtractNewRecordState", "EventRouter")
_ONE_SNAPSHOT = {"initial", "initial_only"}
_ASKS_FOR_SNAPSHOTS = ("signal.data.collection", "signal.kafka.topic", "signal.enabled.channels")


def auto_fields(config: Mapping[str, str]) -> NamedFields | ChangeEvents | None:
    """Return the unique fields; None for a MirrorMaker, whose copies are compared with their source.

    Raises UsageError for a connector without known unique fields.
    """
    name, is_mirror = pruned_class(config), is_class(config, MIRROR_SOURCE)
    if (database := debezium_database(config)) is not None:
        return _change_events(database, config)
    if not is_mirror and not name.startswith(("FileStreamSource", "JdbcSource")):
        raise UsageError(
            f"which field is unique in the records of {config.get(PROPERTY) or 'this connector'} is not known",
            hint=f"{_NAME_IT} {_KNOWN}",
        )
    if _transforms(config):
        _refuse("transforms may change or leave out records, or send those of several tables to one topic")
    if is_mirror:
        return None
    if name.startswith("FileStreamSource"):
        return NamedFields((FieldPath("value"),))
    return _jdbc_fields(config)


def is_debezium(config: Mapping[str, str]) -> bool:
    """Return whether it is one of Debezium's connectors, be it known here or not."""
    return config.get(PROPERTY, "").strip().startswith(DEBEZIUM) or debezium_database(config) is not None


def debezium_database(config: Mapping[str, str]) -> Database | None:
    """Return which database one of Debezium's connectors reads; None for another connector."""
    given, name = config.get(PROPERTY, "").strip(), pruned_class(config)
    is_its = given.startswith(DEBEZIUM) or "." not in given
    return Database(name) if is_its and name in list(Database) else None


def topics_without_rows(config: Mapping[str, str]) -> dict[str, str]:
    """Return the topics of a Debezium connector that have no change events of rows, and what they have."""
    if not is_debezium(config):
        return {}
    server = config.get("topic.prefix") or config.get("database.server.name") or ""
    delimiter = config.get("topic.delimiter", ".")
    heartbeats = config.get("topic.heartbeat.prefix") or config.get("heartbeat.topics.prefix") or "__debezium-heartbeat"
    transactions = config.get("topic.transaction") or "transaction"
    return {
        server: "schema changes",
        f"{heartbeats}{delimiter}{server}": "heartbeats",
        f"{server}{delimiter}{transactions}": "begins and ends of transactions",
    }


def _change_events(database: Database, config: Mapping[str, str]) -> ChangeEvents:
    transforms = _transforms(config)
    types = [config.get(f"transforms.{name}.type", "") for name in transforms]
    if flat := next((each for each in types if each.rpartition(".")[2].startswith(_FLATTENED)), None):
        _refuse(f"transform {flat} makes records that are no change events")
    converter = config.get("value.converter", "JsonConverter")
    if converter.rpartition(".")[2] != "JsonConverter":
        _refuse(f"only JSON can be read, and value.converter is {converter}")
    return ChangeEvents(
        database,
        has_keys=not transforms and not config.get("message.key.columns"),
        snapshots_once=config.get("snapshot.mode", "initial") in _ONE_SNAPSHOT
        and not any(config.get(name) for name in _ASKS_FOR_SNAPSHOTS),
    )


def _jdbc_fields(config: Mapping[str, str]) -> NamedFields:
    """Return the column that counts; a row that was updated comes again where timestamps are looked at."""
    mode, column = config.get("mode", "").strip(), config.get("incrementing.column.name", "").strip()
    times = [name.strip() for name in config.get("timestamp.column.name", "").split(",") if name.strip()]
    if mode not in ("incrementing", "timestamp+incrementing"):
        why = {
            "bulk": "mode=bulk reads all rows again each time",
            "timestamp": "mode=timestamp has no column that is unique: several rows may have one timestamp",
            "": "mode is not set",
        }.get(mode, f"mode={mode} is not known")
        _refuse(why)
    if not column:
        _refuse("incrementing.column.name is not set")
    if mode == "incrementing":
        return NamedFields((FieldPath("value", (column,)),))
    if not times:
        _refuse("timestamp.column.name is not set")
    stamps = [FieldPath("value", (name,)) for name in times]
    return NamedFields((FieldPath("value", (column,)), *stamps), frozenset(stamps))


def _transforms(config: Mapping[str, str]) -> list[str]:
    return [name.strip() for name in config.get("transforms", "").split(",") if name.strip()]


def _refuse(why: str) -> NoReturn:
    raise UsageError(f"which field is unique in the records is not known: {why}", hint=_NAME_IT)
