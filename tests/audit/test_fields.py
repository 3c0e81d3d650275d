"""One field of each committed record: where it may be, and which records are looked at."""

from __future__ import annotations

from decimal import Decimal

import pytest

from eosctl.audit.fields import FieldRead, WriterOf, read_field
from eosctl.audit.log.fields import FieldPath, NamedFields, parse_field_path
from eosctl.audit.log.values import FieldValue, WriterKind
from eosctl.core.records import OutRecord, Place, Record, Window
from eosctl.errors import DeadlineError, UsageError
from tests.fakes.world import World

ROW = b'{"schema": {"type": "x"}, "payload": {"after": {"id": 12345678901234567890, "tags": ["a", "b"]}, "op": "c"}}'
RECORD = Record(
    "t", 0, 7, 1, b'{"id": 5}', ROW, (("trace.id", b"old"), ("trace.id", b"x-1"), ("empty", None), ("raw", b"\xff"))
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("after.id", Decimal("12345678901234567890")),
        ("value.after.id", Decimal("12345678901234567890")),
        ("op", "c"),
        ("after.tags.1", "b"),
        ("after.tags.2", None),
        ("after.tags.x", None),
        ("after.tags", ["a", "b"]),
        ("op.x", None),
        ("nothing", None),
        ("key.id", Decimal(5)),
        ("key", b'{"id": 5}'),
        ("header.trace.id", b"x-1"),
        ("header.empty", None),
        ("header.none", None),
        ("header.raw", b"\xff"),
    ],
)
def test_a_field_lies_in_the_value_the_key_or_a_header(path: str, value: object) -> None:
    assert parse_field_path(path).value_in(RECORD) == value


@pytest.mark.parametrize(
    ("data", "path", "value"),
    [
        (b"line 17", "value", b"line 17"),
        (b"line 17", "value.id", None),
        (b"1.50", "value", b"1.50"),
        (b"null", "value", b"null"),
        (b'{"b": 1, "a": 2}', "value", b'{"b": 1, "a": 2}'),
        (b'{"payload": 1}', "payload", Decimal(1)),
        (b'{"id": 12345678901234567.01}', "id", Decimal("12345678901234567.01")),
        (b'{"id": NaN}', "id", None),
        (b'{"id": 1e99999999999999999999}', "id", None),
        (b"[" * 100_000, "id", None),
        (b"\xff\xfe", "value", b"\xff\xfe"),
        (b"", "value", b""),
        (None, "value", None),
    ],
)
def test_the_whole_value_is_its_bytes_and_numbers_in_it_are_exact(data: bytes | None, path: str, value: object) -> None:
    """Values used to be read as JSON and printed again: 1.0 and 1.00 were one, a line `null` none."""
    assert parse_field_path(path).value_in(RECORD._replace(value=data)) == value


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        (NamedFields((FieldPath("key", ("id",)), FieldPath("value", ("op",)))), (Decimal(5), "c")),
        (NamedFields((FieldPath("key", ("id",)), FieldPath("value", ("no",)))), None),
        (
            NamedFields(
                (FieldPath("key", ("id",)), FieldPath("value", ("no",)), FieldPath("value", ("op",))),
                frozenset({FieldPath("value", ("no",)), FieldPath("value", ("op",))}),
            ),
            (Decimal(5), None, "c"),
        ),
        (
            NamedFields(
                (FieldPath("key", ("id",)), FieldPath("value", ("no",))), frozenset({FieldPath("value", ("no",))})
            ),
            None,
        ),
    ],
)
def test_several_fields_are_unique_together(fields: NamedFields, value: object) -> None:
    read = fields.read(RECORD)
    assert (read and read.value) == value


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


def own(_place: Place, _offset: int) -> WriterKind:
    return WriterKind.OWN


def values(world: World, window: Window, writer_of: WriterOf = own) -> tuple[list[tuple[int, int, str]], FieldRead]:
    app, found = world.app(), list[FieldValue]()
    with app.batches() as log:
        spans = log.plan(["t"], window).spans
    fields = NamedFields((FieldPath("value", ("id",)),))
    read = read_field(app, fields, spans, writer_of=writer_of, take=found.append)
    return [(each.partition, each.offset, str(each.value)) for each in found], read


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


def test_only_the_connectors_own_records_are_looked_at(world: World) -> None:
    """Those of others were compared with its own: what each had once was a duplicate."""
    write(world, "a", b'{"id": 1}', b'{"id": 2}', b'{"id": 3}')
    found, read = values(world, Window(), lambda _place, offset: WriterKind(offset))
    assert (found, read.records, read.unknown) == ([(0, 0, "1")], 1, 1)


def test_the_end_of_the_time_is_an_error(world: World) -> None:
    world.topics.fail_next("read", DeadlineError("timed out"))
    with pytest.raises(DeadlineError):
        values(world, Window())
