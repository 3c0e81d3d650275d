"""What a trace means: Kafka's own texts, as real workers printed them."""

from __future__ import annotations

import pytest

from eosctl.core.failure_scenarios import failure_findings
from eosctl.core.upgrade_observation import ObservedConnector

ZOMBIE = "org.apache.kafka.connect.errors.ConnectException: Failed to perform zombie fencing\n"


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
            "eosctl acls check --connector c",
        ),
        (
            ZOMBIE + "Caused by: org.apache.kafka.connect.runtime.rest.errors.ConnectRestException: Failed to complete "
            "zombie fencing because a new set of task configs was generated",
            "fencing_superseded",
            "POST /connectors/c/restart",
        ),
        (
            "ConnectRestException: IO Error trying to forward REST request: Idle timeout expired: 30000/30000 ms",
            "fencing_forward_timeout",
            "eosctl rescue",
        ),
        ("Fencing failed because new task configurations were generated for the connector", "fencing_superseded", ""),
        (ZOMBIE, "fencing_failed", "POST /connectors/c/restart"),
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
        ("ProducerFencedException: There is a newer producer", "task_fenced", "POST /connectors/c/restart"),
        ("Source tasks may not produce to their own offsets topics when", "own_offsets_topic", "another"),
        ("Failed to flush offsets and/or records for task n2-0", "offsets_not_written", "eosctl offsets switch"),
        ("Failed to start task ghost0-0 since it is not a recognizable type", "connector_is_a_ghost", "DELETE"),
        ("TopicAuthorizationException: Not authorized to access topics", "task_not_authorized", "eosctl acls check"),
        ("java.lang.RuntimeException: it broke\n\tat X", "task_failed", "GET /connectors/c/status"),
        ("", "task_failed", "GET /connectors/c/status"),
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
    assert "POST /connectors/my%201/restart" in finding.fix
    assert "eosctl acls check --connector 'my 1'" in refused.fix
