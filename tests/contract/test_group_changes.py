"""How a group of two workers changes: one suite, on the fake of the tests and on a real group.

Rebalances, workers that leave and come back, and one that hangs.
"""

from __future__ import annotations

import math
import threading

import pytest

from eosctl.core.transactions import RawGroup
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError, UnreachableError
from tests.contract.groups import Group, answers
from tests.fakes.connect import FakeConnect
from tests.sandbox_fixtures import PATIENCE_S

REBALANCES_S = 2 * PATIENCE_S
"""A member that goes in the middle of a rebalance is waited for until rebalance.timeout.ms (60 s), more than once."""


@pytest.mark.parametrize("call", ["restart", "connector_config"])
def test_a_request_that_meets_a_rebalance_of_the_fake_waits_for_its_end(call: str) -> None:
    """Workers answer 409 then, and GET of a config 500: tests/connect/test_rest.py has their words.

    To meet one on real workers is luck: seen on 4.3.1 and 3.9.2, often within 23 s, and sometimes not in 60 s.
    """
    connect = FakeConnect()
    connect.add("c")
    connect.rebalance(1)
    getattr(connect.worker(), call)("c")
    assert (connect.rebalancing, connect.time.now_s) == (False, 1)


def test_a_rebalance_of_the_fake_that_does_not_end_is_told() -> None:
    connect = FakeConnect()
    connect.add("c")
    connect.rebalance(math.inf)
    with pytest.raises(ConnectError, match="a rebalance is expected"):
        connect.worker().restart("c")
    assert connect.time.now_s < 30


def test_workers_leave_and_come_back_as_other_members(group: Group, unique: str) -> None:
    """The leader leaves, then the other one; the group is Empty then, perhaps for no time at all, and soon forgotten.

    One that is Dead may be in its coordinator's memory still, and has its protocol type then (up to 3.9:
    GroupMetadataManager.cleanupGroupMetadata, GroupMetadata.summary).
    """
    name = f"{unique}-a"
    group.put(name)
    first, leader = group.wait(group.ids, "the members"), group.leader()
    (other,) = set(group.urls) - {leader}
    group.stop(leader)
    assert not answers(group.at(leader))
    group.wait(lambda: group.led_alone_by(other), "a group of one that leads", REBALANCES_S)
    group.wait(lambda: set(group.owners().values()) == {other}, "all work to be its own")
    group.wait(lambda: group.state(name, other) == ("RUNNING", "RUNNING"), f"{name} to run there")
    assert group.wait(group.ids, "the member")[other] == first[other]
    for raw in _looks_until_forgotten(group, other):
        if raw.state in ("Empty", "Dead"):
            assert (raw.protocol, raw.members) == ("", ())
            assert raw.protocol_type in (("connect",) if raw.state == "Empty" else ("connect", ""))
    for url in group.urls:
        group.start(url)
    group.wait(lambda: len(group.ids()) == 2 and group.runs(name), "both, and their connector")
    assert not set(group.wait(group.ids, "the members").values()) & set(first.values())
    assert all(answers(group.at(url)) for url in group.urls)


def _looks_until_forgotten(group: Group, last: str) -> list[RawGroup]:
    """What is told of the group while its last worker stops, until nothing of it is left."""
    looks = [group.describe()]
    stopping = threading.Thread(target=group.stop, args=(last,))
    stopping.start()
    try:
        forgotten = RawGroup(looks[0].group_id, "Dead", "", "", ())
        deadline = Deadline.after(PATIENCE_S, group.clock)
        while looks[-1] != forgotten:
            assert not deadline.expired(), looks[-1]
            group.clock.sleep_s(0.05)
            looks.append(group.describe())
    finally:
        stopping.join()
    return looks


def test_a_frozen_worker_stays_a_member_and_keeps_a_rebalance_from_ending(group: Group, unique: str) -> None:
    """Meanwhile the coordinator tells no member's URL."""
    group.put(f"{unique}-a")
    leader, before = group.leader(), group.wait(group.ids, "the members")
    (silent,) = set(group.urls) - {leader}
    with group.frozen(silent):
        assert group.ids() == before
        with pytest.raises(UnreachableError, match="no answer in time"):
            group.at(silent, 1.0).root()
        group.at(leader).set_state(f"{unique}-a", "stop")
        raw = group.wait(lambda: _if_preparing(group.describe()), "a rebalance")
        assert {member.member_id for member in raw.members} == set(before.values())
        assert (raw.protocol, {member.metadata for member in raw.members}) == ("", {b""})
        deadline = Deadline.after(3, group.clock)
        while not deadline.expired():
            assert group.describe().state == "PreparingRebalance"
            group.clock.sleep_s(0.5)
    group.wait(lambda: group.state(f"{unique}-a", leader) == ("STOPPED",), "the stop")
    group.wait(lambda: group.ids() == before, "the same members")


def _if_preparing(raw: RawGroup) -> RawGroup | None:
    return raw if raw.state == "PreparingRebalance" else None
