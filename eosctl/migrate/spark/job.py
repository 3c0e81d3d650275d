"""The stages of a migration on one Spark session, each landing in the snapshot folder before the next one starts.

Kafka is read once per stage and never twice within one: compaction may delete between two scans. The stages return
plain values; what they mean, and whether to go on, is for `eosctl.migrate.plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone knows it by

from eosctl.core.offsets.migration import ConnectorRoute, MigrationPlan, Parts, PlannedTopic, Tally, in_bins, topic_of
from eosctl.core.offsets.migration_results import Comparison, DecidedKey, Mismatch, SentCounts, Snapshot
from eosctl.core.records import Record
from eosctl.errors import UsageError
from eosctl.migrate.spark.files import read_parquet, snapshot_file, write_file
from eosctl.migrate.spark.record_counts import RecordCounts
from eosctl.migrate.spark.records import transforms
from eosctl.migrate.spark.records.comparisons import compare_part
from eosctl.migrate.spark.records.kafka_io import RECORDS
from eosctl.migrate.spark.records.kafka_writes import placed, write_records, write_task
from eosctl.migrate.spark.records.offset_ranges import ClientProperties, OffsetRange
from eosctl.migrate.spark.records.parts import decide_part, sample_of, to_write
from eosctl.migrate.spark.records.record_lines import backup_blocks
from eosctl.migrate.spark.snapshots import fresh_folder, hosts_without, land_bins, parquet_files, united
from eosctl.migrate.spark.stages import EXECUTOR_PATIENCE_S, OnProgress, watched_stage
from eosctl.migrate.spark.tasks import run_tasks

if TYPE_CHECKING:
    import pyarrow as pa

_WORTH_A_TASK = 10_000
"""Fewer records are read sooner than one more Python process starts."""


@dataclass(frozen=True, slots=True)
class MigrationJob:
    """The stages; `client` are librdkafka properties, `others` those of other clusters by the profile that names them.

    Secrets travel in task closures, never in the conf.
    """

    context: SparkContext
    client: ClientProperties
    on_progress: OnProgress = lambda _doing, _done, _total, _unit: None
    others: Mapping[str, ClientProperties] = field(default_factory=dict)
    executor_patience_s: float = EXECUTOR_PATIENCE_S

    @property
    def spark(self) -> SparkSession:
        """For stages that shuffle; whoever asks first waits for it to start."""
        return SparkSession.builder.getOrCreate()

    def require_shared(self, folder: Path) -> None:
        """Raises UsageError unless every executor sees `folder` as this process does; a local Spark does."""
        if str(self.context.master).startswith("local"):
            return
        with self._stage("looking whether all executors share the snapshot folder"):
            apart = hosts_without(self.context, folder, tasks=2 * self.context.defaultParallelism)
        if apart:
            raise UsageError(
                f"{folder} is not the same folder on {', '.join(apart)}, where executors run; nothing was read",
                hint="--snapshot-dir names a folder that this machine and all executors share, say on NFS.",
            )

    def least_parts(self, records: int) -> int:
        """How many parts of so many `records` keep everyone busy, and none for long."""
        return min(2 * self.context.defaultParallelism, 1 + records // _WORTH_A_TASK)

    def snapshot(self, topics: Iterable[PlannedTopic], folder: Path, *, parts: Parts = ()) -> Snapshot:
        """Reads topics up to their planned bounds, and files, into Parquet at `folder`; with `parts`, a file each."""
        topics = list(topics)
        again, _, side = folder.name.rpartition("-")
        counts = _counts(folder, sum(topic.records() for topic in topics if topic.file is None))
        with self._stage(f"reading the {side}{' again' if again else ''}", counts):
            fresh_folder(folder)
            found = [self._land(topics, folder, profile, parts, counts) for profile in _profiles(topics)]
            for number, topic in enumerate(topics):
                if topic.file is not None and topic.topic_id is not None:
                    part = folder / f"file-{number}.parquet"
                    found.append(snapshot_file(topic.file, topic.name, part, partitions=topic.partitions))
            return united(found)

    def _land(
        self, topics: Sequence[PlannedTopic], folder: Path, profile: str, parts: Parts, counts: RecordCounts
    ) -> Snapshot:
        """The topics of the cluster of `profile`."""
        ranges = planned_ranges(topics, profile=profile)
        lengths = [(one.end - one.begin, one) for one in ranges if one.end > one.begin]
        least = self.least_parts(sum(length for length, _ in lengths))
        bins = by_parts(ranges, parts) if parts else list(filter(None, in_bins(lengths, least)))
        first = sum(1 for _ in folder.glob("part-*"))
        return land_bins(self.context, self._client(profile), bins, folder, counts=counts, first=first)

    def _client(self, profile: str | None) -> ClientProperties:
        return self.others[profile] if profile else self.client

    def decide(self, folder: Path, plan: MigrationPlan) -> Tally:
        """Applies the rule to `folder`/source and `folder`/target, lands `folder`/decisions, counts everything."""
        with self._stage("deciding per key"):
            if plan.parts:
                return self._decide_parts(folder, plan)
            newest = transforms.newest_per_key(self._records(folder / "source"))
            newest.write.mode("overwrite").parquet(str(folder / "newest"))  # else it would be found twice
            newest = self.spark.read.schema(transforms.NEWEST).parquet(str(folder / "newest"))
            claims = transforms.claims(newest, plan.routes, sources=[topic.name for topic in plan.sources])
            decided = transforms.decisions(
                transforms.strongest(claims, plan.policy),
                transforms.newest_per_key(self._records(folder / "target")),
                partitions={topic.name: topic.partitions for topic in plan.targets},
                policy=plan.policy,
            )
            decided.write.mode("overwrite").parquet(str(folder / "decisions"))
            return self._tally(folder, newest, plan)

    def _decide_parts(self, folder: Path, plan: MigrationPlan) -> Tally:
        fresh_folder(folder / "decisions")
        rows = run_tasks(self.context, len(plan.parts), lambda number: decide_part(folder, number, plan))
        (folder / "decisions" / "_SUCCESS").touch()
        read = [row for row in rows if row.action is None]
        selected = {None, *plan.connectors_of("source")}  # and what is nobody's
        keys = sum(row["keys"] for row in read)
        groups = [(row.connector, row.action, row["keys"], row["keys"], row.both) for row in rows if row.action]
        return Tally.of(
            groups,
            records=sum(row.versions for row in read),
            keys=keys,
            nobodys=sum(row["keys"] for row in read if row.connector is None),
            not_selected=sum(row["keys"] for row in read if row.connector not in selected),
            scattered=0,
        )

    def _tally(self, folder: Path, newest: DataFrame, plan: MigrationPlan) -> Tally:
        records = self._records(folder / "source").agg(F.sum("versions")).first()[0] or 0  # type: ignore[index]
        read = transforms.read_counts(newest, plan.routes).first()
        groups = (
            self._decisions(folder)
            .groupBy("connector", "action")
            .agg(F.count(F.lit(1)).alias("keys"), F.sum("claims").alias("claims"), F.count_if("conflict").alias("both"))
            .collect()
        )
        found = [(row.connector, row.action, row["keys"], row.claims, row.both) for row in groups]
        return Tally.of(found, records=records, **read.asDict())  # type: ignore[union-attr] # aggregates are one row

    def find_stale(self, folder: Path) -> int:
        """Lands `folder`/stale: the live copies of keys that will be sent on other partitions; returns how many."""
        with self._stage("looking for copies on other partitions"):
            found = transforms.stale(self._records(folder / "target"), self._decisions(folder))
            found.write.mode("overwrite").parquet(str(folder / "stale"))
            return self._stale(folder).count()

    def stale(self, folder: Path) -> Iterator[Record]:
        """What `find_stale` has found."""
        for record in read_parquet(folder / "stale"):
            yield record._replace(topic=topic_of(record.topic))

    def sample(self, folder: Path, *, limit: int = 100) -> list[DecidedKey]:
        """Up to `limit` decisions to show: changes and conflicts first, then by topic and key."""
        files = parquet_files(folder / "decisions")
        with self._stage("taking a sample"):
            found = run_tasks(self.context, len(files), lambda number: sample_of(files[number], limit))
            rows = sorted(found, key=lambda row: (row.action == "keep", row.topic, row.key))
        return [_decided_key(row.asDict()) for row in rows[:limit]]

    def backup(self, folder: Path, plan: MigrationPlan) -> Iterator[bytes]:
        """A record file, in blocks of bytes, with what the target has of each key that will be sent."""
        with self._stage("making the backup"):
            return backup_blocks(self.context, folder, cluster_id=plan.cluster_id)

    def new_offsets(self, drift: Path, folder: Path, *, side: str) -> list[str]:
        """Whose offsets the snapshot `drift` holds, sorted; on the target, records of the plan itself do not count."""
        with self._stage(f"looking for new offsets in the {side}"):
            records = self._records(drift)
            if side == "target":
                records = transforms.foreign(self._without_cleaned(records, folder), self._decisions(folder))
            records = records.where("connector is not null")
            return sorted(row.connector for row in records.select("connector").distinct().collect())

    def newer(self, drift: Path, folder: Path) -> list[Record]:
        """What the snapshot `drift` of the target has, of keys that will be sent, that is not the plan's own."""
        with self._stage("looking for new offsets in the target"):
            decisions = self._decisions(folder)
            found = transforms.foreign(self._without_cleaned(self._records(drift), folder), decisions)
            found = found.join(transforms.sent(decisions).select("topic", "key"), ["topic", "key"], "left_semi")
            rows = found.select("topic", "partition", "offset", "timestamp_ms", "key", "value").collect()
        return [
            Record(topic_of(row.topic), row.partition, row.offset, row.timestamp_ms, bytes(row.key), _bytes(row.value))
            for row in rows
        ]

    def write_tasks(self, plan: MigrationPlan) -> int:
        """How many tasks, and so transactions, a write takes here."""
        if plan.parts:
            return len(plan.parts)
        return min(max(1, self.context.defaultParallelism), max(1, plan.tally.to_write()))

    def unwritten(self, folder: Path, targets: Sequence[PlannedTopic]) -> int:
        """Lands `folder`/unwritten: what is to be sent and `targets`, read up to now, do not have; returns how many."""
        again = folder / "resume-target"
        self.snapshot(targets, again)
        with self._stage("looking for what is written already"):
            now = self._without_cleaned(self._records(again), folder)
            missing = transforms.unwritten(self._decisions(folder), transforms.newest_per_key(now))
            missing.write.mode("overwrite").parquet(str(folder / "unwritten"))
            return self._decisions(folder, "unwritten").count()

    def write(
        self, folder: Path, plan: MigrationPlan, *, tasks: int, records: int, part: str = "decisions"
    ) -> SentCounts:
        """Sends the so many `records` of `folder`/`part`, in one transaction per task, and counts what is confirmed.

        With as many `tasks` as before, no other transactional ids are used. A file is written whole.
        """
        with self._stage("writing", counts := _counts(folder / part, records)):
            file = plan.target_file()
            if file is not None:
                return SentCounts({file: (write_file(file, self._to_file(folder, plan)), 0)})
            if plan.parts and part == "decisions":
                return _confirmed(run_tasks(self.context, len(plan.parts), self._writer_of_parts(folder, plan, counts)))
            return _confirmed(self._written(self._decisions(folder, part), plan, tasks=tasks, counts=counts).collect())

    def _written(self, decisions: DataFrame, plan: MigrationPlan, *, tasks: int, counts: RecordCounts) -> DataFrame:
        """What writing `decisions` yields, as WRITTEN: collecting it is what writes."""
        client, name = self._client(plan.target_profile()), plan.transactional_id()
        rows = transforms.to_write(decisions)
        return write_records(rows, client, transactional_id=name, tasks=tasks, counts=counts)

    def _writer_of_parts(
        self, folder: Path, plan: MigrationPlan, counts: RecordCounts
    ) -> Callable[[int], Iterator[pa.RecordBatch]]:
        """Writes a part, as WRITTEN: in the task that has its partitions, and so its keys."""
        client, name = dict(self._client(plan.target_profile())), plan.transactional_id()

        def write_part(number: int) -> Iterator[pa.RecordBatch]:
            return write_task(client, name, to_write(folder, number), counts)

        return write_part

    def _to_file(self, folder: Path, plan: MigrationPlan) -> Iterator[Record]:
        """The records of a target that is a file, by key: under the topic and on the partition that they would have."""
        topic = next((topic.topic for topic in plan.sources if topic.file is None), "connect-offsets")
        in_order = folder / "in-order"
        rows = transforms.sent(self._decisions(folder)).withColumn("topic", F.lit(topic))
        placed(rows).orderBy("key").write.mode("overwrite").parquet(str(in_order))
        return read_parquet(in_order)

    def compare(
        self, folder: Path, topics: Sequence[PlannedTopic], *, side: str, parts: Parts = (), limit: int = 100
    ) -> Comparison:
        """Reads `topics` again and compares them with the decisions.

        The target of a plan with `parts` is compared part by part, unless someone put a key elsewhere meanwhile.
        """
        compared = self._compare_parts(folder, topics, parts, limit) if parts else None
        return compared or self._compare_all(folder, topics, side=side, limit=limit)

    def _compare_parts(
        self, folder: Path, topics: Sequence[PlannedTopic], parts: Parts, limit: int
    ) -> Comparison | None:
        """None where a key may be in two places by now, or partitions were added."""
        profile = topics[0].profile if topics else None
        ranges, client = planned_ranges(topics, profile=profile or ""), dict(self._client(profile))
        if not {one.partition for one in ranges}.issubset(chain.from_iterable(parts)):
            return None
        bins = by_parts(ranges, parts)
        counts = _counts(folder / "verify-target", sum(one.end - one.begin for one in ranges))

        def compare(number: int) -> Iterator[pa.RecordBatch]:
            count = counts.of_task(number)
            return compare_part(client, bins[number], folder, number, limit=limit, count=count)

        with self._stage("comparing the target", counts):
            rows = run_tasks(self.context, len(parts), compare)
        if not all(row.whole for row in rows):
            return None
        found = (Mismatch(**each) for row in rows for each in row.mismatches)
        first = sorted(found, key=lambda one: (one.topic, one.key))[:limit]
        return Comparison(sum(row.compared for row in rows), sum(row.differing for row in rows), tuple(first))

    def _compare_all(self, folder: Path, topics: Sequence[PlannedTopic], *, side: str, limit: int) -> Comparison:
        """Reads `topics` again (into `folder`/verify-`side`) and compares them with the decisions."""
        again = folder / f"verify-{side}"
        self.snapshot(topics, again)
        with self._stage(f"comparing the {side}"):
            mismatches = self._mismatches(self._records(again), folder, side=side).cache()
            try:
                rows = mismatches.orderBy("topic", "key").limit(limit).collect()
                return Comparison(
                    self._decisions(folder).count(), mismatches.count(), tuple(_mismatch(row.asDict()) for row in rows)
                )
            finally:
                mismatches.unpersist()

    def _mismatches(self, records: DataFrame, folder: Path, *, side: str) -> DataFrame:
        decisions = self._decisions(folder)
        if side == "source":
            return transforms.source_mismatches(decisions, transforms.newest_per_key(records))
        now = transforms.newest_per_key(self._without_cleaned(records, folder))
        found = transforms.target_mismatches(decisions, now)
        if not (folder / "stale").exists():
            return found
        return found.union(transforms.uncleaned(records, decisions, self._stale(folder)))

    def _without_cleaned(self, records: DataFrame, folder: Path) -> DataFrame:
        """`records` of the target without the tombstones that the plan puts over copies on other partitions."""
        return transforms.without_cleaned(records, self._stale(folder)) if (folder / "stale").exists() else records

    def _stale(self, folder: Path) -> DataFrame:
        return self.spark.read.schema(transforms.STALE).parquet(str(folder / "stale"))

    def _records(self, folder: Path) -> DataFrame:
        return self.spark.read.schema(RECORDS).parquet(str(folder))

    def _decisions(self, folder: Path, part: str = "decisions") -> DataFrame:
        return self.spark.read.schema(transforms.DECISIONS).parquet(str(folder / part))

    def _stage(self, doing: str, counts: RecordCounts | None = None) -> AbstractContextManager[None]:
        return watched_stage(
            self.context, doing, counts, on_progress=self.on_progress, executor_patience_s=self.executor_patience_s
        )


def _counts(folder: Path, total: int) -> RecordCounts:
    """Counts of what becomes of `folder`, beside it."""
    return RecordCounts(folder.with_name(f"{folder.name}-counts"), total)


def _confirmed(written: Iterable[Any]) -> SentCounts:
    """What rows of WRITTEN come to, by topic and by partition."""
    topics: dict[str, tuple[int, int]] = {}
    last_offsets: dict[tuple[str, int], int] = {}
    tasks = set()
    for row in sorted(written, key=lambda row: (row.topic, row.partition)):
        records, tombstones = topics.get(row.topic, (0, 0))
        topics[row.topic] = records + row.written, tombstones + row.tombstones
        where = row.topic, row.partition
        last_offsets[where] = max(last_offsets.get(where, -1), row.last_offset)
        tasks.add(row.task)
    return SentCounts(topics, last_offsets, len(tasks))


def planned_ranges(topics: Iterable[PlannedTopic], *, profile: str = "") -> list[OffsetRange]:
    """What to read of the topics on the cluster of `profile`: from begin to LSO of each partition, as planned."""
    return [
        OffsetRange(topic.topic, one.partition, one.begin, one.lso, topic.partitions, topic.name)
        for topic in topics
        if topic.file is None and (topic.profile or "") == profile
        for one in topic.bounds
    ]


def _profiles(topics: Iterable[PlannedTopic]) -> list[str]:
    """The clusters that topics are of: names of profiles, "" for the command's own."""
    return sorted({topic.profile or "" for topic in topics if topic.file is None})


def by_parts(ranges: Iterable[OffsetRange], parts: Parts) -> list[list[OffsetRange]]:
    """The ranges of each part, by their partition."""
    number_of = {partition: number for number, part in enumerate(parts) for partition in part}
    bins: list[list[OffsetRange]] = [[] for _ in parts]
    for one in ranges:
        if one.end > one.begin:
            bins[number_of[one.partition]].append(one)
    return bins


def _decided_key(row: Mapping[str, Any]) -> DecidedKey:
    return DecidedKey(
        route=ConnectorRoute(row["connector"], row["target_connector"], row["topic"]),
        source=(row["source_topic"], row["source_partition"], row["source_offset"]),
        key=bytes(row["key"]),
        action=row["action"],
        reason=row["reason"],
        before=_bytes(row["before"]),
        source_value=_bytes(row["value"]),
        partition=row["partition"],
        partitions=row["partitions"],
    )


def _mismatch(row: Mapping[str, Any]) -> Mismatch:
    binary = {name: _bytes(row[name]) for name in ("key", "expected", "actual")}
    return Mismatch(**{**row, **binary})


def _bytes(value: bytes | bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
