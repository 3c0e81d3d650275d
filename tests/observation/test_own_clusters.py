"""Connectors that write to a Kafka cluster of their own: ids and offsets are looked at there; both are in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks.connectors import check_connectors
from eosctl.core.ids import TransactionalId
from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError, ExitCode, RefusedError, UnreachableError, UsageError
from eosctl.fence.gather import FenceRequest
from eosctl.fence.plan import apply_fence, plan_fence
from eosctl.fence.rules import FENCE_TRANSACTION_TIMEOUT_MS
from eosctl.report import Report
from eosctl.rescue.apply import apply_rescue
from eosctl.rescue.plan import plan_rescue
from eosctl.task_counts.gather import show_task_counts
from eosctl.task_counts.write import WriteRequest, apply_write, plan_write
from eosctl.upgrade.plan import plan_upgrade
from eosctl.upgrade.rows import PlanData
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.fence_stage import outcomes
from tests.fakes.own_cluster import OWN_BROKERS, SECRET, SERVERS, FarScene, doors_to
from tests.fakes.rescue_scene import stop
from tests.fakes.world import OFFSETS, World

FENCED = [FENCE_TRANSACTION_TIMEOUT_MS] * 3
W1 = "http://w1:8083"
OF_C = b'["c",{"f":"a"}]'


@pytest.fixture
def scene(tmp_path: Path) -> FarScene:
    return FarScene(state_dir=tmp_path)


def told(report: Report, code: str) -> list[str]:
    return [each.message for each in report.problems if each.code == code]


def test_fence_fences_there(scene: FarScene) -> None:
    """All ids were unknown here: it fenced none, and exited with 0."""
    stop(scene)
    plan = plan_fence(scene.app(), FenceRequest(connector="c"))
    assert set(outcomes(plan.report(scene.app())).values()) == {"would_fence"}
    report = apply_fence(scene.app(), plan)
    assert (report.exit_code, set(outcomes(report).values())) == (ExitCode.OK, {"fenced"})
    assert (scene.timeouts(), scene.brokers.state.transactions) == (FENCED, {})
    assert told(report, "other_cluster") == [
        f"c writes to Kafka cluster own-cluster ({SERVERS}): its transactional ids are looked at there"
    ]
    assert report.target["kafka_cluster_id"] == scene.cluster_id, "a profile expects the group's own"


def test_ids_of_two_clusters_are_fenced_apart(scene: FarScene) -> None:
    with pytest.raises(UsageError, match="c writes to another Kafka cluster") as caught:
        plan_fence(scene.app(), FenceRequest((TransactionalId("job-0"),), connector="c"))
    assert "--connector" in str(caught.value.hint)


def test_with_the_number_of_tasks_given_it_is_followed_too(scene: FarScene) -> None:
    stop(scene)
    plan = plan_fence(scene.app(), FenceRequest(connector="c", tasks=1))
    assert outcomes(plan.report(scene.app())) == {"g-c-0": "would_fence"}


def test_rescue_works_there(scene: FarScene) -> None:
    report = apply_rescue(scene.app(), plan_rescue(scene.app(), "c"))
    assert (report.exit_code, [row.outcome for row in report.rows]) == (ExitCode.OK, ["done"] * 4)
    assert scene.records() == [("eosctl-config-g", b'{"task-count":2}')]
    assert scene.timeouts() == [60_000, 60_000, FENCE_TRANSACTION_TIMEOUT_MS]
    assert set(scene.brokers.state.transactions) == {"eosctl-config-g"}, "no id of a task"


def test_a_task_count_is_written_after_fencing_there(scene: FarScene) -> None:
    """A record said that nobody is left to fence, while every id was alive on the other cluster."""
    stop(scene)
    report = apply_write(scene.app(), plan_write(scene.app(), WriteRequest("c", 0)))
    assert (report.exit_code, scene.timeouts()) == (ExitCode.OK, FENCED)
    assert scene.records() == [("eosctl-config-g", b'{"task-count":0}')]


def test_a_record_that_leaves_out_ids_there_is_refused(scene: FarScene) -> None:
    stop(scene)
    with pytest.raises(RefusedError, match="a record of 0 would leave out 3 known ids"):
        plan_write(scene.app(), WriteRequest("c", 0, fence=False))


def do_fence(app: App) -> object:
    return plan_fence(app, FenceRequest(connector="c"))


def do_rescue(app: App) -> object:
    return plan_rescue(app, "c")


def do_write(app: App) -> object:
    return plan_write(app, WriteRequest("c", 0))


@pytest.mark.parametrize("attempt", [do_fence, do_rescue, do_write])
def test_where_eosctl_can_not_go_nothing_is_said_to_be_fenced(scene: FarScene, attempt: Any) -> None:
    scene.configure({**OWN_BROKERS, **SECRET})
    if attempt is not do_rescue:
        stop(scene)
    with pytest.raises(RefusedError, match=f"Kafka brokers of its own .{SERVERS}.*only its worker can resolve"):
        attempt(scene.app())
    assert scene.records() == []


def test_task_counts_tell_the_ids_that_are_alive_there(scene: FarScene) -> None:
    [row] = show_task_counts(scene.app(), "c").rows
    assert row.alive_ids == ["g-c-0", "g-c-1", "g-c-2"]
    scene.there.brokers.calls.fail_always("list_transactions", UnreachableError("no broker answers"))
    report = show_task_counts(scene.app(), "c")
    assert report.rows[0].alive_ids is None
    assert told(report, "alive_ids_unknown") == [
        "c writes to another Kafka cluster: which of its transactional ids are alive there is unknown: "
        "no broker answers"
    ]


def group(mode: str, config: dict[str, str]) -> ConfigWorld:
    """A worker in this mode, with connector c, whose offset is in the global topic."""
    world = ConfigWorld(
        records=config_records(*created("c", 1)),
        described=[compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 2)],
        connectors={"c": "source"},
        configs={"c": config},
        known_ids=(),
        modes={W1: mode},
    )
    world.topics.put(OFFSETS, OF_C, b'{"n":1}')
    return world


@pytest.fixture
def there() -> World:
    """The cluster that it writes to, where the id of its task is known."""
    made = World(cluster_id="own-cluster")
    made.brokers.state.transactions["g-c-0"] = FakeTransaction(1, 0)
    return made


def look(world: ConfigWorld, there: World) -> App:
    return replace(world.app(), **doors_to(world, there))


def found(world: ConfigWorld, there: World) -> dict[str, tuple[str, str]]:
    rows = check_connectors(look(world, there)).rows
    return {row.code: (row.severity, row.message) for row in rows}


def test_the_audit_of_tasks_looks_there(there: World) -> None:
    """The id is unknown here: a task that is exactly-once was called one that is not."""
    assert found(group("enabled", OWN_BROKERS), there) == {}
    there.brokers.state.transactions = {}
    severity, message = found(group("enabled", OWN_BROKERS), there)["task_not_exactly_once"]
    assert (severity, "no coordinator knows g-c-0" in message) == ("error", True)


@pytest.mark.parametrize(
    ("config", "why"),
    [({}, "no broker answers"), (SECRET, "only its worker can resolve producer.override.sasl.jaas.config")],
)
def test_what_can_not_be_asked_there_is_unknown(there: World, config: dict[str, str], why: str) -> None:
    """Whether its brokers take the transaction timeout is asked by another request, which needs the same login."""
    there.brokers.calls.fail_always("describe_transactions", UnreachableError("no broker answers"))
    seen = found(group("enabled", {**OWN_BROKERS, **config}), there)
    assert {code: severity for code, (severity, _message) in seen.items()} == {
        "task_audit_unknown": "warning",
        "fencing_pace_unknown": "warning",
        **({"broker_maximum_unknown": "warning"} if config else {}),
    }
    assert seen["task_audit_unknown"][1].endswith(why)


def gate(world: ConfigWorld, there: World, target: Mode = Mode.ENABLED) -> tuple[str, object]:
    listed = plan_upgrade(look(world, there), target).data_of(PlanData).gates
    [each] = [each for each in listed if each.id == "own_clusters"]
    return each.status, each.evidence


def test_a_gate_names_the_connector_and_its_brokers(there: World) -> None:
    """Those of a group that is enabled were named by nothing, though no other gate looks there."""
    assert gate(group("enabled", OWN_BROKERS), there)[0] == "pass"
    assert f"c writes to {SERVERS}" in str(gate(group("enabled", OWN_BROKERS), there)[1])


def test_brokers_of_its_own_that_take_no_such_timeout_are_found(there: World) -> None:
    there.brokers.state.transactions = {}  # else they have taken it
    there.brokers.state.settings["transaction.max.timeout.ms"] = "30000"
    seen = found(group("disabled", OWN_BROKERS), there)
    assert seen["timeout_above_broker"][0] == "error"


def test_offsets_that_would_move_are_found(there: World) -> None:
    """24 gates passed, and the whole source was read again: the fallback to the global topic never happens."""
    world = group("disabled", OWN_BROKERS)
    moves = f"c: with exactly-once its offsets are in topic {OFFSETS} on {SERVERS}, which"
    again = ": it would read its source again"
    absent = f"{moves} does not exist yet; 1 offset of topic {OFFSETS} here stay behind{again}"
    assert gate(world, there) == ("fail", absent)
    there.topics.add_topic(OFFSETS, 3)
    there.topics.put(OFFSETS, OF_C, b'{"n":0}')
    assert gate(world, there) == ("fail", f"{moves} lacks 1 offset of topic {OFFSETS} here{again}")
    there.topics.put(OFFSETS, OF_C, b'{"n":1}')
    assert gate(world, there)[0] == "pass"
    there.topics.fail_always("describe", UnreachableError("no broker answers"))
    status, evidence = gate(world, there)
    assert (status, "is not known: no broker answers" in str(evidence)) == ("unknown", True)


@pytest.mark.parametrize(
    ("mode", "config", "target"),
    [
        ("disabled", {**OWN_BROKERS, "offsets.storage.topic": "own"}, Mode.ENABLED),
        ("enabled", OWN_BROKERS, Mode.ENABLED),
        ("disabled", OWN_BROKERS, Mode.PREPARING),
    ],
)
def test_offsets_that_stay_are_no_matter(there: World, mode: str, config: dict[str, str], target: Mode) -> None:
    """A topic that the config names is there already; enabled workers have moved."""
    assert gate(group(mode, config), there, target)[0] == "pass"


def test_the_cluster_itself_in_a_config_is_no_other_one(there: World) -> None:
    world = group("disabled", {})
    here = ",".join(world.app().target.require_client().bootstrap_servers)
    world.connect.connectors["c"].config.update(dict.fromkeys(OWN_BROKERS, here))
    assert gate(world, there)[0] == "pass"


@pytest.mark.parametrize("left_out", ["consumer", "admin"])
def test_clients_that_go_to_two_clusters_are_found(there: World, left_out: str) -> None:
    """Seen on 4.3.1: without the admin client's brokers the source is read again at every restart."""
    name = f"{left_out}.override.bootstrap.servers"
    world = group("enabled", {key: value for key, value in OWN_BROKERS.items() if key != name})
    severity, message = found(world, there)["clients_disagree"]
    assert (severity, f"its config has no {name}:" in message) == ("error", True)
    assert gate(world, there)[0] == "fail"


def test_brokers_that_do_not_answer_are_asked_once(there: World) -> None:
    """Each of hundreds of connectors would wait for them anew."""
    world = group("disabled", OWN_BROKERS)
    for number in range(5):
        world.connect.add(f"more-{number}", OWN_BROKERS)
    asked: list[object] = []
    there.topics.before("describe", asked.append)
    there.topics.fail_always("describe", EosctlError("no broker answers"))
    assert gate(world, there)[0] == "unknown"
    assert len(asked) == 1
