"""The rows of `offsets snapshot`: a row for each round."""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Annotated

from eosctl.output.cells import TOTAL
from eosctl.output.rows import Header, Kind, Printed, Text, Time, UnseenParts


@unique
class SnapshotOutcome(StrEnum):
    """The outcome of a round; a snapshot that is `unchanged` was not written again."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"
    FAILED = "failed"


class SnapshotRow(Printed, kw_only=True):
    """A round: a snapshot that was written or found unchanged, or the reason why there is none."""

    taken: Annotated[Time, "When its first bounds were read.", Header("TIME")]
    taken_ms: Annotated[int, "The same in milliseconds since 1970."]
    outcome: Annotated[SnapshotOutcome, "What came of it; an unchanged snapshot is not written again."]
    file: Annotated[str | None, "The file that has the offsets of this time; null if none has."]
    topics: Annotated[list[str], "The topics in it."]
    records: Annotated[int | None, "Records in it; null if none was written."]
    tombstones: Annotated[int | None, "Records of it that delete an offset."]
    removed: Annotated[list[str], "Older files that were removed."]
    unseen: Annotated[int, "How much could not be seen."]
    error: Annotated[str | None, "Why there is no snapshot."]

    @Header("REMOVED")
    def removed_count(self) -> int | None:
        """Return how many older files were removed."""
        return len(self.removed) or None

    def line(self) -> str:
        """Return the round in a line."""
        return f"{self.taken} {self.outcome} {self.file or self.error}"


class SnapshotSummary(Printed):
    """The numbers of rounds."""

    written: Annotated[int, "Snapshots that were written.", TOTAL]
    unchanged: Annotated[int, "Rounds without a new record since the last snapshot."]
    failed: Annotated[int, "Rounds that failed."]
    removed: Annotated[int, "Older files that were removed."]


class SnapshotData(Printed):
    """The folder, and what the last round could not see."""

    folder: Annotated[str, "The folder of the files."]
    unseen: UnseenParts


OFFSETS_SNAPSHOT = Kind(
    "offsets-snapshot",
    "Snapshots of offsets topics, and the files that they are in.",
    row=SnapshotRow,
    summary=SnapshotSummary,
    data=SnapshotData,
    text=Text(
        columns=("taken", "outcome", "records?", "tombstones?", "removed_count?", "file?", "error?"),
        wide=("topics", "unseen"),
        empty="No snapshot was made.",
    ),
)
