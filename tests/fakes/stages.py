"""The stages of a migration in plain Python, over topics in memory: what Spark does, without Spark.

The rule for a key is the project's own; what is read, kept, counted and written is computed from the fake topics.
tests/contract/test_migration_stages.py runs the same suite on it and on MigrationJob over a real broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from eosctl.core.offsets.migration import (
    ONE_PART,
    Comparison,
    DecidedKey,
    MigrationPlan,
    Mismatch,
    Parts,
    PlannedTopic,
    SentCounts,
    Snapshot,
    Tally,
    topic_of,
)
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.records import is_nothing, key_owner, renamed_key
from eosctl.core.offsets.views import KeyAction
from eosctl.core.records import UNKNOWN, OutRecord, Record, read_records, record_line
from eosctl.engine.columns import Table
from eosctl.errors import EosctlError
from eosctl.wire import error_codes as codes
from tests.fakes.decided_keys import (
    SENDS,
    Decided,
    Newest,
    Row,
    as_shown,
    backup_table,
    by_key,
    decided_keys,
    decisions_of,
    keep_rows,
    kept_rows,
    meaning_of,
    mismatch_of,
    newest_per_key,
    replaced,
    replaced_copy,
)
from tests.fakes.faults import Faults
from tests.fakes.topic_contents import PATIENCE
from tests.fakes.topics import FakeTopicStore


class FakeStages(Faults):
    """What is decided and read is kept in the snapshot's folder, as Spark keeps it.

    Besides the methods of MigrationStages, Faults knows `kept` (of the backup), `transaction` and `record` (of a
    write). What ends a write leaves its transaction open, as tasks do that are killed. `parallelism` and `worth_a_task`
    are how many tasks run at once, and how many records make one more worth it; `lost_records` are not in a backup.
    """

    def __init__(self, topics: FakeTopicStore, *, parallelism: int = 1, worth_a_task: int = 10_000) -> None:
        super().__init__()
        self._topics, self.parallelism, self._worth_a_task = topics, parallelism, worth_a_task
        self.lost_records = 0

    # -- reading and deciding

    def least_parts(self, records: int) -> int:
        return min(2 * self.parallelism, 1 + records // self._worth_a_task)

    def snapshot(
        self,
        topics: Sequence[PlannedTopic],
        folder: Path,
        *,
        parts: Parts = ONE_PART,
        renames: Mapping[str, str] | None = None,
    ) -> Snapshot:
        with self.call("snapshot", folder.name, tuple(topic.name for topic in topics), parts):
            rows = self._read(topics)
            keep_rows(folder, rows)
            owners = [owner.connector for row in rows if (owner := key_owner(row.key))]
            read = sum(1 for topic in topics for _record in self._records(topic))
            part_bytes = Counter[int]()
            for row in rows:
                part_bytes[_part_of(row.key, parts, renames or {})] += len(row.key or b"") + len(row.value or b"")
            return Snapshot(frozenset(owners), all(row.at_home for row in rows), read, part_bytes)

    def decide(self, folder: Path, plan: MigrationPlan) -> Tally:
        with self.call("decide"):
            rows = kept_rows(folder / "source", Row)
            newest, there = newest_per_key(rows), newest_per_key(kept_rows(folder / "target", Row))
            decided = list(decided_keys(newest, there, plan))
            keep_rows(folder / "decisions", decided)
            places = Counter((row.topic, row.key) for row in rows)
            return Tally.of(
                ((one.connector, one.action, 1, one.claims, int(one.conflict)) for one in decided),
                records=sum(row.versions for row in rows),
                keys=((topic, (owner := key_owner(key)) and owner.connector, 1) for topic, key in newest),
                sources=plan.sources,
                routed={route.connector for route in plan.routes},
                scattered=sum(number > 1 for number in places.values()),
            )

    def find_stale(self, folder: Path) -> int:
        with self.call("find_stale"):
            stays = {
                (one.topic, one.key): one.there[0] for one in decisions_of(folder) if one.action in SENDS and one.there
            }
            found = [
                row
                for row in kept_rows(folder / "target", Row)
                if row.key is not None
                and meaning_of(row.value) is not None
                and stays.get((row.topic, row.key), row.partition) != row.partition
            ]
            keep_rows(folder / "stale", found)
            return len(found)

    def stale(self, folder: Path) -> Iterator[Record]:
        for row in kept_rows(folder / "stale", Row):
            yield Record(topic_of(row.topic), *row[1:6])

    def sample(self, folder: Path, *, limit: int = 100) -> list[DecidedKey]:
        with self.call("sample"):
            decided = sorted(decisions_of(folder), key=lambda one: (one.action == KeyAction.KEEP, one.topic, one.key))
            return [as_shown(one) for one in decided[:limit]]

    def backup(self, folder: Path, plan: MigrationPlan) -> Iterator[Table]:
        with self.call("backup"):
            newer = {
                (row.topic, row.partition, row.key): row
                for each in sorted(folder.glob("newer-*"))
                for row in kept_rows(each, Row)
            }
            stale = kept_rows(folder / "stale", Row) if (folder / "stale").exists() else []
            kept = [
                *(replaced(one, newer) for one in decisions_of(folder) if one.action in SENDS),
                *(replaced_copy(one, newer) for one in stale),
            ]
        for before, written in kept[self.lost_records :]:
            with self.call("kept", before):
                yield backup_table([(before, written)])

    def new_offsets(self, drift: Path, folder: Path, plan: MigrationPlan, *, side: str) -> list[str]:
        with self.call("new_offsets", side):
            ours = {(one.topic, one.key, one.value) for one in decisions_of(folder) if one.action in SENDS}
            ours = ours if side == "target" else set()
            there = _without_cleaned(kept_rows(drift, Row), folder) if side == "target" else kept_rows(drift, Row)
            rows = [row for row in there if (row.topic, row.key, meaning_of(row.value)) not in ours]
            gives = {topic.name: topic.gives for topic in plan.sources} if side == "source" else {}
            owners = ((row.topic, owner.connector) for row in rows if (owner := key_owner(row.key)))
            return sorted({owner for topic, owner in owners if topic not in gives or gives[topic](owner)})

    def newer(self, drift: Path, folder: Path) -> int:
        with self.call("newer"):
            sends = {(one.topic, one.key): one.value for one in decisions_of(folder) if one.action in SENDS}
            found = [
                row
                for row in _without_cleaned(kept_rows(drift, Row), folder)
                if row.key is not None
                and sends.get((row.topic, row.key), row.key) not in (row.key, meaning_of(row.value))
            ]
            if found:
                keep_rows(folder / f"newer-{len(list(folder.glob('newer-*')))}", found)
            return len(found)

    def compare(
        self,
        folder: Path,
        plan: MigrationPlan,
        topics: Sequence[PlannedTopic],
        *,
        side: str,
        since: bool = False,
        limit: int = 100,
    ) -> Comparison:
        with self.call("compare", side, since):
            rows, decided = self._read(topics), decisions_of(folder)
            now = newest_per_key(_without_cleaned(rows, folder) if side == "target" else rows)
            now |= _younger_tombstones(rows, decided, folder) if side == "target" else {}
            found = [wrong for one in decided if (wrong := mismatch_of(one, now, side=side, since=since)) is not None]
            found += _uncleaned(rows, decided, folder) if side == "target" else []
            shown = sorted(found, key=lambda wrong: (wrong.topic, wrong.key))
            return Comparison(len(decided), len(found), tuple(shown[:limit]))

    # -- writing

    def write_tasks(self, plan: MigrationPlan) -> int:
        return len(plan.parts)

    def unwritten(self, folder: Path, plan: MigrationPlan, targets: Sequence[PlannedTopic], into: Path) -> int:
        with self.call("unwritten"):
            now, nothing = newest_per_key(_without_cleaned(self._read(targets), folder)), object()
            missing = [
                one
                for one in decisions_of(folder)
                if one.action in SENDS
                and one.value != (meaning_of(row.value) if (row := now.get((one.topic, one.key))) else nothing)
            ]
            keep_rows(into, missing)
            return len(missing)

    def write(
        self, decisions: Path, plan: MigrationPlan, *, tasks: int, records: int, timestamp_ms: int | None = None
    ) -> SentCounts:
        with self.call("write", decisions.name, tasks):
            rows = [one for one in kept_rows(decisions, Decided) if one.action in SENDS]
            file = plan.target_file()
            if file is not None:
                return SentCounts({file: (_write_file(file, rows, plan), 0)})
            shares: dict[int, list[OutRecord]] = {}
            for one in rows:
                task = _part_of(one.key, plan.parts, {})
                assert task < tasks
                out = OutRecord(topic_of(one.topic), one.key, one.value, one.partition(), timestamp_ms)
                shares.setdefault(task, []).append(out)
            last_offsets: dict[tuple[str, int], int] = {}
            for task, mine in sorted(shares.items()):
                last_offsets |= self._transaction(f"{plan.transactional_id()}-{task}", mine)
            sent = Counter(out.topic for mine in shares.values() for out in mine)
            tombstones = Counter(out.topic for mine in shares.values() for out in mine if out.value is None)
            return SentCounts({name: (sent[name], tombstones[name]) for name in sent}, last_offsets, len(shares))

    def _transaction(self, transactional_id: str, records: Iterable[OutRecord]) -> dict[tuple[str, int], int]:
        """Answered, as a commit is, before its markers are written; the last offset in each partition."""
        state, producer = self._topics.state, self._take_id(transactional_id)
        last_offsets = {}
        with self.call("transaction", transactional_id):
            for record in records:
                with self.call("record", record):
                    assert record.partition is not None
                    offset = state.write_in(transactional_id, producer, record, record.partition)
                    if offset < 0:
                        raise EosctlError(f"writing failed: another producer took over {transactional_id}")
                    last_offsets[record.topic, record.partition] = offset
            if state.end_transaction(transactional_id, producer, commit=True) != codes.NONE:
                raise EosctlError(f"writing failed: another producer took over {transactional_id}")
        return last_offsets

    def _take_id(self, transactional_id: str) -> tuple[int, int]:
        for _ in range(PATIENCE):
            error, producer_id, epoch = self._topics.state.init_producer_id(transactional_id, 600_000)
            if error == codes.NONE:
                return producer_id, epoch
        raise EosctlError(f"writing failed: transactional id {transactional_id} could not be taken")

    def _read(self, topics: Sequence[PlannedTopic]) -> list[Row]:
        """The newest record per partition and key of topics up to their planned bounds, and of files."""
        newest: dict[tuple[str, int, bytes | None], Row] = {}
        for topic in topics:
            for record in self._records(topic):
                where = topic.name, record.partition, record.key
                at_home = record.key is not None and partition_for(record.key, topic.partitions) == record.partition
                before = newest.get(where)
                row = Row(topic.name, *record[1:6], at_home, 1 + (before.versions if before else 0))
                is_older = before is not None and record.offset < before.offset  # as in a file in any order
                newest[where] = before._replace(versions=row.versions) if before and is_older else row
        return list(newest.values())

    def _records(self, topic: PlannedTopic) -> Iterator[Record]:
        assert topic.profile is None, "the topics of one cluster only"
        if topic.file is not None:
            if topic.topic_id is not None:
                with open(topic.file, "rb") as file:
                    for place, record in enumerate(read_records(file, name=topic.file)):
                        yield record._replace(offset=place if record.offset == UNKNOWN else record.offset)
            return
        read = {one.partition: range(one.begin, one.lso) for one in topic.bounds}
        if any(read.values()):
            found = self._topics.read(topic.topic).records
            yield from (record for record in found if record.offset in read.get(record.partition, ()))


def _stale_places(folder: Path) -> set[tuple[str, int, bytes | None]]:
    """Where copies were that the plan puts tombstones over."""
    rows = kept_rows(folder / "stale", Row) if (folder / "stale").exists() else []
    return {(row.topic, row.partition, row.key) for row in rows}


def _without_cleaned(rows: Iterable[Row], folder: Path) -> list[Row]:
    """The rows of a target without those tombstones."""
    cleaned = _stale_places(folder)
    return [row for row in rows if not is_nothing(row.value) or (row.topic, row.partition, row.key) not in cleaned]


def _younger_tombstones(rows: Iterable[Row], decided: Iterable[Decided], folder: Path) -> Newest:
    """Those tombstones that are younger than a value that was written, for whoever goes by time."""
    places = _stale_places(folder)
    written = {(one.topic, one.key) for one in decided if one.action in SENDS and one.value is not None}
    return {
        key: row
        for key, row in newest_per_key(rows).items()
        if is_nothing(row.value) and (row.topic, row.partition, row.key) in places and key in written
    }


def _uncleaned(rows: Iterable[Row], decided: Iterable[Decided], folder: Path) -> list[Mismatch]:
    """The copies that are there still."""
    places, owners = _stale_places(folder), {(one.topic, one.key): one.connector for one in decided}
    return [
        Mismatch("target", "unexpected", owners[row.topic, row.key], row.topic, row.partition, row.key, None, row.value)
        for row in rows
        if row.key is not None and not is_nothing(row.value) and (row.topic, row.partition, row.key) in places
    ]


def _part_of(key: bytes | None, parts: Parts, renames: Mapping[str, str]) -> int:
    """Each key is in one part: that of the place where it will be."""
    owner = key_owner(key)
    if key is not None and owner is not None and owner.connector in renames:
        key = renamed_key(key, owner, renames[owner.connector])
    place = 0 if key is None else partition_for(key, sum(map(len, parts)))
    (number,) = (number for number, part in enumerate(parts) if place in part)
    return number


def _write_file(file: str, rows: Iterable[Decided], plan: MigrationPlan) -> int:
    topic = next((source.topic for source in plan.sources if source.file is None), "connect-offsets")
    records = [Record(topic, one.partition(), UNKNOWN, UNKNOWN, one.key, one.value) for one in sorted(rows, key=by_key)]
    Path(file).write_text("".join(f"{record_line(record)}\n" for record in records), encoding="utf-8")
    return len(records)
