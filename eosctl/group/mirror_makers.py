"""Names for the workers of a dedicated MirrorMaker that advertise no URL: their host, and a number. Pure.

A member id changes with each restart, so a node is identified by the host that it connects from, and by its client id
unless MirrorMaker sets that. Nodes of one host can only be counted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count

from msgspec import Struct

from eosctl.core.java.numbers import whole_number

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
