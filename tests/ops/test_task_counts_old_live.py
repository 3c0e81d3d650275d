"""`workers` and `task-counts` on Kafka 3.9.2: group bytes, config topic, record and rounds are as in 4.3.1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eosctl.sandbox.stack import Stack
from tests.sandbox_fixtures import GROUP, FileSource, rest, wait_until

pytestmark = pytest.mark.live


@pytest.fixture
def source(old_stack: Stack, tmp_path: Path, unique: str) -> Iterator[FileSource]:
    """A FileStreamSource that is deleted after the test."""
    path = tmp_path / f"{unique}.txt"
    path.write_text("one\n")
    source = FileSource(url=old_stack.urls(GROUP)[0], name=unique, path=path, topic=f"topic-{unique}")
    yield source
    if source.name in rest(f"{source.url}/connectors"):
        rest(f"{source.url}/connectors/{source.name}", "DELETE")


def test_a_written_record_is_what_an_old_worker_fences(invoke: Any, old_stack: Stack, source: FileSource) -> None:
    ids = [f"{GROUP}-{source.name}-{task}" for task in range(3)]

    def run(*words: str) -> Any:
        outcome = invoke(*words, "-o", "json", "-b", old_stack.bootstrap_servers, "-u", source.url, "-g", GROUP)
        assert outcome.exit_code == 0, outcome.stdout + outcome.stderr
        return outcome.json()["data"]

    def show() -> Any:
        (row,) = run("task-counts", "show", source.name)["rows"]
        return row

    source.put(**{"admin.override.retry.backoff.ms": "10", "admin.override.retry.backoff.max.ms": "10"})
    source.wait_running()
    source.wait_position(4)
    worker = wait_until(lambda: (row := run("workers", "list")["rows"][0])["assigned"] and row, what="a stable group")
    assert (worker["version"], worker["mode"], worker["leader"]) == ("3.9.2", "enabled", True)
    assert {"connector": source.name, "task": 0} in worker["assigned"]["tasks"]
    assert worker["config_lag"] >= 0
    assert (show()["recorded"], show()["alive_ids"], show()["findings"]) == (1, ids[:1], [])

    source.stop_and_wait()
    wait_until(lambda: show()["target_state"] == "STOPPED", what="the stop to be read")
    (written,) = run("task-counts", "write", source.name, "--count", "3", "--yes")["rows"]
    assert written["outcome"] == "written"
    assert show()["after_next_commit"]["would_fence"] == ids
    source.set_state("resume")
    source.wait_running()
    wait_until(lambda: show()["recorded"] == 1, what="the round's own record")
    log = run("txn", "log", *ids, "--all-records")["rows"]
    assert {row["transactional_id"] for row in log if row["transaction_timeout_ms"] == 90_000} == set(ids)
    assert run("rescue", "--connector", source.name, "--yes")["summary"]["verdict"] == "healthy"
