"""`eosctl sandbox` on real processes: up, status, logs, down, a crash of eosctl, and the second Kafka version."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.java.properties import properties_text
from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError
from eosctl.sandbox.login import SandboxLogin, SecureFiles
from eosctl.sandbox.operations import sandbox_status
from eosctl.sandbox.rows import FoundSandbox
from eosctl.sandbox.servers import process
from eosctl.sandbox.servers import process as state
from eosctl.sandbox.servers.process import take_ports
from eosctl.sandbox.settings import BrokerPorts, GroupSpec, StackSpec, broker_properties, worker_properties
from eosctl.sandbox.stack import Stack
from eosctl.target import DEFAULT_TOPICS
from tests.sandbox.test_login import status_of
from tests.sandbox_fixtures import GROUP, PATIENCE_S, added_group, rest, wait_until
from tests.secure_stack import SecureStack


def _runs(pid: int) -> bool:
    """Whether a process is there and not just waiting to be collected (an orphan's new parent may be slow)."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


def test_a_reused_pid_is_another_process(tmp_path: Path) -> None:
    """A pid from a state file of last week may belong to anybody now."""
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    mine = process.spawn(sleeper, log=tmp_path / "log", directory=tmp_path, environ=os.environ)
    try:
        stranger = process.ProcessId(mine.pid, mine.start_ticks + 1)
        assert not stranger.alive()
        process.stop([stranger], grace_s=0.1)
        assert mine.alive()
    finally:
        process.stop([mine])
    assert not mine.alive()


def test_what_does_not_hear_sigterm_is_killed(tmp_path: Path) -> None:
    code = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    deaf = process.spawn([sys.executable, "-c", code], log=tmp_path / "log", directory=tmp_path, environ=os.environ)
    wait_until(lambda: (tmp_path / "log").read_text(), what="the deaf process to start")
    process.stop([deaf], grace_s=0.3)
    assert not deaf.alive()


def test_the_exports_name_the_internal_topics(tmp_path: Path) -> None:
    """Those of a kept rehearsal are not the default ones: every command failed with "there is no topic"."""
    directory = tmp_path / "sandbox" / "x"
    directory.mkdir(parents=True)
    topics = GroupSpec("rehearse").topics()
    worker = state.Node("w", "worker", "http://127.0.0.1:1", 1, 2, "c", "l", group_id="rehearse")
    state.save(state.StackState("x", str(directory), "4.3.1", (worker,), {"rehearse": topics}))
    environ = sandbox_status(tmp_path, "x").data_of(FoundSandbox).environ
    assert isinstance(environ, dict)
    names = [f"EOSCTL_{name.upper()}" for name in DEFAULT_TOPICS]
    assert sorted(environ[name] for name in names) == sorted(topics.values())


def test_state_survives_and_nonsense_is_no_stack(tmp_path: Path) -> None:
    node = state.Node("broker-1", "broker", "127.0.0.1:1", 1, 2, "c", "l")
    known = state.StackState("x", str(tmp_path), "4.3.1", (node,), {"g": {"config": "c"}})
    state.save(known)
    assert state.load(tmp_path) == known
    (tmp_path / "stack.json").write_text('{"nodes": [{"nope": 1}]}')
    assert state.load(tmp_path) is None
    assert state.load(tmp_path / "absent") is None


def test_java_reads_back_what_the_property_files_say() -> None:
    """A sandbox below a directory like /home/jörg could not start: Java reads these files as ISO-8859-1."""
    text = properties_text({"log.dirs": "/home/jörg/a b", "user": " C:\\x😀"})
    assert text == "log.dirs=/home/j\\u00f6rg/a b\nuser=\\ C:\\u005cx\\ud83d\\ude00\n"


@pytest.mark.parametrize(
    ("group", "config_topic"),
    [(GroupSpec(), "connect-configs"), (GroupSpec("g"), "g-configs"), (GroupSpec("g", topic_prefix="p"), "p-configs")],
)
def test_two_groups_never_share_topics_by_default(group: GroupSpec, config_topic: str) -> None:
    """Every group's prefix used to be `connect`: a second group read the first one's connectors."""
    assert group.topics()["config"] == config_topic


def test_clients_that_begin_at_a_forwarder_stay_with_it(tmp_path: Path) -> None:
    """The brokers tell them the forwarders' ports, and listen themselves at others."""
    ports = [BrokerPorts(1, 2, 3), BrokerPorts(4, 5, 6)]
    spec = StackSpec(brokers=2, forwarded=(70, 80))
    told = broker_properties(2, ports, tmp_path, spec, SecureFiles(tmp_path), SandboxLogin(tmp_path))
    assert told["listeners"].split(",")[1] == "FORWARDED://127.0.0.1:6"
    assert told["advertised.listeners"] == "PLAINTEXT://127.0.0.1:4,FORWARDED://127.0.0.1:80"
    assert "FORWARDED:PLAINTEXT" in told["listener.security.protocol.map"]
    plain = broker_properties(2, ports, tmp_path, StackSpec(brokers=2), SecureFiles(tmp_path), SandboxLogin(tmp_path))
    assert not any("FORWARDED" in value for value in plain.values())


def test_worker_properties_are_per_group() -> None:
    group = GroupSpec("g", (Mode.PREPARING,), "g", {"offset.storage.partitions": "3"})
    properties = worker_properties(group, Mode.PREPARING, bootstrap_servers="b:1", port=1, replication=1)
    assert properties["exactly.once.source.support"] == "preparing"
    assert (properties["config.storage.topic"], properties["offset.storage.partitions"]) == ("g-configs", "3")
    assert "group.id=g\n" in properties_text(properties)


@pytest.mark.parametrize("has_agent", [False, True])
def test_jmx_has_the_metrics_of_a_worker_only_where_an_agent_reads_them(has_agent: bool) -> None:
    """A tenth of what a worker did was to tell JMX of each client's metrics, which nobody asked for."""
    properties = worker_properties(
        GroupSpec(), Mode.ENABLED, bootstrap_servers="b:1", port=1, replication=1, has_agent=has_agent
    )
    told = {name for name in properties if name.endswith("metric.reporters") and not properties[name]}
    clients = {"producer.metric.reporters", "consumer.metric.reporters", "admin.metric.reporters"}
    assert told == (clients if has_agent else {"metric.reporters", *clients})


def test_status_and_down_without_a_sandbox(invoke: Any) -> None:
    status = invoke("sandbox", "status")
    assert (status.exit_code, "eosctl sandbox up" in status.stdout) == (0, True)
    assert invoke("sandbox", "down").exit_code == 0
    assert invoke("sandbox", "logs").exit_code == 1
    assert invoke("sandbox", "up", "--name", "../x").exit_code == 2
    assert invoke("sandbox", "up", "--kafka-version", "1.0").exit_code == 2
    assert invoke("sandbox", "up", "--eos", "disabled", "--eos", "enabled").exit_code == 2


@pytest.mark.parametrize("verb", ["up", "down"])
def test_only_one_eosctl_starts_or_stops_a_sandbox(invoke: Any, tmp_path: Path, verb: str) -> None:
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    lock = tmp_path / "eosctl" / "sandbox" / ".default.lock"
    lock.parent.mkdir(parents=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        refused = invoke("sandbox", verb, environ=environ)
    assert (refused.exit_code, refused.stdout) == (6, "")
    assert "another eosctl is starting or stopping the sandbox default" in refused.stderr


@pytest.mark.live
def test_up_status_logs_down(invoke: Any) -> None:
    environ = dict(os.environ)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        environ.pop(name, None)
    up = invoke(
        "-o", "json", "sandbox", "up", "--workers", "2", "--eos", "disabled", "--eos", "preparing", environ=environ
    )
    try:
        assert up.exit_code == 0, up.stderr
        rows = up.json()["data"]["rows"]
        assert [row["mode"] for row in rows] == [None, "disabled", "preparing"]
        assert all(row["address"].removeprefix("http://").startswith("127.0.0.1:") for row in rows)
        urls = [row["address"] for row in rows[1:]]
        assert {status_of(url) for url in urls} == {401}, "whoever was on the machine could start connectors as oneself"
        target = environ | up.json()["data"]["environ"]
        assert Path(target["EOSCTL_CONNECT_PASSWORD_FILE"]).stat().st_mode & 0o777 == 0o600
        listed = invoke("workers", "list", "-o", "json", environ=target)
        assert [row["health"] for row in listed.json()["data"]["rows"]] == ["healthy"] * 2, listed.stderr
        again = invoke("sandbox", "up", environ=environ)
        assert (again.exit_code, "already up" in again.stderr) == (6, True)
        assert "broker-1" in invoke("sandbox", "logs", "broker-1", "-n", "1", environ=environ).stdout
        assert invoke("sandbox", "logs", "nosuch", environ=environ).exit_code == 1
    finally:
        down = invoke("-o", "json", "sandbox", "down", environ=environ)
    assert len(down.json()["data"]["summary"]["stopped"]) == 3
    assert not any(_runs(row["pid"]) for row in rows)
    assert not Path(up.json()["data"]["directory"]).exists()


@pytest.mark.live
def test_a_crash_leaves_a_stack_that_status_and_down_know(invoke: Any, tmp_path: Path) -> None:
    """kill -9 of `sandbox up` while its worker starts."""
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    command = [sys.executable, "-m", "eosctl", "sandbox", "up"]
    starting = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    directory = tmp_path / "state" / "eosctl" / "sandbox" / "default"

    def worker_started() -> bool:
        known = state.load(directory)
        return known is not None and bool(known.of_kind("worker"))

    wait_until(worker_started, what="the worker's process to be written down")
    starting.send_signal(signal.SIGKILL)
    starting.wait()
    rows = invoke("-o", "json", "sandbox", "status", environ=environ).json()["data"]["rows"]
    assert [row["running"] for row in rows] == [True, True]
    assert invoke("sandbox", "down", environ=environ).exit_code == 0
    assert not any(_runs(row["pid"]) for row in rows)
    assert not directory.exists()


@pytest.mark.live
def test_a_worker_that_cannot_start_shows_its_log_and_leaves_nothing_running(tmp_path: Path) -> None:
    group = GroupSpec(worker_config={"key.converter": "no.such.Converter"})
    with pytest.raises(EosctlError, match=r"(?s)connect-eos-worker-0 ended:.*no\.such\.Converter") as caught:
        Stack.up(StackSpec(groups=(group,)), tmp_path / "stack", name="x", environ=os.environ)
    assert "log.txt" in str(caught.value.hint)
    left = Stack.find(tmp_path / "stack")
    assert left is not None
    assert not left.alive()


class Contested:
    """Takes ports as a stack does; after the calls in `lost` somebody else listens on the first one a moment later."""

    def __init__(self, *lost: int) -> None:
        self._lost, self._calls = lost, 0
        self.others: list[socket.socket] = []

    def __call__(self, count: int, *, folder: Path, owner: Path) -> list[int]:
        ports = take_ports(count, folder=folder, owner=owner)
        self._calls += 1
        if self._calls in self._lost:
            self.others.append(socket.create_server(("127.0.0.1", ports[0])))
        return ports


@pytest.mark.live
def test_the_second_kafka_version_where_somebody_takes_its_ports_first(tmp_path: Path) -> None:
    """A stack did not come up when a port was taken between its choice and the start of the JVM."""
    environ = {**os.environ, "JAVA_TOOL_OPTIONS": "-Xmx1k", "http_proxy": "http://127.0.0.1:1"}  # neither may matter
    directory = tmp_path / "Säcke & 'Co'"
    contested = Contested(1, 3, 6)  # of the broker, of the worker, of the worker's agent
    stack = Stack.up(
        StackSpec(kafka_version="3.9.2", metrics=True), directory, name="x", environ=environ, take_ports=contested
    )
    try:
        (url,) = stack.urls("connect-eos")
        lost = {f":{other.getsockname()[1]}" for other in contested.others}
        addresses = (stack.bootstrap_servers, url, stack.node("connect-eos-worker-0").metrics_url)
        assert len(lost) == 3
        assert not [port for port in lost for address in addresses if port in str(address)]
        assert rest(url)["version"] == "3.9.2"
        plugins = {plugin["class"].rpartition(".")[2] for plugin in rest(f"{url}/connector-plugins")}
        assert {"FileStreamSourceConnector", "MirrorSourceConnector"} <= plugins
        found = Stack.find(directory)  # as another process would
        assert found is not None
        found.restart_node("connect-eos-worker-0", mode=Mode.DISABLED)
        assert (found.urls("connect-eos"), found.node("connect-eos-worker-0").mode) == ([url], "disabled")
        assert "support=disabled" in Path(found.node("connect-eos-worker-0").config).read_text()
        assert Stack.find(directory).state == found.state  # type: ignore[union-attr]
        assert not stack.node("connect-eos-worker-0").process.alive()
        with pytest.raises(EosctlError, match="runs already"):
            found.start_node("connect-eos-worker-0")
        stack = found
    finally:
        stack.down()
        for other in contested.others:
            other.close()


@pytest.mark.live
def test_the_connectors_that_other_tests_and_the_demo_use_are_there(stack: Stack) -> None:
    plugins = {
        plugin["class"].rpartition(".")[2] for plugin in rest(f"{stack.urls('connect-eos')[0]}/connector-plugins")
    }
    assert {"FileStreamSourceConnector", "MirrorSourceConnector", "VerifiableSourceConnector"} <= plugins


@pytest.mark.live
def test_two_groups_on_one_broker_do_not_see_each_other(stack: Stack, tmp_path: Path, unique: str) -> None:
    """`eosctl demo` starts two at once."""
    (mine,) = stack.urls(GROUP)
    with added_group(stack, GroupSpec(f"other-{unique}", (Mode.DISABLED, Mode.DISABLED))) as (first, second):
        config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "lines"), "topic": unique}
        rest(f"{first}/connectors/{unique}/config", "PUT", config)
        wait_until(lambda: rest(f"{second}/connectors") == [unique], what="the group's other worker to know")
        assert unique not in rest(f"{mine}/connectors")


@pytest.mark.live
def test_three_brokers_replicate_their_internal_topics(three_brokers: Stack) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": three_brokers.bootstrap_servers, "enable.metrics.push": False})
    wait_until(lambda: len(admin.list_topics(timeout=PATIENCE_S).brokers) == 3, what="three brokers")


@pytest.mark.live
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_the_secure_listener_lets_in_who_has_the_password(secure_stack: SecureStack, mechanism: str) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": secure_stack.stack.secure_bootstrap_servers,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.username": "fencer",
        "sasl.password": secure_stack.passwords["fencer"],
        "ssl.ca.location": str(secure_stack.ca),
        "enable.metrics.push": False,
        "log_level": 0,
    }
    assert len(AdminClient(settings).list_topics(timeout=PATIENCE_S).brokers) == 1
    with pytest.raises(KafkaException):
        AdminClient({**settings, "sasl.password": "wrong"}).list_topics(timeout=3)


def test_a_worker_starts_in_the_mode_that_is_wanted_whatever_its_file_says(tmp_path: Path) -> None:
    """After a kill between file and state the file kept its mode, and the state told another."""
    config = tmp_path / "worker.properties"
    config.write_text("group.id=g\nexactly.once.source.support=preparing\n", encoding="ascii")
    (tmp_path / "java.arguments").touch()
    log = str(tmp_path / "log.txt")
    node = state.Node("w", "worker", "http://127.0.0.1:1", 0, 0, str(config), log, "g", "disabled")
    stack = Stack(state.StackState("s", str(tmp_path), "4.3.1", (node,), {}, java="/bin/true"))
    with pytest.raises(EosctlError, match="w ended"):
        stack.start_node("w", mode=Mode.ENABLED)
    assert "exactly.once.source.support=enabled\n" in config.read_text(encoding="ascii")
