"""Tables in files: what they take on the disk, and what is read of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from eosctl.core.offsets.migration import ONE_PART
from eosctl.core.records import Record
from eosctl.engine.columns import RECORDS
from eosctl.engine.files import KeyParts, land, read_part, read_table, tables_in, write_table
from eosctl.engine.reading.newest import Fold, records_table


def table(rows: int) -> pa.Table:
    key = '["inventory-source",{"table":"orders_%d"}]'
    records = (Record("offsets", 0, number, 1, (key % number).encode(), b'{"lsn":0}') for number in range(rows))
    return records_table("offsets", records, partitions=1)


def test_files_have_a_fraction_of_the_bytes_of_their_tables(tmp_path: Path) -> None:
    """Of 20 million records deciding waited for the disk for most of its time."""
    records = table(20_000)
    write_table(tmp_path / "table", records)
    assert (tmp_path / "table").stat().st_size < records.nbytes / 4
    land(tmp_path, 0, [Fold(records, 0, len(records), {"offsets": 1})], KeyParts(ONE_PART))
    assert (tmp_path / "00000.arrow").stat().st_size < records.nbytes / 4
    assert read_table(tmp_path / "table") == read_part(tmp_path, 0) == records


@pytest.mark.parametrize("rows", [0, 1, 100_000, 250_000])
def test_some_columns_are_read_some_rows_at_a_time(tmp_path: Path, rows: int) -> None:
    records, names = table(rows), ["value", "key"]
    write_table(tmp_path / "table", records)
    found = list(tables_in(tmp_path / "table", names))
    assert max(map(len, found)) <= 100_000
    assert pa.concat_tables(found) == read_table(tmp_path / "table", names) == records.select(names)


def test_columns_that_a_file_lacks_are_told(tmp_path: Path) -> None:
    write_table(tmp_path / "table", RECORDS.empty_table())
    for read in (read_table, lambda *what: list(tables_in(*what))):
        with pytest.raises(KeyError) as caught:
            read(tmp_path / "table", ["key", "reason", "action"])
        assert caught.value.args == ("action", "reason")
