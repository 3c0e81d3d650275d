"""The work of a migration on one part of its keys, in a task, and the backup of the records that it will replace.

All records of the part's keys are in the files of the part. Rows never pass through the JVM: a task reads files, writes
files and returns counts.

The records to be replaced are the columns of a backup for `offsets restore`. The driver makes it, a few rows at a time,
from files that tasks have left: people can copy one file, and making it from columns takes less time than starting
tasks for it and joining what they wrote.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eosctl.core.offsets.migration import Comparison, MigrationPlan, PlannedTopic, topic_of, writers_of
from eosctl.core.offsets.views import KeyAction
from eosctl.core.records import UNKNOWN, Place, Record
from eosctl.engine import compare
from eosctl.engine.backups.file import few_at_once
from eosctl.engine.columns import NO_BYTES, SENT, VALUES, dictionary_of, filter_rows, one_array, row_numbers
from eosctl.engine.files import part_file, part_files, read_part, read_table, tables_in, write_table
from eosctl.engine.keys import places_of
from eosctl.engine.reading.heads import headers_texts
from eosctl.engine.rule import claims_of, decide, is_sent, newest_per_key, newest_per_place, sent, strongest, wanted
from eosctl.engine.write import batches_to, placed, write_by_place
from eosctl.errors import StalePlanError
from eosctl.machine.files import sync_directory, sync_file, write_whole

SAMPLE = 100
_WRITERS = "writers.json"
_MANY = 20_000
"""Decisions above which not all are sorted for a sample."""
_SENT = ("topic", "partition", "partitions", "key", "hash", "value")


class DecidedPart(Struct, frozen=True):
    """The decisions on a part, counted.

    `rows` is the number of source records. `keys` counts the source's keys by topic and connector, None for no
    connector; `scattered` of them are on several partitions. `groups` are (connector, action, keys, claims, conflicts).
    """

    rows: int
    scattered: int
    keys: Mapping[tuple[str, str | None], int]
    groups: tuple[tuple[str, str, int, int, int], ...]


def decide_part(folder: Path, number: int, plan: MigrationPlan) -> DecidedPart:
    """Apply the rule to one part, write its decisions and the first of them to show, and count."""
    source = read_part(folder / "source", number)
    newest = newest_per_key(source)
    given = given_by(plan.sources, newest.records)
    claims = claims_of(given, plan.routes, sources=[topic.name for topic in plan.sources])
    there = newest_per_key(wanted(read_part(folder / "target", number), claims)).records
    sizes = {topic.name: topic.partitions for topic in plan.targets}
    decisions = decide(strongest(claims, plan.policy), there, sizes, plan.policy)
    land_decisions(folder / "decisions", number, decisions, parts=len(plan.parts))
    write_table(part_file(folder / "sample", number), sample_of(decisions, SAMPLE))
    keys = {(topic, connector): count for topic, connector, count in _owners(newest.records)}
    return DecidedPart(len(source), newest.scattered, keys, tuple(_groups(decisions)))


def _owners(records: pa.Table) -> Iterator[tuple[str, str | None, int]]:
    """Yield (topic, connector, number of records)."""
    found = records.group_by(["topic", "connector"]).aggregate([([], "count_all")])
    yield from zip(*(found[name].to_pylist() for name in ("topic", "connector", "count_all")), strict=True)


def given_by(sources: Sequence[PlannedTopic], records: pa.Table) -> pa.Table:
    """Return the RECORDS that the sources give: of a connector's own topic, only its own offsets."""
    if all(topic.connectors is None for topic in sources):
        return records
    source_of, found = {topic.name: topic for topic in sources}, [each[:2] for each in _owners(records)]
    others = [f"{name}\n{owner}" for name, owner in found if owner is not None and not source_of[name].gives(owner)]
    if not others:
        return records
    of_rows = pc.binary_join_element_wise(records["topic"], records["connector"], "\n")
    return records.filter(pc.invert(pc.is_in(of_rows, value_set=pa.array(others, pa.string()))))


def _groups(decisions: pa.Table) -> Iterator[tuple[str, str, int, int, int]]:
    by = ["connector", "action"]
    found = decisions.group_by(by).aggregate([([], "count_all"), ("claims", "sum"), ("conflict", "sum")])
    names = [*by, "count_all", "claims_sum", "conflict_sum"]
    yield from zip(*(found[name].to_pylist() for name in names), strict=True)


def sample_of(decisions: pa.Table, limit: int) -> pa.Table:
    """Return the first decisions: changes and conflicts first, then by topic and key."""
    kept = one_array(pc.equal(decisions["action"], KeyAction.KEEP.value))
    rows = decisions.select(["topic", "key", "target_connector"]).append_column("row", row_numbers(len(decisions)))
    changes = _first(filter_rows(rows, pc.invert(kept)), limit)
    rest = _first(filter_rows(rows, kept), limit - len(changes))
    return decisions.take(pa.concat_arrays([changes, rest]))


def _first(rows: pa.Table, limit: int) -> pa.Array:
    """Return the numbers of the first rows, by topic and key."""
    if len(rows) > _MANY:
        rows = _of_first_connectors(rows, limit)
    return one_array(compare.first_rows(rows, ["topic", "key"], limit)["row"])


def _of_first_connectors(rows: pa.Table, limit: int) -> pa.Table:
    """Return the rows of the first connectors, by topic and name, that have `limit` rows together.

    Keys begin with the connector's name.
    """
    counts = rows.group_by(["topic", "target_connector"]).aggregate([([], "count_all")])
    names, found = list[str](), 0
    for _topic, name, count in sorted(zip(*(column.to_pylist() for column in counts.columns), strict=True)):
        if found < limit:
            names, found = [*names, name], found + count
    return rows.filter(pc.is_in(rows["target_connector"], value_set=pa.array(names, pa.string())))


def land_decisions(folder: Path, number: int, decisions: pa.Table, *, parts: int) -> None:
    """Write the decisions of one of `parts` parts, or some of them, so that they outlast a power cut."""
    file = part_file(folder, number)
    write_by_place(file, decisions, with_topic_names(placed(decisions)), readers=parts)
    _sync(file)


def _sync(file: Path) -> None:
    sync_file(file)
    sync_directory(file.parent)


def decisions_of(folder: Path, number: int) -> pa.Table:
    """Read the decisions of a part."""
    return read_table(part_file(folder / "decisions", number))


def count_decisions(folder: Path) -> int:
    """Count the keys that were decided."""
    return sum(len(read_table(file, ["action"])) for file in part_files(folder / "decisions"))


def some_decisions(file: Path, columns: Sequence[str], *, batches: Sequence[int] | None = None) -> Iterator[pa.Table]:
    """Yield some columns of decisions, of all batches or some, some rows at a time.

    Raises StalePlanError for decisions of an earlier version of eosctl, which lack a column.
    """
    try:
        yield from tables_in(file, columns, batches=batches)
    except KeyError as exc:
        raise StalePlanError(
            f"the plan was made by another version of eosctl: its decisions have no {', '.join(exc.args)}",
            hint="Plan again.",
        ) from exc


def land_stale(folder: Path, number: int) -> int:
    """Write the live copies on other partitions of keys that will be sent, and return their number."""
    there = newest_per_place(read_part(folder / "target", number))
    copies = compare.stale_copies(there, decisions_of(folder, number))
    write_table(part_file(folder / "stale", number), copies)
    return len(copies)


def _now(folder: Path, number: int, again: Path, *, side: str = "target") -> pa.Table:
    """Read a side's present RECORDS, without the tombstones that the plan has put over copies in the target."""
    part, stale = read_part(again, number), part_file(folder / "stale", number)
    if side == "source" or not stale.exists():
        return part
    return compare.without_cleaned(part, read_table(stale))


def foreign_connectors(folder: Path, number: int, drift: Path, plan: MigrationPlan, *, side: str) -> list[str]:
    """Return the connectors that have offsets in `drift`; on the target, records of the plan itself do not count."""
    found = _now(folder, number, drift, side=side)
    found = compare.foreign(found, decisions_of(folder, number)) if side == "target" else given_by(plan.sources, found)
    names: list[str] = pc.unique(found["connector"]).drop_null().to_pylist()
    return names


def land_newer(folder: Path, number: int, drift: Path, into: Path) -> int:
    """Write the target's records of keys that will be sent, from `drift`, and return their number.

    Records that the plan has written itself are left out.
    """
    places = newest_per_place(_now(folder, number, drift))
    newer = compare.foreign(places, decisions_of(folder, number), claimed=True)
    file = part_file(into, number)
    write_table(file, newer)
    _sync(file)  # --resume needs it, also after a power cut
    return len(newer)


def records_of(rows: pa.Table) -> Iterator[Record]:
    """Yield RECORDS as records, under the names that topics have on their cluster."""
    names = ("topic", "partition", "offset", "timestamp_ms", "key", "value")
    for batch in rows.select(names).to_batches(max_chunksize=10_000):
        for topic, *rest in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield Record(topic_of(topic), *rest)


def land_unwritten(folder: Path, number: int, again: Path, into: Path) -> int:
    """Write the decisions that the target does not have yet, and return their number."""
    now = newest_per_key(_now(folder, number, again)).records
    missing = compare.unwritten(decisions_of(folder, number), now)
    land_decisions(into, number, missing, parts=len(part_files(folder / "decisions")))
    return len(missing)


def compare_part(folder: Path, number: int, again: Path, *, side: str, since: bool, limit: int) -> Comparison:
    """Compare a side's present records with the decisions."""
    decisions, stale = decisions_of(folder, number), part_file(folder / "stale", number)
    has_stale = side == "target" and stale.exists()
    now = newest_per_key(_now(folder, number, again, side=side)).records
    if has_stale:
        there = newest_per_key(read_part(again, number)).records
        now = compare.with_younger_tombstones(now, there, read_table(stale), decisions)
    expect = compare.expected_in_target if side == "target" else compare.expected_in_source
    found = compare.compare(expect(decisions), now, side=side, limit=limit, since=since)
    if not has_stale:
        return found
    places = newest_per_place(read_part(again, number))
    return united([found, compare.uncleaned(places, read_table(stale), decisions, limit=limit)], limit=limit)


def united(comparisons: list[Comparison], *, limit: int) -> Comparison:
    """Return several comparisons as one."""
    mismatches = sorted((each for one in comparisons for each in one.mismatches), key=lambda one: (one.topic, one.key))
    return Comparison(
        sum(one.compared for one in comparisons),
        sum(one.differing for one in comparisons),
        tuple(mismatches[:limit]),
    )


def to_write(file: Path, places: Collection[Place] | None = None) -> pa.Table:
    """Return the records that decisions send; only those to `places`, if given.

    Columns: topic (by its name on its cluster), partition, key, value.
    """
    batches = None if places is None else batches_to(file, places)
    some = some_decisions(file, [*_SENT, "action"], batches=batches)
    return pa.concat_tables(_sent_of(rows, places) for rows in some)


def _sent_of(decisions: pa.Table, places: Collection[Place] | None) -> pa.Table:
    rows, goes = with_topic_names(placed(decisions)), is_sent(decisions)
    return filter_rows(rows, goes if places is None else pc.and_(goes, _go_to(rows, places)))


def _go_to(rows: pa.Table, places: Collection[Place]) -> pa.Array:
    """Tell for each row whether it goes to one of these partitions."""
    first = {topic: number << 32 for number, topic in enumerate({topic for topic, _partition in places})}
    firsts = dictionary_of(one_array(rows["topic"]), first, pa.int64())
    numbers = pc.add(firsts, one_array(rows["partition"]).cast(pa.int64()))
    return pc.is_in(numbers, value_set=pa.array([first[topic] + partition for topic, partition in places], pa.int64()))


def keep_writers(decisions: Path, plan: MigrationPlan) -> None:
    """Write into a file which partitions each task writes alone, if any: tasks read it."""
    text = json.dumps(writers_of(plan))
    write_whole(decisions / _WRITERS, lambda draft: draft.write(text.encode()), synced=False)


def rows_of_writer(decisions: Path, number: int) -> pa.Table:
    """Return the rows that the task of that number sends."""
    alone = _writers(decisions)
    if alone is None:
        return to_write(part_file(decisions, number))
    places = {(topic, partition) for topic, partition in alone[number]}
    return pa.concat_tables(to_write(file, places) for file in part_files(decisions))


def rows_sent(decisions: Path, places: Collection[Place]) -> Iterator[pa.Table]:
    """Yield the rows sent to these partitions, by task; all together if tasks write partitions alone."""
    rows = (some for file in part_files(decisions) if len(some := to_write(file, places)))
    if _writers(decisions) is None:
        yield from rows
    else:
        yield pa.concat_tables([SENT.empty_table().drop_columns("headers"), *rows])


def _writers(decisions: Path) -> list[list[tuple[str, int]]] | None:
    found: list[list[tuple[str, int]]] | None = json.loads((decisions / _WRITERS).read_text())
    return found


def with_topic_names(rows: pa.Table) -> pa.Table:
    """Return `rows` with the names that their topics have on their cluster."""
    names = {name: topic_of(name) for name in pc.unique(rows["topic"]).to_pylist()}
    if all(name == topic for name, topic in names.items()):
        return rows
    topics = dictionary_of(one_array(rows["topic"]), names, pa.string())
    return rows.set_column(rows.column_names.index("topic"), "topic", topics)


def land_in_order(decisions: Path, number: int, into: Path) -> None:
    """Write what decisions send, by key, for a target that is a file."""
    write_table(part_file(into, number), to_write(part_file(decisions, number)).sort_by("key"))


_COLUMNS = (
    *("action", "topic", "key", "hash", "value", "partition", "partitions"),
    *("target_exists", "target_offset", "target_timestamp_ms", "target_headers", "before"),
)
_THERE = ("offset", "timestamp_ms", "value")


def replaced(snapshot: Path) -> Iterator[pa.Table]:
    """Yield the target's present record of each decision that sends something, then the copies that are deleted.

    A few rows at a time. `written` is what replaces a record. A key that the target does not have is a tombstone on the
    partition where it will be written: writing that undoes the migration. Topics have the names that they have on their
    cluster.
    """
    for file in part_files(snapshot / "decisions"):
        decisions = map(sent, chain.from_iterable(map(few_at_once, some_decisions(file, _COLUMNS))))
        yield from _as_it_is_now(snapshot, file, map(of_decisions, decisions))
    for file in part_files(snapshot / "stale"):
        yield from _as_it_is_now(snapshot, file, map(_of_copies, few_at_once(read_table(file))))


def _as_it_is_now(snapshot: Path, part: Path, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    newer = [read_table(folder / part.name) for folder in newer_folders(snapshot)]
    for rows in tables:
        for there in newer:
            rows = _with_newer(rows, there)
        yield with_topic_names(rows)


def newer_folders(snapshot: Path) -> list[Path]:
    """Return the folders of records that runs of a plan were allowed to write over, in the order of the runs.

    They hold RECORDS of the target, by parts.
    """
    return sorted(snapshot.glob("newer-*"))


def of_decisions(rows: pa.Table) -> pa.Table:
    """Return the target's record for each decision, from when it was made, with `written`, the value to replace it."""
    exists, unknown = rows["target_exists"], pa.scalar(UNKNOWN, pa.int64())
    return pa.table(
        {
            "topic": rows["topic"],
            "partition": placed(rows)["partition"],
            "key": rows["key"],
            "offset": pc.if_else(exists, rows["target_offset"], unknown),
            "timestamp_ms": pc.if_else(exists, rows["target_timestamp_ms"], unknown),
            "value": pc.if_else(exists, rows["before"], NO_BYTES),
            "headers": headers_texts(rows["target_headers"]),
            "written": rows["value"],
        }
    )


def _of_copies(records: pa.Table) -> pa.Table:
    """Return RECORDS that get tombstones, with the same columns."""
    columns = {name: records[name] for name in ("topic", "partition", "key", *_THERE)}
    columns |= {"headers": headers_texts(records["headers"]), "written": pa.nulls(len(records), VALUES)}
    return pa.table(columns)


def _with_newer(rows: pa.Table, newer: pa.Table) -> pa.Table:
    """Replace rows with the present records of their places, if `newer` (RECORDS, each place once) has them."""
    there = places_of(rows, newer)
    found, is_there = newer.take(there), pc.is_valid(there)
    found = found.set_column(found.column_names.index("headers"), "headers", headers_texts(found["headers"]))
    for name in (*_THERE, "headers"):
        column = pc.if_else(is_there, found[name], rows[name])
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows
