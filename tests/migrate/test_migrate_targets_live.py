"""The topics that a migration makes, on a real broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.offsets.migration import MigrationPlan, PlannedTopic, Tally
from eosctl.core.offsets.views import Policy
from eosctl.deadline import Deadline
from eosctl.errors import BrokerError, StalePlanError
from eosctl.migrate.stores import TopicSize, create_missing, planned_targets
from eosctl.target import Target

pytestmark = pytest.mark.live

SOURCE = PlannedTopic("source", "id", 25, 1)
ONE_KEY = Tally(1, 0, 0, 0, 0, 1, 0, 0, {"write": 1, "delete": 0, "keep": 0, "conflict": 0})


@pytest.fixture
def app(stack: Any, tmp_path: Path) -> App:
    settings = ClientSettings(tuple(stack.bootstrap_servers.split(",")))
    return App(Target(client=settings), Deadline.after(240), tmp_path)


def _plan(targets: list[PlannedTopic]) -> MigrationPlan:
    return MigrationPlan("cluster", "g", Policy.FAIL, (SOURCE,), tuple(targets), (), ONE_KEY, "/nowhere")


def test_planned_made_and_found_again(app: App, unique: str) -> None:
    """More than one batch of them; those that are there are not made twice."""
    names = [f"{unique}-{number:02}" for number in range(60)]
    first = planned_targets(app, names[:5], sources=[SOURCE], size=TopicSize(partitions=2))
    assert create_missing(app, _plan(first)).created == tuple(names[:5])

    wanted = [PlannedTopic(name, None, 2, 1) for name in names]
    made = create_missing(app, _plan(wanted))
    assert (made.created, made.refused) == (tuple(names[5:]), {})

    found = planned_targets(app, names, sources=[SOURCE], size=TopicSize(9, 9))
    assert [(topic.name, topic.partitions, topic.replication_factor) for topic in found] == [
        (name, 2, 1) for name in names
    ]
    assert all(topic.topic_id and len(topic.bounds) == 2 and topic.cluster_id for topic in found)

    with pytest.raises(StalePlanError, match="has 2 partitions, the plan says 3"):
        create_missing(app, _plan([PlannedTopic(names[0], None, 3, 1)]))


@pytest.mark.parametrize(
    ("size", "reason"),
    [(TopicSize(replication_factor=9), "INVALID_REPLICATION_FACTOR"), (TopicSize(partitions=20_000), "POLICY")],
)
def test_what_the_broker_would_refuse_is_no_plan(app: App, unique: str, size: TopicSize, reason: str) -> None:
    with pytest.raises(BrokerError, match=f"1 of 1 new topic can't be created: .*{reason}"):
        planned_targets(app, [unique], sources=[SOURCE], size=size)
