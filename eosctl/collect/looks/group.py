"""The Connect group: its workers and their modes, its source connectors, what fencing is due. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eosctl.app import App
from eosctl.checks.group.plain_groups import uses_exactly_once
from eosctl.collect.facts import ConnectorFacts, GroupFacts, WorkerFacts
from eosctl.collect.overview import Overview
from eosctl.core.ids import TransactionalId, task_of, task_transactional_id
from eosctl.group.gather import observe_workers
from eosctl.group.observation.rules import VALIDATION, Observation, ObservedConnector
from eosctl.group.observed import WorkerObservation
from eosctl.observation.connectors.rules import fencing_round
from eosctl.observation.gather import observe_connectors


@dataclass(slots=True)
class ConnectGroupLook:
    """Looks at members, connectors and their transactional ids; remembers since when a task has none."""

    without_since: dict[TransactionalId, int] = field(default_factory=dict)

    def __call__(self, app: App, _overview: Overview) -> GroupFacts:
        """Raises what the group's coordinator raises; a worker that does not answer is a fact."""
        group = observe_workers(app, gone_ok=True)
        seen = observe_connectors(app, group, validate=False)
        exactly_once = uses_exactly_once(seen)
        now_ms = app.clock.now_ms()
        unknown = seen.unknown_ids if exactly_once and seen.unknown_ids is not None else frozenset()
        self.without_since = {each: self.without_since.get(each, now_ms) for each in unknown}
        connectors = None
        if seen.connectors is not None:
            lacking = self._by_connector(seen.group_id or "")
            connectors = tuple(_connector(each, seen, lacking.get(each.name, {})) for each in seen.sources())
        return GroupFacts(
            group_id=group.group_id or "",
            state=group.state or "unknown",
            workers=tuple(_worker(each, is_known=group.state is not None) for each in group.members),
            connectors=connectors,
            exactly_once=exactly_once,
            unseen=_unseen(seen),
        )

    def _by_connector(self, group_id: str) -> dict[str, dict[int, int]]:
        found: dict[str, dict[int, int]] = {}
        for transactional_id, since_ms in self.without_since.items():
            work = task_of(transactional_id, group_id)
            if work is not None:
                found.setdefault(work[0], {})[work[1]] = since_ms
        return found


def _unseen(seen: Observation) -> Mapping[str, str]:
    """Without what nobody asked for, and the workers that do not answer where another one told it all."""
    known = {VALIDATION} if seen.connectors is None else {VALIDATION, "connectors"}
    return {what: why for what, why in seen.unseen.items() if what not in known}


def _worker(told: WorkerObservation, *, is_known: bool) -> WorkerFacts:
    """`is_known`: whether the coordinator was asked for the group's members."""
    is_up = told.failure is None and told.health != "unreachable"
    is_member = told.member_id is not None or not is_known
    return WorkerFacts(told.name, told.mode.value, told.leader, told.version, told.health, is_up, is_member)


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
