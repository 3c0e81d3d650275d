"""Whose producer ids are, as coordinators know it, and as their log says once they have forgotten it."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import pytest

from eosctl.audit.scope import COORDINATOR, TRANSACTION_LOG, identify, logged_ids, make_filter
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.records import Record
from eosctl.core.transaction_log import TOPIC
from eosctl.errors import UnauthorizedError
from eosctl.wire import error_codes as codes
from tests.fakes.world import World


@pytest.fixture
def world() -> World:
    made = World()
    made.topics.add_topic(TOPIC, 1)
    return made


def key(name: str) -> bytes:
    return struct.pack(">hh", 0, len(name)) + name.encode()


def value(producer_id: int, *, version: int = 0, tags: bytes = b"") -> bytes:
    head = struct.pack(">hqhib", version, producer_id, 3, 60_000, 4)
    times = struct.pack(">qq", 1_700_000_000_000, -1)
    return head + (b"\0" + times + (tags or b"\0") if version else struct.pack(">i", -1) + times)


def rotated(producer_id: int, *, before: int) -> bytes:
    """What a coordinator writes when the epochs of `before` are used up (KIP-890)."""
    return value(producer_id, version=1, tags=b"\x01\x00\x08" + struct.pack(">q", before))


def known(world: World, *producer_ids: int) -> Mapping[ProducerId, tuple[str, str]]:
    found = identify(world.app(), [ProducerId(each) for each in producer_ids])
    assert found.lacks == ()
    return found.known


def test_what_a_coordinator_knows_needs_no_log(world: World) -> None:
    _error, producer_id, _epoch = world.brokers.state.init_producer_id("g-c-0", 60_000)
    world.topics.fail_always("read", AssertionError("the log is read"))
    assert known(world, producer_id) == {producer_id: ("g-c-0", COORDINATOR)}


def test_an_id_that_coordinators_forgot_is_in_their_log(world: World) -> None:
    """Expired after a week, or with another producer id by now: its batches are in topics for longer."""
    world.topics.put(TOPIC, key("g-old-1"), value(77), partition=0)
    world.topics.put(TOPIC, key("g-c-0"), rotated(501, before=500), partition=0)
    world.topics.put(TOPIC, key("g-other-0"), value(78), partition=0)
    world.topics.put(TOPIC, key("gone"), None, partition=0)
    assert known(world, 77, 500, 9) == {77: ("g-old-1", TRANSACTION_LOG), 500: ("g-c-0", TRANSACTION_LOG)}


def test_what_compaction_left_of_the_log_is_all_there_is(world: World) -> None:
    world.topics.put(TOPIC, key("g-c-0"), value(70), partition=0)
    world.topics.put(TOPIC, key("g-c-0"), value(71), partition=0)
    assert known(world, 70) == {70: ("g-c-0", TRANSACTION_LOG)}
    world.brokers.state.log(TOPIC, 0).compact()
    assert known(world, 70) == {}


def test_without_a_log_an_unknown_id_stays_unknown() -> None:
    assert known(World(), 77) == {}
    assert known(World(), -1) == {}, "a producer without an id is nobody's"


def test_who_could_not_be_asked_is_said_where_an_id_is_unknown(world: World) -> None:
    world.brokers.calls.fail_next("list_transactions", UnauthorizedError("not allowed to list"))
    world.topics.fail_next("read", UnauthorizedError("not allowed to read"))
    found = identify(world.app(), [ProducerId(7)])
    assert (found.known, found.lacks) == ({}, ("not allowed to list", "not allowed to read"))
    world.brokers.calls.fail_next("list_transactions", UnauthorizedError("not allowed to list"))
    world.topics.put(TOPIC, key("g-c-0"), value(7), partition=0)
    found = identify(world.app(), [ProducerId(7)])
    assert (list(found.known), found.lacks) == ([7], ()), "all are known, so that nothing lacks"


def test_a_coordinator_that_loads_hides_ids(world: World) -> None:
    world.brokers.fail_next("ListTransactions", *[codes.COORDINATOR_LOAD_IN_PROGRESS] * 500)
    found = identify(world.app(timeout_s=0.5), [ProducerId(7)])
    assert found.known == {}
    assert found.lacks


def test_only_records_that_may_name_an_id_are_kept() -> None:
    values = [value(7), value(8), rotated(9, before=7), rotated(9, before=10), b"\0", None]
    records = [Record(TOPIC, 0, number, 0, key(f"id-{number}"), each) for number, each in enumerate(values)]
    kept = make_filter([ProducerId(7)])(records)
    assert [record.offset for record in kept] == [0, 2]
    damaged = Record(TOPIC, 0, 9, 0, b"\0\x05bad", value(7))
    assert logged_ids([*kept, damaged], [ProducerId(7)]) == {7: TransactionalId("id-2")}
