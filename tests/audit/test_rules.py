"""What no cluster of ours shows: a damaged batch, an id with a new producer id, transactions far from each other."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from eosctl.audit import codes
from eosctl.audit.log.ledger import Ledger
from eosctl.audit.log.segments import PartitionFold
from eosctl.audit.log.tallies import ABORTED, COMMITTED, Tallies, Timeline, WrittenBy
from eosctl.audit.rules import OutputPartitions
from eosctl.audit.verdict import KnownProducer, OwnerKind, findings, known_producer
from eosctl.core.ids import Owner, ProducerId, TransactionalId
from eosctl.core.records import Batch
from tests.audit.log_scene import START_MS, batch

TASK = TransactionalId("g-c-0")


def outputs(*batches: Batch) -> OutputPartitions:
    made = OutputPartitions(Ledger(), Tallies())
    fold = PartitionFold(made)
    for each in batches:
        fold.take(each)
    return made


def known(written: Iterable[WrittenBy]) -> dict[ProducerId, KnownProducer]:
    owner = Owner("task", "c", 0)
    return {
        each.producer_id: known_producer(
            each, TASK, "coordinator", owner, connector="c", group_id="g", has_offsets=True
        )
        for each in written
    }


def test_a_batch_with_a_wrong_checksum_is_named() -> None:
    seen = outputs(batch(crc_ok=True), batch(base_offset=1, crc_ok=False), batch(base_offset=2))
    assert [(str(each.code), each.first_offset, each.count) for each in seen.tallies] == [("crc_wrong", 1, 1)]


@pytest.mark.parametrize(("producers", "found"), [((7, 8, 7), ["zombie_wrote"]), ((7, 7, 8), []), ((7, 8, 8), [])])
def test_a_producer_that_wrote_after_its_successor_is_a_zombie(producers: tuple[int, ...], found: list[str]) -> None:
    """A coordinator gives an id another producer id when its epochs are used up, or when it had expired."""
    seen = outputs(*(batch(base_offset=at, producer_id=ProducerId(number)) for at, number in enumerate(producers)))
    rows = findings("c", seen.tallies, known(seen.written.values()), planned_ms=START_MS, timeout_ms=60_000)
    assert [(row.code, row.producer_id) for row in rows] == [(code, 7) for code in found]


@pytest.mark.parametrize(
    ("owner", "has_offsets", "whose"),
    [
        (Owner("task", "c", 3), False, OwnerKind.OWN),
        (Owner("task", "d", 0), True, OwnerKind.KNOWN),
        (Owner("eosctl"), True, OwnerKind.KNOWN),
        (Owner("other"), True, OwnerKind.OTHER),
        (Owner("ambiguous"), False, OwnerKind.OTHER),
        (None, True, OwnerKind.OWN),
        (None, False, OwnerKind.UNKNOWN),
    ],
)
def test_whose_a_producer_is(owner: Owner | None, has_offsets: bool, whose: OwnerKind) -> None:
    """Who commits offsets of the connector is one of its tasks, unless an id is known that is none of its tasks'."""
    written = WrittenBy(ProducerId(7), is_transactional=True)
    name = None if owner is None else TransactionalId("x")
    found = known_producer(written, name, "coordinator", owner, connector="c", group_id="g", has_offsets=has_offsets)
    assert found.owner_kind is whose


def test_a_timeline_keeps_every_count_while_its_steps_get_longer() -> None:
    line = Timeline()
    for number in range(5_000):
        line.add(number * 1000, COMMITTED)
        line.add(number * 1000, ABORTED, 2)
    steps = list(line.steps())
    assert len({at_ms for at_ms, _state, _count in steps}) <= 480
    assert sum(count for _at_ms, state, count in steps if state == COMMITTED) == 5_000
    assert sum(count for _at_ms, state, count in steps if state == ABORTED) == 10_000
    both = Timeline()
    both.add(1_000, COMMITTED)
    both.take(line)
    assert sum(count for _at_ms, _state, count in both.steps()) == 15_001


def test_times_that_are_none_are_left_out() -> None:
    line = Timeline()
    line.add(-1, COMMITTED)
    assert list(line.steps()) == []


def test_every_code_has_its_sentence() -> None:
    """A finding without words would end the command in a traceback."""
    from eosctl.audit import verdict
    from eosctl.codes import Code

    declared = {each for each in vars(codes).values() if isinstance(each, Code) and each.kind == "finding"}
    assert declared == {*verdict._SENTENCES, *verdict._RECORD_SENTENCES}
