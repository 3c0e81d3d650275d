"""How a rule reads source partitions out of a connector's config, and what it says of them. Pure.

What a rule reads is kept: two configs with the same values there have the same source partitions. A value that a config
provider resolves is not known, and nor is what it names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import StrEnum, unique
from functools import cached_property

from msgspec import Struct

from eosctl.core.java.properties import is_reference

Partition = Mapping[str, object]


@unique
class Belongs(StrEnum):
    """The answer to whether a source partition can be one of a config."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class NotKnownError(Exception):
    """The config alone does not name source partitions; the text says why."""


class ExpectedPartition(Struct, frozen=True):
    """A source partition that follows from a config, in its newest form.

    `older` are forms under which the connector looks for its offset, too: not all versions do if `older_counts` is
    unknown. `further` are members of the oldest versions, whose offsets not all versions find. `alike` is a member
    whose value is not exactly known, and what decides whether another is the same.
    """

    partition: Partition
    older: tuple[Partition, ...] = ()
    older_counts: Belongs = Belongs.YES
    further: frozenset[str] = frozenset()
    alike: tuple[str, Callable[[str, str], Belongs]] | None = None

    def is_same(self, partition: Partition) -> bool:
        """Decide whether a source partition in a topic can be this one."""
        return self.match(partition) is not Belongs.NO

    def match(self, partition: Partition) -> Belongs:
        """Decide whether the connector finds the offset of a source partition in a topic as the one of this."""
        found = {name: value for name, value in partition.items() if name not in self.further}
        if (answer := self._match(self.partition, found)) is not Belongs.NO:
            return answer if len(found) == len(partition) else Belongs.UNKNOWN
        answers = (self._match(form, found) for form in self.older)
        answer = next((each for each in answers if each is not Belongs.NO), Belongs.NO)
        return self.older_counts if answer is Belongs.YES else answer

    def _match(self, form: Partition, found: Partition) -> Belongs:
        if form.keys() != found.keys():
            return Belongs.NO
        member, compare = self.alike or ("", None)
        if any(value != found[name] for name, value in form.items() if name != member):
            return Belongs.NO
        if compare is None or member not in form:
            return Belongs.YES
        return compare(str(form[member]), str(found[member]))


class NamedPartitions(Struct, frozen=True, dict=True):
    """The source partitions that a config names: those that are `expected`, and others by `judge` (None: no others).

    `group` returns the same for all forms of a source partition, where many may be expected.
    """

    expected: tuple[ExpectedPartition, ...] = ()
    judge: Callable[[Partition], Belongs] | None = None
    group: Callable[[Partition], Hashable] = lambda _partition: None

    def belongs(self, partition: Partition) -> Belongs:
        """Decide whether a source partition can belong to the config."""
        answers = {each.match(partition) for each in self._expected_by_group.get(self.group(partition), ())}
        if found := answers - {Belongs.NO}:
            return Belongs.YES if Belongs.YES in found else Belongs.UNKNOWN
        return Belongs.NO if self.judge is None else self.judge(partition)

    def missing(self, present: Iterable[Partition]) -> list[ExpectedPartition]:
        """Return the expected source partitions that none of those present can be."""
        seen = defaultdict[Hashable, list[Partition]](list)
        for partition in present:
            seen[self.group(partition)].append(partition)
        return [each for each in self.expected if not any(map(each.is_same, seen.get(self.group(each.partition), ())))]

    @cached_property
    def _expected_by_group(self) -> Mapping[Hashable, list[ExpectedPartition]]:
        found = defaultdict[Hashable, list[ExpectedPartition]](list)
        for each in self.expected:
            found[self.group(each.partition)].append(each)
        return found


class Reader:
    """Reads the properties of a config for a rule, and keeps what was read."""

    def __init__(self, config: Mapping[str, str | None]) -> None:
        """Read `config`."""
        self._config = config
        self.read: dict[str, str] = {}
        self.context: dict[str, str] = {}

    def get(self, name: str, default: str = "") -> str:
        """Return a property that names source partitions; raise NotKnownError if only a worker can resolve it."""
        return self.within(name, self.raw(name) or default)

    def first(self, *names: str) -> str:
        """Return the property that stands in for the others; raise NotKnownError unless one of them is set.

        The versions of a connector know it under different names: those that are set must have one value.
        """
        values = {self.get(name) for name in names if self.raw(name)}
        if len(values) != 1:
            raise NotKnownError(f"{' and '.join(names)} differ" if values else f"the config has no {names[0]}")
        return values.pop()

    def has(self, name: str) -> bool:
        """Return whether a property is set, be it to nothing."""
        return self._config.get(name) is not None

    def raw(self, name: str) -> str:
        """Return a property as it is written; empty without it."""
        return self._config.get(name) or ""

    def within(self, name: str, value: str) -> str:
        """Return a part of a property that names source partitions; raise NotKnownError as `get` does."""
        self.read[name] = value
        return resolved(name, value)

    def beside(self, *names: str) -> None:
        """Keep properties of which a part of the source partitions may follow, and it is not known how."""
        self.context |= {name: address(self.raw(name)) for name in names}

    def keep(self, name: str, value: str) -> None:
        """Keep what of a property decides about source partitions of other versions than the newest."""
        self.read[name] = value


def resolved(name: str, value: str) -> str:
    """Return a value, or a part of it; raise NotKnownError if only a worker can resolve that."""
    if is_reference(value):
        raise NotKnownError(f"only the worker can resolve {name}, as its value comes from a config provider")
    return value


_LOGIN = re.compile(r"(?<=//)[^/?;]*@|[?&;](?:user(?:name)?|password)=[^&;]*", re.I)


def address(value: str) -> str:
    """Return an address without its login, and any other value as it is."""
    return _LOGIN.sub("", value)


class Meaning(Struct, frozen=True):
    """The meaning that a change of any of these properties has for offsets, though the source partitions stay.

    Another login in an address is no such change. `may_skip`: with the present offset, records may be skipped or read
    again.
    """

    properties: tuple[str, ...]
    text: str
    may_skip: bool = True


class ConfigRule(Struct, frozen=True):
    """`named_by` describes the members of a source partition and their properties, `evidence` says where from."""

    read: Callable[[Reader], NamedPartitions]
    named_by: str
    evidence: str
    meanings: tuple[Meaning, ...] = ()
