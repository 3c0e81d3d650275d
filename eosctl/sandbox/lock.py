"""Lock files: the exact jars of each supported Kafka version, `group:artifact:version sha256 size`.

A lock names no host. It is made once per version by a developer: `python -m eosctl.sandbox.downloads.relock VERSION`.
Where it has brokers only, workers are those of `connect_version`.
"""

from __future__ import annotations

import re
from importlib.resources import files

from msgspec import Struct

from eosctl.errors import UsageError

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


def connect_version(kafka_version: str) -> str:
    """Return the version of the workers for brokers of a Kafka version: the same, or the newest before it with Connect.

    Brokers may be published before Connect is (4.4.0).
    """
    versions = supported_versions()
    whole = [each for each in versions[versions.index(kafka_version) :] if _has_connect(each)]
    return whole[0]


def _has_connect(kafka_version: str) -> bool:
    return any(jar.artifact == "connect-runtime" for jar in read_lock(kafka_version))


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
