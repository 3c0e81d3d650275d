"""A backup and its topics, read part by part: what `restore` and `verify` compare."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from eosctl.app import App
from eosctl.connectors.dedicated import DedicatedTopics
from eosctl.core.frozen import frozen
from eosctl.core.kept.record_lines import BackupEntry
from eosctl.core.record_file import UNKNOWN
from eosctl.core.records import Bounds, Record, TopicDescription
from eosctl.engine.backups.entries import ENTRIES, BackupEntries, entries_of, unlisted, without_absent
from eosctl.engine.backups.file import BackupFile, is_columnar, open_backup
from eosctl.engine.backups.lines import AT_ONCE
from eosctl.engine.columns import batch_of_rows
from eosctl.engine.planned import places_in
from eosctl.engine.reading.headers import headers_text
from eosctl.engine.reading.newest import all_records
from eosctl.engine.stores import ColumnStore
from eosctl.errors import InputFileError, RefusedError
from eosctl.machine.ahead import ahead
from eosctl.offsets.stores.columns import ColumnStores, by_parts, column_store, settled_columns
from eosctl.offsets.stores.gather import StoresOf, require_topics
from eosctl.offsets.stores.on_disk import spool_of, writing_to
from eosctl.ports import TopicStore
from eosctl.state.backups import read_backup, refuse_config

if TYPE_CHECKING:
    from eosctl.engine.columns import Batch, Table

T = TypeVar("T")


def read_entries(app: App, path: str) -> BackupEntries:
    """What a backup keeps; raises InputFileError, RefusedError for the backup of another cluster.

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
"""Some ENTRIES, and the clusters that they are of, as far as the file says."""


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
        there = None if offset == UNKNOWN else offset
        text = headers_text(headers) if headers else None
        rows.append((topic, partition, there, timestamp_ms, key, value, text, written, knows_written))
    return batch_of_rows(rows, ENTRIES)


@frozen
class BackupPart:
    """Some `entries` (ENTRIES), and what their topics have in these partitions: `records` (RECORDS, newest of each
    partition and key), and what open transactions hide, by topic."""

    entries: Table
    records: Table
    stores: dict[str, ColumnStore]
    hidden: list[Record]


def look_at_parts(
    app: App, entries: BackupEntries, look: Callable[[BackupPart], T], *, absent_topics: bool = False
) -> tuple[ColumnStores, list[T]]:
    """What `look` returns for each part, and the topics as they were when each partition was first looked at.

    With `absent_topics`, keys that had no record in topics that are not there are left out: a cut-off write had yet to
    create them. Raises NotFoundError for a topic that is gone.
    """
    with app.topics() as topics:
        there = topics.describe(sorted(entries.topics))

        def look_at(app: App, topics: TopicStore, table: Table) -> tuple[T, dict[str, tuple[Bounds, ...]]]:
            kept = without_absent(table, there) if absent_topics else table
            part, bounds = _read(app, topics, kept, there)
            return look(part), bounds

        parts = list(by_parts(app, entries.tables(), count=entries.count_parts(), doing="comparing", look=look_at))
        bounds = earliest(bounds for _found, bounds in parts)
        stores_found = StoresOf(
            cluster_id=topics.cluster_id(),
            global_topic=app.target.offset_topic,
            stores={topic: ColumnStore(topic, len(bounds[topic])) for topic in bounds},
            bounds=bounds,
            descriptions={topic: there[topic] for topic in bounds},
            dedicated=DedicatedTopics(),
        )
    return stores_found, [found for found, _bounds in parts]


def earliest(looks: Iterable[Mapping[str, tuple[Bounds, ...]]]) -> dict[str, tuple[Bounds, ...]]:
    """The smallest bounds of each partition, which are those of the first of several looks.

    With later ones, a record that came between two looks would count as seen where nobody has read it.
    """
    found: dict[str, tuple[Bounds, ...]] = {}
    for look in looks:
        for topic, bounds in look.items():
            pairs = zip(found.get(topic, bounds), bounds, strict=False)  # there may be more partitions meanwhile
            found[topic] = tuple(min(pair, key=lambda one: (one.lso, one.end)) for pair in pairs)
    return found


def _read(
    app: App, topics: TopicStore, entries: Table, there: Mapping[str, TopicDescription]
) -> tuple[BackupPart, dict[str, tuple[Bounds, ...]]]:
    """What the topics have of some entries, and their bounds when they were read."""
    wanted = places_in(entries)
    require_topics(sorted(wanted), there)
    reads, stores, hidden = [], {}, list[Record]()
    for topic, partitions in sorted(wanted.items()):
        read, behind = settled_columns(app, topics, topic, partitions=partitions, bare=True)
        stores[topic] = column_store(read, behind)
        reads.append(read)
        hidden += behind
    part = BackupPart(entries, all_records(reads), stores, hidden)
    return part, {read.topic: read.bounds for read in reads}
