"""txn on a real broker: what its commands tell of one transaction, and one that really hangs."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AdminClient,
    NewTopic,
)

from tests.hanging_transactions import (
    offsets,
    unverified_transactions,
    write_in_a_transaction_that_no_coordinator_knows,
)
from tests.open_transactions import zombie
from tests.sandbox_fixtures import PATIENCE_S, wait_until

pytestmark = pytest.mark.live

Invoke = Any
GROUP = "connect-eos"


def test_txn_commands_agree_about_one_transaction(
    invoke: Invoke, stack: Any, target_flags: list[str], unique: str
) -> None:
    transactional_id = f"{GROUP}-{unique}-3"
    producer = zombie(stack, transactional_id, unique)

    def rows(*words: str) -> Any:
        outcome = invoke(*words, "-o", "json", *target_flags)
        assert outcome.exit_code == 0, outcome.stderr
        return outcome.json()["data"]["rows"]

    (listed,) = rows("txn", "list", "--state", "ongoing", "--match", f".*{unique}.*")
    assert rows("txn", "list", "--state", "Ongoing", "--match", f".*{unique}.*", "--client-side") == [listed]
    assert listed["owner"] == {"kind": "task", "connector": unique, "task": 3, "application": None}
    (held,) = rows("txn", "producers", "--topic", unique)
    assert (held["producer_id"], held["transactional_id"]) == (listed["producer_id"], transactional_id)
    assert held["start_offset"] == 0
    (where,) = rows("txn", "coordinator", transactional_id)
    (logged,) = rows("txn", "log", transactional_id)
    assert (logged["state"], logged["producer_id"]) == ("Ongoing", listed["producer_id"])
    assert logged["partition"] == where["partition"]
    assert logged["partitions"] == [{"topic": unique, "partition": 0}]
    assert rows("txn", "hanging", "--topic", unique, "--max-transaction-timeout", "1ms") == []
    refused = invoke(
        "txn", "abort", "--topic", unique, "--partition", "0", "--start-offset", "0", "--yes", *target_flags
    )
    assert refused.exit_code == 6
    producer.abort_transaction(PATIENCE_S)
    producer.close()
    wait_until(  # the markers are written after the abort was answered
        lambda: rows("txn", "describe", transactional_id)[0]["state"] == "CompleteAbort", what="the end of the abort"
    )
    assert [row["state"] for row in rows("txn", "log", transactional_id, "--all-records")][-1] == "CompleteAbort"


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")  # kafka-python, when imported
def test_a_really_hanging_transaction_is_found_and_aborted(
    invoke: Invoke, stack: Any, target_flags: list[str], unique: str
) -> None:
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    admin.create_topics([NewTopic(unique, 1, 1)])[unique].result(PATIENCE_S)
    with unverified_transactions(stack):
        wait_until(
            lambda: write_in_a_transaction_that_no_coordinator_knows(stack, unique, producer_id=987_654_321),
            what="the broker to take the batch",
        )
        assert offsets(stack, unique) == (0, 1)

        found = invoke("txn", "hanging", "--topic", unique, "-o", "json", *target_flags)
        assert found.exit_code == 3, found.stderr
        (row,) = found.json()["data"]["rows"]
        assert (row["producer_id"], row["start_offset"], row["reason"]) == (987_654_321, 0, "no_transactional_id")
        everywhere = invoke("txn", "hanging", "--all", "-o", "json", *target_flags).json()["data"]["rows"]
        assert unique in [row["topic"] for row in everywhere]

        arguments = ["txn", "abort", "--topic", unique, "--partition", "0", "--start-offset", "0", "-o", "json"]
        planned = invoke(*arguments, "--dry-run", *target_flags)
        assert (planned.exit_code, offsets(stack, unique)) == (0, (0, 1))
        aborted = invoke(*arguments, "--yes", *target_flags)
    assert aborted.exit_code == 0, aborted.stderr
    (row,) = aborted.json()["data"]["rows"]
    assert (row["outcome"], row["lso_before"], row["lso_after"]) == ("aborted", 0, 2)  # the record and the marker
    assert invoke("txn", "hanging", "--topic", unique, *target_flags).exit_code == 0


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")  # kafka-python, when imported
def test_what_a_coordinator_has_committed_is_committed_where_a_marker_is_missing(
    invoke: Invoke, stack: Any, target_flags: list[str], stopped: Any
) -> None:
    """The last transaction of a task, whose topic is recreated: its batch is there, and its marker is not.

    That is what brokers leave behind that skip the markers of a committed transaction.
    """
    transactional_id = f"{GROUP}-{stopped.name}-0"

    def rows(*words: str, exit_code: int = 0) -> Any:
        outcome = invoke(*words, "-o", "json", *target_flags)
        assert outcome.exit_code == exit_code, outcome.stderr
        return outcome.json()["data"]["rows"]

    logged = rows("txn", "log", transactional_id, "--all-records")
    decided = [row for row in logged if row["state"] == "PrepareCommit"][-1]
    assert decided["client_transaction_version"] == 2
    assert {"topic": stopped.topic, "partition": 0} in decided["partitions"]
    (held,) = rows("txn", "producers", "--topic", stopped.topic)
    assert held["producer_epoch"] == decided["producer_epoch"]  # the marker has raised it
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    admin.delete_topics([stopped.topic])[stopped.topic].result(PATIENCE_S)
    wait_until(lambda: _made(admin, stopped.topic), what="the topic to be recreated")
    writer = {"producer_id": decided["producer_id"], "producer_epoch": decided["producer_epoch"] - 1}
    with unverified_transactions(stack):
        wait_until(
            lambda: write_in_a_transaction_that_no_coordinator_knows(stack, stopped.topic, **writer),
            what="the broker to take the batch",
        )
    place = ("--topic", stopped.topic, "--partition", "0", "--start-offset", "0")
    (found,) = rows("txn", "hanging", "--topic", stopped.topic, "--max-transaction-timeout", "72h", exit_code=3)
    assert (found["reason"], found["transactional_id"]) == ("partition_not_in_transaction", transactional_id)
    (refused,) = rows("txn", "abort", *place, "--yes", exit_code=6)
    assert (refused["refused"], refused["decided_by"]) == (["commit_decided"], "log")
    assert offsets(stack, stopped.topic) == (0, 1)
    (done,) = rows("txn", "complete", "--as-decided", *place, "--yes")
    assert (done["outcome"], done["lso_after"]) == ("committed", 2)
    assert offsets(stack, stopped.topic) == (2, 2)
    consumer = Consumer(
        {"bootstrap.servers": stack.bootstrap_servers, "group.id": stopped.name, "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(stopped.topic, 0, 0)])
    record = consumer.poll(PATIENCE_S)
    consumer.close()
    assert record is not None
    assert record.value() == b"lost"


def _made(admin: AdminClient, topic: str) -> bool:
    """Whether the topic could be made: its name is taken until it is deleted."""
    try:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(PATIENCE_S)
    except KafkaException:
        return False
    return True
