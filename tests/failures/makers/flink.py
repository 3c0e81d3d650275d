"""Traces of a real Flink job whose Kafka sink is exactly-once."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from eosctl.sandbox.settings import StackSpec, read_lock
from eosctl.sandbox.stack import Stack
from tests.applications.flink import LineServer, local_environment
from tests.applications.jvm import jvm, locked, properties
from tests.failures.makers.ground import Traces, abort_behind_its_back, logging_option


def _sink(java: Any, stack: Stack, prefix: str, topic: str, timeout_ms: int) -> Any:
    flink = java.org.apache.flink
    text = flink.api.common.serialization.SimpleStringSchema()
    kafka = flink.connector.kafka.sink
    schema = kafka.KafkaRecordSerializationSchema.builder().setTopic(topic)
    return (
        kafka.KafkaSink.builder()
        .setKafkaProducerConfig(properties(java, transaction_timeout_ms=str(timeout_ms)))
        .setBootstrapServers(stack.bootstrap_servers)
        .setRecordSerializer(schema.setValueSerializationSchema(text).build())
        .setDeliveryGuarantee(flink.connector.base.DeliveryGuarantee.EXACTLY_ONCE)
        .setTransactionalIdPrefix(prefix)
        .build()
    )


def flink(traces: Traces, folder: Path, version: str) -> None:
    """Commits after the id was fenced, the transaction aborted or timed out, and two sinks of a prefix."""
    jars = [each for each in read_lock("4.3.1") if "log4j" in str(each)]
    stack = Stack.up(
        StackSpec(kafka_version=version, groups=()),
        folder / "stack", name="traces-flink", environ=os.environ,
    )  # fmt: skip
    try:
        with jvm(
            [*locked("flink-sink"), *jars], folder, options=[logging_option(folder, "4.3.1", flinks=True)]
        ) as java:

            def job(*sinks: tuple[str, str], timeout_ms: int = 600_000) -> tuple[LineServer, Any]:
                flow = local_environment(java)
                lines = LineServer()
                stream = flow.socketTextStream("127.0.0.1", lines.port)
                for prefix, topic in sinks:
                    stream.sinkTo(_sink(java, stack, prefix, topic, timeout_ms))
                running = flow.executeAsync()
                lines.send(b"line")
                return lines, running

            def end(lines: LineServer, running: Any) -> None:
                lines.close()
                try:
                    running.getJobExecutionResult().get(60, java.java.util.concurrent.TimeUnit.SECONDS)
                except Exception as error:
                    print(str(error)[:2000])

            def opened(prefix: str) -> str:
                time.sleep(12)
                return f"{prefix}-0-1"

            lines, running = job(("sink", "orders"))
            Producer(
                {"bootstrap.servers": stack.bootstrap_servers, "transactional.id": opened("sink")}
            ).init_transactions()
            end(lines, running)
            lines, running = job(("late", "orders"))
            abort_behind_its_back(java, stack, opened("late"))
            end(lines, running)
            lines, running = job(("slow", "orders"), timeout_ms=2000)
            time.sleep(16)
            end(lines, running)
            lines, running = job(("shared", "orders"), ("shared", "copies"))
            time.sleep(10)
            end(lines, running)
    finally:
        traces.write(f"flink-{version}.log", (folder / "jvm.out").read_text())
        stack.down()
