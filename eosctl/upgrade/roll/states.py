"""Compares connectors and tasks after a worker's restart with those before. Pure; judges, reads nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.connectors.failures import failed_in_fencing, failure_text
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.group.observation.rules import Observation
from eosctl.group.protocol import CONNECTOR_ITSELF, Work
from eosctl.upgrade import codes
from eosctl.upgrade.look import AcceptedRisks
from eosctl.upgrade.memory import Roll

RUNNING = "RUNNING"
_AT_REST = frozenset({RUNNING, "PAUSED", "STOPPED"})


class RestartJudgement(Struct, frozen=True):
    """The connectors and tasks still awaited, those to restart after failing in fencing, and those broken for good.

    `left` is what is FAILED and was so before.
    """

    waiting: tuple[str, ...]
    to_restart: tuple[str, ...]
    broken: tuple[str, ...]
    left: tuple[str, ...] = ()


def judge_connectors(
    before: Mapping[str, str],
    now: Mapping[str, ConnectorEntry],
    owned: Collection[Work],
    *,
    excused: Collection[Work] = (),
) -> RestartJudgement:
    """Compare connector states `before` with `now`; `owned` are the tasks that the group's members own.

    A state that a user sets meanwhile (paused, stopped, deleted) is theirs. A missing authorization is never retried.
    What is `excused` (tasks, connectors themselves) was FAILED before, and may fail again or recover.
    """
    waiting: list[str] = []
    to_restart: list[str] = []
    broken: list[str] = []
    left: list[str] = []
    for name in sorted(before.keys() & now.keys()):
        seen = now[name]
        left += [f"{name}/{t.task}" for t in seen.tasks if t.state == "FAILED" and (name, t.task) in excused]
        if seen.state == "FAILED" and (name, CONNECTOR_ITSELF) in excused:
            left.append(f"connector {name}")
            continue
        failed = [task for task in seen.tasks if task.state == "FAILED" and (name, task.task) not in excused]
        fencing = [task for task in failed if failed_in_fencing(task) and "Authorization" not in task.trace]
        if seen.state == "FAILED":
            broken.append(f"connector {name} is FAILED: {failure_text(seen.trace)}")
        broken += [f"{name}/{t.task} is FAILED: {failure_text(t.trace)}" for t in failed if t not in fencing]
        if fencing:
            to_restart.append(name)
        looked_at = [number for number in seen.wanted if (name, number) not in excused]
        waiting += _awaited(name, replace(seen, wanted=tuple(looked_at)), owned)
    return RestartJudgement(tuple(waiting), tuple(to_restart), tuple(broken), tuple(left))


def _awaited(name: str, seen: ConnectorEntry, owned: Collection[Work]) -> list[str]:
    if seen.state not in _AT_REST:
        return [f"connector {name} is {seen.state}"]
    states = {task.task: task.state for task in seen.tasks}
    wrong = [f"{name}/{number} is {states.get(number, 'not started')}" for number in seen.wanted
             if states.get(number) != seen.state]  # fmt: skip
    return wrong or [f"{name}/{number} is owned by no worker" for number in seen.wanted if (name, number) not in owned]


def states_of(observation: Observation) -> dict[str, str]:
    """Return the state of each connector itself."""
    return {each.name: each.states.get("connector", "UNKNOWN") for each in observation.connectors or ()}


def excused_work(observation: Observation, begun: Roll | None, risks: AcceptedRisks) -> frozenset[Work]:
    """Return the connectors and tasks that need not run again: they did not before, and that is accepted.

    While a step is open, its worker's tasks wait for it: those that are FAILED do not.
    """
    before = begun.excused if begun else frozenset()
    if not risks.way_back and codes.CONNECTORS_HEALTHY not in risks.accepted:
        return before
    return before | {
        (each.name, CONNECTOR_ITSELF if part == "connector" else int(part.removeprefix("task ")))
        for each in observation.connectors or ()
        for part, state in each.unhealthy_parts().items()
        if state == "FAILED" or begun is None
    }
