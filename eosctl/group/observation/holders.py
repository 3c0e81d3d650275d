"""The holders of a connector's parts by the group's own assignment, which REST's states may contradict. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from eosctl.group.observation.rules import ObservedConnector
from eosctl.group.observed import GroupObservation
from eosctl.group.protocol import CONNECTOR_ITSELF, Work

Assigned = Mapping[str, Sequence[Work]]
"""Worker id of a member -> its assigned work."""


def part_name(task: int) -> str:
    """Return the name of a task, or of the connector itself, in `ObservedConnector.states`."""
    return "connector" if task == CONNECTOR_ITSELF else f"task {task}"


def assigned_work(group: GroupObservation) -> Assigned | None:
    """Return the assigned work of each member of a stable group; None if any URL or work is unknown."""
    found: dict[str, Sequence[Work]] = {}
    for each in group.members:
        if each.member_id is None:
            continue
        if not group.stable or each.worker_id is None or each.connectors is None or each.tasks is None:
            return None
        work = [*((name, CONNECTOR_ITSELF) for name in each.connectors), *each.tasks]
        found[each.worker_id] = [*found.get(each.worker_id, ()), *work]
    return found if group.stable else None


def with_holders(connectors: Iterable[ObservedConnector], assigned: Assigned | None) -> tuple[ObservedConnector, ...]:
    """Return the connectors with the members to which their parts are assigned, as far as that is known."""
    if assigned is None:
        return tuple(connectors)
    held: dict[str, dict[str, str]] = {}
    for worker, work in assigned.items():
        for name, task in work:
            held.setdefault(name, {})[part_name(task)] = worker
    return tuple(replace(each, holders=held.get(each.name, {})) for each in connectors)
