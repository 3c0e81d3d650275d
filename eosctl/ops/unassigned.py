"""Since when connectors and tasks are UNASSIGNED, which REST does not tell: the status topic does. Reads only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from eosctl.core.failure_scenarios import REBALANCE_DELAY_MS, UNASSIGNED, long_unassigned
from eosctl.core.findings import Finding
from eosctl.core.records import Record
from eosctl.core.upgrade_observation import Observation
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.ops.app import App

_DELAY = "scheduled.rebalance.max.delay.ms"


def with_ages(app: App, findings: Sequence[Finding], observation: Observation) -> list[Finding]:
    """The findings, those of what is UNASSIGNED with its age; as they are where the status topic can't be read."""
    if all(each.code != "unassigned" for each in findings):
        return list(findings)
    try:
        with app.topics() as store:
            since_ms = _unassigned_since(store.read(app.target.status_topic, newest_per_key=True).records)
    except InterruptedByUserError:
        raise
    except EosctlError:
        return list(findings)
    setting = observation.worker_setting(_DELAY) or ""
    delay_ms = int(setting) if setting.isdecimal() else REBALANCE_DELAY_MS
    now_ms = app.clock.now_ms()
    return [
        long_unassigned(each, now_ms - since_ms[each.subject], delay_ms=delay_ms)
        if each.code == "unassigned" and each.subject in since_ms
        else each
        for each in findings
    ]


def _unassigned_since(records: Iterable[Record]) -> Mapping[str, int]:
    """`C/N` of a task, `C` of a connector -> when it became UNASSIGNED, as `KafkaStatusBackingStore` writes it."""
    found: dict[str, int] = {}
    for record in records:
        key = (record.key or b"").decode("utf-8", "replace")
        if _state(record.value) != UNASSIGNED:
            continue
        if key.startswith("status-task-"):
            name, _dash, number = key.removeprefix("status-task-").rpartition("-")
            found[f"{name}/{number}"] = record.timestamp_ms
        elif key.startswith("status-connector-"):
            found[key.removeprefix("status-connector-")] = record.timestamp_ms
    return found


def _state(value: bytes | None) -> object:
    try:
        status = json.loads(value or b"null")
    except ValueError:
        return None
    return status.get("state") if isinstance(status, dict) else None
