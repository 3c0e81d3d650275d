"""Source connectors that are RUNNING and have no task, for longer than it takes to make them. Reads only."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.statuses import StatusLog
from eosctl.core.configs.classes import pruned_class
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.ids import worker_id_of_url
from eosctl.core.wording import counted
from eosctl.foreign import arguments
from eosctl.group.members import STABLE
from eosctl.group.observation.rules import Observation, ObservedConnector

MOMENT_MS, LONG_MS = 60_000, 300_000
"""A rebalance and a round of fencing take less than the one, but for large groups; the other is no moment anywhere."""


def find_without_tasks(app: App, seen: Observation, log: StatusLog) -> list[Finding]:
    """Return a finding for each; none where the status topic, which alone has the time of its start, has nothing."""
    if seen.group_state != STABLE:
        return []
    now_ms = app.clock.now_ms()
    idle = [(each, log.newest(each.name, "connector")) for each in seen.sources() if _has_no_tasks(each)]
    ages = [(each, now_ms - status.at_ms) for each, status in idle if status is not None and status.state == "RUNNING"]
    return [finding for each, age_ms in ages if age_ms >= MOMENT_MS for finding in _judge(each, age_ms, seen)]


def _has_no_tasks(connector: ObservedConnector) -> bool:
    """Return whether it should have tasks and has none: MirrorMaker's have none as long as there is nothing to copy."""
    is_mirror = pruned_class(connector.config).startswith("Mirror")
    return connector.states.get("connector") == "RUNNING" and not connector.tasks() and not is_mirror


def _judge(connector: ObservedConnector, age_ms: int, seen: Observation) -> Iterable[Finding]:
    name, worker = connector.name, connector.workers.get("connector", "")
    recorded = seen.config_state.connectors.get(name) if seen.config_state is not None else None
    count = len(recorded.task_ids) if recorded is not None else 0
    leader = next((each.name for each in seen.workers if each.leader), None)
    said = f"{name} has been RUNNING on {worker or 'a worker'} without a task for {age_ms // 60_000:,} m"
    restart = f"`eosctl connectors restart {arguments(name)}`"
    evidence = {"worker": worker, "leader": leader, "running_ms": age_ms, "tasks_written": count}
    if count:
        set_age_ms = seen.task_set_age_ms(name)
        if set_age_ms is not None and set_age_ms >= MOMENT_MS:
            yield Finding(
                codes.SOURCE_WITHOUT_TASKS, ERROR if min(age_ms, set_age_ms) >= LONG_MS else WARNING, name,
                f"{said}: the config topic has {counted(count, 'task')} of it, and no worker says anything of them",
                f"See the logs of the workers, the leader's first: what keeps the tasks from being started. {restart} "
                "once that is mended.",
                evidence,
            )  # fmt: skip
    elif leader is not None and worker == worker_id_of_url(leader):
        yield Finding(
            codes.SOURCE_WITHOUT_TASKS, INFO, name, f"{said}: it gave its worker no task configs",
            "Nothing, if there is nothing for it to read; its worker's log may say why.", evidence,
        )  # fmt: skip
    else:
        yield Finding(
            codes.SOURCE_WITHOUT_TASKS, WARNING, name,
            f"{said}: it found nothing to read, or its worker could not hand its task configs to the leader",
            f"See the log of {worker or 'its worker'}: whether it reaches the leader ({leader or 'not known'}) over "
            f"REST. {restart} once it does.",
            evidence,
        )  # fmt: skip
