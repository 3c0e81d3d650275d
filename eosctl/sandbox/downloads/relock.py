"""For developers: `python -m eosctl.sandbox.downloads.relock 4.3.1` resolves a Kafka version and writes its lock file.

`jmx-agent` in place of a version does the same for jmx_exporter's agent. Run once per supported version; users never
do. It needs `mvn`, and trusts what Maven Central serves today: read the difference before committing it.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import tempfile
from pathlib import Path

from eosctl.machine.children import child_environ
from eosctl.sandbox.settings import AGENT

# what a broker, a worker, the file and mirror connectors, SMTs and Kafka's own tools (for parity tests) come from
_ROOTS = (
    "kafka_2.13", "connect-runtime", "connect-api", "connect-json", "connect-file", "connect-mirror",
    "connect-transforms", "kafka-tools", "connect-basic-auth-extension",
)  # fmt: skip
# Kafka's jars leave the logging backend to the distribution; VerifiableSource is published as a jar since 4.0. Basic
# authentication is Connect's own, and asks for the sandbox's password.
_SINCE_4 = ("connect-test-plugins",)
_BACKEND_SINCE_4 = ("org.apache.logging.log4j:log4j-slf4j-impl:2.25.4", "org.apache.logging.log4j:log4j-core:2.25.4")
_BACKEND_BEFORE_4 = ("org.slf4j:slf4j-reload4j:1.7.36",)
# what was not on Maven Central when a version was locked, and the version of it that was (asked again in November 2026)
_BEHIND = {
    "3.9.2": {"connect-basic-auth-extension": "3.9.1"},
    "4.4.0": dict.fromkeys(
        ("connect-file", "connect-mirror", "connect-basic-auth-extension", "connect-test-plugins"), "4.3.1"
    ),
}
_AGENT = "io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1"
_POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>eosctl</groupId><artifactId>sandbox-lock</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>
"""


def root_coordinates(kafka_version: str) -> list[str]:
    """Return `group:artifact:version` of what is requested by name; everything else follows from it."""
    if kafka_version == AGENT:
        return [_AGENT]
    is_since_4 = int(kafka_version.split(".")[0]) >= 4
    behind = _BEHIND.get(kafka_version, {})
    artifacts = (*_ROOTS, *(_SINCE_4 if is_since_4 else ()))
    roots = [f"org.apache.kafka:{artifact}:{behind.get(artifact, kafka_version)}" for artifact in artifacts]
    return [*roots, *(_BACKEND_SINCE_4 if is_since_4 else _BACKEND_BEFORE_4)]


def lock_text(repository: Path) -> str:
    """Return the lock file of all jars below `repository`, which has Maven's layout (group/artifact/version/file).

    Raises ValueError for a jar with a classifier: a lock has no place for one, and Kafka has needed none so far.
    """
    lines = []
    for path in repository.rglob("*.jar"):
        *group, artifact, version, name = path.relative_to(repository).parts
        if name != f"{artifact}-{version}.jar":
            raise ValueError(f"{name} has a classifier, and a lock file has no place for one")
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        lines.append(f"{'.'.join(group)}:{artifact}:{version} {digest} {len(data)}\n")
    return "".join(sorted(lines))


def _resolve(kafka_version: str, directory: Path) -> Path:
    """Let Maven copy all runtime jars into a repository below `directory`."""
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>".format(
            *root.split(":")
        )
        for root in root_coordinates(kafka_version)
    )
    (directory / "pom.xml").write_text(_POM.format(dependencies=dependencies), encoding="utf-8")
    goals = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-Dmdep.useRepositoryLayout=true"]
    command = ["mvn", "--quiet", "--batch-mode", *goals, f"-DoutputDirectory={directory / 'repository'}"]
    subprocess.run(command, cwd=directory, check=True, stdin=subprocess.DEVNULL, env=child_environ())
    return directory / "repository"


def main() -> None:
    """Write `kafka-VERSION.lock`, or that of the agent, to the sandbox package."""
    parser = argparse.ArgumentParser(description="Write the sandbox's lock file of one Kafka version.")
    parser.add_argument("kafka_version", metavar="VERSION")
    kafka_version = parser.parse_args().kafka_version
    with tempfile.TemporaryDirectory() as directory:
        text = lock_text(_resolve(kafka_version, Path(directory)))
    target = Path(__file__).parents[1] / (f"{AGENT}.lock" if kafka_version == AGENT else f"kafka-{kafka_version}.lock")
    target.write_text(text, encoding="utf-8")
    print(f"{target}: {len(text.splitlines())} jars")


if __name__ == "__main__":
    main()
