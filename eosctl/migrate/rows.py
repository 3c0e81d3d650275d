"""The output of `offsets migrate` and `offsets verify`: keys of a migration, keys that differ, stages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from msgspec import UNSET, UnsetType, structs

from eosctl.core.offsets.views import KeyAction
from eosctl.migrate.journal import Stage
from eosctl.offsets.rows import Key, SourcePartition
from eosctl.offsets.write_rows import ActionCounts, TopicPart, new_topic_lines
from eosctl.output.cells import TOTAL, format_cell, summary_lines
from eosctl.output.rows import Counts, Header, Kind, Place, Printed, Text
from eosctl.report import Report

StageOutcome = Literal["done_before", "done", "failed", "not_reached"]
ConnectorInKey = Annotated[str | None, "The connector in the key; null if there is none."]


def _partition_or_key(row: MigratedRow | MismatchRow) -> object:
    return row.key if row.source_partition is None else row.source_partition


class SourcePart(Printed):
    """The record that a key's offset is from."""

    topic: Annotated[str | None, "The topic of the record."]
    partition: Annotated[int | None, "Its partition."]
    offset: Annotated[int | None, "The record's offset in its partition."]


class MigratedRow(Printed, kw_only=True):
    """A key of a migration, and the action on it."""

    key: Key
    connector: Annotated[str | None, "The connector in the key, as the target has it."]
    renamed_from: Annotated[str | None, "The connector in the key of the source, if it is another one."] | UnsetType = (
        UNSET
    )
    source_partition: SourcePartition
    action: Annotated[KeyAction, "The action on the key."]
    reason: Annotated[str, "Why; `eosctl explain REASON` says what each means."]
    before: Annotated[object, "The source offset that is in the target; null for none."]
    after: Annotated[object, "The source offset after the migration; null for none."]
    source: Annotated[SourcePart, "The record that the offset is from."] | UnsetType = UNSET
    target: Annotated[Place, "The partition that the record goes to."]

    @Header("CONNECTOR")
    def connector_now(self) -> str | None:
        """Return the connector in the key, and behind it the previous one, if that is another one."""
        return f"{self.connector} (was {self.renamed_from})" if self.renamed_from else self.connector

    @Header("SOURCE-PARTITION")
    def partition_or_key(self) -> object:
        """Return the source partition; the whole key if it is not one that Connect writes."""
        return _partition_or_key(self)


class StoredPlace(Printed):
    """The place of a key, present or planned."""

    topic: Annotated[str, "The topic."]
    partition: Annotated[int | None, "The number of its partition; null if the key is in none."]

    def cell(self) -> str:
        """Return the place as Kafka itself writes it; the topic alone for a key that is in none of its partitions."""
        return self.topic if self.partition is None else f"{self.topic}-{self.partition}"


class MismatchRow(Printed):
    """A key that is not as it should be, or can't be compared."""

    key: Key
    connector: ConnectorInKey
    source_partition: SourcePartition
    side: Annotated[str, "The side of the migration that differs; `target` for a backup."]
    status: Annotated[str, "How the key differs; `eosctl explain STATUS` says what each means."]
    expected: Annotated[object, "The source offset that should be there; null for none."]
    actual: Annotated[object, "The source offset that is there; null for none."]
    target: Annotated[StoredPlace, "The partition that the key is on.", Header("STORED-IN")]

    @Header("SOURCE-PARTITION")
    def partition_or_key(self) -> object:
        """Return the source partition; the whole key if it is not one that Connect writes."""
        return _partition_or_key(self)


class StageRow(Printed):
    """A stage of a migration that was cut off."""

    stage: Annotated[Stage, "The stage."]
    outcome: Annotated[StageOutcome, "The outcome of the stage."]
    detail: Annotated[str | None, "The result of the stage, or its error."]


class MigrationSummary(Printed):
    """Counts of the records that were read, by what becomes of them."""

    connectors: Annotated[int, "How many connectors are migrated."]
    records: Annotated[int, "How many records were read.", TOTAL]
    older: Annotated[int, "Records that a newer one of the same key supersedes."]
    unowned: Annotated[int, "Keys in which no connector can be read."]
    not_selected: Annotated[int, "Keys of connectors that are not migrated, or not from that topic."]
    superseded: Annotated[int, "Keys that lost to another source, or to a rename."]
    keys: Annotated[int, "Keys that are migrated."]
    conflicts: Annotated[int, "Keys on which source and target disagree, whatever the decision."]
    scattered: Annotated[int, "Keys that are on more than one partition of their topic."]
    counts: Annotated[ActionCounts, "Keys by what is done to them."]


class MigratedSummary(MigrationSummary):
    """Counts of the keys, by what became of them."""

    sent: Annotated[int | None, "How many records this run wrote; null if unknown."]
    already_written: Annotated[int, "How many an earlier run had written."]
    transactions: Annotated[int | None, "How many transactions they were written in; null if unknown."]
    verified: Annotated[int, "Keys that were found as planned afterwards.", TOTAL]
    differing: Annotated[int, "Keys that were not found as planned."]
    hidden: Annotated[int, "Keys that could not be compared."]


class MigrationTopic(Printed):
    """A topic, or a file of records, that a migration reads or writes."""

    topic: Annotated[str, "Its name; `file:PATH` for a file."]
    kafka_cluster_id: Annotated[str | None, "The cluster of the topic; null for a file."]
    partitions: Annotated[int, "How many partitions it has."]
    replication_factor: Annotated[int, "How many replicas each has."]
    exists: Annotated[bool, "Whether it was there when the plan was made."]

    def new(self) -> TopicPart:
        """Return the topic as one to create."""
        return TopicPart(topic=self.topic, partitions=self.partitions, replication_factor=self.replication_factor)


class MigrationFacts(Printed):
    """The facts of a plan and its result, besides their keys."""

    plan: Annotated[str, "The sha256 of the plan, in hex."]
    planned_at: Annotated[str, "When the plan was made."]
    snapshot: Annotated[str, "The folder with all keys and the decision on each."]
    policy: Annotated[str, "The policy for keys on which source and target disagree."]
    parts: Annotated[int, "How many parts the keys are decided and written in, each by a task of its own."]
    connector_counts: Annotated[dict[str, Counts], "Each connector's keys by what is done to them."]
    sources: Annotated[list[MigrationTopic], "The topics and files that are read."]
    targets: Annotated[list[MigrationTopic], "The topics and files that are written."]


class MigratePlanData(MigrationFacts):
    """The facts of a plan, besides its keys."""

    plan_file: Annotated[str | None, "The file that the plan was written to."]


class WrittenPart(Printed):
    """The records that were written to a topic."""

    written: Annotated[int, "How many records, tombstones included."]
    tombstones: Annotated[int, "How many of them delete a key."]


class CodeAndMessage(Printed):
    """The reason of a failure."""

    code: Annotated[str, "The code; `eosctl explain CODE` says what it means."]
    message: Annotated[str, "Why it failed."]


class NotCreatedPart(Printed):
    """A topic that could not be created."""

    topic: Annotated[str, "Its name."]
    error: Annotated[CodeAndMessage, "Why it could not be created."]


class MigrateResultData(MigrationFacts):
    """The facts of a result, besides its keys."""

    topics: Annotated[dict[str, WrittenPart], "The records written to each topic."]
    created: Annotated[list[str], "The topics that were created."]
    not_created: Annotated[list[NotCreatedPart], "The topics that could not be created."]
    skipped: Annotated[list[Stage], "The stages that an earlier run had finished."]
    backup: Annotated[str | None, "The file with the offsets from before; null if nothing could be overwritten."]
    undo: Annotated[str | None, "The command that restores them."]
    overrides: Annotated[list[str], "The checks that were waived, by their flags."]


class VerifyData(Printed):
    """The plan or backup that the topics were compared with."""

    plan: Annotated[str, "The sha256 of the plan, in hex."] | UnsetType = UNSET
    backup: Annotated[str, "The backup."] | UnsetType = UNSET
    compared_with: (
        Annotated[Literal["written", "before"], "Whether with the values written, or with those from before."]
        | UnsetType
    ) = UNSET


def _migration_lines(report: Report) -> Iterable[str]:
    """Yield the topics that a migration creates, and where the rows are that are not shown; then the summary."""
    data: MigratePlanData | MigrateResultData = report.data
    missing = [each.new() for each in data.targets if not each.exists]
    if isinstance(data, MigrateResultData):
        yield from new_topic_lines([each for each in missing if each.topic in data.created], "created")
    else:
        yield from new_topic_lines(missing)
        counted = "1 part" if data.parts == 1 else f"{data.parts} parts"
        yield f"all that is known of a key is in one place: {counted}, no shuffle"
    keys = report.summary_of(MigrationSummary).keys
    if keys > len(report.rows):
        yield f"{len(report.rows)} of {keys:,} keys are shown; all are in {format_cell(data.snapshot)}"
    if isinstance(data, MigrateResultData) and data.skipped:
        yield f"resumed; already over: {', '.join(data.skipped)}"
    yield from summary_lines(report)


_KEYS = ("action", "connector_now", "partition_or_key", "before", "after", "reason", "target")


def _compared_lines(report: Report) -> Iterable[str]:
    """Yield how many keys were compared, and how many of them differ, if some do."""
    counts = dict(report.summary)
    zeros = [name for name, count in counts.items() if not count and not name.endswith("_compared")]
    return summary_lines(report, wide_only=zeros)


_MISMATCHES = Text(
    columns=("status", "side", "connector", "partition_or_key", "expected", "actual", "target"),
    empty="All keys are as they should be.",
)
_RESULT_ROW: Any = MigratedRow | MismatchRow | StageRow
OFFSETS_MIGRATE_PLAN = Kind(
    "offsets-migrate-plan",
    "A sample of the keys that a migration would write.",
    row=MigratedRow,
    summary=MigrationSummary,
    data=MigratePlanData,
    text=Text(columns=_KEYS, lines=_migration_lines, empty="Nothing to write."),
)
OFFSETS_MIGRATE_RESULT = Kind(
    "offsets-migrate-result",
    "The keys that a migration wrote; keys that differ, if some do afterwards; stages, after an error or Ctrl-C.",
    row=_RESULT_ROW,
    summary=MigratedSummary,
    data=MigrateResultData,
    text=Text(columns=_KEYS, lines=_migration_lines, empty="Nothing was written."),
)
MIGRATED_OTHERWISE = OFFSETS_MIGRATE_RESULT.shown_as(_MISMATCHES)
MIGRATED_IN_PART = OFFSETS_MIGRATE_RESULT.shown_as(Text(columns=("stage", "outcome", "detail")))
OFFSETS_VERIFY = Kind(
    "offsets-verify",
    "The keys that are not as planned, or not as a backup says.",
    row=MismatchRow,
    summary=Counts,
    data=VerifyData,
    text=structs.replace(_MISMATCHES, lines=_compared_lines),
)
