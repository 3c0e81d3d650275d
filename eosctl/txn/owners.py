"""The owners of transactional ids, and parts of rows about ids, of `txn` and other features.

Owners are found by known connectors and groups, else by the form of the id.

`fence` loads no more of `txn` than this. Refusals and missing answers of brokers become rows, counts and exit codes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import (
    Owner,
    ProducerId,
    TransactionalId,
    groups_of_task,
    leader_transactional_id,
    may_be_task,
    owner_of,
    task_of,
)
from eosctl.core.transactions import OPEN_STATES, KafkaFault
from eosctl.errors import ExitCode
from eosctl.group.listing import list_connect_groups
from eosctl.output.cells import duration
from eosctl.output.rows import Header, KafkaError

_LEADS = leader_transactional_id("")


def owners_of_ids(
    app: App,
    ids: Collection[TransactionalId],
    *,
    connectors: frozenset[str] = frozenset(),
    running: frozenset[str] = frozenset(),
    groups: frozenset[str] | None = None,
) -> Mapping[TransactionalId, Owner]:
    """Return the owner of each id; `connectors` are all that the group is known to have, `running` some of them.

    Every task id of a group `connect-cluster`, the name that many distributions use, looks like a leader's id, too, and
    those of a group `connect-cluster-eu` look like its own: for ambiguous ids the Connect `groups` are listed, if the
    caller does not know them, and the config topic is read if that is not enough.
    """
    group_id = app.target.group_id
    owners: dict[TransactionalId, Owner] = {}
    several: list[TransactionalId] = []
    for each in ids:  # once, while the text of the id is at hand
        owner = owners[each] = owner_of(each, group_id, connectors)
        if _reads_in_several_ways(each, group_id, owner, connectors):
            several.append(each)
    if not several:
        return owners
    if groups is None:
        groups = list_connect_groups(app)[0]
    readers = {each: _readers(each, group_id, groups or frozenset()) for each in several}
    known = connectors
    leads = groups is None or any(each.removeprefix(_LEADS) in groups for each in several)
    if group_id is not None and not known and (leads or any(len(some) > 1 for some in readers.values())):
        from eosctl.group.absent import recorded_of  # most ids read one way only

        recorded = recorded_of(replace(app, deadline=app.deadline.half()))  # leave time for other work
        known = frozenset(recorded.connectors if recorded else ())
    everything = known | running if known else known
    for each in several:
        found = readers[each]
        own = None if group_id is None else task_of(each, group_id)
        if own is not None and own[0] in running:
            owners[each] = owner_of(each, group_id, {own[0]}, groups=groups)
        elif own is not None:
            owners[each] = owner_of(each, group_id, everything, groups=groups)
        elif len(found) > 1:
            owners[each] = Owner("ambiguous")
        elif found:
            owners[each] = owner_of(each, found[0], groups=groups)
    return owners


def _reads_in_several_ways(
    transactional_id: TransactionalId, group_id: str | None, owner: Owner, connectors: Collection[str]
) -> bool:
    """Decide whether the form of the id is ambiguous; it is not if its connector is known to be of the group."""
    if transactional_id.startswith(_LEADS) and may_be_task(transactional_id):
        return True
    if group_id is None or owner.kind != "task" or owner.connector in connectors:
        return False
    return len(groups_of_task(transactional_id)) > 1


def _readers(transactional_id: TransactionalId, group_id: str | None, groups: Collection[str]) -> list[str]:
    """Return the existing groups, including the named one, to which this may be the id of a task."""
    return [each for each in groups_of_task(transactional_id) if each == group_id or each in groups]


ShownId = Annotated[TransactionalId, "The transactional id."]
ShownProducerId = Annotated[ProducerId, "The producer id that the coordinator has for the transactional id."]
ShownEpoch = Annotated[int, "The producer's epoch; brokers refuse a producer with a lower one.", Header("EPOCH")]
ShownTimeout = Annotated[int, "Its transaction timeout in milliseconds.", Header("TIMEOUT-MS")]
ShownCoordinator = Annotated[int, "The node id of the broker that coordinates the transactional id."]


def open_for(state: str | None, age_ms: int | None) -> str | None:
    """Return how long a transaction has been open; None if it is not, as a coordinator keeps the last one's start."""
    return duration(age_ms) if age_ms is not None and (state is None or state in OPEN_STATES) else None


# TOPIC_, GROUP_, CLUSTER_, TRANSACTIONAL_ID_AUTHORIZATION_FAILED and SASL_AUTHENTICATION_FAILED
AUTHORIZATION_CODES = frozenset({29, 30, 31, 53, 58})
# no answer: no leader, timed out, connection lost, coordinator loading, unknown or moving, transaction still ending
UNREACHABLE_CODES = frozenset({5, 6, 7, 13, 14, 15, 16, 51})
LOST_ANSWER_CODES = frozenset({7, 13})  # timed out, connection lost: the request may have been done all the same
NOT_CHECKED, NO_ANSWER = "not_checked", 7


def error_cell(fault: KafkaFault) -> KafkaError:
    """Return the `error` member of a row."""
    return KafkaError(code=fault.name, kafka_code=fault.code, message=fault.message or fault.name)


def exit_code_of_faults(faults: Iterable[KafkaFault | None]) -> ExitCode:
    """Return the exit code if everything failed: not authorised, unreachable, or unclassified if causes differ."""
    codes = {fault.code if fault is not None else 0 for fault in faults}
    if codes <= AUTHORIZATION_CODES:
        return ExitCode.UNAUTHORIZED
    return ExitCode.UNREACHABLE if codes <= UNREACHABLE_CODES else ExitCode.FAILED
