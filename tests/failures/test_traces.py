"""Each trace of the test data is found, each entry of the dictionary has one, and both ways of reading agree."""

from __future__ import annotations

import re

import pytest
from confluent_kafka import KafkaError

from eosctl.connectors.look import known_failure
from eosctl.failures.failure import Family
from eosctl.failures.rules import BY_CODE, FAILURES, entries_named, names_of
from eosctl.failures.tally import judged, read_all, recognise
from tests.conftest import Invoke
from tests.failures.manifest import FOLDER, TRACES, Trace


@pytest.mark.parametrize("trace", TRACES, ids=str)
def test_each_trace_is_found(trace: Trace) -> None:
    found = judged(read_all(trace.text().splitlines()))
    assert [each.found.failure.code for each in found] == list(trace.codes)
    assert [each.role for each in found] == ["cause", *["consequence"] * (len(found) - 1)]


def test_each_file_says_where_it_is_from_and_each_entry_has_one() -> None:
    assert sorted(each.file for each in TRACES) == sorted(path.name for path in FOLDER.iterdir())
    assert BY_CODE.keys() - {each.codes[0] for each in TRACES} == set()
    assert all(each.made in ("sandbox", "class", "public") and each.how for each in TRACES)


@pytest.mark.parametrize("trace", [each for each in TRACES if each.file.startswith("connect-task")], ids=str)
def test_doctor_and_explain_name_the_same(trace: Trace) -> None:
    known = known_failure(trace.text())
    assert known is not None
    assert known.failure.code == trace.codes[0]


def test_what_a_sign_means_is_said_before_what_its_entry_does() -> None:
    """A request that a follower passed on was called a FAILED task whose fencing took too long."""
    [row] = recognise(['{"error_code":500,"message":"IO Error trying to forward REST request: Idle timeout expired"}'],
                      source="x").rows  # fmt: skip
    assert row.meaning == "The leader did not answer a request within the 30 s of the follower that passed it on."


def test_every_entry_says_all_that_it_must() -> None:
    for each in FAILURES:
        assert each.signs, each.code
        assert each.causes, each.code
        assert each.said_by, each.code
        assert re.search(r"\d\.\d", " ".join(each.said_by)), each.code
        assert not each.means.endswith("."), each.code
        assert all(cause.endswith((".", "?")) for cause in (*each.causes, *each.is_not)), each.code
        assert all(command.startswith("eosctl ") for command in each.commands), each.code
        assert set(each.explains) <= BY_CODE.keys(), each.code
    assert len(BY_CODE) == len(FAILURES) > 50


LISTED = (
    "ProducerFenced", "InvalidProducerEpoch", "InvalidPidMapping", "InvalidTxnState", "TransactionAbortable",
    "ConcurrentTransactions at init", "CoordinatorNotAvailable", "LoadInProgress", "NotCoordinator",
    "OutOfOrderSequence", "UnknownProducerId", "DuplicateSequence", "TransactionCoordinatorFenced",
    "TimeoutException awaiting InitProducerId", "awaiting EndTxn", "awaiting AddOffsetsToTxn",
    "transaction.max.timeout.ms", "TransactionalIdAuthorization", "ClusterAuthorization", "IdempotentWrite",
    "UnstableOffsetCommit", "NotEnoughReplicas in `__transaction_state`", "RecordTooLarge",
    "Failed to perform zombie fencing", "awaiting … to be fenced", "task-config race", "IllegalState after fencing",
    "This worker is not able to write to the config topic", "converter failure", "KAFKA-17719",
    "Request cannot be completed because a rebalance is expected",
    "Timed out while trying to read to the end of the offsets topic",
    "org.apache.kafka.common.errors.ProducerFencedException", "producerfencedexception",
    "before its producer transaction",
)  # fmt: skip


@pytest.mark.parametrize("name", LISTED)
def test_it_is_found_by_the_name_that_people_know(name: str) -> None:
    assert entries_named(name) or recognise([name], source="x").rows


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("ProducerFencedException", "producer_fenced"),
        ("Failed to perform zombie fencing", "fencing_failed"),
        ("InvalidPidMapping", "invalid_pid_mapping"),
    ],
)
def test_explain_takes_the_names(invoke: Invoke, name: str, first: str) -> None:
    """The first is the one that has the name; Flink's entry, which knows it as an alias, used to stand before it."""
    outcome = invoke("explain", name, "-o", "json")
    assert outcome.exit_code == 0, outcome.stderr
    rows = outcome.json()["data"]["rows"]
    assert rows[0]["code"] == first
    assert all("entry" in row for row in rows)


def test_names_lead_to_their_entry() -> None:
    for each in FAILURES:
        for name in names_of(each):
            assert each in entries_named(name), (each.code, name)


def test_a_failure_of_a_family_is_known_by_the_name_of_a_class_in_that_family_only() -> None:
    plain = (
        "org.apache.kafka.common.errors.InvalidProducerEpochException: Producer attempted to produce with an old epoch."
    )
    [found] = judged(read_all([plain]))
    assert found.found.failure.family is Family.PRODUCER


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (14, "coordinator_loading"), (15, "coordinator_not_available"), (16, "not_coordinator"),
        (29, "topic_not_authorized"), (30, "topic_not_authorized"), (31, "cluster_not_authorized"),
        (50, "timeout_refused"), (51, "concurrent_transactions"), (53, "id_not_authorized"),
    ],
)  # fmt: skip
def test_the_words_of_librdkafka_for_an_error_of_the_brokers_are_known(number: int, code: str) -> None:
    line = f"Failed to acquire transactional PID from broker TxnCoordinator/2: {KafkaError(number).str()}: retrying"
    assert [each.found.failure.code for each in judged(read_all([line]))] == [code]


def test_a_fencing_whose_call_had_no_answer_timed_out() -> None:
    said = (
        "Call(callName=fenceProducer(api=INIT_PRODUCER_ID), deadlineMs=1795401159732, tries=1, "
        "nextAllowedTryMs=1795401159819) timed out at 1795401159739 after 1 attempt(s)"
    )
    trace = [
        "org.apache.kafka.connect.errors.ConnectException: Failed to perform zombie fencing",
        f"Caused by: org.apache.kafka.common.errors.TimeoutException: {said}",
    ]
    assert [each.found.failure.code for each in judged(read_all(trace))] == ["fencing_timed_out"]
