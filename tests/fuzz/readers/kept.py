"""Files that eosctl wrote, and somebody changed: plans, journals, the audit log, record files and backups."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec.structs import replace
from pyarrow import parquet

from eosctl.core.configs.fold import ConnectorState
from eosctl.core.kept.plan_file import _digest
from eosctl.core.kept.record_formats import read_dump
from eosctl.core.kept.record_lines import read_backup_lines, read_columns
from eosctl.core.kept.snapshot_header import SnapshotHeader, SnapshotTopic, SnapshotUnseen, read_header
from eosctl.core.offsets import migration
from eosctl.core.records import Bounds, Record, numbered_documents, record_line
from eosctl.deadline import Clock
from eosctl.engine.backups.file import BACKUP, open_backup
from eosctl.errors import EosctlError, InputFileError
from eosctl.migrate import journal as migrate_journal
from eosctl.migrate.spark.files import folds_of
from eosctl.offsets import writes as offsets_journal
from eosctl.offsets.files.offsets_file import parse_offsets_file
from eosctl.offsets.switch import journal as switch_journal
from eosctl.output import render_report
from eosctl.rescue import plan as rescue_journal
from eosctl.state.audit import AuditLog
from eosctl.state.history import read_history
from eosctl.state.journal import Journal
from eosctl.task_counts import clean
from eosctl.upgrade import plan as upgrade_plan
from eosctl.upgrade.roll.owned import newest_roll
from tests.core.offsets.stores import NO_SPOOL
from tests.core.offsets.test_migration import PLAN
from tests.fuzz.reader import DisagreementError, Reader
from tests.fuzz.scratch import put
from tests.upgrade.test_upgrade_plan import PLAN as UPGRADE_PLAN

_UNREAD = "surrogatepass"


def _plan_reader(read: Callable[..., Any], text_of: Callable[[Any], str]) -> Callable[[bytes], object]:
    """Of a plan as it is, and with the digest that whoever changes it can make; what is taken is written again."""

    def read_both(data: bytes) -> object:
        texts = [data.decode("utf-8", _UNREAD) if _is_utf8(data) else data.decode("latin-1")]
        try:
            document = json.loads(texts[0])
            texts.append(json.dumps(document | {"digest": _digest(document["plan"])}))
        except (ValueError, RecursionError, TypeError, LookupError):
            pass
        found = []
        for text in texts:
            try:
                plan = read(text, path="f")
            except InputFileError:
                continue
            if read(text_of(plan), path="f") != plan:
                raise DisagreementError("a plan that is written again is another one")
            found.append(plan)
        return found

    return read_both


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8", _UNREAD)
    except UnicodeDecodeError:
        return False
    return True


def _use_migration(text: str, *, path: str) -> migration.MigrationPlan:
    """What is asked of each plan before anything is done."""
    plan = migration.read_plan(text, path=path)
    plan.connectors(), plan.renames(), plan.profiles(), plan.target_file(), plan.target_profile(), plan.name()
    return plan


def _migration_plans() -> list[bytes]:
    return [migration.plan_file_text(PLAN).encode()]


def _upgrade_plans() -> list[bytes]:
    return [upgrade_plan.plan_file_text(UPGRADE_PLAN).encode()]


_JOURNAL = [
    {"event": "hold", "time_ms": 1_700_000_000_000, "pid": 7},
    {"event": "begin", "time_ms": 1_700_000_000_000, "name": "import", "backup": "/b", "offsets": 3, "origin": "a",
     "target": "b", "state": "RUNNING", "done": ["stop"], "tasks": 2, "before": {"cleanup.policy": None},
     "mode": "enabled", "commit_offset": 5, "workers": ["http://w0:8083"], "members": {"http://w0:8083": "m0"}},
    {"event": "started", "time_ms": 1, "stage": "write", "tasks": 3, "timestamp_ms": 5},
    {"event": "start", "time_ms": 1, "step": "stop", "restarted": {"0": [1, 2]}, "mode": "preparing",
     "workers": ["http://w0:8083"], "members": {"http://w0:8083": None}, "at_once": True},
    {"event": "backup", "time_ms": 1, "path": "/x"},
    {"event": "restarted", "time_ms": 1, "words": "w"},
    {"event": "configured", "time_ms": 1, "worker": "w", "mode": "disabled"},
    {"event": "done", "time_ms": 2, "step": "stop", "detail": "d", "stage": "write", "members": {"w": "m"}},
    {"event": "end", "time_ms": 3},
]  # fmt: skip
_CONNECTOR = ConnectorState("c", commit_offset=5)
_OF_JOURNALS: Sequence[Callable[[Journal], object]] = (
    lambda journal: journal.read(offsets_journal._ENTRIES),
    switch_journal.unfinished_switch,
    switch_journal.newest_target,
    lambda journal: rescue_journal.unfinished_rescue(journal, _CONNECTOR),
    migrate_journal.read_earlier_runs,
    clean.unfinished_clean,
    newest_roll,
)


def _read_journal(data: bytes) -> object:
    """As each command reads its own; who holds it; and another line behind it."""
    journal = Journal(put("journal.ndjson", data), Clock())
    found: list[object] = [journal._holder()]
    for read in _OF_JOURNALS:
        try:
            found.append(read(journal))
        except EosctlError:
            continue
    before = len(journal.entries())
    journal.write("fuzz")
    if len(journal.entries()) != before + 1:
        raise DisagreementError("a line that was added is not read")
    return found


def _journals() -> list[bytes]:
    lines = [json.dumps(each).encode() + b"\n" for each in _JOURNAL]
    return [b"".join(lines), *lines, b"".join(lines[:2]), b"".join(lines[3:])]


def _read_audit(data: bytes) -> object:
    """As `eosctl history` prints it, in each format."""
    path = put("audit.jsonl", data)
    found = []
    shown = (("text", "json"), ("wide", "yaml"))[len(data) % 2]  # YAML takes as long as all else
    for since_ms, command, outputs in ((None, None, shown), (1, "offsets import", ())):
        report = read_history(AuditLog(path, path.with_name("none"), Clock()), since_ms=since_ms, command=command)
        for output in outputs:
            out = io.StringIO()
            render_report(report, output=output, stream=out, color=False)
            found.append(len(out.getvalue()))
    return found


_ENTRY = {
    "id": "1", "time": "2026-11-28T04:44:12.000Z", "time_ms": 1_700_000_000_000, "ended": None, "ended_ms": None,
    "user": "u", "sudo_user": None, "host": "h", "pid": 7, "command": "offsets import", "arguments": {"connector": "c"},
    "touched": {"connectors": ["c"], "topics": ["a", "b", "c", "d"], "left_out": 0}, "overrides": {"force": True},
    "target": {"kafka_cluster_id": "k", "group_id": "g", "bootstrap_servers": ["h:1"], "connect_urls": []},
    "plan_digest": "sha256:x", "before_digest": None, "after_digest": None, "outcome": "ok", "exit_code": 0,
    "summary": {"written": 1}, "backup": {"path": "/b"}, "undo": "eosctl offsets restore /b",
    "error": {"code": "failed", "message": "m"},
}  # fmt: skip


def _audit_logs() -> list[bytes]:
    lines = [json.dumps(each).encode() + b"\n" for each in (_ENTRY, {"id": "2"}, _ENTRY | {"touched": None})]
    return [b"".join(lines), *lines]


def _read_record_file(data: bytes) -> object:
    """All three readers find the same records, or all refuse the file."""
    lines = data.splitlines(keepends=True)
    one_by_one = _taken(lambda: [record for _n, _d, record in numbered_documents(lines, name="f")])
    columns = _taken(
        lambda: [Record(*row[1:]) for some in read_columns(lines, name="f") for row in zip(*some, strict=True)]
    )
    entries = _taken(lambda: [entry.before for entry in read_backup_lines(lines, name="f")])
    as_bytes = columns and [_with_bytes(record) for record in columns]
    if one_by_one != as_bytes or (entries is not None and entries != one_by_one):
        raise DisagreementError(f"{one_by_one} and {as_bytes} and {entries}")
    for record in one_by_one or ():
        record_line(record).encode()
    for connectors in ([], ["c"]):
        _taken(lambda: list(parse_offsets_file(io.BytesIO(data), NO_SPOOL, name="f", connectors=connectors).tables()))  # noqa: B023
    return one_by_one


def _read_foreign_records(data: bytes) -> object:
    """Read what other tools print; a record that is found can be written as a line of eosctl's own and read back."""
    found = [record for _line, record in read_dump(data.splitlines(keepends=True), name="f").records]
    for record in found:
        placed = record._replace(topic=record.topic or "t", partition=max(record.partition, 0))
        [(_number, _document, again)] = numbered_documents([record_line(placed).encode()], name="f")
        if again != placed:
            raise DisagreementError(f"{placed} and {again}")
    parse_offsets_file(io.BytesIO(data), NO_SPOOL, name="f", connectors=["c"])
    return found


def _read_snapshot(data: bytes) -> object:
    """Read the header of a snapshot; it is the same when it is written and read again, and its records are read."""
    lines = data.splitlines(keepends=True)
    header = _taken(lambda: read_header(lines[0], name="f")) if lines else None
    if header is not None and read_header(header.line().encode(), name="f") != header:
        raise DisagreementError(f"{header}")
    _read_record_file(data)
    return header


def _snapshots() -> list[bytes]:
    topics = (SnapshotTopic("t", "id", (Bounds(0, 0, 3, 4), Bounds(1, 2, 2, 2))),)
    unseen = (SnapshotUnseen("snapshot_incomplete", "m", "t"), SnapshotUnseen("c", "m"))
    header = SnapshotHeader(1_700_000_000_000, "k", "g", topics, ("c",), ("global",), unseen)
    record = record_line(Record("t", 0, 1, 2, b'["c",{"f":"a"}]', b'{"n":1}')).encode()
    return [header.line().encode() + b"\n" + record + b"\n", replace(header, group_id=None).line().encode()]


def _foreign_records() -> list[bytes]:
    folder = Path(__file__).parents[2] / "core" / "kept" / "printed"
    manifest = (
        b'kind: ConfigMap\ndata:\n  offsets.json: |\n    {"offsets":[{"partition":{"f":"a"},"offset":{"n":1}}]}\n'
    )
    return [*(path.read_bytes()[:4_000] for path in sorted(folder.iterdir())), manifest]


def _with_bytes(record: Record) -> Record:
    key, value = (each.encode() if isinstance(each, str) else each for each in (record.key, record.value))
    return record._replace(key=key, value=value)


def _taken(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except EosctlError:
        return None


def _record_files() -> list[bytes]:
    records = [
        Record("t", 1, 2, 3, b'["c",{"f":"a"}]', b'{"n":1}'),
        Record("t", 0, -1, -1, b"\0\xff", None),
        Record("t", 0, 7, -1, b'["d",{}]', b"", (("h", b"v"), ("\udcff", None))),
    ]
    extra = {"written": "x", "cluster_id": "k"}
    lines = [record_line(each, more).encode() + b"\n" for each in records for more in ({}, extra)]
    body = (
        b'{"offsets": [{"partition": {"filename": "a"}, "offset": {"position": 1}}, {"partition": {}, "offset": null}]}'
    )
    return [b"".join(lines), *lines, body, b"".join(lines[:2]) + b"\n\r\n" + lines[0]]


def _read_parquet(data: bytes) -> object:
    """As a backup, and as a source of a migration."""
    path = put("f.parquet", data)
    backup = _taken(lambda: list(open_backup(path).lines()))
    source = _taken(lambda: [fold.records.validate(full=True) for fold in folds_of(str(path), "t", partitions=3)])
    return backup, source


def _parquets() -> list[bytes]:
    rows: dict[str, list[Any]] = {
        "topic": ["t", "t"], "partition": [0, 2], "offset": [1, None], "timestamp_ms": [None, 5],
        "key": [b'["c",{}]', b"x"], "value": [b"{}", None], "headers": [None, '[{"name":"h","value":null}]'],
        "written": [b"w", None],
    }  # fmt: skip
    backup = pa.table(rows, schema=BACKUP).replace_schema_metadata(
        {b"eosctl.backup": b'{"format":1,"cluster_id":"k","records":2}'}
    )
    odd = {"partition": ["0"], "offset": [1.5], "timestamp_ms": ["x"], "key": ["k"], "value": [None]}
    plain = {name: rows[name] for name in ("topic", "partition", "key", "value")}
    found = []
    for table in (backup, pa.table(plain), pa.table(odd)):
        out = io.BytesIO()
        parquet.write_table(table, out, compression="none", write_page_checksum=table is backup)
        found.append(out.getvalue())
    return found


KEPT = [
    Reader("migration-plan", _plan_reader(_use_migration, migration.plan_file_text), _migration_plans),
    Reader("upgrade-plan", _plan_reader(upgrade_plan.read_plan, upgrade_plan.plan_file_text), _upgrade_plans),
    Reader("journal", _read_journal, _journals),
    Reader("audit-log", _read_audit, _audit_logs),
    Reader("record-file", _read_record_file, _record_files),
    Reader("snapshot", _read_snapshot, _snapshots),
    Reader("foreign-records", _read_foreign_records, _foreign_records),
    Reader("parquet", _read_parquet, _parquets, most_mib=300),
]
