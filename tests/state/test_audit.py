"""The audit log and `eosctl history`: one line for every write, whatever became of it."""

from __future__ import annotations

import ast
import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from eosctl.core.allowances import Waiver
from eosctl.deadline import Clock
from eosctl.errors import DeadlineError, InterruptedByUserError, StalePlanError
from eosctl.report import Problem, Report
from eosctl.state.audit import AuditedCommand, AuditLog
from eosctl.target import Target
from tests.command_tree import leaves
from tests.conftest import Invoke, Outcome
from tests.fakes.transactions import Scene, scene
from tests.test_layers import ROOT

FENCE = ("fence", "g-orders-0")
LEADER = ("fence", "connect-cluster-g", "--create-unknown")
CLUSTER = "fake-cluster-id"


@pytest.fixture
def stage() -> Iterator[Scene]:
    with scene() as built:
        yield built


@pytest.fixture
def run(invoke: Invoke, stage: Scene) -> Any:
    """`eosctl ARGS…` on the scene."""

    def on_stage(*args: str, **more: Any) -> Outcome:
        return invoke(*args, *stage.flags, **{**stage.surroundings, **more})

    return on_stage


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "state" / "eosctl" / "audit.jsonl"


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def test_one_write_is_one_line(run: Any, log: Path) -> None:
    done = run(*FENCE, "--live", "--yes", "-o", "json", environ={"SUDO_USER": "ann"})
    assert done.exit_code == 0, done.stderr
    [entry] = lines(log)
    assert entry["command"] == "fence"
    assert entry["arguments"] == {"transactional_ids": ["g-orders-0"], "live": True, "yes": True}
    assert entry["overrides"] == {"live": True}
    assert (entry["outcome"], entry["exit_code"], entry["sudo_user"]) == ("ok", 0, "ann")
    assert (entry["pid"], entry["host"]) == (os.getpid(), os.uname().nodename)
    assert entry["time"].endswith("Z")
    assert entry["time_ms"] == entry["ended_ms"] == 1_795_000_000_000
    assert entry["target"]["kafka_cluster_id"] == CLUSTER
    assert entry["target"]["group_id"] == "g"
    assert entry["target"]["connect_urls"] == ["http://w1:8083"]
    assert entry["summary"] == done.json()["data"]["summary"]
    digests = [entry[name] for name in ("plan_digest", "before_digest", "after_digest")]
    assert all(each.startswith("sha256:") for each in digests)
    assert len(set(digests)) == 3
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert list((log.parent / "writes").iterdir()) == []


@pytest.mark.parametrize(
    ("args", "more", "exit_code"),
    [
        (("--dry-run",), {}, 0),
        ((), {}, 6),
        ((), {"input": "n\n", "can_ask": True}, 6),
        ((*LEADER[1:], "--dry-run"), {}, 6),
        (("--tasks", "2", "--yes"), {}, 2),
    ],
)
def test_what_was_not_begun_is_not_recorded(
    run: Any, log: Path, args: tuple[str, ...], more: Any, exit_code: int
) -> None:
    assert run(*FENCE, *args, **more).exit_code == exit_code
    assert not log.exists() or lines(log) == []


def test_what_a_check_refused_is_a_line_that_says_why(run: Any, stage: Scene, log: Path) -> None:
    """A refusal left no trace, so nobody saw who had tried it, and why it was not done."""
    done = run(*LEADER, "--yes")
    assert (done.exit_code, stage.brokers.count("InitProducerId")) == (6, 0)
    [entry] = lines(log)
    assert (entry["command"], entry["outcome"], entry["exit_code"]) == ("fence", "refused", 6)
    assert entry["error"]["code"] == "refused"
    assert entry["error"]["message"] in done.stderr
    assert entry["touched"] == {"transactional_ids": ["connect-cluster-g"]}
    assert (entry["target"]["group_id"], entry["undo"], entry["backup"]) == ("g", None, None)
    shown = run("history", "-o", "wide")
    assert "id connect-cluster-g" in shown.stdout
    assert entry["error"]["message"] in shown.stdout
    assert run("history", "-o", "json").json()["data"]["summary"] == {
        "writes": 0, "outcomes": {"refused": 1}, "damaged": 0
    }  # fmt: skip


def test_a_refusal_that_can_not_be_recorded_stays_one(run: Any, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    done = run(*LEADER, "--yes", "--audit-log", str(tmp_path / "there" / "log"))
    assert (done.exit_code, "audit log" in done.stderr) == (6, False)
    assert "--allow-leader" in done.stderr


def test_history_says_what_was_touched(run: Any, log: Path) -> None:
    """Text had who, when and the command's name; which connector it was only JSON knew, and of `--from-file` nobody."""
    assert run(*FENCE, "--live", "--yes").exit_code == 0
    [entry] = lines(log)
    assert entry["touched"] == {"connectors": ["orders"], "transactional_ids": ["g-orders-0"]}
    assert "connector orders; id g-orders-0" in run("history").stdout


def test_what_older_versions_recorded_is_told_by_its_arguments(invoke: Invoke, tmp_path: Path) -> None:
    old = json.loads(entry(1, "offsets set")) | {"arguments": {"connector": "orders", "yes": True}}
    many = json.loads(entry(2, "fence")) | {"arguments": {"transactional_ids": list("abcde")}}
    (tmp_path / "log").write_text(f"{json.dumps(old)}\n{json.dumps(many)}\n{entry(3, 'fence')}\n")
    shown = invoke("history", "--audit-log", str(tmp_path / "log"))
    assert shown.exit_code == 0, shown.stderr
    assert ("connector orders" in shown.stdout, "ids a, b, c and 2 more" in shown.stdout) == (True, True)


def test_a_bulk_write_is_not_recorded_name_by_name(tmp_path: Path) -> None:
    rows = [{"transactional_id": f"g-c-{number}", "outcome": "fenced"} for number in range(1200)]
    rows.append({"transactional_id": "g-d-0", "outcome": "skipped_unknown"})
    audit(tmp_path).record(ACTION, PLAN, lambda: Report("x-result", rows))
    [found] = lines(tmp_path / "audit.jsonl")
    assert (len(found["touched"]["transactional_ids"]), found["touched"]["left_out"]) == (1000, 200)


@pytest.mark.parametrize("by", ["option", "environment", "profile"])
def test_the_log_can_be_another_file(run: Any, tmp_path: Path, log: Path, by: str) -> None:
    other = tmp_path / "made" / "other.jsonl"
    args, environ = [], {}
    if by == "option":
        args = ["--audit-log", str(other)]
    elif by == "environment":
        environ = {"EOSCTL_AUDIT_LOG": str(other)}
    else:
        config = tmp_path / "config.yaml"
        config.write_text(f"current: p\nprofiles: {{p: {{audit_log: {other}}}}}\n", encoding="utf-8")
        args = ["--config", str(config)]
    assert run(*FENCE, "--live", "--yes", *args, environ=environ).exit_code == 0
    assert len(lines(other)) == 1
    assert not log.exists()
    assert len(run("history", "-o", "json", *args, environ=environ).json()["data"]["rows"]) == 1


def test_a_named_log_is_enough_where_the_home_can_not_be_written(run: Any, tmp_path: Path) -> None:
    """Writes under way were noted in the state directory even so, and the log that was named got the blame."""
    environ = {"XDG_STATE_HOME": "/dev/null/state", "EOSCTL_AUDIT_LOG": str(tmp_path / "audit.jsonl")}
    done = run(*FENCE, "--live", "--yes", environ=environ)
    assert done.exit_code == 0, done.stderr
    assert [entry["outcome"] for entry in lines(tmp_path / "audit.jsonl")] == ["ok"]
    assert list((tmp_path / "audit.jsonl.writes").iterdir()) == []


@pytest.mark.parametrize("kind", ["directory", "fifo", "below a file"])
def test_what_cannot_be_recorded_is_not_done(run: Any, stage: Scene, tmp_path: Path, kind: str) -> None:
    there = tmp_path / "there"
    if kind == "directory":
        there.mkdir()
    elif kind == "fifo":
        os.mkfifo(there)
    else:
        there.write_text("")
        there /= "log"
    done = run(*FENCE, "--live", "--yes", "--audit-log", str(there))
    assert done.exit_code == 6
    assert f"cannot write the audit log {there}" in done.stderr
    assert "nothing was written" in done.stderr
    assert stage.brokers.count("InitProducerId") == 0


def audit(tmp_path: Path) -> AuditLog:
    return AuditLog(tmp_path / "audit.jsonl", tmp_path / "writes", Clock())


ACTION = AuditedCommand("x y", {"conf": ("spark.ssl.keyPassword=hush", "a=b"), "count": 2}, (), Target())
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
    assert entry["arguments"] == {"conf": ["spark.ssl.keyPassword=***", "a=b"], "count": 2}


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
    subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=False, timeout=60)
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


def entry(time_ms: int, command: str) -> str:
    return json.dumps({"id": f"{time_ms}", "time_ms": time_ms, "time": "t", "command": command, "outcome": "ok"})


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), ["fence", "offsets merge", "offsets set"]),
        (("--command", "offsets"), ["offsets merge", "offsets set"]),
        (("--command", "offsets set"), ["offsets set"]),
        (("--command", "off"), []),
        (("--since", "2h"), ["offsets merge", "offsets set"]),
        (("--since", "1970-01-02"), ["offsets set"]),
        (("--since", "1970-01-01T23:00:00+01:00"), ["offsets merge", "offsets set"]),
    ],
)
def test_history_is_filtered(tmp_path: Path, invoke: Invoke, args: tuple[str, ...], expected: list[str]) -> None:
    hour_ms = 3_600_000
    log = tmp_path / "log"
    rows = [entry(0, "fence"), entry(22 * hour_ms, "offsets merge"), entry(24 * hour_ms, "offsets set")]
    log.write_text("\n".join(rows) + "\n", encoding="utf-8")
    done = invoke("history", *args, "--audit-log", str(log), "-o", "json", clock=Clock(now_s=lambda: 24 * 3600.0))
    assert [row["command"] for row in done.json()["data"]["rows"]] == expected


def test_history_needs_no_secret_and_no_cluster(invoke: Invoke, tmp_path: Path) -> None:
    """It failed where the profile's password could not be fetched."""
    config = tmp_path / "config.yaml"
    profile = {"audit_log": str(tmp_path / "log"), "connect": {"username": "me", "password_env": "NOT_SET"}}
    config.write_text(json.dumps({"profiles": {"p": profile}, "current": "p"}), encoding="utf-8")
    assert invoke("history", "--config", str(config)).exit_code == 0
    failed = invoke("workers", "list", "--config", str(config))
    assert (failed.exit_code, "profile p: connect: password_env: the environment has no NOT_SET" in failed.stderr) == (
        2,
        True,
    )


def test_history_of_nothing_and_of_nonsense(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke("history").stdout.startswith("Nothing was written so far.")
    assert invoke("history", "--since", "yesterday").exit_code == 2
    assert invoke("history", "--audit-log", str(tmp_path)).exit_code == 1


# expect.* -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def expecting(tmp_path: Path) -> Any:
    """The options that choose a profile which expects these ids."""

    def options(**expect: str) -> list[str]:
        config = tmp_path / "config.yaml"
        config.write_text(json.dumps({"profiles": {"p": {"expect": expect}}}), encoding="utf-8")
        return ["--config", str(config), "-p", "p"]

    return options


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        ({"kafka_cluster_id": "other"}, ("the Kafka cluster is fake-cluster-id", "expects other")),
        ({"group_id": "other"}, ("the Connect group is g,", "expects other")),
    ],
)
def test_a_write_to_another_cluster_or_group_is_refused(
    run: Any, stage: Scene, log: Path, expecting: Any, expect: dict[str, str], words: tuple[str, ...]
) -> None:
    done = run(*FENCE, "--live", "--yes", *expecting(**expect))
    assert done.exit_code == 6
    assert all(word in done.stderr for word in words), done.stderr
    assert stage.brokers.count("InitProducerId") == 0
    [entry] = lines(log)
    assert (entry["outcome"], entry["exit_code"], entry["touched"]["transactional_ids"]) == (
        "refused", 6, ["g-orders-0"]
    )  # fmt: skip
    shown = run(*FENCE, "--live", "--dry-run", *expecting(**expect))
    assert shown.exit_code == 0
    assert f"warning: {words[0]}" in shown.stderr


def test_the_expected_cluster_and_group_pass(run: Any, stage: Scene, expecting: Any) -> None:
    done = run(*FENCE, "--live", "--yes", *expecting(kafka_cluster_id=CLUSTER, group_id="g"))
    assert done.exit_code == 0
    assert stage.brokers.count("InitProducerId") == 1


def test_what_is_not_known_is_not_what_is_expected(invoke: Invoke, stage: Scene, expecting: Any) -> None:
    flags = [*stage.flags[:2], *expecting(group_id="g")]
    done = invoke("fence", "g-done-0", "--live", "--yes", *flags, **stage.surroundings)
    assert done.exit_code == 6
    assert "the Connect group is not known here, and the profile expects g" in done.stderr


def test_a_profile_can_expect_two_things_only(invoke: Invoke, expecting: Any) -> None:
    done = invoke("fence", "x", *expecting(cluster="g"))
    assert done.exit_code == 2
    assert "expect: unknown key cluster" in done.stderr


# every writing command ----------------------------------------------------------------------------------------------

# options of writing commands that set no check aside: they say what to do, or how
HARMLESS = {
    *(
        "all_connectors",
        "dry_run",
        "every",
        "everything",
        "failed",
        "keep_partitions",
        "old_brokers",
        "prefixed",
        "resume",
    ),
    *("no_write", "print_patch", "prune", "rewrite", "sudo", "with_secrets", "yes"),
}


def _writing_options() -> list[tuple[str, click.Option]]:
    return [
        (command, param)
        for command, found in leaves().items()
        if any("--yes" in option.opts for option in found.params)
        for param in found.params
        if isinstance(param, click.Option) and param.expose_value
    ]


def test_every_option_that_sets_a_check_aside_is_recorded_as_one() -> None:
    found = _writing_options()
    names = {
        (command, str(param.name))
        for command, param in found
        if param.is_flag or str(param.name).startswith(("accept", "allow", "force", "ignore", "skip"))
    }
    known = {waiver.option for waiver in Waiver}
    assert len({command for command, _name in names}) >= 10
    assert sorted((command, name) for command, name in names if name not in known | HARMLESS) == []
    assert known <= {str(param.name) for _command, param in found}, "a waiver that no command has any more"


def test_a_waiver_means_the_same_wherever_it_is_an_option() -> None:
    """Three commands used to declare --workers-down and --force-running, each with its own words."""
    declared = {str(waiver): waiver.help for waiver in Waiver}
    there = {(flag, param.help) for _command, param in _writing_options() for flag in param.opts if flag in declared}
    assert there == set(declared.items())


def test_the_library_names_waivers_by_the_one_table() -> None:
    """A hint that spells a flag by itself is left behind when the flag gets another name."""
    spelled = re.compile(f"(?<![\\w-])({'|'.join(map(str, Waiver))})(?![\\w-])")
    told = {"views", "schemas"}  # what only explains flags imports nothing
    files = [path for path in (ROOT / "eosctl").rglob("*.py") if told.isdisjoint(path.relative_to(ROOT).parts)]
    assert len(files) > 200
    found = [
        f"{path.name}:{node.lineno} {node.value!r}"
        for path in files
        for node in _strings_of(path)
        if spelled.search(str(node.value)) and path.name != "allowances.py"
        if node.value != "--force"  # kafka-acls.sh has one of its own
    ]
    assert found == []


def _strings_of(path: Path) -> Iterator[ast.Constant]:
    """The texts in a file that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node
