"""`eosctl connectors check` as a person runs it: a table of what can be wrong, and each exit code."""

from __future__ import annotations

from typing import Any

import pytest

from eosctl.errors import ConnectError, EosctlError, UnauthorizedError, UnreachableError
from tests.conftest import Invoke, Outcome
from tests.envelope import envelope_of
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.faults import Call

WHERE = ("-b", "localhost:1", "-g", "g")
W1 = "http://w1:8083"
COMPACT = {"cleanup.policy": "compact"}


def cluster(**changes: Any) -> ConfigWorld:
    """An enabled worker with a source connector, orders, whose ids have one coordinator, and a sink, files."""
    values: dict[str, Any] = {
        "records": config_records(*created("orders", 1, record=1)),
        "described": [
            compacted(CONFIG_TOPIC, 1),
            compacted("connect-offsets", 25),
            compacted("own", 25),
            compacted("bad", 25, policy="delete"),
        ],
        "connectors": {"orders": "source", "files": "sink"},
        "modes": {W1: "enabled"},
    }
    there = ConfigWorld(**{**values, **changes})
    there.brokers.state.moved = {f"g-orders-{task}": 1 for task in range(100)}
    return there


def check(invoke: Invoke, there: ConfigWorld, *more: str) -> Outcome:
    return invoke("connectors", "check", *more, *WHERE, **there.surroundings)


def with_config(**config: str) -> dict[str, Any]:
    return {"configs": {"orders": {name.replace("__", "."): value for name, value in config.items()}}}


CONFIG_UNREAD = "config_topic_unread"
TIMEOUT = "producer__override__transaction__timeout__ms"


@pytest.mark.parametrize(
    ("changes", "code", "severity"),
    [
        ({"known_ids": ()}, "task_not_exactly_once", "error"),
        ({"known_ids": (), "modes": {W1: "disabled"}}, "task_not_exactly_once", "info"),
        (
            {"known_ids": (), "modes": {W1: "disabled"}, **with_config(exactly__once__support="required")},
            "task_not_exactly_once",
            "error",
        ),
        (with_config(transaction__boundary="interval"), "interval_exceeds_timeout", "error"),
        (with_config(**{TIMEOUT: "900001"}), "timeout_above_broker", "error"),
        ({"max_timeout_ms": 59_999}, "timeout_above_broker", "error"),
        ({"faults": {"broker_settings": UnauthorizedError("no")}}, "broker_maximum_unknown", "info"),
        (with_config(offsets__storage__topic="absent"), "topic_missing", "warning"),
        (with_config(offsets__storage__topic="bad"), "not_compacted", "error"),
        (with_config(offsets__topic="own"), "idle_property", "error"),
        (with_config(errors__tolerance="all"), "records_dropped", "warning"),
        ({"records": config_records(*created("orders", 1, record=91))}, "fencing_impossible", "error"),
        ({"records": config_records(*created("orders", 1, record=12))}, "fencing_slow", "warning"),
        (
            {
                "records": config_records(*created("orders", 1, record=31)),
                "modes": {W1: "enabled", "http://w2:8083": "enabled"},
            },
            "fencing_lossy",
            "error",
        ),
    ],
)  # fmt: skip
def test_what_is_found(invoke: Invoke, changes: dict[str, Any], code: str, severity: str) -> None:
    outcome = check(invoke, cluster(**changes), "-o", "json")
    document = envelope_of(outcome, "connectors-check", 3 if severity == "error" else 0)
    [row] = document["data"]["rows"]
    assert (row["code"], row["severity"]) == (code, severity)
    assert row["message"]
    assert row["fix"]
    assert document["data"]["summary"]["counts"][severity] == 1
    assert document["data"]["unseen"] == []
    strict = check(invoke, cluster(**changes), "--strict").exit_code
    assert strict == (0 if severity == "info" else 3)


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"faults": {"validate": ConnectError("no")}}, ["task_audit_unknown", "support_unknown"]),
        ({"faults": {"describe_transactions": UnauthorizedError("no")}}, ["task_audit_unknown"]),
        ({"faults": {"find_coordinators": UnauthorizedError("no")}}, ["fencing_pace_unknown"]),
        ({"faults": {"describe": UnauthorizedError("no")}, **with_config(offsets__storage__topic="own")},
         ["offsets_topic_unknown", "config_topic_unread"]),
        ({"faults": {"broker_settings": UnauthorizedError("no")}, **with_config(**{TIMEOUT: "900001"})},
         ["broker_maximum_unknown"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("strict", [(), ("--strict",)])
def test_what_could_not_be_seen_is_neither_a_yes_nor_a_no(
    invoke: Invoke, changes: dict[str, Any], codes: list[str], strict: tuple[str, ...]
) -> None:
    outcome = check(invoke, cluster(**changes), "-o", "json", *strict)
    document = envelope_of(outcome, "connectors-check", 7)
    assert [row["code"] for row in document["data"]["rows"]] == [code for code in codes if code != CONFIG_UNREAD]
    assert [each["code"] for each in document["errors"]] == [code for code in codes if code == CONFIG_UNREAD]
    assert [each["what"] for each in document["data"]["unseen"]] == codes
    assert all(each["why"] and each["would_show"] for each in document["data"]["unseen"])


def test_two_coordinators_share_the_round(invoke: Invoke) -> None:
    there = cluster(records=config_records(*created("orders", 1, record=92)))
    there.brokers.state.moved = {f"g-orders-{task}": 1 + task % 2 for task in range(92)}
    row = envelope_of(check(invoke, there, "-o", "json"), "connectors-check")
    assert [found["evidence"]["ids_per_coordinator"] for found in row["data"]["rows"]] == [46]


def test_the_worker_that_runs_a_task_without_transactions_is_named(invoke: Invoke) -> None:
    [row] = check(invoke, cluster(known_ids=()), "-o", "json").json()["data"]["rows"]
    assert row["message"].startswith("orders/0 is RUNNING on w1:8083, and is not exactly-once: ")
    assert row["evidence"] == {"transactional_id": "g-orders-0", "state": "RUNNING", "worker": "w1:8083"}


def test_an_id_is_described_once_unless_nobody_knows_it_yet(invoke: Invoke) -> None:
    """Whether it is known and what it does were two questions about the same ids."""
    asked = list[Call]()
    there = cluster()
    there.brokers.calls.before("describe_transactions", asked.append)
    assert check(invoke, there).exit_code == 0
    assert [each.what for each in asked] == [(["g-orders-0"],)]


def test_an_id_that_was_not_described_is_asked_for_again(invoke: Invoke) -> None:
    """Else a task whose id nobody has described looks like one that has no transaction."""
    asked = list[Call]()
    there = cluster()
    there.brokers.calls.fail_next("describe_transactions", UnreachableError("no"))
    there.brokers.calls.before("describe_transactions", asked.append)
    assert check(invoke, there).exit_code == 7
    assert [each.what for each in asked] == [(["g-orders-0"],)] * 2


def test_the_cure_of_slow_fencing_is_named_with_the_connector(invoke: Invoke) -> None:
    outcome = check(invoke, cluster(records=config_records(*created("orders", 1, record=91))))
    assert outcome.exit_code == 3
    cure = "admin.override.retry.backoff.ms=10 and admin.override.retry.backoff.max.ms=10 in the config of orders"
    assert cure in outcome.stdout


def test_a_connector_that_means_something_else_by_its_offsets_topic(invoke: Invoke) -> None:
    """Connect reads the property whoever defined it."""
    config = {"offsets.storage.topic": "own"}
    there = cluster(configs={"orders": config})
    there.connect.definitions["offsets.storage.topic"] = {
        "documentation": "Where the license server keeps its offsets."
    }
    rows = envelope_of(check(invoke, there, "--connector", "orders", "-o", "json"), "connectors-check")["data"]["rows"]
    assert [(row["code"], row["subject"]) for row in rows] == [("offsets_topic_redefined", "orders")]
    there.connect.definitions["offsets.storage.topic"] = {
        "documentation": "The name of a separate offsets topic to use"
    }
    assert check(invoke, there, "--connector", "orders").stdout.startswith("No finding")


def test_without_validation_no_support_is_known_and_that_is_said_once(invoke: Invoke) -> None:
    there = cluster(connectors={"orders": "source", "more": "source"})
    rows = envelope_of(check(invoke, there, "--no-validate", "--strict", "-o", "json"), "connectors-check")["data"][
        "rows"
    ]
    assert [(row["code"], row["severity"], row["subject"]) for row in rows] == [
        ("support_unknown", "info", "connectors")
    ]


def test_one_cause_in_many_connectors_is_one_finding_in_text(invoke: Invoke) -> None:
    """A group of 500 had 500 equal findings, and the one that differed among them. JSON has each."""
    names = [f"orders-{number}" for number in range(20)]
    there = cluster(
        records=config_records(*(record for name in names for record in created(name, 1, record=1))),
        connectors=dict.fromkeys(names, "source"),
        configs={name: {"offsets.topic": "own"} for name in names},
    )
    there.brokers.state.moved = {f"g-{name}-0": 1 for name in names}
    rows = envelope_of(check(invoke, there, "-o", "json"), "connectors-check", 3)["data"]["rows"]
    assert sorted(row["subject"] for row in rows if row["code"] == "idle_property") == sorted(names)
    text = check(invoke, there).stdout
    assert text.count("idle_property") == 1
    assert names[-1] not in text
    assert "-o json" in text, "which has the names that are left out"
    assert f"findings: {len(rows)}" in text


def test_nothing_wrong(invoke: Invoke) -> None:
    outcome = check(invoke, cluster(configs={"orders": {"offsets.storage.topic": "own"}}))
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    # it was "Nothing is wrong.", also of a connector whose tasks were FAILED for other reasons
    assert outcome.stdout.splitlines()[0] == "No finding is against exactly-once."
    assert "connectors: 1, tasks: 1" in outcome.stdout


def test_a_sink_that_was_named_is_not_passed_over(invoke: Invoke) -> None:
    document = envelope_of(check(invoke, cluster(), "--connector", "files", "-o", "json"), "connectors-check")
    assert [row["code"] for row in document["data"]["rows"]] == ["not_a_source"]
    assert document["data"]["connectors"] == []


@pytest.mark.parametrize(
    ("changes", "more", "exit_code", "words"),
    [
        (
            {},
            ("--connector", "nobody"),
            1,
            "there is no connector nobody\n  Names are case-sensitive. Connectors of the group: ",
        ),
        ({}, ("--connectors", "orders"), 2, "No such option"),
        (
            {"faults": {W1: UnreachableError("no answer")}},
            (),
            4,
            "no worker reports the connectors: no answer",
        ),
        ({"faults": {W1: UnauthorizedError("401")}}, (), 5, "no worker reports the connectors: 401"),
        ({"faults": {"describe_group": UnauthorizedError("not allowed")}}, (), 5, "not allowed"),
    ],
)
def test_what_keeps_it_from_checking(
    invoke: Invoke, changes: dict[str, EosctlError], more: tuple[str, ...], exit_code: int, words: str
) -> None:
    outcome = check(invoke, cluster(**changes), *more)
    assert outcome.exit_code == exit_code
    assert words in outcome.stderr


@pytest.mark.parametrize(
    ("state", "committed_ago_s", "quiet_ms", "since_start"),
    [
        ("CompleteCommit", 480, 480_000, False),
        ("CompleteCommit", 200, None, False),
        ("Ongoing", 480, 480_000, False),
        ("CompleteAbort", 200, 600_000, True),
        ("Empty", None, 600_000, True),
    ],
)
def test_a_running_task_that_commits_nothing_is_information(
    invoke: Invoke, state: str, committed_ago_s: int | None, quiet_ms: int | None, since_start: bool
) -> None:
    """With the source held by somebody else it was RUNNING, and nothing was found; its task set is ten minutes old."""
    there = cluster()
    records = there.topics.read(CONFIG_TOPIC).records
    there.time.now_s = max(record.timestamp_ms for record in records) / 1000 + 600
    now_ms = there.clock().now_ms()
    began_ms = -1 if committed_ago_s is None else now_ms - committed_ago_s * 1000
    known = there.brokers.state.transactions["g-orders-0"]
    known.state, known.started_ms = state, began_ms
    outcome = check(invoke, there, "-o", "json", "--strict")
    found = [row for row in outcome.json()["data"]["rows"] if row["code"] == "nothing_committed"]
    unseen = [each["what"] for each in outcome.json()["data"]["unseen"]]
    assert unseen == (["aborted_at_timeout"] if state == "CompleteAbort" else []), "nothing is known of its end here"
    assert outcome.exit_code == (7 if unseen else 0)
    assert [row["severity"] for row in found] == ([] if quiet_ms is None else ["info"])
    for row in found:
        assert abs(row["evidence"]["quiet_ms"] - quiet_ms) <= 3000, "records are a second apart"
        assert ("since it was started" in row["message"]) == since_start


AVRO = {"value__converter": "io.confluent.connect.avro.AvroConverter"}
POSTGRES = {"connector__class": "io.debezium.connector.postgresql.PostgresConnector"}
FILTER = {"transforms": "f", "transforms__f__type": "org.apache.kafka.connect.transforms.Filter"}
STRINGS = {"key__converter": "StringConverter", "value__converter": "StringConverter"}


@pytest.mark.parametrize(
    ("config", "version", "expected"),
    [
        ({"errors__tolerance": "all"}, "4.3.1", ("records_dropped", "warning")),
        (AVRO, "3.9.2", ("retriable_dropped", "warning")),
        ({}, "3.9.2", ("retriable_dropped", "info")),  # the workers' converters are not known
        (FILTER, "4.3.1", ("records_filtered", "info")),
        (POSTGRES, "4.3.1", ("snapshot_repeats", "info")),
        (AVRO, "4.3.1", None),
        (STRINGS, "3.9.2", None),
    ],
)
def test_nothing_stands_against_it_is_not_said_where_records_may_be_lost(
    invoke: Invoke, config: dict[str, str], version: str, expected: tuple[str, str] | None
) -> None:
    """It was all that was said, with exit code 0, of connectors that lose records in committed transactions."""
    there = cluster(**with_config(**config))
    there.connect.version = version
    key, value = b'["orders",{"server":"s"}]', b'{"snapshot":"INITIAL","lsn":1}'
    there.topics.put("connect-offsets", key, value)
    rows = envelope_of(check(invoke, there, "-o", "json"), "connectors-check")["data"]["rows"]
    assert [(row["code"], row["severity"]) for row in rows] == ([] if expected is None else [expected])
    assert check(invoke, there).stdout.startswith("No finding") is (expected is None)
    is_warned = expected is not None and expected[1] == "warning"
    assert check(invoke, there, "--strict").exit_code == (3 if is_warned else 0)
