"""`eosctl exporter dashboard`: the table of metrics as a Grafana dashboard, rows of panels from top to bottom. Pure.

The members are those of Grafana's dashboard model (schemaVersion 38: Grafana 10.1, and newer ones, which migrate it).
A panel names metrics by the table, so that a rename can't leave one empty, and shows their help.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from eosctl.exporter.metrics import Metric, metric
from eosctl.exporter.rows import EXPORTER_DASHBOARD, DashboardFile, DashboardSummary
from eosctl.report import Report

DEFAULT_TITLE = "Exactly-once Connect (eosctl)"
UID = "eosctl-exactly-once"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_SELECTOR = 'instance=~"$instance"'
_WIDTH, _HEIGHT, _STAT_WIDTH, _STAT_HEIGHT = 12, 8, 4, 4
_BAD = ({"color": "green", "value": None}, {"color": "red", "value": 1})
_GOOD = ({"color": "red", "value": None}, {"color": "green", "value": 1})


class Panel(Struct, frozen=True):
    """`metrics` are one query each; `good` is a stat whose 1 is well, where that of others is 0."""

    title: str
    metrics: tuple[str, ...]
    type: Literal["stat", "timeseries", "table"] = "timeseries"
    good: bool = False


class Row(Struct, frozen=True):
    """A heading and its panels."""

    title: str
    panels: tuple[Panel, ...]


ROWS = (
    Row("Now", (
        Panel("Kafka answers", ("eosctl_up",), "stat", good=True),
        Panel("Hanging transactions", ("eosctl_transactions_hanging",), "stat"),
        Panel("Tasks without a transaction", ("eosctl_tasks_without_transaction",), "stat"),
        Panel("Fencing due", ("eosctl_fencing_due",), "stat"),
        Panel("Silent brokers", ("eosctl_brokers_silent",), "stat"),
        Panel("Workers by mode", ("eosctl_workers",), "stat"),
        Panel("Findings of doctor", ("eosctl_findings",), "table"),
        Panel("Cluster and group", ("eosctl_cluster_info",), "table"),
    )),
    Row("Transactions", (
        Panel("Open for", ("eosctl_transaction_open_seconds",)),
        Panel("Timeout of open transactions", ("eosctl_transaction_timeout_seconds",)),
        Panel("End decided and not written for", ("eosctl_transaction_ending_seconds",)),
        Panel("Open, by owner", ("eosctl_transactions_open",)),
        Panel("Aborted per second", ("eosctl_transactions_aborted_total",)),
        Panel("Hanging, time since the last record", ("eosctl_transaction_hanging_seconds",)),
    )),
    Row("Last stable offsets", (
        Panel("Distance to the end", ("eosctl_topic_lso_distance",)),
        Panel("Stuck for", ("eosctl_topic_lso_stuck_seconds",)),
    )),
    Row("Disks of brokers", (
        Panel("Room left, and size", ("eosctl_log_dir_usable_bytes", "eosctl_log_dir_total_bytes")),
        Panel("Log directories that failed", ("eosctl_log_dir_failed",)),
    )),
    Row("Workers and tasks", (
        Panel("Workers", ("eosctl_worker_info",), "table"),
        Panel("Workers that answer", ("eosctl_worker_up",)),
        Panel("Tasks by state", ("eosctl_tasks",)),
        Panel("Running tasks", ("eosctl_connector_tasks_running",)),
        Panel("Without a transaction for", ("eosctl_task_without_transaction_seconds",)),
        Panel("Since the last transaction began", ("eosctl_task_commit_age_seconds",)),
    )),
    Row("Fencing", (
        Panel("Next fencing round, and how long Connect waits",
              ("eosctl_fencing_round_seconds", "eosctl_fencing_limit_seconds")),
        Panel("Waiting for a fencing round", ("eosctl_fencing_pending",)),
    )),
    Row("Source offsets", (
        Panel("Age of the newest offset", ("eosctl_source_offset_age_seconds",)),
        Panel("Records read per second", ("eosctl_offset_records_total",)),
        Panel("Offsets topics read again per second", ("eosctl_offset_topic_restarts_total",)),
    )),
    Row("The exporter itself", (
        Panel("Sources that fail", ("eosctl_collection_error",), "table"),
        Panel("Checks that could not run", ("eosctl_checks_not_run",), "table"),
        Panel("Looks that succeed", ("eosctl_collection_success",)),
        Panel("Parts that can't be looked at", ("eosctl_collection_unseen",)),
        Panel("Age of what is known, and interval",
              ("eosctl_collection_age_seconds", "eosctl_collection_interval_seconds")),
        Panel("Duration of a look", ("eosctl_collection_duration_seconds",)),
        Panel("Looks and failures per second",
              ("eosctl_collections_total", "eosctl_collection_failures_total")),
    )),
)  # fmt: skip


def make_dashboard(title: str = DEFAULT_TITLE) -> Report:
    """Make the dashboard as Grafana imports it, with variables for the data source and the group."""
    panels = _panels()
    document: dict[str, object] = {
        "uid": UID,
        "title": title,
        "description": "Exactly-once Kafka Connect sources, as `eosctl exporter` sees them.",
        "tags": ["kafka", "kafka-connect", "exactly-once", "eosctl"],
        "timezone": "browser",
        "editable": True,
        "graphTooltip": 1,
        "schemaVersion": 38,
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": _variables()},
        "panels": panels,
    }
    count = sum(panel["type"] != "row" for panel in panels)
    return Report(
        kind=EXPORTER_DASHBOARD, summary=DashboardSummary(panels=count), data=DashboardFile(dashboard=document)
    )


def _variables() -> list[dict[str, object]]:
    """Return the variables: data source, groups, and the exporters of the chosen groups, which every query selects."""
    info = metric("eosctl_cluster_info").name
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    return [
        {**source, "multi": False, "includeAll": False},
        _variable("group", "Group", f"label_values({info}, group)"),
        _variable("instance", "Exporter", f'label_values({info}{{group=~"$group"}}, instance)'),
    ]


def _variable(name: str, label: str, query: str) -> dict[str, object]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def _panels() -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    top = 0
    for row in ROWS:
        place = {"x": 0, "y": top, "w": 24, "h": 1}
        made.append({
            "id": len(made) + 1, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []
        })  # fmt: skip
        top, left, line = top + 1, 0, 0
        for panel in row.panels:
            width, height = (_STAT_WIDTH, _STAT_HEIGHT) if panel.type == "stat" else (_WIDTH, _HEIGHT)
            if left + width > 24 or (line and height != line):
                top, left = top + line, 0
            made.append(
                {"id": len(made) + 1, **_panel(panel), "gridPos": {"x": left, "y": top, "w": width, "h": height}}
            )
            left, line = left + width, height
        top += line
    return made


def _panel(panel: Panel) -> dict[str, object]:
    shown = [metric(name) for name in panel.metrics]
    defaults: dict[str, object] = {"unit": _unit(shown[0])}
    if panel.type == "stat":
        steps = [dict(step) for step in (_GOOD if panel.good else _BAD)]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
    if panel.metrics == ("eosctl_workers",):
        defaults.pop("thresholds")
    return {
        "type": panel.type,
        "title": panel.title,
        "description": " ".join(each.help for each in shown),
        "datasource": _SOURCE,
        "targets": [_target(each, "ABC"[number], panel) for number, each in enumerate(shown)],
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _OPTIONS[panel.type],
    }


_OPTIONS: dict[str, dict[str, object]] = {
    "stat": {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "background"},
    "timeseries": {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]}},
    "table": {"showHeader": True},
}


def _target(shown: Metric, letter: str, panel: Panel) -> dict[str, object]:
    series = f"{shown.name}{{{_SELECTOR}}}"
    target: dict[str, object] = {
        "refId": letter,
        "datasource": _SOURCE,
        "expr": f"rate({series}[$__rate_interval])" if shown.type == "counter" else series,
        "legendFormat": _legend(shown, several=len(panel.metrics) > 1),
    }
    if panel.type == "table":
        target |= {"format": "table", "instant": True}
    return target


def _legend(shown: Metric, *, several: bool) -> str:
    """Return the legend: the labels, else the exporter, after the metric's name where a panel has several."""
    labels = " ".join(f"{{{{{label}}}}}" for label in shown.labels) or "{{instance}}"
    return f"{shown.name.removeprefix('eosctl_')} {labels}" if several else labels


def _unit(shown: Metric) -> str:
    """Return the unit as Grafana names it."""
    if shown.type == "counter":
        return "cps"
    return {"seconds": "s", "bytes": "bytes"}.get(shown.unit, "short")


def panel_metrics() -> Sequence[str]:
    """Return every metric that a panel shows."""
    return [name for row in ROWS for panel in row.panels for name in panel.metrics]
