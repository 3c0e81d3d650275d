"""What `exporter` prints when it ends: how its sources stood."""

from __future__ import annotations

from typing import Annotated

from eosctl.output.rows import Header, Kind, Printed


class CollectionRow(Printed):
    """A source as it was collected last."""

    source: Annotated[str, "What is looked at."]
    age_s: Annotated[float | None, "Seconds since a look at it succeeded; null where none has.", Header("AGE-S")]
    duration_s: Annotated[float | None, "How many seconds the last look took.", Header("DURATION-S")]
    error: Annotated[str | None, "The code of the last look's failure; null where it succeeded."]
    message: Annotated[str, "Why it failed."]


class ExporterSummary(Printed):
    """How many sources there are."""

    sources: Annotated[int, "How many sources there are."]
    failed: Annotated[int, "How many of them failed the last time."]


EXPORTER = Kind("exporter", "The sources of the exporter, when it ended.", row=CollectionRow, summary=ExporterSummary)
