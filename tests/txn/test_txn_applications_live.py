"""Transactional ids as a real Flink job and a real Kafka Streams application leave them on a broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eosctl.sandbox.settings import DEFAULT_VERSION, read_lock
from eosctl.sandbox.stack import Stack
from tests.applications.flink import LineServer, start_flink
from tests.applications.jvm import jvm, locked, properties
from tests.conftest import Invoke
from tests.hanging_transactions import unverified_transactions, write_in_a_transaction_that_no_coordinator_knows
from tests.migrate.spark.cluster import Cluster
from tests.sandbox_fixtures import PATIENCE_S, wait_until

pytestmark = pytest.mark.live


@pytest.fixture
def kafka(stack: Stack, unique: str) -> Cluster:
    """The broker, which creates the topics when they are written to."""
    return Cluster(stack.bootstrap_servers, unique)


@pytest.fixture
def txn(invoke: Invoke, target_flags: list[str]) -> Callable[..., Any]:
    """Runs a command line; the document that it prints."""
    return lambda *words: invoke(*words, "-o", "json", *target_flags).json()


def ids_of(txn: Callable[..., Any], prefix: str) -> dict[str, Any]:
    """The listed rows whose id begins like that."""
    rows = txn("txn", "list")["data"]["rows"]
    return {row["transactional_id"]: row for row in rows if row["transactional_id"].startswith(prefix)}


def application_of(txn: Callable[..., Any], name: str) -> dict[str, Any]:
    """The row of an application."""
    rows = txn("txn", "applications", "--no-remember")["data"]["rows"]
    (row,) = [row for row in rows if row["application"] == name]
    return dict(row)


def test_an_open_transaction_of_a_flink_job_is_fenced_only_when_its_data_may_be_lost(
    kafka: Cluster, txn: Callable[..., Any], tmp_path: Path
) -> None:
    """Flink's committer passes over a transaction that was fenced: the job finishes, and its line is nowhere."""

    def run(line: bytes) -> tuple[LineServer, Any, str]:
        lines = LineServer()
        job = start_flink(java, kafka, lines.port)
        lines.send(line)

        def open_id() -> str | None:
            found = ids_of(txn, f"{kafka.name}-sink")
            return next((name for name, row in found.items() if row["state"] == "Ongoing"), None)

        return lines, job, wait_until(open_id, what="a transaction of the job", timeout_s=2 * PATIENCE_S)

    def delivered() -> list[bytes | None]:
        return [message.value() for message in kafka.messages(f"{kafka.name}-out")]

    with jvm(locked("flink-sink"), tmp_path) as java:
        patience = (2 * PATIENCE_S, java.java.util.concurrent.TimeUnit.SECONDS)
        lines, job, transactional_id = run(b"kept")
        (row,) = txn("txn", "describe", transactional_id)["data"]["rows"]
        assert row["owner"] == {"kind": "other", "connector": None, "task": None, "application": "flink-sink"}
        assert row["partitions"] == [{"topic": f"{kafka.name}-out", "partition": 0}]
        told = application_of(txn, f"{kafka.name}-sink")
        assert (told["kind"], told["naming"], told["oldest_open"]) == ("flink-sink", "incrementing", transactional_id)
        assert (told["open"], told["timeout_ms_max"]) == (1, 600_000)
        for which in ([transactional_id], ["--prefix", kafka.name]):
            refused = txn("fence", *which, "--yes")
            assert (refused["exit_code"], "Flink's sink" in refused["errors"][0]["message"]) == (6, True), refused
        lines.close()
        job.getJobExecutionResult().get(*patience)
        wait_until(lambda: delivered() == [b"kept"], what="readers to see the line")

        lines, job, transactional_id = run(b"lost")
        done = txn("fence", transactional_id, "--discard-prepared", "--yes")
        assert [each["outcome"] for each in done["data"]["rows"]] == ["fenced"], done
        assert done["data"]["rows"][0]["before"]["state"] == "Ongoing"
        lines.close()
        job.getJobExecutionResult().get(*patience)
    assert delivered() == [b"kept"]


def test_the_ids_of_a_kafka_streams_application_are_told(
    kafka: Cluster, txn: Callable[..., Any], tmp_path: Path
) -> None:
    kafka.write(f"{kafka.name}-in", [(b"key", b"line")])
    text = "org.apache.kafka.common.serialization.Serdes$StringSerde"
    with jvm([*read_lock(DEFAULT_VERSION), *locked("kafka-streams")], tmp_path) as java:
        settings = properties(
            java, application_id=f"{kafka.name}-copy", bootstrap_servers=kafka.servers,
            processing_guarantee="exactly_once_v2", state_dir=str(tmp_path / "state"),
            default_key_serde=text, default_value_serde=text,
        )  # fmt: skip
        builder = java.org.apache.kafka.streams.StreamsBuilder()
        builder.stream(f"{kafka.name}-in").to(f"{kafka.name}-out")
        streams = java.org.apache.kafka.streams.KafkaStreams(builder.build(), settings)
        streams.start()
        wait_until(lambda: kafka.per_partition(f"{kafka.name}-out") == {(0, b"key"): b"line"}, what="the line")
        ((transactional_id, listed),) = ids_of(txn, f"{kafka.name}-copy").items()
        (described,) = txn("txn", "describe", transactional_id)["data"]["rows"]
        assert [row["owner"]["application"] for row in (listed, described)] == ["kafka-streams"] * 2
        told = application_of(txn, f"{kafka.name}-copy")
        assert (told["kind"], told["guarantee"], told["sure"]) == ("kafka-streams", "exactly_once_v2", True)
        looked = txn("doctor", "--for", "streams", "--application", f"{kafka.name}-copy")["data"]["rows"]
        assert "application_not_seen" not in {row["code"] for row in looked}
        done = txn("fence", transactional_id, "--yes")
        assert [each["outcome"] for each in done["data"]["rows"]] == ["fenced"], done
        kafka.write(f"{kafka.name}-in", [(b"after", b"fenced")])
        wait_until(
            lambda: kafka.per_partition(f"{kafka.name}-out").get((0, b"after")) == b"fenced",
            what="the fenced thread to begin anew", timeout_s=2 * PATIENCE_S,
        )  # fmt: skip
        streams.close()


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")  # kafka-python, when imported
def test_a_transaction_of_a_flink_sink_that_hangs_is_aborted_with_all_others(
    stack: Stack, kafka: Cluster, txn: Callable[..., Any], unique: str
) -> None:
    """What a lost job left where its coordinator has forgotten the id: written past the coordinator, an hour ago."""
    topic = f"{unique}-sink-out"
    kafka.write(topic, [(b"before", b"v")])
    with unverified_transactions(stack):
        wait_until(
            lambda: write_in_a_transaction_that_no_coordinator_knows(stack, topic, producer_id=987_654_321),
            what="the broker to take it",
        )
    try:
        planned = txn("txn", "abort", "--hanging", "--topic", topic, "--dry-run")
        assert [(row["topic"], row["reason"]) for row in planned["data"]["rows"]] == [(topic, "no_transactional_id")]
    finally:
        done = txn("txn", "abort", "--hanging", "--topic", topic, "--yes")
    (row,) = done["data"]["rows"]
    assert (done["exit_code"], row["outcome"], row["lso_before"] < row["lso_after"]) == (0, "aborted", True)
    assert txn("txn", "hanging", "--topic", topic)["exit_code"] == 0
    again = txn("txn", "abort", "--hanging", "--topic", topic, "--yes")
    assert (again["exit_code"], again["data"]["rows"]) == (0, [])
