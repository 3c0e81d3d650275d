"""The rows of `offsets export` and `restore`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from eosctl.output.cells import TOTAL
from eosctl.output.rows import Kind, Printed, Text

Format = Literal["ndjson", "rest", "strimzi"]


class ExportSummary(Printed):
    """The records in the file."""

    records: Annotated[int, "Records in the file.", TOTAL]
    tombstones: Annotated[int, "Records that delete an offset."]
    records_read: Annotated[int, "Records read.", TOTAL]


class ExportData(Printed):
    """The file, its format, and its source."""

    file: Annotated[str, "The file."]
    topic: Annotated[str | None, "The topic that was read; null for a backup, whose records name theirs."]
    format: Annotated[Format, "The format of the file."]
    backup: Annotated[str, "The backup that was read."] | UnsetType = UNSET


OFFSETS_EXPORT = Kind(
    "offsets-export",
    "The file that a store, or a backup, was saved to.",
    summary=ExportSummary,
    data=ExportData,
    text=Text(columns=()),
)
