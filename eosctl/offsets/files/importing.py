"""`offsets import`: writes the offsets of a file to one store; planned, backed up and read back like every write."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from heapq import nsmallest
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct

from eosctl.app import App
from eosctl.connectors.dedicated import DedicatedTopics
from eosctl.core.allowances import NOTHING_WAIVED, Allowances
from eosctl.core.offsets import codes as topic_codes
from eosctl.core.offsets.names import FILE_PREFIX, is_file
from eosctl.core.offsets.views import KeyAction, Store, fold_store
from eosctl.core.records import UNKNOWN, NewTopic, Record, TopicDescription, TopicRead
from eosctl.core.wording import counted
from eosctl.engine.backups.entries import unlisted
from eosctl.engine.backups.file import is_columnar, open_backup
from eosctl.engine.files import Grouped, SpillFile, spilled_if_several
from eosctl.engine.incoming import (
    Superseded,
    beyond,
    by_home,
    elsewhere,
    ignored_faults,
    imported,
    newest_incoming,
    of_backup,
    with_partitions,
)
from eosctl.engine.planned import PlannedWrites
from eosctl.engine.stores import ColumnStore, as_columns
from eosctl.errors import InputFileError, NotFoundError
from eosctl.foreign import shell_word
from eosctl.offsets import codes
from eosctl.offsets import codes as offset_codes
from eosctl.offsets.files.export import store_topic
from eosctl.offsets.files.offsets_file import BACKUP, BODY, OffsetsFile, of_tables, parse_offsets_file, spelled
from eosctl.offsets.stores.gather import AwayStore, OffsetStores, read_store
from eosctl.offsets.stores.on_disk import spool_of, writing_to
from eosctl.offsets.stores.own import refuse_unfit_targets
from eosctl.offsets.write_rows import IMPORT
from eosctl.offsets.writes import OffsetWritePlan, refuse_hidden_keys
from eosctl.report import Problem
from eosctl.state.backups import refuse_config

if TYPE_CHECKING:
    from eosctl.engine.columns import Table

STDIN = "-"
_MOST_SHOWN = 3
_NEED = "A large import needs up to five times the size of the file there."


class ImportRequest(Struct, frozen=True):
    """The records to write, and the store; `keep_partitions` puts each record on its partition in the file.

    `rewrite` writes equal records too.
    """

    file: OffsetsFile
    store: str
    connectors: tuple[str, ...] = ()
    keep_partitions: bool = False
    rewrite: bool = False
    allowances: Allowances = NOTHING_WAIVED


def read_offsets_file(
    app: App, path: str, *, stdin: BinaryIO, connectors: Sequence[str] = (), body_of: str | None = None
) -> OffsetsFile:
    """Read the offsets in a file, `-` is `stdin`; raise InputFileError that names file and line.

    `body_of` is the connector of a KIP-875 body, which does not name it, whoever's records are read. Offsets of a large
    file wait on the disk. Raises EosctlError if they do not fit there.
    """
    name, source = ("stdin", None) if path == STDIN else (path, Path(path).expanduser())
    with writing_to(spool_of(app), need=_NEED) as spool:
        if source is not None and is_columnar(source):
            file = of_tables(_backup_tables(source), spool, name=name, connectors=connectors, places=BACKUP)
        else:
            lines = _lines(path, source, stdin)
            file = parse_offsets_file(lines, spool, name=name, connectors=connectors, body_of=body_of)
    for table in file.tables():
        for key in unlisted(table["key"]):
            refuse_config(key, name=name)
    if not any(map(len, file.pieces)) and not file.keyless:
        whose = f" of {', '.join(connectors)}" if connectors else ""
        raise InputFileError(f"{name} holds no offsets{whose}", hint="`eosctl offsets export` writes such files.")
    return file


def file_stores(app: App, names: Iterable[str], connectors: Sequence[str]) -> dict[str, AwayStore]:
    """Read those of the stores `names` that are files, as `read_offsets_file` does."""
    found = {}
    for name in dict.fromkeys(filter(is_file, names)):
        path = name.removeprefix(FILE_PREFIX)
        file = read_offsets_file(app, path, stdin=io.BytesIO(), connectors=connectors)
        tables = (table.select(["partition", "offset", "timestamp_ms", "key", "value"]) for table in file.tables())
        rows = [row for table in tables for row in zip(*(each.to_pylist() for each in table.columns), strict=True)]
        records = tuple(Record(name, *row) for row in sorted(rows, key=itemgetter(0, 1)))
        read = TopicRead(name, (), records, len(records), partition_for=_no_home)
        found[name] = AwayStore("", fold_store(read), (), tuple(file.cautions))
    return found


def _no_home(_key: bytes, _partitions: int) -> int:
    """Return no partition: how many the topic of a file's records has is not known."""
    return UNKNOWN


def _lines(path: str, source: Path | None, stdin: BinaryIO) -> Iterator[bytes]:
    try:
        with nullcontext(stdin) if source is None else source.open("rb") as content:
            yield from content
    except OSError as exc:
        raise InputFileError(f"cannot read {path}: {exc.strerror or exc}", hint="Check the path.") from exc


def _backup_tables(path: Path) -> Iterator[Table]:
    first = 1
    for batch in open_backup(path).batches():
        yield of_backup(batch, first=first)
        first += batch.num_rows


def plan_offsets_import(app: App, request: ImportRequest) -> OffsetWritePlan:
    """Read the store and decide per key; plan to create a missing topic like the global one.

    Raises InputFileError, NotFoundError, UsageError for an ambiguous store, RefusedError if an open transaction may
    hide offsets in the store.
    """
    found, topic = _gather(app, request)
    with writing_to(spool_of(app), need=_NEED) as spool:
        planned = plan_import(
            request.file, as_columns(found.stores[topic]), spool, keep=request.keep_partitions, rewrite=request.rewrite
        )
    if hidden := found.stores[topic].hidden:
        refuse_hidden_keys(app, topic, hidden, planned.keys())
    creates: tuple[NewTopic, ...] = ()
    if topic not in found.descriptions and planned.writes.sends():
        like = found.descriptions[found.global_topic]
        creates = (NewTopic(topic, like.partitions, like.replication_factor),)
    return OffsetWritePlan(
        kinds=IMPORT,
        writes=planned.writes,
        creates=creates,
        found=found,
        allowances=request.allowances,
        problems=tuple(import_problems(request.file, planned)),
    )


class ImportPlan(Struct, frozen=True):
    """One write per key and partition; how many records are `superseded` by newer ones, and the `first` of these."""

    writes: PlannedWrites
    superseded: int
    first: Sequence[Superseded]

    def keys(self) -> Iterator[bytes]:
        """Yield the keys of all records, to be written or unchanged."""
        return (key for table in self.writes.tables() for key in table["key"].to_pylist())


def plan_import(
    file: OffsetsFile, store: ColumnStore, spool: SpillFile, *, keep: bool = False, rewrite: bool = False
) -> ImportPlan:
    """Plan the writes that `store` needs to hold the file's offsets: one per key, or with `keep` per key and partition.

    The partition is the one that the file records. Raises InputFileError for a recorded partition that the topic lacks,
    RefusedError for an ambiguous key, OSError if many writes can't be put into `spool`.
    """
    file = spelled(file, store)
    placed = (with_partitions(table, store.partitions, keep=keep) for table in file.tables())
    parts = Grouped(_checked(file, placed, store), spool, by=["home"], in_order=by_home)
    superseded, first = 0, list[Superseded]()

    def decided() -> Iterator[Table]:
        nonlocal superseded, first
        for table in parts.tables():
            newest, lost, first_lost = newest_incoming(table, most=_MOST_SHOWN)
            superseded, first = superseded + lost, nsmallest(_MOST_SHOWN, [*first, *first_lost])
            yield imported(newest, store, keep=keep, rewrite=rewrite)

    writes = PlannedWrites(spilled_if_several(decided(), spool))
    return ImportPlan(writes, superseded, first)


def _checked(file: OffsetsFile, tables: Iterable[Table], store: ColumnStore) -> Iterator[Table]:
    for placed in tables:
        for line, partition in beyond(placed, store.partitions):
            raise InputFileError(
                f"{file.place(line)}: there is no partition {partition}: topic {store.topic} has "
                f"{counted(store.partitions, 'partition')}",
                hint="Without --keep-partitions each record goes where Connect's producer puts its key.",
            )
        yield placed


def _gather(app: App, request: ImportRequest) -> tuple[OffsetStores, str]:
    with app.topics() as topics:
        topic, global_topic = store_topic(app, topics, request.store, request.connectors), app.target.offset_topic
        refuse_unfit_targets(app, topics, [topic])
        descriptions = dict(topics.describe([topic]))
        if topic not in descriptions:
            descriptions |= topics.describe([global_topic])
        if topic in descriptions:
            store, bounds = read_store(app, topics, topic)
        else:
            store, bounds = Store(topic, _like_global(topic, global_topic, descriptions).partitions), ()
        found = OffsetStores(
            cluster_id=topics.cluster_id(),
            global_topic=global_topic,
            stores={topic: store},
            bounds={topic: bounds},
            descriptions=descriptions,
            dedicated=DedicatedTopics(),
        )
    return found, topic


def _like_global(topic: str, global_topic: str, descriptions: dict[str, TopicDescription]) -> TopicDescription:
    if global_topic not in descriptions:
        raise NotFoundError(
            f"there is no topic {topic}, and no global offsets topic {global_topic} to make it like",
            hint="Name the worker's offset.storage.topic with --offset-topic, or create the topic (compacted) first.",
        )
    return descriptions[global_topic]


def import_problems(file: OffsetsFile, planned: ImportPlan) -> Iterable[Problem]:
    """Yield the warnings of writing a file's records into a store."""
    yield from (Problem(topic_codes.MAY_BE_ABORTED, each) for each in file.cautions)
    yield from _keyless(file)
    yield from _ignored(planned.writes)
    yield from _superseded(file, planned)
    yield from _over_newer(planned.writes)
    yield from _deletions(file, planned.writes)
    yield from _elsewhere(planned.writes)


def _keyless(file: OffsetsFile) -> Iterator[Problem]:
    if file.keyless:
        message = f"{counted(file.keyless, 'record')} of {file.name} without a key"
        yield Problem(codes.NO_KEY, f"{message}: a compacted topic takes none; they are not imported")


def _ignored(writes: PlannedWrites) -> Iterator[Problem]:
    faults = Counter(fault for table in writes.tables() for fault in ignored_faults(table))
    if faults:
        message = f"{faults.total()} of the keys are such that Connect ignores them ({', '.join(sorted(faults))})"
        yield Problem(offset_codes.IGNORED_KEYS, f"{message}; they are written as they are")


def _superseded(file: OffsetsFile, planned: ImportPlan) -> Iterator[Problem]:
    for lost in planned.first:
        message = f"{file.place(lost.line)} is not written: {file.place(lost.by)} is newer and falls on the same key"
        yield Problem(codes.SUPERSEDED, message)
    if planned.superseded > len(planned.first):
        records = counted(planned.superseded, "record is", "records are")
        yield Problem(codes.SUPERSEDED, f"{records} not written in all, as newer ones fall on the same keys")


def _over_newer(writes: PlannedWrites) -> Iterator[Problem]:
    older = writes.reasons["over_newer"]
    if older:
        newer = counted(older, "offset of the store is", "offsets of the store are")
        over = "it" if older == 1 else "them"
        yield Problem(codes.OVER_NEWER, f"{newer} newer than what the file puts over {over}")


def _deletions(file: OffsetsFile, writes: PlannedWrites) -> Iterator[Problem]:
    deletions = writes.actions[KeyAction.DELETE]
    if deletions and file.places == BODY:
        message = f"{counted(deletions, 'offset is', 'offsets are')} null in the file and will be deleted"
        hint = "A worker's GET also answers null for offsets that it can't find under REST's spelling of the key."
        yield Problem(codes.DELETES, message, hint)


def _elsewhere(writes: PlannedWrites) -> Iterator[Problem]:
    """Warn of keys that the topic has on another partition, too."""
    count, first = 0, list[tuple[int, int]]()
    for table in writes.tables():
        more, places = elsewhere(table, _MOST_SHOWN - len(first))
        count, first = count + more, [*first, *places]
    for before, partition in first:
        message = (
            f"topic {writes.topics[0]} has a key on partition {before} too, its new record goes to {partition}: a "
            "worker takes the one that it happens to read last"
        )
        yield Problem(topic_codes.SEVERAL_PARTITIONS, message, _repair(writes.topics[0])).as_warning()
    if count > len(first):
        message = f"topic {writes.topics[0]} has {count:,} such keys in all, which are then on two partitions"
        yield Problem(topic_codes.SEVERAL_PARTITIONS, message, _repair(writes.topics[0])).as_warning()


def _repair(topic: str) -> str:
    return f"`eosctl offsets lint --store {shell_word(topic)}` gives the repair."
