"""What a trace means: Kafka's own texts, as real workers printed them."""

from __future__ import annotations

import re

import pytest

from eosctl.connectors.look import failed_in_fencing, failure_findings
from eosctl.core.ids import WorkerId
from eosctl.core.workers.connector_entry import TaskStatus
from eosctl.failures.rules import FAILURES
from eosctl.group.observation.rules import ObservedConnector

ZOMBIE = "org.apache.kafka.connect.errors.ConnectException: Failed to perform zombie fencing\n"
FORWARD = (
    "org.apache.kafka.connect.runtime.rest.errors.ConnectRestException: IO Error trying to forward REST request: it "
    "failed\n\tat org.apache.kafka.connect.runtime.rest.RestClient.httpRequest(RestClient.java:117)\nCaused by: "
)
FLUSH = (
    "org.apache.kafka.connect.errors.ConnectException: Failed to flush offsets and/or records for task c-0\n"
    "\tat org.apache.kafka.connect.runtime.X.run(X.java:1)\nCaused by: org.apache.kafka.common.errors."
)


def dead(trace: str, part: str = "task 0") -> ObservedConnector:
    return ObservedConnector("c", "source", {}, {"connector": "RUNNING", part: "FAILED"}, traces={part: trace})


@pytest.mark.parametrize(
    ("trace", "code", "words"),
    [
        (
            ZOMBIE + "Caused by: java.util.concurrent.CompletionException: org.apache.kafka.common.errors."
            "TimeoutException: Timed out waiting for a node assignment. Call: fenceProducer(api=INIT_PRODUCER_ID)",
            "fencing_timed_out",
            "eosctl rescue --connector c",
        ),
        (
            ZOMBIE + "Caused by: org.apache.kafka.common.errors.TransactionalIdAuthorizationException: denied",
            "fencing_not_authorized",
            "eosctl acls apply --connector c",
        ),
        (
            ZOMBIE + "Caused by: org.apache.kafka.connect.runtime.rest.errors.ConnectRestException: Failed to complete "
            "zombie fencing because a new set of task configs was generated",
            "fencing_superseded",
            "`eosctl connectors restart --failed c`",
        ),
        (
            "ConnectRestException: IO Error trying to forward REST request: Idle timeout expired: 30000/30000 ms",
            "fencing_forward_timeout",
            "eosctl rescue",
        ),
        ("Fencing failed because new task configurations were generated for the connector", "fencing_superseded", ""),
        (ZOMBIE, "fencing_failed", "`eosctl connectors restart --failed c`"),
        ("This worker … 'dedicated.mode.enable.internal.rest' property.", "internal_rest_off", "every MirrorMaker"),
        (
            "InvalidTxnTimeoutException: The transaction timeout is larger than the maximum value allowed by",
            "timeout_refused",
            "transaction.max.timeout.ms",
        ),
        (
            "ConnectException: The task fa-0 was unable to finish writing records to Kafka before its producer "
            "transaction expired.\nCaused by: InvalidProducerEpochException: Producer attempted to produce with an old",
            "task_fenced_or_expired",
            "transaction.boundary=poll",
        ),
        ("ProducerFencedException: There is a newer producer", "task_fenced", "`eosctl connectors restart --failed c`"),
        ("Source tasks may not produce to their own offsets topics when", "own_offsets_topic", "another"),
        ("Failed to flush offsets and/or records for task n2-0", "offsets_not_written", "See the cause"),
        (
            FLUSH.partition("Caused by")[0]
            + "Caused by: org.apache.kafka.connect.errors.ConnectException: OffsetStorageWriter is already flushing",
            "offsets_not_written",
            "eosctl offsets switch",
        ),
        (FLUSH + "InvalidTimestampException: out of range", "invalid_timestamp", "Compare the clocks"),
        (FLUSH + "SaslAuthenticationException: invalid credentials", "login_failed", "sasl.jaas.config"),
        (
            "ConnectRestException: Internal request contained invalid signature.",
            "signature_refused",
            "restart --failed c",
        ),
        ("ConfigException: Could not read properties from file /run/x", "config_file_missing", "restart --failed c"),
        ("ConnectException: Failed to find any class that implements Connector", "plugin_missing", "plugin.path"),
        ("Failed to start task c-0 since it is not a recognizable type", "connector_type_unknown", "connector-plugins"),
        ("TopicAuthorizationException: Not authorized to access topics", "task_not_authorized", "eosctl acls apply"),
        (
            FORWARD + "java.util.concurrent.ExecutionException: java.net.UnknownHostException: worker-2",
            "leader_not_reached",
            "resolve",
        ),
        (FORWARD + "java.net.ConnectException: Connection refused", "leader_not_reached", "eosctl workers list"),
        (FORWARD + "javax.net.ssl.SSLHandshakeException: PKIX path building failed", "leader_not_reached", "https.ssl"),
        (
            FORWARD + "java.io.EOFException: the peer hung up",
            "fencing_failed",
            "`eosctl connectors restart --failed c`",
        ),
        (
            "org.apache.kafka.common.config.ConfigException: Must set acks to all in order to use the idempotent "
            "producer. Otherwise we cannot guarantee idempotence.",
            "producer_refuses",
            "eosctl connectors check --connector c",
        ),
        (
            "org.apache.kafka.common.KafkaException: Failed to construct kafka producer\nCaused by: org.apache.kafka."
            "common.config.ConfigException: No resolvable bootstrap urls given in bootstrap.servers",
            "brokers_not_resolved",
            "bootstrap.servers",
        ),
        (FLUSH + "RecordTooLargeException: The message is 1048676 bytes", "record_too_large", "max.request.size"),
        (
            FLUSH + "TopicAuthorizationException: Not authorized to access topics: [o 1, p]",
            "task_not_authorized",
            "eosctl acls apply --connector c --output-topic 'o 1' --output-topic p",
        ),
        (FLUSH + "NullPointerException", "offsets_not_written", "See the cause"),
        ("java.lang.RuntimeException: it broke\n\tat X", "task_failed", "`eosctl connectors trace -o json c`"),
        ("", "task_failed", "`eosctl connectors trace -o json c`"),
    ],
)
def test_a_trace_tells_what_happened(trace: str, code: str, words: str) -> None:
    [finding] = failure_findings([dead(trace)])
    assert (finding.code, finding.severity, finding.subject) == (code, "error", "c/0")
    assert words in finding.fix
    assert finding.evidence["trace"] == (trace.splitlines()[0] if trace else "no trace")


def test_a_failed_connector_and_a_task_without_a_worker() -> None:
    waiting = ObservedConnector("w", "sink", {}, {"connector": "RUNNING", "task 3": "UNASSIGNED"})
    found = failure_findings([dead("boom", "connector"), waiting])
    assert [(each.code, each.severity, each.subject) for each in found] == [
        ("task_failed", "error", "c"),
        ("unassigned", "warning", "w/3"),
    ]


def test_whatever_runs_or_rests_is_no_failure() -> None:
    states = {"connector": "PAUSED", "task 0": "RUNNING", "task 1": "STOPPED", "task 2": "RESTARTING"}
    assert failure_findings([ObservedConnector("c", "source", {}, states)]) == []


def test_what_mends_it_can_be_pasted_whatever_the_name() -> None:
    """`my connector` used to be two words to a shell, and no URL."""
    states = {"connector": "RUNNING", "task 0": "FAILED"}
    [finding] = failure_findings([ObservedConnector("my 1", "source", {}, states, traces={"task 0": ZOMBIE})])
    [refused] = failure_findings(
        [
            ObservedConnector(
                "my 1", "source", {}, states, traces={"task 0": "TopicAuthorizationException: Not authorized"}
            )
        ]
    )
    assert "eosctl connectors restart --failed 'my 1'" in finding.fix
    assert "eosctl acls apply --connector 'my 1'" in refused.fix


def test_the_names_of_methods_are_no_cause() -> None:
    """A frame of Jetty's IdleTimeout made a timeout of every failure to forward."""
    trace = f"{FORWARD}java.io.EOFException: gone\n\tat org.eclipse.jetty.io.IdleTimeout.check(IdleTimeout.java:1)"
    [finding] = failure_findings([dead(trace)])
    assert finding.code == "fencing_failed"


def test_the_whole_chain_is_told() -> None:
    """The first line alone said that offsets were not written, and never why."""
    trace = (
        FLUSH + "NetworkException: gone\nfor good\n\tat a.B.c(D.java:1)\n\t... 7 more\n\tSuppressed: x.Y: z\n"
        "Caused by: java.lang.RuntimeException: the end\n\tat a.B.c(D.java:2)"
    )
    [finding] = failure_findings([dead(trace)])
    assert finding.evidence["causes"] == [
        "org.apache.kafka.connect.errors.ConnectException: Failed to flush offsets and/or records for task c-0",
        "org.apache.kafka.common.errors.NetworkException: gone for good",
        "java.lang.RuntimeException: the end",
    ]
    [unknown] = failure_findings([dead("a.b.Odd: x\n\tat a.B.c(D.java:1)\nCaused by: a.b.C$Odder: y")])
    assert unknown.message == "c/0 is FAILED: a.b.Odd: x; caused by C$Odder: y"


def test_a_denied_topic_is_named() -> None:
    [finding] = failure_findings(
        [dead(FLUSH + "TopicAuthorizationException: Not authorized to access topics: [orders]")]
    )
    assert finding.message == "c/0 is FAILED: the connector's principal lacks a right: topic orders"


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        (FORWARD + "java.util.concurrent.TimeoutException: Idle timeout expired", True),
        (FORWARD + "java.net.UnknownHostException: worker-2", False),
        (ZOMBIE, True),
        (ZOMBIE + "Caused by: org.apache.kafka.common.errors.TransactionalIdAuthorizationException: denied", False),
        ("it broke", False),
    ],
)
def test_rescue_heals_what_fencing_heals(trace: str, expected: bool) -> None:
    """A leader whose name nobody resolves was taken for one that fences slowly."""
    assert failed_in_fencing(TaskStatus(0, "FAILED", WorkerId("w:1"), trace)) is expected
    assert not failed_in_fencing(TaskStatus(0, "RUNNING", WorkerId("w:1"), trace))


def test_no_remedy_of_a_trace_alone_deletes_or_moves_anything() -> None:
    """A plugin that one worker lacks was a ghost, to be deleted; a wrong clock moved the offsets."""
    for failure in FAILURES:
        for text in (failure.fix, *(sign.fix for sign in failure.signs), *failure.commands, str(failure.code.next)):
            moves = "offsets switch" in text and not text.startswith("See whether")
            assert not moves, (failure.code, text)
            assert not re.search(r"\b(?:and|then) (?:DELETE|delete)\b|kafka-topics.sh --delete", text), failure.code


@pytest.mark.parametrize(
    ("states", "workers", "told"),
    [
        (("FAILED", "RUNNING"), ("w:1", "w:2"), True),
        (("FAILED", "RUNNING"), ("w:1", "w:1"), False),
        (("FAILED", "FAILED"), ("w:1", "w:2"), False),
    ],
)
def test_a_worker_where_alone_it_fails_is_named(states: tuple[str, str], workers: tuple[str, str], told: bool) -> None:
    """A secret that one worker lacked was a failure of the connector, and the worker stood in the trace only."""
    parts = ("task 0", "task 1")
    sick = ObservedConnector(
        "c", "source", {}, dict(zip(parts, states, strict=True)), workers=dict(zip(parts, workers, strict=True)),
        traces=dict.fromkeys(parts, "ConfigException: Could not read properties from file /run/x"),
    )  # fmt: skip
    first = failure_findings([sick])[0]
    assert (first.subject, first.evidence["worker"]) == ("c/0", "w:1")
    assert ("w:1" in first.message) is told
