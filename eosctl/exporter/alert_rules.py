"""`eosctl exporter rules`: the table of alerts as a Prometheus rule file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from eosctl.errors import UsageError
from eosctl.exporter.alerts import ALERTS, Alert, Series
from eosctl.exporter.rows import EXPORTER_RULES, AlertRow, AlertsSummary, RuleFile
from eosctl.report import Report

DEFAULT_JOB = "eosctl"
DEFAULT_OFFSETS_STILL_S = 3600.0
_RESERVED = ("alertname", "severity")


class RulesRequest(Struct, frozen=True):
    """`job` is the scrape job of the exporters; `labels` are added to every alert, as NAME=VALUE."""

    job: str = DEFAULT_JOB
    offsets_still_s: float = DEFAULT_OFFSETS_STILL_S
    labels: Sequence[str] = ()


def make_rules(request: RulesRequest) -> Report:
    """Make the rule file; raises UsageError for an invalid label."""
    more = dict(map(_label, request.labels))
    series = Series(request.job, max(1, round(request.offsets_still_s)))
    rows = [_row(alert, series) for alert in ALERTS]
    rules = [rule_of(alert, series, more) for alert in ALERTS]
    document: dict[str, object] = {"groups": [{"name": "eosctl", "rules": rules}]}
    return Report(
        kind=EXPORTER_RULES, rows=rows, summary=AlertsSummary(alerts=len(rows)), data=RuleFile(rules=document)
    )


def rule_of(alert: Alert, series: Series, labels: Mapping[str, str]) -> dict[str, object]:
    """Return one rule as Prometheus reads it."""
    return {
        "alert": alert.name,
        "expr": alert.expr(series),
        **({"for": f"{alert.hold_s}s"} if alert.hold_s else {}),
        "labels": {**labels, "severity": alert.severity},
        "annotations": {"summary": alert.summary, "description": alert.description, "runbook": alert.runbook},
    }


def _row(alert: Alert, series: Series) -> AlertRow:
    return AlertRow(
        alert=alert.name,
        severity=alert.severity,
        for_s=alert.hold_s,
        expr=alert.expr(series),
        summary=alert.summary,
        description=alert.description,
        runbook=alert.runbook,
    )


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    is_name = name.isascii() and name.replace("_", "a").isalnum() and not name[:1].isdigit()
    if not equals or not is_name or name in _RESERVED:
        raise UsageError(
            f"--label {text}: not a label of an alert",
            hint=f"Say NAME=VALUE; NAME has letters, digits and _, and is none of {', '.join(_RESERVED)}.",
        )
    return name, value
