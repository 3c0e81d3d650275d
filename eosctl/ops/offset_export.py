"""`offsets export`: a store as lines of NDJSON, key and value bytes as they are."""

from __future__ import annotations

from collections.abc import Sequence

from eosctl.core.offset_records import OffsetKey, decode_key
from eosctl.core.offset_views import DEDICATED, GLOBAL
from eosctl.core.record_file import record_line
from eosctl.core.records import Record, TopicRead
from eosctl.errors import NotFoundError, UsageError
from eosctl.ops.app import App
from eosctl.ops.backups import write_lines
from eosctl.ops.dedicated_topics import gather_dedicated_topics
from eosctl.ops.ports import TopicStore
from eosctl.report import Problem, Report


def export_offsets(app: App, *, store: str, path: str, connectors: Sequence[str] = ()) -> Report:
    """Writes the newest committed record of each key and partition of a store to a file, whole or not at all.

    Tombstones and keys that Connect ignores are in it; with `connectors`, only what is theirs.
    """
    read, cluster_id = _read(app, store, connectors)
    kept = _kept(read, connectors)
    write_lines(path, (record_line(record) for record in kept))
    return Report(
        kind="offsets-export",
        summary={
            "records": len(kept),
            "tombstones": sum(record.value is None for record in kept),
            "records_read": read.records_read,
        },
        data={"file": path, "topic": read.topic},
        target={"kafka_cluster_id": cluster_id, "group_id": app.target.group_id},
        problems=_blocked_problems(read),
    )


def export_lines(app: App, *, store: str, connectors: Sequence[str] = ()) -> list[str]:
    """The lines that `export_offsets` writes."""
    read, _cluster_id = _read(app, store, connectors)
    return [record_line(record) for record in _kept(read, connectors)]


def _read(app: App, store: str, connectors: Sequence[str]) -> tuple[TopicRead, str]:
    with app.topics() as topics:
        topic = _topic_of(app, topics, store, connectors)
        if topic not in topics.describe([topic]):
            raise NotFoundError(f"there is no topic {topic}", hint="A store is global, dedicated, or a topic by name.")
        return topics.read(topic, newest_per_key=True), topics.cluster_id()


def _topic_of(app: App, topics: TopicStore, store: str, connectors: Sequence[str]) -> str:
    if store == GLOBAL:
        return app.target.offset_topic
    if store != DEDICATED:
        return store
    dedicated = gather_dedicated_topics(app, topics)
    found = {dedicated.of(connector) for connector in connectors}
    topic = found.pop() if len(found) == 1 else None
    if topic is None:
        raise UsageError(
            "which dedicated topic?", hint="Give --connector with a connector that has one, or name the topic."
        )
    return topic


def _kept(read: TopicRead, connectors: Sequence[str]) -> list[Record]:
    return [record for record in read.records if not connectors or _owner(record) in connectors]


def _owner(record: Record) -> str | None:
    key = decode_key(record.key)
    return key.connector if isinstance(key, OffsetKey) else None


def _blocked_problems(read: TopicRead) -> list[Problem]:
    partitions = ", ".join(str(bound.partition) for bound in read.blocked())
    if not partitions:
        return []
    message = f"topic {read.topic}, partition {partitions}: what lies behind an open transaction is not in the file"
    return [Problem("open_transaction", message, hint="`eosctl txn hanging` tells whose it is.", severity="warning")]
