"""Where incidents are made: a cluster that doctor finds well, and a shell into which what it prints is pasted.

A profile names the cluster, so that a printed command is complete as it stands.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from eosctl.core.findings import INFO
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.sandbox_fixtures import PATIENCE_S, FileSource, rest, wait_until

OK, FINDINGS = 0, 3
ONE_BROKER = ("few_replicas", "single_replica")
"""What is right to say of a cluster with one broker, and accepted here."""
_MAIN = {"kafka-configs.sh": "kafka.admin.ConfigCommand", "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand"}

Loud = frozenset[tuple[str, str, str]]
"""Code, subject and severity of each error and warning."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A group of a stack; `invoke` runs eosctl in this process, `folder` is the test's own.

    `ignore` are findings that are right to make of this cluster, and no incident.
    """

    stack: Stack
    group: str
    invoke: Invoke
    folder: Path
    ignore: Sequence[str] = ()
    more: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        topics = self.stack.state.topics[self.group]
        profile = {
            "bootstrap_server": self.stack.bootstrap_servers,
            "group_id": self.group,
            "connect_url": self.urls,
            **{f"{name}_topic": topic for name, topic in topics.items()},
            "ignore": list(self.ignore),
            **self.more,
        }
        path = self.folder / "config" / "eosctl" / "config.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(yaml.safe_dump({"current": "game", "profiles": {"game": profile}}))
        path.chmod(0o600)

    @property
    def urls(self) -> list[str]:
        """The URLs of the group's workers."""
        return self.stack.urls(self.group)

    def eosctl(self, *words: str) -> None:
        """One command, with a person who says yes to its plan."""
        done = self.invoke(*words, input="y\n", can_ask=True)
        assert done.exit_code == OK, (words, done.stdout, done.stderr)

    def paste(self, line: str) -> None:
        """Does what a printed line says: eosctl in this process, all else in a shell that has Kafka's scripts."""
        if line.startswith("eosctl "):
            self.eosctl(*shlex.split(line)[1:])
            return
        done = subprocess.run(
            ["sh", "-ec", line], env={"PATH": f"{self._scripts()}:{os.environ['PATH']}"}, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, (line, done.stdout, done.stderr)

    def _scripts(self) -> Path:
        """Kafka's scripts as its tarball has them, each a start of its class with the stack's jars."""
        folder = self.folder / "bin"
        if not folder.exists():
            folder.mkdir()
            java = shlex.join([self.stack.state.java, f"@{self.stack.directory / 'java.arguments'}"])
            for name, main in _MAIN.items():
                (folder / name).write_text(f'#!/bin/sh\nexec {java} {main} "$@"\n')
                (folder / name).chmod(0o755)
        return folder

    def look(self, *more: str) -> list[Any]:
        """The rows of one look of doctor, whose exit code has to follow from them."""
        done = self.invoke("doctor", *more, "-o", "json")
        document = envelope_of(done, "doctor", done.exit_code)
        rows: list[Any] = document["data"]["rows"]
        errors = [row for row in rows if row["severity"] == "error"]
        assert (done.exit_code == FINDINGS) == bool(errors), (done.exit_code, errors)
        return rows

    def wait_until_quiet(self) -> None:
        """Waits until doctor has neither an error nor a warning, and exits with 0."""
        self.wait_for(frozenset())

    def wait_for(self, wanted: Loud) -> list[Any]:
        """Waits until doctor has these errors and warnings and no other; the rows of that look."""
        rows: list[Any] = []

        def is_named() -> bool:
            rows[:] = self.look()
            return loud(rows) == wanted

        try:
            wait_until(is_named, what=f"doctor to say {sorted(wanted) or 'nothing'}", timeout_s=2 * PATIENCE_S)
        except pytest.fail.Exception:
            print(*(row for row in rows if row["severity"] != INFO), sep="\n")  # what it said at last
            raise
        return rows

    @contextmanager
    def source(self, name: str, **config: str) -> Iterator[FileSource]:
        """A source that has committed an offset and runs; deleted at the end."""
        path = self.folder / f"{name}.txt"
        path.write_text("one\n")
        made = FileSource(self.urls[0], name, path, f"topic-{name}", more=dict(config))
        made.put()
        try:
            made.wait_running()
            made.wait_position(4)
            yield made
        finally:
            rest(f"{made.url}/connectors/{name}", "DELETE")

    def sink(self) -> dict[str, str]:
        """The config of a sink that writes a topic to a file."""
        topic, path = f"in-{self.group}", self.folder / "out"
        return {"connector.class": "FileStreamSink", "tasks.max": "1", "topics": topic, "file": str(path)}

    @contextmanager
    def running(self, configs: Mapping[str, Mapping[str, str]]) -> Iterator[None]:
        """These connectors run meanwhile; deleted at the end."""
        with ExitStack() as stack:
            for name, config in configs.items():
                at = f"{self.urls[0]}/connectors/{name}"
                rest(f"{at}/config", "PUT", dict(config))
                stack.callback(rest, at, "DELETE")
            for name in configs:
                wait_until(partial(self._runs, name), what=f"{name} to run")
            yield

    def _runs(self, name: str) -> bool:
        """Without consumer groups there is no task of MirrorMaker's checkpoints."""
        status = rest(f"{self.urls[0]}/connectors/{name}/status")
        running = {part["state"] for part in (status["connector"], *status["tasks"])} == {"RUNNING"}
        return running and (bool(status["tasks"]) or name == "mirror-checkpoint")


def loud(rows: Sequence[Any]) -> Loud:
    """What a person is told to act on."""
    return frozenset((row["code"], row["subject"], row["severity"]) for row in rows if row["severity"] != INFO)
