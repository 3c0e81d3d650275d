"""A small Flink job that writes to Kafka exactly once, in a JVM of `jvm`."""

from __future__ import annotations

import socket
from typing import Any

from tests.applications.jvm import properties
from tests.migrate.spark.cluster import Cluster
from tests.sandbox_fixtures import PATIENCE_S

_LOOPBACK = ("rest.bind-address", "jobmanager.bind-host", "taskmanager.bind-host", "taskmanager.host")
_SMALL = ("taskmanager.memory.network.min", "taskmanager.memory.network.max", "taskmanager.memory.managed.size")


class LineServer:
    """Where Flink's socket source reads; closing it ends the job's input."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])

    def send(self, line: bytes) -> None:
        self._listener.settimeout(2 * PATIENCE_S)
        self._connection, _peer = self._listener.accept()
        self._connection.sendall(line + b"\n")

    def close(self) -> None:
        self._connection.close()
        self._listener.close()


def local_environment(java: Any) -> Any:
    """Where a job runs: a cluster inside the JVM, which listens on loopback and takes little memory."""
    flink = java.org.apache.flink
    settings = flink.configuration.Configuration()
    for name in _LOOPBACK:
        settings.setString(name, "127.0.0.1")
    for name in _SMALL:
        settings.setString(name, "8mb")
    return flink.streaming.api.environment.StreamExecutionEnvironment.createLocalEnvironment(1, settings)


def start_flink(java: Any, cluster: Cluster, port: int, *, producer: Any = None, naming: str = "DEFAULT") -> Any:
    """A job on a cluster inside the JVM: lines of a socket, exactly once to Kafka; it never makes a checkpoint.

    `producer` are the properties of its producers, `naming` is a TransactionNamingStrategy.
    """
    flink = java.org.apache.flink
    flow = local_environment(java)
    text = flink.api.common.serialization.SimpleStringSchema()
    kafka = flink.connector.kafka.sink
    schema = kafka.KafkaRecordSerializationSchema.builder().setTopic(f"{cluster.name}-out")
    sink = (
        kafka.KafkaSink.builder()
        .setKafkaProducerConfig(producer or properties(java, transaction_timeout_ms="600000"))
        .setBootstrapServers(cluster.servers)
        .setRecordSerializer(schema.setValueSerializationSchema(text).build())
        .setDeliveryGuarantee(flink.connector.base.DeliveryGuarantee.EXACTLY_ONCE)
        .setTransactionalIdPrefix(f"{cluster.name}-sink")
        .setTransactionNamingStrategy(getattr(kafka.TransactionNamingStrategy, naming))
        .build()
    )
    flow.socketTextStream("127.0.0.1", port).sinkTo(sink)
    return flow.executeAsync()
