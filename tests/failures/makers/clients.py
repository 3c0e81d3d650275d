"""Traces of plain Java clients, and of brokers that they talk to: one broker, no workers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eosctl.sandbox.settings import StackSpec, read_lock
from eosctl.sandbox.stack import Stack
from tests.applications.jvm import jvm, locked, properties
from tests.failures.makers.ground import (
    Traces,
    abort_behind_its_back,
    client,
    events_with,
    failing,
    lines_with,
    logging_option,
    producer,
    record,
    trace_of,
)
from tests.sandbox_fixtures import wait_until

GROUP = "orders-reader"


@contextmanager
def one_broker(folder: Path, version: str, *, streams: bool = False, **broker: str) -> Iterator[tuple[Stack, Any]]:
    """A broker of that version, and a JVM with its clients that logs to jvm.out."""
    spec = StackSpec(
        kafka_version=version, groups=(), broker_config={k.replace("_", "."): v for k, v in broker.items()}
    )
    stack = Stack.up(spec, folder / "stack", name=f"traces-{version}", environ=os.environ)
    try:
        jars = [*read_lock(version), *(locked("kafka-streams") if streams else ())]
        with jvm(jars, folder, options=[logging_option(folder, version)]) as java:
            yield stack, java
    finally:
        stack.down()


def late_requests(traces: Traces, folder: Path, version: str) -> None:
    """What a producer is told that writes, or commits, after its transaction was ended with its own epoch."""
    with one_broker(folder, version) as (stack, java):

        def open_and_abort(transactional_id: str) -> Any:
            sender = producer(java, stack, transactional_id)
            sender.beginTransaction()
            sender.send(record(java, "payments")).get()
            abort_behind_its_back(java, stack, transactional_id)
            time.sleep(2)  # the marker is there then
            return sender

        writes = open_and_abort("pay-1")
        with failing() as caught:
            writes.send(record(java, "payments")).get()
        traces.write(f"transaction-abortable-send-{version}.txt", trace_of(java, caught[0]))
        with failing() as caught:
            writes.commitTransaction()
        traces.write(f"transaction-abortable-commit-{version}.txt", trace_of(java, caught[0]))
        writes.abortTransaction()
        writes.beginTransaction()
        writes.send(record(java, "payments")).get()
        writes.commitTransaction()
        commits = open_and_abort("pay-2")
        with failing() as caught:
            commits.commitTransaction()
        traces.write(f"invalid-txn-state-commit-{version}.txt", trace_of(java, caught[0]))
        traces.write(f"late-{version}.log", (folder / "jvm.out").read_text())
        traces.write(
            f"late-broker-{version}.log", "\n".join(events_with(Path(stack.node("broker-1").log), "pay-", "payments"))
        )


def unstable_offsets(traces: Traces, folder: Path, version: str) -> None:
    """A consumer whose group's offsets lie in a transaction that is open."""
    with one_broker(folder, version) as (stack, java):
        kafka = java.org.apache.kafka.clients.consumer
        sender = producer(java, stack, "pay-3")
        sender.beginTransaction()
        sender.send(record(java, "payments")).get()
        partition = java.org.apache.kafka.common.TopicPartition("payments", 0)
        sender.sendOffsetsToTransaction({partition: kafka.OffsetAndMetadata(1)}, kafka.ConsumerGroupMetadata(GROUP))
        reader = kafka.KafkaConsumer(client(java, stack, group_id=GROUP))
        reader.subscribe(["payments"])
        end = time.monotonic() + 12
        while time.monotonic() < end:
            reader.poll(java.java.time.Duration.ofMillis(500))
        traces.write(f"unstable-offsets-consumer-{version}.log", (folder / "jvm.out").read_text())


def stale_coordinator_epoch(traces: Traces, folder: Path, version: str) -> None:
    """An abort by hand with a coordinator epoch above the true one, another below it, then the coordinator's own."""
    with one_broker(folder, version) as (stack, java):
        admin = java.org.apache.kafka.clients.admin
        asks = admin.Admin.create(client(java, stack))
        sender = producer(java, stack, "pay-4")
        partition = java.org.apache.kafka.common.TopicPartition("payments", 0)

        def write() -> tuple[int, int]:
            sender.beginTransaction()
            sender.send(record(java, "payments")).get()
            told = asks.describeTransactions(["pay-4"]).description("pay-4").get()
            return told.producerId(), told.producerEpoch()

        def abort(coordinator_epoch: int) -> None:
            spec = admin.AbortTransactionSpec(partition, found[0], found[1], coordinator_epoch)
            asks.abortTransaction(spec).all().get()

        found = write()
        abort(3)
        with failing() as caught:
            abort(2)
        traces.write(f"coordinator-fenced-admin-{version}.txt", trace_of(java, caught[0]))
        with failing() as caught:
            sender.commitTransaction()
            sender.beginTransaction()
            sender.send(record(java, "payments")).get()
        traces.write(f"coordinator-fenced-producer-{version}.txt", trace_of(java, caught[0]))
        traces.write(f"coordinator-fenced-broker-{version}.log", Path(stack.node("broker-1").log).read_text())


def streams_without_a_transaction_log(traces: Traces, folder: Path, version: str) -> None:
    """A cluster of one broker, and the default of three replicas of __transaction_state."""
    with one_broker(folder, version, streams=True, transaction_state_log_replication_factor="3") as (stack, java):
        text = "org.apache.kafka.common.serialization.Serdes$StringSerde"
        plain = java.org.apache.kafka.clients.producer.KafkaProducer(client(java, stack))
        plain.send(record(java, "orders")).get()
        settings = properties(
            java, application_id="copy", bootstrap_servers=stack.bootstrap_servers,
            processing_guarantee="exactly_once_v2", state_dir=str(folder / "state"), default_key_serde=text,
            default_value_serde=text, producer_max_block_ms="5000", replication_factor="1",
        )  # fmt: skip
        builder = java.org.apache.kafka.streams.StreamsBuilder()
        builder.stream("orders").to("copies")
        java.org.apache.kafka.streams.KafkaStreams(builder.build(), settings).start()
        log = folder / "jvm.out"
        wait_until(lambda: lines_with(log, "initialize transactions", "initializing transactions"), what="the timeout")
        time.sleep(2)
        traces.write(f"streams-init-{version}.log", log.read_text())


def moved_coordinators(traces: Traces, folder: Path, version: str) -> None:
    """Three brokers: __consumer_offsets and __transaction_state get another leader while clients use them."""
    spec = StackSpec(kafka_version=version, brokers=3, groups=())
    stack = Stack.up(spec, folder / "stack", name="traces-moved", environ=os.environ)
    try:
        with jvm(read_lock(version), folder, options=[logging_option(folder, version, "debug")]) as java:
            kafka = java.org.apache.kafka
            asks = kafka.clients.admin.Admin.create(client(java, stack))
            sender = producer(java, stack, "pay-5", max_block_ms="20000")
            sender.beginTransaction()
            sender.send(record(java, "payments")).get()
            reader = kafka.clients.consumer.KafkaConsumer(client(java, stack, group_id=GROUP))
            reader.subscribe(["payments"])

            def read() -> None:
                for _poll in range(20):
                    reader.poll(java.java.time.Duration.ofMillis(200))

            read()
            for topic in ("__transaction_state", "__consumer_offsets"):
                _move(java, asks, topic)
            read()
            try:
                sender.commitTransaction()
            finally:
                traces.write(f"moved-{version}.log", (folder / "jvm.out").read_text())
    finally:
        stack.down()


def _move(java: Any, asks: Any, topic: str) -> None:
    """Makes the second replica of each partition its leader."""
    kafka = java.org.apache.kafka
    told = asks.describeTopics([topic]).allTopicNames().get().get(topic)
    moves = {}
    for each in told.partitions():
        replicas = [node.id() for node in each.replicas()]
        target = kafka.clients.admin.NewPartitionReassignment([*replicas[1:], replicas[0]])
        moves[kafka.common.TopicPartition(topic, each.partition())] = java.java.util.Optional.of(target)
    asks.alterPartitionReassignments(moves).all().get()
    time.sleep(2)
    asks.electLeaders(kafka.common.ElectionType.PREFERRED, java.java.util.HashSet(list(moves))).all().get()
