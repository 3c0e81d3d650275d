"""The rows of offset writes: `merge`, `import`, `restore`, `set` and `reset`, as plans and as results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from msgspec import UNSET, Struct, UnsetType

from eosctl.core.ids import Owner
from eosctl.core.offsets.records import OffsetKey
from eosctl.core.offsets.views import KeyAction, PlannedWrite
from eosctl.core.records import NewTopic
from eosctl.foreign import printable
from eosctl.offsets.history.events import Change, order_of_values
from eosctl.offsets.history.gtids import Order
from eosctl.offsets.history.rows import VersionRow
from eosctl.offsets.history.sources import lsn_texts
from eosctl.offsets.rows import Key, Lsns, SourcePartition, key_members, value_json
from eosctl.output.cells import format_cell, summary_lines
from eosctl.output.rows import Header, Kind, Place, Printed, Text, Time
from eosctl.report import Report

_MOST_NEW_TOPICS = 3
"""The most topics that are named one by one; hundreds would hide the rest of a plan."""
AS_PLANNED = ("written", "unchanged")
"""The outcomes of offsets that are as planned."""


class LsnsPart(Printed):
    """The log sequence numbers in the offsets, as PostgreSQL prints them."""

    before: Annotated[Lsns | None, "The log sequence numbers of the offset before.", Header("BEFORE-LSN")]
    after: Annotated[Lsns | None, "The log sequence numbers of the offset after.", Header("AFTER-LSN")]


class WriteRow(Printed):
    """A key, and what a write does to it."""

    connector: Annotated[str | None, "The connector in the key; null where there is none."]
    source_partition: SourcePartition
    key: Key
    action: Annotated[KeyAction, "The action on the key."]
    reason: Annotated[str, "The reason; `eosctl explain REASON` explains each."]
    before: Annotated[object, "The present source offset; null for none."]
    after: Annotated[object, "The source offset after the write; null for none."]
    target: Annotated[Place, "The partition that the record goes to."]
    lsn: Annotated[LsnsPart | None, "The log sequence numbers in the offsets."] | UnsetType = UNSET
    order: (
        Annotated[Order, "The order of the offset after the write, relative to the one before; left out without both."]
        | UnsetType
    ) = UNSET

    @Header("SOURCE-PARTITION")
    def partition_or_key(self) -> object:
        """Return the source partition; the whole key if Connect does not write such keys."""
        return self.key if self.source_partition is None else self.source_partition


class WrittenRow(WriteRow, kw_only=True):
    """A key, and what a write did to it."""

    outcome: Annotated[str, "The result of reading the topic back."]


def write_members(write: PlannedWrite) -> dict[str, Any]:
    """Return the members of a WriteRow."""
    before, after = None if write.before is None else value_json(write.before.value), value_json(write.after)
    lsns = LsnsPart(before=lsn_texts(before), after=lsn_texts(after))
    partition = write.key.partition if isinstance(write.key, OffsetKey) else None
    order = None if write.before is None else order_of_values(partition, write.before.value, write.after)
    return {
        **key_members(write.key),
        "action": write.action,
        "reason": write.reason,
        "before": before,
        "after": after,
        "target": Place(topic=write.topic, partition=write.partition),
        "lsn": lsns if lsns.before or lsns.after else UNSET,
        "order": UNSET if order is None else order,
    }


def write_row(write: PlannedWrite) -> WriteRow:
    """Return the row of a plan for a write."""
    return WriteRow(**write_members(write))


class CopiedRow(WriteRow):
    """A key that a switch copies, and its outcome once it was tried."""

    outcome: Annotated[str, "The result of reading the topic back."] | UnsetType = UNSET


class Newer(Printed):
    """A record that others wrote since a backup was made."""

    offset: Annotated[int, "Its offset in the partition."]
    timestamp: Annotated[Time | None, "When it was written."]
    transactional_id: Annotated[str | None, "The transactional id that likely wrote it."]
    owner: Annotated[Owner | None, "The owner of the transactional id."]

    def cell(self) -> str:
        """Return the time and the transactional id; an unknown id is left out."""
        return f"{self.timestamp or 'no time'}, {self.transactional_id or 'by whom is not known'}"


InBackup = Annotated[object, "The source offset in the backup, if others have written since."]
WrittenSince = Annotated[Newer | None, "The record written since.", Header("WRITTEN-SINCE")]


class RestoreRow(WriteRow):
    """A key of a backup, and what restoring it does."""

    backup: InBackup | UnsetType = UNSET
    newer: WrittenSince | UnsetType = UNSET


class RestoredRow(WrittenRow):
    """A key of a backup, and what restoring it did."""

    backup: InBackup | UnsetType = UNSET
    newer: WrittenSince | UnsetType = UNSET


class ActionCounts(Printed):
    """Keys by action."""

    write: Annotated[int, "Keys that get an offset."]
    delete: Annotated[int, "Keys that get a tombstone."]
    keep: Annotated[int, "Keys that stay."]
    conflict: Annotated[int, "Keys that need a decision."]


class WritePlanSummary(Printed):
    """The numbers of keys by action, and of topics to create."""

    counts: Annotated[ActionCounts, "Keys by action."]
    conflicts: Annotated[int, "Keys that others have written since."]
    creates: Annotated[int, "Topics to create."]


class ResultSummary(WritePlanSummary):
    """The numbers of a plan, and of offsets that are written as planned or not."""

    written: Annotated[int, "Offsets that are as planned."]
    not_as_planned: Annotated[int, "Offsets that are not as planned, or not known to be."]


class TopicPart(Printed):
    """A topic to create."""

    topic: Annotated[str, "Its name."]
    partitions: Annotated[int, "The number of its partitions."]
    replication_factor: Annotated[int, "The number of replicas of each."]


def topic_parts(topics: Iterable[NewTopic]) -> list[TopicPart]:
    """Return `data.creates`."""
    return [
        TopicPart(topic=new.topic, partitions=new.partitions, replication_factor=new.replication_factor)
        for new in topics
    ]


class WritePlanData(Printed, kw_only=True):
    """The parts of a plan besides its keys."""

    creates: Annotated[list[TopicPart], "Topics to create."]
    overrides: Annotated[list[str], "The checks that were waived, by their flags."]
    keys: Annotated[int, "The number of keys; the first ones are rows."]
    plan: Annotated[str, "The digest of all keys, where there are more than rows."] | UnsetType = UNSET


class ResultData(WritePlanData, kw_only=True):
    """The parts of a result besides its keys."""

    backup: Annotated[str | None, "The file with the former offsets."]
    undo: Annotated[str | None, "The command that restores them."]


class LsnTexts(Printed):
    """The member as PostgreSQL prints log sequence numbers."""

    before: Annotated[str | None, "The present value."]
    after: Annotated[str | None, "The new value."]


class ChangedMember(Printed):
    """The change of one member of a source offset."""

    source_partition: SourcePartition
    member: Annotated[str, "The member of the source offset."]
    change: Annotated[Change, "The kind of change."]
    before: Annotated[object, "The present value."]
    after: Annotated[object, "The new value."]
    lsn: Annotated[LsnTexts | None, "Both values as log sequence numbers, if they are such."]


Via = Annotated[Literal["rest", "topic"], "The route: the worker's REST interface, or the topic."]
ViaReason = Annotated[str, "The reason for this route."]
Changes = Annotated[list[ChangedMember], "The changes, member by member."]
AsOf = Annotated[list[VersionRow], "The versions of the log that the new offsets are taken from."]


class EditPlanData(WritePlanData, kw_only=True):
    """The parts of a plan of `set` or `reset` besides its keys."""

    via: Via
    via_reason: ViaReason
    changes: Changes
    as_of: AsOf | UnsetType = UNSET


class EditResultData(ResultData, kw_only=True):
    """The parts of a result of `set` or `reset` besides its keys."""

    via: Via
    via_reason: ViaReason
    changes: Changes
    as_of: AsOf | UnsetType = UNSET


def created_topic_lines(report: Report) -> Iterator[str]:
    """Yield the topics that a plan creates, the number of rows left out, then the summary."""
    data: WritePlanData = report.data
    yield from new_topic_lines(data.creates)
    if data.keys > len(report.rows):
        backup = data.backup if isinstance(data, ResultData) else None
        where = f"; all that were written are in {format_cell(backup)}" if backup else ""
        yield f"{len(report.rows)} of {data.keys:,} keys are shown{where}"
    yield from summary_lines(report)


def new_topic_lines(topics: Iterable[TopicPart], verb: str = "creates") -> Iterator[str]:
    """Yield a line for each topic that a plan creates; one line for many equal topics."""
    alike: dict[tuple[int, int], list[str]] = {}
    for topic in topics:
        if topic.topic.startswith("file:"):
            yield f"{verb} file {format_cell(topic.topic.removeprefix('file:'))}"
        else:
            alike.setdefault((topic.partitions, topic.replication_factor), []).append(format_cell(topic.topic))
    for (partitions, replication_factor), names in alike.items():
        like = f"compacted, {_partitions(partitions)}, replication factor {replication_factor}"
        if len(names) > _MOST_NEW_TOPICS:
            all_of_them = f"{len(names):,} topics, {names[0]} ... {names[-1]}"
            yield f"{verb} {all_of_them}: {like} each; {_partitions(partitions * len(names))} in all"
        else:
            yield from (f"{verb} topic {name}: {like}" for name in names)


def _partitions(number: int) -> str:
    return "1 partition" if number == 1 else f"{number:,} partitions"


_CHANGES = {
    Change.NEW: "new",
    Change.MISSING: "missing",
    Change.TYPE: "another type",
    Change.FORWARD: "forward: what lies between is skipped",
    Change.BACKWARD: "backward: what lies between is read again",
    Change.MIXED: "forward in part and backward in part: transactions are skipped, and others are read again",
    Change.CHANGED: "changed",
}


def _change_lines(data: EditPlanData) -> Iterator[str]:
    """Yield the changes of `offsets set`, member by member."""
    for change in data.changes:
        lsn = change.lsn or LsnTexts(before=None, after=None)
        before, after = _with_lsn(change.before, lsn.before), _with_lsn(change.after, lsn.after)
        where = f"{_json_text(change.source_partition)} {printable(change.member)}"
        yield f"{where}: {before} -> {after}, {_CHANGES[change.change]}"


def _with_lsn(value: object, lsn: str | None) -> str:
    return _json_text(value) + (f" ({lsn})" if lsn else "")


def _json_text(value: object) -> str:
    """Format a value as JSON: text must not look like a number here."""
    return "-" if value is None else printable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _former_lines(data: EditPlanData) -> Iterator[str]:
    """Yield the versions that the new offsets are taken from, and the snapshot of one that the log does not have."""
    for version in data.as_of or ():
        file = f", in {version.file}" if version.file else ""
        yield f"{_json_text(version.source_partition)} as of {version.at()}, {version.timestamp}{file}"


def _edit_lines(report: Report) -> Iterator[str]:
    data: EditPlanData | EditResultData = report.data
    if isinstance(data, EditPlanData):
        yield from _former_lines(data)
        yield from _change_lines(data)
    yield from created_topic_lines(report)
    yield f"via {data.via}: {format_cell(data.via_reason)}"


_COLUMNS = ("action", "connector", "partition_or_key", "before", "after", "order?", "reason", "target")
_SINCE = ("backup?", "newer?")
_WIDE = ("key", "lsn.before?", "lsn.after?")


def _text(*more: str, lines: Any = created_topic_lines) -> Text:
    return Text(columns=(*_COLUMNS, *more), wide=_WIDE, lines=lines, empty="Nothing to write.")


def _plan(
    verb: str, done: str, *, row: object = WriteRow, data: object = WritePlanData, text: Text | None = None
) -> Kind:
    what = f"The offsets that would be {done}."
    return Kind(f"offsets-{verb}-plan", what, row=row, summary=WritePlanSummary, data=data, text=text or _text())


def _result(
    verb: str, done: str, *, row: object = WrittenRow, data: object = ResultData, text: Text | None = None
) -> Kind:
    what, shown = f"The offsets that were {done}.", text or _text("outcome")
    return Kind(f"offsets-{verb}-result", what, row=row, summary=ResultSummary, data=data, text=shown)


OFFSETS_MERGE_PLAN, OFFSETS_MERGE_RESULT = _plan("merge", "merged"), _result("merge", "merged")
OFFSETS_IMPORT_PLAN, OFFSETS_IMPORT_RESULT = _plan("import", "imported"), _result("import", "imported")
OFFSETS_RESTORE_PLAN = _plan("restore", "restored", row=RestoreRow, text=_text(*_SINCE))
OFFSETS_RESTORE_RESULT = _result("restore", "restored", row=RestoredRow, text=_text("outcome", *_SINCE))
OFFSETS_SET_PLAN = _plan("set", "set", data=EditPlanData, text=_text(lines=_edit_lines))
OFFSETS_SET_RESULT = _result("set", "set", data=EditResultData, text=_text("outcome", lines=_edit_lines))
OFFSETS_RESET_PLAN = _plan("reset", "reset", data=EditPlanData, text=_text(lines=_edit_lines))
OFFSETS_RESET_RESULT = _result("reset", "reset", data=EditResultData, text=_text("outcome", lines=_edit_lines))


class WriteKinds(Struct, frozen=True):
    """The reports of one operation, its name, which backups and journals have too, and its verb in a question."""

    name: str
    plan: Kind
    result: Kind
    verb: str = "Write"


MERGE = WriteKinds("offsets-merge", OFFSETS_MERGE_PLAN, OFFSETS_MERGE_RESULT)
IMPORT = WriteKinds("offsets-import", OFFSETS_IMPORT_PLAN, OFFSETS_IMPORT_RESULT)
RESTORE = WriteKinds("offsets-restore", OFFSETS_RESTORE_PLAN, OFFSETS_RESTORE_RESULT, "Restore")
SET = WriteKinds("offsets-set", OFFSETS_SET_PLAN, OFFSETS_SET_RESULT)
RESET = WriteKinds("offsets-reset", OFFSETS_RESET_PLAN, OFFSETS_RESET_RESULT, "Delete")
SWITCH = WriteKinds("offsets-switch", OFFSETS_MERGE_PLAN, OFFSETS_MERGE_RESULT)
"""The merge within a switch: its report is a part of that of the switch."""
MOVE = WriteKinds("connectors-move", OFFSETS_MERGE_PLAN, OFFSETS_MERGE_RESULT)
"""The offsets of a connector that moves to another group: their report is a part of that of the move."""
CREATE = WriteKinds("connectors-create", OFFSETS_IMPORT_PLAN, OFFSETS_IMPORT_RESULT)
"""The offsets of a new connector: their report is a part of that of `connectors create` and `apply`."""
