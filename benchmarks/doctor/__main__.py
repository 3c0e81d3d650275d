"""`eosctl doctor` of 500 source connectors with 10 tasks each, beside what a user would paste: curl and Kafka's tools.

One real broker with the ids, configs and offsets of all tasks, one real worker, and before it a front that makes up the
connectors. The user's script asks for each connector's status, lists the transactions and describes the internal
topics; it judges nothing.

`--far plaintext` or `--far tls` has one connector, of a worker and a broker that are 20 ms away (`benchmarks.far`),
without a login or over TLS with SCRAM-SHA-512.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.doctor.front import connector_config, connector_name
from benchmarks.far import RTT_MS, far_stack
from benchmarks.kafka import kafka_jars
from benchmarks.pairs import Run, compare, compile_sources, run_once
from benchmarks.stacks import own_folder, stack_in
from eosctl.connect.rest import RestConnectWorker
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import OutRecord
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.machine.java import require_java
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack

GROUP, CONFIGS, OFFSETS = "connect-eos", "many-configs", "many-offsets"


def main() -> None:
    """Start brokers and workers, make the connectors, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connectors", type=int, default=500)
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--far", choices=("plaintext", "tls"))
    arguments = parser.parse_args()
    if shutil.which("curl") is None:
        sys.exit("this benchmark needs curl")
    compile_sources()
    with own_folder() as directory:
        if arguments.far:
            far(directory, secure=arguments.far == "tls", runs=arguments.runs)
            return
        names = [connector_name(number) for number in range(arguments.connectors)]
        with (
            stack_in(directory, StackSpec()) as stack,
            many_connectors(stack, directory, arguments.connectors, arguments.tasks) as (doctor, url),
        ):
            script = ["bash", str(write_script(directory / "look.sh", stack.bootstrap_servers, url, names))]
            print(f"{arguments.connectors} connectors, {arguments.tasks} tasks each")
            compare(
                "eosctl doctor", lambda: doctor, "curl and Kafka's tools", lambda: script,
                runs=arguments.runs, run=run_with_findings,
            )  # fmt: skip


def run_with_findings(command: Sequence[str]) -> Run:
    """Run once; doctor has findings here, as one broker has too few replicas."""
    return run_once(command, codes=(0, 3))


@contextmanager
def many_connectors(stack: Stack, directory: Path, connectors: int, tasks: int) -> Iterator[tuple[Sequence[str], str]]:
    """Make connectors; give the line of doctor, and the front's URL, which serves until the block ends."""
    names = [connector_name(number) for number in range(connectors)]
    make_ids(stack, directory, names, tasks)
    make_records(stack, names, tasks)
    with front(stack, connectors, tasks) as url:
        [advertised] = stack.urls(GROUP)
        yield (
            [
                *(sys.executable, "-m", "eosctl", "doctor", "-b", stack.bootstrap_servers, "-g", GROUP),
                *("--config-topic", CONFIGS, "--offset-topic", OFFSETS, "--connect-map", f"{advertised}={url}"),
            ],
            url,
        )


def far(directory: Path, *, secure: bool, runs: int) -> None:
    """Compare on one connector with one task, 20 ms away."""
    with far_stack(StackSpec(), directory / "stack", secure=secure) as far_away:
        [url] = far_away.stack.urls(GROUP)
        (directory / "lines").write_text("a line\n")
        name = connector_name(0)
        config = {**connector_config(name, 1), "file": str(directory / "lines")}
        del config["name"]
        create(url, name, config)
        doctor = [sys.executable, "-m", "eosctl", "doctor", "-g", GROUP, *far_away.options()]
        way, topics = far_away.connect_map[url], far_away.stack.state.topics[GROUP]
        script = write_script(
            directory / "look.sh", far_away.bootstrap_servers, way, [name],
            topics=(topics["config"], topics["offset"]), command_config=far_away.command_config,
        )  # fmt: skip
        print(f"one connector, {RTT_MS} ms away, {'TLS with SCRAM' if secure else 'plaintext'}")
        compare(
            "eosctl doctor", lambda: doctor, "curl and Kafka's tools", lambda: ["bash", str(script)],
            runs=runs, run=run_with_findings,
        )  # fmt: skip


def create(url: str, name: str, config: Mapping[str, str]) -> None:
    """Create a connector and wait until its task runs."""
    deadline = Deadline.after(120)
    worker = RestConnectWorker(url, deadline=deadline)
    worker.put_connector_config(name, config)
    for _ in deadline.rounds(0.5):
        found = worker.connectors().get(name)
        if found is not None and [task.state for task in found.tasks] == ["RUNNING"]:
            return


def make_ids(stack: Stack, directory: Path, names: list[str], tasks: int) -> None:
    """Make the transactional ids of all tasks known to their coordinators."""
    ids = directory / "ids"
    ids.write_text("".join(f"{GROUP}-{name}-{task}\n" for name in names for task in range(tasks)), encoding="utf-8")
    fence = [*(sys.executable, "-m", "eosctl", "fence", "--from-file", str(ids)), "--create-unknown", "--yes"]
    target = ["-b", stack.bootstrap_servers, "-g", GROUP, "--timeout", "10m"]
    subprocess.run([*fence, *target], check=True, capture_output=True)


def make_records(stack: Stack, names: list[str], tasks: int) -> None:
    """Write what a leader and the tasks write, into topics that the worker does not read."""
    settings = ClientSettings((stack.bootstrap_servers,))
    with KafkaTopicClient(settings, deadline=Deadline.after(600)) as store:
        for topic, partitions in ((CONFIGS, 1), (OFFSETS, 25)):
            store.create(topic, partitions=partitions, replication_factor=1, config={"cleanup.policy": "compact"})
        store.write(config_records(names, tasks))
        store.write(
            OutRecord(OFFSETS, json.dumps([name, {"table": task}]).encode(), b'{"position":1}', None)
            for name in names
            for task in range(tasks)
        )


def config_records(names: list[str], tasks: int) -> Iterator[OutRecord]:
    """Yield config, task configs, commit and task count of each connector."""
    for name in names:
        config = connector_config(name, tasks)
        pairs: list[tuple[str, object]] = [(f"connector-{name}", {"properties": config})]
        pairs += [(f"task-{name}-{task}", {"properties": {**config, "task.class": "T"}}) for task in range(tasks)]
        pairs += [(f"commit-{name}", {"tasks": tasks}), (f"tasks-fencing-{name}", {"task-count": tasks})]
        for key, value in pairs:
            yield OutRecord(CONFIGS, key.encode(), json.dumps(value, separators=(",", ":")).encode(), 0)


@contextmanager
def front(stack: Stack, connectors: int, tasks: int) -> Iterator[str]:
    """Give the URL of the front, which serves until the block ends."""
    [worker] = stack.urls(GROUP)
    command = [sys.executable, "-m", "benchmarks.doctor.front", worker, str(connectors), str(tasks)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def write_script(
    path: Path,
    bootstrap_servers: str,
    url: str,
    names: list[str],
    *,
    topics: Sequence[str] = (CONFIGS, OFFSETS),
    command_config: str = "",
) -> Path:
    """Write what the user would paste, which prints what has to be read; return the path."""
    java = require_java(os.environ)
    jars = os.pathsep.join(map(str, kafka_jars(java)))
    tool = f"{shlex.quote(str(java.executable))} -cp {shlex.quote(jars)} org.apache.kafka.tools"
    server = f"--bootstrap-server {bootstrap_servers}"
    if command_config:
        server += f" --command-config {shlex.quote(command_config)}"
    lines = [
        "set -e",
        *(f"curl -sS --noproxy '*' {url}/connectors/{name}/status" for name in names),
        f"{tool}.TransactionsCommand {server} list",
        f"{tool}.TopicCommand {server} --describe --topic '{'|'.join([*topics, '__transaction_state'])}'",
        f"{tool}.consumer.group.ConsumerGroupCommand {server} --describe --group {GROUP} --members",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
