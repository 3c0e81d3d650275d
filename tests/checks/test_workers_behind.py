"""A worker that has not read as far in the config topic as its group has told it to."""

from __future__ import annotations

import pytest

from eosctl.checks.workers import list_workers, workers_behind
from eosctl.core.findings import Finding
from eosctl.errors import UnreachableError
from eosctl.group.gather import observe_workers
from tests.fakes.two_workers import W0, W1, two_workers
from tests.fakes.world import CONFIGS, World


@pytest.fixture
def world() -> World:
    return two_workers()


def behind(world: World, *values: bytes, age_s: float) -> list[Finding]:
    """What is said of W1, which has read one record of the config topic, `age_s` after the first of these others."""
    written = [world.topics.put(CONFIGS, b"tasks-fencing-c", value) for value in (b'{"task-count":1}', *values)]
    world.connect.config_offset, world.connect.reads_up_to = 1 + len(values), {W1: 1}
    world.time.pass_until(written[1].timestamp_ms / 1000 + age_s)
    app = world.app()
    return workers_behind(app, observe_workers(app))


def test_a_worker_that_does_not_reach_the_groups_offset_is_an_error_with_both(world: World) -> None:
    """Its CONFIG-OFFSET was the one that the leader had told it, and its lag 0, for as long as it stayed behind."""
    [finding] = behind(world, b'{"task-count":2}', b'{"task-count":3}', age_s=180)
    assert (finding.code, finding.severity, finding.subject) == ("worker_behind", "error", W1)
    assert finding.message.startswith(
        f"{W1} has read the config topic up to offset 1, the group 3 (the topic ends at 3); what it lacks was written "
        "3 m ago: it stays behind"
    )
    assert finding.evidence == {"config_offset": 1, "group_offset": 3, "end_offset": 3}
    assert finding.fix.startswith("Restart it. If it stays behind again")
    seen = {row.url: (row.config_offset, row.config_lag) for row in list_workers(world.app()).rows}
    assert seen == {W0: (3, 0), W1: (1, 2)}


def test_a_node_without_a_url_is_named_by_its_member_id(world: World) -> None:
    world.connect.mirror_maker = True
    [finding] = behind(world, b'{"task-count":2}', age_s=180)
    assert finding.subject in {str(each.member_id) for each in world.connect.describe().members}


def test_a_worker_that_a_record_stops_is_not_to_be_restarted_before_that_is_gone(world: World) -> None:
    [finding] = behind(world, b'{"tasks":1}', b'{"task-count":1}', age_s=180)
    assert finding.fix.startswith(
        "Have the record compacted away at which its reader fails (`eosctl task-counts clean`)"
    )


@pytest.mark.parametrize(("age_s", "count"), [(59, 0), (61, 1)])
def test_a_worker_that_reads_slowly_gets_a_minute(world: World, age_s: float, count: int) -> None:
    """After a rebalance a healthy one may have told less than it has read by now."""
    assert len(behind(world, b'{"task-count":2}', age_s=age_s)) == count


def test_a_worker_that_has_read_all_is_no_matter_and_costs_no_read(world: World) -> None:
    world.topics.fail_always("read", UnreachableError("the topic is away"))
    app = world.app()
    assert workers_behind(app, observe_workers(app)) == []
