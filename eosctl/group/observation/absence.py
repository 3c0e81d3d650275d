"""A Connect group without members: whether its workers are just stopped, or it was never on this Kafka cluster. Pure.

A coordinator forgets a group some minutes after its last worker has gone, and then answers as for one that never was.
A mistyped name may also be that of a group that is there and has no members, while the right one runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from eosctl.core.ids import TransactionalId, leader_transactional_id, may_be_task, task_of
from eosctl.core.wording import alike_first
from eosctl.errors import NotFoundError
from eosctl.foreign import shell_word
from eosctl.group.members import DEAD

if TYPE_CHECKING:  # most commands meet no group without members
    from eosctl.core.configs.fold import ConfigState
    from eosctl.core.records import TopicRead

_NAMED = 3
_GROUPS_NAMED = 5


class OtherGroup(Struct, frozen=True):
    """A Connect group that has members: the connectors that they hold, and up to where they read their config topic.

    `config_offset` is None where they do not report: while they rebalance.
    """

    connectors: Collection[str]
    config_offset: int | None = None


class Recorded(Struct, frozen=True):
    """What a config topic has of connectors, the offset of the newest commit of tasks (-1: none), and the topic's end.

    Each commit of tasks makes the members of its group rebalance, and report a config offset behind it.
    """

    connectors: Collection[str] = ()
    newest_commit: int = -1
    end: int = 0

    @classmethod
    def of(cls, state: ConfigState, read: TopicRead) -> Recorded:
        """That of a topic with one partition, as read and folded."""
        commits = (-1 if each.commit_offset is None else each.commit_offset for each in state.connectors.values())
        end = max((bound.end for bound in read.bounds), default=0)
        return cls(frozenset(state.connectors), max(commits, default=-1), end)

    def may_be_read_by(self, group: OtherGroup) -> bool:
        """Whether it may be the config topic of a group with members."""
        return group.config_offset is None or self.newest_commit < group.config_offset <= self.end


class Traces(Struct, frozen=True):
    """What there is of a group beside its members, about some of its `connectors`; None is what can't be known.

    `ids` are all that the coordinators know, `recorded` is what `config_topic` has, and `others` the other Connect
    groups that have members. `files` are the group ids of the worker files that name this config topic, by their paths.
    """

    connectors: Collection[str]
    ids: Collection[TransactionalId] | None
    config_topic: str
    recorded: Recorded | None
    others: Mapping[str, OtherGroup] | None = None
    files: Mapping[str, str] = {}

    def missing(self, group_id: str) -> str | None:
        """What was looked at in vain; None where there is a trace of the group.

        Its traces are ids, and a config topic with the connector, unless that is to be seen as another group's.
        """
        if self.has_ids(group_id):
            return None
        theirs = self.theirs(group_id)
        if self.there() and theirs is None:
            return None
        ids = "no transactional id is its leader's or a task's of it"
        ids = "transactional ids can't be listed" if self.ids is None else ids
        return f"{ids}, and {theirs or self._about_topic()}"

    def has_ids(self, group_id: str) -> bool:
        """Whether the group's leader id is known, or an id of one of its connectors' tasks."""
        named = frozenset((*self.connectors, *(self.recorded.connectors if self.recorded else ())))
        return any(_is_of(each, group_id, named) for each in self.ids or ())

    def theirs(self, group_id: str) -> str | None:
        """What shows that the config topic, and these connectors in it, are another group's.

        Without such a topic it is enough that members of another group have a connector of that name.
        """
        there = self.there()
        shown = self._by_file(group_id) or self._by_members(there)
        if shown is None and not self.has_ids(group_id):
            shown = self._by_ids(group_id, there)
            if self.recorded is None and (members := self._by_members(self.connectors)) is not None:
                return f"{self._about_topic()} that shows its owner: {members}"
        return None if shown is None else f"topic {self.config_topic} seems to be another group's: {shown}"

    def there(self) -> list[str]:
        """Those of the connectors that the config topic has."""
        return sorted(set(self.connectors) & set(self.recorded.connectors if self.recorded else ()))

    def _by_file(self, group_id: str) -> str | None:
        if not self.files or group_id in self.files.values():
            return None
        return next(f"{source} has group.id={theirs}" for source, theirs in self.files.items())

    def _by_members(self, there: Collection[str]) -> str | None:
        for other, group in sorted((self.others or {}).items()):
            name = next((name for name in there if name in group.connectors), None)
            if name is not None and (self.recorded is None or self.recorded.may_be_read_by(group)):
                return f"members of group {other} have connector {name}"
        return None

    def _by_ids(self, group_id: str, there: Collection[str]) -> str | None:
        ends = tuple(f"-{name}" for name in there)
        for each in sorted(self.ids or ()) if ends else ():
            foreign = not each.startswith(f"{group_id}-") and may_be_task(each)
            if foreign and each.rpartition("-")[0].endswith(ends):
                return f"{each} looks like an id of its connectors"
        return None

    def _about_topic(self) -> str:
        if self.recorded is None:
            return f"there is no topic {self.config_topic} to be read"
        names = sorted(self.connectors)
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return f"topic {self.config_topic} has no connector {', '.join(names[:_NAMED])}{more}".rstrip()


def groups_there(group_id: str, groups: Collection[str], bootstrap_servers: Sequence[str]) -> str:
    """The Connect groups that are there in place of `group_id`, the most alike first, and how to list them."""
    script = f"kafka-groups.sh --bootstrap-server {shell_word(','.join(bootstrap_servers))} --list --protocol connect"
    command = f"`{script}` (of Kafka 4.0 or newer)"
    if not groups:
        return f"No Connect group can be seen on this Kafka cluster; {command} lists those that one may DESCRIBE."
    alike = alike_first(group_id, groups)
    more = len(alike) - _GROUPS_NAMED
    rest = f" and {more} more, which {command} lists" if more > 0 else ""
    return f"Connect groups of this Kafka cluster: {', '.join(alike[:_GROUPS_NAMED])}{rest}."


def _is_of(transactional_id: TransactionalId, group_id: str, connectors: Collection[str]) -> bool:
    if transactional_id == leader_transactional_id(group_id):
        return True
    work = task_of(transactional_id, group_id)
    return work is not None and work[0] in connectors


def judge_absence(group_id: str, *, state: str, answering: str | None, missing: str | None) -> str | None:
    """What is doubtful about a group without members, as a sentence; None for one whose workers are just stopped.

    `answering` is the URL of a worker that was named for it and is up, `missing` what its Traces lack. Raises
    NotFoundError where the group was most likely never there, or is not that worker's.
    """
    if state == DEAD and answering is not None:
        raise NotFoundError(
            f"the worker at {answering} answers, but the Connect group {group_id!r} does not exist on this Kafka "
            "cluster: the worker is of another group",
            hint="Compare -g with group.id of the worker, which REST does not report.",
        )
    if state == DEAD and missing is not None:
        raise NotFoundError(
            f"the Connect group {group_id!r} does not exist on this Kafka cluster, and nothing shows that it ever did: "
            f"{missing}",
            hint="Compare -g with group.id of the workers, and -b with their bootstrap.servers.",
        )
    if answering is not None:
        return f"the worker at {answering} answers, but the group {group_id} has no member: it is of another group"
    if state == DEAD:
        return f"the coordinator has forgotten the group {group_id}: its workers stopped long ago"
    return None
