"""A Connect group as its coordinator describes it: decoded members, owned work, the leader, and names of nodes. Pure.

Workers of a dedicated MirrorMaker that advertise no URL are named by their host, and a number. A member id changes with
each restart, so a node is identified by the host that it connects from, and by its client id unless MirrorMaker sets
that. Nodes of one host can only be counted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count

from msgspec import Struct

from eosctl.core.java.properties import whole_number
from eosctl.core.transactions import PROTOCOL_TYPE, RawGroup, RawGroupMember
from eosctl.errors import NotFoundError
from eosctl.group.protocol import CONNECTOR_ITSELF, Work, decode_assignment, decode_metadata, held_work, owned_work

_FLOW = "->"
_NUMBER = re.compile(r"(?P<place>.+)#(?P<number>[0-9]+)")


def is_flow(client_id: str) -> bool:
    """Decide whether MirrorMaker gives this client id to the worker of a flow (`SOURCE->TARGET`, 2.4 to 4.3)."""
    source, arrow, target = client_id.partition(_FLOW)
    return bool(source and arrow and target)


def is_node(name: str) -> bool:
    """Decide whether a worker's name is one of this module's, and not a URL."""
    return "://" not in name


class NodeName(Struct, frozen=True):
    """The parts of a node's name; `host` is as brokers see it, `number` counts indistinguishable nodes from 1 on."""

    host: str
    client_id: str
    number: int

    @classmethod
    def read(cls, name: str) -> NodeName:
        """Parse a name."""
        found = _NUMBER.fullmatch(name)
        number = whole_number(found["number"]) if found else None
        host, _slash, client_id = (found["place"] if found and number is not None else name).partition("/")
        return cls(host, client_id, 1 if number is None else number)

    @property
    def place(self) -> str:
        """The part of the name that indistinguishable nodes share."""
        return f"{self.host}/{self.client_id}" if self.client_id else self.host

    def __str__(self) -> str:
        return self.place if self.number == 1 else f"{self.place}#{self.number}"


class NodeMember(Struct, frozen=True):
    """A member of the group that has no URL."""

    member_id: str
    host: str
    client_id: str

    @property
    def place(self) -> str:
        """The same part as of `NodeName`."""
        return NodeName(self.host, "" if is_flow(self.client_id) else self.client_id, 1).place


class KnownNodes(Struct, frozen=True):
    """The members of a group before a step (name -> member id), and the nodes that it has `restarted`.

    Nodes that are `alike` can't be mapped to members of their place: it is only known that one of them is gone.
    """

    members: Mapping[str, str | None]
    restarted: tuple[str, ...] = ()
    alike: frozenset[str] = frozenset()

    def now(self, present: Collection[str]) -> dict[str, str | None]:
        """Return `members`, with names swapped so that missing members belong to nodes that were `restarted`."""
        named = dict(self.members)
        for name in (each for each in self.restarted if named.get(each) in present and each in self.alike):
            gone = (
                each for each in sorted(self.alike) if are_alike(name, each) and _has_gone(named.get(each), present)
            )
            other = next(gone, None)
            if other is not None:
                named[name], named[other] = named[other], named[name]
        return named


def name_nodes(members: Iterable[NodeMember], known: Mapping[str, str | None]) -> dict[str, str]:
    """Map member ids to names; a member that is `known` (name -> member id) keeps its name, others get a free one."""
    kept = {member_id: name for name, member_id in known.items() if member_id is not None}
    ordered = sorted(members, key=lambda each: (each.place, each.member_id))
    names = {each.member_id: kept[each.member_id] for each in ordered if each.member_id in kept}
    for each in ordered:
        if each.member_id not in names:
            taken = set(names.values())
            names[each.member_id] = next(name for name in _numbered(each.place) if name not in taken)
    return names


def _numbered(place: str) -> Iterator[str]:
    first = NodeName.read(place)
    return (str(NodeName(first.host, first.client_id, number)) for number in count(1))


def _has_gone(member_id: str | None, present: Collection[str]) -> bool:
    return member_id is not None and member_id not in present


def are_alike(name: str, other: str) -> bool:
    """Decide whether nothing but a number distinguishes two nodes."""
    same = is_node(name) and is_node(other) and NodeName.read(name).place == NodeName.read(other).place
    return same and name != other


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
