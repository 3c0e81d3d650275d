"""The snapshot of one side of a migration: the records that reading tasks found, in files that each writes itself.

A file is there whole or not at all, and a task that is tried again writes the same ones.
"""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from msgspec.structs import astuple
from pyspark import SparkContext

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.offsets.migration import ONE_PART
from eosctl.core.offsets.migration_results import Snapshot
from eosctl.deadline import Deadline
from eosctl.engine.files import land
from eosctl.engine.keys.places import KeyParts
from eosctl.engine.reading.newest import folded
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.engine.written import SentInOrder
from eosctl.kafka.topics.pieces import read_pieces
from eosctl.machine.files import make_folder, write_whole
from eosctl.migrate.spark.parts import rows_sent
from eosctl.migrate.spark.record_counts import RecordCounts
from eosctl.migrate.spark.tasks import run_tasks

_STALL_S = 60.0
"""A task gives up after this time without progress."""


def fresh_folder(folder: Path) -> Path:
    """Create `folder`, empty: files of an earlier run are removed."""
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder)
    return folder


def hosts_without(context: SparkContext, folder: Path, *, tasks: int) -> list[str]:
    """Return the hosts where a task does not find in `folder` the file that this process has just put there.

    A folder of the same name is not the same folder: each task returns the file's content.
    """
    token = uuid4().hex
    file = folder / f".shared-{token}"
    make_folder(folder)
    write_whole(file, lambda draft: draft.write(token.encode()), synced=False)

    def look(_number: int) -> tuple[str, str | None]:
        found = None
        with suppress(OSError):
            found = file.read_text()
        return platform.node(), found

    try:
        seen = run_tasks(context, tasks, look)
    finally:
        file.unlink(missing_ok=True)
    return sorted({host for host, found in seen if found != token})


def land_bins(
    context: SparkContext,
    client: ClientSettings,
    bins: Sequence[Sequence[OffsetRange]],
    folder: Path,
    places: KeyParts,
    *,
    counts: RecordCounts,
    first: int = 0,
    bare: bool = False,
) -> Snapshot:
    """Read each bin in a task of its own, into the files of the readers from number `first` on.

    `counts` gets the number of offsets read. Tasks find their bins in a file: Spark writes a task's closure to disk if
    it is large, and the client's passwords are in it.
    """
    file = folder / f"bins-{first:05}.json"
    _write_bins(file, bins, places)

    def land_bin(number: int) -> Snapshot:
        ranges, where = _read_bin(file, number)
        pieces = read_pieces(client, ranges, timeout=Deadline.after(_STALL_S), progress=counts.of_task(number))
        return land(folder, first + number, folded((piece.columns for piece in pieces), ranges, bare=bare), where)

    return Snapshot.united(run_tasks(context, len(bins), land_bin))


def sent_in_order(
    context: SparkContext,
    client: ClientSettings,
    bins: Sequence[Sequence[OffsetRange]],
    decisions: Path,
    folder: Path,
    *,
    counts: RecordCounts,
) -> int | None:
    """Return the number of records in all bins if they are exactly what `decisions` send, as sent, else None.

    Each bin is read in a task of its own; `folder` is for the file that the tasks read their bins from.
    """
    file = folder / "bins-sent.json"
    _write_bins(file, bins, KeyParts(ONE_PART))

    def count_sent(number: int) -> int | None:
        ranges, _places = _read_bin(file, number)
        places = {(one.topic, one.partition) for one in ranges}
        pieces = read_pieces(client, ranges, timeout=Deadline.after(_STALL_S), progress=counts.of_task(number))
        return SentInOrder(rows_sent(decisions, places), ranges).count_in(pieces)

    found = run_tasks(context, len(bins), count_sent)
    return None if None in found else sum(filter(None, found))


def _write_bins(file: Path, bins: Sequence[Sequence[OffsetRange]], places: KeyParts) -> None:
    """Write what the readers of a side need: the ranges of each, and the parts of their keys.

    By `json`, for executors read it: of everything that eosctl needs they have confluent-kafka, numpy and pyarrow.
    """
    ranges = [[astuple(one) for one in some] for some in bins]
    text = json.dumps({"bins": ranges, "parts": places.parts, "renames": dict(places.renames)})
    write_whole(file, lambda draft: draft.write(text.encode()), synced=False)


def _read_bin(file: Path, number: int) -> tuple[list[OffsetRange], KeyParts]:
    found = json.loads(file.read_text())
    return [OffsetRange(*one) for one in found["bins"][number]], KeyParts(found["parts"], found["renames"])
