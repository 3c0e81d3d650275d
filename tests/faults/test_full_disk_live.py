"""A disk that is full when the backup, the journal or the audit log is to be written, and the write behind them.

The disk is a limit for the size of files. What goes wrong with the audit log alone: tests/state/test_audit.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eosctl.sandbox.stack import Stack
from tests.faults.child import Child
from tests.faults.conftest import Merge

pytestmark = pytest.mark.live

OK, FAILED, REFUSED = 0, 1, 6
DISK_BYTES = 200_000


def test_no_room(lone_broker: Stack, merge: Merge, tmp_path: Path) -> None:
    """Without backup, journal or audit log nothing is written; what was written is told even if it can't be noted.

    A journal that could not be closed used to cost the report: exit 1, though everything had been written.
    """
    words = [*merge.words, "-b", lone_broker.bootstrap_servers]
    state = tmp_path / "state" / "eosctl"

    no_backup = Child(words, tmp_path, disk_bytes=20_000).wait()
    assert no_backup.exit_code == FAILED
    [told] = no_backup.json()["errors"]
    assert told["message"].startswith(f"cannot write {state / 'backups'}")
    assert "Nothing was written to Kafka" in told["hint"]
    assert merge.written() == 0

    (journal,) = (state / "journals").iterdir()
    hold, begin, end, _ = journal.read_bytes().splitlines(keepends=True)  # the import's, and the last run's hold
    room = len(hold + begin) + len(end) // 2  # names and process ids differ by a few bytes
    journal.write_bytes(b"\n" * DISK_BYTES)
    no_journal = Child(words, tmp_path, disk_bytes=DISK_BYTES).wait()
    assert no_journal.exit_code == FAILED
    assert f"cannot write {journal}" in no_journal.stderr
    assert merge.written() == 0

    no_log = Child([*words, "--audit-log", "/dev/full"], tmp_path).wait()
    assert no_log.exit_code == REFUSED
    assert "cannot write the audit log /dev/full" in no_log.stderr
    assert merge.written() == 0

    journal.write_bytes(b"\n" * (DISK_BYTES - room))  # room for a run's lines but the last
    no_end = Child(words, tmp_path, disk_bytes=DISK_BYTES).wait()
    assert no_end.exit_code == OK, no_end.stderr
    assert no_end.json()["data"]["summary"]["written"] == merge.count == merge.written()
    assert [each["code"] for each in no_end.json()["errors"]] == ["journal_not_closed"]

    again = Child(words, tmp_path).wait()
    assert again.exit_code == OK
    assert "was cut off before its end was seen" in again.stderr
    assert {row["action"] for row in again.json()["data"]["rows"]} == {"keep"}
    outcomes = [json.loads(line)["outcome"] for line in (state / "audit.jsonl").read_bytes().splitlines()]
    assert outcomes == ["ok", "error", "error", "ok"], "the import, and what was begun of the merges"
