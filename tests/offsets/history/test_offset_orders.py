"""The order of two offsets of each known connector: what real ones wrote, what their sources say, and the laws."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.offsets.history.events import compare_offsets, offset_changes
from eosctl.offsets.history.gtids import Order
from eosctl.offsets.history.sources import KNOWN_SOURCES, KnownSource, known_source

Members = dict[str, object]
SERVER: Members = {"server": "cdc"}
BACK = {Order.AHEAD: Order.BEHIND, Order.BEHIND: Order.AHEAD}


def wal(proc: int, kind: str, commit: int | None = None, lsn: int = 0, events: int = 0, **more: object) -> Members:
    """Return an offset of the streaming phase as Debezium writes it; `lsn` is `proc` unless given."""
    commits = {} if commit is None else {"lsn_commit": commit}
    counts = {"lsn_events_processed": events} if events else {}
    return {"lsn_proc": proc, "messageType": kind, **commits, "lsn": lsn or proc, **counts, **more}


SNAPSHOT: Members = {"snapshot": "INITIAL", "lsn": 22515480, "txId": 768, "ts_usec": 1795865147956070}
POSTGRESQL = [
    {**SNAPSHOT, "snapshot_completed": False, "last_snapshot_record": False},
    {**SNAPSHOT, "snapshot_completed": True, "last_snapshot_record": True},
    wal(22515480, "BEGIN", lsn=22515520, transaction_id="769"),
    wal(22515520, "INSERT", events=1, txId=769, transaction_id="769"),
    wal(22515696, "COMMIT", 22515696),
    wal(22515696, "BEGIN", 22515696, transaction_id="770"),
    wal(22515696, "INSERT", 22515696, events=1, transaction_id="770"),
    wal(22515824, "INSERT", 22515696, events=1, transaction_id="770"),
    wal(22515952, "INSERT", 22515696, events=1, transaction_id="770"),
    wal(22516128, "COMMIT", 22516128),
    wal(22516128, "BEGIN", 22516128),
    wal(22516128, "INSERT", 22516128, events=1, txId=771),
    wal(22516128, "INSERT", 22516128, events=2, txId=771),
    wal(22516128, "INSERT", 22516128, events=3, txId=771),
    wal(22516128, "INSERT", 22516128, events=4, txId=771),
    wal(22516552, "COMMIT", 22516552),
    wal(22516552, "UPDATE", 22516552, events=1, txId=772),
    wal(22516680, "INSERT", 22516680, events=1),
    wal(22516808, "INSERT", 22516680, events=1),
    wal(22517168, "INSERT", 22516984, events=1, txId=775),
    wal(22517296, "INSERT", 22516984, events=1, txId=775),
    wal(22517040, "INSERT", 22517472, events=1, txId=774),
    wal(22517472, "INSERT", 22517472, events=1, txId=774),
]
"""What debezium-connector-postgres 3.7.1 wrote, in this order: a snapshot, COPY, and two transactions side by side."""


def at(file: int, pos: int, gtids: str, event: int, row: int) -> Members:
    position: Members = {"file": f"bin.{file:06}", "pos": pos, "gtids": gtids, "event": event, "row": row}
    return {"ts_sec": 1795865987 + pos, "server_id": 4711, **position}


MARIADB_START: Members = {"ts_sec": 1795865682, "file": "bin.000002", "pos": 833, "gtids": "0-4711-8,1-4711-1"}
MARIADB = [
    {**MARIADB_START, "snapshot": "INITIAL"},
    MARIADB_START,
    at(2, 833, "0-4711-8,1-4711-1", 2, 1),
    at(2, 1044, "0-4711-9,1-4711-1", 2, 1),
    at(2, 1044, "0-4711-9,1-4711-1", 2, 3),
    at(2, 1287, "0-4711-10,1-4711-1", 2, 1),
    at(2, 1287, "0-4711-10,1-4711-1", 4, 1),
    at(2, 1287, "0-4711-10,1-4711-1", 4, 2),
    at(2, 1652, "0-4711-11,1-4711-1", 2, 1),
    at(3, 352, "0-4711-11,1-4711-2", 2, 1),
    at(3, 600, "0-4711-12,1-4711-2", 2, 2),
]
"""What debezium-connector-mariadb 3.5.0 wrote with MariaDB 10.11, in this order: two domains, and two files."""


def order(partition: Mapping[str, object], before: Members, after: Members) -> Order:
    return compare_offsets(before, after, known_source(partition, before) or known_source(partition, after)).order


@pytest.mark.parametrize("trace", [POSTGRESQL, MARIADB], ids=["postgresql", "mariadb"])
def test_what_a_real_connector_wrote_later_is_ahead(trace: list[Members]) -> None:
    """PostgreSQL's changes of a transaction lie before those of one that was committed earlier."""
    for before, after in itertools.combinations(trace, 2):
        assert (order(SERVER, before, after), order(SERVER, after, before)) == (Order.AHEAD, Order.BEHIND)
    assert {order(SERVER, each, dict(each)) for each in trace} == {Order.EQUAL}


COPIED = wal(22516128, "INSERT", 22516128, events=2)


@pytest.mark.parametrize(
    ("after", "expected", "changes"),
    [
        (wal(22516128, "INSERT", 22516128, events=5), Order.AHEAD, {"lsn_events_processed": "forward"}),
        (wal(22516128, "INSERT", 22516128, events=1), Order.BEHIND, {"lsn_events_processed": "backward"}),
        (wal(22516128, "INSERT", 22516128), Order.INCOMPARABLE, {"lsn_events_processed": "missing"}),
        ({**COPIED, "txId": 7, "xmin": 5}, Order.EQUAL, {"txId": "new", "xmin": "new"}),
        ({**COPIED, "lsn_rows": 5}, Order.INCOMPARABLE, {"lsn_rows": "new"}),
        ({**COPIED, "incremental_snapshot_primary_key": "x"}, Order.INCOMPARABLE,
         {"incremental_snapshot_primary_key": "new"}),
        ({**COPIED, "snapshot": "INITIAL", "snapshot_completed": False}, Order.BEHIND,
         {"snapshot": "backward", "snapshot_completed": "new"}),
    ],
)  # fmt: skip
def test_a_place_within_one_log_sequence_number(after: Members, expected: Order, changes: dict[str, str]) -> None:
    """Records 3 to 5 of a COPY were skipped without a word; connector 3.7.1 skips the rest of it without the member."""
    assert order(SERVER, COPIED, after) is expected
    assert {
        each.member: each.change.value for each in offset_changes(COPIED, after, known_source(SERVER, after))
    } == changes


CDC: Members = {"server": "s", "database": "d"}
COMMIT = "0000006a:00006608:0003"


def cdc(commit: str, change: str | None, serial: int | None) -> Members:
    return {"commit_lsn": commit, "change_lsn": change, "event_serial_no": serial}


def token(data: str) -> str:
    """Return a resume token as Debezium stores it: `{_data: "..."}` as BSON, in base64."""
    text = data.encode() + b"\0"
    body = b"\x02_data\0" + len(text).to_bytes(4, "little") + text + b"\0"
    return base64.b64encode((len(body) + 4).to_bytes(4, "little") + body).decode()


def mongo(data: str, sec: int = -1, ord_: int = -1) -> Members:
    return {"sec": sec, "ord": ord_, "resume_token": token(data)}


NS: Members = {"ns": "mongodb://h/d"}
CLOUD: Members = {"container": "c", "prefix": "p"}


def own(data: str, **more: object) -> Members:
    """Return an offset of MongoDB's own connector."""
    return {"_id": f'{{"_data": "{data}"}}', **more}


ONE, SAME_TIME, LATER = "8265A1B2C3000000012B04", "8265A1B2C3000000012B99", "8265A1B2C3000000022B04"


@pytest.mark.parametrize(
    ("partition", "before", "after", "expected"),
    [
        (CDC, cdc(COMMIT, "NULL", 1), cdc(COMMIT, "0000006a:00006608:0001", 1), "ahead"),
        (CDC, cdc(COMMIT, "0000006a:00006608:0009", 2), cdc("0000006A:00006609:0001", None, None), "ahead"),
        (CDC, cdc(COMMIT, None, 1), cdc(COMMIT, None, 2), "ahead"),
        (CDC, cdc(COMMIT, None, 1), cdc("6a:00006608:0003", None, 1), "incomparable"),
        (SERVER, {"file": "b.000009", "pos": 4}, {"file": "b.000010", "pos": 4}, "ahead"),
        (SERVER, {"file": "b.999999", "pos": 4}, {"file": "b.1000000", "pos": 4}, "ahead"),
        (SERVER, {"file": "b.000009", "pos": 4}, {"file": "c.000010", "pos": 4}, "incomparable"),
        (SERVER, {"file": "b.1", "pos": 4, "server_id": 1}, {"file": "b.1", "pos": 5, "server_id": 2}, "incomparable"),
        (SERVER, {"file": "b.1", "pos": 4}, {"file": "b.1", "pos": 4, "gtids": "0-1-1"}, "incomparable"),
        (SERVER, {"file": "b.1", "pos": 4, "row": 1}, {"file": "b.1", "pos": 4, "event": 1}, "ahead"),
        (SERVER, {"scn": "9", "commit_scn": "7:1:a-b"}, {"scn": "9", "commit_scn": "7:1:a-b-c"}, "ahead"),
        (SERVER, {"scn": "9", "commit_scn": "7:1:a,8:2:b"}, {"scn": "10", "commit_scn": "8:2:b,9:1:c"}, "ahead"),
        (SERVER, {"scn": "9", "commit_scn": "7:1:a,8:2:b"}, {"scn": "9", "commit_scn": "8:1:a,7:2:b"}, "mixed"),
        (SERVER, {"scn": "9", "commit_scn": "7:1:a"}, {"scn": "10", "commit_scn": "6:1:a"}, "mixed"),
        (SERVER, {"scn": "9", "commit_scn": "7"}, {"scn": "9", "commit_scn": "7:1:"}, "equal"),
        (SERVER, {"scn": "9", "txId": "a", "txSeq": 1}, {"scn": "9", "txId": "a", "txSeq": 2}, "ahead"),
        (SERVER, {"scn": "9", "txId": "a", "txSeq": 1}, {"scn": "9", "txId": "b", "txSeq": 2}, "incomparable"),
        (SERVER, {"lcr_position": "00ff"}, {"lcr_position": "0100"}, "ahead"),
        (SERVER, {"lcr_position": "00ff"}, {"lcr_position": "010000"}, "incomparable"),
        (SERVER, {"lcr_position": "00ff"}, {"scn": "9"}, "incomparable"),
        (CDC, {"commit_lsn": COMMIT}, {"snapshot_completed": True}, "incomparable"),
        (SERVER, {"scn": "9"}, {"scn": "9", "snapshot_scn": "3"}, "incomparable"),
        ({"server_id": "m"}, mongo(ONE), mongo(LATER), "ahead"),
        ({"server_id": "m"}, mongo(ONE), mongo(SAME_TIME), "incomparable"),
        ({"server_id": "m"}, mongo(ONE, 5, 1), mongo(ONE), "equal"),
        ({"server_id": "m"}, mongo(ONE), {"sec": 0x65A1B2C4, "ord": 1}, "ahead"),
        ({"server_id": "m"}, mongo(ONE), {"sec": 0x65A1B2C3, "ord": 1}, "incomparable"),
        ({"server_id": "m"}, mongo(ONE), {"sec": 5, "ord": 1, "resume_token": ONE}, "incomparable"),
        ({"server_id": "m"}, {"sec": 5, "ord": 1}, {"sec": 5, "ord": 2}, "ahead"),
        ({"server_id": "m"}, {"sec": 5, "ord": 1, "initsync": True}, {"sec": 5, "ord": 1}, "ahead"),
        (NS, own(ONE), own(LATER, HEARTBEAT="true"), "ahead"),
        (NS, own(ONE), own(SAME_TIME), "incomparable"),
        (NS, own("x", copy="true"), own(ONE), "incomparable"),
        (NS, own(ONE, copy="true"), own(ONE), "ahead"),
        ({"table": "t"}, {"timestamp": 5, "incrementing": 9}, {"timestamp": 6, "incrementing": 1}, "ahead"),
        ({"table": "t"}, {"timestamp": 5, "timestamp_nanos": 1}, {"timestamp": 5, "timestamp_nanos": 2}, "ahead"),
        ({"table": "t"}, {"timestamp": 5}, {"timestamp": 5, "timestamp_nanos": 5000000}, "incomparable"),
        ({"query": "query"}, {"incrementing": 9}, {"timestamp": 6, "incrementing": 10}, "incomparable"),
        (CLOUD, {"path": "a", "line": "9"}, {"path": "a", "line": "10", "ts": "1"}, "ahead"),
        (CLOUD, {"path": "a", "line": "9"}, {"path": "b", "line": "10"}, "incomparable"),
        ({"bucket": "b", "objectKey": "k"}, {"recordCount": 1}, {"recordCount": 2}, "ahead"),
        ({"source": "QM/Q"}, {"sequence-id": 1}, {"sequence-id": 2}, "incomparable"),
        ({"filename": "/f"}, {"position": 5}, {"position": 5.5}, "incomparable"),
        ({"filename": "/f"}, {"position": 5}, {}, "incomparable"),
        ({"any": 1}, {"n": 1}, {"n": 2}, "incomparable"),
        ({"any": 1}, {"n": 1}, {"n": 1, "m": None}, "equal"),
    ],
)  # fmt: skip
def test_what_the_sources_say_of_two(partition: Members, before: Members, after: Members, expected: str) -> None:
    found = order(partition, before, after)
    assert found == expected
    assert order(partition, after, before) is BACK.get(found, found)


UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "gtids": st.sampled_from(["", "0-1-5", "0-1-6", "0-2-6", "0-1-6,1-1-1", f"{UUID}:1-5", f"{UUID}:1-6", "?"]),
    "file": st.sampled_from(["b.000009", "b.000010", "c.000001", "b"]),
    "commit_lsn": st.sampled_from(["NULL", "0000006a:00006608:0003", "0000006A:00006608:0004", "6a", "x"]),
    "change_lsn": st.sampled_from([None, "0000006a:00006608:0003", "0000006A:00006608:0004"]),
    "commit_scn": st.sampled_from([None, "7", "7:1:", "7:1:a", "7:1:a-b", "8:1:c,5:2:d", "8:1:c", "7:x:1"]),
    "scn": st.sampled_from(["9", "10", 9]),
    "lcr_position": st.sampled_from([None, "00ff", "0100", "01"]),
    "messageType": st.sampled_from([None, "BEGIN", "COMMIT", "INSERT"]),
    "resume_token": st.sampled_from([None, *map(token, (ONE, SAME_TIME, LATER)), ONE, "?"]),
    "_id": st.sampled_from([*(f'{{"_data": "{data}"}}' for data in (ONE, SAME_TIME, LATER)), "{}", "?"]),
    "path": st.sampled_from(["a", "b"]),
    "snapshot": st.sampled_from([None, True, "INITIAL", "INCREMENTAL"]),
    "initsync": st.sampled_from([None, True]),
    "copy": st.sampled_from([None, "true"]),
    "snapshot_completed": st.booleans(),
    "last_snapshot_record": st.none(),
}
SMALL = st.sampled_from([None, 1, 2, 3])


def offsets_of(source: KnownSource) -> st.SearchStrategy[Members]:
    names = [*source.positions, *source.in_snapshot]
    return st.fixed_dictionaries({name: VALUES.get(name, SMALL) for name in names})


@pytest.mark.parametrize("source", KNOWN_SOURCES, ids=lambda source: source.name)
@given(data=st.data())
def test_the_order_has_the_laws_of_an_order(source: KnownSource, data: st.DataObject) -> None:
    """Each offset equals itself, the way back is the other way, and what is ahead of what is ahead is not behind."""
    one, two, three = (data.draw(offsets_of(source)) for _ in range(3))
    orders = [compare_offsets(*pair, source).order for pair in ((one, two), (two, one), (two, three), (one, three))]
    assert compare_offsets(one, dict(one), source).order is Order.EQUAL
    assert orders[1] is BACK.get(orders[0], orders[0])
    if {orders[0], orders[2]} <= {Order.AHEAD, Order.EQUAL}:
        assert orders[3] not in (Order.BEHIND, Order.MIXED)
        assert orders[3] is not Order.EQUAL or Order.AHEAD not in orders
    alike = len({offset.get("lsn_commit") is None for offset in (one, two, three)}) == 1
    if alike and orders[0] is orders[2] is Order.AHEAD:
        assert orders[3] is Order.AHEAD
    if orders[0] is orders[2] is Order.EQUAL:
        assert orders[3] is Order.EQUAL


@st.composite
def logs(draw: st.DrawFn) -> list[Members]:
    """The offsets of a PostgreSQL log, as a connector writes them: transactions side by side, sent as they commit."""
    place = itertools.count(100, 10)
    changes: dict[int, list[int]] = {number: [] for number in range(draw(st.integers(1, 4)))}
    sent: list[tuple[list[int], int]] = []
    for number in draw(st.permutations([each for each in changes for _ in range(3)])):
        changes[number] += [next(place)] * draw(st.integers(1, 2))
        if len(set(changes[number])) == 3:
            sent.append((changes.pop(number), next(place)))
    found: list[Members] = []
    last = 90
    for lsns, commit in sent:
        for lsn, same in itertools.groupby(lsns):
            found += [wal(lsn, "INSERT", last, events=count) for count, _ in enumerate(same, start=1)]
        found.append(wal(commit, "COMMIT", commit))
        last = commit
    return found


@given(logs(), st.data())
def test_a_log_is_ordered_as_it_was_sent(log: list[Members], data: st.DataObject) -> None:
    first, second = sorted(data.draw(st.tuples(*[st.integers(0, len(log) - 1)] * 2)))
    expected = Order.EQUAL if first == second else Order.AHEAD
    assert order(SERVER, log[first], log[second]) is expected
