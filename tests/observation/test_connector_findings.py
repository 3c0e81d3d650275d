"""What keeps a source connector from being exactly-once: each finding with its code, its weight and its evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY
from eosctl.core.findings import Finding
from eosctl.core.ids import TransactionalId
from eosctl.core.records import TopicDescription
from eosctl.group.modes import NOT_ENABLED_TEXT
from eosctl.group.observation.rules import VALIDATION, Observation, OwnCluster, Quiet, WorkerFile
from eosctl.observation.connectors.collisions import collisions, leader_collisions
from eosctl.observation.connectors.commit_age import commit_age
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
    task_audit,
    timeout_ms,
    worker_properties,
)
from tests.group.observations import CURE, ENABLED, FLUSHED, SOURCE, good, source

TIMEOUT = "producer.override.transaction.timeout.ms"
OWN_TOPIC = {"offsets.storage.topic": "mine"}
QUIET = {"quiet": {"g-c-0": Quiet(8 * 60_000, since_start=False)}}
DAY_MS = 24 * 3_600_000
AGES_THAT_PROVE_NOTHING: list[dict[str, Any]] = [
    {"looked_ms": 7 * DAY_MS},
    {"looked_ms": None},
    {"task_sets_ms": {}},
    {"task_sets_ms": {"c": -1}},
]
UNKNOWN = {"unknown_ids": frozenset({"g-c-0"}), "task_sets_ms": {"c": 0}, "looked_ms": 6 * DAY_MS}
IN_WORKERS = {name.replace("override.", ""): value for name, value in CURE.items()}
REFUSED = "The connector does not support exactly-once"
MIRRORED = (
    "MirrorSourceConnector can only provide exactly-once guarantees when its source consumer is configured with "
    "isolation.level set to 'read_committed'; otherwise, records from aborted and uncommitted transactions will be "
    "replicated from the source cluster to the target cluster."
)
UNDECLARED = "The connector does not implement the API required for preflight validation of exactly-once"


def found(rule: Rule, seen: Observation) -> list[Finding]:
    return [finding for connector in seen.connectors or () for finding in rule(connector, seen)]


def configured(**config: str) -> dict[str, Any]:
    return {"connectors": source(config=config)}


def required(text: str) -> dict[str, Any]:
    return {"connectors": source(support_errors=(text,), config={"exactly.once.support": "Required"})}


def file(**properties: str) -> WorkerFile:
    return WorkerFile("w.properties", properties)


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
        (task_audit, {"unknown_ids": None}, "task_audit_unknown", "warning", False, {}),
        (task_audit, {"group_id": None}, "task_audit_unknown", "warning", False, {}),
        (
            task_audit,
            {**UNKNOWN, "workers": ENABLED, "connectors": source(workers={"task 0": "w1:8083"})},
            "task_not_exactly_once",
            "error",
            True,
            {"transactional_id": "g-c-0", "state": "RUNNING", "worker": "w1:8083"},
        ),
        *(
            (
                task_audit,
                {**UNKNOWN, "workers": ENABLED, **age},
                "task_not_exactly_once",
                "warning",
                False,
                {"transactional_id": "g-c-0", "state": "RUNNING", "worker": None},
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
        *((rule, {}) for rule in RULES),
        (support, {"connectors": source(support_errors=(f"This worker {NOT_ENABLED_TEXT}",))}),
        (interval, configured(**{"transaction.boundary.interval.ms": "70000"})),
        (broker_maximum, {"max_transaction_timeout_ms": None, **configured(**{CLUSTER_PROPERTY: "elsewhere:9092"})}),
        (broker_maximum, {"max_transaction_timeout_ms": 1, **configured(**{CLUSTER_PROPERTY: "elsewhere:9092"})}),
        (fencing_pace, {"crowding": {}, "files": (file(**{"admin.retry.backoff.max.ms": "10000"}),)}),
        (fencing_pace, {"crowding": {"c": 91}, "files": (file(**IN_WORKERS),)}),
        (fencing_pace, {"crowding": {"c": 91}, "files": (file(**{"admin.retry.backoff.ms": "0"}),)}),
        (offsets_topic, {"topics": None}),
        (offsets_topic, {"topics": None, **configured(**{"offsets.storage.topic": "offsets"})}),
        (offsets_topic, {"topics": None, **configured(**OWN_TOPIC, **{CLUSTER_PROPERTY: "elsewhere:9092"})}),
        (own_topic, configured(topic="offsets", **OWN_TOPIC)),
        (own_topic, {"connectors": source(redefines_offsets_topic=True)}),
        (task_audit, {**UNKNOWN, "connectors": source(states={"task 0": "FAILED"})}),
        (commit_age, {**QUIET, "connectors": source(states={"task 0": "FAILED"})}),
        (commit_age, {"quiet": {"g-c-0": Quiet(299_999, since_start=False)}}),
        (commit_age, {**QUIET, **configured(**{"transaction.boundary.interval.ms": "300000"})}),
        (task_audit, {"unknown_ids": frozenset({"g-c-1", "h-c-0"})}),
    ],
)  # fmt: skip
def test_no_finding(rule: Rule, changes: dict[str, Any]) -> None:
    assert found(rule, replace(good(), **changes)) == []


@pytest.mark.parametrize(
    ("config", "files", "expected"),
    [
        ({}, (), 60_000),
        ({}, (file(**{"producer.transaction.timeout.ms": "5"}),), 5),
        ({TIMEOUT: "7"}, (file(**{"producer.transaction.timeout.ms": "5"}),), 7),
        ({TIMEOUT: "soon"}, (), 60_000),
    ],
)
def test_the_transaction_timeout_of_a_connector(
    config: dict[str, str], files: tuple[WorkerFile, ...], expected: int
) -> None:
    assert timeout_ms(replace(SOURCE, config=config), replace(good(), files=files)) == expected


@pytest.mark.parametrize(
    ("worker_ms", "own_ms", "limit_ms", "late"),
    [
        (None, None, "60001", False),
        (None, None, "60000", True),
        ("10000", None, "10001", False),
        ("10000", None, "10000", True),
        ("10000", "20000", "20000", True),
        ("20000", "10000", "20000", False),
    ],
)
def test_a_transaction_that_the_clock_ends_must_end_before_it_times_out(
    worker_ms: str | None, own_ms: str | None, limit_ms: str, late: bool
) -> None:
    own = {} if own_ms is None else {"transaction.boundary.interval.ms": own_ms}
    config = {"transaction.boundary": "interval", TIMEOUT: limit_ms, **own}
    files = () if worker_ms is None else (replace(FLUSHED, properties={"offset.flush.interval.ms": worker_ms}),)
    seen = replace(good(), files=files, **configured(**config))
    assert bool(found(interval, seen)) is late


def test_an_offsets_topic_of_its_own_is_looked_at() -> None:
    seen = replace(good(), **configured(**OWN_TOPIC))
    assert [(each.code, each.subject) for each in found(offsets_topic, seen)] == [("topic_missing", "mine")]
    there = TopicDescription("mine", "id", 25, 1, {"cleanup.policy": "compact"})
    seen = replace(seen, topics={"mine": there})
    assert [(each.code, each.subject) for each in found(offsets_topic, seen)] == [("single_replica", "mine")]


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
    [finding] = found(rule, replace(good(), **changes).without([what], "nobody may look"))
    assert finding.message.endswith(": nobody may look")


@pytest.mark.parametrize(
    ("since_start", "said"),
    [
        (False, "c/0 is RUNNING, and nothing was committed for 8 m"),
        (True, "c/0 is RUNNING, and has committed nothing since it was started (its connector's task set is 8 m old)"),
    ],
)
def test_a_task_that_runs_and_commits_nothing_is_a_warning(since_start: bool, said: str) -> None:
    """With its replication slot held by somebody else it was RUNNING, and every check was content."""
    quiet = {TransactionalId("g-c-0"): Quiet(8 * 60_000, since_start=since_start)}
    [finding] = found(commit_age, replace(good(), quiet=quiet))
    assert (finding.code, finding.severity, finding.certain) == ("nothing_committed", "warning", False)
    assert (finding.message, finding.evidence) == (
        said,
        {"transactional_id": "g-c-0", "quiet_ms": 8 * 60_000, "worker": None},
    )


@pytest.mark.parametrize(("workers", "where"), [({"task 0": "w1:8083"}, "on w1:8083,"), ({}, "on a worker,")])
def test_a_task_that_writes_without_transactions_is_said_with_its_worker(workers: dict[str, str], where: str) -> None:
    seen = replace(good(), unknown_ids=frozenset({TransactionalId("g-c-0")}), connectors=source(workers=workers))
    [finding] = found(task_audit, seen)
    assert f"c/0 is RUNNING {where} and no coordinator knows g-c-0" in finding.message


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


def test_sinks_are_passed_over_and_sources_asked_everything() -> None:
    everything = replace(good(), unknown_ids=None, crowding=None)
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


def test_what_mirror_maker_lacks_is_the_remedy() -> None:
    """It was told to ask the documentation, though its own message names the property."""
    fixes = {text: found(support, replace(good(), **required(text)))[0].fix for text in (MIRRORED, REFUSED)}
    assert fixes[MIRRORED].startswith("Set consumer.isolation.level=read_committed in the connector's config")
    assert "documentation" in fixes[REFUSED]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            required(UNDECLARED),
            "c does not declare whether it supports exactly-once: it requires it, and Connect refuses",
        ),
        ({"connectors": source(support_errors=(UNDECLARED,))}, "supports exactly-once: it is taken on trust"),
        (required(REFUSED), f"c: {REFUSED}: it requires it, and would not start"),
        ({"connectors": source(support_errors=(REFUSED,))}, f"c: {REFUSED}: it stays at-least-once"),
    ],
)
def test_what_a_lacking_support_means_for_the_connector(changes: dict[str, Any], said: str) -> None:
    [finding] = found(support, replace(good(), **changes))
    assert said in finding.message


@pytest.mark.parametrize("rule", [support, boundary])
def test_what_was_not_validated_is_of_all_connectors(rule: Rule) -> None:
    [finding] = found(rule, good().without([VALIDATION], "it was not asked for"))
    assert (finding.code, finding.severity, finding.subject, finding.certain) == (
        "support_unknown", "info", "connectors", False
    )  # fmt: skip
    assert finding.message.endswith(": it was not asked for")


def test_an_offsets_topic_that_only_a_worker_can_resolve_is_unknown() -> None:
    [finding] = found(offsets_topic, replace(good(), **configured(**{"offsets.storage.topic": "${env:T}"})))
    assert (finding.code, finding.severity, finding.subject, finding.certain) == (
        "offsets_topic_unknown", "warning", "c", False
    )  # fmt: skip


@pytest.mark.parametrize(
    ("quiet_ms", "interval_ms", "said"),
    [(299_999, "1000", False), (300_000, "1000", True), (399_999, "200000", False), (400_000, "200000", True)],
)
def test_how_long_a_task_may_commit_nothing(quiet_ms: int, interval_ms: str, *, said: bool) -> None:
    """Five minutes, or twice the interval of one that commits by the clock."""
    seen = replace(
        good(),
        quiet={TransactionalId("g-c-0"): Quiet(quiet_ms, since_start=False)},
        **configured(**{"transaction.boundary.interval.ms": interval_ms}),
    )
    assert bool(found(commit_age, seen)) == said


def test_a_task_that_commits_does_not_hide_the_next_one_that_does_not() -> None:
    two = source(states={"connector": "RUNNING", "task 0": "RUNNING", "task 1": "RUNNING"})
    quiet = {TransactionalId("g-c-1"): Quiet(8 * 60_000, since_start=False)}
    assert [each.subject for each in found(commit_age, replace(good(), connectors=two, quiet=quiet))] == ["c/1"]


@pytest.mark.parametrize(("rule", "code"), [(task_audit, "task_audit_unknown"), (fencing_pace, "fencing_pace_unknown")])
def test_ids_on_brokers_that_can_not_be_looked_at_are_unknown(rule: Rule, code: str) -> None:
    """Those of another connector's brokers don't matter."""
    there = {"c": OwnCluster("own:9092", ids_unseen="the login there is not known")}
    [finding] = found(rule, replace(good(), own_clusters=there))
    assert (finding.code, finding.certain) == (code, False)
    assert "the login there is not known" in finding.message
    assert found(rule, replace(good(), own_clusters={"d": there["c"]})) == []
    assert found(rule, replace(good(), own_clusters={"c": OwnCluster("own:9092")})) == []


def test_a_task_that_was_idle_for_long_is_restarted_by_its_own_request() -> None:
    changes: dict[str, Any] = {**UNKNOWN, **AGES_THAT_PROVE_NOTHING[0]}
    [finding] = found(task_audit, replace(good(), workers=ENABLED, **changes))
    assert finding.fix.startswith("`eosctl connectors restart c`: ")


MIRROR = "org.apache.kafka.connect.mirror."


@pytest.mark.parametrize(
    ("connector_class", "codes"),
    [
        (f"{MIRROR}MirrorHeartbeatConnector", ["not_supported"]),
        (f"{MIRROR}MirrorCheckpointConnector", ["not_supported"]),
        ("MirrorCheckpoint", ["not_supported"]),
        (f"{MIRROR}MirrorSourceConnector", ["support_undeclared", "not_supported"]),
        ("ConnectorMirrorCheckpoint", ["support_undeclared", "not_supported"]),
        ("", ["support_undeclared", "not_supported"]),
    ],
)
def test_who_copies_nothing_need_not_declare_it_but_where_it_is_required(
    connector_class: str, codes: list[str]
) -> None:
    def said(**config: str) -> list[str]:
        known = source(support_errors=(UNDECLARED, REFUSED), config={"connector.class": connector_class, **config})
        return [finding.code for finding in found(support, replace(good(), connectors=known))]

    assert said() == codes
    assert said(**{"exactly.once.support": "required"}) == ["support_undeclared", "not_supported"]
