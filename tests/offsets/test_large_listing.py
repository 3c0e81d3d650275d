"""`offsets list` of a large topic, read as columns, prints what it prints of the same topic read as rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eosctl.app import App
from eosctl.core.offsets.names import GLOBAL, partition_for
from eosctl.core.offsets.views import OffsetViews, fold_store, offset_views
from eosctl.core.records import Bounds, OutRecord, Record, TopicRead
from eosctl.engine.columns import Table
from eosctl.engine.files import SpilledTable, SpillFile
from eosctl.engine.reading.newest import records_table
from eosctl.engine.stores import ColumnStore, column_store, in_order
from eosctl.offsets.rows import PlainViews, ViewRows
from eosctl.offsets.stores.gather import read_store
from tests.conftest import Outcome
from tests.fakes.offset_topics import IN_OWN, OWN, OffsetWorld
from tests.fakes.world import OFFSETS
from tests.offsets.test_view_rows import VALUES

Run = Callable[..., Outcome]
NAMES = st.sampled_from(["c", "d", "a:", "a:5", "a,"])
TEXTS = st.sampled_from(
    ['"f"', '"f:5"', '"a,"', '",a"', '","', '"a,b: c"', '":"', '""', "0", "-0", "17", "-3", "true", "null", "1.5", "{}"]
)
MEMBERS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "a:", "a:5", ":", "a,", ",", "lsn", "lsn_proc", ""]), TEXTS), max_size=3
)
MAPS = MEMBERS.map(lambda pairs: "{" + ",".join(f'"{name}":{value}' for name, value in pairs) + "}")
SPELLINGS = st.builds(lambda name, source: f'["{name}",{source}]'.encode(), NAMES, MAPS)
ODD_KEYS = st.sampled_from([None, b"", b"x", b'["c",null]', b'["c", {"a":0}]', b'["\\ud800",{"a":1}]', b'["c",{"a":0}'])
PLACES = st.sampled_from(["home", "home", "home", "elsewhere"])
FOUND = st.tuples(SPELLINGS | ODD_KEYS, MAPS.map(str.encode) | VALUES, st.integers(-1, 300_000_000_000_000), PLACES)
OF_LSNS = (
    b'{"lsn":0}', b'{"lsn":null,"lsn_proc":999999999999999999}', b'{"lsn_commit":1,"lsn":-3,"lsn_proc":17}',
    b'{"lsn_proc":17}', b'{"lsn":"17"}', b'{"lsn":true}', b'{"n":":17","b":"lsn"}', b'{"lsn":1,"lsn":2}', b"{}", None,
)  # fmt: skip
MANY_MEMBERS = b"{%s}" % b",".join(b'"%x":0' % number for number in range(500))  # a shape is a regular expression, too
BOUNDS = tuple(Bounds(number, 0, 99, 99) for number in range(3))


def _records(found: Sequence[tuple[bytes | None, bytes | None, int, str]]) -> list[Record]:
    newest: dict[object, Record] = {}
    for number, (key, value, time_ms, where) in enumerate(found):
        partition = (partition_for(key or b"", 3) + (where != "home")) % 3
        newest[number if key is None else (key, partition)] = Record("t", partition, number, time_ms, key, value)
    return sorted(newest.values(), key=lambda record: record[1:3])


@pytest.mark.parametrize("parts", [1, 3])
@given(found=st.lists(FOUND, max_size=6), gone=st.booleans())
@example(found=[(b'["c",{"a":1,"b":2}]', b"{}", 1, "home"), (b'["c",{"b":2,"a":1}]', b"{}", 1, "home")], gone=False)
@example(
    found=[(b'["c",{"a":1}]', b'{"a":1,"a":2}', 1, "home"), (b'["c",{"a":2}]', b'{"lsn":28717056}', 1, "home")],
    gone=True,
)
@example(found=[(b'["c",{"a":-0}]', b"{}", 1, "home"), (b'["c",{"a":0}]', b"{}", 1, "home")], gone=False)
@example(found=[(b'["c",{"a:":"x","b":1}]', b'{"a:":":","b":":5"}', 1, "home")], gone=False)
@example(found=[(b'["c",{"a":"%s"}]' % (5000 * b"x"), b"{}", 1, "home")], gone=False)
@example(
    found=[(b'["c",{"a":0}]', b'{"b":"%s"}' % (5000 * b"x"), 1, "home"), (b'["c",{"a":1}]', b"{}", 1, "home")],
    gone=False,
)
@example(found=[(b'["c",{"a":0}]', MANY_MEMBERS, 1, "home"), (b'["c",{"a":1}]', MANY_MEMBERS, 1, "home")], gone=False)
@example(found=[(b'["c",{"a":%d}]' % number, value, 1, "home") for number, value in enumerate(OF_LSNS)], gone=False)
def test_rows_of_columns_are_the_rows(
    found: list[tuple[bytes | None, bytes | None, int, str]], gone: bool, parts: int
) -> None:
    records = _records(found)
    rows = fold_store(TopicRead("t", BOUNDS, tuple(records), len(records)))
    some = [[record for record in records if record.partition % parts == part] for part in range(parts)]
    tables = [in_order(records_table("t", each, partitions=3)) for each in some]
    large = column_store("t", 3, tables)
    assert (large.names(), sorted(map(repr, large.ignored))) == (rows.names(), sorted(map(repr, rows.ignored)))
    for connector in sorted(rows.names()):
        expected = offset_views({GLOBAL: rows}, connector, dedicated_in_use=False, gone=gone)
        views: OffsetViews | PlainViews = PlainViews(large, connector, gone)
        if not large.is_plain(connector):
            views = offset_views({GLOBAL: large.of(connector)}, connector, dedicated_in_use=False, gone=gone)
        assert (len(views), list(views), views.connector) == (len(expected), list(expected), connector)
        assert views.unseen_at_runtime() == expected.unseen_at_runtime()
        assert views.is_live() == expected.is_live()
        found_rows, wanted = (list(ViewRows([some], now_ms=1_800_000_000_000)) for some in (views, expected))
        assert found_rows == wanted


@pytest.fixture
def world() -> OffsetWorld:
    """Connectors that are plain, gone, odd, with a topic of their own, and one of which something is hidden."""
    world = OffsetWorld()
    world.topics.add_topic(OFFSETS, 5)
    world.topics.add_topic(OWN, 5)
    for number in range(30):
        world.topics.put(OFFSETS, b'["plain",{"f":"%d"}]' % number, b'{"position":%d}' % number if number else None)
        world.topics.put(OFFSETS, b'["gone",{"f":"%d"}]' % number, b'{"lsn":%d}' % number)
        world.topics.put(OFFSETS, b'["c",{"f":"%d"}]' % number, b"{ }")
    world.topics.put(OWN, b'["c",{"f":"7"}]', b'{"n":7}')
    for key, value in [(b'["odd",{"f":1.5}]', b"{}"), (b'["odd",null]', b"\xff"), (b"nobody's", b"{}")]:
        world.topics.put(OFFSETS, key, value)
    elsewhere = (partition_for(b'["away",{}]', 5) + 1) % 5
    world.topics.write([OutRecord(OFFSETS, b'["away",{}]', b'{"x":1}', elsewhere)])
    hidden = b'["hidden",{"f":"new"}]'
    world.topics.put(OFFSETS, b'["hidden",{"f":"old"}]', b'{"x":1}')
    world.topics.open_transaction(OFFSETS, partition_for(hidden, 5), key=hidden)
    for name, config in [("plain", {}), ("c", IN_OWN), ("odd", {}), ("away", {}), ("hidden", {})]:
        world.connect.add(name, config)
    return world


@pytest.mark.parametrize("at_once", [10**6, 20])
@pytest.mark.parametrize(
    "words",
    [
        *(("list", "-o", form) for form in ("text", "wide", "json", "ndjson", "yaml")),
        *(("list", "--connector", name, "-o", "json") for name in ("plain", "odd", "c", "hidden")),
        *(("list", "--store", store, "-o", "json") for store in ("global", "dedicated", OWN, OFFSETS)),
        ("list", "--dedicated-topic", "offsets-{connector}", "-o", "json"),
        *(("get", "--connector", name, "-o", "json") for name in ("plain", "odd", "c", "hidden", "away")),
        ("diff", "--connector", "c", "-o", "json"),
        ("diff", "global", OWN, "--connector", "c", "-o", "json"),
        ("merge", "--connector", "c", "--into", "global", "--dry-run", "-o", "json"),
        ("merge", "--all", "--from", OWN, "--into", "global", "--dry-run", "-o", "json"),
        ("merge", "--all", "--into", "dedicated", "--dedicated-topic", "own-{connector}", "--dry-run", "-o", "json"),
        ("set", "--connector", "c", "--partition", '{"f":"7"}', "--offset", '{"n":8}', "--dry-run", "-o", "json"),
        ("reset", "--connector", "away", "--all-partitions", "--dry-run", "-o", "json"),
    ],
    ids=" ".join,
)
def test_a_large_topic_is_looked_at_as_a_small_one(
    run: Run, world: OffsetWorld, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], at_once: int
) -> None:
    if words[0] == "merge":  # a name that no connector can have
        for topic in (OFFSETS, OWN):
            world.topics.put(topic, b'["\\ud800",{"f":"7"}]', b'{"n":7}')
    now_s = world.time.now_s
    small = run(*words)
    world.time.now_s = now_s  # a while of it was waited for what is hidden
    monkeypatch.setattr("eosctl.offsets.stores.gather.MANY_OFFSETS", 1)
    monkeypatch.setattr("eosctl.offsets.stores.gather.AT_ONCE", at_once)
    monkeypatch.setattr("eosctl.engine.stores._USED_AT_ONCE", at_once)
    large = run(*words)
    assert (large.stdout, large.stderr, large.exit_code) == (small.stdout, small.stderr, small.exit_code)
    assert small.exit_code in (0, 3, 6, 7), small.stderr
    assert '"f":' in small.stdout or "away" in words or small.exit_code == 6


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("is_writable", [True, False])
def test_parts_wait_on_the_disk_where_there_is_room(
    app: App, monkeypatch: pytest.MonkeyPatch, is_writable: bool
) -> None:
    """Who only looks need not be able to write: then all of it is in memory."""
    monkeypatch.setattr("eosctl.offsets.stores.gather.MANY_OFFSETS", 1)
    monkeypatch.setattr("eosctl.offsets.stores.gather.AT_ONCE", 20)
    if not is_writable:
        app.state_dir.mkdir(parents=True, exist_ok=True)
        (app.state_dir / "parts").write_text("no folder")
    kept, put = list[int](), SpillFile.put

    def noted(spool: SpillFile, table: Table) -> SpilledTable:
        found = put(spool, table)
        kept.append(len(found))
        return found

    monkeypatch.setattr(SpillFile, "put", noted)
    with app.topics() as topics:
        store, _bounds = read_store(app, topics, OFFSETS)
    assert isinstance(store, ColumnStore)
    assert store.listed.counts == {"plain": 30, "gone": 30, "c": 30, "odd": 2, "away": 1, "hidden": 1}
    assert [record.key for record in store.listed.records("plain")] == sorted(
        b'["plain",{"f":"%d"}]' % n for n in range(30)
    )
    assert (len(kept) > 1) == is_writable
