"""A Connect group of two workers, for the contract: the fake of the tests, and a real one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eosctl.connect.rest import RestConnectWorker
from eosctl.core.transactions import RawGroup
from eosctl.deadline import Clock, Deadline
from eosctl.errors import UnreachableError
from eosctl.group.protocol import (
    CONNECTOR_ITSELF,
    Assignment,
    Metadata,
    Work,
    decode_assignment,
    decode_metadata,
    owned_work,
)
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.ports import ConnectWorker
from eosctl.sandbox.stack import Stack
from tests.fakes.connect import FakeConnect
from tests.fakes.connectors import FILE_SOURCE
from tests.sandbox_fixtures import PAIR, PATIENCE_S, frozen, wait_until

LINES = "one\ntwo\n"


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a stable group, decoded."""

    member_id: str
    url: str
    metadata: Metadata
    assignment: Assignment

    @property
    def owned(self) -> tuple[Work, ...]:
        """What the leader gave it."""
        return owned_work(self.metadata, self.assignment)

    @property
    def held(self) -> frozenset[Work]:
        """What it may still have: what was taken away counts until it joins again, which is when that has ended."""
        before = self.metadata.current.assigned if self.metadata.current else ()
        return frozenset((*before, *self.assignment.assigned))


def members_of(raw: RawGroup) -> list[Member]:
    """The members of a stable group."""
    found = []
    for member in raw.members:
        metadata, assignment = decode_metadata(member.metadata), decode_assignment(member.assignment)
        found.append(Member(member.member_id, metadata.url.rstrip("/"), metadata, assignment))
    return found


@dataclass
class Group:
    """Two workers and their coordinator. `stop` and `start` are a worker's process; `frozen` stops it for a while.

    `read` waits until the connector's task has read its lines; nothing is committed then before it ends.
    """

    urls: Sequence[str]
    worker: Callable[[str, float], ConnectWorker]
    describe: Callable[[], RawGroup]
    stop: Callable[[str], None]
    start: Callable[[str], None]
    frozen: Callable[[str], AbstractContextManager[None]]
    config: Callable[[str], dict[str, str]]
    read: Callable[[str, int], None]
    clock: Clock
    is_real: bool
    made: list[str] = field(default_factory=list)

    def members(self) -> list[Member]:
        """The members; none while the group is not stable."""
        raw = self.describe()
        return members_of(raw) if raw.state == "Stable" else []

    def ids(self) -> dict[str, str]:
        """URL -> member id."""
        return {member.url: member.member_id for member in self.members()}

    def owners(self) -> dict[Work, str]:
        """Who owns what."""
        pairs = [(work, member.url) for member in self.members() for work in member.owned]
        assert len(dict(pairs)) == len(pairs), f"owned twice: {pairs}"
        return dict(pairs)

    def leader(self) -> str:
        """The URL of the leader, once the group is stable."""
        members = self.wait(self.members, "a stable group")
        (leader,) = {str(member.assignment.leader_url) for member in members}
        return leader.rstrip("/")

    def led_alone_by(self, url: str) -> bool:
        """Whether the worker at `url` is the only member and leads, by one look."""
        members = self.members()
        return [member.url for member in members] == [url] and str(members[0].assignment.leader_url).rstrip("/") == url

    def wait(self, done: Callable[[], Any], what: str, timeout_s: float = PATIENCE_S) -> Any:
        return wait_until(done, what=what, clock=self.clock, scene=self.describe, timeout_s=timeout_s)

    def at(self, url: str, timeout_s: float = 90.0) -> ConnectWorker:
        """The REST interface of one of them."""
        return self.worker(url, timeout_s)

    def state(self, name: str, url: str = "") -> tuple[str, ...]:
        """The connector's state, and those of its tasks."""
        entry = self.at(url or self.urls[0]).connectors().get(name)
        return () if entry is None else (entry.state, *(task.state for task in entry.tasks))

    def put(self, name: str) -> dict[Work, str]:
        """A connector whose task runs, and is owned; who owns what then."""
        self.made.append(name)
        self.at(self.urls[0]).put_connector_config(name, self.config(name))
        owners: dict[Work, str] = self.wait(lambda: self.runs(name), f"{name} to run")
        return owners

    def runs(self, name: str) -> dict[Work, str] | None:
        """Who owns what, while connector and task run, and are owned."""
        owners = self.owners() if self.state(name) == ("RUNNING", "RUNNING") else {}
        return owners if {(name, CONNECTOR_ITSELF), (name, 0)} <= set(owners) else None

    def clear(self) -> None:
        """Deletes the connectors, and waits for the end of their tasks."""
        for name in self.made:
            self.at(self.urls[0]).delete_connector(name)
        held = [(name, number) for name in self.made for number in (CONNECTOR_ITSELF, 0)]
        self.wait(
            lambda: (members := self.members()) and not any(m.held & set(held) for m in members), "an empty group"
        )


def fake_group() -> Group:
    urls = ["http://w0:8083", "http://w1:8083"]
    connect = FakeConnect(dict.fromkeys(urls, "enabled"), forgotten_after_s=1)

    def commit(name: str) -> None:
        connect.offsets.alter(name, [{"partition": {"filename": name}, "offset": {"position": len(LINES)}}])

    connect.after("end_task", lambda call: commit(str(call.what[0])))

    @contextmanager
    def frozen_one(url: str) -> Iterator[None]:
        connect.frozen.add(url)
        yield
        connect.frozen.clear()

    return Group(
        urls=urls,
        worker=lambda url, timeout_s: connect.worker(url, Deadline.after(timeout_s, connect.time.clock())),
        describe=connect.describe,
        stop=connect.stop_worker,
        start=lambda url: connect.start_worker(url, "enabled"),
        frozen=frozen_one,
        config=lambda name: {"connector.class": FILE_SOURCE, "tasks.max": "1", "file": name},
        read=lambda _name, _times: None,
        clock=connect.time.clock(),
        is_real=False,
    )


def real_group(stack: Stack, admin: NativeTransactionAdmin, topics: KafkaTopicClient, folder: Path) -> Group:
    names = {node.address: node.name for node in stack.state.of_kind("worker") if node.group_id == PAIR}

    def config(name: str) -> dict[str, str]:
        path = folder / name
        path.write_text(LINES)
        interval = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "600000"}
        return {"connector.class": FILE_SOURCE, "tasks.max": "1", "file": str(path), "topic": name, **interval}

    def read(name: str, times: int) -> None:
        wait_until(lambda: name in topics.describe([name]), what=f"topic {name}")
        markers = times - 1  # of each time but the last, whose transaction is open
        records = times * LINES.count("\n") + markers
        wait_until(lambda: topics.bounds(name)[0].end >= records, what=f"the lines of {name}")

    return Group(
        urls=stack.urls(PAIR),
        worker=lambda url, timeout_s: RestConnectWorker(url, deadline=Deadline.after(timeout_s)),
        describe=lambda: admin.describe_group(PAIR),
        stop=lambda url: stack.stop_node(names[url]),
        start=lambda url: stack.start_node(names[url]),
        frozen=lambda url: frozen(stack, url),
        config=config,
        read=read,
        clock=Clock(),
        is_real=True,
    )


def revive(group: Group) -> None:
    """Starts what a test that failed has left stopped."""
    for url in group.urls:
        if not answers(group.at(url)):
            group.start(url)


def answers(worker: ConnectWorker) -> bool:
    try:
        worker.root()
    except UnreachableError:
        return False
    return True
