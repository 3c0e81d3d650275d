"""The audit log and `eosctl history`: one line for every write, whatever became of it."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from eosctl.state.audit import Digest
from tests.fakes.transactions import Scene
from tests.state.audit_scene import CLUSTER, FENCE, lines

LEADER = ("fence", "connect-cluster-g", "--create-unknown")


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


def test_a_digest_is_of_json_with_sorted_keys_a_value_a_line() -> None:
    text = '{"a":{"c":"x","d":null},"b":1}\n"y"\n'
    given = Digest([{"b": 1, "a": {"d": None, "c": "x"}}, "y"])
    assert str(given) == f"sha256:{sha256(text.encode()).hexdigest()}"
    assert str(Digest(["\udc80"])) != str(Digest(["\udc81"])), "names that are no UTF-8"


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
