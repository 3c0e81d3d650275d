"""One field of each committed record: where it may be, and which records are looked at."""

from __future__ import annotations

import pytest

from eosctl.audit.fields import FieldRead, read_field
from eosctl.audit.log.field_paths import FieldPath, parse_field_path
from eosctl.audit.log.values import FieldValue
from eosctl.core.batches import Window
from eosctl.core.records import OutRecord, Record
from eosctl.errors import DeadlineError, UsageError
from tests.fakes.world import World

ROW = b'{"schema": {"type": "x"}, "payload": {"after": {"id": 12345678901234567890, "tags": ["a", "b"]}, "op": "c"}}'
RECORD = Record(
    "t", 0, 7, 1, b'{"id": 5}', ROW, (("trace.id", b"old"), ("trace.id", b"x-1"), ("empty", None), ("raw", b"\xff"))
)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("after.id", "12345678901234567890"),
        ("value.after.id", "12345678901234567890"),
        ("op", "c"),
        ("after.tags.1", "b"),
        ("after.tags.2", None),
        ("after.tags.x", None),
        ("after.tags", '["a","b"]'),
        ("op.x", None),
        ("nothing", None),
        ("key.id", "5"),
        ("key", '{"id":5}'),
        ("header.trace.id", "x-1"),
        ("header.empty", None),
        ("header.none", None),
        ("header.raw", "\udcff"),
    ],
)
def test_a_field_lies_in_the_value_the_key_or_a_header(path: str, text: str | None) -> None:
    assert parse_field_path(path).text_in(RECORD) == text


@pytest.mark.parametrize(
    ("value", "path", "text"),
    [
        (b"line 17", "value", "line 17"),
        (b"line 17", "value.id", None),
        (b'"line 17"', "value", "line 17"),
        (b"17", "value", "17"),
        (b"1.50", "value", "1.5"),
        (b"true", "value", "true"),
        (b"null", "value", None),
        (b'{"b": 1, "a": 2}', "value", '{"a":2,"b":1}'),
        (b'{"payload": 1}', "payload", "1"),
        (b"\xff\xfe", "value", "\udcff\udcfe"),
        (b"", "value", ""),
        (None, "value", None),
    ],
)
def test_values_that_are_no_objects(value: bytes | None, path: str, text: str | None) -> None:
    """StringConverter's lines, as FileStreamSource makes them, are read whole."""
    assert parse_field_path(path).text_in(RECORD._replace(value=value)) == text


@pytest.mark.parametrize("path", ["", "header", "header.", "value.", "a..b", ".a", "key."])
def test_a_path_that_names_nothing_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="names no field of a record"):
        parse_field_path(path)


@pytest.fixture
def world() -> World:
    made = World()
    made.topics.add_topic("t", 2, {"cleanup.policy": "delete"})
    return made


def write(
    world: World, transactional_id: str, *values: bytes, partition: int = 0, commit: bool | None = True
) -> tuple[int, int]:
    """The producer that wrote; its transaction stays open where `commit` is None."""
    state = world.brokers.state
    _error, *producer = state.init_producer_id(transactional_id, 60_000)
    for value in values:
        state.write_in(transactional_id, (producer[0], producer[1]), OutRecord("t", b"k", value), partition)
    if commit is not None:
        state.end_transaction(transactional_id, (producer[0], producer[1]), commit=commit)
    return producer[0], producer[1]


def values(world: World, window: Window) -> tuple[list[tuple[int, int, str]], FieldRead]:
    app, found = world.app(), list[FieldValue]()
    with app.batches() as log:
        spans = log.plan(["t"], window).spans
    read = read_field(app, FieldPath("value", ("id",)), spans, found.append)
    return [(each.partition, each.offset, each.text) for each in found], read


def test_only_committed_records_have_values(world: World) -> None:
    """What was aborted is no duplicate; what is open hides what comes behind it, and that is said."""
    write(world, "a", b'{"id": 1}', b'{"no": 1}')
    write(world, "b", b'{"id": 1}', commit=False)
    write(world, "c", b'{"id": 2}', partition=1, commit=None)
    write(world, "d", b'{"id": 3}', partition=1)
    found, read = values(world, Window())
    assert found == [(0, 0, "1")]
    assert (read.records, read.without, read.hidden) == (2, 1, {("t", 1): 0})


def test_a_transaction_that_ends_in_a_moment_hides_nothing(world: World) -> None:
    """A source at work is nearly always in one: an audit of it would never be sure."""
    producer = write(world, "a", b'{"id": 1}', commit=None)
    world.time.later(1.0, lambda: world.brokers.state.end_transaction("a", producer, commit=True))
    found, read = values(world, Window())
    assert (found, read.hidden) == ([(0, 0, "1")], {})


def test_only_the_window_is_read(world: World) -> None:
    write(world, "a", *(b'{"id": %d}' % number for number in range(5)))
    found, read = values(world, Window(since_offset=1, until_offset=3))
    assert found == [(0, 1, "1"), (0, 2, "2")]
    assert (read.records, read.hidden) == (2, {})


def test_the_end_of_the_time_is_an_error(world: World) -> None:
    world.topics.fail_next("read", DeadlineError("timed out"))
    with pytest.raises(DeadlineError):
        values(world, Window())
