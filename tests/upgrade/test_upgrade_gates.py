"""What the gates of an upgrade say: their evidence, and why something could not be looked at."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.configs.fold import ConfigState, ConnectorState, fold_config_topic
from eosctl.core.open_transactions import OpenTransaction
from eosctl.core.records import Bounds, Record
from eosctl.core.workers.modes import Mode, UpgradeWorker, plan_passes
from eosctl.group.observation.rules import VALIDATION, Observation, RightsSeen, StaleOffsets, WorkerFile
from eosctl.report import plain
from eosctl.upgrade.codes import MODES_PROVEN
from eosctl.upgrade.gate import Gate, GateStatus
from eosctl.upgrade.gate_rows import gate_part
from eosctl.upgrade.gates import evaluate_gates
from eosctl.upgrade.rows import pass_part, worker_row
from tests.group.observations import ENABLED, aborted, good, source, topic, worker

W = "http://w0:8083"


def gate(gate_id: str, seen: Observation) -> Gate:
    return {str(each.id): each for each in evaluate_gates(seen)}[gate_id]


def lacking(number: int) -> RightsSeen:
    return RightsSeen(9, lacking=tuple("abcdefghi"[:number]))


def files(*settings: dict[str, str]) -> dict[str, Any]:
    return {"files": tuple(WorkerFile(f"w{at}", each) for at, each in enumerate(settings))}


def task_sets(**changes: Any) -> dict[str, Any]:
    return {"config_state": ConfigState(1, {"c": ConnectorState("c", **changes)}, ())}


IDLE, REBALANCE = "connections.max.idle.ms", "rebalance.timeout.ms"


@pytest.mark.parametrize(
    ("gate_id", "changes", "status", "evidence"),
    [
        ("members_known", {}, "pass", "1 member, every one answers"),
        ("members_known", {"workers": (worker(mode=Mode.ABSENT),)}, "fail", f"{W} is not a member of the group"),
        (
            "members_known",
            {"workers": (replace(worker(), doubt="2 members are one"), replace(worker(), doubt="2 members are one"))},
            "fail",
            "2 members are one",
        ),
        ("worker_versions", {}, "pass", "versions: 4.3.1"),
        (
            "worker_versions",
            {"workers": (worker(), worker(version="3.3.0"), worker())},
            "pass",
            "versions: 3.3.0, 4.3.1",
        ),
        (
            "worker_versions",
            {"workers": (worker(version=None), worker(version="3.2"))},
            "fail",
            f"{W} runs 3.2; the version of {W} is not known",
        ),
        (
            "worker_versions",
            {"workers": (worker(version="7.2.1-ccs"),)},
            "fail",
            f"{W} runs 7.2.1-ccs (Kafka 3.2)",
        ),
        ("worker_versions", {"workers": (worker(version="7.6.0-ccs"),)}, "pass", "versions: 7.6.0-ccs (Kafka 3.6)"),
        (
            "worker_versions",
            {"workers": (worker(version="3.0-acme", mode=Mode.UNKNOWN),)},
            "unknown",
            f"{W} runs 3.0-acme (of an unknown distribution)",
        ),
        (
            "worker_versions",
            {"workers": (worker(version="9-acme", mode=Mode.NOT_ENABLED),)},
            "pass",
            "versions: 9-acme (of an unknown distribution)",
        ),
        ("worker_health", {}, "pass", "every worker is healthy"),
        (
            "worker_health",
            {"workers": (worker(health="unknown", version="7.6.0-ccs"),)},
            "pass",
            f"every worker answers; Kafka reports health from 3.9 on, so not {W}, which runs 7.6.0-ccs (Kafka 3.6)",
        ),
        (
            "worker_health",
            {"workers": (worker(health="unknown", version="3.0-acme", mode=Mode.UNKNOWN),)},
            "unknown",
            f"{W} does not report its health",
        ),
        ("worker_health", {"workers": (worker(health="unhealthy"),)}, "fail", f"{W} is unhealthy"),
        (
            "worker_health",
            {"workers": (worker(health="unknown", version="3.8.1"),)},
            "pass",
            f"every worker answers; Kafka reports health from 3.9 on, so not {W}, which runs 3.8.1",
        ),
        (
            "worker_health",
            {"workers": (worker(health="unknown", version="3.9.0"),)},
            "unknown",
            f"{W} does not report its health",
        ),
        ("modes_proven", {"workers": ()}, "pass", "no workers"),
        ("modes_proven", {}, "pass", f"{W} is disabled"),
        (
            "modes_proven",
            {"workers": (worker(evidence=("it says so", "its file too")),)},
            "pass",
            f"{W} is disabled (it says so, its file too)",
        ),
        ("config_topic", {}, "pass", "configs: 1 partition, compact, replication factor 3"),
        ("config_topic", {"topics": {}}, "fail", "there is no topic configs"),
        (
            "offset_topic",
            {},
            "pass",
            "offsets: 25 partitions, compact, replication factor 1 (a lost broker loses it)",
        ),
        ("offset_topic", {"topics": {}}, "fail", "there is no topic offsets"),
        (
            "offset_topic",
            {"topics": {"offsets": topic("offsets", policy=None)}},
            "unknown",
            "the settings of offsets may not be read",
        ),
        ("task_sets_complete", task_sets(config={}, inconsistent=True), "fail", "c lacks task configs"),
        ("task_sets_complete", task_sets(config={}), "pass", "every committed task set is complete"),
        ("task_sets_complete", task_sets(inconsistent=True), "pass", "every committed task set is complete"),
        ("connectors_healthy", {}, "pass", "1 connector and all tasks are as they should be"),
        (
            "connectors_healthy",
            {"connectors": source(states={"connector": "PAUSED", "task 0": "UNASSIGNED"})},
            "fail",
            "c task 0 is UNASSIGNED",
        ),
        (
            "no_aborted_offsets",
            {"aborted_offsets": aborted()},
            "fail",
            "1 key of offsets with an aborted newest record: c",
        ),
        ("rights_granted", {}, "pass", "12 rights of workers and source connectors are given by ACLs"),
        ("rights_granted", {"rights": lacking(5)}, "fail", "a; b; c; d; e"),
        ("rights_granted", {"rights": lacking(6)}, "fail", "a; b; c; d; e; 1 more like these"),
        ("worker_files", {}, "pass", "no worker file was given"),
        ("worker_files", files({}), "pass", "1 worker file agrees"),
        (
            "worker_files",
            files({"exactly.once.source.support": "preparing"}, {"exactly.once.source.support": "Disabled"}),
            "pass",
            "2 worker files agree",
        ),
        ("worker_files", files({"group.id": "h"}, {"group.id": "g"}), "fail", "group.id differs: g, h"),
        (
            "worker_files",
            files({"exactly.once.source.support": "maybe"}),
            "fail",
            "w0: exactly.once.source.support=maybe",
        ),
        ("idle_connections", {}, "pass", "no worker file was given"),
        ("idle_connections", files({}, {IDLE: "-1"}), "pass", "2 worker files keep the connection for a rebalance"),
        ("idle_connections", files({IDLE: "60000"}), "pass", "1 worker file keeps the connection for a rebalance"),
        (
            "idle_connections",
            files({}, {IDLE: "59999"}, {REBALANCE: "540001"}),
            "fail",
            f"w1: {IDLE}=59999, {REBALANCE}=60000: a rebalance may last longer than its connection; "
            f"w2: {IDLE}=540000, {REBALANCE}=540001: a rebalance may last longer than its connection",
        ),
        (
            "idle_connections",
            files({IDLE: "${env:IDLE}"}),
            "unknown",
            f"w0: {IDLE}=${{env:IDLE}}, {REBALANCE}=60000: not both are numbers that can be read here",
        ),
    ],
)
def test_what_a_gate_says(gate_id: str, changes: dict[str, Any], status: str, evidence: str) -> None:
    said = gate(gate_id, replace(good(), **changes))
    assert (said.status, said.evidence) == (status, evidence)


@pytest.mark.parametrize("name", ["group.id", "status.storage.topic"])
def test_workers_of_one_group_share_these_properties(name: str) -> None:
    said = gate("worker_files", replace(good(), **files({name: "one"}, {name: "other"})))
    assert (said.status, said.evidence) == ("fail", f"{name} differs: one, other")


@pytest.mark.parametrize(
    ("name", "ours", "means"),
    [
        ("config.storage.topic", "configs", "what that worker runs comes from there, and it never catches up"),
        ("offset.storage.topic", "offsets", "source connectors that run on that worker go on from other"),
    ],
)
def test_a_worker_with_another_topic_than_its_group_is_named(name: str, ours: str, means: str) -> None:
    """It was said that the property differs, and not whose is the wrong one."""
    said = gate("worker_files", replace(good(), **files({name: ours}, {name: "other"}, {})))
    assert said.status == "fail"
    assert said.evidence.startswith(f"w1: {name}=other, and the group has {ours}: {means}")
    unknown = gate("worker_files", replace(good(), **files({name: ours}, {name: "${env:TOPIC}"})))
    assert (unknown.status, unknown.evidence) == ("unknown", f"w1: {name}: only the worker can resolve ${{env:TOPIC}}")


def test_what_is_no_error_goes_along_with_the_proof() -> None:
    """A round of 31 s is no reason to wait where nobody can give up on it, and yet worth knowing."""
    said = gate("fencing_pace", replace(good(), crowding={"c": 31}))
    assert said.status == "pass"
    assert said.evidence.startswith("1 source connector: Connect can fence each of them in time; c: each reconfig")
    assert "so long no task of it runs" in said.evidence
    fine = gate("fencing_pace", replace(good(), crowding={"c": 1}))
    assert fine.evidence == "1 source connector: Connect can fence each of them in time"


def test_what_is_said_once_is_not_said_again_as_a_note() -> None:
    said = gate("connector_support", replace(good(), connectors=source(support_errors=None)))
    assert (said.status, said.evidence) == ("unknown", "c was not validated, so its support is not known")


def test_a_property_of_a_file_fails_though_connectors_could_not_be_asked() -> None:
    seen = replace(good(), connectors=None, **files({"offsets.storage.topic": "x"})).without(["connectors"], "why")
    said = gate("property_names", seen)
    assert said.status == "fail"
    assert said.evidence.startswith("w0 sets offsets.storage.topic, which does nothing")
    assert said.evidence.endswith("; why")


OF_SOURCES = (
    "connector_support",
    "transaction_boundaries",
    "transaction_timeouts",
    "broker_transaction_timeout",
    "client_overrides",
    "own_clusters",
    "no_writes_to_own_offsets",
    "fencing_pace",
    "tasks_exactly_once",
)


def test_who_holds_a_transaction_open_is_a_command_away() -> None:
    held = OpenTransaction("offsets of a", Bounds(7, 0, 12, 20))
    found = gate("no_open_transactions", replace(good(), open_transactions=(held,)))
    assert (found.status, found.evidence) == ("fail", (
        "offsets of a partition 7 has a transaction open since offset 12 "
        "(`eosctl txn producers --topic 'offsets of a' --partition 7` shows the owner)"
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("what", "changes", "gate_ids"),
    [
        ("kafka", {"kafka_cluster_id": None}, ("same_kafka_cluster",)),
        ("topics", {"topics": None}, ("config_topic", "offset_topic")),
        ("open transactions", {"open_transactions": None}, ("no_open_transactions",)),
        ("config topic", {"differing_connectors": None}, ("no_aborted_records",)),
        ("config topic", {"config_state": None}, ("config_topic_readable", "task_sets_complete")),
        ("aborted offsets", {"aborted_offsets": None}, ("no_aborted_offsets",)),
        ("own offsets topics", {"stale_offsets": None}, ("own_offsets_current",)),
        (
            "connectors",
            {"connectors": None, "workers": ENABLED},
            ("connectors_healthy", "property_names", *OF_SOURCES),
        ),
        ("other groups", {"rival_groups": None}, ("id_collisions",)),
        ("other groups", {"group_id": None}, ("id_collisions",)),
        ("other groups", {"connectors": None}, ("id_collisions",)),
        ("rights", {"rights": None}, ("rights_granted",)),
    ],
)
def test_a_gate_says_why_it_could_not_look(what: str, changes: dict[str, Any], gate_ids: tuple[str, ...]) -> None:
    seen = replace(good(), **changes).without([what], "nobody may look at that")
    said = [gate(gate_id, seen) for gate_id in gate_ids]
    assert [(each.id, each.status, each.evidence) for each in said] == [
        (gate_id, "unknown", "nobody may look at that") for gate_id in gate_ids
    ]


@pytest.mark.parametrize("target", [Mode.ENABLED, Mode.PREPARING, Mode.DISABLED])
def test_a_record_that_breaks_workers_holds_up_every_restart(target: Mode) -> None:
    """All gates passed, and each worker that was restarted stayed behind the config topic."""
    state = fold_config_topic([Record("t", 0, 7, -1, b"tasks-fencing-c", b'{"tasks":1}')])
    judged = gate("config_topic_readable", replace(good(), config_state=state, target=target))
    assert (judged.status, judged.stops_apply) == ("fail", True)
    assert judged.evidence.startswith("record tasks-fencing-c at offset 7: KIP-618's text names the field `tasks`")
    assert judged.evidence.endswith("a worker that reads it loses the rest of the batch it is read in")


@pytest.mark.parametrize(
    ("stale", "said"),
    [
        (StaleOffsets("c", "own", 2, 7_200_000), "own is 120 m behind the global topic in 2 offsets of c"),
        (StaleOffsets("c", "own", 1, None), "own has no offset of c, the global topic has 1 offset"),
    ],
)
def test_own_offsets_that_are_older_than_the_global_ones_hold_up_the_way_up_only(
    stale: StaleOffsets, said: str
) -> None:
    """After a hard downgrade and back a connector went on from its own, older offsets, and no gate saw it."""
    seen = replace(good(), stale_offsets=(stale,))
    judged = gate("own_offsets_current", seen)
    assert (judged.status, judged.evidence) == ("fail", said)
    assert gate("own_offsets_current", replace(seen, target=Mode.DISABLED)).status == "pass"


@pytest.mark.parametrize(
    ("status", "guards_data", "accepted", "stops"),
    [
        ("pass", True, False, False),
        ("fail", False, False, True),
        ("fail", True, True, False),
        ("unknown", True, False, True),
        ("unknown", True, True, False),
        ("unknown", False, False, False),
    ],
)
def test_an_unknown_gate_stops_apply_only_where_it_guards_data(
    status: GateStatus, guards_data: bool, accepted: bool, stops: bool
) -> None:
    assert Gate(MODES_PROVEN, status, "", guards_data=guards_data, accepted=accepted).stops_apply is stops


def test_what_nobody_could_look_at_stops_apply_where_records_may_be_lost() -> None:
    """All of them let it go on: it reached `disabled` over aborted offsets that no look had had time to find."""
    blind = replace(
        good(),
        topics=None,
        open_transactions=None,
        config_state=None,
        differing_connectors=None,
        aborted_offsets=None,
        stale_offsets=None,
        connectors=None,
        kafka_cluster_id=None,
        rival_groups=None,
        rights=None,
        workers=(worker(version=None, health=None),),
    )
    gates = evaluate_gates(blind, accepted={"offset_topic"})
    assert {each.id for each in gates if each.stops_apply} == {
        "same_kafka_cluster", "worker_versions", "config_topic", "config_topic_readable", "no_open_transactions",
        "no_aborted_records", "no_aborted_offsets", "own_offsets_current", "task_sets_complete", "connectors_healthy",
        "own_clusters",
    }  # fmt: skip
    assert {each.id for each in gates if each.accepted} == {"offset_topic"}
    assert {"worker_health", "id_collisions", "rights_granted"} <= {
        each.id for each in gates if each.status == "unknown"
    }


def test_gates_that_rest_on_a_validation_are_unknown_without_one() -> None:
    """A transaction boundary that nobody was asked about passed."""
    seen = replace(good(), connectors=source(support_errors=None)).without([VALIDATION], "nobody was asked")
    for gate_id in ("connector_support", "transaction_boundaries"):
        judged = gate(gate_id, seen)
        assert (judged.status, judged.evidence.endswith("is not known: nobody was asked")) == ("unknown", True)


def test_a_gate_and_a_worker_as_plain_data() -> None:
    assert plain(gate_part(Gate(MODES_PROVEN, "fail", "seen", "do this"))) == {
        "id": "modes_proven", "status": "fail", "evidence": "seen", "fix": "do this",
        "stops_apply": True, "accepted": False,
    }  # fmt: skip
    there = UpgradeWorker(W, Mode.ENABLED, leader=True, version="4.3.1", health="healthy", evidence=("a", "b"))
    assert plain(worker_row(there)) == {
        "worker": W, "leader": True, "version": "4.3.1", "health": "healthy", "mode": "enabled",
        "evidence": ["a", "b"],
    }  # fmt: skip


def test_a_pass_as_plain_data() -> None:
    [only] = plan_passes([UpgradeWorker(W, Mode.PREPARING)], Mode.ENABLED)
    assert plain(pass_part(only)) == {
        "mode": "enabled",
        "barrier": "every worker is proven to be preparing or enabled",
        "steps": [
            {
                "worker": W,
                "actions": ["set exactly.once.source.support=enabled", "restart it"],
                "gates": ["worker_healthy", "members_known", "group_stable", "connectors_healthy", "mode_proven"],
            }
        ],
    }
