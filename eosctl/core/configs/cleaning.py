"""The records of a config topic that compaction must remove, and what it takes to bring that about. Pure.

A record that breaks a worker's reader does so until it is gone from the log: overwriting it is not enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from eosctl.core.configs.fold import ConfigState, ConnectorState, IgnoredRecord, fold_config_topic
from eosctl.core.configs.records import decode_key_text
from eosctl.core.records import Record
from eosctl.foreign import arguments

WHILE_CLEANING: Mapping[str, str] = {
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0",
    "min.compaction.lag.ms": "0",
}
"""Settings with which the next record closes the segment of the others, and the cleaner's next run compacts it."""
ROLLING_KEY = b"eosctl-compaction"
"""A key that every worker reads and ignores; its record must only come after the others."""
SEGMENT_S = int(WHILE_CLEANING["segment.ms"]) / 1000


class BadRecord(Struct, frozen=True):
    """A record to be compacted away; `first` is a count to be recorded before, under the same key, or None.

    `anew` describes what else must write the key before compaction can remove the record; empty if nothing must.
    """

    record: IgnoredRecord
    first: int | None = None
    anew: str = ""


def bad_records(state: ConfigState, records: Iterable[Record]) -> list[BadRecord]:
    """Return the records that break a worker's reader, and the task-count records that workers ignore.

    Compacting away the newest ignored task-count record of a key also removes the valid one below it, which running
    workers still know.
    """
    newest = {decode_key_text(record.key): record.offset for record in records if record.key is not None}
    found = []
    for record in state.ignored:
        superseded = record.key is None or newest[record.key] > record.offset  # a null key is never kept
        connector = None if record.connector is None else state.connectors.get(record.connector)
        is_held = connector is not None and connector.task_count_record is not None
        if superseded and (record.breaks_reader or record.is_task_count):
            found.append(BadRecord(record))
        elif record.breaks_reader or (record.is_task_count and is_held):
            found.append(_newest_of_its_key(connector, record))
    return found


def _newest_of_its_key(connector: ConnectorState | None, record: IgnoredRecord) -> BadRecord:
    """Return the bad record with what must be written under its key before it can be compacted away.

    Recording again a count that workers hold already changes nothing, unless fencing is due.
    """
    held = None if connector is None or connector.pending_fencing else connector.task_count_record
    if record.is_task_count and held is not None:
        return BadRecord(record, first=held)
    return BadRecord(record, anew=rewrite_commands(record))


def rewrite_commands(record: IgnoredRecord) -> str:
    """Return the commands that make the leader write the key of a record again."""
    commands = stop_and_resume(record.connector or "")
    if record.is_task_count:
        return f"{commands} (the leader writes it anew; only with exactly-once)"
    return f"{commands} (it writes its tasks anew)"


def stop_and_resume(connector: str) -> str:
    """Return the commands that make the leader rewrite a connector's task configs."""
    stop, resume = (
        f"`eosctl connectors stop {arguments(connector)}`",
        f"`eosctl connectors resume {arguments(connector)}`",
    )
    return f"{stop} (Kafka 3.5 or newer), then {resume}"


def forgotten_by_compaction(state: ConfigState, records: Iterable[Record]) -> list[str]:
    """Return the connectors whose tasks a starting worker would lose once only the newest record of each key is left.

    Their unchanged config was written again after their tasks; workers of 3.8 or newer then drop the commit before it
    (KAFKA-17719).
    """
    newest = {record.key: record for record in records if record.key is not None}
    left = fold_config_topic(sorted(newest.values())).connectors  # by offset: the topic has one partition
    return [
        name
        for name, each in sorted(state.connectors.items())
        if each.task_count and each.config is not None and name in left and left[name].forgotten_commit is not None
    ]
