"""Offsets seen across stores: what each has for a key, what a task would get, how two differ, and what a merge writes.

A store is an offsets topic: `global` is the worker's, `dedicated` the connector's own. The rule for one key is
`decision.decide`, as for the bulk migration, which gives the same result on the same stores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique

from eosctl.core.offsets.decision import Cell, KeyAction, Policy, decide
from eosctl.core.offsets.murmur2 import partition_for
from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.offsets.records import IgnoredKey, KeyFault, OffsetKey, decode_key, is_nothing
from eosctl.core.records import Headers, Record, TopicRead


@unique
class Flag(StrEnum):
    """What is remarkable about a key."""

    DELETED = "deleted"
    DUPLICATE_SPELLING = "duplicate_spelling"
    NULL_PARTITION = "null_partition"
    SEVERAL_PARTITIONS = "several_partitions"
    WRONG_PARTITION = "wrong_partition"
    HIDDEN = "hidden_behind_open_transaction"
    CONNECTOR_GONE = "connector_gone"


@unique
class DiffStatus(StrEnum):
    """How the left and the right store compare for a key; a tombstone against no record is `same`.

    `hidden`: an open transaction in one of them hides a record of the key, so nothing is claimed of it.
    """

    SAME = "same"
    ONLY_LEFT = "only_left"
    ONLY_RIGHT = "only_right"
    DIFFERS = "differs"
    DELETED_LEFT = "deleted_left"
    DELETED_RIGHT = "deleted_right"
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class IgnoredOffsetRecord:
    """A record under a key that Connect ignores."""

    record: Record
    fault: KeyFault


@dataclass(frozen=True, slots=True)
class Store:
    """An offsets topic folded to the newest record per key.

    `partitions` is the topic's partition count; `records` has those under keys that Connect ignores too, which are
    in `ignored`, and in no connector's keys; `connectors` has the keys of each; `several` has, for keys on more than
    one partition, the newest record of each; `blocked` are the partitions where an open transaction hides what comes
    behind it, `hidden` what that is, committed or not: by key and partition, and as `hidden_keys` by connector.
    """

    topic: str
    partitions: int
    records: Mapping[bytes, Record] = field(default_factory=dict)
    connectors: Mapping[str, Sequence[OffsetKey]] = field(default_factory=dict)
    ignored: Sequence[IgnoredOffsetRecord] = ()
    several: Mapping[bytes, Mapping[int, Record]] = field(default_factory=dict)
    blocked: frozenset[int] = frozenset()
    hidden: Mapping[bytes, Mapping[int, Record]] = field(default_factory=dict)
    hidden_keys: Mapping[str, Sequence[OffsetKey]] = field(default_factory=dict)

    def names(self) -> set[str]:
        """The connectors that have an offset here, also where an open transaction hides it."""
        return {*self.connectors, *self.hidden_keys}

    def home(self, key: bytes) -> int:
        """The partition where Connect's own producer puts `key`."""
        return partition_for(key, self.partitions)

    def at(self, key: bytes, partition: int) -> Record | None:
        """The newest record of `key` on one partition."""
        if key in self.several:
            return self.several[key].get(partition)
        record = self.records.get(key)
        return record if record is not None and record.partition == partition else None

    def hides(self, key: bytes) -> bool:
        """Whether an open transaction hides a record of `key`: what it will be is not decided, or can't be seen yet."""
        return key in self.hidden

    def hides_of(self, connector: str) -> list[bytes]:
        """The keys of `connector` that an open transaction hides a record of, whether one is shown or not."""
        return [key.raw for key in self.hidden_keys.get(connector, ())]


def fold_store(read: TopicRead, behind: Iterable[Record] = ()) -> Store:
    """The newest record per key; `behind` is what lies behind open transactions (`TopicStore.read_behind`).

    Within a partition the offset decides. Across partitions Kafka keeps no order and a worker takes what it happens
    to read last, so the timestamp decides here, then the home partition; such keys are in `several`.
    """
    connectors: dict[str, list[OffsetKey]] = defaultdict(list)
    ignored: list[IgnoredOffsetRecord] = []
    faults: dict[bytes | None, KeyFault] = {}
    places: dict[bytes, dict[int, Record]] = {}
    for record in read.records:
        if record.key is None or record.key not in places:
            key = decode_key(record.key)
            if isinstance(key, IgnoredKey):
                faults[record.key] = key.fault
            else:
                connectors[key.connector].append(key)
        if record.key in faults:
            ignored.append(IgnoredOffsetRecord(record, faults[record.key]))
        if record.key is not None:
            places.setdefault(record.key, {})[record.partition] = record
    newest = {raw: _newest(raw, found, len(read.bounds)) for raw, found in places.items()}
    several = {raw: found for raw, found in places.items() if len(found) > 1}
    blocked = frozenset(bound.partition for bound in read.blocked())
    hidden, of_hidden = _fold_hidden(behind)
    return Store(
        read.topic, len(read.bounds), newest, dict(connectors), tuple(ignored), several, blocked, hidden, of_hidden
    )


def _fold_hidden(behind: Iterable[Record]) -> tuple[dict[bytes, dict[int, Record]], dict[str, list[OffsetKey]]]:
    """`hidden` and `hidden_keys` of a Store."""
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


def _newest(raw: bytes, found: Mapping[int, Record], partitions: int) -> Record:
    """Of several partitions' records the youngest; of two as old, the one at home: repairs write both at once."""
    if len(found) == 1:
        return next(iter(found.values()))
    home = partition_for(raw, partitions)
    return max(
        found.values(), key=lambda each: (each.timestamp_ms, each.partition == home, each.offset, each.partition)
    )


@dataclass(frozen=True, slots=True)
class OffsetView:
    """One key of one connector: the newest record of each store that has one, and what a task would be given.

    `documented`: the dedicated store's value, else the global one's (KIP-618). `runtime`: what Kafka 3.3 to 4.3 do: a
    connector with a dedicated store gets what that has, and nothing else (`ConnectorOffsetBackingStore.get`).
    A tombstone is nothing in both.
    """

    key: OffsetKey
    cells: Mapping[str, Record | None]
    documented: Record | None
    runtime: Record | None
    flags: tuple[Flag, ...]


def offset_views(
    stores: Mapping[str, Store], connector: str, *, dedicated_in_use: bool, gone: bool = False
) -> list[OffsetView]:
    """One view per key of `connector`, ordered by key bytes; `stores` has `global`, and `dedicated` if there is one.

    A key that only open transactions hide has a view too, with nothing in it but its flag. `gone`: Connect has no
    connector of that name any more.
    """
    there = {key.raw: key for key in connector_keys(stores.values(), connector)}
    hidden = {key.raw: key for store in stores.values() for key in store.hidden_keys.get(connector, ())}
    keys = [key for _raw, key in sorted({**hidden, **there}.items())]
    doubled, more = _duplicate_spellings(keys), (Flag.CONNECTOR_GONE,) if gone else ()
    views = [_view(key, stores, dedicated_in_use=dedicated_in_use, doubled=key.identity in doubled) for key in keys]
    return [replace(view, flags=(*view.flags, *more)) for view in views] if more else views


def connector_keys(stores: Iterable[Store], connector: str) -> list[OffsetKey]:
    """The keys of `connector` in any of `stores`, ordered by their bytes."""
    keys = {key.raw: key for store in stores for key in store.connectors.get(connector, ())}
    return [key for _raw, key in sorted(keys.items())]


def _duplicate_spellings(keys: Iterable[OffsetKey]) -> set[str]:
    spellings: dict[str, set[bytes]] = defaultdict(set)
    for key in keys:
        spellings[key.identity].add(key.raw)
    return {identity for identity, raws in spellings.items() if len(raws) > 1}


def _view(key: OffsetKey, stores: Mapping[str, Store], *, dedicated_in_use: bool, doubled: bool) -> OffsetView:
    cells = {name: store.records.get(key.raw) for name, store in stores.items()}
    in_global, in_dedicated = live(cells.get(GLOBAL)), live(cells.get(DEDICATED))
    return OffsetView(
        key,
        cells,
        documented=in_dedicated or in_global,
        runtime=in_dedicated if dedicated_in_use else in_global,
        flags=tuple(_flags(key, stores, cells, doubled=doubled)),
    )


def live(record: Record | None) -> Record | None:
    """`record` if its value says anything."""
    return None if record is None or is_nothing(record.value) else record


def _flags(
    key: OffsetKey, stores: Mapping[str, Store], cells: Mapping[str, Record | None], *, doubled: bool
) -> Iterable[Flag]:
    there = [(stores[name], record) for name, record in cells.items() if record is not None]
    if any(live(record) is None for _store, record in there):
        yield Flag.DELETED
    if doubled:
        yield Flag.DUPLICATE_SPELLING
    if key.partition is None:
        yield Flag.NULL_PARTITION
    if any(key.raw in store.several for store, _record in there):
        yield Flag.SEVERAL_PARTITIONS
    if any(record.partition != store.home(key.raw) for store, record in there):
        yield Flag.WRONG_PARTITION
    if any(store.hides(key.raw) for store in stores.values()):
        yield Flag.HIDDEN


def diff_status(left: Record | None, right: Record | None) -> DiffStatus:
    """How two records of one key compare; values are compared as bytes."""
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
    """Whose value counts where both stores have one (`--prefer`)."""

    DEDICATED = "dedicated"
    GLOBAL = "global"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """What a plan does to one key of `topic`.

    `before` is the newest record of the key there, `replaces` the one on the `partition` that is written to: they
    differ where an older writer chose another partition. `after` is the value that the key has when the plan is done;
    None is a tombstone, or still nothing. `headers` go with a record that is put back as it was.
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
        """Topic, key and partition: no two writes of a plan have the same."""
        return (self.topic, self.key.raw, self.partition)

    def sends(self) -> bool:
        """Whether a record is written."""
        return self.action in (KeyAction.WRITE, KeyAction.DELETE)


def plan_merge(
    source: Store,
    target: Store,
    connector: str,
    *,
    into: str,
    prefer: Prefer = Prefer.DEDICATED,
    fallback: bool = False,
) -> list[PlannedWrite]:
    """What `target` (the `into` store) must be given to have, per key, what the preferred view of both has.

    `fallback` is for the two stores of one connector: there a deletion in one yields to a value in the other, as in
    `OffsetView.documented`; to `newest` deletions are facts like any other.

    Every key of `connector` in either store ends in exactly one action; ordered by key bytes. A key stays on the
    partition where the target has it: a record elsewhere would make two, of which a worker takes any.
    """
    policy, keys = _policy(into, prefer), connector_keys((source, target), connector)
    return [_planned(key, source, target, policy, fallback and policy is not Policy.NEWEST) for key in keys]


def _policy(into: str, prefer: Prefer) -> Policy:
    if prefer is Prefer.NEWEST:
        return Policy.NEWEST
    return Policy.KEEP_TARGET if prefer.value == into else Policy.TAKE_SOURCE


def _planned(key: OffsetKey, source: Store, target: Store, policy: Policy, fallback: bool) -> PlannedWrite:
    offered, there = source.records.get(key.raw), target.records.get(key.raw)
    decision = decide(_cell(offered), _cell(there), policy, fallback=fallback)
    value = there.value if there else None
    if decision.action in (KeyAction.WRITE, KeyAction.DELETE):
        value = offered.value if offered and decision.action is KeyAction.WRITE else None
    partition = there.partition if there else target.home(key.raw)
    return PlannedWrite(
        decision.action,
        decision.reason,
        key,
        target.topic,
        partition,
        before=there,
        after=value,
        replaces=target.at(key.raw, partition),
        conflict=decision.conflict,
    )


def _cell(record: Record | None) -> Cell | None:
    return None if record is None else Cell(record.value, record.timestamp_ms)
