"""The public classes of each Kafka release from 3.3 to 4.4, and those of their members that not every release has.

`kafka-classes.txt` has them, made from the jars of the releases by `relist`. Its lines:

    releases 3.3.2 3.4.1 …                   the releases that were read: bit 0 is the first
    package org/apache/kafka/common/utils    what follows is of this package
    classes 7ff AppInfoParser Exit …         classes, after the releases that have them: a bit each, in hex
    classes 7ff?800 …                        of the releases after `?` it is not known: their jar was not published
    class Utils                              what follows are members of this class
    member 3ff loadProps(Ljava/lang/String;)Ljava/util/Properties;

A member counts for a release where the class has it, or inherits it. Only members that some release of the class lacks
are listed, and none of packages that no plugin uses (`relist.py: _has_members`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from msgspec import Struct

from eosctl.core.java.class_file import Member
from eosctl.core.versions import Version, kafka_version

KAFKA = "org/apache/kafka/"
FILE_NAME = "kafka-classes.txt"


class KafkaClasses(Struct, frozen=True):
    """The table; `classes` have the bits of the releases that have them, and of those of which it is not known."""

    releases: tuple[str, ...]
    classes: Mapping[str, tuple[int, int]]
    members: Mapping[tuple[str, Member], int]

    @property
    def range(self) -> str:
        """The first and the last version that it covers, in words."""
        return f"{_minor(self.releases[0])} to {_minor(self.releases[-1])}"

    def release_of(self, version: Version) -> str | None:
        """Return the release that stands for a version; None where the table has none."""
        return next((each for each in self.releases if kafka_version(each) == version), None)

    def has(self, name: str, release: str) -> bool | None:
        """Return whether the release has a public class; None where that is not known."""
        present, unknown = self.classes.get(name, (0, 0))
        bit = self._bit(release)
        if present & bit:
            return True
        return None if unknown & bit or not present else False

    def lacks_member(self, owner: str, member: Member, release: str) -> bool:
        """Return whether the release has the class without this member, and another release has it with the member."""
        present = self.members.get((owner, member))
        return present is not None and not present & self._bit(release) and self.has(owner, release) is True

    def moved_to(self, name: str, release: str) -> str | None:
        """Return the class of that simple name that the release has, and that no release had beside `name`."""
        present, unknown = self.classes.get(name, (0, 0))
        simple, bit = name.rpartition("/")[2], self._bit(release)
        found = [
            other
            for other, (bits, _unknown) in self.classes.items()
            if bits & bit and not bits & (present | unknown) and other.endswith(f"/{simple}")
        ]
        return found[0] if len(found) == 1 else None

    def _bit(self, release: str) -> int:
        return 1 << self.releases.index(release)


def _minor(release: str) -> str:
    return release.rpartition(".")[0]


def read_table(lines: Iterable[str]) -> KafkaClasses:
    """Read the lines of `kafka-classes.txt`."""
    releases: tuple[str, ...] = ()
    classes: dict[str, tuple[int, int]] = {}
    members: dict[tuple[str, Member], int] = {}
    package = owner = ""
    for line in lines:
        kind, _, rest = line.rstrip("\n").partition(" ")
        if kind == "releases":
            releases = tuple(rest.split())
        elif kind == "package":
            package = rest
        elif kind == "classes":
            bits, *names = rest.split()
            present, _, unknown = bits.partition("?")
            masks = int(present, 16), int(unknown or "0", 16)
            classes.update((f"{package}/{name}", masks) for name in names)
        elif kind == "class":
            owner = f"{package}/{rest}"
        elif kind == "member":
            bits, _, text = rest.partition(" ")
            members[owner, member_of(text)] = int(bits, 16)
    return KafkaClasses(releases, classes, members)


def member_of(text: str) -> Member:
    """Return the member of a text such as `close()V` or, for a field, `NAME:Ljava/lang/String;`."""
    name, parenthesis, descriptor = text.partition("(")
    if parenthesis:
        return name, f"({descriptor}"
    name, _, descriptor = text.partition(":")
    return name, descriptor


def member_text(member: Member) -> str:
    """Return a member as the table has it."""
    name, descriptor = member
    return f"{name}{descriptor}" if descriptor.startswith("(") else f"{name}:{descriptor}"


@cache
def known_classes() -> KafkaClasses:
    """Read the table that eosctl has."""
    return read_table((files(__package__) / FILE_NAME).read_text(encoding="utf-8").splitlines())
