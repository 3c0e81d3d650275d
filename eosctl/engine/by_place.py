"""Tables in files sorted by target partition: a reader of some partitions reads little else.

The schema has the partitions at the ends of each batch.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from itertools import pairwise, starmap
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eosctl.engine.columns import in_one_piece
from eosctl.engine.files import ROWS_AT_ONCE, metadata_of, write_batches
from eosctl.engine.reading.ranges import Place
from eosctl.engine.write import place_numbers, sorting

_BATCHES = b"batches"
_FEW_ROWS = 1_000
"""The fewest rows of a batch, except for the last one: partitions with fewer rows share one."""


def write_by_place(file: Path, rows: pa.Table, places: pa.Table, *, readers: int) -> None:
    """Write `rows` into a file for `readers` readers, sorted by the (topic, partition) of each row in `places`.

    Each batch costs a millisecond. A reader of some partitions also gets the rows that share a batch with the first and
    the last of them.
    """
    numbers, rows = place_numbers(places), in_one_piece(rows)
    order = sorting(numbers)

    def some(first: int, end: int) -> pa.Table:
        return rows.slice(first, end - first) if order is None else rows.take(pa.array(order[first:end]))

    def place(row: int) -> list[object]:
        number = row if order is None else int(order[row])
        return [places["topic"][number].as_py(), places["partition"][number].as_py()]

    few = max(_FEW_ROWS, len(rows) // (4 * readers))
    cuts = _cuts(numbers if order is None else numbers[order], few)
    ends = json.dumps([[*place(first), *place(end - 1)] for first, end in cuts])
    write_batches(file, rows.schema.with_metadata({_BATCHES: ends}), starmap(some, cuts))


def _cuts(numbers: npt.NDArray[np.int64], few: int) -> list[tuple[int, int]]:
    """Return (first row, end row) of each batch, given the sorted numbers of the rows' places.

    A batch ends with a place, once it has at least `few` rows; one place may have several batches.
    """
    cuts = [0]
    for begin in [*(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]:
        if begin - cuts[-1] >= few or begin == len(numbers):
            cuts += [*range(cuts[-1] + ROWS_AT_ONCE, begin, ROWS_AT_ONCE), begin]
    return list(pairwise(dict.fromkeys(cuts)))


def batches_to(file: Path, places: Collection[Place]) -> Sequence[int] | None:
    """Return the numbers of the batches that may have rows for one of `places`.

    None if the file does not say, as files of earlier versions of eosctl don't.
    """
    ends = metadata_of(file).get(_BATCHES)
    if ends is None:
        return None
    wanted = sorted(places)
    return [
        number
        for number, (topic, partition, last_topic, last_partition) in enumerate(json.loads(ends))
        if bisect_left(wanted, (topic, partition)) < bisect_right(wanted, (last_topic, last_partition))
    ]
