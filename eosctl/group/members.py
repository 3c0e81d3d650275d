"""A Connect group as its coordinator describes it: decoded members, owned work, and the leader. Pure."""

from __future__ import annotations

from msgspec import Struct

from eosctl.core.transactions import PROTOCOL_TYPE, RawGroup, RawGroupMember
from eosctl.errors import NotFoundError
from eosctl.group.mirror_makers import is_flow
from eosctl.group.protocol import CONNECTOR_ITSELF, Work, decode_assignment, decode_metadata, held_work, owned_work

STABLE = "Stable"
EMPTY = "Empty"
DEAD = "Dead"
UNSIGNED_PROTOCOLS = ("default", "compatible")
"""Protocols without session keys (KIP-507): workers do not sign their requests to each other; `default` is eager."""


_NO_URL = "NOTUSED"  # MirrorMaker.addHerder, 2.4 to 4.3


class ConnectMember(Struct, frozen=True):
    """One worker in the group; `url`, `config_offset` and `owned` are None while the group is not stable.

    `held` is the work that it may still run, although some of it may belong to another member or to none by now.
    `has_rest` is false for a worker of a dedicated MirrorMaker: it has no REST interface, or (if it has a `url`) one
    for other members only. `wanted_offset` is the config offset of an earlier rebalance that it had not reached when it
    joined again.
    """

    member_id: str
    client_id: str
    host: str
    leader: bool
    url: str | None = None
    config_offset: int | None = None
    owned: tuple[Work, ...] | None = None
    held: frozenset[Work] = frozenset()
    has_rest: bool = True
    wanted_offset: int | None = None

    def connectors(self) -> tuple[str, ...] | None:
        """Return the connectors whose Connector instance runs here."""
        if self.owned is None:
            return None
        return tuple(connector for connector, task in self.owned if task == CONNECTOR_ITSELF)

    def tasks(self) -> tuple[Work, ...] | None:
        """Return the tasks that run here."""
        return None if self.owned is None else tuple(work for work in self.owned if work[1] != CONNECTOR_ITSELF)


class ConnectGroup(Struct, frozen=True):
    """`protocol` is default (eager), compatible or sessioned; the leader is None where it is not known."""

    group_id: str
    state: str
    protocol: str
    leader_member_id: str | None
    leader_url: str | None
    members: tuple[ConnectMember, ...]

    @property
    def is_mirror_maker(self) -> bool:
        """Whether it is a dedicated MirrorMaker without REST; false while a rebalance hides what members advertise."""
        return bool(self.members) and not any(member.has_rest for member in self.members)


def connect_group(raw: RawGroup) -> ConnectGroup:
    """Decode DescribeGroups' answer; raise NotFoundError for an unknown or foreign group, or ProtocolError."""
    if raw.state == DEAD and not raw.members:
        raise NotFoundError(
            f"the Connect group {raw.group_id!r} does not exist on this Kafka cluster",
            hint="Compare with group.id of the workers and their bootstrap.servers; a group whose workers are all "
            "stopped is forgotten after some time.",
        )
    if raw.protocol_type != PROTOCOL_TYPE:
        kind = f"one of protocol type {raw.protocol_type!r}" if raw.protocol_type else "a plain consumer group"
        raise NotFoundError(
            f"the group {raw.group_id!r} is not a Connect group but {kind}",
            hint="Give group.id of the workers; the consumer groups of sink connectors are called connect-CONNECTOR.",
        )
    assignments = [decode_assignment(member.assignment) for member in raw.members if member.assignment]
    leaders = {(assignment.leader, assignment.leader_url) for assignment in assignments}
    # While a rebalance goes on, coordinators keep assignments of different rounds, or none.
    leader, leader_url = leaders.pop() if raw.state == STABLE and len(leaders) == 1 else (None, None)
    members = tuple(_member(member, leader, stable=raw.state == STABLE) for member in raw.members)
    ordered = tuple(sorted(members, key=lambda member: (member.url or "", member.member_id)))
    leader_url = None if leader_url == _NO_URL else leader_url
    return ConnectGroup(raw.group_id, raw.state, raw.protocol, leader, leader_url, ordered)


def _member(raw: RawGroupMember, leader: str | None, *, stable: bool) -> ConnectMember:
    leads = raw.member_id == leader
    if not stable or not raw.metadata:
        return ConnectMember(raw.member_id, raw.client_id, raw.host, leads)
    metadata = decode_metadata(raw.metadata)
    assignment = decode_assignment(raw.assignment) if raw.assignment else None
    newest_offset = metadata.config_offset if assignment is None else assignment.config_offset
    before = -1 if metadata.current is None else metadata.current.config_offset
    wanted = before if before > metadata.config_offset else None
    if wanted is not None:  # the assigned offset is not the one that it has read
        newest_offset = metadata.config_offset
    owned, held = owned_work(metadata, assignment), held_work(metadata, assignment)
    url = None if metadata.url == _NO_URL else metadata.url
    has_rest = url is not None and not is_flow(raw.client_id)
    return ConnectMember(
        raw.member_id, raw.client_id, raw.host, leads, url, newest_offset, owned, held, has_rest, wanted
    )
