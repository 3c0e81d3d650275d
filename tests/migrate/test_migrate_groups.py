"""Whose workers and whose expectations count when `offsets migrate` writes to the cluster of another profile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.allowances import Allowances
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.offsets.migration import ConnectorRoute, MigrationPlan, PlannedTopic, Tally
from eosctl.core.offsets.views import Policy
from eosctl.errors import RefusedError
from eosctl.migrate.apply import refuse
from eosctl.migrate.run import Engine, migration_from_file
from eosctl.target import Target
from tests.fakes.world import World

HERE, THERE = "http://here:8083", "http://there:8083"
EXPECTED = {"kafka_cluster_id": "k", "group_id": "g"}


def plan_to(target: str, *, source: str = "connect-offsets") -> MigrationPlan:
    return MigrationPlan(
        cluster_id="k",
        group_id="g",
        policy=Policy.KEEP_TARGET,
        sources=(PlannedTopic(source, "id", 25, 1),),
        targets=(PlannedTopic(target, None, 25, 1),),
        routes=(ConnectorRoute("c", "c", target),),
        tally=Tally(1, 0, 0, 0, 0, 1, 0, 0, {"write": 1, "delete": 0, "keep": 0, "conflict": 0}),
        snapshot_base="/nowhere",
    )


@dataclass
class TwoClusters:
    """The command's own, and that of profile `new`; connector c is STOPPED on both."""

    here: World = field(default_factory=lambda: World(modes={HERE: "enabled"}))
    there: World = field(default_factory=lambda: World(modes={THERE: "enabled"}, cluster_id="new-cluster"))
    new: Target = field(
        default_factory=lambda: Target(
            ClientSettings(("new:9092",)), connect_urls=(THERE,), group_id="g", expect=EXPECTED
        )
    )

    def __post_init__(self) -> None:
        for world in (self.here, self.there):
            world.connect.add("c", state="STOPPED")

    def app(self) -> App:
        doors: Any = {name: self._door(name) for name in self.here.doors()}
        return replace(self.here.app(connect_urls=(HERE,), expect=EXPECTED), target_of=lambda _name: self.new, **doors)

    def _door(self, name: str) -> Callable[..., Any]:
        def door(app: App, *asked: str) -> Any:
            is_new = app.target.require_client().bootstrap_servers == ("new:9092",)
            return (self.there if is_new else self.here).doors()[name](app, *asked)

        return door


@pytest.mark.parametrize("target", ["offsets-c@new", "offsets-c"])
@pytest.mark.parametrize("where", ["here", "there"])
def test_tasks_of_neither_group_may_run(where: str, target: str) -> None:
    """Those of the own one would go on with offsets that moved; those of the other would write after ours."""
    clusters = TwoClusters()
    refuse(clusters.app(), plan_to(target), Allowances())
    getattr(clusters, where).connect.add("c")
    if (where, target) == ("there", "offsets-c"):
        refuse(clusters.app(), plan_to(target), Allowances())
        return
    with pytest.raises(RefusedError, match=r"not stopped: c \(RUNNING, 1 task\)"):
        refuse(clusters.app(), plan_to(target), Allowances())


@pytest.mark.parametrize("target", ["offsets-c", "offsets-c@new"])
def test_tasks_of_a_cluster_that_is_only_read_may_not_run_either(target: str) -> None:
    """They were not asked about: both clusters went on from the same offsets, and records were read twice."""
    clusters = TwoClusters()
    plan = plan_to(target, source="connect-offsets@new")
    refuse(clusters.app(), plan, Allowances())
    clusters.there.connect.add("c")
    with pytest.raises(RefusedError, match=r"not stopped.*: c \(RUNNING, 1 task\)"):
        refuse(clusters.app(), plan, Allowances())
    refuse(clusters.app(), plan, Allowances(force_running=True))
    refuse(clusters.app(), plan_to("file:/d/dump.ndjson", source="connect-offsets@new"), Allowances())


def test_a_source_that_names_no_worker_is_said_to_be_unchecked() -> None:
    """There is nobody to ask, and a flag for it would waive the question at the target too."""
    clusters = TwoClusters(new=Target(ClientSettings(("new:9092",))))
    clusters.there.connect.add("c")
    plan = plan_to("offsets-c", source="connect-offsets@new")
    refuse(clusters.app(), plan, Allowances())
    prepared = migration_from_file(
        clusters.app(),
        plan,
        Engine(Path("unused")),
        allowances=Allowances(),
        plan_file=Path("p"),
    )
    assert "source_not_checked" in [problem.code for problem in prepared.report(dry_run=True).problems]


def test_whoever_runs_a_file_can_be_written() -> None:
    clusters = TwoClusters()
    clusters.here.connect.add("c")
    refuse(clusters.app(), plan_to("file:/d/dump.ndjson"), Allowances())


@pytest.mark.parametrize(
    ("target", "expected"),
    [("offsets-c", EXPECTED), ("offsets-c@new", {"kafka_cluster_id": "k"}), ("file:/d/dump.ndjson", {})],
)
def test_what_is_expected_of_the_cluster_that_is_written_to(target: str, expected: dict[str, str]) -> None:
    prepared = migration_from_file(
        TwoClusters().app(),
        plan_to(target),
        Engine(Path("unused")),
        allowances=Allowances(force_running=True),
        plan_file=Path("p"),
    )
    assert prepared.target.expect == expected
