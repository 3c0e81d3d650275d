"""The stages of a migration on one Spark session, each landing in the snapshot folder before the next one starts.

Kafka is read once per stage and never twice within one: compaction may delete between two scans. The stages return
plain values; what they mean, and whether to go on, is for `eosctl.ops.migrate`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone knows it by

from eosctl.core.migration import MigrationPlan, PlannedTopic, Route, Tally
from eosctl.core.migration_results import Comparison, DecidedKey, Mismatch, SentCounts
from eosctl.core.records import Record
from eosctl.spark import transforms
from eosctl.spark.failures import spark_error
from eosctl.spark.files import read_parquet, snapshot_file, write_file
from eosctl.spark.kafka_io import RECORDS, OffsetRange, placed, read_newest, write_records
from eosctl.spark.record_counts import RecordCounts
from eosctl.spark.record_lines import backup_lines

OnProgress = Callable[[str, int | None, int | None, str], None]
"""Called with the first fields of an `Event`: what is being done, how many are done, of how many, of what."""


@dataclass(frozen=True, slots=True)
class MigrationJob:
    """The stages; `client` are librdkafka properties, `others` those of other clusters by the profile that names them.

    Secrets travel in task closures, never in the conf.
    """

    spark: SparkSession
    client: Mapping[str, Any]
    on_progress: OnProgress = lambda _doing, _done, _total, _unit: None
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def snapshot(self, topics: Iterable[PlannedTopic], folder: Path) -> int:
        """Reads topics up to their planned bounds, and files, into Parquet at `folder`; returns how many rows."""
        topics = list(topics)
        again, _, side = folder.name.rpartition("-")
        in_kafka = [bound for topic in topics if topic.file is None for bound in topic.bounds]
        counts = _counts(folder, sum(bound.lso - bound.begin for bound in in_kafka))
        with self._stage(f"reading the {side}{' again' if again else ''}", counts):
            self._of_kafka(topics, counts).write.mode("overwrite").parquet(str(folder))
            for number, topic in enumerate(topics):
                if topic.file is not None and topic.topic_id is not None:
                    part = folder / f"file-{number}.parquet"
                    snapshot_file(topic.file, topic.name, part, partitions=topic.partitions)
            return self._records(folder).count()

    def _of_kafka(self, topics: Sequence[PlannedTopic], counts: RecordCounts) -> DataFrame:
        profiles = sorted({topic.profile or "" for topic in topics if topic.file is None})
        parts = [
            read_newest(self.spark, self._client(profile), planned_ranges(topics, profile=profile), counts=counts)
            for profile in profiles
        ]
        return reduce(DataFrame.unionByName, parts) if parts else self.spark.createDataFrame([], RECORDS)

    def _client(self, profile: str | None) -> Mapping[str, Any]:
        return self.others[profile] if profile else self.client

    def connectors_in(self, folder: Path) -> list[str]:
        """The connectors whose keys a snapshot holds, sorted."""
        with self._stage("finding connectors"):
            rows = self._records(folder).select("connector").where("connector is not null").distinct().collect()
            return sorted(row.connector for row in rows)

    def decide(self, folder: Path, plan: MigrationPlan) -> Tally:
        """Applies the rule to `folder`/source and `folder`/target, lands `folder`/decisions, counts everything."""
        sources = [topic.name for topic in plan.sources]
        with self._stage("deciding per key"):
            newest = transforms.newest_per_key(self._records(folder / "source"))
            claims = transforms.claims(newest, plan.routes, sources=sources)
            decided = transforms.decisions(
                transforms.strongest(claims, plan.policy),
                transforms.newest_per_key(self._records(folder / "target")),
                partitions={topic.name: topic.partitions for topic in plan.targets},
                policy=plan.policy,
            )
            decided.write.mode("overwrite").parquet(str(folder / "decisions"))
            return self._tally(folder, newest)

    def _tally(self, folder: Path, newest: DataFrame) -> Tally:
        records = self._records(folder / "source").agg(F.sum("versions")).first()[0] or 0  # type: ignore[index]
        keys, nobodys, scattered = newest.agg(
            F.count(F.lit(1)), F.count_if(F.col("connector").isNull()), F.count_if(F.col("places") > 1)
        ).first()  # type: ignore[misc]
        groups = (
            self._decisions(folder)
            .groupBy("connector", "action")
            .agg(F.count(F.lit(1)).alias("keys"), F.sum("claims").alias("claims"), F.count_if("conflict").alias("both"))
            .collect()
        )
        counts = {"write": 0, "delete": 0, "keep": 0, "conflict": 0}
        per_connector: dict[str, dict[str, int]] = {}
        for row in sorted(groups, key=lambda row: (row.connector, row.action)):
            counts[row.action] += row["keys"]
            per_connector.setdefault(row.connector, {})[row.action] = row["keys"]
        decided, claimed = sum(row["keys"] for row in groups), sum(row.claims for row in groups)
        return Tally(
            records=records,
            older=records - keys,
            nobodys=nobodys,
            not_selected=keys - nobodys - claimed,
            superseded=claimed - decided,
            keys=decided,
            conflicts=sum(row.both for row in groups),
            scattered=scattered,
            counts=counts,
            connector_counts=per_connector,
        )

    def sample(self, folder: Path, *, limit: int = 100) -> list[DecidedKey]:
        """Up to `limit` decisions to show: changes and conflicts first, then by topic and key."""
        with self._stage("taking a sample"):
            order = (F.col("action") == "keep", "topic", "key")
            rows = self._decisions(folder).orderBy(*order).limit(limit).collect()
        return [_decided_key(row.asDict()) for row in rows]

    def backup_lines(self, folder: Path, plan: MigrationPlan) -> Iterator[str]:
        """Lines of a record file with what the target has of each key that will be sent."""
        with self._stage("making the backup"):
            sent = transforms.sent(self._decisions(folder))
            return backup_lines(sent, folder / "backup", cluster_id=plan.cluster_id)

    def new_offsets(self, drift: Path, folder: Path, *, side: str) -> list[str]:
        """Whose offsets the snapshot `drift` holds, sorted; on the target, records of the plan itself do not count."""
        with self._stage(f"looking for new offsets in the {side}"):
            records = self._records(drift).where("connector is not null")
            if side == "target":
                records = transforms.foreign(records, self._decisions(folder))
            return sorted(row.connector for row in records.select("connector").distinct().collect())

    def write_tasks(self, plan: MigrationPlan) -> int:
        """How many tasks, and so transactions, a write takes here."""
        return min(max(1, self.spark.sparkContext.defaultParallelism), max(1, plan.tally.to_write()))

    def unwritten(self, folder: Path, targets: Sequence[PlannedTopic]) -> int:
        """Lands `folder`/unwritten: what is to be sent and `targets`, read up to now, do not have; returns how many."""
        again = folder / "resume-target"
        self.snapshot(targets, again)
        with self._stage("looking for what is written already"):
            missing = transforms.unwritten(self._decisions(folder), transforms.newest_per_key(self._records(again)))
            missing.write.mode("overwrite").parquet(str(folder / "unwritten"))
            return self._decisions(folder, "unwritten").count()

    def write(
        self, folder: Path, plan: MigrationPlan, *, tasks: int, records: int, part: str = "decisions"
    ) -> SentCounts:
        """Sends the so many `records` of `folder`/`part`, in one transaction per task, and counts what is confirmed.

        With as many `tasks` as before, each partition comes to the id that it had before. A file is written whole.
        """
        target_file = plan.target_file()
        with self._stage("writing", counts := _counts(folder / part, records)):
            if target_file is not None:
                count = write_file(target_file, self._to_file(folder, plan))
                return SentCounts({target_file: (count, 0)})
            written = self._written(self._decisions(folder, part), plan, tasks=tasks, counts=counts).collect()
        topics: dict[str, tuple[int, int]] = {}
        last_offsets: dict[tuple[str, int], int] = {}
        for row in sorted(written, key=lambda row: (row.topic, row.partition)):
            records, tombstones = topics.get(row.topic, (0, 0))
            topics[row.topic] = records + row.written, tombstones + row.tombstones
            where = row.topic, row.partition
            last_offsets[where] = max(last_offsets.get(where, -1), row.last_offset)
        return SentCounts(topics, last_offsets, len({row.task for row in written}))

    def _written(self, decisions: DataFrame, plan: MigrationPlan, *, tasks: int, counts: RecordCounts) -> DataFrame:
        """What writing `decisions` yields, as WRITTEN: collecting it is what writes."""
        client, name = self._client(plan.target_profile()), plan.transactional_id()
        rows = transforms.to_write(decisions)
        return write_records(rows, client, transactional_id=name, tasks=tasks, counts=counts)

    def _to_file(self, folder: Path, plan: MigrationPlan) -> Iterator[Record]:
        """The records of a target that is a file, by key: under the topic and on the partition that they would have."""
        topic = next((topic.topic for topic in plan.sources if topic.file is None), "connect-offsets")
        in_order = folder / "in-order"
        rows = transforms.sent(self._decisions(folder)).withColumn("topic", F.lit(topic))
        placed(rows).orderBy("key").write.mode("overwrite").parquet(str(in_order))
        return read_parquet(in_order)

    def compare(self, folder: Path, topics: Sequence[PlannedTopic], *, side: str, limit: int = 100) -> Comparison:
        """Reads `topics` again (into `folder`/verify-`side`) and compares them with the decisions."""
        again = folder / f"verify-{side}"
        self.snapshot(topics, again)
        with self._stage(f"comparing the {side}"):
            now = transforms.newest_per_key(self._records(again))
            rule = transforms.target_mismatches if side == "target" else transforms.source_mismatches
            mismatches = rule(self._decisions(folder), now).cache()
            try:
                rows = mismatches.orderBy("topic", "key").limit(limit).collect()
                return Comparison(
                    self._decisions(folder).count(), mismatches.count(), tuple(_mismatch(row.asDict()) for row in rows)
                )
            finally:
                mismatches.unpersist()

    def _records(self, folder: Path) -> DataFrame:
        return self.spark.read.schema(RECORDS).parquet(str(folder))

    def _decisions(self, folder: Path, part: str = "decisions") -> DataFrame:
        return self.spark.read.schema(transforms.DECISIONS).parquet(str(folder / part))

    @contextmanager
    def _stage(self, doing: str, counts: RecordCounts | None = None) -> Iterator[None]:
        """Names the jobs of the block, reports how far they are, cancels them on Ctrl-C, translates Spark's errors."""
        context = self.spark.sparkContext
        group = f"eosctl {doing}"
        context.setJobGroup(group, doing, interruptOnCancel=True)
        over = threading.Event()
        watch = threading.Thread(target=self._watch, args=(group, doing, counts, over), daemon=True)
        watch.start()
        try:
            with counts or nullcontext():
                yield
        except KeyboardInterrupt:
            with suppress(Py4JError):  # the call that was cut off may have taken the connection along
                context.cancelJobGroup(group)
            raise
        except (Py4JError, PySparkException) as exc:
            raise spark_error(exc, doing) from exc
        finally:
            over.set()
            watch.join()

    def _watch(self, group: str, doing: str, counts: RecordCounts | None, over: threading.Event) -> None:
        """Tells how far a stage is: in records where they are counted, else in tasks; in the end, that it is over.

        Spark plans the next tasks when it has seen the last ones: how many there will be is not known before the end.
        """
        done, total, unit = 0, counts.total if counts else None, "records" if counts else "tasks"
        while True:
            if done != total:  # after the last record there is more to do
                self.on_progress(doing, done, total, unit)
            if over.wait(0.5):
                break
            with suppress(Py4JError):  # the stage itself tells what is wrong with the JVM
                done, known = (counts.done(), 0) if counts else self._tasks(group)
                unit = unit if counts else f"of {known} tasks so far"
        self.on_progress(doing, done, done, unit)

    def _tasks(self, group: str) -> tuple[int, int]:
        """How many tasks of the jobs of `group` are done, of how many that Spark knows of."""
        tracker = self.spark.sparkContext.statusTracker()
        infos = [info for job in tracker.getJobIdsForGroup(group) if (info := tracker.getJobInfo(job)) is not None]
        stages = [tracker.getStageInfo(stage) for info in infos for stage in info.stageIds]
        known = [stage for stage in stages if stage is not None]
        return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)


def _counts(folder: Path, total: int) -> RecordCounts:
    """Counts of what becomes of `folder`, beside it."""
    return RecordCounts(folder.with_name(f"{folder.name}-counts"), total)


def planned_ranges(topics: Iterable[PlannedTopic], *, profile: str = "") -> list[OffsetRange]:
    """What to read of the topics on the cluster of `profile`: from begin to LSO of each partition, as planned."""
    return [
        OffsetRange(topic.topic, one.partition, one.begin, one.lso, topic.partitions, topic.name)
        for topic in topics
        if topic.file is None and (topic.profile or "") == profile
        for one in topic.bounds
    ]


def _decided_key(row: Mapping[str, Any]) -> DecidedKey:
    return DecidedKey(
        route=Route(row["connector"], row["target_connector"], row["topic"]),
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
