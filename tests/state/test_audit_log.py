"""The audit log itself: one line a write, whole, once, and whatever ends the write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from eosctl.deadline import Clock
from eosctl.errors import DeadlineError, InterruptedByUserError, StalePlanError
from eosctl.report import Problem, Report
from eosctl.state.audit import AuditedCommand, AuditLog
from eosctl.target import Target
from tests.conftest import Invoke
from tests.fakes.clock import PLENTY_S
from tests.state.audit_scene import lines


def test_a_bulk_write_is_not_recorded_name_by_name(tmp_path: Path) -> None:
    rows = [{"transactional_id": f"g-c-{number}", "outcome": "fenced"} for number in range(1200)]
    rows.append({"transactional_id": "g-d-0", "outcome": "skipped_unknown"})
    audit(tmp_path).record(ACTION, PLAN, lambda: Report("x-result", rows))
    [found] = lines(tmp_path / "audit.jsonl")
    assert (len(found["touched"]["transactional_ids"]), found["touched"]["left_out"]) == (1000, 200)


def test_a_write_that_was_cut_off_keeps_the_names_of_its_plan(tmp_path: Path) -> None:
    """The result of a migration that Ctrl-C ended has stages as rows: history said that it had touched nothing."""
    plan = Report("x-plan", [{"connector": "c", "target": {"topic": "offsets-c"}}])
    audit(tmp_path).record(ACTION, plan, lambda: Report("x-result", [{"stage": "write", "outcome": "failed"}]))
    [found] = lines(tmp_path / "audit.jsonl")
    assert found["touched"] == {"connectors": ["c"], "topics": ["offsets-c"]}


def audit(tmp_path: Path) -> AuditLog:
    return AuditLog(tmp_path / "audit.jsonl", tmp_path / "writes", Clock())


ACTION = AuditedCommand(
    "x y", {"conf": ("spark.ssl.keyPassword=hush", "a=b", "spark.memory=4g"), "count": 2}, (), Target()
)
PLAN = Report("x-plan", [{"id": 1, "before": {"n": 1}}], target={"kafka_cluster_id": "c"})


@pytest.mark.parametrize(
    ("error", "outcome", "exit_code"),
    [
        (KeyboardInterrupt(), "interrupted", 130),
        (RuntimeError("hush"), "error", 1),
        (SystemExit(3), "error", 1),
        (OSError("hush"), "error", 1),
    ],
)
def test_a_write_that_raises_is_recorded(tmp_path: Path, error: BaseException, outcome: str, exit_code: int) -> None:
    def fail() -> Report:
        raise error

    with pytest.raises(type(error)):
        audit(tmp_path).record(ACTION, PLAN, fail)
    [entry] = lines(tmp_path / "audit.jsonl")
    assert (entry["outcome"], entry["exit_code"]) == (outcome, exit_code)
    assert "hush" not in json.dumps(entry)
    assert entry["arguments"] == {"conf": ["spark.ssl.keyPassword=***", "a=***", "spark.memory=4g"], "count": 2}


@pytest.mark.parametrize(
    ("option", "given", "kept"),
    [
        ("restart_command", "curl -u admin:hush http://{host}:8080/restart", "curl ***"),
        ("set_config_command", "/opt/set-mode", "/opt/set-mode"),
        ("accept_gone", ("https://u:hush@w1:8083", "u:hush@w2:8083"), ["https://***@w1:8083", "***@w2:8083"]),
        ("accept_gone", "http://w1:8083/connect", "http://w1:8083/connect"),
        ("offsets", '{"position": 3}', '{"position": 3}'),
        ("env", "DB_PASSWORD=hush", "DB_PASSWORD=***"),
        ("workload", "kafkaconnect/shop", "kafkaconnect/shop"),
        (
            "conf",
            ("spark.hadoop.fs.s3a.secret.key=hush", "spark.x.y=hush"),
            ["spark.hadoop.fs.s3a.secret.key=***", "spark.x.y=***"],
        ),
    ],
)
def test_arguments_are_kept_without_passwords(tmp_path: Path, option: str, given: object, kept: object) -> None:
    """Passwords in URLs and in commands stood there as they were given."""
    action = AuditedCommand("x y", {option: given}, (), Target())
    audit(tmp_path).record(action, PLAN, lambda: Report("x-result"))
    [entry] = lines(tmp_path / "audit.jsonl")
    assert entry["arguments"] == {option: kept}


@pytest.mark.parametrize(
    ("error", "undo"),
    [(DeadlineError("x"), "eosctl x --back"), (OSError(), "eosctl x --back"), (StalePlanError("x"), None)],
)
def test_a_write_that_raises_keeps_the_undo_of_its_plan(tmp_path: Path, error: Exception, undo: str | None) -> None:
    """It was lost with the answer, also where a part of the write was done."""

    def fail() -> Report:
        raise error

    with pytest.raises(type(error)):
        audit(tmp_path).record(ACTION, Report("x-plan", data={"undo": "eosctl x --back"}), fail)
    assert [entry["undo"] for entry in lines(tmp_path / "audit.jsonl")] == [undo]


def test_a_report_of_an_interrupted_write_is_recorded_as_one(tmp_path: Path) -> None:
    result = Report(
        "x-result", exit_code=PLAN.exit_code.INTERRUPTED, problems=[Problem(InterruptedByUserError.code, "cut off")]
    )
    audit(tmp_path).record(ACTION, PLAN, lambda: result)
    [entry] = lines(tmp_path / "audit.jsonl")
    assert (entry["outcome"], entry["error"]) == ("interrupted", {"code": "interrupted", "message": "cut off"})


def test_a_line_that_cannot_be_added_is_no_success_and_is_added_later(tmp_path: Path) -> None:
    log = audit(tmp_path)

    def fill_the_disk() -> Report:
        log.path.unlink(missing_ok=True)
        log.path.mkdir()
        return Report("x-result")

    result = log.record(ACTION, PLAN, fill_the_disk)
    assert (result.exit_code, result.problems[0].code) == (7, "audit_failed")
    log.path.rmdir()
    log.add_killed()
    assert [entry["outcome"] for entry in lines(log.path)] == ["ok"]


_KILLED = """
import os, signal, sys
from pathlib import Path
from eosctl.core.allowances import Waiver
from eosctl.deadline import Clock
from eosctl.state.audit import AuditedCommand, AuditLog
from eosctl.profiles import Target
from eosctl.report import Report

log = AuditLog(Path(sys.argv[1]) / "audit.jsonl", Path(sys.argv[1]) / "writes", Clock())
plan = Report("x-plan", data={"undo": "eosctl x --back"})
log.record(AuditedCommand("x y", {}, (), Target()), plan, lambda: os.kill(os.getpid(), signal.SIGKILL))
"""


def test_a_killed_write_has_its_line_once(tmp_path: Path, invoke: Invoke) -> None:
    subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=False, timeout=PLENTY_S)
    environ = {"EOSCTL_AUDIT_LOG": str(tmp_path / "audit.jsonl")}
    log = audit(tmp_path)
    log.add_killed()
    log.add_killed()
    rows = invoke("history", "-o", "json", environ=environ).json()["data"]["rows"]
    assert [(row["command"], row["outcome"], row["exit_code"]) for row in rows] == [("x y", "killed", None)]
    assert rows[0]["undo"] == "eosctl x --back", "the plan's: it used to be lost with the process"
    assert rows[0]["pid"] != os.getpid()


def test_a_write_under_way_is_not_taken_for_killed(tmp_path: Path) -> None:
    log = audit(tmp_path)

    def look() -> Report:
        log.add_killed()
        assert not log.path.exists() or lines(log.path) == []
        return Report("x-result")

    log.record(ACTION, PLAN, look)
    assert [entry["outcome"] for entry in lines(log.path)] == ["ok"]


def test_two_writers_at_once_do_not_mix_their_lines(tmp_path: Path) -> None:
    long = AuditedCommand("x", {"word": "y" * 200_000}, (), Target())

    def write() -> None:
        for _ in range(10):
            audit(tmp_path).record(long, PLAN, lambda: Report("x-result"))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [entry["outcome"] for entry in lines(tmp_path / "audit.jsonl")] == ["ok"] * 40


def test_a_line_that_a_crash_cut_off_spoils_no_other(tmp_path: Path, invoke: Invoke) -> None:
    log = audit(tmp_path)
    log.record(ACTION, PLAN, lambda: Report("x-result"))
    with log.path.open("ab") as file:
        file.write(b'{"id": "cut')
    log.record(ACTION, PLAN, lambda: Report("x-result"))
    done = invoke("history", "--audit-log", str(log.path))
    assert done.exit_code == 0
    assert done.stdout.count("x y") == 2
    assert "1 damaged line" in done.stderr
