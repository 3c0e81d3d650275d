"""A Connect group without members: whether its workers are just stopped, or it was never on this Kafka cluster. Pure.

A coordinator forgets a group some minutes after its last worker has gone, and then answers as for one that never was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from eosctl.core.connect_group import DEAD
from eosctl.core.ids import leader_transactional_id, may_be_task, task_of
from eosctl.errors import NotFoundError

_NAMED = 3
_GROUPS_NAMED = 5


@dataclass(frozen=True, slots=True)
class Traces:
    """What there is of a group beside its members, about some of its `connectors`; None is what can't be known.

    `ids` are all that the coordinators know, `recorded` the connectors of `config_topic`, and `others` the connectors
    of the other Connect groups that have members.
    """

    connectors: Collection[str]
    ids: Collection[str] | None
    config_topic: str
    recorded: Collection[str] | None
    others: Mapping[str, Collection[str]] | None = None

    def missing(self, group_id: str) -> str | None:
        """What was looked at in vain; None where there is a trace of the group.

        Its traces are ids, and a config topic with the connector, unless that is to be seen as another group's.
        """
        if self.has_ids(group_id):
            return None
        there = sorted(set(self.connectors) & set(self.recorded or ()))
        theirs = self._theirs(group_id, there)
        if there and theirs is None:
            return None
        ids = "no transactional id is its leader's or a task's of it"
        ids = "transactional ids can't be listed" if self.ids is None else ids
        return f"{ids}, and {self._about_topic(theirs)}"

    def has_ids(self, group_id: str) -> bool:
        """Whether the group's leader id is known, or an id of one of its connectors' tasks."""
        named = frozenset((*self.connectors, *(self.recorded or ())))
        return any(_is_of(each, group_id, named) for each in self.ids or ())

    def _theirs(self, group_id: str, there: Collection[str]) -> str | None:
        """What shows that one of these connectors is another group's."""
        for other, connectors in sorted((self.others or {}).items()):
            if name := next((name for name in there if name in connectors), None):
                return f"members of group {other} have connector {name}"
        ends = tuple(f"-{name}" for name in there)
        for each in sorted(self.ids or ()) if ends else ():
            foreign = not each.startswith(f"{group_id}-") and may_be_task(each)
            if foreign and each.rpartition("-")[0].endswith(ends):
                return f"{each} looks like an id of its connectors"
        return None

    def _about_topic(self, theirs: str | None) -> str:
        if self.recorded is None:
            return f"there is no topic {self.config_topic} to be read"
        if theirs is not None:
            return f"topic {self.config_topic} seems to be another group's: {theirs}"
        names = sorted(self.connectors)
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return f"topic {self.config_topic} has no connector {', '.join(names[:_NAMED])}{more}".rstrip()


def groups_there(group_id: str, groups: Collection[str], bootstrap_servers: Sequence[str]) -> str:
    """The Connect groups that are there in place of `group_id`, the most alike first, and how to list them."""
    from difflib import SequenceMatcher  # for an error only

    command = f"`kafka-groups.sh --bootstrap-server {quote(','.join(bootstrap_servers))} --list --protocol connect`"
    if not groups:
        return f"No Connect group can be seen on this Kafka cluster; {command} lists those that one may DESCRIBE."
    alike = sorted(groups, key=lambda name: (-SequenceMatcher(None, group_id, name).ratio(), name))
    more = len(alike) - _GROUPS_NAMED
    rest = f" and {more} more, which {command} lists" if more > 0 else ""
    return f"Connect groups of this Kafka cluster: {', '.join(alike[:_GROUPS_NAMED])}{rest}."


def _is_of(transactional_id: str, group_id: str, connectors: Collection[str]) -> bool:
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
            hint="Compare -g with group.id of the worker, which REST does not tell.",
        )
    if state == DEAD and missing is not None:
        raise NotFoundError(
            f"the Connect group {group_id!r} does not exist on this Kafka cluster, and nothing tells that it ever did: "
            f"{missing}",
            hint="Compare -g with group.id of the workers, and -b with their bootstrap.servers.",
        )
    if answering is not None:
        return f"the worker at {answering} answers, but the group {group_id} has no member: it is of another group"
    if state == DEAD:
        return f"the coordinator has forgotten the group {group_id}: its workers stopped long ago"
    return None
