"""Rows of `exporter`: the state of its sources at the end; rules and a dashboard, as files for other programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from eosctl.foreign import printable
from eosctl.output.cells import TOTAL
from eosctl.output.documents import yaml_text
from eosctl.output.rows import Header, Kind, Printed, Text
from eosctl.report import Report


class CollectionRow(Printed):
    """A source as it was collected last."""

    source: Annotated[str, "What is looked at."]
    age_s: Annotated[float | None, "Seconds since a look at it succeeded; null where none has.", Header("AGE-S")]
    duration_s: Annotated[float | None, "How many seconds the last look took.", Header("DURATION-S")]
    error: Annotated[str | None, "The code of the last look's failure; null where it succeeded."]
    message: Annotated[str, "Why it failed."]


class ExporterSummary(Printed):
    """The number of sources."""

    sources: Annotated[int, "How many sources there are.", TOTAL]
    failed: Annotated[int, "How many of them failed the last time."]


class MetricsText(Printed):
    """The metrics."""

    metrics: (
        Annotated[str, "With --once, and without --textfile: the metrics, as Prometheus reads them."] | UnsetType
    ) = UNSET


def _metrics(report: Report) -> Iterable[str]:
    text = report.data_of(MetricsText).metrics
    if isinstance(text, str):
        yield from map(_harmless, text.removesuffix("\n").split("\n"))  # a name may have other line breaks


def _harmless(line: str) -> str:
    """Escape a line's control characters for a terminal, as Prometheus reads them: a label has a backslash twice."""
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else f"\\{printable(each)}" for each in line)


EXPORTER = Kind(
    "exporter",
    "The sources of the exporter, when it ended.",
    row=CollectionRow,
    summary=ExporterSummary,
    data=MetricsText,
)
EXPORTER_METRICS = EXPORTER.shown_as(Text(columns=(), lines=_metrics, prose=False))


class AlertRow(Printed):
    """An alert."""

    alert: Annotated[str, "The name of the alert."]
    severity: Annotated[Literal["critical", "warning"], "critical is for a page, warning for a ticket."]
    for_s: Annotated[int, "How many seconds the expression must hold before the alert fires.", Header("FOR-S")]
    expr: Annotated[str, "The expression, in PromQL."]
    summary: Annotated[str, "What is wrong, in a line; with Prometheus' templates."]
    description: Annotated[str, "What it means; with Prometheus' templates."]
    runbook: Annotated[str, "The command that checks or fixes it; with Prometheus' templates."]


class AlertsSummary(Printed):
    """The number of alerts."""

    alerts: Annotated[int, "How many alerts there are."]


class RuleFile(Printed):
    """The rule file."""

    rules: Annotated[dict[str, object], "The rule file, as Prometheus reads it."]
    resource: (
        Annotated[dict[str, object], "With --format prometheusrule: the resource with these rules."] | UnsetType
    ) = UNSET


class DashboardSummary(Printed):
    """The number of panels."""

    panels: Annotated[int, "How many panels there are."]


class DashboardFile(Printed):
    """The dashboard."""

    dashboard: Annotated[dict[str, object], "The dashboard, as Grafana imports it."]


def _rule_file(report: Report) -> Iterable[str]:
    yield from yaml_text(report.data_of(RuleFile).rules).splitlines()


def _prometheus_rule(report: Report) -> Iterable[str]:
    yield from yaml_text(report.data_of(RuleFile).resource).splitlines()


def _dashboard_file(report: Report) -> Iterable[str]:
    yield from json.dumps(report.data_of(DashboardFile).dashboard, indent=2).splitlines()


EXPORTER_RULES = Kind(
    "exporter-rules",
    "Alerting rules for Prometheus.",
    row=AlertRow,
    summary=AlertsSummary,
    data=RuleFile,
    text=Text(columns=(), lines=_rule_file, prose=False),
)
PROMETHEUS_RULE = EXPORTER_RULES.shown_as(Text(columns=(), lines=_prometheus_rule, prose=False))
EXPORTER_DASHBOARD = Kind(
    "exporter-dashboard",
    "A dashboard for Grafana.",
    summary=DashboardSummary,
    data=DashboardFile,
    text=Text(columns=(), lines=_dashboard_file, prose=False),
)
