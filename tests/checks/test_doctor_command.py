"""`eosctl doctor` as a person runs it: what each check finds, the order, what could not be checked, the exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.records import Record
from eosctl.errors import EosctlError, UnauthorizedError, UnreachableError
from eosctl.foreign import Lines
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.acls import FakeAclStore
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.connectors import FILE_SOURCE
from tests.fakes.doctor_scene import HEALTHY, OFFSETS, W1, W2, WHERE, cluster, doctor, found, write_worker_file
from tests.fakes.faults import EVERY, Call

DOORS = ("describe_group", "describe", "open", "list_transactions", "topic_partitions")


def rebalancing() -> ConfigWorld:
    there = cluster()
    there.connect.rebalance(lasts_s=10**6)
    return there


def failed(**changes: Any) -> ConfigWorld:
    there = cluster(**changes)
    there.connect.connectors["orders"].fail()
    return there


def one_behind() -> ConfigWorld:
    """A worker whose reader failed at a record that is compacted away by now."""
    there = cluster(modes={W1: "enabled", W2: "enabled"})
    there.connect.reads_up_to[W2] = there.connect.config_offset - 1
    return there


def test_a_healthy_group_has_only_the_pointer_to_the_rights(invoke: Invoke) -> None:
    assert found(invoke, cluster(), 0) == HEALTHY
    assert doctor(invoke, cluster(), "--strict").exit_code == 0


PREPARING = {W1: "enabled", W2: "preparing"}


def ghost() -> Record:
    return Record(CONFIG_TOPIC, 0, 9, -1, b"connector-ghost", b'{"properties":{}}')


def offset(at: int, value: bytes) -> Record:
    return Record(OFFSETS, 0, at, 0, b'["orders",{"f":1}]', value)


def foreign(at: int) -> Record:
    return Record(OFFSETS, 0, at, 0, b"junk", b"{}")


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        (lambda: cluster(modes={W1: "enabled", W2: "disabled"}), ("gates", "no_mixed_modes", "warning")),
        (rebalancing, ("gates", "group_stable", "error")),
        (lambda: cluster(open_from=1), ("gates", "no_open_transactions", "error")),
        (lambda: cluster(aborted=[ghost()], modes=PREPARING), ("gates", "no_aborted_records", "error")),
        (
            lambda: cluster(aborted_offsets=[offset(2, b'{"n":2}')], modes=PREPARING),
            ("gates", "no_aborted_offsets", "error"),
        ),
        (one_behind, ("workers", "worker_behind", "error")),
        (failed, ("failures", "task_failed", "error")),
        (lambda: cluster(known_ids=()), ("connectors", "task_not_exactly_once", "error")),
        (lambda: cluster(records=config_records(*created("orders", 2, record=1))), ("task_counts", "too_low", "error")),
        (
            lambda: cluster(
                records=config_records(
                    *created("orders", 1, record=1),
                    ("tasks-fencing-orders", {"tasks": 1}),
                    *created("orders", 1, record=1),
                )
            ),
            ("task_counts", "kip_text_field", "error"),
        ),
        (lambda: cluster(offsets=[Record(OFFSETS, 0, 1, 0, b"junk", b"{}")]), ("offsets", "key_not_json", "error")),
        (
            lambda: cluster(described=[compacted(CONFIG_TOPIC, 1, replication_factor=1), compacted(OFFSETS, 25)]),
            ("topics", "few_replicas", "warning"),
        ),
    ],
)
def test_each_check_has_a_say(invoke: Invoke, world: Callable[[], ConfigWorld], expected: tuple[str, str, str]) -> None:
    there = world()
    rows = found(invoke, there, doctor(invoke, there).exit_code)
    assert expected in rows
    assert doctor(invoke, there).exit_code == (3 if any(row[2] == "error" for row in rows) else 0)
    assert doctor(invoke, there, "--strict").exit_code == 3


def test_aborted_records_that_no_worker_reads_are_no_error_before_the_way_down(invoke: Invoke) -> None:
    """They were errors in a group that is enabled, whose workers read committed records only."""
    there = cluster(aborted=[ghost()], aborted_offsets=[offset(2, b'{"n":2}'), foreign(3)])
    rows = envelope_of(doctor(invoke, there, "-o", "json", "--strict"), "doctor")["data"]["rows"]
    told = {row["code"]: row for row in rows if row["check"] == "gates"}
    assert {code: row["severity"] for code, row in told.items()} == {
        "aborted_configs_unread": "info", "aborted_offsets_unread": "info",
    }  # fmt: skip
    assert told["aborted_configs_unread"]["evidence"] == {"connectors": ["ghost"]}
    assert told["aborted_offsets_unread"]["evidence"] == {"connectors": ["orders"], "keys": 1}, "nobody reads junk"
    assert "`eosctl upgrade plan --to disabled --hard`" in told["aborted_offsets_unread"]["fix"]
    down = invoke("upgrade", "plan", "--to", "disabled", *WHERE, "-o", "json", **there.surroundings)
    gates = {gate["id"]: gate["status"] for gate in down.json()["data"]["gates"]}
    assert (gates["no_aborted_records"], gates["no_aborted_offsets"]) == ("fail", "fail")


def test_keys_that_are_no_offset_are_no_connectors_aborted_offsets(invoke: Invoke) -> None:
    """They were named `?`, and an error: no task asks for them."""
    rows = found(invoke, cluster(aborted_offsets=[foreign(1)], modes={W1: "preparing"}), 3)
    assert [code for check, code, _severity in rows if check == "gates"] == ["enabled_before"]


def test_what_an_observer_may_not_see_by_its_rights_fails_no_check(invoke: Invoke) -> None:
    """Two warnings per connector, and exit code 3 with --strict: no role that only reads has these rights."""
    names = ("orders", "items")
    there = cluster(
        group_id="a-b", connectors=dict.fromkeys(names, "source"),
        records=config_records(*(each for name in names for each in created(name, 1, record=1))),
        faults={"broker_settings": UnauthorizedError("not allowed")},
    )  # fmt: skip
    a = there.other_group("a", "http://a:8083")
    a.add("b-orders", {"connector.class": FILE_SOURCE})
    flags = ("-b", "localhost:1", "-g", "a-b", "-o", "json", "--strict")

    def told() -> list[tuple[str, str, str]]:
        rows = invoke("doctor", *flags, **there.surroundings).json()["data"]["rows"]
        return [(row["code"], row["severity"], row["subject"]) for row in rows if row["check"] == "connectors"]

    assert told() == [("id_collision", "error", "orders"), ("broker_maximum_unknown", "info", "connectors")]
    hide_group(there, "a")
    assert told() == [
        ("broker_maximum_unknown", "info", "connectors"), ("id_collision_unknown", "info", "connectors"),
    ]  # fmt: skip
    assert invoke("doctor", *flags, **there.surroundings).exit_code == 0
    verify = invoke("upgrade", "verify", "--to", "enabled", *flags[:-1], **there.surroundings)
    assert verify.exit_code == 0
    assert {"broker_transaction_timeout", "id_collisions"} <= {each["code"] for each in verify.json()["errors"]}


def hide_group(there: ConfigWorld, name: str) -> None:
    there.brokers.deny_groups.add(name)


def test_a_timeout_above_the_brokers_default_stays_a_doubt(invoke: Invoke) -> None:
    configs = {"orders": {"producer.override.transaction.timeout.ms": "900001"}}
    there = cluster(configs=configs, faults={"broker_settings": UnauthorizedError("not allowed")})
    assert ("connectors", "broker_maximum_unknown", "warning") in found(invoke, there, 7)


def test_the_worst_comes_first_and_what_stops_the_group_before_what_stops_a_task(invoke: Invoke) -> None:
    there = failed(aborted=[ghost()], max_timeout_ms=1000, modes=PREPARING)
    rows = found(invoke, there, 3)
    assert [row[2] for row in rows] == sorted((row[2] for row in rows), key=["error", "warning", "info"].index)
    assert [row[0] for row in rows if row[2] == "error"] == ["gates", "failures", "connectors"]


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("topic_partitions", "transactions"),
        ("list_transactions", "task_counts"),
        ("describe_group", "workers"),
        ("describe", "topics"),
    ],
)
def test_what_can_not_be_checked_is_a_row_with_the_reason(invoke: Invoke, fault: str, check: str) -> None:
    there = cluster(faults={fault: UnauthorizedError("not allowed", hint="grant it")})
    document = envelope_of(doctor(invoke, there, "-o", "json"), "doctor", doctor(invoke, there).exit_code)
    rows = [row for row in document["data"]["rows"] if row["check"] == check]
    assert [row for row in rows if "not allowed" in row["message"] and row["severity"] == "warning"]
    assert "not allowed" in " ".join(each["why"] for each in document["data"]["unseen"])
    assert doctor(invoke, there).exit_code == doctor(invoke, there, "--strict").exit_code == 7
    assert {each["check"] for each in document["data"]["checks"]} == {
        *("kafka", "unfinished", "workers", "gates", "transactions", "failures", "task_counts"),
        *("connectors", "offsets", "topics", "acls"),
    }


def test_rights_are_checked_where_the_worker_file_names_the_principals(invoke: Invoke, tmp_path: Path) -> None:
    worker_file = write_worker_file(tmp_path / "worker.properties")
    outcome = invoke("doctor", "-w", str(worker_file), "-o", "json", **cluster(acls=FakeAclStore()).surroundings)
    rows = [row for row in outcome.json()["data"]["rows"] if row["check"] == "acls"]
    missing = [row for row in rows if row["code"] == "acl_missing"]
    assert missing
    assert {row["fix"].partition(" grants it")[0] for row in missing} == {"`eosctl acls apply --all`"}
    assert outcome.exit_code == 3


def test_many_partitions_that_may_not_be_looked_at_are_counted_not_listed(invoke: Invoke) -> None:
    """A cluster has thousands of partitions; a missing right is one thing to mend."""
    there = cluster()
    there.brokers.deny_read.update({CONFIG_TOPIC, OFFSETS})
    document = doctor(invoke, there, "-o", "json").json()
    rows = [row for row in document["data"]["rows"] if row["check"] == "transactions"]
    assert [row["severity"] for row in rows] == ["warning"]
    assert rows[0]["message"].endswith(f"{OFFSETS}-8 and 16 more partitions: TOPIC_AUTHORIZATION_FAILED")
    assert f"READ on topic {CONFIG_TOPIC}" in rows[0]["fix"] or f"--topic {CONFIG_TOPIC}" in rows[0]["fix"]


def test_a_check_that_can_not_run_is_no_success(invoke: Invoke) -> None:
    """A principal that may see next to nothing got exit code 0."""
    there = cluster(
        faults={"topic_partitions": UnauthorizedError("not allowed", hint=Lines.of("grant it", "like this"))}
    )
    outcome = doctor(invoke, there)
    assert outcome.exit_code == 7
    assert outcome.stderr.splitlines()[0] == "warning: 1 check of 11 could not run: transactions"
    assert "         fix: grant it\n              like this\n" in outcome.stdout


def test_topics_that_are_hidden_are_not_taken_for_topics_that_are_well(invoke: Invoke) -> None:
    """Brokers leave out what one may not DESCRIBE: no partition was asked, and none was hanging."""
    rows = doctor(invoke, cluster(described=[]), "-o", "json").json()["data"]["rows"]
    assert ("transactions", "not_checked") in {(row["check"], row["code"]) for row in rows}


@pytest.mark.parametrize(("error", "exit_code"), [(UnreachableError("away"), 4), (UnauthorizedError("denied"), 5)])
def test_a_kafka_that_can_not_be_reached_is_one_row(invoke: Invoke, error: EosctlError, exit_code: int) -> None:
    """It was nine equal rows, and each check waited anew."""
    there = cluster()
    opened: list[Call] = []

    def refuse(call: Call) -> None:
        opened.append(call)
        raise error

    for faults in (there.brokers.calls, there.topics):
        faults.before(EVERY, refuse)
    outcome = doctor(invoke, there)
    assert outcome.exit_code == exit_code
    assert outcome.stdout.startswith(
        f"error  kafka/kafka_unreachable  localhost:1: nothing could be checked without Kafka: {error.message}\n"
    )
    assert "checks: 11, not checked: 11, findings: 1" in outcome.stdout
    assert outcome.stderr.startswith(f"error: {error.message}")
    assert [call.method for call in opened] == ["open"], "nobody asks again"


@pytest.mark.parametrize(("error", "exit_code"), [(UnreachableError("away"), 4), (UnauthorizedError("denied"), 5)])
def test_where_nothing_can_be_checked_the_reason_is_the_exit_code(
    invoke: Invoke, error: EosctlError, exit_code: int
) -> None:
    there = cluster(faults={**dict.fromkeys(set(DOORS) - {"open"}, error), W1: error})
    outcome = doctor(invoke, there)
    assert outcome.exit_code == exit_code
    assert outcome.stdout.count("not_checked") >= 8
    assert outcome.stderr.startswith(f"error: {error.message}")


def test_a_broker_that_does_not_answer_is_the_cause_of_what_can_not_be_known(invoke: Invoke) -> None:
    """It was twenty rows of which none named the broker, and a minute."""
    there = cluster()
    there.topics.fail_always("describe", UnreachableError("no answer from the brokers"))
    gone = there.brokers.state.nodes[-1]
    there.brokers.stop_broker(gone, noticed=False)
    document = envelope_of(doctor(invoke, there, "-o", "json"), "doctor", 3)
    rows = document["data"]["rows"]
    assert [(row["check"], row["code"], row["severity"]) for row in rows] == [("kafka", "broker_unreachable", "error")]
    assert rows[0]["subject"] == f"broker {gone}"
    assert "connection refused" in rows[0]["message"]
    assert {"config_topic", "offset_topic", "not_checked"} <= {each["code"] for each in rows[0]["evidence"]["follows"]}


@pytest.mark.parametrize("frozen", [W1, W2])
def test_a_worker_that_hangs_costs_one_wait(invoke: Invoke, frozen: str) -> None:
    """Each check that asks workers in turn waited for it anew: 35 s."""
    there = cluster(modes={W1: "enabled", W2: "enabled"})
    asked: list[Call] = []
    there.connect.before(EVERY, lambda call: asked.append(call))
    there.connect.frozen.add(frozen)
    urls = ("-u", frozen, "-u", W2 if frozen == W1 else W1)
    codes = {row["code"] for row in doctor(invoke, there, *urls, "-o", "json").json()["data"]["rows"]}
    assert "worker_unreachable" in codes
    assert [call.method for call in asked if call.what[0] == frozen] == ["root"]


def test_without_a_cluster_it_says_what_is_missing(invoke: Invoke) -> None:
    """The first command of somebody who has read no page was twenty lines of checks that could not run."""
    outcome = invoke("doctor")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    for name in ("doctor", "workers list"):
        message, hint = invoke(*name.split()).stderr.splitlines()
        assert message.startswith("error: ")
        assert {"-b", "-g", "-p"} <= set(hint.split()), f"{name} needs both"
    outcome = invoke("doctor", "-g", "g")
    assert (outcome.exit_code, outcome.stdout, len(outcome.stderr.splitlines())) == (2, "", 2)


def test_text(invoke: Invoke, golden: Callable[[str, str], None]) -> None:
    outcome = doctor(invoke, failed(configs={"orders": {"offsets.topic": "mine"}}))
    assert (outcome.exit_code, outcome.stderr) == (3, "")
    golden("doctor.txt", outcome.stdout)


def test_a_partition_without_a_leader_is_no_hanging_transaction(invoke: Invoke) -> None:
    """It is a row of `txn hanging` that was not checked."""
    there = cluster()
    there.brokers.state.leaderless.add((OFFSETS, 3))
    document = doctor(invoke, there, "-o", "json").json()
    told = {row["code"]: row["message"] for row in document["data"]["rows"] if row["check"] == "transactions"}
    assert "hanging_transaction" not in told
    assert told["not_checked"] == (
        f"could not ask for the producers of {OFFSETS}-3: LEADER_NOT_AVAILABLE: {OFFSETS}-3 has no leader"
    )


FENCED = "org.apache.kafka.common.errors.ProducerFencedException: There is a newer producer with the same id"


def failure(invoke: Invoke, there: ConfigWorld) -> dict[str, Any]:
    """What doctor finds of the FAILED task."""
    rows = envelope_of(doctor(invoke, there, "-o", "json"), "doctor", 3)["data"]["rows"]
    [row] = [row for row in rows if row["check"] == "failures"]
    return dict(row)


def test_a_task_that_eosctl_fenced_is_told_as_such(invoke: Invoke) -> None:
    """It read as "another producer took its id", and nobody remembered the command of an hour ago."""
    there = cluster()
    fence = ("fence", "g-orders-0", "--live", "--yes", *WHERE)
    assert invoke(*fence, **there.surroundings).exit_code == 0
    there.connect.connectors["orders"].fail(trace=FENCED)
    row = failure(invoke, there)
    assert (row["code"], row["subject"]) == ("task_fenced", "orders/0")
    assert row["message"].startswith("orders/0 is FAILED: fenced by `eosctl fence --live` at 2023-11-14T22:13:")
    assert row["evidence"]["fenced_by"]["transactional_id"] == "g-orders-0"
    assert row["fix"] == "`eosctl connectors restart --failed orders`", "nothing else is wrong"
    there.connect.connectors["orders"].fail(trace="java.io.IOException: disk")
    assert "eosctl" not in failure(invoke, there)["message"]


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": "refused"},
        {"overrides": {}},
        {"touched": {"transactional_ids": ["g-orders-1"]}},
        {"target": {"kafka_cluster_id": "another"}},
    ],
)
def test_other_writes_explain_no_fenced_task(invoke: Invoke, tmp_path: Path, changes: dict[str, Any]) -> None:
    """One that was refused, one that no running task was hit by, of another task, on another cluster."""
    there = cluster()
    there.connect.connectors["orders"].fail(trace=FENCED)
    entry = {
        "id": "1", "command": "fence", "outcome": "ok", "time": "T", "overrides": {"live": True},
        "touched": {"transactional_ids": ["g-orders-0"]}, "target": {"kafka_cluster_id": "cluster-1"},
    }  # fmt: skip
    log = tmp_path / "state" / "eosctl" / "audit.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text(json.dumps(entry) + "\n")
    assert "fenced by `eosctl fence --live` at T" in failure(invoke, there)["message"]
    log.write_text(json.dumps(entry | changes) + "\n")
    assert "another producer took its transactional id" in failure(invoke, there)["message"]


def test_a_log_that_can_not_be_read_leaves_the_finding(invoke: Invoke, tmp_path: Path) -> None:
    there = cluster()
    there.connect.connectors["orders"].fail(trace=FENCED)
    (tmp_path / "state" / "eosctl" / "audit.jsonl").mkdir(parents=True)
    assert "another producer took its transactional id" in failure(invoke, there)["message"]
