"""What a group of two workers does: one suite, on the fake of the tests and on a real group.

Who leads, who owns what, and what the coordinator tells of it; how workers come and go is in test_group_changes.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest

from eosctl.core.transactions import RawGroup
from eosctl.deadline import Deadline
from eosctl.group.protocol import CONNECTOR_ITSELF, Work
from eosctl.ports import ConnectWorker
from tests.contract.groups import Group, members_of
from tests.sandbox_fixtures import PATIENCE_S

ATTEMPTS = 8


def test_members_advertise_their_urls_and_agree_on_the_leader(group: Group) -> None:
    raw = group.wait(lambda: _if_stable(group.describe()), "a stable group")
    assert (raw.protocol_type, raw.protocol) == ("connect", "sessioned")
    members = members_of(raw)
    assert {member.url for member in members} == set(group.urls)
    assert all(member.metadata.url == f"{member.url}/" for member in members)
    assert {(member.metadata.version, member.assignment.version) for member in members} == {(2, 2)}
    (leader,) = [member for member in members if member.url == group.leader()]
    assert {member.assignment.leader for member in members} == {leader.member_id}
    assert len({member.assignment.config_offset for member in members}) == 1


def test_work_is_owned_once_and_rest_names_the_owner_at_each_worker(group: Group, unique: str) -> None:
    names = [f"{unique}-a", f"{unique}-b"]
    for name in names:
        owners = group.put(name)
    assert set(owners) == {(name, number) for name in names for number in (CONNECTOR_ITSELF, 0)}
    assert {owners[name, 0] for name in names} == set(group.urls), "one each"
    for url in group.urls:  # one of them reads the statuses later than the other
        group.wait(partial(_tells, group, url, owners), f"{url} to know who runs what")


def _if_stable(raw: RawGroup) -> RawGroup | None:
    return raw if raw.state == "Stable" else None


def _tells(group: Group, url: str, owners: Mapping[Work, str]) -> bool:
    """Whether a worker names just these owners."""
    told: dict[Work, str] = {}
    for name, entry in group.at(url).connectors().items():
        told[name, CONNECTOR_ITSELF] = entry.itself.worker_id if entry.itself else ""
        told |= {(name, task.task): task.worker_id for task in entry.tasks}
    return {work: f"http://{worker_id}" for work, worker_id in told.items()} == owners


def _apart(group: Group, unique: str) -> str:
    """A connector that the leader has itself, and whose task a follower has: who gets what depends on what there is."""
    for number in range(4):
        name = f"{unique}-{number}"
        owners, leader = group.put(name), group.leader()
        if owners[name, CONNECTOR_ITSELF] == leader != owners[name, 0]:
            return name
        if number % 2 == 0:
            group.at(leader).set_state(name, "stop")
            group.wait(partial(_task_ended, group, name), f"the end of {name}'s task")
    pytest.fail("no connector is apart from its task")


def _task_ended(group: Group, name: str) -> bool:
    return (name, 0) not in _held(group, name)


def _held(group: Group, name: str) -> set[Work]:
    """What members still have of a connector, whatever was taken from them meanwhile."""
    members = group.members()
    return {work for m in members for work in m.held if work[0] == name} if members else {(name, 0)}


def test_a_followers_task_still_commits_when_rest_shows_it_no_more(group: Group, unique: str) -> None:
    """REST says STOPPED without tasks. Only what the member had when it joined tells that its task may not have ended.

    The task's last status may come back then, for a while or for good. The fake shows both; whether a look at real
    workers meets them is luck, and it meets them most of the time.
    """
    name = _apart(group, unique)
    worker = group.at(group.leader())
    before: object = []
    for attempt in range(ATTEMPTS):
        group.read(name, attempt + 1)
        worker.set_state(name, "stop")
        seen = _looks_of_a_stop(group, worker, name)
        after = worker.offsets(name)
        assert after != before, "nobody holds the task any more, and so it has committed"
        commits_late = (("STOPPED",), True, before) in seen
        comes_back = any(state == ("STOPPED", "UNASSIGNED") for state, _held, _offsets in seen)
        if (commits_late and comes_back) or group.is_real:
            return
        worker.alter_offsets(name, [{**entry, "offset": None} for entry in after])
        before = []
        worker.set_state(name, "resume")
        group.wait(lambda: group.runs(name), f"{name} to run again")
    pytest.fail(f"last seen: {seen}, then {after}")


def _looks_of_a_stop(group: Group, worker: ConnectWorker, name: str) -> list[tuple[tuple[str, ...], bool, object]]:
    """State by REST, whether a member still has the task, and its offsets, from look to look until all is over."""
    seen: list[tuple[tuple[str, ...], bool, object]] = []

    def over() -> bool:
        state, offsets = group.state(name, worker.url), worker.offsets(name)
        held = not _task_ended(group, name)
        seen.append((state, held, offsets))
        group.clock.sleep_s(0.02)
        return state in (("STOPPED",), ("STOPPED", "UNASSIGNED")) and not held

    deadline = Deadline.after(PATIENCE_S, group.clock)
    while not over():
        assert not deadline.expired(), seen
    return seen
