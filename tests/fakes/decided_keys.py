"""What the fake stages of a migration keep of each record and key, and the rule for one, in plain Python."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from eosctl.core.offsets.migration import ConnectorRoute, DecidedKey, MigrationPlan, Mismatch, topic_of
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.records import is_nothing, key_owner, renamed_key
from eosctl.core.offsets.views import KeyAction, mismatch
from eosctl.core.records import UNKNOWN, Record
from eosctl.engine.backups.file import BACKUP
from eosctl.engine.columns import Table, batch_of_rows
from tests.fakes.decision import Cell, KeyClaim, decide_claims

SENDS = (KeyAction.WRITE, KeyAction.DELETE)


class Row(NamedTuple):
    """The newest record of a partition and key; `versions` are all that there were of it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    at_home: bool
    versions: int

    def cell(self) -> Cell:
        """What counts of it."""
        return Cell(self.value, self.timestamp_ms)


class Decided(NamedTuple):
    """What happens to a key of the target; `there` is its partition, offset and time, None where it is not there."""

    connector: str
    target_connector: str
    source: tuple[str, int, int]
    source_key: bytes
    value: bytes | None
    topic: str
    key: bytes
    partitions: int
    there: tuple[int, int, int] | None
    before: bytes | None
    action: str
    reason: str
    conflict: bool
    claims: int

    def partition(self) -> int:
        """Where it is sent."""
        return partition_for(self.key, self.partitions) if self.there is None else self.there[0]

    def expected(self) -> bytes | None:
        """What the target has afterwards."""
        return self.value if self.action in SENDS else meaning_of(self.before)


Newest = dict[tuple[str, bytes | None], Row]
Line = TypeVar("Line", bound=tuple[Any, ...])


def newest_per_key(rows: Iterable[Row]) -> Newest:
    """One of the rows of each key: between partitions the time says which is newer, then where Connect looks."""
    found: Newest = {}
    for row in sorted(rows, key=lambda row: (row.timestamp_ms, row.at_home, row.offset, row.partition)):
        found[row.topic, row.key] = row
    return found


def decided_keys(newest: Newest, there: Newest, plan: MigrationPlan) -> Iterator[Decided]:
    """What happens to each key that the source's records of routed connectors end on, by topic and key."""
    routes = {route.connector: route for route in plan.routes}
    precedence = {topic.name: place for place, topic in enumerate(plan.sources)}
    gives = {topic.name: topic.gives for topic in plan.sources}
    wanted: dict[tuple[str, bytes], list[tuple[KeyClaim, Row]]] = {}
    for row in newest.values():
        owner = key_owner(row.key)
        route = routes.get(owner.connector) if owner else None
        if owner is None or route is None or row.key is None or not gives[row.topic](owner.connector):
            continue
        renamed = route.target_connector != route.connector
        key = renamed_key(row.key, owner, route.target_connector) if renamed else row.key
        claim = KeyClaim(row.cell(), renamed, precedence[row.topic], route.connector)
        wanted.setdefault((route.target_topic, key), []).append((claim, row))
    sizes = {topic.name: topic.partitions for topic in plan.targets}
    for (topic, key), claims in sorted(wanted.items()):
        target = there.get((topic, key))
        claim, decision = decide_claims([each for each, _row in claims], target and target.cell(), plan.policy)
        (source,) = (row for each, row in claims if each is claim)
        assert source.key is not None
        yield Decided(
            connector=claim.connector,
            target_connector=routes[claim.connector].target_connector,
            source=(source.topic, source.partition, source.offset),
            source_key=source.key,
            value=claim.cell.meaning(),
            topic=topic,
            key=key,
            partitions=sizes[topic],
            there=target and (target.partition, target.offset, target.timestamp_ms),
            before=target and target.value,
            action=decision.action.value,
            reason=decision.reason,
            conflict=decision.conflict,
            claims=len(claims),
        )


def as_shown(one: Decided) -> DecidedKey:
    route = ConnectorRoute(one.connector, one.target_connector, one.topic)
    partition = None if one.there is None else one.there[0]
    return DecidedKey(
        route, one.source, one.key, one.action, one.reason, one.before, one.value, partition, one.partitions
    )


Places = Mapping[tuple[str, int, bytes | None], Row]


Replaced = tuple[Record, bytes | None]
"""A record, and what is put over it."""


def replaced(one: Decided, newer: Places) -> Replaced:
    """What the target has, and what replaces it; where it has nothing, a tombstone."""
    _partition, offset, timestamp_ms = one.there or (None, UNKNOWN, UNKNOWN)
    before = Row(one.topic, one.partition(), offset, timestamp_ms, one.key, one.before, at_home=True, versions=1)
    return _replaced(before, one.value, newer)


def replaced_copy(copy: Row, newer: Places) -> Replaced:
    """The same of a copy that gets a tombstone."""
    return _replaced(copy, None, newer)


def _replaced(before: Row, written: bytes | None, newer: Places) -> Replaced:
    row = newer.get((before.topic, before.partition, before.key), before)
    return Record(topic_of(row.topic), *row[1:6]), written


def backup_table(kept: Iterable[Replaced]) -> Table:
    """The columns of a backup."""
    rows = [(*record[:6], None, written) for record, written in kept]
    return pa.Table.from_batches([batch_of_rows(rows, BACKUP)])


def by_key(one: Decided) -> bytes:
    return one.key


def mismatch_of(one: Decided, now: Newest, *, side: str, since: bool = False) -> Mismatch | None:
    """How a side differs from what was decided; no record is as good as a tombstone.

    `since`: `now` is what came since the decisions, and a key of which nothing came has what it had.
    """
    topic, key = (one.topic, one.key) if side == "target" else (one.source[0], one.source_key)
    expected = one.expected() if side == "target" else one.value
    row = now.get((topic, key))
    actual = meaning_of(one.before if since and row is None else row and row.value)
    if actual == expected:
        return None
    status = mismatch(expected, actual, found=row is not None or actual is not None).value
    return Mismatch(side, status, one.connector, topic, row and row.partition, key, expected, actual)


def meaning_of(value: bytes | None) -> bytes | None:
    return None if is_nothing(value) else value


def decisions_of(folder: Path) -> list[Decided]:
    return kept_rows(folder / "decisions", Decided)


def keep_rows(folder: Path, rows: Iterable[tuple[Any, ...]]) -> None:
    """The rows in a file, and Spark's word that it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows").write_bytes(pickle.dumps([tuple(row) for row in rows]))
    (folder / "_SUCCESS").touch()


def kept_rows(folder: Path, kind: type[Line]) -> list[Line]:
    return [kind(*row) for row in pickle.loads((folder / "rows").read_bytes())]  # noqa: S301 - rows of our own
