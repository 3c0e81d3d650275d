"""Transactional ids, connector and task names: the one place that formats or parses them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Literal, NewType
from urllib.parse import quote

from msgspec import Struct

from eosctl.foreign import arguments, shell_word

TransactionalId = NewType("TransactionalId", str)
ProducerId = NewType("ProducerId", int)
WorkerId = NewType("WorkerId", str)
"""`host:port`, as REST and the status topic name a worker; its URL has a scheme, too."""

FLINK_SINK: Literal["flink-sink"] = "flink-sink"
KAFKA_STREAMS: Literal["kafka-streams"] = "kafka-streams"
RISKY_IN_PATH = re.compile(r"%(2F|5C|25|[01][0-9A-F]|7F)")
"""Escapes that Jetty 12 refuses in a path."""
_STRICT_SINCE = (4, 0)
MIGRATION_PREFIX = "eosctl-migrate-"
"""The prefix of the ids under which the tasks of `offsets migrate` write: the plan's name and a number follow."""
_NUMBER = r"(?:0|[1-9][0-9]*)"  # as Java prints one
_LONGEST_NUMBER = len(str(2**31))
_SHAPES: tuple[tuple[Application, re.Pattern[str]], ...] = (
    # application.id, the UUID of the process, thread: one producer per thread (Streams 2.6+, `StreamsProducer`, EOS v2)
    (KAFKA_STREAMS, re.compile(rf".+-[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}-{_NUMBER}", re.DOTALL)),
    # application.id, subtopology_partition: one producer per task (Streams before 4.0, EOS v1)
    (KAFKA_STREAMS, re.compile(rf".+-{_NUMBER}_{_NUMBER}", re.DOTALL)),
    # prefix, subtask, checkpoint or place in the pool (`TransactionalIdFactory`, Flink 1.14+)
    (FLINK_SINK, re.compile(rf".+-{_NUMBER}-{_NUMBER}", re.DOTALL)),
    # task name, hash of the operator, number (the older FlinkKafkaProducer)
    (FLINK_SINK, re.compile(rf".+-[0-9a-f]{{32}}-{_NUMBER}", re.DOTALL)),
)


def task_transactional_id(group_id: str, connector: str, task: int) -> TransactionalId:
    """Return the transactional id of a source task (Kafka 3.3+, `Worker.taskTransactionalId`)."""
    return TransactionalId(f"{group_id}-{connector}-{task}")


def worker_id_of_url(url: str) -> WorkerId:
    """Return the worker id under which REST lists the worker at `url`."""
    return WorkerId(url.partition("://")[2])


def connector_path(connector: str) -> str:
    """Return the path of a connector in a worker's REST interface: `/connectors/my%20connector`."""
    return f"/connectors/{quote(connector, safe='')}"


def why_unreachable(connector: str, version: tuple[int, int] | None) -> str | None:
    """Explain why REST requests can't name a connector; None where they can.

    Kafka 4.0 comes with Jetty 12, which is strict.
    """
    path = connector_path(connector)
    if connector in ("", ".", ".."):
        return f"the connector name {connector!r} can't be part of a URL"
    if RISKY_IN_PATH.search(path) and (version or (0, 0)) >= _STRICT_SINCE:
        return (
            f"the REST interface of Kafka 4.0+ takes no slash, backslash, percent or control character in a name, and "
            f"so no {connector!r}"
        )
    return None


def stop_request(connector: str | None = None, *, profile: str | None = None) -> str:
    """Describe how to stop a connector; before Kafka 3.5 deleting it is the only way."""
    name, of_profile = connector or "NAME", "" if profile is None else f"-p {shell_word(profile)} "
    return (
        f"`eosctl connectors stop {of_profile}{arguments(name)}`; before Kafka 3.5 DELETE {connector_path(name)}, and "
        "create it again afterwards"
    )


def leader_transactional_id(group_id: str) -> TransactionalId:
    """Return the transactional id of a Connect leader (`DistributedConfig.transactionalProducerId`)."""
    return TransactionalId(f"connect-cluster-{group_id}")


_LEADS = leader_transactional_id("")


def own_transactional_id(group_id: str) -> TransactionalId:
    """Return the transactional id, one per group, under which eosctl itself writes to a running group's config topic.

    An upgrade takes it when it begins, so that it notices when another eosctl begins.
    """
    return TransactionalId(f"eosctl-config-{group_id}")


def offsets_transactional_id(group_id: str | None) -> TransactionalId:
    """Return the transactional id under which eosctl writes offsets of a group.

    It is never one of Connect's, as the ids of tasks end in a number. `eosctl-offsets-` is the prefix to grant, where
    one ACL is to serve for all groups.
    """
    return TransactionalId("-".join(["eosctl-offsets", *([group_id] if group_id else []), "writer"]))


def migration_transactional_id(plan: str) -> str:
    """Return the prefix of the ids of a migration's write tasks; a dash and the task's number follow."""
    return f"{MIGRATION_PREFIX}{plan}"


# the shapes of the three above; a plan's name is the beginning of its digest
_OWN = re.compile(
    rf"eosctl-config-.+|eosctl-offsets-(?:.+-)?writer|{MIGRATION_PREFIX}[0-9a-f]{{16}}-{_NUMBER}", re.DOTALL
)


def is_own_id(transactional_id: TransactionalId) -> bool:
    """Return whether the id is one of those under which eosctl itself writes."""
    return transactional_id.startswith("eosctl-") and _OWN.fullmatch(transactional_id) is not None  # most don't


def task_transactional_ids(group_id: str, connector: str, count: int) -> list[TransactionalId]:
    """Return the ids of tasks 0 to `count` - 1, in order."""
    return [task_transactional_id(group_id, connector, task) for task in range(count)]


OwnerKind = Literal["task", "leader", "eosctl", "other", "ambiguous"]
Application = Literal["flink-sink", "kafka-streams"]


class Owner(Struct, frozen=True, gc=False):
    """The owner of a transactional id."""

    kind: Annotated[OwnerKind, "What uses the id: a task, the leader of a group, eosctl itself, or something else."]
    connector: Annotated[str | None, "The connector of the task."] = None
    task: Annotated[int | None, "The number of the task."] = None
    application: Annotated[
        Application | None, "Of `other`: what makes ids of this shape. A guess, for any client may use such an id."
    ] = None

    def cell(self) -> str:
        """Format the owner: `orders/0` for a task; `flink-sink?` if only the form of the id is known."""
        if self.kind == "task":
            return f"{self.connector}/{self.task}"
        return f"{self.application}?" if self.application else self.kind


_OTHERS: Mapping[Application | None, Owner] = {
    each: Owner("other", application=each) for each in (None, FLINK_SINK, KAFKA_STREAMS)
}


def application_of(transactional_id: TransactionalId) -> Application | None:
    """Return FLINK_SINK or KAFKA_STREAMS if the id has the shape of theirs, whoever made it; else None."""
    head, _dash, last = transactional_id.rpartition("-")
    before = head.rpartition("-")[2]
    if "_" not in last and not before.isdigit() and len(before) not in (12, 32):
        return None  # most ids: quicker than by the shapes
    if transactional_id.startswith(_LEADS) or is_own_id(transactional_id):
        return None
    for application, shape in _SHAPES:
        if shape.fullmatch(transactional_id):
            return application
    return None


def task_of(transactional_id: TransactionalId, group_id: str) -> tuple[str, int] | None:
    """Return connector and task if this can be the id of a task of group `group_id`; else None."""
    head, _dash, tail = transactional_id.rpartition("-")
    connector = head.removeprefix(f"{group_id}-")
    return None if connector in ("", head) or not _is_task_number(tail) else (connector, int(tail))


def may_be_task(transactional_id: TransactionalId) -> bool:
    """Return whether this can be the id of a task of any group."""
    head, _dash, tail = transactional_id.rpartition("-")
    return "-" in head[1:-1] and _is_task_number(tail)


def groups_of_task(transactional_id: TransactionalId) -> list[str]:
    """Return the names of all groups of which this can be the id of a task, the shortest first."""
    head, _dash, tail = transactional_id.rpartition("-")
    if not _is_task_number(tail):
        return []
    return [head[:end] for end in range(1, len(head) - 1) if head[end] == "-"]


def owner_of(
    transactional_id: TransactionalId,
    group_id: str | None,
    connectors: Collection[str] = (),
    *,
    groups: Collection[str] | None = None,
) -> Owner:
    """Return the owner of an id, as seen from group `group_id`.

    Ids are plain joins with `-`, so one id can be read in several ways: group `a-b` with connector `c` has the ids of
    group `a` with connector `b-c`, and the leader id of group `x-0` is a task id of group `connect`. With `connectors`
    (all that the group has) only a task of one of them is claimed; without, `<group>-<something>-<number>` is taken for
    a task, unless it could equally be another group's leader, or a task of another one of `groups`: then it is
    ambiguous. With `groups` (all that the cluster has) it can only be the leader of one of those. Ids under which
    eosctl itself writes are eosctl's, unless a connector of the group has the same.
    """
    if group_id is not None and transactional_id == leader_transactional_id(group_id):
        return Owner("leader")
    work = None if group_id is None else task_of(transactional_id, group_id)
    if is_own_id(transactional_id) and (work is None or work[0] not in connectors):
        return Owner("eosctl")
    if group_id is not None and work is not None:
        is_known = work[0] in connectors
        fits = _may_be_of_other_group(transactional_id, group_id, groups, is_known=is_known)
        if is_known or not connectors:
            return Owner("ambiguous") if fits else Owner("task", *work)
    return _OTHERS[application_of(transactional_id)]


def _may_be_of_other_group(
    transactional_id: TransactionalId, group_id: str, groups: Collection[str] | None, *, is_known: bool
) -> bool:
    """Return whether the id can be that of another group's leader; or of its task, unless the connector `is_known`."""
    leads = transactional_id.startswith(_LEADS)
    if groups is None:
        return leads and not is_known
    if leads and transactional_id.removeprefix(_LEADS) in groups:
        return True
    return not is_known and any(each != group_id and each in groups for each in groups_of_task(transactional_id))


def _is_task_number(text: str) -> bool:
    """Return whether Connect would print a task number so: no sign, no leading zero, ASCII digits, a Java int."""
    return len(text) <= _LONGEST_NUMBER and text.isascii() and text.isdigit() and (text[0] != "0" or text == "0")
