"""Traces of Connect workers: a broker and two exactly-once workers, and groups beside them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from eosctl.core.workers.modes import Mode
from eosctl.sandbox.servers import process
from eosctl.sandbox.settings import GroupSpec, StackSpec
from eosctl.sandbox.stack import Stack
from tests.failures.makers.ground import Traces, lines_with
from tests.open_transactions import zombie
from tests.sandbox_fixtures import SLOW_SOURCE, rest, slow_config, wait_until

TEXT = "org.apache.kafka.connect.storage.StringConverter"
GROUP = "pair"
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextmanager
def workers(folder: Path, version: str, *modes: Mode, **config: str) -> Iterator[Stack]:
    """A broker and workers in these modes, whose plugins are those of the tests."""
    more = {"plugin.path": str(SLOW_SOURCE), **{name.replace("_", "."): value for name, value in config.items()}}
    spec = StackSpec(kafka_version=version, groups=(GroupSpec(GROUP, modes, worker_config=more),))
    stack = Stack.up(spec, folder / "stack", name=f"traces-{version}", environ=os.environ)
    try:
        yield stack
    finally:
        stack.down()


def answer(url: str, method: str, body: object = None) -> str:
    """What REST answers, an error or not."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with _direct.open(request, timeout=150) as found:
            return str(found.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()


def failed_tasks(url: str, name: str, *, wait_s: float) -> list[dict[str, Any]]:
    """The tasks of a connector once one has FAILED, those that failed shortly after it, too."""

    def found() -> list[dict[str, Any]]:
        return [task for task in rest(f"{url}/connectors/{name}/status")["tasks"] if task["state"] == "FAILED"]

    wait_until(found, what=f"a failed task of {name}", timeout_s=wait_s)
    time.sleep(2)
    return found()


def write(stack: Stack, topic: str, *records: tuple[str, object]) -> None:
    """Records of JSON, outside of any transaction."""
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    for key, value in records:
        producer.produce(topic, json.dumps(value).encode(), key.encode())
    producer.flush()


def _leader(stack: Stack) -> str:
    """The worker whose log says that it leads."""
    for node in stack.state.of_kind("worker"):
        if node.group_id == GROUP and lines_with(
            Path(node.log), "isLeader=true", "Successfully claimed", "fencable producer"
        ):
            return node.address
    return stack.urls(GROUP)[0]


def fencing(traces: Traces, folder: Path, version: str) -> None:
    """Rounds of 40 and 120 recorded tasks: one id a second, and 30 s for a follower, 90 s for the leader."""
    with workers(folder, version, Mode.ENABLED, Mode.ENABLED) as stack:
        url = stack.urls(GROUP)[0]

        def round_of(name: str, count: int) -> None:
            rest(f"{url}/connectors/{name}/config", "PUT", slow_config(f"{name}-out", tasks=2, poll_ms=500))
            wait_until(lambda: len(rest(f"{url}/connectors/{name}/status")["tasks"]) == 2, what="two tasks")
            time.sleep(3)
            write(stack, f"{GROUP}-configs", (f"tasks-fencing-{name}", {"task-count": count}))
            rest(f"{url}/connectors/{name}/config", "PUT", slow_config(f"{name}-out", tasks=2, poll_ms=501))

        def keep(name: str, kind: str, wait_s: float) -> None:
            for task in failed_tasks(url, name, wait_s=wait_s):
                traces.write(
                    f"{kind}-{version}-task{task['id']}-{task['worker_id'].rpartition(':')[2]}.txt", task["trace"]
                )

        round_of("orders", 45)
        round_of("big", 120)
        keep("orders", "fencing-45", 60)
        rest(f"{url}/connectors/orders", "DELETE")
        round_of("changed", 20)
        time.sleep(4)
        answer(f"{url}/connectors/changed/config", "PUT", slow_config("changed-out", tasks=3, poll_ms=502))
        try:
            keep("changed", "fencing-superseded", 45)
        except BaseException as error:
            print("superseded", error)
        time.sleep(35)
        keep("big", "fencing-120", 120)
        rest(f"{url}/connectors/big", "DELETE")
        rest(f"{url}/connectors/changed", "DELETE")
        round_of("lost", 8)
        time.sleep(3)
        thief = Producer({"bootstrap.servers": stack.bootstrap_servers, "transactional.id": f"connect-cluster-{GROUP}"})
        thief.init_transactions()
        try:
            keep("lost", "fencing-lost", 60)
        except BaseException as error:
            print("lost", error)
        for node in stack.state.of_kind("worker"):
            traces.write(f"fencing-{version}-{node.name}.log", Path(node.log).read_text())


def unreachable_leader(traces: Traces, folder: Path, version: str) -> None:
    """Workers that advertise a name which nobody resolves, as that of a container."""
    with workers(folder, version, Mode.ENABLED, Mode.ENABLED, rest_advertised_host_name="worker-2") as stack:
        config = slow_config("orders-out", tasks=2, poll_ms=500)
        for url in stack.urls(GROUP):
            print(answer(f"{url}/connectors/orders/config", "PUT", config)[:300])
        url = stack.urls(GROUP)[0]
        for task in failed_tasks(url, "orders", wait_s=60):
            traces.write(f"leader-not-reached-{version}-task{task['id']}.txt", task["trace"])


def config_topic(traces: Traces, folder: Path, version: str) -> None:
    """Answers and lines about the config topic, and of tasks of one worker each."""
    with workers(folder, version, Mode.ENABLED, Mode.ENABLED) as stack:
        url = stack.urls(GROUP)[0]
        guarded(lambda: _null_offsets(traces, url))
        guarded(lambda: _fenced_between(traces, stack, url, folder))
        guarded(lambda: _behind_an_open_transaction(traces, stack, url, folder))
        guarded(lambda: _frozen_broker(traces, stack))
        for node in stack.state.of_kind("worker"):
            traces.write(f"config-{version}-{node.name}.log", Path(node.log).read_text())


def guarded(step: Callable[[], None]) -> None:
    """A step whose failure does not end the others."""
    try:
        step()
    except BaseException as error:
        print(repr(error)[:600])


def races(traces: Traces, folder: Path, version: str) -> None:
    """Requests at the same moment, and task configs that lack their connector's others."""
    with workers(folder, version, Mode.ENABLED, Mode.ENABLED) as stack:
        names = [f"orders{number}" for number in range(8)]
        with ThreadPoolExecutor(24) as threads:

            def all_at_once(method: str, path: str = "", body: object = None) -> list[str]:
                urls = [each for each in stack.urls(GROUP) for _name in names]
                return list(
                    threads.map(lambda u, n: answer(f"{u}/connectors/{n}{path}", method, body), urls, names * 2)
                )

            said: list[str] = []
            for _round in range(5):
                said += all_at_once("PUT", "/config", slow_config("orders", tasks=1, poll_ms=500))
                said += all_at_once("DELETE")
        print(Counter(re.sub(r"\d", "", each)[:150] for each in said))
        conflicts = sorted({each for each in said if '"error_code":409' in each})
        traces.write(f"rebalance-expected-{version}.json", "\n".join(conflicts) or "\n".join(said)[:3000])
        for each in stack.urls(GROUP):
            rest(
                f"{each}/admin/loggers/org.apache.kafka.connect.storage.KafkaConfigBackingStore",
                "PUT",
                {"level": "DEBUG"},
            )
        config = slow_config("orders-out", tasks=2)
        write(stack, f"{GROUP}-configs", ("connector-half", {"properties": {**config, "name": "half"}}),
              ("task-half-0", {"properties": config}), ("commit-half", {"tasks": 2}),
              ("task-gone-0", {"properties": config}), ("commit-gone", {"tasks": 1}))  # fmt: skip
        time.sleep(4)
        log = Path(stack.node(f"{GROUP}-worker-0").log)
        traces.write(
            f"incomplete-{version}.txt", "\n".join(lines_with(log, "incomplete set", "log compaction", "gone", "half"))
        )
        stack.stop_nodes([f"{GROUP}-worker-0", f"{GROUP}-worker-1"])
        write(stack, f"{GROUP}-configs", ("connector-gone", None))
        stack.start_node(f"{GROUP}-worker-0")
        time.sleep(3)
        traces.write(
            f"incomplete-start-{version}.txt",
            "\n".join(lines_with(log, "incomplete set", "log compaction", "gone", "half")),
        )


def idle_fenced(traces: Traces, folder: Path, version: str) -> None:
    """A task without a transaction is fenced, then its file gets a line."""
    with workers(folder, version, Mode.ENABLED) as stack:
        url = stack.urls(GROUP)[0]
        rest(f"{url}/connectors/orders/config", "PUT", _file_config(folder, "orders"))
        time.sleep(8)
        thief = Producer({"bootstrap.servers": stack.bootstrap_servers, "transactional.id": f"{GROUP}-orders-0"})
        thief.init_transactions()
        with (folder / "orders.txt").open("a") as file:
            file.write("two\n")
        [task] = failed_tasks(url, "orders", wait_s=60)
        traces.write(f"connect-producer-fenced-{version}.txt", task["trace"])


def _null_offsets(traces: Traces, url: str) -> None:
    config = slow_config(
        "null-out", tasks=1, poll_ms=500, cheat="null-offsets", **{"offsets.storage.topic": "null-offsets"}
    )
    rest(f"{url}/connectors/nulls/config", "PUT", config)
    [task] = failed_tasks(url, "nulls", wait_s=60)
    traces.write("offsets-not-written-4.3.1.txt", task["trace"])
    rest(f"{url}/connectors/nulls", "DELETE")


def _file_config(folder: Path, name: str, **more: str) -> dict[str, str]:
    path = folder / f"{name}.txt"
    path.write_text("one\n")
    return {
        "connector.class": "FileStreamSource", "tasks.max": "1", "file": str(path), "topic": f"{name}-out",
        "key.converter": TEXT, "value.converter": TEXT, **{key.replace("_", "."): value for key, value in more.items()},
    }  # fmt: skip


def _fenced_between(traces: Traces, stack: Stack, url: str, folder: Path) -> None:
    config = _file_config(folder, "orders", transaction_boundary="interval", transaction_boundary_interval_ms="15000")
    rest(f"{url}/connectors/orders/config", "PUT", config)
    wait_until(
        lambda: [t["state"] for t in rest(f"{url}/connectors/orders/status")["tasks"]] == ["RUNNING"], what="a task"
    )
    time.sleep(5)
    thief = Producer({"bootstrap.servers": stack.bootstrap_servers, "transactional.id": f"{GROUP}-orders-0"})
    thief.init_transactions()
    [task] = failed_tasks(url, "orders", wait_s=60)
    traces.write("connect-producer-fenced-4.3.1.txt", task["trace"])
    rest(f"{url}/connectors/orders", "DELETE")


def _behind_an_open_transaction(traces: Traces, stack: Stack, url: str, folder: Path) -> None:
    rest(f"{url}/connectors/late/config", "PUT", _file_config(folder, "late"))
    time.sleep(6)
    rest(f"{url}/connectors/late/stop", "PUT")
    time.sleep(4)
    thief = zombie(
        stack, "open-offsets", f"{GROUP}-offsets", key=b'["other",{"filename":"x"}]', value=b'{"position":1}'
    )
    offsets = {"offsets": [{"partition": {"filename": str(folder / "late.txt")}, "offset": {"position": 1}}]}
    with ThreadPoolExecutor(3) as threads:
        patched = [
            threads.submit(answer, f"{each}/connectors/late/offsets", "PATCH", offsets) for each in stack.urls(GROUP)
        ]
        got = threads.submit(answer, f"{url}/connectors/late/offsets", "GET")
        traces.write("offsets-read-4.3.1.txt", "\n".join([*(each.result() for each in patched), got.result()]))
    thief.abort_transaction()


def _frozen_broker(traces: Traces, stack: Stack) -> None:
    broker = stack.node("broker-1").process
    process.signal_group(broker, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(2) as threads:
            said = list(threads.map(
                lambda each: answer(f"{each}/connectors/frozen/config", "PUT", slow_config("frozen", tasks=1)),
                stack.urls(GROUP),
            ))  # fmt: skip
    finally:
        process.signal_group(broker, signal.SIGCONT)
    traces.write("config-topic-not-written-4.3.1.txt", "\n".join(said))


def ghost(traces: Traces, folder: Path, version: str) -> None:
    """A connector out of an aborted config record, and one of its two workers goes from preparing to enabled."""
    with workers(folder, version, Mode.PREPARING, Mode.PREPARING) as stack:
        url = stack.urls(GROUP)[0]
        properties = {"properties": {**slow_config("ghost-out", tasks=4, poll_ms=500), "name": "ghost"}}
        record = json.dumps(properties).encode()
        writer = zombie(stack, "open-configs", f"{GROUP}-configs", key=b"connector-ghost", value=record)
        writer.abort_transaction()
        wait_until(lambda: len(rest(f"{url}/connectors/ghost/status")["tasks"]) == 4, what="the ghost's tasks")
        time.sleep(3)
        for number in range(2):
            stack.restart_node(f"{GROUP}-worker-{number}", mode=Mode.ENABLED)
            time.sleep(8)
            for each, node in enumerate(stack.state.of_kind("worker")):
                traces.write(f"ghost-{version}-{number}-{each}.log", Path(node.log).read_text())
                traces.write(
                    f"ghost-{version}-{number}-{each}.json", answer(f"{node.address}/connectors/ghost/status", "GET")
                )


MM2 = """clusters = A, B
A.bootstrap.servers = {servers}
B.bootstrap.servers = {servers}
A->B.enabled = true
topics = orders
plugin.discovery = service_load
emit.heartbeats.enabled = false
emit.checkpoints.enabled = false
sync.topic.acls.enabled = false
replication.factor = 1
offset.storage.replication.factor = 1
config.storage.replication.factor = 1
status.storage.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.partitions = 1
status.storage.partitions = 1
tasks.max = 2
refresh.topics.interval.seconds = 1
B.exactly.once.source.support = enabled
"""


def mirror_maker_nodes(traces: Traces, folder: Path, version: str) -> None:
    """Two nodes of a dedicated MirrorMaker without internal REST."""
    spec = StackSpec(kafka_version=version, groups=(), broker_config={"num.partitions": "4"})
    stack = Stack.up(spec, folder / "stack", name=f"traces-{version}", environ=os.environ)
    started = []
    try:
        write(stack, "orders", *((str(key), "line") for key in range(20)))
        (folder / "mm2.properties").write_text(MM2.format(servers=stack.bootstrap_servers))
        command = [stack.state.java, "-Xmx256m", f"@{stack.directory / 'java.arguments'}",
                   "org.apache.kafka.connect.mirror.MirrorMaker", str(folder / "mm2.properties")]  # fmt: skip
        for number in range(2):
            with (folder / f"mm{number}.log").open("wb") as output:
                started.append(
                    subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True, cwd=folder)
                )
        logs = [folder / f"mm{number}.log" for number in range(2)]
        word = "dedicated.mode.enable.internal.rest"
        guarded(lambda: wait_until(lambda: any(lines_with(log, word) for log in logs), what="the line", timeout_s=90))
        time.sleep(3)
        for log in logs:
            traces.write(f"{log.stem}-{version}.log", log.read_text())
    finally:
        for each in started:
            os.killpg(each.pid, signal.SIGKILL)
            each.wait()
        stack.down()
