"""A Connect group without members: its workers are stopped, or it never existed on this Kafka cluster. Pure.

A coordinator forgets a group some minutes after its last worker has gone, and then answers as for an unknown one. A
mistyped name may also be that of an existing group without members, while the right one runs.
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

if TYPE_CHECKING:  # rarely needed
    from eosctl.core.configs.fold import ConfigState
    from eosctl.core.records import TopicRead

_NAMED = 3
_GROUPS_NAMED = 5


class OtherGroup(Struct, frozen=True):
    """A Connect group with members: their connectors, and the offset to which they have read their config topic.

    `config_offset` is None during a rebalance, when members do not report it.
    """

    connectors: Collection[str]
    config_offset: int | None = None


class Recorded(Struct, frozen=True):
    """The connectors of a config topic, the offset of the newest commit of tasks (-1: none), and the topic's end.

    After each commit of tasks, the members of its group rebalance and report a config offset behind it.
    """

    connectors: Collection[str] = ()
    newest_commit: int = -1
    end: int = 0

    @classmethod
    def of(cls, state: ConfigState, read: TopicRead) -> Recorded:
        """Summarize a topic with one partition, as read and folded."""
        commits = (-1 if each.commit_offset is None else each.commit_offset for each in state.connectors.values())
        end = max((bound.end for bound in read.bounds), default=0)
        return cls(frozenset(state.connectors), max(commits, default=-1), end)

    def may_be_read_by(self, group: OtherGroup) -> bool:
        """Decide whether it may be the config topic of a group with members."""
        return group.config_offset is None or self.newest_commit < group.config_offset <= self.end


class GroupEvidence(Struct, frozen=True):
    """The evidence of a memberless group, for some of its `connectors`; a field is None if it can't be known.

    `ids` are all that the coordinators know, `recorded` is the content of `config_topic`, and `others` are the other
    Connect groups with members. `files` are the group ids of the worker files that name this config topic, by path.
    """

    connectors: Collection[str]
    ids: Collection[TransactionalId] | None
    config_topic: str
    recorded: Recorded | None
    others: Mapping[str, OtherGroup] | None = None
    files: Mapping[str, str] = {}

    def missing(self, group_id: str) -> str | None:
        """Return which evidence is missing; None if the group has left any.

        Evidence is ids, and a config topic with the connector, unless it appears to be another group's.
        """
        if self.has_ids(group_id):
            return None
        theirs = self.other_owner(group_id)
        if self.recorded_connectors() and theirs is None:
            return None
        ids = "no transactional id is its leader's or a task's of it"
        ids = "transactional ids can't be listed" if self.ids is None else ids
        return f"{ids}, and {theirs or self._about_topic()}"

    def has_ids(self, group_id: str) -> bool:
        """Decide whether the group's leader id is known, or the id of a task of its connectors."""
        named = frozenset((*self.connectors, *(self.recorded.connectors if self.recorded else ())))
        return any(_is_of(each, group_id, named) for each in self.ids or ())

    def other_owner(self, group_id: str) -> str | None:
        """Return the evidence that the config topic, with these connectors, belongs to another group.

        Without such a topic it is enough that members of another group run a connector of that name.
        """
        recorded = self.recorded_connectors()
        shown = self._by_file(group_id) or self._by_members(recorded)
        if shown is None and not self.has_ids(group_id):
            shown = self._by_ids(group_id, recorded)
            if self.recorded is None and (members := self._by_members(self.connectors)) is not None:
                return f"{self._about_topic()} that shows its owner: {members}"
        return None if shown is None else f"topic {self.config_topic} seems to be another group's: {shown}"

    def recorded_connectors(self) -> list[str]:
        """Return the connectors that the config topic has, too."""
        return sorted(set(self.connectors) & set(self.recorded.connectors if self.recorded else ()))

    def _by_file(self, group_id: str) -> str | None:
        if not self.files or group_id in self.files.values():
            return None
        return next(f"{source} has group.id={theirs}" for source, theirs in self.files.items())

    def _by_members(self, connectors: Collection[str]) -> str | None:
        for other, group in sorted((self.others or {}).items()):
            name = next((name for name in connectors if name in group.connectors), None)
            if name is not None and (self.recorded is None or self.recorded.may_be_read_by(group)):
                return f"members of group {other} have connector {name}"
        return None

    def _by_ids(self, group_id: str, connectors: Collection[str]) -> str | None:
        ends = tuple(f"-{name}" for name in connectors)
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


def existing_groups_hint(group_id: str, groups: Collection[str], bootstrap_servers: Sequence[str]) -> str:
    """List the Connect groups that exist, most similar to `group_id` first, and the command that lists all."""
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
    """Return what is doubtful about a group without members, as a sentence; None if its workers are just stopped.

    `answering` is the URL of a named worker that is up, `missing` is what `GroupEvidence.missing` returns. Raises
    NotFoundError if the group most likely never existed, or is not that worker's.
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
