"""What `offsets export` and `restore` print."""

from __future__ import annotations

from typing import Annotated, Literal

from eosctl.output.rows import Kind, Printed, Text

Format = Literal["ndjson", "rest"]


class ExportSummary(Printed):
    """What is in the file."""

    records: Annotated[int, "Records in the file."]
    tombstones: Annotated[int, "Those that delete an offset."]
    records_read: Annotated[int, "Records that were read."]


class ExportData(Printed):
    """Where it went, and how."""

    file: Annotated[str, "The file."]
    topic: Annotated[str, "The topic that was read."]
    format: Annotated[Format, "How the file is written."]


OFFSETS_EXPORT = Kind(
    "offsets-export",
    "The file that a store was saved to.",
    summary=ExportSummary,
    data=ExportData,
    text=Text(columns=()),
)
