"""Offsets seen across stores: a key's record in each, the offset that a task would get, and differences of stores.

A store is an offsets topic: `global` is the worker's, `dedicated` the connector's own.

The module also has the words in which `eosctl.engine.rule` states the decision about a key and the key's differences
from that decision.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum, unique

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.offsets.names import DEDICATED, GLOBAL, Partitioner, partition_for
from eosctl.core.offsets.records import IgnoredKey, KeyFault, OffsetKey, decode_key, duplicate_spellings, is_nothing
from eosctl.core.records import Headers, Record, TopicRead


@unique
class Policy(StrEnum):
    """The side that wins where source and target disagree (`--conflict`)."""

    KEEP_TARGET = "keep-target"
    TAKE_SOURCE = "take-source"
    NEWEST = "newest"
    FAIL = "fail"


@unique
class KeyAction(StrEnum):
    """The planned change to a key of the target."""

    WRITE = "write"
    DELETE = "delete"
    KEEP = "keep"
    CONFLICT = "conflict"


@unique
class KeyMismatch(StrEnum):
    """The difference between a key and its expected state.

    No record, a deletion, a value where none is expected, another value, or the value of a record that was there before
    the write.
    """

    MISSING = "missing"
    DELETED = "deleted"
    UNEXPECTED = "unexpected"
    DIFFERS = "differs"
    NOT_REWRITTEN = "not_rewritten"


def mismatch(expected: bytes | None, actual: bytes | None, *, found: bool) -> KeyMismatch:
    """Classify the difference between a key and its `expected` value.

    None is no value; `found` is whether there is a record.
    """
    if not found:
        return KeyMismatch.MISSING
    if actual is None:
        return KeyMismatch.DELETED
    return KeyMismatch.UNEXPECTED if expected is None else KeyMismatch.DIFFERS


@unique
class Flag(StrEnum):
    """A peculiarity of a key that rows point out."""

    DELETED = "deleted"
    DUPLICATE_SPELLING = "duplicate_spelling"
    NULL_PARTITION = "null_partition"
    SEVERAL_PARTITIONS = "several_partitions"
    WRONG_PARTITION = "wrong_partition"
    HIDDEN = "hidden_behind_open_transaction"
    CONNECTOR_GONE = "connector_gone"


@unique
class DiffStatus(StrEnum):
    """The result of comparing the left and the right store for a key; a tombstone and no record are the `same`.

    `hidden`: an open transaction in one of them hides a record of the key, so nothing is claimed about it.
    """

    SAME = "same"
    ONLY_LEFT = "only_left"
    ONLY_RIGHT = "only_right"
    DIFFERS = "differs"
    DELETED_LEFT = "deleted_left"
    DELETED_RIGHT = "deleted_right"
    HIDDEN = "hidden"


class IgnoredOffsetRecord(Struct, frozen=True):
    """A record under a key that Connect ignores."""

    record: Record
    fault: KeyFault


Hidden = Mapping[bytes, Mapping[int, Record]]
"""The records behind open transactions, committed or not, by key and partition."""


class AnyStore(Struct, frozen=True):
    """An offsets topic, and the records that open transactions hide in it.

    `partitions` is the topic's partition count; `blocked` are the partitions where an open transaction hides the
    records behind it, and `hidden` has these records, committed or not: by key and partition, and as `hidden_keys` by
    connector. `ignored` are the records under keys that Connect ignores.
    """

    topic: str
    partitions: int
    blocked: frozenset[int] = frozenset()
    hidden: Hidden = {}
    hidden_keys: Mapping[str, Sequence[OffsetKey]] = {}
    ignored: Sequence[IgnoredOffsetRecord] = ()
    partition_for: Partitioner = partition_for

    def shown(self) -> set[str]:
        """Return the connectors whose offsets are visible."""
        raise NotImplementedError

    def of(self, connector: str) -> Store:
        """Return a Store that has at least the rows of one connector."""
        raise NotImplementedError

    def names(self) -> set[str]:
        """Return the connectors that have an offset here, including one that an open transaction hides."""
        return self.shown() | set(self.hidden_keys)

    def home(self, key: bytes) -> int:
        """Return the partition that Connect's own producer chooses for `key`."""
        return self.partition_for(key, self.partitions)

    def hides(self, key: bytes) -> bool:
        """Return whether an open transaction hides a record of `key`.

        Then its value is undecided, or not visible yet.
        """
        return key in self.hidden

    def hides_of(self, connector: str) -> list[bytes]:
        """Return the keys of `connector` of which an open transaction hides a record.

        An older record may be visible or not.
        """
        return [key.raw for key in self.hidden_keys.get(connector, ())]


class Store(AnyStore, frozen=True):
    """An offsets topic folded to the newest record per key.

    `records` has those under keys that Connect ignores too, which are in no connector's keys; `connectors` has the keys
    of each; `several` has, for keys on more than one partition, the newest record on each partition.
    """

    records: Mapping[bytes, Record] = {}
    connectors: Mapping[str, Sequence[OffsetKey]] = {}
    several: Mapping[bytes, Mapping[int, Record]] = {}

    def shown(self) -> set[str]:
        """Return the connectors whose offsets are visible."""
        return set(self.connectors)

    def of(self, connector: str) -> Store:  # noqa: ARG002 - it has those of all as rows
        """Return this Store, which has the rows of all connectors."""
        return self

    def at(self, key: bytes, partition: int) -> Record | None:
        """Return the newest record of `key` on one partition."""
        if key in self.several:
            return self.several[key].get(partition)
        record = self.records.get(key)
        return record if record is not None and record.partition == partition else None


def fold_store(read: TopicRead, behind: Iterable[Record] = ()) -> Store:
    """Fold records to the newest one per key; `behind` are those behind open transactions (`TopicReader.read_behind`).

    Within a partition the offset decides. Across partitions Kafka keeps no order and a worker uses the record that it
    happens to read last, so here the timestamp decides, then the home partition; such keys are in `several`.
    """
    connectors: dict[str, list[OffsetKey]] = defaultdict(list)
    ignored: list[IgnoredOffsetRecord] = []
    faults: dict[bytes | None, KeyFault] = {}
    newest: dict[bytes, Record] = {}
    several: dict[bytes, dict[int, Record]] = {}
    for record in read.records:
        raw = record[4]
        former = None if raw is None else newest.get(raw)
        if former is None:
            key = decode_key(raw)
            if isinstance(key, IgnoredKey):
                faults[raw] = key.fault
            else:
                connectors[key.connector].append(key)
        if raw in faults:
            ignored.append(IgnoredOffsetRecord(record, faults[raw]))
        if raw is None:
            continue
        newest[raw] = record
        if former is not None and (raw in several or former[1] != record[1]):
            several.setdefault(raw, {former[1]: former})[record[1]] = record
    newest |= {raw: _newest(raw, found, read) for raw, found in several.items()}
    blocked = frozenset(bound.partition for bound in read.blocked())
    hidden, of_hidden = fold_hidden(behind)
    return Store(
        read.topic, len(read.bounds), blocked, hidden, of_hidden, tuple(ignored), read.partition_for,
        records=newest, connectors=dict(connectors), several=several,
    )  # fmt: skip


def fold_hidden(behind: Iterable[Record]) -> tuple[dict[bytes, dict[int, Record]], dict[str, list[OffsetKey]]]:
    """Return `hidden` and `hidden_keys` of a Store."""
    hidden: dict[bytes, dict[int, Record]] = defaultdict(dict)
    for record in behind:
        if record.key is not None:
            hidden[record.key][record.partition] = record
    keys: dict[str, list[OffsetKey]] = defaultdict(list)
    for raw in hidden:
        key = decode_key(raw)
        if isinstance(key, OffsetKey):
            keys[key.connector].append(key)
    return dict(hidden), dict(keys)


def _newest(raw: bytes, found: Mapping[int, Record], read: TopicRead) -> Record:
    """Return the newest of a key's records on several partitions.

    Of two equally old ones it is the one on the home partition: repairs write both at once.
    """
    home = read.partition_for(raw, len(read.bounds))
    return max(
        found.values(), key=lambda each: (each.timestamp_ms, each.partition == home, each.offset, each.partition)
    )


class OffsetView(Struct, frozen=True):
    """One key of one connector: the newest record of each store that has one, and the offset that a task would get.

    `documented`: the dedicated store's value, else the global one's (KIP-618). `runtime`: the behaviour of Kafka 3.3 to
    4.3: a connector with a dedicated store gets its value there, and nothing else (`ConnectorOffsetBackingStore.get`).
    A tombstone counts as no value in both.
    """

    key: OffsetKey
    cells: Mapping[str, Record | None]
    documented: Record | None
    runtime: Record | None
    flags: tuple[Flag, ...]


class OffsetViews(Struct, frozen=True):
    """The views of one connector, ordered by key bytes; each is made on demand: there may be millions.

    `stores` has `global`, and `dedicated` if there is one. `doubled` are the identities with two spellings. `gone`:
    Connect no longer has a connector of that name.
    """

    stores: Mapping[str, Store]
    keys: Sequence[OffsetKey]
    doubled: frozenset[str]
    dedicated_in_use: bool
    gone: bool

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[OffsetView]:
        doubled, stores = self.doubled, list(self.stores.values())
        more = (Flag.CONNECTOR_GONE,) if self.gone else ()
        for key in self.keys:
            cells = {name: store.records.get(key.raw) for name, store in self.stores.items()}
            flags = tuple(_flags(key, stores, list(cells.values()), doubled=bool(doubled) and key.identity in doubled))
            documented, runtime = self._effective(cells.get(GLOBAL), cells.get(DEDICATED))
            yield OffsetView(key, cells, documented, runtime, flags + more)

    def _effective(self, in_global: Record | None, in_dedicated: Record | None) -> tuple[Record | None, Record | None]:
        """Return the offset that takes effect, as documented and at runtime."""
        if in_global is not None and is_nothing(in_global.value):
            in_global = None
        if in_dedicated is not None and is_nothing(in_dedicated.value):
            in_dedicated = None
        return in_dedicated or in_global, in_dedicated if self.dedicated_in_use else in_global

    def of(self, identities: Collection[str]) -> OffsetViews:
        """Return the views of the keys with these identities."""
        return replace(self, keys=[key for key in self.keys if key.identity in identities])

    @property
    def connector(self) -> str:
        """The connector of all the views; there is at least one view."""
        return self.keys[0].connector

    def unseen_at_runtime(self) -> int:
        """Count the views whose `documented` offset is not the `runtime` one."""
        return sum(documented is not runtime for documented, runtime in self.effective())

    def is_live(self) -> bool:
        """Return whether any offset takes effect."""
        return any(documented for documented, _runtime in self.effective())

    def effective(self) -> Iterator[tuple[Record | None, Record | None]]:
        """Yield `documented` and `runtime` of each view, without making the views."""
        nothing: Mapping[bytes, Record] = {}
        in_global, in_dedicated = (
            self.stores[name].records if name in self.stores else nothing for name in (GLOBAL, DEDICATED)
        )
        return (self._effective(in_global.get(key.raw), in_dedicated.get(key.raw)) for key in self.keys)


def offset_views(
    stores: Mapping[str, Store],
    connector: str,
    *,
    dedicated_in_use: bool,
    gone: bool = False,
    only: Collection[str] = (),
) -> OffsetViews:
    """Return one view per key of `connector`; `stores` has `global`, and `dedicated` if there is one.

    A key that only open transactions hide has a view too, with nothing in it but its flag. With `only`, the views are
    limited to keys of which one of these stores has a record.
    """
    visible = {key.raw: key for key in connector_keys(stores.values(), connector)}
    hidden = {key.raw: key for store in stores.values() for key in store.hidden_keys.get(connector, ())}
    keys = [key for _raw, key in sorted({**hidden, **visible}.items())] if hidden else list(visible.values())
    doubled = duplicate_spellings(keys)
    if only:
        wanted = [stores[name].records for name in only if name in stores]
        keys = [key for key in keys if any(key.raw in records for records in wanted)]
    return OffsetViews(stores, keys, doubled, dedicated_in_use, gone)


def connector_keys(stores: Iterable[Store], connector: str) -> list[OffsetKey]:
    """Return the keys of `connector` in any of `stores`, ordered by their bytes."""
    keys = {key.raw: key for store in stores for key in store.connectors.get(connector, ())}
    return [keys[raw] for raw in sorted(keys)]


def live(record: Record | None) -> Record | None:
    """Return `record` if its value is an offset, else None."""
    return None if record is None or is_nothing(record.value) else record


def _flags(key: OffsetKey, stores: Sequence[Store], cells: Sequence[Record | None], *, doubled: bool) -> Iterator[Flag]:
    """Yield the flags of a key; `cells` has the record of each of `stores`, or None."""
    raw, found = key.raw, [(store, cell) for store, cell in zip(stores, cells, strict=True) if cell is not None]
    for _store, cell in found:
        if is_nothing(cell.value):
            yield Flag.DELETED
            break
    if doubled:
        yield Flag.DUPLICATE_SPELLING
    if key.partition is None:
        yield Flag.NULL_PARTITION
    for store, _cell in found:
        if raw in store.several:
            yield Flag.SEVERAL_PARTITIONS
            break
    for store, cell in found:
        if cell[1] != store.home(raw):
            yield Flag.WRONG_PARTITION
            break
    for store in stores:
        if raw in store.hidden:
            yield Flag.HIDDEN
            break


def diff_status(left: Record | None, right: Record | None) -> DiffStatus:
    """Compare two records of one key; values are compared as bytes."""
    on_left, on_right = live(left), live(right)
    if on_left is None and on_right is None:
        return DiffStatus.SAME
    if on_left is None:
        return DiffStatus.ONLY_RIGHT if left is None else DiffStatus.DELETED_LEFT
    if on_right is None:
        return DiffStatus.ONLY_LEFT if right is None else DiffStatus.DELETED_RIGHT
    return DiffStatus.SAME if on_left.value == on_right.value else DiffStatus.DIFFERS


@unique
class Prefer(StrEnum):
    """The store that wins where both have a value (`--prefer`)."""

    DEDICATED = "dedicated"
    GLOBAL = "global"
    NEWEST = "newest"


class PlannedWrite(Struct, frozen=True):
    """A planned change to one key of `topic`.

    `before` is the newest record of the key there, `replaces` the one on the `partition` that is written to: they
    differ where an older writer chose another partition. `after` is the value that is sent to the partition, None a
    tombstone; where nothing is sent it is the key's current value. `headers` belong to a record that is restored
    unchanged.
    """

    action: KeyAction
    reason: str
    key: OffsetKey | IgnoredKey
    topic: str
    partition: int
    before: Record | None
    after: bytes | None
    replaces: Record | None = None
    conflict: bool = False
    headers: Headers = ()

    def place(self) -> tuple[str, bytes, int]:
        """Return topic, key and partition, which are unique within a plan."""
        return (self.topic, self.key.raw, self.partition)

    def sends(self) -> bool:
        """Return whether a record is written."""
        return self.action in (KeyAction.WRITE, KeyAction.DELETE)


def policy_of(into: str, prefer: Prefer) -> Policy:
    """Return the conflict policy of a merge into the store `into`."""
    if prefer is Prefer.NEWEST:
        return Policy.NEWEST
    return Policy.KEEP_TARGET if prefer.value == into else Policy.TAKE_SOURCE
