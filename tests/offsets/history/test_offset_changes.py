"""What an offset changes against the one before it, and what is known of the sources of well-known connectors."""

from __future__ import annotations

import pytest

from eosctl.offsets.history.events import offset_changes, type_name, went_back
from eosctl.offsets.history.sources import KNOWN_SOURCES, known_source, lsn_number, lsn_text, lsn_texts

Members = dict[str, object]
SERVER: Members = {"server": "s"}
BINLOG: Members = {"file": "mysql-bin.000009", "pos": 900, "event": 2}
MARIADB: Members = {**BINLOG, "gtids": "0-4711-4041"}
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
CDC: Members = {"commit_lsn": "0000006a:00006608:0003", "change_lsn": "0000006a:00006608:0002", "event_serial_no": 1}


def changed(partition: Members, before: Members, after: Members) -> dict[str, str]:
    found = offset_changes(before, after, known_source(partition, before))
    return {each.member: each.change.value for each in found}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"n": 1}, {"n": 1}, {}),
        ({"n": 1}, {"n": 2}, {"n": "changed"}),
        ({"n": 2.5}, {"n": 1.5}, {"n": "changed"}),
        ({"n": 1}, {"n": 1.0}, {"n": "type"}),
        ({"n": 1}, {"n": True}, {"n": "type"}),
        ({"n": 1}, {"n": "2"}, {"n": "type"}),
        ({"n": False}, {"n": True}, {"n": "changed"}),
        ({"at": "a1"}, {"at": "a2"}, {"at": "changed"}),
        ({"n": 1, "m": 2}, {"m": 1, "o": "x"}, {"n": "missing", "m": "changed", "o": "new"}),
        ({"n": None}, {}, {}),
        ({"n": None}, {"n": 1}, {"n": "new"}),
    ],
)
def test_of_a_source_that_nobody_knows_no_number_has_a_direction(
    before: Members, after: Members, expected: dict[str, str]
) -> None:
    """Every greater number was said to skip what lies between, also a counter of retries."""
    assert changed({"any": 1}, before, after) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"lsn": 5, "txId": 1}, {"lsn": 4, "txId": 9}, {"lsn": "backward", "txId": "changed"}),
        ({"lsn": 5, "lsn_proc": 5}, {"lsn": 9, "lsn_proc": 4}, {"lsn": "changed", "lsn_proc": "backward"}),
        ({"lsn": 28717056}, {"lsn": "0/1B63000"}, {"lsn": "type"}),
        (BINLOG, {**BINLOG, "file": "mysql-bin.000010", "pos": 4}, {"file": "forward", "pos": "changed"}),
        (BINLOG, {"file": "mysql-bin.000009", "pos": 4}, {"pos": "backward", "event": "missing"}),
        (BINLOG, {**BINLOG, "gtids": "a:1-5"}, {"gtids": "new"}),
        (BINLOG, {**BINLOG, "pos": 4, "gtids": "0-1-5"}, {"pos": "changed", "gtids": "new"}),
        (MARIADB, {**MARIADB, "gtids": "0-4711-4141"}, {"gtids": "forward"}),
        (MARIADB, {**MARIADB, "gtids": "0-4711-4040", "pos": 4}, {"gtids": "backward", "pos": "changed"}),
        (MARIADB, {**MARIADB, "pos": 4}, {"pos": "changed"}),
        (MARIADB, {**MARIADB, "pos": 4, "event": 1}, {"pos": "changed", "event": "backward"}),
        (MARIADB, {**MARIADB, "gtids": "0-4712-4040"}, {"gtids": "changed"}),
        (MARIADB, {**MARIADB, "gtids": "1-1-1"}, {"gtids": "mixed"}),
        (MARIADB, {**BINLOG, "pos": 4}, {"pos": "changed", "gtids": "missing"}),
        ({**BINLOG, "gtids": f"{UUID}:1-9"}, {**BINLOG, "gtids": f"{UUID}:1-99"}, {"gtids": "forward"}),
        ({**BINLOG, "gtids": f"{UUID}:1-9"}, {**BINLOG, "gtids": f"{UUID.upper()}:1-5:6-9"}, {}),
        (CDC, {**CDC, "commit_lsn": "0000006A:00006607:0003"}, {"commit_lsn": "backward"}),
        (CDC, {**CDC, "change_lsn": "0000006a:00006608:0009"}, {"change_lsn": "forward"}),
        ({"scn": "999", "commit_scn": "1000"}, {"scn": "1001", "commit_scn": "1000"}, {"scn": "forward"}),
        ({"scn": "9", "commit_scn": "7:a:1"}, {"scn": "9", "commit_scn": "7:a:2"}, {"commit_scn": "changed"}),
    ],
)
def test_of_a_database_s_log_the_weightiest_member_decides(
    before: Members, after: Members, expected: dict[str, str]
) -> None:
    """A new binlog file begins at a smaller position, and still lies further on."""
    assert changed(SERVER, before, after) == expected


@pytest.mark.parametrize(
    ("partition", "offset", "name"),
    [
        (SERVER, {"lsn": 1, "txId": 2, "ts_usec": 3}, "Debezium PostgreSQL"),
        (SERVER, BINLOG, "Debezium MySQL or MariaDB"),
        ({"server": "s", "database": "d"}, CDC, "Debezium SQL Server"),
        (SERVER, {"scn": "1", "commit_scn": "2"}, "Debezium Oracle"),
        ({"protocol": "1", "table": "d.t"}, {"incrementing": 1}, "JDBC"),
        ({"query": "query"}, {"timestamp": 1, "timestamp_nanos": 2}, "JDBC"),
        ({"filename": "/f"}, {"position": 1}, "FileStream"),
        ({"cluster": "a", "partition": 0, "topic": "t"}, {"offset": 1}, "MirrorMaker 2"),
        ({"sourceClusterAlias": "a", "targetClusterAlias": "b"}, {"offset": 0}, None),
        (SERVER, {"commit_lsn": "0:1", "change_lsn": "0:1"}, "Debezium Db2, or SQL Server before 2.0"),
        ({"server": "s", "database": "d"}, {"commit_lsn": "0:1", "snapshot": "INITIAL"}, "Debezium SQL Server"),
        (SERVER, {"lcr_position": "00ff", "commit_scn": None}, "Debezium Oracle"),
        ({"server_id": "s"}, {"sec": 1, "ord": 2}, "Debezium MongoDB"),
        ({"ns": "mongodb://h/d"}, {"_id": "{}"}, "MongoDB's connector"),
        ({"bucket": "b", "objectKey": "k"}, {"recordCount": 1}, "Aiven's S3 source"),
        ({"container": "b", "blobName": "k"}, {"recordCount": 1}, "Aiven's Azure Blob source"),
        ({"container": "b", "prefix": "p"}, {"path": "p/1", "line": "1"}, "Lenses' S3 or GCS source"),
        ({"fileName": "f"}, {"offset": 1}, "SpoolDir"),
        ({"source": "QM/Q"}, {"sequence-id": 1}, "IBM MQ, exactly once"),
        (SERVER, {"vgtid": "[]"}, None),
        (None, {"position": 1}, None),
    ],
)
def test_sources_are_known_by_the_members_of_their_offsets(
    partition: Members | None, offset: Members, name: str | None
) -> None:
    found = known_source(partition, offset)
    assert (found.name if found else None) == name


def test_each_known_source_says_what_it_keeps() -> None:
    assert len({source.name for source in KNOWN_SOURCES}) == len(KNOWN_SOURCES) == 15
    assert all(source.keeps and not source.keeps.endswith(".") for source in KNOWN_SOURCES)
    assert [source.name for source in KNOWN_SOURCES if source.instead] == [
        name.name for name in KNOWN_SOURCES if name.name.startswith("Debezium")
    ]


@pytest.mark.parametrize(
    ("number", "text"), [(28717056, "0/1B63000"), (0, "0/0"), (2**32, "1/0"), (0x16B374D848, "16/B374D848")]
)
def test_a_log_sequence_number_is_shown_as_postgresql_prints_it(number: int, text: str) -> None:
    assert (lsn_text(number), lsn_number(text), lsn_number(text.lower())) == (text, number, number)
    assert [lsn_number(other) for other in (number, "1B63000", "0/", "0/123456789", None)] == [None] * 5


def test_only_what_is_a_number_is_shown_as_one() -> None:
    assert lsn_texts({"lsn": 16, "lsn_proc": None, "lsn_commit": 17, "n": 18}) == {"lsn": "0/10", "lsn_commit": "0/11"}
    assert [lsn_texts(each) for each in ({"lsn": "16"}, {"lsn": True}, {"lsn_proc": 1}, {"lsn": -1}, None, "lsn")] == [
        None
    ] * 6


def test_types_have_the_names_that_people_use() -> None:
    names = [type_name(each) for each in (None, True, 1, 1.5, "1", [1])]
    assert names == ["null", "true or false", "an integer", "a number with a point", "text", "a list or an object"]


@pytest.mark.parametrize(
    ("partition", "before", "after", "back"),
    [
        ({"filename": "/f"}, {"position": 9}, {"position": 8}, True),
        ({"filename": "/f"}, {"position": 8}, {"position": 9}, False),
        ({"filename": "/f"}, {"position": 8}, {"position": 8}, False),
        ({"filename": "/f"}, {"position": 8}, {"position": None}, False),
        (SERVER, {"lsn": 9, "lsn_commit": 5}, {"lsn": 7, "lsn_commit": 6}, False),
        (SERVER, {"lsn": 9, "lsn_commit": 5}, {"lsn": 3, "lsn_commit": 4}, True),
        (SERVER, {"lsn": 9, "lsn_commit": 5}, {"lsn": 3, "lsn_commit": 4, "lsn_new": 1}, False),
        (SERVER, {"lsn": 9}, {"lsn": 7}, False),
        (SERVER, BINLOG, {**BINLOG, "pos": 100}, True),
        (SERVER, BINLOG, {**BINLOG, "file": "mysql-bin.000010", "pos": 4}, False),
        (SERVER, BINLOG, {**BINLOG, "file": "mysql-bin.000001", "pos": 4}, True),
        (SERVER, BINLOG, {"file": "mysql-bin.000001", "pos": 4, "snapshot": "INITIAL"}, False),
        (SERVER, BINLOG, {"file": "mysql-bin.000001", "pos": 4, "snapshot": True}, False),
        (SERVER, {**BINLOG, "server_id": 1}, {**BINLOG, "server_id": 2, "pos": 4}, False),
        (SERVER, BINLOG, {**BINLOG, "pos": 4, "incremental_snapshot_primary_key": "x"}, True),
        (SERVER, BINLOG, {**BINLOG, "file": "other-bin.000001", "pos": 4}, False),
        (SERVER, {**BINLOG, "gtids": "a:1-9"}, {**BINLOG, "gtids": "a:1-9", "pos": 100}, False),
        (SERVER, MARIADB, {**MARIADB, "gtids": "0-4711-4040"}, True),
        (SERVER, MARIADB, {**MARIADB, "gtids": "0-4711-4042", "pos": 4}, False),
        (SERVER, MARIADB, {**MARIADB, "gtids": "0-4712-4040"}, False),
        (SERVER, MARIADB, {**MARIADB, "gtids": "0-4711-4040,1-1-1"}, False),
        (SERVER, MARIADB, {**MARIADB, "event": 1}, False),
        (SERVER, MARIADB, BINLOG, False),
        (SERVER, {**BINLOG, "gtids": f"{UUID}:1-9"}, {**BINLOG, "gtids": f"{UUID}:1-8"}, True),
        (SERVER, CDC, {**CDC, "commit_lsn": "0000006a:00006608:0001"}, True),
        (SERVER, CDC, {"change_lsn": CDC["change_lsn"], "event_serial_no": 1}, False),
        (SERVER, {"scn": "9", "commit_scn": "8:1:a"}, {"scn": "7", "commit_scn": "6:1:a"}, True),
        (SERVER, {"scn": "9", "commit_scn": "8:1:a"}, {"scn": "7", "commit_scn": "8:1:a"}, False),
        (SERVER, {"scn": "9", "commit_scn": "8:1:a"}, {"scn": "7", "commit_scn": "6:1:a", "snapshot": True}, False),
        (SERVER, CDC, {**CDC, "commit_lsn": "0000006a:00006608:0004", "event_serial_no": 0}, False),
        ({"table": "t"}, {"timestamp": 5, "incrementing": 9}, {"timestamp": 6, "incrementing": 1}, False),
        ({"table": "t"}, {"timestamp": 5, "incrementing": 9}, {"timestamp": 5, "incrementing": 1}, True),
        ({"cluster": "a", "partition": 0, "topic": "t"}, {"offset": 9}, {"offset": 0}, True),
    ],
)
def test_only_what_certainly_lies_before_went_back(
    partition: Members, before: Members, after: Members, back: bool
) -> None:
    """What changes in one transaction of PostgreSQL lies among that of others: its lsn goes to and fro by itself."""
    source = known_source(partition, before)
    assert source is not None
    assert went_back(before, after, source) is back
