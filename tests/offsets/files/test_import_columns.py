"""The rule of an import over columns is the one over single records, on any cases; and what comes of it in a topic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.names import partition_for
from eosctl.core.records import Record
from eosctl.engine import files as grouped
from eosctl.engine.files import SpillFile
from eosctl.engine.incoming import incoming_table
from eosctl.engine.planned import PlannedWrites
from eosctl.engine.stores import as_columns
from eosctl.offsets.files.importing import plan_import
from eosctl.offsets.files.offsets_file import of_tables
from tests.core.offsets.stores import PARTITIONS, store
from tests.offsets.files.import_rule import expected_import

KEYS = (b'["c",{"f":"a"}]', b'["c",{"f":"b"}]', b"\xff", b"", b'["d",{"f" : 1}]', b'["c",null]')
VALUES = st.sampled_from([None, b"", b"null", b" null ", b'{"n":1}', b'{"n":2}', b"\xfe"])
TIMES, HEADERS = st.integers(-1, 4), st.sampled_from([(), (("h", b"\xff"), ("h", None))])
IN_FILE = st.builds(
    Record, st.sampled_from(["t", "other"]), st.integers(-1, PARTITIONS - 1), st.integers(-1, 4), TIMES,
    st.sampled_from(KEYS), VALUES, HEADERS,
)  # fmt: skip
PLACES = st.one_of(st.none(), st.integers(0, PARTITIONS - 1))
THERE = st.tuples(st.sampled_from(KEYS), PLACES, st.integers(0, 4), VALUES, HEADERS)


@pytest.fixture(scope="module")
def spool(tmp_path_factory: pytest.TempPathFactory) -> SpillFile:
    return SpillFile(tmp_path_factory.mktemp("spool"))


@given(
    st.lists(IN_FILE, max_size=12),
    st.lists(THERE, max_size=8),
    st.booleans(),
    st.booleans(),
    st.sampled_from([100, 1, 3]),
)
def test_columns_decide_as_single_records(
    spool: SpillFile,
    in_file: list[Record],
    there: list[tuple[bytes, int | None, int, bytes | None, tuple[tuple[str, bytes | None], ...]]],
    keep: bool,
    rewrite: bool,
    part_records: int,
) -> None:
    """Also where the file does not fit into memory, and is decided part by part."""
    records = [
        Record("t", partition_for(key, PARTITIONS) if place is None else place, offset, at, key, value, headers)
        for offset, (key, place, at, value, headers) in enumerate(there)
    ]
    before = store(*records)
    expected = expected_import(in_file, records, partitions=PARTITIONS, keep_partitions=keep, rewrite=rewrite)
    tables = [incoming_table([[n], *([part] for part in each)]) for n, each in enumerate(in_file, start=1)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(grouped, "PART_RECORDS", part_records)
        file = of_tables(tables, spool, name="f", connectors=())
        found = plan_import(file, as_columns(before), spool, keep=keep, rewrite=rewrite)
    wanted = list(PlannedWrites.of(expected.writes))
    if found.writes.count_parts() < 2:
        assert list(found.writes) == wanted
    else:
        assert sorted(found.writes, key=repr) == sorted(wanted, key=repr)
    assert found.superseded == len(expected.superseded)
    assert found.first == expected.superseded[:3]
