"""An upgrade's plan as a value: what it says, when a later look at the workers contradicts it, and its file."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from eosctl.core.workers.modes import Mode, UpgradeWorker
from eosctl.errors import InputFileError
from eosctl.upgrade.plan import PlannedPass, PlannedWorker, UpgradePlan, make_plan, plan_file_text, read_plan

W0 = UpgradeWorker("w0", Mode.NOT_ENABLED, version="3.9.1", leader=True)
W1 = UpgradeWorker("w1", Mode.ENABLED, version="3.9.1")
PLAN = make_plan([W1, W0], Mode.DISABLED, kafka_cluster_id="k", group_id="g")


def test_a_plan_names_the_workers_of_each_pass() -> None:
    assert (PLAN.kafka_cluster_id, PLAN.group_id, PLAN.target) == ("k", "g", Mode.DISABLED)
    assert PLAN.workers == (
        PlannedWorker("w0", Mode.NOT_ENABLED, "3.9.1"), PlannedWorker("w1", Mode.ENABLED, "3.9.1"),
    )  # fmt: skip
    assert PLAN.passes == (PlannedPass(Mode.PREPARING, ("w1",)), PlannedPass(Mode.DISABLED, ("w0", "w1")))


def test_the_version_of_a_node_without_rest_makes_no_plan_stale() -> None:
    """It is known only while a connector runs there that shows it."""
    node = UpgradeWorker("10.0.0.1", Mode.NOT_ENABLED, version="4.1.0", setting="b.exactly.once.source.support")
    plan = make_plan([node], Mode.ENABLED, kafka_cluster_id="k", group_id="g")
    assert plan.workers == (PlannedWorker("10.0.0.1", Mode.NOT_ENABLED, None),)


def test_a_plan_file_gives_the_plan_back() -> None:
    text = plan_file_text(PLAN)
    again: UpgradePlan = read_plan(text, path="plan.json")
    assert again == PLAN
    document = json.loads(text)
    assert (document["format"], document["version"]) == ("eosctl-upgrade-plan", 1), "a change takes a new version"
    assert document["digest"] == PLAN.digest()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"3.9.1"', '"3.9.2"', "plan.json was changed after it was written"),
        ("eosctl-upgrade-plan", "eosctl-offsets-migration", "plan.json is a plan of another format"),
        ('"passes"', '"steps"', "plan.json is not a plan of `upgrade plan`: it has no 'passes'"),
    ],
)
def test_a_file_that_is_not_the_plan(old: str, new: str, message: str) -> None:
    with pytest.raises(InputFileError, match=message):
        read_plan(plan_file_text(PLAN).replace(old, new), path="plan.json")


@pytest.mark.parametrize(
    ("now", "difference"),
    [
        ([W0, W1], None),
        ([W1, W0], None),
        ([replace(W0, leader=False), replace(W1, leader=True)], None),
        ([replace(W0, mode=Mode.DISABLED), W1], None),  # known better
        ([W0, replace(W1, version="4.0.0")], "w1 was enabled (version 3.9.1) and is enabled (version 4.0.0)"),
        ([W0, replace(W1, version=None)], "w1 was enabled (version 3.9.1) and is enabled (version None)"),
        ([W0, replace(W1, mode=Mode.NOT_ENABLED)], "w1 was enabled (version 3.9.1) and is not_enabled (version 3.9.1)"),
        ([W0], "w1 was enabled (version 3.9.1) and is not there"),
        ([W0, W1, UpgradeWorker("w2", Mode.ENABLED)], "w2 was not there and is enabled (version None)"),
    ],
)
def test_what_contradicts_a_plan(now: Sequence[UpgradeWorker], difference: str | None) -> None:
    """A worker of another version may need other steps, so a plan that was read by a person does not hold for it."""
    planned = make_plan([W0, W1], Mode.ENABLED, kafka_cluster_id="k", group_id="g")
    assert planned.difference(make_plan(now, Mode.ENABLED, kafka_cluster_id="k", group_id="g")) == difference


@pytest.mark.parametrize(("cluster_id", "group_id"), [("other", "g"), ("k", "other")])
def test_a_plan_for_another_cluster_or_group(cluster_id: str, group_id: str) -> None:
    planned = make_plan([W0], Mode.ENABLED, kafka_cluster_id="k", group_id="g")
    there = make_plan([W0], Mode.ENABLED, kafka_cluster_id=cluster_id, group_id=group_id)
    assert planned.difference(there) == f"the plan is for group g on cluster k, not for {group_id} on {cluster_id}"
