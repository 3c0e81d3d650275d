"""What holds back the LSO of a partition: as much of it as producers and coordinators report."""

from __future__ import annotations

import pytest

from eosctl.core.open_transactions import OpenTransaction
from eosctl.core.records import Bounds
from eosctl.core.transactions import TransactionDescription
from eosctl.report import Problem
from eosctl.txn.open_transactions import find_open_transactions
from tests.fakes.world import World

ID = "g-orders-1"


@pytest.fixture
def world() -> World:
    """A transaction of task 1 of connector orders is open on partitions 0 and 1 of topic sink."""
    world = World()
    world.topics.add_topic("sink", 3)
    world.brokers.state.open_transaction(ID, ("sink", 0), ("sink", 1))
    return world


def look(world: World, *partitions: int) -> tuple[list[OpenTransaction], list[Problem]]:
    return find_open_transactions(world.app(), [("sink", Bounds(each, 0, 1, 0)) for each in partitions])


def test_an_id_and_its_coordinator_account_for_each_partition(world: World) -> None:
    found, problems = look(world, 1, 0, 2)
    assert [(one.topic, one.bound.partition, one.transactional_id) for one in found] == [
        ("sink", 1, ID), ("sink", 0, ID), ("sink", 2, None),
    ]  # fmt: skip
    assert [one.producer and one.producer.partition for one in found] == [1, 0, None]
    assert [isinstance(one.description, TransactionDescription) for one in found] == [True, True, False]
    assert not problems


def test_a_coordinator_that_does_not_have_the_partition_does_not_account_for_it(world: World) -> None:
    world.brokers.state.transactions[ID].partitions.discard(("sink", 0))
    (lost, kept), problems = look(world, 0, 1)
    assert (lost.transactional_id, lost.description) == (ID, None)
    assert kept.description is not None
    assert not problems


def test_a_producer_that_no_coordinator_knows_has_no_id(world: World) -> None:
    del world.brokers.state.transactions[ID]
    ((found,), problems) = look(world, 0)
    assert found.producer is not None
    assert (found.transactional_id, found.description, problems) == (None, None, [])


def test_a_partition_without_a_leader_is_a_warning(world: World) -> None:
    world.brokers.state.leaderless.add(("sink", 0))
    (unknown, known), (problem,) = look(world, 0, 1)
    assert (unknown.producer, known.transactional_id) == (None, ID)
    assert (problem.code, problem.severity) == ("producers_unknown", "warning")
    assert problem.message.startswith("the producers of sink-0 are unknown: LEADER_NOT_AVAILABLE")


def test_nothing_that_is_stuck_asks_nobody(world: World) -> None:
    assert look(world) == ([], [])
    assert world.brokers.count("DescribeProducers") == 0


def test_brokers_that_do_not_answer_are_a_warning(world: World) -> None:
    world.brokers.fail_next("DescribeProducers", 35)
    (found,), (problem,) = look(world, 0)
    assert (found.producer, found.transactional_id) == (None, None)
    assert problem.severity == "warning"
