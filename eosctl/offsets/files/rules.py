"""What a file of offsets asks for, and what that means for a store: record files and KIP-875 bodies.

Opens nothing. A record file carries keys as bytes; a KIP-875 body carries only what they mean, so its entries take the
spelling that the store has, and only without one the spelling that Connect's REST interface would write.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from eosctl.codes import Code
from eosctl.core.configs.records import UnparsableValueError, decode_value
from eosctl.core.java.json import encode_key, encode_offset
from eosctl.core.kept.record_lines import read_lines
from eosctl.core.offsets.decision import KeyAction
from eosctl.core.offsets.records import IgnoredKey, OffsetKey, decode_key, is_nothing
from eosctl.core.offsets.views import PlannedWrite, Store, live
from eosctl.core.record_file import UNKNOWN
from eosctl.core.records import Record
from eosctl.core.wording import counted
from eosctl.errors import InputFileError, RefusedError, UsageError
from eosctl.offsets.files import codes


@dataclass(frozen=True, slots=True)
class Incoming:
    """One offset of a file; `place` says where in it (`offsets.ndjson, line 7`), `line` in which order.

    `spelled` is False where the key's bytes are a guess that the store may correct.
    """

    place: str
    line: int
    record: Record
    key: OffsetKey | IgnoredKey
    spelled: bool = True


@dataclass(frozen=True, slots=True)
class OffsetsFile:
    """What a file holds: records with a key, also one that Connect ignores, and `keyless` ones, which are left out."""

    name: str
    incoming: tuple[Incoming, ...]
    keyless: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True)
class Superseded:
    """An offset of the file that is not written, because a newer one of the file falls on the same key."""

    incoming: Incoming
    by: Incoming


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """One write per key and partition, and what fell under the table."""

    writes: tuple[PlannedWrite, ...]
    superseded: tuple[Superseded, ...]


def parse_offsets_file(content: bytes, *, name: str, connectors: Collection[str] = ()) -> OffsetsFile:
    """A record file (`offsets export`) or a KIP-875 body (`GET /connectors/NAME/offsets`), told apart by their shape.

    With `connectors`, only what is theirs; a body does not name its connector, so it needs exactly one. Raises
    InputFileError that names file and line, UsageError.
    """
    body = _body(content.strip(), name=name)
    if body is None:
        return _record_file(content, name=name, connectors=connectors)
    if len(connectors) != 1:
        raise UsageError(f"{name} does not name its connector", hint="Name the connector: --connector NAME.")
    [connector] = connectors
    entries = [_entry(entry, f"{name}, offsets[{number}]", number, connector) for number, entry in enumerate(body)]
    return OffsetsFile(name, tuple(entries))


def _body(content: bytes, *, name: str) -> list[object] | None:
    """The list in `{"offsets": […]}`; None for anything else, which then has to be a record file.

    The first line shows a record file, so that a long one is not parsed as a whole.
    """
    if not content.startswith(b"{"):
        return None
    first, _feed, rest = content.partition(b"\n")
    for text in (first, content):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            continue
        offsets = document.get("offsets")
        if not isinstance(offsets, list) or "topic" in document:
            return None
        if text is first and rest:
            raise InputFileError(f"{name} holds more than a body", hint="Import one body at a time.")
        return offsets
    return None


def _record_file(content: bytes, *, name: str, connectors: Collection[str]) -> OffsetsFile:
    incoming: list[Incoming] = []
    keyless: list[Record] = []
    for line, record, *_more in read_lines(content.splitlines(), name=name, is_backup=False):
        key = decode_key(record.key)
        if connectors and key.connector not in connectors:
            continue
        if record.key is None:
            keyless.append(record)
        else:
            incoming.append(Incoming(f"{name}, line {line}", line, record, key))
    return OffsetsFile(name, tuple(incoming), tuple(keyless))


def _entry(entry: object, place: str, number: int, connector: str) -> Incoming:
    if not isinstance(entry, dict) or not {"partition", "offset"} <= set(entry):
        raise InputFileError(f'{place}: expected {{"partition": {{…}}, "offset": {{…}} or null}}')
    partition, offset = entry["partition"], entry["offset"]
    if not isinstance(partition, dict) or not isinstance(offset, dict | None):
        raise InputFileError(f'{place}: "partition" is an object, "offset" an object or null')
    try:
        raw = encode_key(connector, partition)
        value = None if offset is None else encode_offset(offset)
    except UsageError as exc:
        raise InputFileError(f"{place}: {exc.message}", hint=exc.hint) from exc
    key = decode_key(raw)
    assert isinstance(key, OffsetKey)  # noqa: S101 - encode_key writes nothing else
    return Incoming(place, number, Record("", UNKNOWN, UNKNOWN, UNKNOWN, raw, value), key, spelled=False)


def plan_import(file: OffsetsFile, store: Store, *, keep_partitions: bool = False, rewrite: bool = False) -> ImportPlan:
    """What `store` must be given to hold what the file says: one write per key, or per key and recorded partition.

    `rewrite` writes what is there already once more: an aborted record after it is then no longer the newest. So does a
    deletion of the key on another partition, which would be younger than the value.
    Raises InputFileError for a recorded partition that the topic has not, RefusedError where a key can't be chosen.
    """
    wanted: dict[tuple[bytes, int], Incoming] = {}
    superseded: list[Superseded] = []
    for each in _in_order(_spelled(file.incoming, store)):
        place = (each.key.raw, _target_partition(each, store, keep=keep_partitions))
        if place in wanted:
            superseded.append(Superseded(wanted[place], each))
        wanted[place] = each
    final = [Superseded(each.incoming, _last(wanted, each.by, store, keep=keep_partitions)) for each in superseded]
    writes = [_planned(each, partition, store, keep=keep_partitions) for (_raw, partition), each in wanted.items()]
    deleted = {
        write.key.raw for write in writes if write.action is KeyAction.DELETE
    }  # elsewhere, where the value stays
    writes = [
        _again(write)
        if write.action is KeyAction.KEEP and (rewrite or (write.after is not None and write.key.raw in deleted))
        else write
        for write in writes
    ]
    return ImportPlan(
        tuple(sorted(writes, key=lambda write: (write.key.raw, write.partition))),
        tuple(sorted(final, key=lambda each: each.incoming.line)),
    )


def _again(write: PlannedWrite) -> PlannedWrite:
    return write._replace(action=KeyAction.DELETE if write.after is None else KeyAction.WRITE, reason="rewritten")


def _last(wanted: Mapping[tuple[bytes, int], Incoming], by: Incoming, store: Store, *, keep: bool) -> Incoming:
    return wanted[by.key.raw, _target_partition(by, store, keep=keep)]


def _in_order(incoming: Iterable[Incoming]) -> list[Incoming]:
    """The newest of a key last: within one partition the offset decides, across partitions the time, then the line."""
    logs: dict[tuple[bytes, str, int], list[Incoming]] = {}
    for each in incoming:
        logs.setdefault((each.key.raw, each.record.topic, each.record.partition), []).append(each)
    ordered = [sorted(log, key=lambda each: (each.record.offset, each.line)) for log in logs.values()]
    ordered.sort(key=lambda log: (log[-1].record.timestamp_ms, log[-1].line))
    return [each for log in ordered for each in log]


def _spelled(incoming: Sequence[Incoming], store: Store) -> Iterable[Incoming]:
    """`incoming` with guessed keys replaced by the one spelling that the store has for the same source partition.

    All keys of a file are guessed, or none.
    """
    if all(each.spelled for each in incoming):
        return incoming
    there: dict[str, list[OffsetKey]] = {}
    for connector in {each.key.connector for each in incoming}:
        for key in store.connectors.get(connector or "", ()):
            there.setdefault(key.identity, []).append(key)
    return [_respelled(each, there.get(each.key.identity, [])) for each in incoming]


def _respelled(incoming: Incoming, spellings: Sequence[OffsetKey]) -> Incoming:
    if not spellings:
        return incoming
    if len(spellings) > 1:
        raise RefusedError(
            f"{incoming.place}: the store has {len(spellings)} spellings of this source partition, and the file does "
            "not say which is meant; nothing was written",
            hint="`eosctl offsets lint` shows them; import a record file, which carries the key's bytes.",
        )
    return Incoming(incoming.place, incoming.line, incoming.record, spellings[0])


def _target_partition(incoming: Incoming, store: Store, *, keep: bool) -> int:
    partition = incoming.record.partition
    if not keep or partition == UNKNOWN:
        return store.home(incoming.key.raw)
    if partition >= store.partitions:
        raise InputFileError(
            f"{incoming.place}: there is no partition {partition}: topic {store.topic} has "
            f"{counted(store.partitions, 'partition')}",
            hint="Without --keep-partitions each record goes where Connect's producer puts its key.",
        )
    return partition


def _planned(incoming: Incoming, partition: int, store: Store, *, keep: bool) -> PlannedWrite:
    newest, replaces = store.records.get(incoming.key.raw), store.at(incoming.key.raw, partition)
    action, reason = _decide(incoming, replaces if keep else newest, replaces)
    value = incoming.record.value
    there = live(newest)
    return PlannedWrite(
        action,
        reason,
        incoming.key,
        store.topic,
        partition,
        before=newest,
        after=newest.value if action is KeyAction.KEEP and newest else value,
        replaces=replaces,
        conflict=action is not KeyAction.KEEP and there is not None and there.value != value,
        headers=incoming.record.headers,
    )


def _decide(incoming: Incoming, newest: Record | None, replaces: Record | None) -> tuple[KeyAction, str]:
    """What to do, given what a reader finds now (`newest`) and what lies on the partition that is written to."""
    value, timestamp_ms = incoming.record.value, incoming.record.timestamp_ms
    if newest is not None and replaces is not None and newest.value == value == replaces.value:
        return KeyAction.KEEP, "equal"
    if value is None:
        return KeyAction.DELETE, "deleted_in_file"
    if newest is None:
        return KeyAction.WRITE, "missing"
    return KeyAction.WRITE, "over_newer" if newest.timestamp_ms > timestamp_ms > UNKNOWN else "differs"


@dataclass(frozen=True, slots=True)
class RestBody:
    """A KIP-875 body, and the records of the connector that it can't carry, each with the reason."""

    offsets: tuple[Mapping[str, object], ...]
    left_out: tuple[tuple[Record, Code], ...]

    def text(self) -> str:
        """The JSON document that `PATCH /connectors/NAME/offsets` takes."""
        return json.dumps({"offsets": list(self.offsets)}, ensure_ascii=False, indent=2)


def rest_body(store: Store, connector: str) -> RestBody:
    """The live offsets of `connector` as `GET /connectors/NAME/offsets` gives them, ordered by key bytes.

    Deletions are no entries (in a PATCH they would be resets). Left out: `null_partition`, which REST refuses,
    `not_an_offset` for values that Connect can't read, `other_spelling` for all but the newest spelling.
    """
    found: dict[str, tuple[Record, OffsetKey]] = {}
    left_out: list[tuple[Record, Code]] = []
    for key in sorted(store.connectors.get(connector, ()), key=lambda key: key.raw):
        record = store.records[key.raw]
        reason = _unfit(key, record)
        if reason is not None:
            left_out.append((record, reason))
        elif not is_nothing(record.value):
            other = found.get(key.identity)
            if other is not None:
                older = min(other[0], record, key=lambda each: each.timestamp_ms)
                left_out.append((older, codes.OTHER_SPELLING))
                record = other[0] if older is record else record
            found[key.identity] = (record, key)
    entries = [{"partition": key.partition, "offset": decode_value(record.value)} for record, key in found.values()]
    return RestBody(tuple(entries), tuple(left_out))


def _unfit(key: OffsetKey, record: Record) -> Code | None:
    if is_nothing(record.value):
        return None
    if key.partition is None:
        return codes.NULL_PARTITION
    try:
        parsed = decode_value(record.value)
    except UnparsableValueError:
        return codes.NOT_AN_OFFSET
    primitive = isinstance(parsed, dict) and not any(isinstance(member, dict | list) for member in parsed.values())
    return None if primitive else codes.NOT_AN_OFFSET
