"""The Connect group: its workers and their modes, its source connectors, and pending fencing. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from eosctl.app import App
from eosctl.checks.group.plain_groups import uses_exactly_once
from eosctl.collect.facts import ConnectorFacts, GroupFacts, WorkerFacts
from eosctl.collect.overview import Overview
from eosctl.core.findings import ERROR
from eosctl.core.ids import task_transactional_id
from eosctl.group.gather import observe_workers
from eosctl.group.observation.rules import VALIDATION, Observation, ObservedConnector
from eosctl.group.observed import WorkerObservation
from eosctl.observation.connectors import codes
from eosctl.observation.connectors.exactly_once import task_audit
from eosctl.observation.connectors.rules import fencing_round
from eosctl.observation.gather import observe_connectors


@dataclass(slots=True)
class ConnectGroupLook:
    """Looks at members, connectors and their transactional ids; remembers since when a task has none.

    `without_since` is by connector and task, with only those that doctor is certain about.
    """

    without_since: dict[tuple[str, int], int] = field(default_factory=dict)

    def __call__(self, app: App, _overview: Overview) -> GroupFacts:
        """Observe the group. Raises what its coordinator raises; a worker that does not answer is a fact."""
        group = observe_workers(app, gone_ok=True)
        seen = observe_connectors(app, group, validate=False)
        now_ms = app.clock.now_ms()
        without = [(each.name, task) for each in seen.sources() for task in _without_transaction(each, seen)]
        self.without_since = {each: self.without_since.get(each, now_ms) for each in without}
        connectors = None
        if seen.connectors is not None:
            connectors = tuple(_connector(each, seen, self._without_since(each.name)) for each in seen.sources())
        return GroupFacts(
            group_id=group.group_id or "",
            state=group.state or "unknown",
            workers=tuple(_worker(each, is_known=group.state is not None) for each in group.members),
            connectors=connectors,
            exactly_once=uses_exactly_once(seen),
            unseen=_unseen(seen),
        )

    def _without_since(self, connector: str) -> dict[int, int]:
        return {task: since_ms for (name, task), since_ms in self.without_since.items() if name == connector}


def _without_transaction(connector: ObservedConnector, seen: Observation) -> Iterable[int]:
    """Yield the tasks that are not exactly-once and should be, as doctor judges; merely idle ones are left out."""
    for found in task_audit(connector, seen):
        if found.code == codes.TASK_NOT_EXACTLY_ONCE and found.severity == ERROR:
            yield int(found.subject.rpartition("/")[2])


def _unseen(seen: Observation) -> Mapping[str, str]:
    """Return what was not seen, except validation, and silent workers where another one reported the connectors."""
    known = {VALIDATION} if seen.connectors is None else {VALIDATION, "connectors"}
    return {what: why for what, why in seen.unseen.items() if what not in known}


def _worker(member: WorkerObservation, *, is_known: bool) -> WorkerFacts:
    """Make the facts of a worker. `is_known`: the coordinator reported the group's members."""
    is_up = member.failure is None and member.health != "unreachable"
    is_member = member.member_id is not None or not is_known
    return WorkerFacts(member.name, member.mode.value, member.leader, member.version, member.health, is_up, is_member)


def _connector(each: ObservedConnector, seen: Observation, lacking: Mapping[int, int]) -> ConnectorFacts:
    recorded = seen.config_state.connectors.get(each.name) if seen.config_state is not None else None
    ids = {task: task_transactional_id(seen.group_id or "", each.name, task) for task in each.tasks()}
    return ConnectorFacts(
        name=each.name,
        state=each.states.get("connector", "unknown"),
        tasks=each.tasks(),
        without_transaction=lacking,
        fencing_due=recorded is not None and recorded.pending_fencing and seen.crowding is not None,
        fencing_s=None if seen.crowding is None else fencing_round(each, seen)[2],
        quiet_ms={task: quiet.quiet_ms for task, one in ids.items() if (quiet := seen.quiet.get(one)) is not None},
    )
