"""What keeps a source connector from being exactly-once: each finding with its code, its weight and its evidence."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.records import TopicDescription
from eosctl.group.modes import NOT_ENABLED_TEXT
from eosctl.group.observation.rules import BROKER_SETTINGS, OTHER_GROUPS, OwnCluster, QuietTask, WorkerFile
from eosctl.observation.connectors.commit_age import commit_age
from eosctl.observation.connectors.exactly_once import collisions, leader_collisions, task_audit
from eosctl.observation.connectors.rules import (
    RULES,
    Rule,
    boundary,
    broker_maximum,
    connector_findings,
    fencing_pace,
    group_findings,
    interval,
    offsets_topic,
    own_topic,
    properties,
    support,
    worker_properties,
)
from tests.group.observations import CURE, ENABLED, SOURCE, good, source
from tests.observation.rule_cases import (
    AGES_THAT_PROVE_NOTHING,
    MIRRORED,
    OWN_TOPIC,
    REFUSED,
    TIMEOUT,
    UNDECLARED,
    UNKNOWN,
    configured,
    file,
    found,
    required,
)

QUIET = {"quiet": {"g-c-0": QuietTask(8 * 60_000, since_start=False)}}
TASK_0 = {"tasks": [0]}
IN_WORKERS = {name.replace("override.", ""): value for name, value in CURE.items()}


@pytest.mark.parametrize(
    ("rule", "changes", "code", "severity", "certain", "evidence"),
    [
        (support, {"connectors": source(support_errors=None)}, "support_unknown", "warning", False, {}),
        (support, {"connectors": source(support_errors=(UNDECLARED,))}, "support_undeclared", "warning", True, {}),
        (support, {"connectors": source(support_errors=(REFUSED,))}, "not_supported", "warning", True, {}),
        (support, required(UNDECLARED), "support_undeclared", "error", True, {}),
        (support, required(REFUSED), "not_supported", "error", True, {}),
        (support, required(MIRRORED), "not_supported", "error", True, {}),
        (
            boundary,
            {"connectors": source(boundary_errors=("no",), config={"transaction.boundary": "connector"})},
            "boundary_refused",
            "error",
            True,
            {"transaction.boundary": "connector"},
        ),
        (
            interval,
            configured(**{"transaction.boundary": "Interval", "transaction.boundary.interval.ms": "70000"}),
            "interval_exceeds_timeout",
            "error",
            True,
            {"transaction_timeout_ms": 60_000, "interval_ms": 70_000},
        ),
        (
            broker_maximum,
            {"max_transaction_timeout_ms": None, **configured(**{TIMEOUT: "7"})},
            "broker_maximum_unknown",
            "warning",
            False,
            {"transaction_timeout_ms": 7},
        ),
        (
            broker_maximum,
            {"max_transaction_timeout_ms": 59_999},
            "timeout_above_broker",
            "error",
            True,
            {"transaction_timeout_ms": 60_000, "transaction.max.timeout.ms": 59_999},
        ),
        (fencing_pace, {"crowding": None}, "fencing_pace_unknown", "warning", False, {}),
        (
            fencing_pace,
            {"crowding": {"c": 12}},
            "fencing_slow",
            "warning",
            True,
            {"ids_per_coordinator": 12, "pause_ms": 1000, "round_s": 12.0},
        ),
        (
            fencing_pace,
            {"crowding": {"c": 91}},
            "fencing_impossible",
            "error",
            True,
            {"ids_per_coordinator": 91, "pause_ms": 1000, "round_s": 91.0},
        ),
        (
            fencing_pace,
            {"crowding": {"c": 401}, "files": (file(**{"admin.retry.backoff.max.ms": "123"}),)},
            "fencing_slow",
            "warning",
            True,
            {"ids_per_coordinator": 401, "pause_ms": 123, "round_s": 49.3},
        ),
        (collisions, {"rival_groups": None}, "id_collision_unknown", "warning", False, {}),
        (collisions, {"group_id": None}, "id_collision_unknown", "warning", False, {}),
        (
            collisions,
            {"group_id": "g-x", "rival_groups": {"g": (("x-c", 0),)}},
            "id_collision",
            "error",
            True,
            {"transactional_id": "g-x-c-0"},
        ),
        (
            collisions,
            {"group_id": "g-x", "rival_groups": {"g": None}},
            "id_collision_possible",
            "warning",
            False,
            {"transactional_id": "g-x-c-0"},
        ),
        (
            offsets_topic,
            {"topics": None, **configured(**OWN_TOPIC)},
            "offsets_topic_unknown",
            "warning",
            False,
            {},
        ),
        (own_topic, configured(topic="offsets"), "writes_own_offsets", "error", True, {"topic": "offsets"}),
        (own_topic, configured(topic="mine", **OWN_TOPIC), "writes_own_offsets", "error", True, {"topic": "mine"}),
        (
            own_topic,
            {"connectors": source(redefines_offsets_topic=True, config=OWN_TOPIC)},
            "offsets_topic_redefined",
            "warning",
            True,
            {"topic": "mine"},
        ),
        (properties, configured(**{"exactly.once.enabled": "x"}), "idle_property", "error", True,
         {"property": "exactly.once.enabled"}),
        (task_audit, {"unknown_ids": None, "workers": ENABLED}, "task_audit_unknown", "warning", False, TASK_0),
        (task_audit, {"group_id": None, "workers": ENABLED}, "task_audit_unknown", "warning", False, TASK_0),
        (
            task_audit,
            {**UNKNOWN, "workers": ENABLED, "connectors": source(workers={"task 0": "w0:8083"})},
            "task_not_exactly_once",
            "error",
            True,
            {"transactional_id": "g-c-0", "state": "RUNNING", "worker": "w0:8083"},
        ),
        *(
            (
                task_audit,
                {**UNKNOWN, "workers": ENABLED, **age},
                "task_audit_unknown",
                "warning",
                False,
                TASK_0,
            )
            for age in AGES_THAT_PROVE_NOTHING
        ),
        (
            task_audit,
            UNKNOWN,
            "task_not_exactly_once",
            "info",
            True,
            {"transactional_id": "g-c-0", "state": "RUNNING", "worker": None},
        ),
        (
            task_audit,
            {**UNKNOWN, **configured(**{"exactly.once.support": "Required"})},
            "task_not_exactly_once",
            "error",
            True,
            {"transactional_id": "g-c-0", "state": "RUNNING", "worker": None},
        ),
        (
            task_audit,
            {**UNKNOWN, **configured(**{"exactly.once.support": "requested"})},
            "task_not_exactly_once",
            "info",
            True,
            {"transactional_id": "g-c-0", "state": "RUNNING", "worker": None},
        ),
    ],
)  # fmt: skip
def test_a_finding(
    rule: Rule, changes: dict[str, Any], code: str, severity: str, certain: bool, evidence: dict[str, object]
) -> None:
    [finding] = found(rule, replace(good(), **changes))
    subject = {"task_not_exactly_once": "c/0", "offsets_topic_unknown": "mine"}.get(code, "c")
    assert (finding.code, finding.severity, finding.subject, finding.certain) == (code, severity, subject, certain)
    assert finding.evidence == evidence
    assert finding.message
    assert finding.fix


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        *((rule, {"workers": ENABLED}) for rule in RULES),
        (support, {"connectors": source(support_errors=(f"This worker {NOT_ENABLED_TEXT}",))}),
        (interval, configured(**{"transaction.boundary.interval.ms": "70000"})),
        (broker_maximum, {"max_transaction_timeout_ms": None, **configured(**{CLUSTER_PROPERTY: "elsewhere:9092"})}),
        (broker_maximum, {"max_transaction_timeout_ms": 1, "unknown_ids": frozenset({"g-c-0"}),
                          "own_clusters": {"c": OwnCluster("elsewhere:9092", max_timeout_ms=60_000)}}),
        (broker_maximum, {"max_transaction_timeout_ms": 1, "own_clusters": {"c": OwnCluster("elsewhere:9092")}}),
        (fencing_pace, {"crowding": {}, "files": (file(**{"admin.retry.backoff.max.ms": "10000"}),)}),
        (fencing_pace, {"crowding": {"c": 91}, "files": (file(**IN_WORKERS),)}),
        (fencing_pace, {"crowding": {"c": 91}, "files": (file(**{"admin.retry.backoff.ms": "0"}),)}),
        (offsets_topic, {"topics": None}),
        (offsets_topic, {"topics": None, **configured(**{"offsets.storage.topic": "offsets"})}),
        (offsets_topic, {"topics": None, **configured(**OWN_TOPIC, **{CLUSTER_PROPERTY: "elsewhere:9092"})}),
        (own_topic, configured(topic="offsets", **OWN_TOPIC)),
        (own_topic, {"connectors": source(redefines_offsets_topic=True)}),
        (task_audit, {**UNKNOWN, "workers": ENABLED, "connectors": source(states={"task 0": "FAILED"})}),
        (commit_age, {**QUIET, "connectors": source(states={"task 0": "FAILED"})}),
        (commit_age, {"quiet": {"g-c-0": QuietTask(299_999, since_start=False)}}),
        (commit_age, {**QUIET, **configured(**{"transaction.boundary.interval.ms": "300000"})}),
        (task_audit, {"workers": ENABLED, "unknown_ids": frozenset({"g-c-1", "h-c-0"})}),
    ],
)  # fmt: skip
def test_no_finding(rule: Rule, changes: dict[str, Any]) -> None:
    assert found(rule, replace(good(), **changes)) == []


def test_an_offsets_topic_of_its_own_is_looked_at() -> None:
    seen = replace(good(), **configured(**OWN_TOPIC))
    assert [(each.code, each.subject) for each in found(offsets_topic, seen)] == [("topic_missing", "mine")]
    there = TopicDescription("mine", "id", 25, 1, {"cleanup.policy": "compact"})
    seen = replace(seen, topics={"mine": there})
    assert [(each.code, each.subject) for each in found(offsets_topic, seen)] == [("single_replica", "mine")]


NO_CREATION = {"internal.topics.automatic.creation.enable": "false"}


@pytest.mark.parametrize(
    ("version", "properties", "creates", "severity"),
    [
        ("4.4.0", [NO_CREATION], False, "error"),
        ("4.4.0", [{"internal.topics.automatic.creation.enable": " False"}], False, "error"),
        ("4.4.0", [{}, NO_CREATION], False, "error"),
        ("4.4.0", [{"internal.topics.automatic.creation.enable": "true"}], True, "warning"),
        ("4.4.0", [{}], True, "warning"),
        ("4.4.0", [{"internal.topics.automatic.creation.enable": "${env:CREATES}"}], None, "warning"),
        ("4.4.0", [], None, "warning"),
        (None, [], None, "warning"),
        ("4.3.1", [], True, "warning"),
        ("4.3.1", [NO_CREATION], True, "warning"),
    ],
)
def test_a_topic_that_no_task_may_create_is_not_waited_for(
    version: str | None, properties: list[dict[str, str]], creates: bool | None, severity: str
) -> None:
    """A task of Kafka 4.4 whose workers may not create topics fails; it was said to create it when it starts."""
    seen = replace(good(), files=tuple(file(**each) for each in properties), **configured(**OWN_TOPIC))
    seen = replace(seen, workers=tuple(replace(each, version=version) for each in seen.workers))
    [finding] = found(offsets_topic, seen)
    assert (finding.evidence["is_created_by_tasks"], finding.severity) == (creates, severity)
    assert ("kafka-topics.sh" in finding.fix) is not (creates is True)


@pytest.mark.parametrize(
    ("rule", "what", "changes"),
    [
        (broker_maximum, "broker settings", {"max_transaction_timeout_ms": None}),
        (fencing_pace, "coordinators", {"crowding": None}),
        (collisions, "other groups", {"rival_groups": None}),
        (offsets_topic, "topics", {"topics": None, **configured(**OWN_TOPIC)}),
        (task_audit, "transactions", {"unknown_ids": None}),
    ],
)
def test_a_finding_says_why_something_could_not_be_looked_at(rule: Rule, what: str, changes: dict[str, Any]) -> None:
    [finding] = found(rule, replace(good(), workers=ENABLED, **changes).without([what], "nobody may look"))
    assert finding.message.endswith(": nobody may look")


@pytest.mark.parametrize(
    ("group_id", "rivals", "subject", "words"),
    [
        ("connect-cluster", {"c-0": ()}, "c", "the leader of group c-0: the two fence each other"),
        ("g-x", {"g": (("x-c", 0),)}, "c", "of group g: unless that is a sink, the two fence each other"),
        ("g-x", {"g": None}, "c", "of group g: whether that runs is not known now; if so, the two fence each other"),
        ("x-0", {"connect": (("cluster-x", 0),)}, "leader", "unless that is a sink, the two fence each other"),
    ],
)
def test_who_else_has_an_id_is_said_as_far_as_it_is_known(
    group_id: str, rivals: dict[str, Any], subject: str, words: str
) -> None:
    """A leader was called a sink, perhaps."""
    seen = replace(good(), group_id=group_id, rival_groups=rivals)
    [finding] = [*found(collisions, seen), *leader_collisions(seen)]
    assert finding.subject == subject
    assert finding.message.endswith(words)


@pytest.mark.parametrize(
    ("rule", "what", "changes", "code"),
    [
        (collisions, OTHER_GROUPS, {}, "id_collision_unknown"),
        (broker_maximum, BROKER_SETTINGS, {"max_transaction_timeout_ms": None}, "broker_maximum_unknown"),
        (broker_maximum, BROKER_SETTINGS, {"max_transaction_timeout_ms": None, **configured(**{TIMEOUT: "900000"})},
         "broker_maximum_unknown"),
    ],
)  # fmt: skip
def test_what_one_may_not_see_is_told_once_for_all_connectors(
    rule: Rule, what: str, changes: dict[str, Any], code: str
) -> None:
    [finding] = found(rule, replace(good(), **changes).without([what], "no right", forbidden=True))
    assert (finding.code, finding.severity, finding.subject, finding.certain) == (code, "info", "connectors", False)


POLICY_OF_WORKERS = file(**{"connector.client.config.override.policy": "None"})


@pytest.mark.parametrize(
    ("files", "timeout", "pace"),
    [
        ((), "Lower producer.override.transaction.timeout.ms, or", "in its config"),
        (
            (POLICY_OF_WORKERS,),
            "Lower producer.transaction.timeout.ms in the workers' files (",
            "in the workers' files,",
        ),
    ],
)
def test_a_remedy_is_where_the_workers_policy_lets_it_be(
    files: tuple[WorkerFile, ...], timeout: str, pace: str
) -> None:
    seen = replace(good(), files=files, max_transaction_timeout_ms=1, crowding={"c": 91})
    assert found(broker_maximum, seen)[0].fix.startswith(timeout)
    assert pace in found(fencing_pace, seen)[0].message


def test_a_command_for_an_offsets_topic_has_the_clients_settings() -> None:
    mine = TopicDescription("mine", "id", 25, 3, {"cleanup.policy": "delete"})
    client = ClientSettings(("far:9092",))
    seen = replace(good(), **configured(**OWN_TOPIC), topics={"mine": mine}, client=client)
    [finding] = found(offsets_topic, seen)
    assert "far:9092" in finding.fix


def test_sinks_are_passed_over_and_sources_asked_everything() -> None:
    everything = replace(good(), workers=ENABLED, unknown_ids=None, crowding=None)
    sink = replace(SOURCE, name="s", type="sink")
    said = [(each.code, each.subject) for each in connector_findings(everything, [sink, SOURCE])]
    assert said == [("task_audit_unknown", "c"), ("fencing_pace_unknown", "c")]


def test_what_concerns_the_whole_group() -> None:
    seen = replace(
        good(),
        group_id="x-0",
        rival_groups={"connect": (("cluster-x", 0),)},
        files=(file(**{"exactly.once.source.enabled": "true"}),),
    )
    assert [(each.code, each.severity, each.subject, each.evidence) for each in group_findings(seen)] == [
        ("id_collision", "error", "leader", {"transactional_id": "connect-cluster-x-0"}),
        ("idle_property", "error", "w.properties", {"property": "exactly.once.source.enabled"}),
    ]
    assert list(worker_properties(good())) == list(leader_collisions(replace(seen, group_id=None))) == []


def test_an_offsets_topic_that_only_a_worker_can_resolve_is_unknown() -> None:
    [finding] = found(offsets_topic, replace(good(), **configured(**{"offsets.storage.topic": "${env:T}"})))
    assert (finding.code, finding.severity, finding.subject, finding.certain) == (
        "offsets_topic_unknown", "warning", "c", False
    )  # fmt: skip


@pytest.mark.parametrize(("rule", "code"), [(task_audit, "task_audit_unknown"), (fencing_pace, "fencing_pace_unknown")])
def test_ids_on_brokers_that_can_not_be_looked_at_are_unknown(rule: Rule, code: str) -> None:
    """Those of another connector's brokers don't matter."""
    there = {"c": OwnCluster("own:9092", ids_unseen="the login there is not known")}
    seen = replace(good(), workers=ENABLED)
    [finding] = found(rule, replace(seen, own_clusters=there))
    assert (finding.code, finding.certain) == (code, False)
    assert "the login there is not known" in finding.message
    assert found(rule, replace(seen, own_clusters={"d": there["c"]})) == []
    assert found(rule, replace(seen, own_clusters={"c": OwnCluster("own:9092")})) == []


@pytest.mark.parametrize(
    ("there", "code"),
    [
        (OwnCluster("own:9092", max_timeout_ms=59_999), "timeout_above_broker"),
        (OwnCluster("own:9092", max_timeout_unseen="it may not be read"), "broker_maximum_unknown"),
        (OwnCluster("own:9092", ids_unseen="the login there is not known"), "broker_maximum_unknown"),
    ],
)
def test_brokers_of_its_own_decide_on_a_connector_s_timeout(there: OwnCluster, code: str) -> None:
    """Nothing was said of them, and a gate that judged the brokers of this cluster passed."""
    seen = replace(good(), own_clusters={"c": there}, unknown_ids=frozenset({TransactionalId("g-c-0")}))
    [finding] = found(broker_maximum, seen)
    assert (finding.code, finding.certain) == (code, code == "timeout_above_broker")
    assert "own:9092" in finding.message or finding.certain
