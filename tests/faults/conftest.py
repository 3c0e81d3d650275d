"""What the fault tests run on: a broker of their own that may be killed, and two workers that may be frozen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import offsets_transactional_id
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke, Outcome
from tests.sandbox_fixtures import PAIR, FileSource, rest, sandbox


@pytest.fixture(scope="session")
def lone_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A broker without workers; a test that kills it starts it again."""
    with sandbox(StackSpec(groups=()), tmp_path_factory, name="lone") as stack:
        yield stack


def on_pair() -> list[str]:
    """Group and topics of the pair, and JSON."""
    topics = ["--config-topic", f"{PAIR}-configs", "--offset-topic", f"{PAIR}-offsets"]
    return ["-g", PAIR, *topics, "-o", "json"]


@pytest.fixture
def source(pair: Stack, tmp_path: Path, unique: str) -> Iterator[FileSource]:
    """A connector of the pair that has committed an offset and runs."""
    path = tmp_path / f"{unique}.txt"
    path.write_text("one\ntwo\n")
    made = FileSource(pair.urls(PAIR)[0], unique, path, f"topic-{unique}")
    made.put()
    made.wait_running()
    made.wait_position(8)
    yield made
    rest(f"{made.url}/connectors/{made.name}", "DELETE")


@pytest.fixture
def admin(lone_broker: Stack) -> Iterator[NativeTransactionAdmin]:
    """Transactions of the lone broker, past every proxy."""
    settings = ClientSettings((lone_broker.bootstrap_servers,))
    with NativeTransactionAdmin(settings, deadline=Deadline.after(240)) as opened:
        yield opened


@pytest.fixture
def topics(lone_broker: Stack) -> Iterator[KafkaTopicClient]:
    """Topics of the lone broker, past every proxy."""
    settings = ClientSettings((lone_broker.bootstrap_servers,))
    with KafkaTopicClient(settings, deadline=Deadline.after(240)) as opened:
        yield opened


@dataclass
class Merge:
    """`offsets merge` of a global topic with `count` offsets into an empty topic of the connector's own."""

    topics: KafkaTopicClient
    group: str
    count: int

    @property
    def target(self) -> str:
        """The connector's own topic."""
        return f"own-{self.group}"

    @property
    def words(self) -> list[str]:
        """The command line, without where."""
        return [
            *(
                "offsets",
                "merge",
                "--connector",
                self.group,
                "--into",
                "dedicated",
                "--dedicated-topic",
                "own-{connector}",
            ),
            *("--force-running", "--yes", *self.where),
        ]

    @property
    def where(self) -> list[str]:
        """Group and topics."""
        topics = ["--offset-topic", self.group, "--config-topic", f"{self.group}-configs"]
        return ["-g", self.group, *topics, "-o", "json"]

    @property
    def writer(self) -> str:
        """The transactional id that it writes under."""
        return offsets_transactional_id(self.group)

    def written(self) -> int:
        """How many of the offsets the target has, committed."""
        return len(self.topics.read(self.target, newest_per_key=True).records)

    def check(self, done: Outcome) -> None:
        """All of it is there or nothing, and neither exit code nor rows say otherwise."""
        written = self.written()
        assert written in (0, self.count)
        if done.exit_code == 0:
            assert written == self.count
        told = {row.get("outcome") for row in done.json()["data"].get("rows", [])}
        assert told <= ({"written", "unconfirmed"} if written else {"unconfirmed", "failed"})

    def finish(self, invoke: Invoke, bootstrap_servers: str) -> Any:
        """What the next run does once the faults are over: everything is there then; returns its document."""
        ended = invoke("fence", self.writer, "--yes", "-g", self.group, "-b", bootstrap_servers)
        assert ended.exit_code == 0, ended.stderr
        again = invoke(*self.words, "-b", bootstrap_servers)
        assert again.exit_code == 0, again.stderr
        assert self.written() == self.count
        return again.json()


@pytest.fixture
def merge(topics: KafkaTopicClient, unique: str, invoke: Invoke, lone_broker: Stack, tmp_path: Path) -> Merge:
    """A merge of 300 offsets that is still to be done."""
    made = Merge(topics, unique, 300)
    compact = {"cleanup.policy": "compact"}
    topics.create(unique, partitions=3, replication_factor=1, config=compact)
    topics.create(made.target, partitions=3, replication_factor=1, config=compact)
    topics.create(f"{unique}-configs", partitions=1, replication_factor=1, config=compact)
    path = tmp_path / "offsets.ndjson"
    keys = [f'["{unique}",{{"f":{number}}}]' for number in range(made.count)]
    lines = [json.dumps({"topic": unique, "partition": 0, "key": key, "value": '{"n":1}'}) for key in keys]
    path.write_text("".join(f"{line}\n" for line in lines))
    words = ["offsets", "import", str(path), "--store", unique, "-g", unique, "--force-running", "--yes"]
    filled = invoke(*words, "-b", lone_broker.bootstrap_servers)
    assert filled.exit_code == 0, filled.stderr
    return made
