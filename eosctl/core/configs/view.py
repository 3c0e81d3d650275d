"""A folded config topic as plain data, and the records in it that compaction must remove.

The data are for `task-counts replay` and to compare two views of a topic. The topic holds secrets in clear text;
`hide_secrets` is applied to everything that leaves this module.

A record that breaks a worker's reader does so until it is gone from the log: overwriting it is not enough. Finding such
records, and what it takes to have them compacted away, is pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from eosctl.core.clients.hidden_secrets import hide_secrets, shown_value
from eosctl.core.configs.fold import ConfigState, ConnectorState, IgnoredRecord, fold_config_topic
from eosctl.core.configs.records import decode_key_text
from eosctl.core.records import Record
from eosctl.core.wording import encodable, json_bytes
from eosctl.foreign import arguments

CONFIG_KEYS = (b"connector-", b"task-", b"session-key")
"""Prefixes of the keys of connectors' and tasks' configs, and of the session key."""


def is_config_key(key: bytes | None) -> bool:
    """Return whether a key belongs to a connector's config, a task's config or the session key."""
    return key is not None and key.startswith(CONFIG_KEYS)


def without_secrets(record: Record) -> Record:
    """Return the record fit to be shown or stored: values that may hold secrets become `***`, their names stay.

    Those are connectors' and tasks' configs and the session key; keys of other topics don't look like theirs.
    """
    if record.value is None or not is_config_key(record.key):
        return record
    key = record.key
    try:
        value = json.loads(record.value)
    except (ValueError, RecursionError):
        value = None
    shown = _hidden_value(value, is_key=key == b"session-key") if isinstance(value, dict) else "***"
    return record._replace(value=json.dumps(shown, separators=(",", ":")).encode())


def _hidden_value(value: dict[str, object], *, is_key: bool) -> object:
    if is_key:
        return {name: "***" if name == "key" else shown_value(name, each) for name, each in value.items()}
    return {
        name: hide_secrets(each) if name == "properties" and isinstance(each, dict) else "***"
        for name, each in value.items()
    }


def state_document(state: ConfigState) -> dict[str, object]:
    """Return `data.state` of `task-counts replay`, without task configs and the session key."""
    return {
        "offset": state.offset,
        "connectors": {
            encodable(name): _document(each, None if each.config is None else hide_secrets(each.config))
            for name, each in state.connectors.items()
        },
        "ignored": [
            {"offset": each.offset, "key": each.key, "code": each.code, "reason": each.reason} for each in state.ignored
        ],
        "commits_without_connector": list(state.commits_without_connector),
    }


def _document(connector: ConnectorState, config: Mapping[str, object] | None) -> dict[str, object]:
    return {
        "config": config,
        "target_state": connector.target_state,
        "task_count": connector.task_count,
        "task_ids": connector.task_ids,
        "inconsistent": connector.inconsistent,
        "pending_fencing": connector.pending_fencing,
        "task_count_record": connector.task_count_record,
        "task_config_generation": connector.task_config_generation,
    }


def differing_connectors(committed: ConfigState, uncommitted: ConfigState) -> list[str]:
    """Return the connectors that preparing and disabled workers hold differently.

    They differ because such workers read aborted records too.
    """
    names = {*committed.connectors, *uncommitted.connectors}
    return sorted(name for name in names if _held(committed, name) != _held(uncommitted, name))


def aborted_records(committed: Sequence[Record], everything: Sequence[Record]) -> list[dict[str, object]]:
    """Return the records that only a reader of aborted records sees, in offset order, fit to be shown.

    `newest`: no record under its key comes after it, so that such a reader ends with it. `committed` is the record that
    other readers end with, and `differs` whether the two have different contents (also where the difference is hidden).
    """
    real = {record.offset for record in committed}
    last = {record.key: record.offset for record in everything}
    counting = {record.key: record for record in committed}
    return [
        _aborted(record, counting.get(record.key), newest=last[record.key] == record.offset)
        for record in everything
        if record.offset not in real
    ]


def _aborted(record: Record, committed: Record | None, *, newest: bool) -> dict[str, object]:
    differs = record.value != (None if committed is None else committed.value)
    beside = None if committed is None else {"offset": committed.offset, "value": _said(committed)["value"]}
    return {**_said(record), "newest": newest, "differs": differs, "committed": beside}


def _said(record: Record) -> dict[str, object]:
    value = without_secrets(record).value
    try:
        shown = None if value is None else json.loads(value)
    except (ValueError, RecursionError):
        shown = json_bytes(value)
    return {"offset": record.offset, "key": json_bytes(record.key), "value": shown}


def _held(state: ConfigState, name: str) -> dict[str, object]:
    """Return a connector as a worker holds it, including its secrets.

    The generation is left out: it counts commits, so an aborted one alone changes it.
    """
    connector = state.connectors.get(name) or ConnectorState(name)
    document = _document(connector, connector.config)
    return {key: value for key, value in document.items() if key != "task_config_generation"}


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
