"""Tables in files of Arrow's IPC format: written whole or not at all, read without being copied.

What readers find is kept in a folder by the part of the work that each key belongs to (`places`): any task finds all
that is known of its keys, whoever has read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from eosctl.engine.columns import RECORDS
from eosctl.engine.places import Places
from eosctl.engine.read import Fold

_ABOUT = b"eosctl"


def write_table(file: Path, table: pa.Table) -> None:
    """Puts a table into a file."""
    with _whole_file(file) as draft, pa.ipc.new_file(draft, table.schema) as writer:
        writer.write_table(table)


def read_table(file: Path) -> pa.Table:
    """The table of a file; it lies in the file for as long as it is used."""
    with pa.memory_map(str(file)) as source:
        return pa.ipc.open_file(source).read_all()


@contextmanager
def _whole_file(file: Path) -> Iterator[str]:
    draft = file.with_name(f".{file.name}.{uuid4().hex}")
    try:
        yield str(draft)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def part_file(folder: Path, number: int) -> Path:
    """The file of part `number`."""
    return folder / f"part-{number:05}.arrow"


def part_files(folder: Path) -> list[Path]:
    """The files of all parts, in their order."""
    return sorted(folder.glob("part-*.arrow"))


@dataclass(frozen=True, slots=True)
class Landed:
    """What a reader has put into files: whose offsets, whether all keys are where Connect's producer puts them, and how
    many `records` came to it."""

    connectors: frozenset[str]
    in_place: bool
    records: int


def land(folder: Path, number: int, folds: Iterable[Fold], places: Places) -> Landed:
    """Puts what reader `number` has read into files of `folder`; a second attempt takes the place of the first."""
    for old in folder.glob(f"{number:05}-*.arrow"):
        old.unlink(missing_ok=True)
    connectors, in_place, records = set[str](), True, 0
    for count, fold in enumerate(folds):
        split = [(part, batch) for part, some in places.split(fold) for batch in some.combine_chunks().to_batches()]
        about = {"parts": [part for part, _ in split], "older": fold.older}
        schema = RECORDS.with_metadata({_ABOUT: json.dumps(about)})
        with _whole_file(folder / f"{number:05}-{count:05}.arrow") as draft, pa.ipc.new_file(draft, schema) as writer:
            for _part, batch in split:
                writer.write_batch(batch)
        connectors |= fold.connectors()
        in_place = in_place and fold.in_place()
        records += fold.read
    return Landed(frozenset(connectors), in_place, records)


@dataclass(frozen=True, slots=True)
class PartRecords:
    """All `records` that were read of the keys of a part; `once` says that each partition and key is there once."""

    records: pa.Table
    once: bool


def read_part(folder: Path, number: int) -> PartRecords:
    """What all readers found of the keys of part `number`."""
    batches, once = [RECORDS.empty_table()], True
    for file in sorted(folder.glob("[0-9]*.arrow")):
        with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as reader:
            places = [place for place, part in enumerate(_about(reader)["parts"]) if part == number]
            found = [reader.get_batch(place) for place in places]
        batches += [pa.Table.from_batches([batch]).replace_schema_metadata() for batch in found]
        once = once and (not found or file.stem.endswith("-00000"))
    return PartRecords(pa.concat_tables(batches), once)


def older_in(folder: Path) -> int:
    """How many records the readers have left out for newer ones of the same keys."""
    older = 0
    for file in folder.glob("[0-9]*.arrow"):
        with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as reader:
            older += _about(reader)["older"]
    return older


def _about(reader: pa.ipc.RecordBatchFileReader) -> dict[str, Any]:
    return json.loads(reader.schema.metadata[_ABOUT])  # type: ignore[no-any-return] # written by `land`
