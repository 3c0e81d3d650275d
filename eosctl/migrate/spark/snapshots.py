"""The snapshot of one side of a migration, and the tasks that read and write it, with their counts.

A snapshot is the records that reading tasks found, in files that each writes itself. A file is there whole or not at
all, and a task that is tried again writes the same ones.

Tasks do their own reading and writing: Spark only decides where each of them runs, and retries it.

Spark does not report the number of records that the tasks of a stage have handled while Python tasks run. So each task
keeps its number in a file of its own, in a folder that driver and executors both see, as they see the snapshot. This
runs on executors. The numbers are only for people to look at: nothing depends on them, and losing one is no error.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar
from uuid import uuid4

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import astuple
from pyspark import SparkContext

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.offsets.migration import ONE_PART, Snapshot
from eosctl.deadline import Deadline
from eosctl.engine.compare import SentInOrder
from eosctl.engine.files import KeyParts, land
from eosctl.engine.reading.newest import folded
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.kafka.topics.pieces import read_pieces
from eosctl.kafka.topics.reader import collector_paused
from eosctl.machine.files import make_folder, write_whole
from eosctl.migrate.spark.parts import rows_sent

_TELL_EVERY_S = 0.5


class RecordCounts(Struct, frozen=True):
    """The counts of one stage, in `folder` for as long as the block lasts; `total` is where they end."""

    folder: Path
    total: int

    def __enter__(self) -> Self:
        shutil.rmtree(self.folder, ignore_errors=True)  # left by a killed run
        self.folder.mkdir(parents=True)
        return self

    def __exit__(self, *_exc: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def of_task(self, task: int) -> TaskProgress:
        """Return the meter of one task; a second attempt replaces the first one's number."""
        return TaskProgress(self.folder / str(task))

    def done(self) -> int:
        """Sum up the tasks' last numbers; never more than `total`."""
        return min(self.total, sum(_number(file) for file in self.folder.glob("*")))


class TaskProgress:
    """The meter of one task, written twice a second at most."""

    def __init__(self, file: Path) -> None:
        self._file, self._next_s = file, 0.0

    def tell(self, count: Callable[[], int], *, last: bool = False) -> None:
        """Write the result of `count`, which is called only when it is time to, or for the `last` time."""
        now_s = time.monotonic()
        if last or now_s >= self._next_s:
            self._next_s = now_s + _TELL_EVERY_S
            with suppress(OSError):
                self._file.write_text(str(count()))


def _number(file: Path) -> int:
    """Read a file's number; 0 while it is being written, or if it is gone."""
    with suppress(OSError, ValueError):
        return int(file.read_text())
    return 0


Outcome = TypeVar("Outcome")


def run_tasks(context: SparkContext, count: int, work: Callable[[int], Outcome]) -> list[Outcome]:
    """Call `work` with the numbers from 0 to `count` - 1, each in a task of its own, and return the results.

    It needs no SparkSession, and so no SQL: that takes as long to start as a small migration takes altogether.
    """
    if not count:
        return []

    def of_numbers(numbers: Iterable[int]) -> Iterator[Outcome]:
        give_back_memory()
        with collector_paused():
            for number in numbers:
                yield work(number)

    return context.parallelize(range(count), count).mapPartitions(of_numbers).collect()


def give_back_memory() -> None:
    """Make Arrow give back free memory from now on.

    Its own allocator (mimalloc, pyarrow 26) keeps it for later use, which was 200 MiB of 1,100 in all processes of a
    migration.
    """
    pa.set_memory_pool(pa.system_memory_pool())


_STALL_S = 60.0
"""A task gives up after this time without progress."""


def fresh_folder(folder: Path) -> Path:
    """Create `folder`, empty: files of an earlier run are removed."""
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder)
    return folder


def hosts_without(context: SparkContext, folder: Path, *, tasks: int) -> dict[str, str]:
    """Return the hosts where a task does not find in `folder` the file that this process has just put there, and why.

    A folder of the same name is not the same folder: each task compares the file's content.
    """
    token = uuid4().hex
    file = folder / f".shared-{token}"
    make_folder(folder)
    write_whole(file, lambda draft: draft.write(token.encode()), synced=False)

    def look(_number: int) -> tuple[str, str]:
        return platform.node(), why_not_shared(file, token)

    try:
        seen = run_tasks(context, tasks, look)
    finally:
        file.unlink(missing_ok=True)
    return {host: why for host, why in sorted(seen) if why}


def why_not_shared(file: Path, content: str) -> str:
    """Return why `file` is not the one with this content, for people to read; "" if it is."""
    try:
        found = file.read_text()
    except PermissionError as exc:
        return f"can't be read by user {os.geteuid()} ({exc.strerror})"
    except OSError:
        found = None
    return "" if found == content else "is not the same folder"


def by_reason(reasons: Mapping[str, str]) -> str:
    """Return why hosts do not share a folder, each reason with all of its hosts, for people to read."""
    hosts = {why: ", ".join(host for host, its in reasons.items() if its == why) for why in sorted(reasons.values())}
    return " and ".join(f"{why} on {each}" for why, each in hosts.items())


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
    """Write what the readers of a side need: the ranges of each, and the parts of their keys."""
    ranges = [[astuple(one) for one in some] for some in bins]
    text = json.dumps({"bins": ranges, "parts": places.parts, "renames": dict(places.renames)})
    write_whole(file, lambda draft: draft.write(text.encode()), synced=False)


def _read_bin(file: Path, number: int) -> tuple[list[OffsetRange], KeyParts]:
    found = json.loads(file.read_text())
    return [OffsetRange(*one) for one in found["bins"][number]], KeyParts(found["parts"], found["renames"])
