"""A Connect group and its workers as observed at one time. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError
from eosctl.group import codes
from eosctl.group.members import STABLE, KnownNodes, NodeMember, name_nodes
from eosctl.group.protocol import Work
from eosctl.group.rows import AssignedPart, TaskPart, WorkerMode, WorkerRow
from eosctl.report import Problem


class WorkerObservation(Struct, frozen=True):
    """One worker; `connectors` and `tasks` are None if the group was not stable, or not asked.

    `health` is healthy, starting, unhealthy, unknown or unreachable; `evidence` is the basis of `mode` and of doubts.
    `config_lag` is None unless the config topic was read; `failure` is why the worker itself did not answer.
    `client_host` is the address from which the member is connected to its coordinator. `wanted_offset` is the config
    offset that the group requires and that it does not reach, if so. Workers of a dedicated MirrorMaker have no REST
    interface for us (`has_rest`); one that advertises no URL is a `node`. `outside` is the evidence that it runs
    without being a member, if so. `plugins` are the classes of the connectors that it lists, with their versions.
    `worker_id` is a member's name in REST, by the URL that it advertises.
    """

    url: str | None
    member_id: str | None
    leader: bool
    version: str | None
    health: str
    config_offset: int | None
    connectors: tuple[str, ...] | None
    tasks: tuple[Work, ...] | None
    mode: Mode
    evidence: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    failure: EosctlError | None = None
    config_lag: int | None = None
    client_host: str | None = None
    wanted_offset: int | None = None
    has_rest: bool = True
    client_id: str = ""
    node: str | None = None
    doubt: str = ""
    outside: str = ""
    plugins: Mapping[str, frozenset[str]] | None = None
    worker_id: str | None = None

    def without_answers(self, doubt: str) -> WorkerObservation:
        """Remove what may be another worker's answer."""
        health = self.health if self.failure is not None else "unknown"
        evidence = self.evidence if self.failure is not None else ("what answers at its URL may be another worker",)
        return replace(
            self, version=None, health=health, mode=Mode.UNKNOWN, evidence=evidence, problems=(), doubt=doubt,
            plugins=None,
        )  # fmt: skip

    def with_other_group_problem(self, how: str) -> WorkerObservation:
        """Add the problem that it is a worker of another group."""
        message = f"the worker at {self.url} {how}: it is of another group"
        hint = "Compare -u, and -g with the worker's group.id. A worker that has just started joins within a second."
        return replace(self, problems=(*self.problems, Problem(codes.OTHER_GROUP, message, hint)))

    def with_outside_problem(self, how: str) -> WorkerObservation:
        """Add the problem that it runs outside of its group."""
        message = f"the worker at {self.url} runs, its health is {self.health}, and {how}"
        problem = Problem(codes.WORKER_NOT_A_MEMBER, message, codes.WORKER_NOT_A_MEMBER.next).as_warning()
        return replace(self, problems=(*self.problems, problem), outside=how)

    @property
    def unversioned(self) -> Sequence[str]:
        """The listed plugins without a version: the worker could not get it from their classes."""
        return sorted(name for name, versions in (self.plugins or {}).items() if not versions)

    @property
    def name(self) -> str:
        """The worker's name: its URL, or its node."""
        return self.url or self.node or str(self.member_id)

    def as_row(self) -> WorkerRow:
        """Convert to the row of workers-list and workers-probe."""
        assigned = None
        if self.connectors is not None and self.tasks is not None:
            tasks = [TaskPart(connector=connector, task=task) for connector, task in self.tasks]
            assigned = AssignedPart(connectors=list(self.connectors), tasks=tasks)
        return WorkerRow(
            url=self.url,
            member_id=self.member_id,
            leader=self.leader,
            version=self.version,
            health=self.health,
            config_offset=self.config_offset,
            config_lag=self.config_lag,
            assigned=assigned,
            mode=cast("WorkerMode", self.mode.value),
            evidence=list(self.evidence),
        )


class GroupObservation(Struct, frozen=True):
    """A group and its workers; `state` is None if only REST was asked (no Kafka cluster or no group was named).

    `proxies` are given URLs that lead to some member, and that no member advertises.
    """

    group_id: str | None
    kafka_cluster_id: str | None
    state: str | None
    protocol: str | None
    leader_member_id: str | None
    leader_url: str | None
    members: tuple[WorkerObservation, ...]
    proxies: tuple[WorkerObservation, ...] = ()

    @property
    def is_mirror_maker(self) -> bool:
        """Whether its workers are those of a dedicated MirrorMaker, which no request reaches."""
        return bool(self.members) and not any(member.has_rest for member in self.members)

    @property
    def leader_name(self) -> str | None:
        """The name of the member that leads, where it is known."""
        return next((member.name for member in self.members if member.leader), self.leader_url)

    def named_as(self, known: KnownNodes) -> GroupObservation:
        """Rename MirrorMaker's nodes that are `known` to their previous names."""
        if all(member.node is None for member in self.members):
            return self
        mute = [
            NodeMember(each.member_id, each.client_host or "", each.client_id)
            for each in self.members
            if each.node is not None and each.member_id is not None
        ]
        present = {each.member_id for each in mute}
        names = name_nodes(mute, known.now(present) if self.stable else known.members)
        members = (replace(each, node=names.get(each.member_id or "", each.node)) for each in self.members)
        return replace(self, members=tuple(sorted(members, key=lambda each: each.name)))

    @property
    def hidden(self) -> Sequence[WorkerObservation]:
        """The members whose URLs their coordinator hides while a rebalance goes on."""
        there = () if self.stable else self.members
        return [member for member in there if member.member_id and member.has_rest and member.worker_id is None]

    @property
    def stable(self) -> bool:
        """Whether members and their work are known for sure."""
        return self.state == STABLE
