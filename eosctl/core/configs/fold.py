"""Folds the records of a Connect config topic into the state that a worker holds after reading them.

True to `KafkaConfigBackingStore` (Kafka 3.8 to 4.3) record by record, its oddities included: removal of a connector
keeps its task-count record, a commit is pending fencing even when its task set is incomplete, and a record the worker
can't read changes nothing. Never raises on what a topic may hold, and never keeps a task's config or the session key.

Workers that can't read the config topic up to the offset that each rebalance assigns are reported here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields

from msgspec import Struct

from eosctl.codes import finding
from eosctl.core.configs.records import (
    KIP_TEXT_PREFIX,
    OFFSETS_TOPIC,
    TARGET_STATES,
    ConfigKey,
    RecordKind,
    UnparsableValueError,
    decode_key_text,
    decode_value,
    int_field,
    parse_key,
)
from eosctl.core.findings import ERROR, Finding
from eosctl.core.records import Record, TopicRead


class IgnoredRecord(Struct, frozen=True):
    """A record that changes nothing in a worker: `code` is stable, `reason` is for people.

    `connector` is the connector that the record was meant for, if the key shows it. `breaks_reader`: a worker that
    reads it also loses the records behind it that it had fetched.
    """

    offset: int
    key: str | None
    code: str
    reason: str
    connector: str | None = None
    breaks_reader: bool = False

    @property
    def is_task_count(self) -> bool:
        """Whether it was meant to be a task-count record."""
        return self.key is not None and parse_key(self.key).kind is RecordKind.TASK_COUNT


class ConnectorState(Struct, frozen=True):
    """A connector as a worker holds it; `config` None means deleted, or known only by left-over records.

    `record_offset` and `commit_offset` are those of the newest accepted task-count and commit record.
    `forgotten_commit` is the offset of a commit before the connector's config, for which its tasks are forgotten.
    `moved_from` is the offsets topic that its config named when it was STOPPED, if the config has named another since
    and the connector was not started since: "" is the workers' own.
    """

    name: str
    config: Mapping[str, object] | None = None
    target_state: str | None = None
    task_count: int | None = None
    inconsistent: bool = False
    pending_fencing: bool = False
    task_count_record: int | None = None
    task_config_generation: int | None = None
    record_offset: int | None = None
    commit_offset: int | None = None
    forgotten_commit: int | None = None
    moved_from: str | None = None

    @property
    def task_ids(self) -> list[int]:
        """The tasks that workers would run: none while the task set is incomplete (`ClusterConfigState.tasks`)."""
        return [] if self.inconsistent else list(range(self.task_count or 0))

    def is_known(self) -> bool:
        """Return whether a worker holds more of this connector than traces of a deleted one."""
        held = (self.config, self.target_state, self.task_count, self.task_count_record)
        return any(value is not None for value in held)


class ConfigState(Struct, frozen=True):
    """The outcome of a fold; `offset` is one more than that of the newest record whose value could be parsed, or -1.

    `commits_without_connector` are offsets of commits that made the worker forget a task set, because the connector's
    own config came later or was compacted away (Kafka 3.8+).
    """

    offset: int
    connectors: Mapping[str, ConnectorState]
    ignored: tuple[IgnoredRecord, ...]
    commits_without_connector: tuple[int, ...] = ()
    has_session_key: bool = False

    def unreadable(self) -> list[IgnoredRecord]:
        """Return the records at which a worker's reader fails until compaction has removed them."""
        return [record for record in self.ignored if record.breaks_reader]


def fold_config_topic(records: Iterable[Record]) -> ConfigState:
    """Return the state of a worker that has read `records`, which come in offset order."""
    fold = _Fold()
    for record in records:
        fold.take(record)
    states = {name: fold.connectors[name].frozen() for name in sorted(fold.connectors)}
    known = {name: state for name, state in states.items() if state.is_known()}
    return ConfigState(
        offset=fold.offset,
        connectors=known,
        ignored=tuple(fold.ignored),
        commits_without_connector=tuple(fold.commits_without_connector),
        has_session_key=fold.has_session_key,
    )


_READER_FAILS = "a worker that reads it loses the rest of the batch it is read in"


class _Ignore(Exception):  # noqa: N818 - not an error: the word for "the worker skips this record"
    """Raised inside the fold by a handler that ignores a record; never leaves this module."""

    def __init__(self, code: str, reason: str, *, connector: str | None = None, breaks_reader: bool = False) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = f"{reason}: {_READER_FAILS}" if breaks_reader else reason
        self.connector = connector
        self.breaks_reader = breaks_reader


@dataclass(slots=True)
class _Held:
    """A mutable ConnectorState: a topic changes each of them by the thousand."""

    name: str
    config: Mapping[str, object] | None = None
    target_state: str | None = None
    task_count: int | None = None
    inconsistent: bool = False
    pending_fencing: bool = False
    task_count_record: int | None = None
    task_config_generation: int | None = None
    record_offset: int | None = None
    commit_offset: int | None = None
    forgotten_commit: int | None = None
    moved_from: str | None = None

    def frozen(self) -> ConnectorState:
        """Return the current state as an immutable value."""
        return ConnectorState(**{member.name: getattr(self, member.name) for member in fields(self)})


@dataclass(slots=True)
class _Fold:
    offset: int = -1
    connectors: dict[str, _Held] = field(default_factory=dict)
    deferred_tasks: dict[str, set[int]] = field(default_factory=dict)
    ignored: list[IgnoredRecord] = field(default_factory=list)
    commits_without_connector: list[int] = field(default_factory=list)
    has_session_key: bool = False

    def take(self, record: Record) -> None:
        """Apply one record as the worker's consumer callback does."""
        text = None if record.key is None else decode_key_text(record.key)
        key = ConfigKey(RecordKind.UNKNOWN) if text is None else parse_key(text)
        try:
            value = decode_value(record.value)
            self.offset = record.offset + 1
            if text is None:
                raise _Ignore("null_key", "the record has no key", breaks_reader=True)
            _TAKE[key.kind](self, key, value, _Place(record.offset, text))
        except UnparsableValueError as exc:
            self.ignored.append(IgnoredRecord(record.offset, text, "unparsable", str(exc), key.name or None))
        except _Ignore as skip:
            connector = skip.connector or key.name or None
            ignored = IgnoredRecord(record.offset, text, skip.code, skip.reason, connector, skip.breaks_reader)
            self.ignored.append(ignored)

    def connector(self, name: str) -> _Held:
        """Return the connector's state, which is empty at first."""
        held = self.connectors.get(name)
        if held is None:
            held = self.connectors[name] = _Held(name)
        return held

    def remove(self, name: str) -> None:
        """Remove a connector as `processConnectorRemoval` does.

        Its target state, task-count record, pending fencing and generation stay.
        """
        self.deferred_tasks.pop(name, None)
        held = self.connector(name)
        held.config = held.task_count = held.forgotten_commit = held.moved_from = None


class _Place(Struct, frozen=True):
    offset: int
    key: str


_KIP_TEXT_FIELDS = {"tasks", "task-count"}


def _object(value: object, what: str) -> Mapping[str, object]:
    """Return the value as a JSON object; raises _Ignore, with the reason, where a worker skips it."""
    if value is None:
        raise _Ignore("tombstone", f"a worker ignores a null {what}; it is not a deletion")
    if not isinstance(value, dict):
        raise _Ignore("wrong_type", f"the {what} is not a JSON object")
    return value


def _properties(value: object, what: str) -> Mapping[str, object]:
    properties = _object(value, what).get("properties")
    if not isinstance(properties, dict):
        raise _Ignore("wrong_type", f"the {what} has no object `properties`")
    return properties


def _take_target_state(fold: _Fold, key: ConfigKey, value: object, _place: _Place) -> None:
    held = fold.connector(key.name)
    if value is None:
        held.target_state = "STARTED" if held.config is not None else None
        held.moved_from = None
        return
    states = _object(value, "target state")
    newer, older = states.get("state.v2"), states.get("state")
    state = newer if isinstance(newer, str) else older
    if not isinstance(state, str):
        raise _Ignore("wrong_type", "neither `state.v2` nor `state` is a string")
    if state not in TARGET_STATES:
        raise _Ignore("unknown_state", f"{state!r} is not a target state")
    held.target_state = state
    if state != "STOPPED":
        held.moved_from = None


def _take_connector(fold: _Fold, key: ConfigKey, value: object, _place: _Place) -> None:
    if value is None:
        fold.remove(key.name)
        return
    config = _properties(value, "connector config")
    held = fold.connector(key.name)
    if held.config is not None and held.target_state == "STOPPED":
        held.moved_from = _moved_from(held, str(config.get(OFFSETS_TOPIC) or ""))
    held.config, held.target_state = config, held.target_state or "STARTED"


def _moved_from(held: _Held, topic: str) -> str | None:
    """Return the previous offsets topic of a stopped connector if its new config names another; else None."""
    before = str((held.config or {}).get(OFFSETS_TOPIC) or "")
    left = before if held.moved_from is None else held.moved_from
    return None if left == topic else left


def _take_task(fold: _Fold, key: ConfigKey, value: object, place: _Place) -> None:
    if key.task is None or not isinstance(value, dict) or not isinstance(value.get("properties"), dict):
        raise _why_not_a_task(key, value, place)
    fold.deferred_tasks.setdefault(key.name, set()).add(key.task)


def _why_not_a_task(key: ConfigKey, value: object, place: _Place) -> _Ignore:
    if place.key.startswith(KIP_TEXT_PREFIX) and isinstance(value, dict) and _KIP_TEXT_FIELDS & value.keys():
        reason = "KIP-618's text spells the key so; workers only read `tasks-fencing-<connector>`"
        return _Ignore("kip_text_key", reason, connector=place.key[len(KIP_TEXT_PREFIX) :])
    if key.task is None:
        return _Ignore("unparsable_key", "not a task config key: no connector and number in it")
    if value is None:
        return _Ignore("tombstone", "a worker ignores a null task config; it is not a deletion")
    return _Ignore("wrong_type", "the task config has no object `properties`")


def _take_commit(fold: _Fold, key: ConfigKey, value: object, place: _Place) -> None:
    held = fold.connector(key.name)
    if held.config is None:
        fold.remove(key.name)
        fold.commits_without_connector.append(place.offset)
        held.forgotten_commit = place.offset
        return
    count = int_field(_object(value, "task commit"), "tasks")
    if count is None:
        raise _Ignore("wrong_type", "`tasks` is not an integer", breaks_reader=True)
    deferred = fold.deferred_tasks.get(key.name)
    complete = _is_complete(deferred or set(), count)
    if complete and deferred is not None:
        held.task_config_generation = (-1 if held.task_config_generation is None else held.task_config_generation) + 1
    if deferred is not None:
        deferred.clear()
    held.task_count, held.inconsistent, held.forgotten_commit = count, not complete, None
    held.pending_fencing, held.commit_offset = True, place.offset


def _is_complete(task_ids: set[int], count: int) -> bool:
    """Return whether ids 0 to `count` - 1 are all present.

    More are allowed, and a negative count is complete, as in Kafka.
    """
    return len(task_ids) >= count and all(task in task_ids for task in range(count))


def _take_task_count(fold: _Fold, key: ConfigKey, value: object, place: _Place) -> None:
    record = _object(value, "task-count record")
    count = int_field(record, "task-count")
    if count is None and "task-count" not in record and "tasks" in record:
        reason = "KIP-618's text names the field `tasks`, Kafka `task-count`"
        raise _Ignore("kip_text_field", reason, breaks_reader=True)
    if count is None:
        raise _Ignore("wrong_type", "`task-count` is not an integer", breaks_reader=True)
    held = fold.connector(key.name)
    held.task_count_record, held.record_offset, held.pending_fencing = count, place.offset, False


def _take_session_key(fold: _Fold, _key: ConfigKey, value: object, _place: _Place) -> None:
    session_key = _object(value, "session key")
    texts = all(isinstance(session_key.get(name), str) for name in ("key", "algorithm"))
    if not texts or int_field(session_key, "creation-timestamp") is None:
        raise _Ignore("wrong_type", "the session key has a missing or wrongly typed field")
    fold.has_session_key = True


def _take_restart(_fold: _Fold, _key: ConfigKey, value: object, _place: _Place) -> None:
    """Check a restart request; only workers that were running when it was written act on it."""
    _object(value, "restart request")


def _take_logger(_fold: _Fold, _key: ConfigKey, value: object, _place: _Place) -> None:
    """Check a logger level; only workers that were running when it was written act on it."""
    if not isinstance(_object(value, "logger level").get("level"), str):
        raise _Ignore("wrong_type", "`level` is not a string")


def _discard(_fold: _Fold, _key: ConfigKey, _value: object, _place: _Place) -> None:
    raise _Ignore("unknown_key", "no worker knows this key")


_TAKE: dict[RecordKind, Callable[[_Fold, ConfigKey, object, _Place], None]] = {
    RecordKind.TARGET_STATE: _take_target_state,
    RecordKind.CONNECTOR: _take_connector,
    RecordKind.TASK: _take_task,
    RecordKind.COMMIT: _take_commit,
    RecordKind.RESTART: _take_restart,
    RecordKind.TASK_COUNT: _take_task_count,
    RecordKind.SESSION_KEY: _take_session_key,
    RecordKind.LOGGER: _take_logger,
    RecordKind.UNKNOWN: _discard,
}


BEHIND_AFTER_MS = 60_000
"""The least age of the first record that such a worker lacks: a slow reader has passed it by then."""

WORKER_BEHIND = finding(
    "worker_behind",
    "A worker does not read the config topic up to the group's offset, and what it lacks is older than a "
    "minute. It starts nothing, and makes the group rebalance again and again.",
    "Have the record compacted away at which its reader fails (`eosctl task-counts validate`), then restart it.",
)


def behind_findings(
    worker: str, offsets: tuple[int, int], *, read: TopicRead, state: ConfigState, now_ms: int
) -> Iterable[Finding]:
    """Report a worker that lags behind the group in the config topic.

    `offsets` are the next offset that the worker would read, and the one that the group has assigned.
    """
    own, wanted = offsets
    lacking = [record for record in read.records if record.offset >= own]
    written_ms = lacking[0].timestamp_ms if lacking else -1  # else it was compacted away, and is old
    if written_ms >= 0 and now_ms - written_ms < BEHIND_AFTER_MS:
        return
    end = max((bound.end for bound in read.bounds), default=wanted)
    age = f"; what it lacks was written {(now_ms - written_ms) // 60_000:,} m ago" if written_ms >= 0 else ""
    yield Finding(
        WORKER_BEHIND, ERROR, worker,
        f"{worker} has read the config topic up to offset {own}, the group {wanted} (the topic ends at {end}){age}: it "
        "stays behind, starts nothing that it is assigned, and makes the group rebalance again and again",
        "Have the record compacted away at which its reader fails (`eosctl task-counts clean`), then restart it; no "
        "other worker before."
        if state.unreadable()
        else "Restart it. If it stays behind again, its log says why (`Error polling`).",
        {"config_offset": own, "group_offset": wanted, "end_offset": end},
    )  # fmt: skip
