"""Traces of what goes wrong around tasks: a plugin, a secret, a clock, a login, a disk, a broker that is away."""

from __future__ import annotations

import os
import shutil
import signal
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not listed as re-exported

from eosctl.core.workers.modes import Mode
from eosctl.sandbox.login import SecureListener
from eosctl.sandbox.servers import process
from eosctl.sandbox.settings import GroupSpec, StackSpec, read_lock
from eosctl.sandbox.stack import Stack
from tests.applications.jvm import jvm
from tests.failures.makers.clients import one_broker
from tests.failures.makers.ground import (
    Traces,
    client,
    events_with,
    failing,
    log_of,
    logging_option,
    producer,
    record,
    trace_of,
)
from tests.failures.makers.workers import GROUP, answer, failed_tasks, guarded, workers
from tests.sandbox_fixtures import rest, slow_config, wait_until

FIRST, SECOND = f"{GROUP}-worker-0", f"{GROUP}-worker-1"
_OLDEST_MS = {"message.timestamp.before.max.ms": "1"}
"""A topic that refuses every record by its time, as brokers refuse those of a clock that is wrong."""


def missing_plugin(traces: Traces, folder: Path, version: str) -> None:
    """One of two workers has no longer the plugin of a connector; then the leader refuses a signature."""
    with workers(folder, version, Mode.ENABLED, Mode.ENABLED) as stack:
        urls = stack.urls(GROUP)
        rest(f"{urls[0]}/connectors/orders/config", "PUT", slow_config("orders-out", tasks=4, poll_ms=500))
        wait_until(lambda: len(rest(f"{urls[0]}/connectors/orders/status")["tasks"]) == 4, what="the tasks")
        time.sleep(3)
        (folder / "plugins").mkdir()
        config = Path(stack.node(SECOND).config)
        stack.stop_node(SECOND)
        with config.open("a") as properties:
            properties.write(f"\nplugin.path={folder / 'plugins'}\n")  # the last one counts
        stack.start_node(SECOND)
        guarded(lambda: _keep_failed(traces, urls[0], "orders", f"missing-plugin-{version}"))
        traces.write(f"missing-plugin-status-{version}.json", answer(f"{urls[0]}/connectors/orders/status", "GET"))
        config_of = slow_config("orders-out", tasks=1)
        traces.write(f"missing-plugin-put-{version}.json", answer(f"{urls[1]}/connectors/new/config", "PUT", config_of))
        for number, url in enumerate(urls):
            traces.write(f"signature-{version}-{number}.json", _badly_signed(f"{url}/connectors/orders/fence"))
        for name in (FIRST, SECOND):
            traces.write(f"missing-plugin-{version}-{name}.log", log_of(stack, name).read_text())


def _badly_signed(url: str) -> str:
    headers = {
        "Content-Type": "application/json",
        "X-Connect-Authorization": "bm90IHRoZSBrZXk=",
        "X-Connect-Request-Signature-Algorithm": "HmacSHA256",
    }
    request = urllib.request.Request(url, b"", headers, method="PUT")
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as found:
            return str(found.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()


def _keep_failed(traces: Traces, url: str, name: str, file: str) -> None:
    for task in failed_tasks(url, name, wait_s=90):
        traces.write(f"{file}-task{task['id']}.txt", task["trace"])


def settings_and_clocks(traces: Traces, folder: Path, version: str) -> None:
    """A file of secrets that is not there, and topics that refuse the time of a record."""
    provider = "org.apache.kafka.common.config.provider.FileConfigProvider"
    with workers(folder, version, Mode.ENABLED, config_providers="file", config_providers_file_class=provider) as stack:
        url = stack.urls(GROUP)[0]
        secret = folder / "orders.properties"
        secret.write_text("topic=secret-out\n")
        config = slow_config(f"${{file:{secret}:topic}}", tasks=1, poll_ms=500)
        rest(f"{url}/connectors/secret/config", "PUT", config)
        wait_until(lambda: rest(f"{url}/connectors/secret/status")["tasks"], what="its task")
        secret.unlink()
        answer(f"{url}/connectors/secret/restart?includeTasks=true", "POST")
        guarded(lambda: _keep_failed(traces, url, "secret", f"missing-secret-{version}"))
        traces.write(f"missing-secret-{version}.json", answer(f"{url}/connectors/secret/status", "GET"))
        rest(f"{url}/connectors/secret", "DELETE")
        admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
        admin.create_topics([NewTopic("late-out", 1, 1, config=_OLDEST_MS)])["late-out"].result(30)
        rest(f"{url}/connectors/late/config", "PUT", slow_config("late-out", tasks=1, poll_ms=500))
        guarded(lambda: _keep_failed(traces, url, "late", f"invalid-timestamp-{version}"))
        rest(f"{url}/connectors/late", "DELETE")
        own = NewTopic("own-offsets", 1, 1, config={**_OLDEST_MS, "cleanup.policy": "compact"})
        admin.create_topics([own])["own-offsets"].result(30)
        more = {"offsets.storage.topic": "own-offsets"}
        rest(f"{url}/connectors/own/config", "PUT", slow_config("own-out", tasks=1, poll_ms=500, **more))
        guarded(lambda: _keep_failed(traces, url, "own", f"invalid-timestamp-offsets-{version}"))
        rest(f"{url}/connectors/own", "DELETE")
        rest(f"{url}/connectors/gone/config", "PUT", slow_config("gone-out", tasks=1, poll_ms=500))
        time.sleep(8)
        broker = stack.node("broker-1").process
        process.signal_group(broker, signal.SIGKILL)
        time.sleep(25)
        traces.write(f"settings-{version}.log", log_of(stack, FIRST).read_text())


def partitioned_config_topic(traces: Traces, folder: Path, version: str) -> None:
    """A config topic of three partitions: the worker does not start."""
    spec = StackSpec(kafka_version=version, groups=())
    stack = Stack.up(spec, folder / "stack", name=f"traces-{version}", environ=os.environ)
    try:
        admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
        topic = NewTopic("three-configs", 3, 1, config={"cleanup.policy": "compact"})
        admin.create_topics([topic])["three-configs"].result(30)
        guarded(lambda: stack.add_group(GroupSpec("three"), start_timeout_s=60))
        traces.write(f"config-topic-partitions-{version}.log", log_of(stack, "three-worker-0").read_text())
    finally:
        stack.down()


def wrong_password(traces: Traces, folder: Path, version: str) -> None:
    """A client whose password the brokers do not have."""
    spec = StackSpec(kafka_version=version, groups=(), secure=SecureListener.with_users(["reader"]))
    stack = Stack.up(spec, folder / "stack", name=f"traces-{version}", environ=os.environ)
    try:
        settings = Path(stack.state.command_configs["reader"]).read_text()
        given = dict(
            line.split("=", 1) for line in settings.replace("\\\n", "").splitlines() if "=" in line and line[0] != "#"
        )
        with jvm(read_lock(version), folder, options=[logging_option(folder, version)]) as java:
            made = client(java, stack, max_block_ms="8000")
            for name, value in given.items():
                made.put(name, value.replace('password="', 'password="not-'))
            made.put("bootstrap.servers", stack.secure_bootstrap_servers)
            admin = java.org.apache.kafka.clients.admin.Admin.create(made)
            with failing() as caught:
                admin.describeCluster().clusterId().get()
            traces.write(f"sasl-{version}.txt", trace_of(java, caught[0]))
            traces.write(f"sasl-{version}.log", (folder / "jvm.out").read_text())
    finally:
        stack.down()


def wrong_time(traces: Traces, folder: Path, version: str) -> None:
    """A producer whose clock is two hours ahead."""
    with one_broker(folder, version) as (stack, java):
        sender = producer(java, stack, "pay-6")
        sender.beginTransaction()
        ahead = java.java.lang.Long.valueOf(int(time.time() * 1000) + 7_200_000)
        kafka = java.org.apache.kafka.clients.producer
        with failing() as caught:
            sender.send(record(java, "payments")).get()
            sender.send(kafka.ProducerRecord("payments", 0, ahead, None, "line")).get()
        traces.write(f"invalid-timestamp-send-{version}.txt", trace_of(java, caught[0]))
        with failing() as caught:
            sender.commitTransaction()
        traces.write(f"invalid-timestamp-commit-{version}.txt", trace_of(java, caught[0]))


def closed_forcefully(traces: Traces, folder: Path, version: str) -> None:
    """A producer that is closed at once while its commit waits for a broker that does not answer."""
    with one_broker(folder, version) as (stack, java), ThreadPoolExecutor(1) as threads:
        sender = producer(java, stack, "pay-8")
        sender.beginTransaction()
        sender.send(record(java, "payments")).get()
        broker = stack.node("broker-1").process
        process.signal_group(broker, signal.SIGSTOP)
        try:
            with failing() as caught:
                waiting = threads.submit(sender.commitTransaction)
                time.sleep(2)
                sender.close(java.java.time.Duration.ofMillis(0))
                waiting.result()
            traces.write(f"closed-forcefully-{version}.txt", trace_of(java, caught[0]))
        finally:
            process.signal_group(broker, signal.SIGCONT)


def full_disk(traces: Traces, folder: Path, version: str) -> None:
    """A broker whose log directory is on a file system that runs full; needs root, to mount one of its own."""
    disk = folder / "disk"
    disk.mkdir()
    os.system(f"mount -t tmpfs -o size=40m tmpfs {disk}")  # noqa: S605
    try:
        with one_broker(folder, version) as (stack, java):
            data = stack.directory / "broker-1" / "data"
            stack.stop_node("broker-1")
            shutil.move(data, disk / "data")
            data.symlink_to(disk / "data")
            stack.start_node("broker-1")
            sender = producer(java, stack, "pay-7", max_block_ms="5000", delivery_timeout_ms="6000",
                              request_timeout_ms="3000", linger_ms="0")  # fmt: skip
            sender.beginTransaction()
            sender.send(record(java, "payments")).get()
            with (disk / "filler").open("wb") as filler, suppress(OSError):
                while True:
                    filler.write(b"x" * 65536)
                    filler.flush()
            with failing():
                for _ in range(200):
                    sender.send(record(java, "payments", "x" * 9000)).get()
            time.sleep(3)
            log = Path(stack.node("broker-1").log)
            traces.write(f"full-disk-{version}.txt", "\n".join(events_with(log, "No space left", "KafkaStorage")[:6]))
            traces.write(f"full-disk-{version}.log", log.read_text())
    finally:
        os.system(f"umount -l {disk}")  # noqa: S605


def old_plugin(traces: Traces, folder: Path, version: str) -> None:
    """A plugin that was built for Kafka before 4.4, with the classes of 4.4."""
    plugin = [each for each in read_lock(version) if each.artifact in ("connect-file", "connect-api")]
    jars = [*read_lock("4.4.0"), *plugin]
    with jvm(jars, folder) as java:
        with failing() as caught:
            java.org.apache.kafka.connect.file.FileStreamSourceConnector().version()
        traces.write(f"old-plugin-{version}.txt", trace_of(java, caught[0]))
