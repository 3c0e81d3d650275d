"""The settings of a sandbox: property files of its servers, and lock files of Kafka's jars.

Property files are those of brokers (KRaft, combined), workers and logging, tuned for a short start.

Lock files list the exact jars of each supported Kafka version, `group:artifact:version sha256 size`. A lock names no
host. It is made once per version by a developer: `python -m eosctl.sandbox.downloads.relock VERSION`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

from eosctl.core.workers.modes import CONNECT_SETTING, Mode
from eosctl.errors import UsageError
from eosctl.sandbox.login import BROKERS_PROTOCOL, USER, SandboxLogin, SecureFiles, SecureListener

DEFAULT_VERSION = "4.3.1"
AGENT = "jmx-agent"  # the lock of jmx_exporter's Java agent, which runs inside workers of any version
_LINE = re.compile(r"([\w.\-]+):([\w.\-]+):([\w.\-]+) ([0-9a-f]{64}) (\d+)")


class Jar(Struct, frozen=True):
    """One jar: Maven coordinates, sha256 in hex, size in bytes."""

    group: str
    artifact: str
    version: str
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        """The name that Maven gives the file."""
        return f"{self.artifact}-{self.version}.jar"


def supported_versions() -> list[str]:
    """Return the Kafka versions that have a lock file, newest first."""
    names = [entry.name for entry in files("eosctl.sandbox").iterdir()]
    found = [name[len("kafka-") : -len(".lock")] for name in names if re.fullmatch(r"kafka-[\d.]+\.lock", name)]
    return sorted(found, key=lambda version: [int(part) for part in version.split(".")], reverse=True)


def read_lock(kafka_version: str) -> list[Jar]:
    """Read the jars of a Kafka version; raise UsageError for a version without a lock file."""
    if kafka_version not in supported_versions():
        raise UsageError(f"the sandbox has no Kafka {kafka_version}", hint=f"It has {', '.join(supported_versions())}.")
    return _read(f"kafka-{kafka_version}")


def read_agent_lock() -> list[Jar]:
    """Read the one jar of the agent that exposes a worker's metrics to Prometheus."""
    return _read(AGENT)


def connectors_version(kafka_version: str) -> str:
    """Return the version of Kafka's own connectors in the workers of a Kafka version; they may be published later."""
    return next(jar.version for jar in read_lock(kafka_version) if jar.artifact == "connect-file")


def jars_behind(jars: Iterable[Jar], kafka_version: str) -> list[Jar]:
    """Return the jars of Kafka's own that are of another release."""
    return [jar for jar in jars if jar.group == "org.apache.kafka" and jar.version != kafka_version]


def _read(name: str) -> list[Jar]:
    return parse_lock((files("eosctl.sandbox") / f"{name}.lock").read_text(encoding="utf-8"))


def parse_lock(text: str) -> list[Jar]:
    """Parse a lock file's text into jars; raise ValueError naming a malformed line."""
    jars = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"line {number} of the lock file is not `group:artifact:version sha256 size`: {line!r}")
        group, artifact, version, sha256, size = match.groups()
        jars.append(Jar(group, artifact, version, sha256, int(size)))
    return jars


DEFAULT_GROUP = "connect-eos"
# Nobody looks at these JVMs by JMX, and a tenth of their work is telling it of each client's metrics: what turns it
# off is a list of reporters since Kafka 4.0, and a switch before that.
_NO_JMX = {"metric.reporters": "", "auto.include.jmx.reporter": "false"}
CONNECTORS_CLIENTS = ("producer.", "consumer.", "admin.")


class GroupSpec(Struct, frozen=True):
    """A Connect group: one worker per entry of `modes`; its topics are `<prefix>-configs|offsets|status`.

    The prefix is `connect` for the group `connect-eos`, and otherwise the group id, unless `topic_prefix` is given.
    `users` are those of the secure listener that the workers log in as: under `""` the worker itself, under
    `producer.`, `consumer.` and `admin.` the clients of its connectors; with none they use the plaintext listener.
    `worker_config` adds or replaces properties: with some under `listeners.https.` the workers speak https.
    `jvm_options` are of the workers' JVMs.
    """

    group_id: str = DEFAULT_GROUP
    modes: tuple[Mode, ...] = (Mode.ENABLED,)
    topic_prefix: str | None = None
    worker_config: Mapping[str, str] = {}
    users: Mapping[str, str] = {}
    jvm_options: tuple[str, ...] = ()

    @property
    def scheme(self) -> str:
        """The scheme of the workers' URLs: `http` or `https`."""
        return "https" if any(name.startswith("listeners.https.") for name in self.worker_config) else "http"

    def topics(self) -> dict[str, str]:
        """Return the internal topics under the names `config`, `offset` and `status`."""
        prefix = self.topic_prefix or ("connect" if self.group_id == DEFAULT_GROUP else self.group_id)
        return {"config": f"{prefix}-configs", "offset": f"{prefix}-offsets", "status": f"{prefix}-status"}


class StackSpec(Struct, frozen=True):
    """The stack to start: Kafka version, number of brokers, Connect groups, secure listener, extra broker properties.

    With `metrics` each worker has jmx_exporter's agent, and a port of its own where a Prometheus may read. `forwarded`
    are loopback ports, one for each broker, from which a forwarder leads to its `forwarded_address`: brokers advertise
    these ports to clients that begin there, so that clients stay with them. With `rest_login` the workers require a
    password made for this stack, with `broker_login` the brokers do, at each listener but that of `secure`; without,
    every user of this machine has access.
    """

    kafka_version: str = DEFAULT_VERSION
    brokers: int = 1
    groups: tuple[GroupSpec, ...] = (GroupSpec(),)
    secure: SecureListener | None = None
    broker_config: Mapping[str, str] = {}
    metrics: bool = False
    forwarded: tuple[int, ...] = ()
    rest_login: bool = False
    broker_login: bool = False


class BrokerPorts(Struct, frozen=True):
    """The loopback ports of a combined node; `secure` is used only with a secure listener, or by what is forwarded."""

    client: int
    controller: int
    secure: int


def broker_properties(
    node: int, ports: Sequence[BrokerPorts], data: Path, spec: StackSpec, files: SecureFiles, login: SandboxLogin
) -> dict[str, str]:
    """Return the server.properties of node `node` (1-based) of `len(ports)` combined nodes."""
    mine, count = ports[node - 1], len(ports)
    voters = ",".join(f"{index}@127.0.0.1:{port.controller}" for index, port in enumerate(ports, 1))
    replication = str(min(3, count))
    in_sync = str(2 if count >= 3 else 1)
    protocol = BROKERS_PROTOCOL if login.asks_at_brokers else "PLAINTEXT"
    clients = [f"{protocol}://127.0.0.1:{mine.client}"]
    if spec.secure:
        clients.append(f"SASL_SSL://127.0.0.1:{mine.secure}")
    listeners, advertised = list(clients), list(clients)
    if spec.forwarded:
        listeners.append(f"FORWARDED://127.0.0.1:{mine.secure}")
        advertised.append(f"FORWARDED://127.0.0.1:{spec.forwarded[node - 1]}")
    properties = {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "controller.quorum.voters": voters,
        "listeners": ",".join([*listeners, f"CONTROLLER://127.0.0.1:{mine.controller}"]),
        "advertised.listeners": ",".join(advertised),
        "inter.broker.listener.name": protocol,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": f"CONTROLLER:{protocol},{protocol}:{protocol},SASL_SSL:SASL_SSL"
        + f",FORWARDED:{protocol}" * bool(spec.forwarded),
        "log.dirs": str(data),
        "num.partitions": "1",
        "default.replication.factor": replication,
        "offsets.topic.num.partitions": "5",
        "offsets.topic.replication.factor": replication,
        "transaction.state.log.num.partitions": "5",
        "transaction.state.log.replication.factor": replication,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": replication,
        "share.coordinator.state.topic.min.isr": in_sync,
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": str(16 << 20),  # a third of a broker's memory at its default
        "metadata.max.idle.interval.ms": "5000",  # at its default an idle broker takes twice the CPU time
        "replica.fetch.wait.max.ms": "3000",  # as the one above, with three brokers; records come at once all the same
        **_NO_JMX,
        **login.broker_properties([protocol, "CONTROLLER", *["FORWARDED"] * bool(spec.forwarded)]),
    }
    among_themselves = USER if login.asks_at_brokers else "ANONYMOUS"
    secured = spec.secure.properties(files, among_themselves) if spec.secure else {}
    return {**properties, **secured, **spec.broker_config}


def worker_properties(
    group: GroupSpec,
    mode: Mode,
    *,
    bootstrap_servers: str,
    port: int,
    replication: int,
    login: Mapping[str, str] | None = None,
    has_agent: bool = False,
) -> dict[str, str]:
    """Return the connect-distributed.properties of a worker; `login` has its login settings and its clients'.

    One that has jmx_exporter's agent shows it the worker's metrics.
    """
    topics = group.topics()
    json_converter = "org.apache.kafka.connect.json.JsonConverter"
    properties = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": group.group_id,
        CONNECT_SETTING: mode.value,
        "listeners": f"{group.scheme}://127.0.0.1:{port}",
        "rest.advertised.host.name": "127.0.0.1",
        "key.converter": json_converter,
        "value.converter": json_converter,
        "offset.flush.interval.ms": "1000",
        "scheduled.rebalance.max.delay.ms": "0",
        "plugin.discovery": "service_load",
        "fetch.max.wait.ms": "3000",  # of the worker's own readers: records come at once all the same
        "offset.storage.partitions": "5",  # 25 and 5 by default, and each task begins by reading all of them
        "status.storage.partitions": "1",
    }
    for prefix in CONNECTORS_CLIENTS if has_agent else ("", *CONNECTORS_CLIENTS):
        properties |= {f"{prefix}{name}": value for name, value in _NO_JMX.items()}
    for name, topic in topics.items():
        properties[f"{name}.storage.topic"] = topic
        properties[f"{name}.storage.replication.factor"] = str(replication)
    return {**properties, **(login or {}), **group.worker_config}


# jmx_exporter's own names, as for a user without rules; only what Connect itself has
AGENT_CONFIG = """\
includeObjectNames: ["kafka.connect:*"]
"""
# All settings of every client that is made are three lines of four of a worker's log, and none of them is looked for:
# one logger says them since Kafka 4.0, and before that one for each kind of client.
LOG4J2 = """\
logger.settings.name=org.apache.kafka.common.config.AbstractConfig
logger.settings.level=warn
rootLogger.level=info
rootLogger.appenderRef.stdout.ref=stdout
appender.stdout.type=Console
appender.stdout.name=stdout
appender.stdout.layout.type=PatternLayout
appender.stdout.layout.pattern=%d{ISO8601} %p %c{1} - %m%n
"""
RELOAD4J = """\
log4j.logger.org.apache.kafka.clients.admin.AdminClientConfig=WARN
log4j.logger.org.apache.kafka.clients.consumer.ConsumerConfig=WARN
log4j.logger.org.apache.kafka.clients.producer.ProducerConfig=WARN
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%d{ISO8601} %p %c{1} - %m%n
"""


def logging_files(kafka_version: str) -> tuple[str, str, str]:
    """Return (file name, text, JVM option for its URI) of the logging: log4j2 since Kafka 4.0, reload4j before."""
    if int(kafka_version.split(".")[0]) >= 4:
        return "log4j2.properties", LOG4J2, "-Dlog4j2.configurationFile="
    return "log4j.properties", RELOAD4J, "-Dlog4j.configuration="
