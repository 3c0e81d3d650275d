"""Findings about an offsets topic: keys, values, partitions, settings, stale copies and aborted offsets. Pure.

There is one rule per code. It judges records that were read elsewhere; it reads and writes nothing. `error` is a
problem that costs a connector its offsets, or a worker its start, now or at the next restart; `warning` one that may.

Copies of a key on partitions other than the one that is written to get tombstones. A worker reads the partitions of an
offsets topic in no order, so that any copy may be the one that it reads last.

Offsets of aborted transactions take effect where a worker that is not `enabled` reads the global topic: it reads them
as they are. `KafkaOffsetBackingStore` reads only committed records in `enabled` (Kafka 3.3 to 4.3). A task that starts
from an aborted offset skips source records: data loss. They are found by comparing two reads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.codes import Code
from eosctl.core.clients.own_brokers import compacted_topic, only_compacted
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.configs.records import UnparsableValueError, decode_value
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.offsets import codes
from eosctl.core.offsets.records import KeyFault, OffsetKey, decode_key, is_nothing
from eosctl.core.offsets.views import IgnoredOffsetRecord, KeyAction, PlannedWrite, Store, live
from eosctl.core.open_transactions import OPEN_TRANSACTION, OpenTransaction, orphan_hint
from eosctl.core.records import Bounds, Record, TopicDescription, TopicRead
from eosctl.core.wording import counted, json_bytes
from eosctl.foreign import arguments, shell_word, shell_words

CONNECT_DEFAULT_PARTITIONS = 25  # offset.storage.partitions

_IGNORED = {
    KeyFault.NULL_KEY: (codes.KEY_NULL, "a record without a key"),
    KeyFault.NOT_JSON: (codes.KEY_NOT_JSON, "a key that is not JSON"),
    KeyFault.NOT_A_LIST: (codes.KEY_NOT_A_LIST, "a key that is not a JSON array"),
    KeyFault.WRONG_SIZE: (codes.KEY_WRONG_SIZE, "a key whose array has not two elements"),
    KeyFault.CONNECTOR_NOT_TEXT: (
        codes.KEY_CONNECTOR_NOT_TEXT,
        "a key whose first element, the connector, is not text",
    ),
    KeyFault.PARTITION_NOT_A_MAP: (codes.KEY_PARTITION_NOT_A_MAP, "a key whose source partition is not an object"),
}


def missing_topic_finding(
    topic: str,
    connectors: Iterable[str],
    settings: ClientSettings | None,
    *,
    is_created: bool | None,
    has_offsets: bool | None = None,
) -> Finding:
    """Report an offsets topic that `connectors` name and that does not exist.

    Their tasks start without offsets, or not at all. `is_created`: a task creates it, None if that is not known;
    `has_offsets`: the global topic has offsets of these connectors, None if that was not checked. A merge without any
    offsets writes nothing, and creates nothing either.
    """
    users = sorted(connectors)
    named = [word for name in users for word in ("--connector", name)]
    merge = shell_words("eosctl", "offsets", "merge", *named, "--into", "dedicated")
    create = compacted_topic(topic, CONNECT_DEFAULT_PARTITIONS, settings)
    then = _CREATION[is_created]
    if has_offsets is None:
        shown = shell_words("eosctl", "offsets", "list", *named)
        fix = f"{then}. Where `{shown}` shows offsets, `{merge}` creates it with them"
        fix += "." if is_created else f"; else {create}."
    elif has_offsets:
        fix = f"{then}; `{merge}` gives it the offsets first."
    else:
        fix = f"{then}: there are no offsets to be copied." if is_created else f"{then}: {create}."
    return Finding(
        codes.TOPIC_MISSING, ERROR if is_created is False else WARNING, topic,
        f"a connector's config names offsets topic {topic}, which does not exist yet", fix,
        {"is_created_by_tasks": is_created, "connectors": users},
    )  # fmt: skip


_CREATION = {
    True: "A task creates it when it starts, empty",
    False: "No task creates it, and none starts without it, as the workers' files say (Kafka 4.4)",
    None: "Whether a task creates it when it starts, empty, is not known: workers of Kafka 4.4 may be forbidden to "
    "(internal.topics.automatic.creation.enable), which their files show (-w)",
}


def topic_findings(description: TopicDescription, settings: ClientSettings | None) -> list[Finding]:
    """Report settings that lose offsets, or with which a worker does not start.

    (`TopicAdmin.verifyTopicCleanupPolicyOnlyCompact`, 2.5+)
    """
    found = list(_cleanup(description, settings))
    name = description.name
    if description.replication_factor == 1:
        found.append(
            Finding(codes.SINGLE_REPLICA, WARNING, name,
                    f"topic {name} has one replica: one lost disk loses all offsets",
                    "Raise the replication factor (kafka-reassign-partitions.sh).", {"replication_factor": 1})
        )  # fmt: skip
    if description.partitions != CONNECT_DEFAULT_PARTITIONS:
        partitions = counted(description.partitions, "partition")
        message = f"topic {name} has {partitions}, Connect makes {CONNECT_DEFAULT_PARTITIONS}"
        fix = "Fine if it was so from the start. Never add partitions: keys then have two homes."
        found.append(Finding(codes.PARTITION_COUNT, INFO, name, message, fix, {"partitions": description.partitions}))
    return found


def _cleanup(description: TopicDescription, settings: ClientSettings | None) -> Iterable[Finding]:
    name, policy = description.name, description.config.get("cleanup.policy")
    fix = only_compacted(name, settings)
    if policy is None:
        yield Finding(
            codes.SETTINGS_UNREADABLE, WARNING, name, f"the settings of topic {name} can't be read",
            "Grant DescribeConfigs on the topic; a worker without it does not check them either.",
        )  # fmt: skip
        return
    kinds = {kind.strip() for kind in policy.split(",")}
    evidence = {key: description.config[key] for key in ("cleanup.policy", "retention.ms") if key in description.config}
    if "compact" not in kinds:
        message = f"topic {name} is not compacted (cleanup.policy={policy}): offsets vanish after retention.ms"
        yield Finding(codes.NOT_COMPACTED, ERROR, name, f"{message}, and no worker starts on it", fix, evidence)
    elif kinds != {"compact"}:
        message = f"topic {name} also deletes (cleanup.policy={policy}): offsets vanish after retention.ms"
        yield Finding(codes.DELETES_OLD_OFFSETS, ERROR, name, f"{message}, and no worker starts on it", fix, evidence)


def begin_findings(topic: str, bounds: Sequence[Bounds]) -> list[Finding]:
    """Report a log that starts behind its first offset: the cleaner never moves the start of a compacted topic."""
    gone = {str(bound.partition): bound.begin for bound in bounds if bound.begin > 0}
    if not gone:
        return []
    return [
        Finding(
            codes.OLDEST_DELETED, INFO, topic,
            f"records were deleted from the start of {len(gone)} of {counted(len(bounds), 'partition')} of {topic}, by "
            "retention or DeleteRecords: offsets that were only there are gone",
            "Nothing, if every connector has its offsets (`eosctl offsets list`); else put them back from a backup.",
            {"topic": topic, "begin_offsets": gone},
        )
    ]  # fmt: skip


def record_findings(store: Store, only: Collection[str] = ()) -> list[Finding]:
    """Apply every rule about keys, values and partitions to one folded topic; by connector, then key bytes.

    With `only`, to the keys of these connectors alone.
    """
    found = [] if only else [_ignored_finding(store, each) for each in store.ignored]
    for connector in sorted(store.connectors.keys() & set(only) if only else store.connectors):
        keys = sorted(store.connectors[connector], key=lambda key: key.raw)
        found += _spelling_findings(store, connector, keys)
        for key in keys:
            found += _place_findings(store, key)
            found += _value_findings(store, key)
            found += _partition_findings(store, key)
    return found


def _ignored_finding(store: Store, ignored: IgnoredOffsetRecord) -> Finding:
    code, what = _IGNORED[ignored.fault]
    record = ignored.record
    deleted = record.value is None
    return Finding(
        code,
        INFO if deleted else ERROR,
        f"{store.topic}-{record.partition}",
        f"{what} at offset {record.offset}: Connect logs a warning and ignores it"
        + (" (deleted; compaction removes it)" if deleted else "; who wrote it set no offset"),
        "A tombstone under the same key, on the same partition."
        if record.key is not None
        else "It has no key to delete it by; a compacted topic takes no new ones.",
        {**_place(record), "key": json_bytes(record.key), "value": json_bytes(record.value)},
    )


def _spelling_findings(store: Store, connector: str, keys: Sequence[OffsetKey]) -> Iterable[Finding]:
    spellings: dict[str, list[OffsetKey]] = defaultdict(list)
    for key in keys:
        spellings[key.identity].append(key)
    for same in spellings.values():
        live = [key for key in same if not is_nothing(store.records[key.raw].value)]
        if len(same) < 2 or not live:
            continue
        newest = max(same, key=lambda key: store.records[key.raw].timestamp_ms)
        texts = [str(json_bytes(key.raw)) for key in same]
        if len(live) > 1:
            message = f"one source partition has offsets under {len(live)} spellings: {' and '.join(texts)}"
        else:
            message = f"a source partition is deleted in one spelling and not in another: {' and '.join(texts)}"
        yield Finding(
            codes.DOUBLE_SPELLING,
            ERROR if len(live) > 1 else WARNING,
            connector,
            f"{message}; a task reads only the one that it writes, REST shows and changes only one",
            "See which of them the connector writes (it moves while it runs); delete the others.",
            {
                "topic": store.topic,
                "newest": json_bytes(newest.raw),
                "records": [_cell(key, store.records[key.raw]) for key in same],
            },
        )


def _place_findings(store: Store, key: OffsetKey) -> Iterable[Finding]:
    """Report a key that is not on its home partition, or on several.

    A worker uses the copy that it happens to read last.
    """
    newest, home = store.records[key.raw], store.home(key.raw)
    copies = store.several.get(key.raw, {newest.partition: newest})
    live = {partition for partition, record in copies.items() if not is_nothing(record.value)}
    if not live or set(copies) == {home}:
        return
    evidence = {
        "topic": store.topic,
        "key": json_bytes(key.raw),
        "home": home,
        "records": [_cell(key, record) for _partition, record in sorted(copies.items())],
        "repair": repair_records(store, key),
    }
    shown = json_bytes(key.raw)
    fix = (
        "Stop the connector, put evidence.repair into a file, a record a line, and `eosctl offsets import FILE "
        f"--store {shell_word(store.topic)} --keep-partitions`."
    )
    if len(copies) == 1:
        message = f"{shown} is on partition {newest.partition}, Connect's producer puts it on {home}: the next offset"
        yield Finding(
            codes.WRONG_PARTITION, ERROR, key.connector, f"{message} is a second record, and which counts is chance",
            fix, evidence,
        )  # fmt: skip
    elif live == {home} and newest.partition == home:
        message = f"{shown} is deleted on partitions other than its own, {home}: until compaction removes that,"
        yield Finding(
            codes.SEVERAL_PARTITIONS, WARNING, key.connector, f"{message} a worker may read the deletion last",
            "Wait for compaction (delete.retention.ms); restart no worker before.", evidence,
        )  # fmt: skip
    else:
        message = f"{shown} is on partitions {', '.join(map(str, sorted(copies)))}, its own is {home}"
        yield Finding(
            codes.SEVERAL_PARTITIONS, ERROR, key.connector,
            f"{message}: a worker takes the one that it happens to read last", fix, evidence,
        )  # fmt: skip


def repair_records(store: Store, key: OffsetKey) -> list[dict[str, object]]:
    """Return lines of a record file that repair the copies of a key.

    They have its newest value on its home partition, and tombstones on the others. A value that is there already is
    among them: it must be newer than the tombstones.
    """
    newest, home = store.records[key.raw], store.home(key.raw)
    copies = store.several.get(key.raw, {newest.partition: newest})
    wanted = {home: newest.value} | {
        partition: None for partition, record in copies.items() if partition != home and record.value is not None
    }
    if set(wanted) == {home} and home in copies and copies[home].value == newest.value:
        return []
    return [
        {"topic": store.topic, "partition": partition, "key": json_bytes(key.raw), "value": json_bytes(value)}
        for partition, value in sorted(wanted.items())
    ]


def _value_findings(store: Store, key: OffsetKey) -> Iterable[Finding]:
    """Report values that Connect can't pass to a task.

    (`OffsetStorageReaderImpl.offsets`, `OffsetUtils.validateFormat`)
    """
    record = store.records[key.raw]
    if is_nothing(record.value):
        return
    found = value_fault(record.value)
    if found is not None:
        code, what = found
        yield Finding(
            code,
            ERROR,
            key.connector,
            f"the value of {json_bytes(key.raw)} {what}: Connect logs an error and gives the task no offset",
            "Set it to what the connector writes, an object with primitive members, or delete it.",
            {**_place(record), "key": json_bytes(key.raw), "value": json_bytes(record.value)},
        )


def value_fault(value: bytes | None) -> tuple[Code, str] | None:
    """Return code and words for a value that is not an offset; None for an offset, a tombstone or null."""
    try:
        parsed = decode_value(value)
    except UnparsableValueError:
        return codes.VALUE_NOT_JSON, "is not JSON"
    if parsed is None:
        return None
    if not isinstance(parsed, dict):
        return codes.VALUE_NOT_A_MAP, "is not a JSON object"
    nested = sorted(name for name, member in parsed.items() if isinstance(member, dict | list))
    return (codes.VALUE_NOT_PRIMITIVE, f"has members that are not primitive ({', '.join(nested)})") if nested else None


def _partition_findings(store: Store, key: OffsetKey) -> Iterable[Finding]:
    record = store.records[key.raw]
    evidence = {**_place(record), "key": json_bytes(key.raw)}
    if is_nothing(record.value):
        return
    if key.partition is None:
        message = f"connector {key.connector} has an offset for a null source partition, which REST neither shows nor"
        yield Finding(
            codes.PARTITION_NULL, INFO, key.connector, f"{message} resets", codes.PARTITION_NULL.next, evidence
        )
    elif any(isinstance(member, dict | list) for member in key.partition.values()):
        message = f"the source partition in {json_bytes(key.raw)} has members that are not primitive"
        yield Finding(
            codes.PARTITION_NOT_PRIMITIVE, ERROR, key.connector, f"{message}: no connector can write or ask for it",
            codes.PARTITION_NOT_PRIMITIVE.next, evidence,
        )  # fmt: skip


def open_transaction_finding(blocked: OpenTransaction, *, now_ms: int) -> Finding:
    """Report a transaction that stays open: every worker that reads the topic to its end waits for it."""
    bound, producer, described = blocked.bound, blocked.producer, blocked.description
    started_ms = described.started_ms if described else None
    who = "by a producer that could not be found out"
    if producer is not None:
        who = f"by producer {producer.producer_id} (epoch {producer.producer_epoch}), "
        who += f"transactional id {blocked.transactional_id}" if blocked.transactional_id else "which no id owns"
    hint = f"`eosctl txn hanging --topic {shell_word(blocked.topic)}` names it, once its producer can be found out."
    if producer is not None:
        place = ("--topic", blocked.topic, "--partition", str(bound.partition))
        start = (*place, "--start-offset", str(producer.txn_start_offset))
        hint = orphan_hint(start, transactional_id=blocked.transactional_id)
    if described is not None and blocked.transactional_id is not None:
        hint = (
            f"It ends by itself {described.transaction_timeout_ms / 1000:g} s after its start; "
            f"`eosctl fence {arguments(blocked.transactional_id)}` ends it now."
        )
    return Finding(
        OPEN_TRANSACTION,
        ERROR,
        f"{blocked.topic}-{bound.partition}",
        f"a transaction is held open {who}: the last stable offset stays at {bound.lso}, the end is {bound.end}, and "
        "workers and tasks that start wait for it",
        hint,
        {
            "partition": bound.partition,
            "lso": bound.lso,
            "end": bound.end,
            "producer_id": producer.producer_id if producer else None,
            "producer_epoch": producer.producer_epoch if producer else None,
            "start_offset": producer.txn_start_offset if producer else None,
            "transactional_id": blocked.transactional_id,
            "transaction_timeout_ms": described.transaction_timeout_ms if described else None,
            "started_ms": started_ms,
            "age_ms": now_ms - started_ms if started_ms is not None else None,
        },
    )


def _place(record: Record) -> dict[str, object]:
    return {"topic": record.topic, "partition": record.partition, "offset": record.offset}


def _cell(key: OffsetKey, record: Record) -> dict[str, object]:
    return {
        "key": json_bytes(key.raw),
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "value": json_bytes(record.value),
    }


STALE_COPY = "stale_copy"


def with_stale_copies(writes: Iterable[PlannedWrite], stores: Mapping[str, Store]) -> list[PlannedWrite]:
    """Add to `writes`, after each, tombstones for the live copies of its key on other partitions; `stores` by topic.

    Afterwards the key has its value, or none, on one partition only. A value that stays is written once more: otherwise
    the tombstones would be newer, and count for readers that compare timestamps.
    """
    return [each for write in writes for each in _with_tombstones(write, stores[write.topic])]


def _with_tombstones(write: PlannedWrite, store: Store) -> Iterator[PlannedWrite]:
    tombstones = list(_tombstones(write, store))
    stays = not write.sends() and not is_nothing(write.after)
    yield replace(write, action=KeyAction.WRITE, reason="rewritten") if tombstones and stays else write
    yield from tombstones


def _tombstones(write: PlannedWrite, store: Store) -> Iterator[PlannedWrite]:
    newest = store.records.get(write.key.raw)
    copies = {} if newest is None else store.several.get(write.key.raw, {newest.partition: newest})
    for partition, record in sorted(copies.items()):
        if partition != write.partition and live(record) is not None:
            yield PlannedWrite(
                KeyAction.DELETE,
                STALE_COPY,
                write.key,
                write.topic,
                partition,
                before=record,
                after=None,
                replaces=record,
            )


class AbortedOffset(Struct, frozen=True):
    """A key whose newest record was aborted; `committed` is the valid record, None if none was ever committed."""

    aborted: Record
    committed: Record | None

    @property
    def connector(self) -> str | None:
        """The connector of the offset; None for a key that is no offset key, and that no task reads."""
        key = decode_key(self.aborted.key)
        return key.connector if isinstance(key, OffsetKey) else None

    def repair(self) -> Mapping[str, object]:
        """Return the record to write once more: then it is the newest in both views.

        It is a line for `offsets import`.
        """
        value = None if self.committed is None else self.committed.value
        where = {"topic": self.aborted.topic, "partition": self.aborted.partition}
        return {**where, "key": json_bytes(self.aborted.key), "value": json_bytes(value)}


def aborted_offsets(uncommitted: TopicRead, committed: TopicRead) -> tuple[AbortedOffset, ...]:
    """Return the keys that a reader of aborted records holds differently.

    Both reads have the newest record per key, and `uncommitted` came first. In this order nothing that arrives in
    between looks aborted: a record below the later read's last stable offset is decided, and if it had been committed,
    the later read would have it or something newer.
    """
    decided = {bound.partition: bound.lso for bound in committed.bounds}
    counts = {(record.partition, record.key): record for record in committed.records}
    found = []
    for record in uncommitted.records:
        real = counts.get((record.partition, record.key))
        if record.key is None or record.offset >= decided.get(record.partition, 0):
            continue
        if real is None and record.value is None:
            continue  # a tombstone of a key without records, or with compacted ones
        if real is None or (real.offset < record.offset and real.value != record.value):
            found.append(AbortedOffset(record, real))
    return tuple(found)
