"""The members of a Connect group in memory: who leads, who owns what, and what DescribeGroups tells of it.

tests/contract/test_connect_group.py and test_group_changes.py hold it to real workers. FakeConnect says what there is
to own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from eosctl.core.transactions import RawGroup, RawGroupMember
from eosctl.group.protocol import Assignment, Metadata, Work, encode_assignment, encode_metadata
from tests.fakes.clock import FakeTime
from tests.fakes.faults import Faults

LAG_S = 0.2
"""How long things take: a rebalance, a task that ends, a worker that starts."""


@dataclass
class FakeMembers(Faults):
    """`modes` maps each member's URL to its mode; the first one leads. Time passes while somebody sleeps on `time`.

    A URL in `down` refuses connections and one in `frozen` never answers, though their workers are members; a frozen
    one keeps a rebalance from ending. `starting` are workers that answer and have not joined. A group that has been
    without members for `forgotten_after_s` is `forgotten`: it is Dead, and a moment later nothing of it is left.

    What is taken from a follower goes on until its task has ended: in LAG_S, or as many seconds as `stops_slowly` says.
    `mirror_maker`: they are a dedicated MirrorMaker's, which advertise no URL and have no REST interface; `internal`:
    theirs advertise their URLs, and answer only each other. `hosts` is from where a member is connected (by URL).
    `delayed` is a lost worker's work, which waits for it.
    `reads_up_to` is the config offset of a member that does not reach the group's: it joins again and again with it.

    Events are `stop_worker`, `start_worker` and `join` (URL), `rebalance` (at its end) and `end_task` (name, task).
    """

    modes: dict[str, str] = field(default_factory=lambda: {"http://w0:8083": "enabled"})
    group_id: str = "g"
    config_offset: int = 7
    time: FakeTime = field(default_factory=FakeTime)
    down: set[str] = field(default_factory=set)
    frozen: set[str] = field(default_factory=set)
    starting: dict[str, str] = field(default_factory=dict)
    forgotten: bool = False
    mirror_maker: bool = False
    internal: bool = False
    hosts: dict[str, str] = field(default_factory=dict)
    reads_up_to: dict[str, int] = field(default_factory=dict)
    delayed: set[Work] = field(default_factory=set)
    forgotten_after_s: float = 600.0
    rebalancing: bool = False
    stops_slowly: dict[Work, float] = field(default_factory=dict)
    _owners: dict[Work, str] = field(default_factory=dict, init=False)
    _ending: dict[Work, str] = field(default_factory=dict, init=False)
    _starts: dict[str, int] = field(default_factory=dict, init=False)
    _joined: dict[str, int] = field(default_factory=dict, init=False)
    _generation: int = field(default=0, init=False)
    _fading: bool = field(default=False, init=False)

    @abstractmethod
    def work(self) -> list[Work]:
        """The connectors and tasks that there are to own."""

    @abstractmethod
    def bring_work(self) -> None:
        """Starts and ends what the members' new assignments say."""

    @abstractmethod
    def ended(self, work: Work, url: str) -> None:
        """A task that was taken from a worker has ended."""

    @abstractmethod
    def left(self, url: str) -> None:
        """What a worker says when it stops in an orderly way."""

    # -- what the coordinator tells

    @property
    def state(self) -> str:
        """The group's, as its coordinator has it."""
        if not self.modes:
            return "Dead" if self.forgotten else "Empty"
        return "PreparingRebalance" if self.rebalancing else "Stable"

    @property
    def leader(self) -> str:
        """The URL of the worker that leads."""
        return next(iter(self.modes), "http://w0:8083")

    def member_id(self, url: str) -> str:
        """Another one after each start."""
        starts = self._starts.get(url, 0)
        return f"member {url} {starts}" if starts else f"member {url}"

    def describe(self, group_id: str | None = None) -> RawGroup:
        """What DescribeGroups says of the group, or of another one that its coordinator does not know."""
        wanted = self.group_id if group_id is None else group_id
        if wanted != self.group_id or self.state == "Dead":
            return RawGroup(wanted, "Dead", "connect" if self._fading and wanted == self.group_id else "", "", ())
        protocol = "sessioned" if self.state == "Stable" else ""
        return RawGroup(wanted, self.state, "connect", protocol, tuple(self._described(url) for url in self.modes))

    def _described(self, url: str) -> RawGroupMember:
        """What a member had when it joined, and what changed since, which is all that is told in a rebalance.

        What was taken from it and has not ended is in both.
        """
        new = self._joined.get(url) == self._generation
        owned = [(name.encode("utf-8", "replace").decode(), task) for name, task in self.owned(url)]  # as Java does
        ending = [work for work, owner in self._ending.items() if owner == url]
        mute = self.mirror_maker and not self.internal
        leader_url = "NOTUSED" if mute else f"{self.leader}/"
        leader = (self.member_id(self.leader), leader_url, self.config_offset)
        current = None if new and url not in self.reads_up_to else Assignment(2, 0, *leader, (*owned, *ending))
        advertised = "NOTUSED" if mute else f"{url}/"
        metadata = encode_metadata(Metadata(2, advertised, self.reads_up_to.get(url, self.config_offset), current))
        assignment = encode_assignment(Assignment(2, 0, *leader, tuple(owned) if new else (), tuple(ending)))
        if self.rebalancing:
            metadata, assignment = b"", b"" if new else assignment
        client_id, host = "a->b" if self.mirror_maker else "connect", self.hosts.get(url, "127.0.0.1")
        return RawGroupMember(self.member_id(url), client_id, f"/{host}", metadata, assignment)

    # -- who owns what

    def owned(self, url: str) -> list[Work]:
        """Connectors and tasks that are assigned to a member."""
        self._assign()
        return sorted(work for work, owner in self._owners.items() if owner == url)

    def owner(self, name: str, number: int) -> str:
        """The URL of the member that owns a task, or the connector itself; empty while nobody does."""
        self._assign()
        return self._owners.get((name, number), "")

    def own(self, url: str, *work: Work) -> None:
        """From the start these are the member's."""
        self._assign()
        self._owners.update(dict.fromkeys(work, url))

    def _assign(self) -> None:
        """Who owns something keeps it; what nobody owns goes to those that own least of its kind."""
        there = [work for work in self.work() if work not in self.delayed]
        self._owners = {work: self._owners[work] for work in there if self._owners.get(work) in self.modes}
        for work in there if self.modes else ():
            if work not in self._owners and work not in self._ending:
                self._owners[work] = min(self.modes, key=partial(self._load, kind=work[1] < 0))

    def _load(self, url: str, *, kind: bool) -> int:
        return sum(owner == url and (work[1] < 0) == kind for work, owner in self._owners.items())

    def _moves(self) -> Iterator[Work]:
        """What is taken from members that own too much, for the next rebalance to give to others."""
        for kind in (True, False):
            while self.modes:
                load = {url: self._load(url, kind=kind) for url in self.modes}
                most = max(load, key=lambda url: load[url])
                if load[most] - min(load.values()) < 2:
                    break
                work = next(each for each, owner in self._owners.items() if owner == most and (each[1] < 0) == kind)
                del self._owners[work]
                self._ending[work] = most
                yield work

    # -- workers come and go

    def stop_worker(self, url: str) -> None:
        """The worker ends; if it led its group, the next one leads."""
        with self.event("stop_worker", url):
            self.starting.pop(url, None)
            if self.modes.pop(url, None) is None:
                return
            self.left(url)
            self.rebalance()
            self.time.later(self.forgotten_after_s, self._forget)

    def _forget(self) -> None:
        self.forgotten = self._fading = not self.modes
        self.time.later(LAG_S, self._fade)

    def _fade(self) -> None:
        self._fading = False

    def start_worker(self, url: str, mode: str) -> None:
        """The worker answers, and soon joins as a new member."""
        with self.event("start_worker", url):
            self.starting[url] = mode
            self.time.later(LAG_S, partial(self._join, url))

    def _join(self, url: str) -> None:
        if url not in self.starting:
            return
        with self.event("join", url):
            self._starts[url] = self._starts.get(url, 0) + 1
            self.modes[url], self.forgotten, self._fading = self.starting.pop(url), False, False
            self.rebalance()
            self._joined[url] = self._generation

    def rebalance(self, lasts_s: float = LAG_S) -> None:
        """A rebalance begins; one that is under way begins anew."""
        self._generation += 1
        self.rebalancing = True
        self.time.later(lasts_s, partial(self._rebalanced, self._generation))

    def _rebalanced(self, generation: int) -> None:
        if generation != self._generation:
            return
        if self.frozen & self.modes.keys():
            self.time.later(LAG_S, partial(self._rebalanced, generation))
            return
        with self.event("rebalance"):
            self.rebalancing = False
            self._assign()
            for work in list(self._moves()):
                self.time.later(LAG_S, partial(self._end, work))
            self.bring_work()

    def take(self, work: Work, url: str) -> None:
        """A task is taken from a worker; the leader has ended its own when others hear of it."""
        if url == self.leader:
            self.ended(work, url)
        elif work not in self._ending:
            self._ending[work] = url
            self.time.later(self.stops_slowly.get(work, LAG_S), partial(self._end, work))

    def _end(self, work: Work) -> None:
        url = self._ending.pop(work)
        self.ended(work, url)
        self.rebalance()
