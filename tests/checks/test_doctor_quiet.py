"""How little `eosctl doctor` says: one cause is one finding, many alike are one, and where all is well it is quiet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.core.records import Record
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.acls import FakeAclStore
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_topic import config_records, created
from tests.fakes.config_world import ConfigWorld
from tests.fakes.connectors import FILE_SINK
from tests.fakes.doctor_scene import HEALTHY, OFFSETS, W1, W2, WHERE, cluster, doctor, found, write_worker_file

NO_API = "The connector does not implement the API required for preflight validation"
MANY = [f"c{number}" for number in range(40)]
NOT_USED = [("connectors", "exactly_once_not_used", "info"), *HEALTHY]


def test_a_worker_that_is_dead_is_one_finding(invoke: Invoke) -> None:
    """It was six, one of which advised to upgrade it to Kafka 3.3."""
    there = cluster(modes={W1: "enabled", W2: "enabled"})
    there.connect.down.add(W2)
    outcome = doctor(invoke, there, "-o", "json")
    [dead, rights] = envelope_of(outcome, "doctor", 3)["data"]["rows"]
    assert [(each["check"], each["code"]) for each in (dead, rights)] == [
        ("workers", "worker_unreachable"), ("acls", "acls_not_checked"),
    ]  # fmt: skip
    assert (dead["severity"], dead["subject"]) == ("error", W2)
    assert [each["code"] for each in dead["evidence"]["follows"]] == [
        *("members_known", "worker_versions", "worker_health", "modes_proven", "no_mixed_modes")
    ]
    text = doctor(invoke, there).stdout
    assert f"       follows: worker_versions: not known: the version of {W2} is not known" in text.splitlines()
    assert "Upgrade it" not in text


def test_what_is_wrong_beside_a_dead_worker_stays_a_finding_of_its_own(invoke: Invoke) -> None:
    there = cluster(modes={W1: "disabled", W2: "enabled", "http://w3:8083": "enabled"})
    there.connect.down.add(W2)
    rows = found(invoke, there, 3)
    assert [row for row in rows if row[0] in ("workers", "gates")] == [
        ("workers", "worker_unreachable", "error"), ("gates", "no_mixed_modes", "warning"),
    ]  # fmt: skip


def test_where_every_worker_is_dead_each_is_one_finding(invoke: Invoke) -> None:
    """What needs a worker could not be checked for that reason only: it stands below it."""
    there = cluster(modes={W1: "enabled", W2: "enabled"})
    there.connect.down.update({W1, W2})
    document = envelope_of(doctor(invoke, there, "-o", "json"), "doctor", 3)
    assert [(row["code"], row["subject"]) for row in document["data"]["rows"] if row["severity"] != "info"] == [
        ("worker_unreachable", W1), ("worker_unreachable", W2),
    ]  # fmt: skip
    follows = document["data"]["rows"][0]["evidence"]["follows"]
    assert [each["subject"] for each in follows if each["code"] == "not_checked"] == ["failures", "connectors"]
    assert document["data"]["summary"]["not_checked"] == 2


def test_many_findings_alike_are_one_with_a_count_and_three_examples(invoke: Invoke) -> None:
    """A hundred records without a key were a hundred findings, or as many as `offsets lint` shows."""
    there = cluster(offsets=[Record(OFFSETS, 0, at, 0, None, b"{}") for at in range(120)])
    rows = envelope_of(doctor(invoke, there, "-o", "json"), "doctor", 3)["data"]["rows"]
    [alike] = [row for row in rows if row["check"] == "offsets"]
    assert (alike["code"], alike["subject"], alike["evidence"]["count"]) == ("key_null", f"{OFFSETS}-0", 120)
    assert alike["message"].startswith("120 times: ")
    assert alike["message"].count("a record without a key at offset") == 3
    assert len(alike["evidence"]["examples"]) == 3


def validated(there: ConfigWorld) -> list[object]:
    """Filled with the name of each connector that a worker is asked to validate."""
    names: list[object] = []
    there.connect.before("validate", lambda call: names.append(call.what[2]["name"]))  # type: ignore[index]
    return names


def test_each_worker_and_each_connector_is_validated_once(invoke: Invoke) -> None:
    """Each worker was probed twice in a run."""
    there = cluster(modes={W1: "enabled", W2: "enabled"})
    names = validated(there)
    assert doctor(invoke, there).exit_code == 0
    assert names == ["eosctl-probe", "eosctl-probe", "orders"]


def test_no_connector_validates_itself_where_that_is_not_wanted(invoke: Invoke) -> None:
    """Debezium logs in to its database for that."""
    there = cluster(connectors={"orders": "source", "more": "source"})
    names = validated(there)
    rows = envelope_of(doctor(invoke, there, "--no-validate", "-o", "json"), "doctor")["data"]["rows"]
    assert names == ["eosctl-probe"]
    [unknown] = [row for row in rows if row["code"] == "support_unknown"]
    assert (unknown["severity"], unknown["subject"]) == ("info", "connectors")
    # it said "4 times", twice for each connector
    assert unknown["message"].startswith("whether source connectors support exactly-once is not known: ")
    assert "--no-validate" in unknown["message"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {
            "configs": {"orders": {"transaction.boundary": "interval", "producer.override.acks": "1"}},
            "max_timeout_ms": 9,
        },
        {
            "connectors": dict.fromkeys(MANY, "source"),
            "records": config_records(*(two for c in MANY for two in created(c, 1))),
        },
    ],
)
def test_a_group_that_does_not_use_exactly_once_is_quiet(invoke: Invoke, changes: dict[str, Any]) -> None:
    """It was told of every connector that it would not be exactly-once, with errors where that would take more."""
    there = cluster(
        modes={W1: "disabled", W2: "disabled"}, **{"records": config_records(*created("orders", 1)), **changes}
    )
    there.connect.objections["exactly.once.support"] = "The connector does not support exactly-once semantics"
    assert found(invoke, there, 0) == NOT_USED
    assert doctor(invoke, there, "--strict").exit_code == 0


def test_who_requires_exactly_once_of_a_group_that_does_not_use_it_is_an_error(invoke: Invoke) -> None:
    there = cluster(modes={W1: "disabled"}, configs={"orders": {"exactly.once.support": "required"}})
    assert ("connectors", "task_not_exactly_once", "error") in found(invoke, there, 3)


def test_rights_are_held_against_nothing_where_exactly_once_is_not_used(invoke: Invoke, tmp_path: Path) -> None:
    """A principal of a group that writes without transactions has no right to transactional ids, and needs none."""
    worker_file = write_worker_file(tmp_path / "worker.properties")
    there = cluster(modes={W1: "disabled"}, acls=FakeAclStore(), records=config_records(*created("orders", 1)))
    rows = envelope_of(invoke("doctor", "-w", str(worker_file), "-o", "json", **there.surroundings), "doctor")
    assert [row["code"] for row in rows["data"]["rows"]] == ["exactly_once_not_used", "acls_not_checked"]


@pytest.mark.parametrize("mode", ["enabled", "disabled"])
def test_a_group_of_sinks_is_quiet(invoke: Invoke, mode: str) -> None:
    sinks = config_records(*created("files", 1, config={"connector.class": FILE_SINK}))
    assert found(invoke, cluster(modes={W1: mode}, connectors={"files": "sink"}, records=sinks), 0) == HEALTHY


def test_forty_tasks_are_quiet(invoke: Invoke) -> None:
    """But for the time that Connect takes to fence them, where one coordinator has all their ids."""
    there = cluster(records=config_records(*created("orders", 40, record=40)), known_ids=())
    there.connect.add("orders", {"tasks.max": "40"})
    for task in range(40):
        there.brokers.state.transactions[f"g-orders-{task}"] = FakeTransaction(*there.brokers.state.new_producer())
    there.brokers.state.moved = {f"g-orders-{task}": task % 3 for task in range(40)}
    assert found(invoke, there, 0) == [("connectors", "fencing_slow", "warning"), *HEALTHY]


def test_mirror_makers_connectors_that_copy_nothing_need_no_support(invoke: Invoke) -> None:
    """Heartbeats and checkpoints do no harm twice: of each it was said that it is taken on trust."""
    names = ("MirrorHeartbeatConnector", "MirrorCheckpointConnector")
    configs = {name: {"connector.class": f"org.apache.kafka.connect.mirror.{name}"} for name in names}
    records = [pair for name in names for pair in created(name, 1, record=1, config=configs[name])]
    there = cluster(connectors=dict.fromkeys(names, "source"), configs=configs, records=config_records(*records))
    there.connect.objections["exactly.once.support"] = NO_API
    assert found(invoke, there, 0) == HEALTHY


def mirror_maker(**config: Any) -> ConfigWorld:
    """A dedicated MirrorMaker with two workers, which no request reaches."""
    records = config_records(*created("orders", 1, record=1, **config))
    there = cluster(modes={W1: "enabled", W2: "enabled"}, records=records)
    there.connect.mirror_maker = True
    there.connect.down.update({W1, W2})
    return there


def test_a_dedicated_mirror_maker_is_quiet(invoke: Invoke) -> None:
    """Each of its workers was one at http://notused:80 that could not be reached, and all that follows from that."""
    rows = envelope_of(doctor(invoke, mirror_maker(), "-o", "json"), "doctor")["data"]["rows"]
    assert [(row["code"], row["severity"]) for row in rows] == [
        ("dedicated_mirror_maker", "info"), ("acls_not_checked", "info"),
    ]  # fmt: skip
    assert rows[0]["message"] == "g is the group of a dedicated MirrorMaker: 2 workers without a REST interface"
    assert {each["code"] for each in rows[0]["evidence"]["follows"]} >= {"worker_versions", "modes_proven"}
    assert doctor(invoke, mirror_maker(), "--strict").exit_code == 0


def test_workers_of_a_dedicated_mirror_maker_are_rows(invoke: Invoke) -> None:
    document = envelope_of(
        invoke("workers", "list", *WHERE, "-o", "json", **mirror_maker().surroundings), "workers-list"
    )
    assert [(row["url"], row["member_id"], row["mode"]) for row in document["data"]["rows"]] == [
        (None, f"member {url}", "unknown") for url in (W1, W2)
    ]
    said = "is a worker of a dedicated MirrorMaker, which has no REST interface"
    assert {evidence for row in document["data"]["rows"] for evidence in row["evidence"]} == {said}
    assert document["errors"] == []


@pytest.fixture
def mm2_file(tmp_path: Path) -> str:
    """The file of the MirrorMaker; what it sets without the target's alias does nothing."""
    path = tmp_path / "mm2.properties"
    path.write_text(
        "clusters=a,b\na->b.enabled=true\nb.bootstrap.servers=localhost:1\nb.group.id=g\n"
        "config.storage.topic=connect-configs\noffset.storage.topic=connect-offsets\n"
        "b.exactly.once.source.support=enabled\na->b.exactly.once.source.support=disabled\n"
    )
    return str(path)


def test_the_mode_of_a_dedicated_mirror_maker_is_what_its_file_says(invoke: Invoke, mm2_file: str) -> None:
    """Its file was taken for one of a worker that is disabled, and that is no member of the group."""
    outcome = invoke("workers", "list", *WHERE, "-w", mm2_file, "-o", "json", **mirror_maker().surroundings)
    rows = envelope_of(outcome, "workers-list")["data"]["rows"]
    assert [(row["mode"], row["evidence"][-1]) for row in rows] == [
        ("enabled", f"{mm2_file} says enabled, which no request can confirm")
    ] * 2
    right = "b.exactly.once.source.support"
    assert f"sets a->{right}, which sets no worker's mode: it is {right}" in outcome.stderr


def test_a_dedicated_mirror_maker_with_its_file_is_quiet(invoke: Invoke, mm2_file: str) -> None:
    rows = envelope_of(doctor(invoke, mirror_maker(), "-w", mm2_file, "-o", "json"), "doctor")["data"]["rows"]
    assert [row["code"] for row in rows] == ["dedicated_mirror_maker", "acls_not_checked"]
    follows = {each["code"]: each["message"] for each in rows[0]["evidence"]["follows"]}
    assert "127.0.0.1 may be enabled (is a worker of a dedicated" in follows["modes_proven"]


def test_the_file_of_a_dedicated_mirror_maker_is_no_worker_that_is_missing(invoke: Invoke, mm2_file: str) -> None:
    words = ("upgrade", "plan", "--to", "disabled", *WHERE, "-w", mm2_file, "-o", "json")
    document = invoke(*words, **mirror_maker().surroundings).json()
    gates = {gate["id"]: gate["status"] for gate in document["data"]["gates"]}
    [members] = [gate for gate in document["data"]["gates"] if gate["id"] == "members_known"]
    assert members["evidence"] == "2 members, without a REST interface"  # it was "every one answers"
    assert (gates["members_known"], gates["modes_proven"], gates["worker_files"]) == ("pass", "unknown", "pass")
    # it was the property without the alias, which does nothing in such a file
    sets = {action for each in document["data"]["passes"] for step in each["steps"] for action in step["actions"]}
    assert {f"set b.exactly.once.source.support={mode}" for mode in ("preparing", "disabled")} <= sets


def test_connectors_of_a_dedicated_mirror_maker_are_judged_as_they_are_written(invoke: Invoke) -> None:
    """No worker tells of them, and nothing of them was looked at."""
    there = mirror_maker(config={"transaction.boundary": "interval", "transaction.boundary.interval.ms": "70000"})
    outcome = invoke("connectors", "check", *WHERE, "-o", "json", **there.surroundings)
    document = envelope_of(outcome, "connectors-check", 3)
    assert {(row["code"], row["severity"]) for row in document["data"]["rows"]} == {
        ("interval_exceeds_timeout", "error"), ("support_unknown", "info"),
    }  # fmt: skip
    assert [each["code"] for each in document["errors"]] == ["connectors_as_written"]


def test_what_nothing_tells_of_a_dedicated_mirror_maker_takes_a_waiver_by_name(invoke: Invoke, mm2_file: str) -> None:
    """Its upgrade was refused as a whole. Here no version is known, and no file names the topic of states."""
    words = ("upgrade", "apply", "--to", "disabled", "--driver", "print", "--dry-run", *WHERE, "-w", mm2_file)
    outcome = invoke(*words, **mirror_maker().surroundings)
    assert outcome.exit_code == 6
    gates = ("worker_versions", "connectors_healthy")
    assert all(f"--accept-gate {gate}" in outcome.stderr for gate in gates), outcome.stderr
    assert "you set b.exactly.once.source.support=preparing" in outcome.stdout
    assert "by file and membership; nothing without REST proves the mode" in outcome.stderr
    accepted = [word for gate in gates for word in ("--accept-gate", gate)]
    assert invoke(*words, *accepted, **mirror_maker().surroundings).exit_code == 0


@pytest.mark.parametrize(
    ("converter", "expected"),
    [
        ("io.confluent.connect.avro.AvroConverter", [("connectors", "retriable_dropped", "warning")]),
        ("org.apache.kafka.connect.json.JsonConverter", []),
    ],
)
def test_a_known_bug_is_said_of_the_connectors_that_it_can_strike(
    invoke: Invoke, converter: str, expected: list[tuple[str, str, str]]
) -> None:
    """KAFKA-18073 was information about every group of workers before 4.0, whatever they run, and no connector's."""
    config = {"key.converter": converter, "value.converter": converter}
    there = cluster(configs={"orders": config})
    there.connect.version = "3.9.2"
    assert [row for row in found(invoke, there, 0) if row not in HEALTHY] == expected
