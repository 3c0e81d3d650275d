"""The order of faults follows from the seed; what a sandbox can't have is left out and said."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path

import pytest

from eosctl.core.workers.modes import Mode
from eosctl.errors import UsageError
from eosctl.rehearse.faults import ALL_FAULTS
from eosctl.rehearse.faults.fault import Setup
from eosctl.rehearse.plan import RehearsalRequest, choose_faults, order, plan_rehearsal
from eosctl.rehearse.rules import GivenConnector, without_requirement
from tests.conftest import Invoke

EVERYTHING = Setup(brokers=3, workers=2, kafka_version=(4, 3))
NAMES = [kind.name for kind in ALL_FAULTS]


def names(seed: int, number: int = 0) -> list[str]:
    return [each.kind.name for each in order(ALL_FAULTS, seed=seed, number=number)]


def test_the_same_seed_gives_the_same_rehearsal() -> None:
    assert order(ALL_FAULTS, seed=7, number=0) == order(list(reversed(ALL_FAULTS)), seed=7, number=0)
    assert sorted(names(7)) == sorted(NAMES)


def test_another_seed_and_another_round_have_another_order() -> None:
    assert len({tuple(names(seed)) for seed in range(20)}) > 15
    assert names(7) != names(7, number=1)


def test_victims_and_moments_differ_from_fault_to_fault() -> None:
    planned = order(ALL_FAULTS, seed=7, number=0)
    assert len({each.seed for each in planned}) == len(planned)
    assert all(1.0 <= each.pause_s <= 3.0 for each in planned)
    assert any(a.pause_s != b.pause_s for a, b in pairwise(planned))


@pytest.mark.parametrize(
    ("setup", "left_out"),
    [
        (EVERYTHING, {}),
        (
            Setup(1, 2, (4, 3)),
            dict.fromkeys(("broker-restart", "broker-kill"), "needs 3 brokers (--brokers 3)"),
        ),
        (
            Setup(3, 2, (4, 3), single_replicas=True),
            dict.fromkeys(("broker-restart", "broker-kill"), "needs topics with more than one replica"),
        ),
        (Setup(3, 2, (4, 3), has_one_task=True), {"reconfigure": "needs a connector that makes more than one task"}),
        (Setup(3, 2, (4, 3), knows_tasks=False), {"reconfigure": "needs a number as tasks.max"}),
        (Setup(3, 1, (4, 3)), {"freeze-worker": "needs 2 workers (--workers)"}),
        (Setup(3, 2, (3, 3)), {"stop-resume": "needs Kafka 3.5", "switch-offsets": "needs Kafka 3.5"}),
    ],
)
def test_what_can_not_be_had_is_left_out_with_the_reason(setup: Setup, left_out: dict[str, str]) -> None:
    kinds, told = choose_faults((), setup)
    assert told == left_out
    assert [kind.name for kind in kinds] == [name for name in NAMES if name not in left_out]


def test_faults_are_chosen_by_name() -> None:
    kinds, _left_out = choose_faults(("rebalance", "kill-worker", "rebalance"), EVERYTHING)
    assert [kind.name for kind in kinds] == ["rebalance", "kill-worker"]
    with pytest.raises(UsageError, match="there is no fault kill-all") as caught:
        choose_faults(("kill-all",), EVERYTHING)
    assert "kill-worker" in str(caught.value.hint)
    with pytest.raises(UsageError, match="no fault is left: broker-kill needs 3 brokers"):
        choose_faults(("broker-kill",), Setup(1, 2, (4, 3)))


def test_rounds_go_on_with_minutes() -> None:
    plan = plan_rehearsal(RehearsalRequest(seed=1, faults=("kill-worker", "rebalance"), minutes=1))
    assert [len(planned) for planned in islice(plan.rounds(), 3)] == [2, 2, 2]
    assert plan.first()[0][0] == "upgrade"


def test_the_built_in_source_knows_its_own_fields() -> None:
    plan = plan_rehearsal(RehearsalRequest(seed=1))
    assert (plan.connector_name, plan.unique, plan.sequence) == ("lines", "n", "n")


def test_tasks_max_may_be_a_reference() -> None:
    """`int` of it used to end the rehearsal with a traceback."""
    config = {"connector.class": "com.example.JdbcSource", "tasks.max": "${file:/x:tasks}"}
    plan = plan_rehearsal(RehearsalRequest(seed=1, connector=GivenConnector("orders", config)))
    assert plan.left_out["reconfigure"] == "needs a number as tasks.max"


@pytest.mark.parametrize(("mode", "is_left_out"), [(Mode.DISABLED, True), (Mode.ENABLED, False)])
def test_what_only_enabled_workers_take_is_left_out_until_they_are(mode: Mode, is_left_out: bool) -> None:
    """The start failed after a minute: the worker does not take the config."""
    config = {"connector.class": "com.example.JdbcSource", "exactly.once.support": "required"}
    plan = plan_rehearsal(RehearsalRequest(seed=1, start_mode=mode, connector=GivenConnector("orders", config)))
    assert plan.connector is not None
    assert any("exactly.once.support" in each for each in plan.connector.changed) is is_left_out
    assert plan.connector.config["exactly.once.support"] == "required"
    assert without_requirement(plan.connector.config) == {"connector.class": "com.example.JdbcSource"}


def test_faults_that_need_replicas_or_tasks_are_left_out_by_the_config() -> None:
    config = {"connector.class": "FileStreamSource", "topic.creation.default.replication.factor": "1"}
    given = GivenConnector("lines", config)
    plan = plan_rehearsal(RehearsalRequest(seed=1, brokers=3, connector=given))
    assert set(plan.left_out) == {"reconfigure", "broker-restart", "broker-kill"}
    assert set(plan_rehearsal(RehearsalRequest(seed=1, brokers=3)).left_out) == {"reconfigure"}


CONFIG = {
    "name": "orders",
    "config": {
        "connector.class": "com.example.JdbcSource",
        "connection.url": "jdbc:postgresql://db/orders",
        "connection.password": "canary-of-a-password",
        "producer.override.bootstrap.servers": "prod:9092",
        "topic.creation.default.replication.factor": "3",
        "slot.name": "orders",
    },
}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    config, worker = tmp_path / "orders.json", tmp_path / "worker.properties"
    config.write_text(json.dumps(CONFIG))
    worker.write_text(
        "bootstrap.servers=prod:9092\nkey.converter=a.B\n"
        "value.converter.schema.registry.url=http://registry:8081\nproducer.sasl.jaas.config=canary-of-a-password\n"
    )
    return ["--config", str(config), "--worker-config", str(worker)]


def test_the_plan_is_shown_before_anything_starts(
    invoke: Invoke, files: list[str], tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    outcome = invoke(
        "rehearse", *files, "--seed", "3", "--dry-run", "--from", "enabled", "--faults", "kill-worker,roll"
    )
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    golden("rehearse/plan.txt", outcome.stdout.replace(str(tmp_path), "TMP"))
    assert "canary" not in outcome.stdout
    assert not (tmp_path / "state" / "eosctl" / "sandbox").exists()


def test_the_plan_as_json(invoke: Invoke, files: list[str]) -> None:
    document = invoke("rehearse", *files, "--seed", "3", "--dry-run", "-o", "json").json()
    assert document["kind"] == "rehearse-plan"
    assert document["data"]["outside"] == {
        "connection.url": "jdbc:postgresql://db…",
        "value.converter.schema.registry.url": "http://registry:8081",
    }
    assert document["data"]["shared"] == {"slot.name": "orders"}
    assert document["data"]["not_taken"] == ["bootstrap.servers", "producer.sasl.jaas.config"]
    assert [each["fault"] for each in document["data"]["left_out"]] == ["broker-restart", "broker-kill"]
    assert (document["data"]["summary"]["judged"], document["data"]["summary"]["not_judged"]) == (
        ["transactions"],
        ["duplicates", "loss"],
    )
    assert "canary" not in json.dumps(document)


def test_the_command_that_repeats_it_is_taken(invoke: Invoke, files: list[str]) -> None:
    words = ["rehearse", *files, "--workers", "1", "--strict"]
    repeat = invoke(*words, "--seed", "3", "--dry-run", "-o", "json").json()["data"]["repeat"]
    assert repeat.split() == ["eosctl", *words, "--seed", "3"]


def test_nothing_starts_without_a_yes(invoke: Invoke, files: list[str], tmp_path: Path) -> None:
    outcome = invoke("rehearse", *files, can_ask=False)
    assert (outcome.exit_code, outcome.stdout) == (6, "")
    assert "run again with --yes" in outcome.stderr
    assert invoke("rehearse", *files, input="n\n", can_ask=True).exit_code == 6
    assert not (tmp_path / "state" / "eosctl" / "sandbox").exists()


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["--faults", "nonsense"], 2, "there is no fault nonsense"),
        (["--faults", "broker-kill"], 2, "no fault is left"),
        (["--kafka-version", "1.0"], 2, "the sandbox has no Kafka 1.0"),
        (["--config", "/nowhere.json"], 2, "cannot read /nowhere.json"),
        (["--report", "/no/such/folder/r.html"], 2, "there is no directory /no/such/folder"),
        (["--plugin-path", "/no/such/folder"], 2, "there is no /no/such/folder for --plugin-path"),
        (["--minutes", "0"], 2, "0 is not in the range"),
    ],
)
def test_bad_input_is_said_at_once(invoke: Invoke, words: list[str], code: int, why: str) -> None:
    outcome = invoke("rehearse", *words, "--dry-run")
    assert (outcome.exit_code, why in outcome.stderr) == (code, True), outcome.stderr


def test_a_field_that_no_audit_could_read_is_said_at_once(invoke: Invoke, files: list[str]) -> None:
    """Every audit of the rehearsal used to fail, and the rows to be unproven, once all had been started."""
    outcome = invoke("rehearse", *files, "--unique", "auto", "--dry-run")
    assert (outcome.exit_code, "which field is unique" in outcome.stderr) == (2, True), outcome.stderr


def test_a_profile_of_production_is_not_looked_at(invoke: Invoke, tmp_path: Path) -> None:
    """A rehearsal goes to its own sandbox only, whatever the environment says."""
    environ = {"XDG_STATE_HOME": str(tmp_path), "EOSCTL_BOOTSTRAP_SERVER": "prod:9092", "EOSCTL_PROFILE": "nosuch"}
    outcome = invoke("rehearse", "--dry-run", environ=environ)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
