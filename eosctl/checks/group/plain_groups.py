"""Groups that do not use exactly-once: how they are recognised, and the findings that matter there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eosctl.checks import codes
from eosctl.core.findings import INFO, Finding
from eosctl.core.wording import counted
from eosctl.core.workers.modes import Mode
from eosctl.group.observation.rules import OTHER_GROUPS, Observation, ObservedConnector
from eosctl.observation.connectors.commit_age import offset_age
from eosctl.observation.connectors.exactly_once import is_in_use, requires_support
from eosctl.observation.connectors.rules import Rule, connector_findings, offsets_topic, properties
from eosctl.task_counts import codes as task_count_codes

_RULES: Sequence[Rule] = (offset_age, offsets_topic, properties)
_ELSEWHERE = frozenset({Mode.DISABLED, Mode.PREPARING, Mode.NOT_ENABLED, Mode.OLD_VERSION})
_NOT_WRITTEN = frozenset({task_count_codes.MISSING, task_count_codes.MIS_ORDERED})
"""Findings about task-count records that workers without exactly-once neither write nor read."""


def plain_findings(observation: Observation, connectors: Iterable[ObservedConnector]) -> list[Finding]:
    """Return findings about these connectors in a group without exactly-once: that it is one, and what matters anyway.

    A connector that requires exactly-once is judged as if the group used it.
    """
    sources = [each for each in connectors if each.type == "source"]
    required = [each for each in sources if requires_support(each)]
    others = [each for each in sources if each not in required]
    found = [finding for each in others for rule in _RULES for finding in rule(each, observation)]
    return [*_not_used(observation, others), *connector_findings(observation, required), *found]


def _not_used(observation: Observation, others: Sequence[ObservedConnector]) -> Iterable[Finding]:
    if others:
        tasks = counted(sum(len(each.tasks()) for each in others), "task")
        yield Finding(
            codes.EXACTLY_ONCE_NOT_USED, INFO, observation.group_id or "group",
            f"no worker is enabled: {counted(len(others), 'source connector')} with {tasks} write without transactions",
            "Nothing, if that is meant; `eosctl upgrade plan --to enabled` has what exactly-once takes, and "
            "`eosctl connectors check` what stands against it.",
        )  # fmt: skip


def uses_exactly_once(observation: Observation) -> bool:
    """Return whether tasks may run exactly-once: not where workers are known not to, and none to be enabled."""
    modes = {worker.mode for worker in observation.workers}
    return is_in_use(observation) or not (observation.mirror_maker or modes & _ELSEWHERE)


def needless_codes(observation: Observation) -> frozenset[str]:
    """Return the codes of findings about task-count records that say nothing of this group.

    Whose ids another group has is judged among its connectors, by what that group runs, where that is known.
    """
    written = frozenset[str]() if uses_exactly_once(observation) else _NOT_WRITTEN
    are_judged = observation.rival_groups is not None and OTHER_GROUPS not in observation.forbidden
    return written | ({task_count_codes.ID_COLLISION} if are_judged else set())
