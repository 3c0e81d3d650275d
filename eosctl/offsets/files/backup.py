"""Reads a backup and its topics part by part, for `restore` and `verify` to compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct, field

from eosctl.app import App
from eosctl.connectors.dedicated import DedicatedTopics
from eosctl.core.kept.record_lines import BackupEntry
from eosctl.core.offsets import codes as topic_codes
from eosctl.core.offsets.views import Store
from eosctl.core.records import UNKNOWN, Bounds, Record, TopicDescription
from eosctl.core.wording import counted
from eosctl.engine.backups.entries import (
    ENTRIES,
    BackupEntries,
    PresentRecords,
    count_away,
    entries_of,
    look_at,
    unlisted,
    without_absent,
)
from eosctl.engine.backups.file import AT_ONCE, BackupFile, is_columnar, open_backup
from eosctl.engine.columns import RECORDS, batch_of_rows, one_table
from eosctl.engine.planned import places_in
from eosctl.engine.reading.heads import headers_text
from eosctl.engine.reading.newest import TopicColumns, all_records
from eosctl.engine.rule import newest_per_key
from eosctl.errors import InputFileError, RefusedError
from eosctl.foreign import shell_word
from eosctl.machine.side_by_side import ahead
from eosctl.offsets.stores.columns import by_parts, read_stable_columns
from eosctl.offsets.stores.gather import OffsetStores, require_topics
from eosctl.offsets.stores.on_disk import spool_of, writing_to
from eosctl.ports import TopicReader
from eosctl.report import Problem
from eosctl.state.backups import read_backup, refuse_config

if TYPE_CHECKING:
    from eosctl.engine.columns import Batch, Table

T = TypeVar("T")


def read_entries(app: App, path: str) -> BackupEntries:
    """Read the entries of a backup; raise InputFileError, or RefusedError for the backup of another cluster.

    A file that can't be read is found before the brokers are asked.
    """
    pieces = _columns_of(open_backup(path)) if is_columnar(Path(path)) else _lines_of(read_backup(path))
    first = list(islice(pieces, 1))
    if not first:
        raise InputFileError(f"{path} holds no records", hint="Is it a backup that eosctl wrote?")
    with app.topics() as topics:
        here = topics.cluster_id()
    need = "A large backup is unpacked there, and needs some 300 bytes per key."
    with writing_to(spool_of(app), need=need) as spool:
        return BackupEntries(ahead(_of_this_cluster(path, chain(first, pieces), here)), spool)


Pieces = Iterator[tuple[set[str], "Batch"]]
"""Some ENTRIES, and the ids of their clusters, as far as the file has them."""


def _of_this_cluster(path: str, pieces: Pieces, here: str) -> Generator[Batch, None, None]:
    for clusters, batch in pieces:
        other = sorted(clusters - {here})
        if other:
            raise RefusedError(
                f"{path} is a backup of cluster {other[0]}, this is {here}; nothing was written",
                hint="Check -b, or name the profile of that cluster with -p.",
            )
        yield batch


def _columns_of(backup: BackupFile) -> Pieces:
    clusters = set() if backup.cluster_id is None else {backup.cluster_id}
    for batch in backup.batches():
        for key in unlisted(batch["key"]):
            refuse_config(key, name=str(backup.path))
        yield clusters, entries_of(batch)


def _lines_of(entries: Iterator[BackupEntry]) -> Pieces:
    while some := list(islice(entries, AT_ONCE)):
        yield {entry.cluster_id for entry in some if entry.cluster_id is not None}, _batch_of(some)


def _batch_of(entries: list[BackupEntry]) -> Batch:
    rows = []
    for (topic, partition, offset, timestamp_ms, key, value, headers), written, knows_written, _cluster_id in entries:
        known_offset = None if offset == UNKNOWN else offset
        text = headers_text(headers) if headers else None
        rows.append((topic, partition, known_offset, timestamp_ms, key, value, text, written, knows_written))
    return batch_of_rows(rows, ENTRIES)


Look = Callable[["Table", PresentRecords], T]
"""Compares some ENTRIES with the present records of their topics."""


class PartResults(Struct, Generic[T], frozen=True):
    """The results of `look` for each of the `parts`, and the topics as first read.

    `away` counts, by topic, the keys that the backup has on other partitions than Connect's producer chooses now.
    """

    stores: OffsetStores
    parts: Sequence[T]
    away: Mapping[str, int]


class _Read(Struct, frozen=True):
    """The records read for a part besides those of its entries.

    `others` are records of keys of the backup (or of keys with the same hash) on partitions where it does not have
    them; `hidden` are the records behind open transactions; `away` is as in `PartResults`.
    """

    others: Table
    hidden: Sequence[Record]
    bounds: Mapping[str, tuple[Bounds, ...]]
    away: Counter[str]


class _OutsideRecords(Struct, frozen=True):
    """The records on partitions where the backup does not have the keys (`elsewhere`), and those hidden there."""

    elsewhere: Table = field(default_factory=RECORDS.empty_table)
    hidden: Sequence[Record] = ()

    @classmethod
    def of(cls, entries: BackupEntries, reads: Iterable[_Read]) -> _OutsideRecords:
        """Combine the records of all reads."""
        others, hidden = [RECORDS.empty_table()], list[Record]()
        for read in reads:
            others.append(read.others)
            hidden += read.hidden
        return cls(newest_per_key(entries.among(one_table(others))).records, hidden)

    def is_nothing(self) -> bool:
        """Decide whether each part has seen all records of its keys."""
        return not len(self.elsewhere) and not self.hidden


def look_at_parts(app: App, entries: BackupEntries, look: Look[T], *, absent_topics: bool = False) -> PartResults[T]:
    """Compare each part of a backup with the topics, by `look`.

    A key is looked for on all partitions, not only on the backup's: if other parts have found records of a part's keys,
    all parts are read again. With `absent_topics`, keys that had no record in topics that are missing are left out: a
    cut-off write had yet to create these. Raises NotFoundError for a topic that is gone.
    """
    with app.topics() as topics:
        described = topics.describe(sorted(entries.partitions))

        def looks(outside: _OutsideRecords | None) -> list[tuple[T, _Read]]:
            def look_at_part(app: App, topics: TopicReader, table: Table) -> tuple[T, _Read]:
                kept = without_absent(table, described) if absent_topics else table
                return _look_at_entries(app, topics, entries, kept, described, outside, look)

            count = entries.count_parts()
            return list(by_parts(app, entries.tables(), count=count, doing="comparing", look=look_at_part))

        found = looks(_OutsideRecords() if entries.is_large() else None)
        bounds = [read.bounds for _found, read in found]
        if entries.is_large():
            outside = _OutsideRecords.of(entries, [read for _found, read in found])
            if not outside.is_nothing():
                found = looks(outside)
                bounds += [read.bounds for _found, read in found]
        seen = earliest(bounds)
        stores = OffsetStores(
            cluster_id=topics.cluster_id(),
            global_topic=app.target.offset_topic,
            stores={topic: Store(topic, len(seen[topic])) for topic in seen},
            bounds=seen,
            descriptions={topic: described[topic] for topic in seen},
            dedicated=DedicatedTopics(),
        )
    away = sum((read.away for _found, read in found), Counter[str]())
    return PartResults(stores, [part for part, _read in found], away)


def away_problems(found: PartResults[Any]) -> Iterator[Problem]:
    """Warn of each topic where the backup has keys on other partitions than Connect's producer chooses now."""
    for topic, count in sorted(found.away.items()):
        size = found.stores.descriptions[topic].partitions
        keys = counted(count, "key of the backup is", "keys of the backup are")
        yield Problem(
            topic_codes.WRONG_PARTITION,
            f"topic {topic} has {counted(size, 'partition')}, and {keys} on another than the one where Connect's "
            "producer puts it now: were partitions added since? Where the connector has written its own there are two",
            hint=f"`eosctl offsets lint --store {shell_word(topic)}` shows such keys and gives the repair.",
        ).as_warning()


def _look_at_entries(
    app: App,
    topics: TopicReader,
    entries: BackupEntries,
    kept: Table,
    described: Mapping[str, TopicDescription],
    outside: _OutsideRecords | None,
    look: Look[T],
) -> tuple[T, _Read]:
    """Return the result of `look` for some entries, and the read; `outside` is None if these are all entries."""
    wanted = places_in(kept)
    require_topics(sorted(wanted), described)
    reads, behind = list[TopicColumns](), list[Record]()
    for topic, partitions in sorted(wanted.items()):
        if min(entries.partitions[topic]) in partitions:  # partitions of no part are read with the first part
            partitions |= set(range(described[topic].partitions)) - entries.partitions[topic]
        read, hides = read_stable_columns(app, topics, topic, partitions=partitions, bare=True)
        reads.append(read)
        behind += hides
    of_entries, others = look_at(kept, all_records(reads))
    bounds = {read.topic: read.bounds for read in reads}
    sizes = {topic: len(of_topic) for topic, of_topic in bounds.items()}
    this = _Read(entries.possibly(others), behind, bounds, count_away(kept, sizes))
    if outside is None:
        outside = _OutsideRecords.of(entries, [this])
    places = {(record.topic, record.partition, record.offset): record for record in (*behind, *outside.hidden)}
    return look(kept, PresentRecords(of_entries, outside.elsewhere, list(places.values()))), this


def earliest(looks: Iterable[Mapping[str, tuple[Bounds, ...]]]) -> dict[str, tuple[Bounds, ...]]:
    """Return the smallest bounds of each partition, which are those of its first read.

    With later ones, a record that arrived between two reads would count as seen, though neither has read it.
    """
    found: dict[str, tuple[Bounds, ...]] = {}
    for look in looks:
        for topic, bounds in look.items():
            pairs = zip(found.get(topic, bounds), bounds, strict=False)  # there may be more partitions meanwhile
            found[topic] = tuple(min(pair, key=lambda one: (one.lso, one.end)) for pair in pairs)
    return found
