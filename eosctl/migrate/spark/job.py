"""The stages of a migration on Spark; each writes into the snapshot folder before the next one starts.

Kafka is read once per stage and never twice within one: compaction may delete between two scans. Tasks bring records to
the parts of their keys, through files that all of them see, and then each part is one task's: Spark shuffles nothing,
and no SQL runs. The stages return plain values; `eosctl.migrate.plan` decides what they mean, and whether to go on.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from pyspark import SparkContext

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.offsets.migration import (
    ONE_PART,
    PART_RECORDS,
    Comparison,
    ConnectorRoute,
    DecidedKey,
    MigrationPlan,
    Parts,
    PlannedTopic,
    SentCounts,
    Snapshot,
    Tally,
    in_bins,
    in_runs,
)
from eosctl.core.records import UNKNOWN, Record
from eosctl.engine.columns import Table
from eosctl.engine.files import KeyParts, land, next_reader, older_in, part_files, read_table
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.engine.write import stamped
from eosctl.errors import UsageError
from eosctl.kafka.topics.bulk import Counts, write_in_bulk
from eosctl.machine.files import sync_directory
from eosctl.migrate.spark import parts as tasks_of
from eosctl.migrate.spark.files import folds_of, write_file
from eosctl.migrate.spark.parts import newer_folders, replaced
from eosctl.migrate.spark.snapshots import (
    RecordCounts,
    by_reason,
    fresh_folder,
    hosts_without,
    land_bins,
    run_tasks,
    sent_in_order,
)
from eosctl.migrate.spark.stages import EXECUTOR_PATIENCE_S, OnProgress, executors_of, watched_stage
from eosctl.state.work_folders import work_folder
from eosctl.target import Target

Outcome = TypeVar("Outcome")
Divide = Callable[[Iterable[tuple[int, OffsetRange]], int], list[list[OffsetRange]]]

_WORTH_A_TASK = 10_000
"""Records below which reading them takes less time than starting one more Python process."""


class MigrationJob(Struct, frozen=True):
    """The stages. `client` has the settings for the command's own cluster, `others` those for each profile.

    Tasks make their clients themselves. Secrets travel in task closures, never in the conf.
    """

    context: SparkContext
    client: ClientSettings | None
    on_progress: OnProgress = lambda _doing, _done, _total, _unit: None
    others: Mapping[str, ClientSettings] = {}
    executor_patience_s: float = EXECUTOR_PATIENCE_S

    def require_shared(self, folder: Path) -> None:
        """Raise UsageError unless every executor sees `folder` as this process does; a local Spark does.

        Executors come one after the other: where more of them have come meanwhile, all look again. On one that comes
        still later each task fails, as it finds no file there.
        """
        if str(self.context.master).startswith("local"):
            return
        apart, known = dict[str, str](), -1
        with self._stage("looking whether all executors share the snapshot folder"):
            while not apart and known < (known := executors_of(self.context)):
                apart = hosts_without(self.context, folder, tasks=2 * self.context.defaultParallelism)
        if apart:
            raise UsageError(
                f"{folder} {by_reason(apart)}, where executors run; nothing was read",
                hint="--snapshot-dir names a folder that this machine and all executors share, say on NFS. They "
                f"must run as user {os.geteuid()}, as eosctl does: the folders that it makes are their owner's alone.",
            )

    def least_parts(self, records: int) -> int:
        """Return how many parts of `records` records keep all cores busy, and none of them for long."""
        return min(2 * self.context.defaultParallelism, 1 + records // _WORTH_A_TASK)

    def snapshot(
        self,
        topics: Iterable[PlannedTopic],
        folder: Path,
        *,
        parts: Parts = ONE_PART,
        renames: Mapping[str, str] | None = None,
        bare: bool = False,
    ) -> Snapshot:
        """Read topics up to their planned bounds, and files, into `folder`: each key into its part.

        With `renames` the keys of these connectors are in the parts of their new names. `bare`: the connectors of the
        keys are not needed.
        """
        topics, places = list(topics), KeyParts(parts, renames or {})
        again, _, side = folder.name.rpartition("-")
        counts = _counts(folder, sum(topic.records() for topic in topics if topic.file is None))
        with self._stage(f"reading the {side}{' again' if again else ''}", counts):
            fresh_folder(folder)
            found = [self._land(topics, folder, profile, places, counts, bare=bare) for profile in _profiles(topics)]
            for topic in topics:
                if topic.file is not None and topic.topic_id is not None:
                    folds = folds_of(topic.file, topic.name, partitions=topic.partitions)
                    found.append(land(folder, next_reader(folder), folds, places))
            return Snapshot.united(found)

    def _land(
        self,
        topics: Sequence[PlannedTopic],
        folder: Path,
        profile: str,
        places: KeyParts,
        counts: RecordCounts,
        *,
        bare: bool,
    ) -> Snapshot:
        """Read the topics of the cluster of `profile`."""
        ranges = planned_ranges(topics, profile=profile)
        is_whole = {one.partitions for one in ranges} == {places.size()}
        some = by_parts(ranges, places.parts) if is_whole else in_tasks(ranges, self.least_parts(_records_in(ranges)))
        first = next_reader(folder)
        client = self._client(profile)
        return land_bins(self.context, client, some, folder, places, counts=counts, first=first, bare=bare)

    def _client(self, profile: str | None) -> ClientSettings:
        """Return how to reach a profile's cluster; raises UsageError if no cluster was named."""
        return self.others[profile] if profile else Target(client=self.client).require_client()

    def decide(self, folder: Path, plan: MigrationPlan) -> Tally:
        """Apply the rule to `folder`/source and `folder`/target, write `folder`/decisions, and count everything."""
        with self._stage("deciding per key"):
            fresh_folder(folder / "sample")
            fresh_folder(folder / "decisions")
            found = run_tasks(self.context, len(plan.parts), lambda number: tasks_of.decide_part(folder, number, plan))
            (folder / "decisions" / "_SUCCESS").touch()
            sync_directory(folder / "decisions")
        return Tally.of(
            chain.from_iterable(part.groups for part in found),
            records=older_in(folder / "source") + sum(part.rows for part in found),
            keys=((*owner, count) for part in found for owner, count in part.keys.items()),
            sources=plan.sources,
            routed=plan.connectors_of("source"),
            scattered=sum(part.scattered for part in found),
        )

    def find_stale(self, folder: Path) -> int:
        """Write `folder`/stale and return the number of its records.

        They are the live copies of keys that will be sent, on other partitions.
        """
        with self._stage("looking for copies on other partitions"):
            fresh_folder(folder / "stale")
            return sum(self._on_parts(folder, lambda number: tasks_of.land_stale(folder, number)))

    def stale(self, folder: Path) -> Iterator[Record]:
        """Yield the copies that `find_stale` has found."""
        for file in part_files(folder / "stale"):
            yield from tasks_of.records_of(read_table(file))

    def sample(self, folder: Path, *, limit: int = tasks_of.SAMPLE) -> list[DecidedKey]:
        """Return up to `limit` decisions to show: changes and conflicts first, then by topic and key."""
        rows = [row for file in part_files(folder / "sample") for row in read_table(file).to_pylist()]
        rows.sort(key=lambda row: (row["action"] == "keep", row["topic"], row["key"]))
        return [_decided_key(row) for row in rows[:limit]]

    def backup(self, folder: Path, plan: MigrationPlan) -> Iterator[Table]:
        """Yield the target's record of each key that will be sent, and what replaces it, as columns of a backup.

        That is the record at the time of planning, or a `newer` one; at the end come the copies that `stale` has.
        """
        done, total = 0, plan.tally.to_write() + plan.stale_copies
        for rows in replaced(folder):
            self.on_progress("making the backup", done, total, "records")
            yield rows
            done += len(rows)
        self.on_progress("making the backup", done, done, "records")

    def new_offsets(self, drift: Path, folder: Path, plan: MigrationPlan, *, side: str) -> list[str]:
        """Return the connectors that have offsets in the snapshot `drift`, sorted.

        On the target, records of the plan itself do not count; on a source, connectors that it gives no offsets of
        don't.
        """
        with self._stage(f"looking for new offsets in the {side}"):
            found = self._on_parts(
                folder, lambda number: tasks_of.foreign_connectors(folder, number, drift, plan, side=side)
            )
        return sorted({name for names in found for name in names})

    def newer(self, drift: Path, folder: Path) -> int:
        """Keep for the backup the records that the snapshot `drift` of the target has of keys that will be sent.

        Records that the plan has written itself are neither counted nor kept.
        """
        with self._stage("looking for new offsets in the target"):
            landed = fresh_folder(drift.with_name("newer"))
            count = sum(self._on_parts(folder, lambda number: tasks_of.land_newer(folder, number, drift, landed)))
        if count:
            landed.rename(folder / f"newer-{len(newer_folders(folder)):05}")
            sync_directory(folder)
        return count

    def write_tasks(self, plan: MigrationPlan) -> int:
        """Return the number of tasks, and so of transactional ids, of a write: the task of a part writes its keys."""
        return len(plan.parts)

    def unwritten(self, folder: Path, plan: MigrationPlan, targets: Sequence[PlannedTopic], into: Path) -> int:
        """Write `into` the decisions that `targets`, read up to now, do not have yet, and return their number."""
        again = into.with_name("resume-target")
        self.snapshot(targets, again, parts=plan.parts)
        with self._stage("looking for what is written already"):
            fresh_folder(into)
            return sum(self._on_parts(folder, lambda number: tasks_of.land_unwritten(folder, number, again, into)))

    def write(
        self, decisions: Path, plan: MigrationPlan, *, tasks: int, records: int, timestamp_ms: int | None = None
    ) -> SentCounts:
        """Send the `records` records of `decisions`, in transactions of one task per part, and count them.

        The `tasks` are those of the plan: no other transactional ids are used. A file is written whole. Without a
        timestamp the records have those of the machines that send them.
        """
        with self._stage("writing", counts := _counts(decisions, records)):
            file = plan.target_file()
            if file is not None:
                return SentCounts({file: (write_file(file, self._in_order(decisions, plan)), 0)})
            return _confirmed(run_tasks(self.context, tasks, self._writer(decisions, plan, counts, timestamp_ms)))

    def _writer(
        self, decisions: Path, plan: MigrationPlan, counts: RecordCounts, timestamp_ms: int | None
    ) -> Callable[[int], Counts]:
        """Return a function that writes a part in its task.

        Each task has a transactional id of its own: a retried one fences its predecessor.
        """
        client, name = self._client(plan.target_profile()), plan.transactional_id()
        tasks_of.keep_writers(decisions, plan)

        def write_part(number: int) -> Counts:
            rows = tasks_of.rows_of_writer(decisions, number)
            rows = rows if timestamp_ms is None else stamped(rows, timestamp_ms)
            return write_in_bulk(client, TransactionalId(f"{name}-{number}"), rows, progress=counts.of_task(number))

        return write_part

    def _in_order(self, decisions: Path, plan: MigrationPlan) -> Iterator[Record]:
        """Yield the records of a target that is a file, by key, with the topic and partition that they would have."""
        topic = next((topic.topic for topic in plan.sources if topic.file is None), "connect-offsets")
        with work_folder(decisions.parent, ".in-order-") as work:
            self._on_parts(decisions.parent, lambda number: tasks_of.land_in_order(decisions, number, work))
            for row in heapq.merge(*map(_keyed_rows, part_files(work))):
                key, partition, value = row
                yield Record(topic, partition, UNKNOWN, UNKNOWN, key, value)

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
        """Read `topics` again and compare them with the decisions; others may do so with the same plan meanwhile.

        `since`: within their bounds are only records since the plan was made.
        """
        with work_folder(folder, ".verify-") as work:
            sends = side == "target" and since and plan.target_file() is None
            if sends and self._is_as_sent(folder, plan, topics, work):
                return Comparison(tasks_of.count_decisions(folder), 0, ())
            again = work / f"verify-{side}"
            renames = plan.renames() if side == "source" else None
            self.snapshot(topics, again, parts=plan.parts, renames=renames, bare=not renames)
            with self._stage(f"comparing the {side}"):
                found = self._on_parts(
                    folder,
                    lambda number: tasks_of.compare_part(folder, number, again, side=side, since=since, limit=limit),
                )
        return tasks_of.united(found, limit=limit)

    def _is_as_sent(self, folder: Path, plan: MigrationPlan, topics: Sequence[PlannedTopic], work: Path) -> bool:
        """Tell whether `topics`, within their bounds, have exactly the records sent: then no key is compared."""
        ranges = planned_ranges(topics, profile=plan.target_profile() or "")
        records = _records_in(ranges)
        tasks_of.keep_writers(folder / "decisions", plan)
        with self._stage("reading the target again", counts := _counts(work / "sent", records)):
            found = sent_in_order(
                self.context,
                self._client(plan.target_profile()),
                in_tasks(sorted(ranges, key=_place), self.least_parts(records), divide=in_runs),
                folder / "decisions",
                work,
                counts=counts,
            )
        return found == plan.tally.to_write()

    def _on_parts(self, folder: Path, work: Callable[[int], Outcome]) -> list[Outcome]:
        """Return the results of `work` for the number of each part of the decisions."""
        return run_tasks(self.context, len(part_files(folder / "decisions")), work)

    def _stage(self, doing: str, counts: RecordCounts | None = None) -> AbstractContextManager[None]:
        return watched_stage(
            self.context, doing, counts, on_progress=self.on_progress, executor_patience_s=self.executor_patience_s
        )


def _keyed_rows(file: Path) -> Iterator[tuple[bytes, int, bytes | None]]:
    rows = read_table(file, ["key", "partition", "value"])
    for batch in rows.to_batches(max_chunksize=10_000):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _counts(folder: Path, total: int) -> RecordCounts:
    """Return the record counts of the stage that writes `folder`, kept beside it."""
    return RecordCounts(folder.with_name(f"{folder.name}-counts"), total)


def _confirmed(written: Iterable[Counts]) -> SentCounts:
    """Sum up what the tasks have committed, by topic and by partition."""
    topics: dict[str, tuple[int, int]] = {}
    last_offsets: dict[tuple[str, int], int] = {}
    tasks = 0
    for counts in written:
        tasks += bool(counts)
        for (topic, partition), (records, tombstones, last) in sorted(counts.items()):
            before = topics.get(topic, (0, 0))
            topics[topic] = before[0] + records, before[1] + tombstones
            last_offsets[topic, partition] = max(last_offsets.get((topic, partition), -1), last)
    return SentCounts(dict(sorted(topics.items())), last_offsets, tasks)


def planned_ranges(topics: Iterable[PlannedTopic], *, profile: str = "") -> list[OffsetRange]:
    """Return the ranges to read on the cluster of `profile`: from begin to LSO of each partition, as planned."""
    return [
        OffsetRange(topic.topic, one.partition, one.begin, one.lso, topic.partitions, topic.name)
        for topic in topics
        if topic.file is None and (topic.profile or "") == profile
        for one in topic.bounds
    ]


def _profiles(topics: Iterable[PlannedTopic]) -> list[str]:
    """Return the clusters of topics: names of profiles, "" for the command's own."""
    return sorted({topic.profile or "" for topic in topics if topic.file is None})


def _records_in(ranges: Iterable[OffsetRange]) -> int:
    return sum(one.end - one.begin for one in ranges)


def in_tasks(ranges: Sequence[OffsetRange], least: int, *, divide: Divide = in_bins) -> list[list[OffsetRange]]:
    """Divide ranges into tasks of about `PART_RECORDS`, at least `least` of them if there are as many ranges.

    So a task holds the newest record of each key until its end. A range is never divided.
    """
    lengths = [(one.end - one.begin, one) for one in ranges if one.end > one.begin]
    return [some for some in divide(lengths, max(least, -(-_records_in(ranges) // PART_RECORDS))) if some]


def _place(one: OffsetRange) -> tuple[str, int]:
    return one.topic, one.partition


def by_parts(ranges: Iterable[OffsetRange], parts: Parts) -> list[list[OffsetRange]]:
    """Divide ranges by the part of their partition."""
    number_of = {partition: number for number, part in enumerate(parts) for partition in part}
    bins: list[list[OffsetRange]] = [[] for _ in parts]
    for one in ranges:
        if one.end > one.begin:
            bins[number_of[one.partition]].append(one)
    return [some for some in bins if some]


def _decided_key(row: Mapping[str, Any]) -> DecidedKey:
    return DecidedKey(
        route=ConnectorRoute(row["connector"], row["target_connector"], row["topic"]),
        source=(row["source_topic"], row["source_partition"], row["source_offset"]),
        key=row["key"],
        action=row["action"],
        reason=row["reason"],
        before=row["before"],
        source_value=row["value"],
        partition=row["partition"],
        partitions=row["partitions"],
    )
