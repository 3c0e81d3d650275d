"""How `upgrade apply`, `status` and `verify` look as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eosctl.output.cells import Column, View, printable, summary_lines
from eosctl.output.views.check_views import findings_view
from eosctl.report import Report, Row


def _actions(row: Row) -> object:
    """What will be done, or what came of it."""
    actions = row["actions"]
    return row["detail"] or ("; ".join(actions) if isinstance(actions, list) else None) or None


def _apply_lines(report: Report) -> Iterable[str]:
    if report.data.get("place"):
        yield f"changes: {printable(str(report.data['place']))}"
    for gate in _list(report, "gates"):
        status = f"{gate['status']}, accepted" if gate["accepted"] else gate["status"]
        yield f"gate {status}: {gate['id']}: {printable(str(gate['evidence']))}"
    losses = report.data.get("losses")
    for loss in losses if isinstance(losses, list) else []:
        yield f"lost: {loss}"
    yield from (f"change at source: {printable(str(each['words']))}" for each in _list(report, "manifests"))
    backups = [row["backup"] for row in report.rows if row["backup"]]
    yield from (f"backup: {printable(str(backup))}" for backup in backups)
    yield f"journal: {printable(str(report.data.get('journal')))}"
    yield from summary_lines(report)


def _list(report: Report, name: str) -> list[Mapping[str, object]]:
    found = report.data.get(name)
    return found if isinstance(found, list) else []


_APPLY = View(
    (
        Column("PASS", "mode"),
        Column("WORKER", "worker"),
        Column("LEADER", "leader"),
        Column("OUTCOME", "outcome"),
        Column("DETAIL", _actions),
    ),
    footer=_apply_lines,
    empty="No worker has to change.",
)


def _status_lines(report: Report) -> Iterable[str]:
    roll = report.data.get("roll")
    if isinstance(roll, Mapping):
        ended = f"finished at {roll['ended']}" if roll["finished"] else "not finished"
        yield f"newest upgrade: to {roll['target_mode']}, begun at {roll['began']}, {ended}"
        if roll["stopped"]:
            yield f"it stopped: {printable(str(roll['stopped']))}"
    modes = report.summary["modes"]
    counts = [f"{count} {mode}" for mode, count in modes.items()] if isinstance(modes, Mapping) else []
    yield f"workers: {report.summary['workers']}" + (f" ({', '.join(counts)})" if counts else "")


def _patch_lines(report: Report) -> Iterable[str]:
    """A script of the first pass: those after it may not begin before it was checked, and stand behind a #."""
    yield f"# begin this first, in another terminal: {printable(str(report.data['watch']))}"
    told = first = None
    for row in report.rows:
        first = first or row["mode"]
        if row["mode"] != told:
            told = row["mode"]
            yield f"# pass {told}" + (
                "" if told == first else f": when eosctl waits for {told}, run these without the leading #"
            )
        if row["command"] is None:
            yield f"# no command, as it has secrets: {printable(str(row['change']))}"
        else:
            yield ("" if told == first else "# ") + printable(str(row["command"]))
    yield from (f"# {printable(str(each['words']))}" for each in _list(report, "manifests"))


_STATUS = View(
    (
        Column("WORKER", "worker"),
        Column("LEADER", "leader"),
        Column("VERSION", "version"),
        Column("HEALTH", "health"),
        Column("MODE", "mode"),
        Column("ROLL", "roll"),
        Column("EVIDENCE", "evidence"),
    ),
    footer=_status_lines,
    empty="The group has no worker.",
)

UPGRADE_VIEWS: dict[str, View] = {
    "upgrade-apply-plan": _APPLY,
    "upgrade-apply-result": _APPLY,
    "upgrade-patches": View((), footer=_patch_lines, prose=False),
    "upgrade-status": _STATUS,
    "upgrade-verify": findings_view("Every worker is proven, and every gate passes."),
}
