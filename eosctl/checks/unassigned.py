"""Since when connectors and tasks are UNASSIGNED, which REST does not report: the status topic does. Reads only."""

from __future__ import annotations

from collections.abc import Sequence

from eosctl.app import App
from eosctl.connectors import codes
from eosctl.connectors.failures import REBALANCE_DELAY_MS, long_unassigned
from eosctl.core.findings import Finding
from eosctl.core.java.numbers import java_number
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.group.observation.rules import Observation
from eosctl.group.protocol import CONNECTOR_ITSELF
from eosctl.group.topics.statuses import unassigned_since

_DELAY = "scheduled.rebalance.max.delay.ms"


def with_ages(app: App, findings: Sequence[Finding], observation: Observation) -> list[Finding]:
    """The findings, those of what is UNASSIGNED with its age; as they are where the status topic can't be read."""
    topics = sorted(app.target.status_topics())
    if not topics or all(each.code != codes.UNASSIGNED for each in findings):
        return list(findings)
    try:
        with app.topics() as store:
            told = unassigned_since(each for topic in topics for each in store.read(topic, newest_per_key=True).records)
    except InterruptedByUserError:
        raise
    except EosctlError:
        return list(findings)
    since_ms = {name if task == CONNECTOR_ITSELF else f"{name}/{task}": at_ms for (name, task), at_ms in told.items()}
    setting = observation.worker_setting(_DELAY)
    delay_ms = REBALANCE_DELAY_MS if setting is None else java_number(setting)
    if delay_ms is None:  # only the workers know it
        return list(findings)
    now_ms = app.clock.now_ms()
    return [
        long_unassigned(each, now_ms - since_ms[each.subject], delay_ms=delay_ms)
        if each.code == codes.UNASSIGNED and each.subject in since_ms
        else each
        for each in findings
    ]
