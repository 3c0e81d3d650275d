"""Which columns and closing lines each kind of report shows as text: a table, so that text tells what JSON tells."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from eosctl.report import Report, Row

_STYLES = {
    "fenced": "green", "ok": "green", "pass": "green", "running": "green", "healthy": "green", "enabled": "green",
    "failed": "red", "fail": "red", "error": "red", "conflict": "red", "unreachable": "red", "differs": "yellow",
    "unconfirmed": "yellow", "warning": "yellow", "unknown": "yellow", "not_enabled": "yellow", "write": "yellow",
    "delete": "yellow",
}  # fmt: skip


def format_cell(value: object) -> str:
    """A JSON value as one cell: `-` for null, yes/no, text as it is, anything deeper as compact JSON."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list | tuple) and all(isinstance(item, str | int) for item in value):
        return printable(", ".join(str(item) for item in value)) or "-"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def printable(text: str) -> str:
    """`text` with control characters escaped: names come from topics and must not steer a terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


@dataclass(frozen=True, slots=True)
class Column:
    """A header and a dotted path into the row (`before.state`), or a function of the row."""

    header: str
    source: str | Callable[[Row], object]

    def cell(self, row: Row) -> str:
        """The text of this column in `row`."""
        return format_cell(self.source(row) if callable(self.source) else dig(row, self.source))

    def style(self, row: Row) -> str:
        """A colour for words that mean good or bad."""
        return _STYLES.get(self.cell(row).lower(), "")


def dig(row: object, path: str) -> object:
    """The member at a dotted path; None where any step is missing."""
    for step in path.split("."):
        if not isinstance(row, Mapping):
            return None
        row = row.get(step)
    return row


def summary_lines(report: Report) -> Iterable[str]:
    """The summary as one line of `key: value` pairs, then backup and undo where the report has them."""
    pairs = [f"{key.replace('_', ' ')}: {format_cell(value)}" for key, value in report.summary.items()]
    if pairs:
        yield ", ".join(pairs)
    for key in ("backup", "undo"):
        if report.data.get(key):
            yield f"{key}: {report.data[key]}"


@dataclass(frozen=True, slots=True)
class View:
    """How one kind of report looks as text; `empty` stands in for a table without rows.

    Of more than `most_rows` rows text shows the first ones only, and says so; JSON always has them all.
    """

    columns: tuple[Column, ...]
    footer: Callable[[Report], Iterable[str]] = summary_lines
    empty: str = ""
    most_rows: int | None = None


def _sandbox_lines(report: Report) -> Iterable[str]:
    """How to reach the sandbox: lines to paste into a shell."""
    environ = report.data.get("environ")
    if isinstance(environ, Mapping):
        yield from (f"export {name}={value}" for name, value in environ.items())
    yield from summary_lines(report)


_SANDBOX = View(
    (
        Column("NODE", "node"),
        Column("ADDRESS", "address"),
        Column("RUNNING", "running"),
        Column("MODE", "mode"),
        Column("PID", "pid"),
        Column("LOG", "log"),
    ),
    footer=_sandbox_lines,
)

VIEWS: dict[str, View] = {
    "sandbox-up": _SANDBOX,
    "sandbox-status": _SANDBOX,
    "completion": View((), footer=lambda report: [str(report.data["script"]).rstrip("\n")]),
    "sandbox-logs": View((Column("NODE", "node"), Column("LINE", "line")), empty="the logs are empty"),
    "demo": View(
        (
            Column("STEP", "step"),
            Column("PROVED", "proved"),
            Column("EXPECTED", "expected"),
            Column("ACTUAL", "actual"),
            Column("OK", "ok"),
        )
    ),
}


def view_of(report: Report) -> View:
    """The view of the report's kind; a kind without one shows every member of its first row."""
    if report.kind in VIEWS:
        return VIEWS[report.kind]
    keys = list(report.rows[0]) if report.rows else []
    return View(tuple(Column(key.upper().replace("_", "-"), key) for key in keys))


def _finding_codes(row: Row) -> object:
    findings = row.get("findings")
    return [finding["code"] for finding in findings] if isinstance(findings, list) else None


def _count(path: str) -> Callable[[Row], object]:
    """How many items the list at `path` has; null stays null."""

    def count(row: Row) -> object:
        items = dig(row, path)
        return len(items) if isinstance(items, list) else None

    return count


def _finding_lines(report: Report) -> Iterable[str]:
    """Every finding as `severity code subject: message`, its fix below; then the summary."""
    for row in report.rows:
        findings = row.get("findings")
        for finding in findings if isinstance(findings, list) else []:
            subject = f"{finding['severity']} {finding['code']} {format_cell(row['connector'])}"
            yield f"{subject}: {printable(finding['message'])}"
            yield f"  fix: {printable(finding['fix'])}"
    yield from summary_lines(report)


def _task_count_details(report: Report) -> Iterable[str]:
    """What the leader would do, and the ids by name; for `task-counts show`."""
    for row in report.rows:
        yield f"decision: {format_cell(row['decision'])}"
        yield f"would fence: {format_cell(row['would_fence'])}"
        yield f"alive ids: {format_cell(row['alive_ids'])}"
    yield from _finding_lines(report)


_TASK_COUNT_COLUMNS = (
    Column("CONNECTOR", "connector"),
    Column("TYPE", "type"),
    Column("STATE", "target_state"),
    Column("TASKS", "task_count"),
    Column("RECORDED", "recorded"),
    Column("RECORD-OFFSET", "record_offset"),
    Column("COMMIT-OFFSET", "newest_commit_offset"),
    Column("FENCING-DUE", "pending_fencing"),
    Column("WOULD-FENCE", "would_fence_count"),
    Column("ALIVE-IDS", _count("alive_ids")),
    Column("FINDINGS", _finding_codes),
)
VIEWS |= {
    "task-counts-list": View(_TASK_COUNT_COLUMNS, empty="The config topic names no connector."),
    "task-counts-show": View(_TASK_COUNT_COLUMNS, footer=_task_count_details),
    "task-counts-validate": View(
        _TASK_COUNT_COLUMNS, footer=_finding_lines, empty="The config topic names no connector."
    ),
    "task-counts-replay": View(
        (
            Column("CONNECTOR", "connector"),
            Column("STATE", "target_state"),
            Column("TASKS", "task_count"),
            Column("TASK-IDS", "task_ids"),
            Column("GENERATION", "task_config_generation"),
            Column("INCOMPLETE", "inconsistent"),
            Column("RECORDED", "task_count_record"),
            Column("FENCING-DUE", "pending_fencing"),
        ),
        footer=lambda report: (*_ignored_lines(report), *summary_lines(report)),
        empty="The records name no connector.",
    ),
}


def _ignored_lines(report: Report) -> Iterable[str]:
    """The records that change nothing in a worker, and why."""
    ignored = dig(report.data, "state.ignored")
    for record in ignored if isinstance(ignored, list) else []:
        yield f"ignored {format_cell(record['key'])} at offset {record['offset']}: {printable(record['reason'])}"


def _owner(row: Row) -> object:
    kind, connector, task = (dig(row, f"owner.{name}") for name in ("kind", "connector", "task"))
    return f"{connector}/{task}" if kind == "task" else kind


def _outcome(row: Row) -> object:
    return f"{row['outcome']} (fenced before)" if row.get("already_fenced") else row["outcome"]


def _age(path: str) -> Callable[[Row], object]:
    def age(row: Row) -> object:
        age_ms = dig(row, path)
        return f"{age_ms / 1000:.0f}s" if isinstance(age_ms, int) else None

    return age


def _partitions(row: Row) -> object:
    partitions = row.get("partitions")
    if not isinstance(partitions, list):
        return None
    return [f"{partition['topic']}-{partition['partition']}" for partition in partitions]


def _flat_summary(report: Report) -> Iterable[str]:
    """The summary as one line, with the members of `counts` among its own."""
    pairs: list[tuple[str, object]] = []
    for key, value in report.summary.items():
        pairs += value.items() if isinstance(value, Mapping) else [(key, value)]
    yield ", ".join(f"{str(key).replace('_', ' ')}: {format_cell(value)}" for key, value in pairs)


_FENCE_COLUMNS = (
    Column("TRANSACTIONAL-ID", "transactional_id"),
    Column("OWNER", _owner),
    Column("COORDINATOR", "coordinator"),
    Column("STATE", "before.state"),
    Column("PRODUCER-ID", "before.producer_id"),
    Column("EPOCH", "before.producer_epoch"),
    Column("TIMEOUT-MS", "before.transaction_timeout_ms"),
    Column("OPEN-FOR", _age("before.age_ms")),
)
_TXN_COLUMNS = (
    Column("TRANSACTIONAL-ID", "transactional_id"),
    Column("OWNER", _owner),
    Column("STATE", "state"),
    Column("PRODUCER-ID", "producer_id"),
    Column("EPOCH", "producer_epoch"),
    Column("COORDINATOR", "coordinator"),
    Column("TIMEOUT-MS", "transaction_timeout_ms"),
    Column("OPEN-FOR", _age("age_ms")),
    Column("PARTITIONS", _partitions),
)
_PRODUCER_COLUMNS = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("PRODUCER-ID", "producer_id"),
    Column("EPOCH", "producer_epoch"),
    Column("COORDINATOR-EPOCH", "coordinator_epoch"),
    Column("START-OFFSET", "start_offset"),
    Column("LAST-WRITE", "last_timestamp"),
)
_ABORT_COLUMNS = (*_PRODUCER_COLUMNS, Column("REASON", "reason"), Column("LSO", "lso_before"))
VIEWS |= {
    "fence-plan": View(
        (*_FENCE_COLUMNS, Column("OUTCOME", _outcome)),
        footer=_flat_summary,
        empty="There is nothing to fence.",
        most_rows=20,
    ),
    "fence-result": View(
        (
            *_FENCE_COLUMNS,
            Column("NEW-PRODUCER-ID", "after.producer_id"),
            Column("NEW-EPOCH", "after.producer_epoch"),
            Column("OUTCOME", "outcome"),
            Column("ERROR", "error.message"),
        ),
        footer=_flat_summary,
        empty="There was nothing to fence.",
        most_rows=20,
    ),
    "txn-list": View(_TXN_COLUMNS[:4] + _TXN_COLUMNS[5:6], footer=_flat_summary, empty="No transactional id matches."),
    "txn-describe": View(_TXN_COLUMNS),
    "txn-producers": View(
        (*_PRODUCER_COLUMNS, Column("TRANSACTIONAL-ID", "transactional_id"), Column("OWNER", _owner)),
        empty="No producer is active there.",
    ),
    "txn-hanging": View(
        (*_PRODUCER_COLUMNS, Column("OPEN-FOR", _age("age_ms")), Column("REASON", "reason")),
        empty="No transaction is hanging.",
    ),
    "txn-abort-plan": View(_ABORT_COLUMNS),
    "txn-abort-result": View((*_ABORT_COLUMNS, Column("LSO-AFTER", "lso_after"), Column("OUTCOME", "outcome"))),
    "txn-coordinator": View(
        (
            Column("TRANSACTIONAL-ID", "transactional_id"),
            Column("HASH", "hash"),
            Column("PARTITION", "partition"),
            Column("COORDINATOR", "coordinator"),
            Column("HOST", "host"),
            Column("PORT", "port"),
        )
    ),
    "txn-log": View(
        (
            Column("PARTITION", "partition"),
            Column("OFFSET", "offset"),
            Column("TIME", "timestamp"),
            *_TXN_COLUMNS[:5],
            Column("TIMEOUT-MS", "transaction_timeout_ms"),
            Column("PARTITIONS", _partitions),
        ),
        empty="No record matches.",
    ),
}


def _plan_lines(report: Report) -> Iterable[str]:
    """Passes with their steps, then gates that do not pass, then what is lost."""
    passes, gates = report.data.get("passes"), report.data.get("gates")
    for number, each in enumerate(passes if isinstance(passes, list) else [], start=1):
        yield f"\npass {number}: {each['mode']} (first: {each['barrier']})"
        for step in each["steps"]:
            yield f"  {printable(step['worker'])}: {'; '.join(step['actions'])}"
    if not passes:
        yield "\nno worker has to change"
    yield "\ngates"
    for gate in gates if isinstance(gates, list) else []:
        yield f"  {gate['status']:<7}  {gate['id']}: {printable(gate['evidence'])}"
        if gate["status"] != "pass":
            yield f"           fix: {printable(gate['fix'])}"
    losses = report.data.get("losses")
    for loss in losses if isinstance(losses, list) else []:
        yield f"lost: {loss}"
    yield from ("", *summary_lines(report))


VIEWS["upgrade-plan"] = View(
    (
        Column("WORKER", "worker"),
        Column("LEADER", "leader"),
        Column("VERSION", "version"),
        Column("HEALTH", "health"),
        Column("MODE", "mode"),
    ),
    footer=_plan_lines,
    empty="The group has no workers.",
)


def _stored(path: str) -> Callable[[Row], object]:
    """What a store (its cell is at `path`) has for a key: its value, `deleted` for a tombstone, `-` for no record."""

    def value(row: Row) -> object:
        cell = dig(row, path)
        if not isinstance(cell, Mapping):
            return None
        return "deleted" if cell.get("value") is None else cell["value"]

    return value


def _ignored_key_lines(report: Report) -> Iterable[str]:
    """The records that no connector ever finds, then the summary."""
    ignored = report.data.get("ignored")
    for each in ignored if isinstance(ignored, list) else []:
        place = f"{each['topic']}-{each['partition']} offset {each['offset']}"
        yield f"ignored by Connect ({each['reason']}): {format_cell(each['key'])} at {place}"
    yield from summary_lines(report)


_OFFSET_COLUMNS = (
    Column("CONNECTOR", "connector"),
    Column("SOURCE-PARTITION", "source_partition"),
    Column("GLOBAL", _stored("stores.global")),
    Column("DEDICATED", _stored("stores.dedicated")),
)
_OFFSET_LIST = View(
    (
        *_OFFSET_COLUMNS,
        Column("DOCUMENTED", "effective.documented"),
        Column("RUNTIME", "effective.runtime"),
        Column("FLAGS", "flags"),
    ),
    footer=_ignored_key_lines,
    empty="No connector has offsets here.",
)
_OFFSET_WRITES = (
    Column("CONNECTOR", "connector"),
    Column("SOURCE-PARTITION", "source_partition"),
    Column("ACTION", "action"),
    Column("REASON", "reason"),
    Column("BEFORE", "before"),
    Column("AFTER", "after"),
    Column("TOPIC", "target.topic"),
    Column("PARTITION", "target.partition"),
)


def _created_topic_lines(report: Report) -> Iterable[str]:
    """The topics that a plan makes, then the summary."""
    creates = report.data.get("creates")
    for each in creates if isinstance(creates, list) else []:
        size = f"{each['partitions']} partitions, replication factor {each['replication_factor']}"
        yield f"creates topic {format_cell(each['topic'])}: compacted, {size}"
    yield from summary_lines(report)


def _write_view(*more: Column) -> View:
    return View((*_OFFSET_WRITES, *more), footer=_created_topic_lines, empty="Nothing to write.")


VIEWS |= {
    "offsets-list": _OFFSET_LIST,
    "offsets-get": _OFFSET_LIST,
    "offsets-diff": View(
        (
            Column("CONNECTOR", "connector"),
            Column("SOURCE-PARTITION", "source_partition"),
            Column("LEFT", _stored("left")),
            Column("RIGHT", _stored("right")),
            Column("STATUS", "status"),
        ),
        empty="No connector has offsets here.",
    ),
    "offsets-export": View(()),
    "offsets-merge-plan": _write_view(),
    "offsets-restore-plan": _write_view(),
    "offsets-merge-result": _write_view(Column("OUTCOME", "outcome")),
    "offsets-restore-result": _write_view(Column("OUTCOME", "outcome")),
}


def _assigned_tasks(row: Row) -> object:
    """The row's tasks as `connector-number`, as Connect's own logs name them; null where they are not known."""
    tasks = dig(row, "assigned.tasks")
    return [f"{task['connector']}-{task['task']}" for task in tasks] if isinstance(tasks, list) else None


def _group_line(report: Report) -> Iterable[str]:
    """The group's state in one line; then the summary."""
    state = dig(report.data, "group.state")
    if state is not None:
        protocol = format_cell(dig(report.data, "group.protocol"))
        yield f"group: {format_cell(report.target.get('group_id'))}, state: {format_cell(state)}, protocol: {protocol}"
    modes = report.summary["modes"]
    counts = [f"{count} {mode}" for mode, count in modes.items()] if isinstance(modes, Mapping) else []
    yield f"workers: {report.summary['workers']}" + (f" ({', '.join(counts)})" if counts else "")


_WORKER_COLUMNS = (
    Column("URL", "url"),
    Column("LEADER", "leader"),
    Column("VERSION", "version"),
    Column("HEALTH", "health"),
)
VIEWS |= {
    "workers-list": View(
        (
            *_WORKER_COLUMNS,
            Column("MODE", "mode"),
            Column("CONFIG-OFFSET", "config_offset"),
            Column("CONNECTORS", "assigned.connectors"),
            Column("TASKS", _assigned_tasks),
        ),
        footer=_group_line,
        empty="The group has no worker.",
    ),
    "workers-probe": View(
        (*_WORKER_COLUMNS, Column("MODE", "mode"), Column("EVIDENCE", lambda row: row["evidence"])),
        footer=_group_line,
        empty="The group has no worker.",
    ),
}
