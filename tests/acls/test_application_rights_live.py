"""Real applications with exactly the rights that `acls apply --for` grants; each that is taken away is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from eosctl.sandbox.settings import DEFAULT_VERSION, read_lock
from tests.applications.flink import LineServer, start_flink
from tests.applications.jvm import jvm, locked
from tests.conftest import Invoke
from tests.migrate.spark.cluster import Cluster
from tests.sandbox_fixtures import PATIENCE_S, wait_until
from tests.secure_stack import SecureStack

pytestmark = pytest.mark.live

_TYPES = {"TransactionalId": ResourceType.TRANSACTIONAL_ID, "Topic": ResourceType.TOPIC, "Group": ResourceType.GROUP}
USER = "application"
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def kafka(secure_stack: SecureStack, unique: str) -> Iterator[Cluster]:
    """Topics of our own, written and read by the super user; at the end the user has no right left."""
    cluster = Cluster(secure_stack.stack.bootstrap_servers, unique)
    cluster.create(f"{unique}-in", f"{unique}-out", partitions=1, config={"cleanup.policy": "delete"})
    yield cluster
    anything: Any = None  # the stubs know of no wildcard
    _delete(secure_stack, AclBindingFilter(
        ResourceType.ANY, anything, ResourcePatternType.ANY, f"User:{USER}", anything, AclOperation.ANY,
        AclPermissionType.ANY,
    ))  # fmt: skip


@pytest.fixture
def run(secure_stack: SecureStack, invoke: Invoke) -> Run:
    """One command of the super user through the secure listener; the document that it prints."""
    stack = secure_stack.stack
    where = ["-b", stack.secure_bootstrap_servers, "--command-config", stack.state.command_configs["super"]]
    return lambda *words: dict(invoke(*words, *where, "-o", "json").json())


def _delete(secure: SecureStack, which: AclBindingFilter) -> int:
    admin = AdminClient({"bootstrap.servers": secure.stack.bootstrap_servers, "log_level": 0})
    (future,) = admin.delete_acls([which]).values()
    deleted = len(future.result(PATIENCE_S))
    wait_until(lambda: not admin.describe_acls(which).result(PATIENCE_S), what="the ACLs to be forgotten")
    return deleted


def _each_right_is_missed(secure: SecureStack, run: Run, scope: list[str]) -> None:
    """Takes one ACL away after the other: the check names it, and `apply` gives it back."""
    rights = run("acls", "generate", *scope)["data"]["rows"]
    for right in rights:
        which = AclBindingFilter(
            _TYPES[right["resource_type"]], right["resource_name"], ResourcePatternType[right["pattern_type"]],
            f"User:{USER}", "*", AclOperation[right["operation"]], AclPermissionType.ALLOW,
        )  # fmt: skip
        if not _delete(secure, which):
            continue  # another right includes it, or it is optional
        found = run("acls", "check", *scope)["data"]["rows"]
        named = {(row["evidence"]["resource_name"], *row["evidence"]["operations"]) for row in found
                 if row["code"] == "acl_missing"}  # fmt: skip
        wanted = (right["resource_name"], right["operation"])
        assert named <= {wanted}, (right, found)
        if right["operation"] != "DESCRIBE":  # what reads or writes may describe
            assert named == {wanted}, (right, found)
        run("acls", "apply", *scope, "--yes")
    assert run("acls", "check", *scope)["exit_code"] == 0


def test_a_streams_application_runs_with_exactly_these_rights(
    secure_stack: SecureStack, kafka: Cluster, run: Run, tmp_path: Path
) -> None:
    """With a repartition topic, whose records it deletes, and a changelog."""
    name = f"{kafka.name}-count"
    scope = ["--for", "streams", "--application", name, "--input-topic", f"{kafka.name}-in",
             "--output-topic", f"{kafka.name}-out", "--principal", f"User:{USER}"]  # fmt: skip
    doctor = ("doctor", "--for", "streams", "--application", name, "--principal", f"User:{USER}")
    assert run(*doctor)["exit_code"] == 3
    assert run("acls", "apply", *scope, "--yes")["exit_code"] == 0
    config = secure_stack.client_properties(tmp_path / "client.properties", USER)
    with jvm([*read_lock(DEFAULT_VERSION), *locked("kafka-streams")], tmp_path) as java:
        streams = _start_counting(java, kafka, name, secure_stack, config, tmp_path)
        kafka.write(f"{kafka.name}-in", [(b"key", b"a"), (b"key", b"b")])
        counted = (2).to_bytes(8, "big")
        wait_until(
            lambda: kafka.per_partition(f"{kafka.name}-out").get((0, b"key")) == counted, what="both to be counted",
            timeout_s=2 * PATIENCE_S,
        )  # fmt: skip
        wait_until(lambda: _begin(kafka, f"{name}-again-repartition") > 0, what="records to be deleted")
        (row,) = [row for row in run("txn", "applications", "--no-remember")["data"]["rows"]
                  if row["application"] == name]  # fmt: skip
        assert (row["kind"], row["guarantee"], row["sure"]) == ("kafka-streams", "exactly_once_v2", True)
        looked = run(*doctor)
        assert [each for each in looked["data"]["rows"] if each["check"] == "acls"] == []
        streams.close()
    _each_right_is_missed(secure_stack, run, scope)


def _start_counting(java: Any, kafka: Cluster, name: str, secure: SecureStack, config: Path, folder: Path) -> Any:
    settings = java.java.util.Properties()
    settings.load(java.java.io.FileInputStream(str(config)))
    text = "org.apache.kafka.common.serialization.Serdes$StringSerde"
    for key, value in {
        "application.id": name, "bootstrap.servers": secure.stack.secure_bootstrap_servers,
        "processing.guarantee": "exactly_once_v2", "state.dir": str(folder / "state"),
        "default.key.serde": text, "default.value.serde": text, "repartition.purge.interval.ms": "500",
    }.items():  # fmt: skip
        settings.setProperty(key, value)
    kstream, serdes = java.org.apache.kafka.streams.kstream, java.org.apache.kafka.common.serialization.Serdes
    builder = java.org.apache.kafka.streams.StreamsBuilder()
    again = builder.stream(f"{kafka.name}-in").repartition(getattr(kstream.Repartitioned, "as")("again"))
    written = getattr(kstream.Produced, "with")(serdes.String(), serdes.Long())
    counts = java.org.apache.kafka.streams.state.Stores.inMemoryKeyValueStore("counts")  # RocksDB is no jar of ours
    stored = getattr(kstream.Materialized, "as")(counts)
    again.groupByKey().count(stored).toStream().to(f"{kafka.name}-out", written)
    streams = java.org.apache.kafka.streams.KafkaStreams(builder.build(), settings)
    streams.start()
    return streams


def _begin(kafka: Cluster, topic: str) -> int:
    """The first offset of the topic's only partition."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": kafka.servers, "group.id": "test"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE_S)[0])
    finally:
        consumer.close()


def test_a_flink_job_with_pooled_ids_runs_with_exactly_these_rights(
    secure_stack: SecureStack, kafka: Cluster, run: Run, tmp_path: Path
) -> None:
    """It lists who writes to its topic. Numbers from 0 on are what Spring makes, too, and said to be."""
    name, out = f"{kafka.name}-sink", f"{kafka.name}-out"
    scope = ["--for", "flink", "--application", name, "--output-topic", out, "--principal", f"User:{USER}"]
    assert run("acls", "apply", *scope, "--yes")["exit_code"] == 0
    config = secure_stack.client_properties(tmp_path / "client.properties", USER)
    inside = Cluster(secure_stack.stack.secure_bootstrap_servers, kafka.name)
    with jvm(locked("flink-sink"), tmp_path) as java:
        settings = java.java.util.Properties()
        settings.load(java.java.io.FileInputStream(str(config)))
        settings.setProperty("transaction.timeout.ms", "600000")
        lines = LineServer()
        job = start_flink(java, inside, lines.port, producer=settings, naming="POOLING")
        lines.send(b"pooled")

        def told() -> dict[str, Any] | None:
            rows = run("txn", "applications", "--no-remember")["data"]["rows"]
            return next((row for row in rows if row["application"] == name and row["open"]), None)

        row = wait_until(told, what="a transaction of the job", timeout_s=2 * PATIENCE_S)
        assert (row["oldest_open"], row["kind"]) == (f"{name}-0-0", "ambiguous")
        assert [each["product"] for each in row["could_be"]] == ["flink-sink", "spring"]
        lines.close()
        job.getJobExecutionResult().get(2 * PATIENCE_S, java.java.util.concurrent.TimeUnit.SECONDS)
        wait_until(lambda: [each.value() for each in kafka.messages(out)] == [b"pooled"], what="the line")
    _each_right_is_missed(secure_stack, run, scope)
