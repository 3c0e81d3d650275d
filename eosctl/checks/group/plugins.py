"""Connector classes that configs name and that some members of the group lack. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.core.configs.classes import PROPERTY, names_one_of
from eosctl.core.findings import ERROR, Finding
from eosctl.core.java.properties import is_reference
from eosctl.core.wording import counted
from eosctl.failures import codes
from eosctl.foreign import arguments
from eosctl.group.observation.rules import Observation, ObservedConnector
from eosctl.group.observed import GroupObservation, WorkerObservation


def missing_plugins(group: GroupObservation, seen: Observation) -> Iterable[Finding]:
    """Yield an error for each member that lacks a class that another one lists.

    Nothing is reported about a class that no member lists: workers leave a few of Kafka's own out of the list.
    """
    listed = [each for each in group.members if each.member_id is not None and each.plugins]
    for worker in listed:
        lacking = [each for each in seen.connectors or () if _has(worker, each) is False]
        lacking = [each for each in lacking if any(_has(other, each) for other in listed)]
        if lacking:
            yield _finding(worker, lacking, [other for other in listed if _has(other, lacking[0])])


def _has(worker: WorkerObservation, connector: ObservedConnector) -> bool | None:
    """Return whether it lists the connector's class; None where the config names none that one could look for."""
    named = connector.config.get(PROPERTY, "")
    return names_one_of(connector.config, worker.plugins or ()) if named and not is_reference(named) else None


def _finding(worker: WorkerObservation, lacking: list[ObservedConnector], others: list[WorkerObservation]) -> Finding:
    first, classes = lacking[0], sorted({each.config[PROPERTY] for each in lacking})
    more = f" and {counted(len(lacking) - 1, 'more connector')}" if lacking[1:] else ""
    return Finding(
        codes.PLUGIN_MISSING, ERROR, worker.name,
        f"{worker.name} does not have the class {first.config[PROPERTY]} of {first.name}{more}, which "
        f"{counted(len(others), 'other member')} of the group {'has' if len(others) == 1 else 'have'}: what it gets "
        "of them fails there",
        f"Put the plugin into the plugin.path of {worker.name}, as {others[0].name} has it, and restart that worker; "
        f"then `eosctl connectors restart --failed {arguments(first.name)}`.",
        {"connectors": [each.name for each in lacking], "classes": classes, "had_by": [each.name for each in others]},
    )  # fmt: skip
