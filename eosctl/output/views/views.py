"""Which columns and closing lines each kind of report shows as text: a table, so that text shows what JSON reports."""

from __future__ import annotations

from eosctl.output.cells import Column, View
from eosctl.output.views.offset_views import OFFSET_VIEWS
from eosctl.report import Report

VIEWS: dict[str, View] = {
    **OFFSET_VIEWS,
}


def view_of(report: Report) -> View:
    """The view of the report's kind; a kind without one shows every member of its first row.

    The rows of a migration that went wrong are the keys that differ, or the stages of one that was cut off; `get
    --rest` has what the worker says too.
    """
    if report.kind == "offsets-migrate-result" and report.rows and "stage" in report.rows[0]:
        return VIEWS["offsets-migrate-stages"]
    if report.kind == "offsets-migrate-result" and report.summary.get("differing"):
        return VIEWS["offsets-verify"]
    if report.kind == "offsets-get" and "rest_differing" in report.summary:
        return VIEWS["offsets-get-rest"]
    if report.kind in VIEWS:
        return VIEWS[report.kind]
    keys = list(report.rows[0]) if report.rows else []
    return View(tuple(Column(key.upper().replace("_", "-"), key) for key in keys))
