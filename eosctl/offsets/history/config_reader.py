"""How a rule reads source partitions out of a connector's config, and what it says of them. Pure.

What a rule reads is kept: two configs with the same values there have the same source partitions. A value that a config
provider resolves is not known, and nor is what it names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum, unique

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

    `older` are forms under which the connector looks for its offset, too. `further` are members that it may have
    besides. `alike` is a member whose value is not exactly known, and what decides whether another is the same.
    """

    partition: Partition
    older: tuple[Partition, ...] = ()
    further: frozenset[str] = frozenset()
    alike: tuple[str, Callable[[str, str], bool]] | None = None

    def is_same(self, partition: Partition) -> bool:
        """Decide whether a source partition in a topic is this one."""
        found = {name: value for name, value in partition.items() if name not in self.further}
        return any(self._is_form(form, found) for form in (self.partition, *self.older))

    def _is_form(self, form: Partition, found: Partition) -> bool:
        if self.alike is None or form.keys() != found.keys():
            return dict(form) == found
        return all(
            self.alike[1](str(value), str(found[name])) if name == self.alike[0] else value == found[name]
            for name, value in form.items()
        )


class NamedPartitions(Struct, frozen=True):
    """The source partitions that a config names: those that are `expected`, and others by `judge` (None: no others)."""

    expected: tuple[ExpectedPartition, ...] = ()
    judge: Callable[[Partition], Belongs] | None = None

    def belongs(self, partition: Partition) -> Belongs:
        """Decide whether a source partition can belong to the config."""
        if any(each.is_same(partition) for each in self.expected):
            return Belongs.YES
        return Belongs.NO if self.judge is None else self.judge(partition)


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

    def raw(self, name: str) -> str:
        """Return a property as it is written; empty without it."""
        return self._config.get(name) or ""

    def within(self, name: str, value: str) -> str:
        """Return a part of a property that names source partitions; raise NotKnownError as `get` does."""
        self.read[name] = value
        return resolved(name, value)

    def beside(self, *names: str) -> None:
        """Keep properties of which a part of the source partitions may follow, and it is not known how."""
        self.context |= {name: self.raw(name).partition("?")[0] for name in names}


def resolved(name: str, value: str) -> str:
    """Return a value, or a part of it; raise NotKnownError if only a worker can resolve that."""
    if is_reference(value):
        raise NotKnownError(f"only the worker can resolve {name}, as its value comes from a config provider")
    return value


class Meaning(Struct, frozen=True):
    """The meaning that a change of any of these properties has for offsets, though the source partitions stay.

    `may_skip`: with the present offset, records may be skipped or read again.
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
