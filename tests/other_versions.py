"""Stacks of other Kafka versions than the sandbox's own, and a connector that can be halted on each of them.

4.4.0 is the newest, whose own connectors are not published yet. 3.9.2 is of the last line before 4, 3.5.1 of the first
that stops connectors and tells their offsets, 3.3.2 of the first with exactly-once sources: there a connector is
deleted where newer workers stop it. A full run has the newest and the oldest; what repeats it between them is slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from eosctl.sandbox.stack import Stack
from tests.migrate.spark.cluster import Cluster
from tests.sandbox_fixtures import GROUP, FileSource, rest, wait_until

_BETWEEN = {"3.9.2", "3.5.1"}
_STACKS = {"4.4.0": "newest_stack", "3.9.2": "old_stack", "3.5.1": "older_stack", "3.3.2": "oldest_stack"}


def on(*versions: str) -> pytest.MarkDecorator:
    """Runs a test with `other` of each of these versions."""
    slow = [pytest.mark.slow]
    stacks = [
        pytest.param(each, marks=[pytest.mark.on(_STACKS[each]), *slow * (each in _BETWEEN)]) for each in versions
    ]
    return pytest.mark.parametrize("other", stacks, indirect=True)


@pytest.fixture
def other(request: pytest.FixtureRequest) -> Stack:
    """A broker and a worker of another Kafka; `on` says which."""
    found: Stack = request.getfixturevalue(_STACKS[request.param])
    return found


@dataclass
class OtherSource(FileSource):
    """A file source whose offset is read from the topic and which `halt` deletes where nothing can stop it."""

    cluster: Cluster = field(kw_only=True)
    stops: bool = field(kw_only=True)  # since 3.5
    declares: bool = field(kw_only=True)  # that it supports exactly-once, since 3.4
    offsets_topic: str = field(kw_only=True, default="connect-offsets")

    @property
    def task_id(self) -> str:
        """The transactional id of its task."""
        return f"{GROUP}-{self.name}-0"

    def halt(self) -> None:
        """Nothing of it runs afterwards."""
        if self.stops:
            self.stop_and_wait()
        else:
            rest(f"{self.url}/connectors/{self.name}", "DELETE")
            wait_until(lambda: self.name not in rest(f"{self.url}/connectors"), what=f"{self.name} to be gone")

    def go_on(self) -> None:
        """It runs again."""
        if self.stops:
            self.set_state("resume")
        else:
            self.put()

    def offset(self) -> bytes | None:
        """What a plain consumer finds in its offsets topic: no worker tells it before 3.5."""
        key = f'["{self.name}",{{"filename":"{self.path}"}}]'.encode()
        return self.cluster.committed(self.offsets_topic).get(key, (0, None))[1]

    def wait_position(self, position: int) -> None:
        """Waits until its committed source offset is `position` bytes."""
        wait_until(lambda: self.offset() == b'{"position":%d}' % position, what=f"{self.name} at {position}")


@pytest.fixture
def other_source(other: Stack, tmp_path: Path, unique: str) -> Iterator[OtherSource]:
    """A connector that has delivered two lines, and runs."""
    path = tmp_path / f"{unique}.txt"
    path.write_text("one\ntwo\n")
    newer, cluster = other.state.kafka_version != "3.3.2", Cluster(other.bootstrap_servers, unique)
    url, topic = other.urls(GROUP)[0], f"topic-{unique}"
    made = OtherSource(url, unique, path, topic, cluster=cluster, stops=newer, declares=newer)
    made.put()
    made.wait_position(8)
    yield made
    if made.name in rest(f"{made.url}/connectors"):
        rest(f"{made.url}/connectors/{made.name}", "DELETE")
