"""`task-counts write` on Kafka 3.3.2: config topic, record and the leader's rounds are as in 4.3.1."""

from __future__ import annotations

from typing import Any

import pytest

from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.other_versions import OtherSource, on
from tests.sandbox_fixtures import GROUP, wait_until

pytestmark = pytest.mark.live


@on("3.3.2")
def test_a_written_record_is_what_the_first_version_fences(
    invoke: Invoke, other: Stack, other_source: OtherSource
) -> None:
    ids = [f"{GROUP}-{other_source.name}-{task}" for task in range(3)]

    def run(*words: str) -> Any:
        outcome = invoke(*words, "-o", "json", "-b", other.bootstrap_servers, "-u", other_source.url, "-g", GROUP)
        assert outcome.exit_code == 0, outcome.stdout + outcome.stderr
        return outcome.json()["data"]

    def show() -> Any:
        (row,) = run("task-counts", "show", other_source.name)["rows"]
        return row

    worker = wait_until(lambda: (row := run("workers", "list")["rows"][0])["assigned"] and row, what="a stable group")
    assert (worker["version"], worker["mode"], worker["leader"]) == ("3.3.2", "enabled", True)
    assert {"connector": other_source.name, "task": 0} in worker["assigned"]["tasks"]
    assert worker["config_lag"] >= 0

    other_source.halt()
    (written,) = run("task-counts", "write", other_source.name, "--count", "3", "--yes")["rows"]
    assert written["outcome"] == "written"
    assert show()["after_next_commit"]["would_fence"] == ids
    other_source.go_on()
    wait_until(lambda: show()["recorded"] == 1, what="the round's own record")
    log = run("txn", "log", *ids, "--all-records")["rows"]
    assert {row["transactional_id"] for row in log if row["transaction_timeout_ms"] == 1} == set(ids)
    other_source.append("three")
    other_source.wait_position(14)
    assert run("rescue", "--connector", other_source.name, "--yes")["summary"]["verdict"] == "healthy"
