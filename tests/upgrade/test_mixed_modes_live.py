"""What workers are that don't say it: a task outside transactions, a leader without the leader's transactional id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eosctl.core.workers.modes import Mode
from eosctl.sandbox.settings import GroupSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.hanging_transactions import offsets
from tests.sandbox_fixtures import PATIENCE_S, FileSource, added_group, group_flags, rest, wait_until

pytestmark = pytest.mark.live

LINES = 2


def two_sources(url: str, name: str, directory: Path) -> list[FileSource]:
    """Two connectors that have read two lines each: each of two workers runs the one task of one of them."""
    sources = []
    for connector in (f"{name}-0", f"{name}-1"):
        path = directory / f"{connector}.txt"
        path.write_text("line\n" * LINES)
        source = FileSource(url, connector, path, topic=f"topic-{connector}")
        source.put()
        source.wait_running()
        source.wait_position(5 * LINES)
        sources.append(source)
    return sources


def worker_of(source: FileSource) -> str:
    """The URL of the worker that runs the connector's task, as REST tells it."""
    (task,) = rest(f"{source.url}/connectors/{source.name}/status")["tasks"]
    return f"http://{task['worker_id']}"


def test_a_running_task_without_a_transactional_id_is_named(
    three_brokers: Stack, invoke: Invoke, unique: str, tmp_path: Path
) -> None:
    """One worker was enabled while the other is still disabled: REST calls both tasks RUNNING."""
    with added_group(three_brokers, GroupSpec(unique, (Mode.DISABLED, Mode.ENABLED))) as (disabled, enabled):
        flags = [*group_flags(three_brokers, unique), "-o", "json"]

        def modes() -> dict[str, str]:
            return {row["url"]: row["mode"] for row in invoke("workers", "probe", *flags).json()["data"]["rows"]}

        both = {disabled: "not_enabled", enabled: "enabled"}
        wait_until(lambda: modes() == both, what="both workers in the group, each in its mode")
        on = {worker_of(source): source for source in two_sources(disabled, unique, tmp_path)}
        outside, inside = on[disabled], on[enabled]
        # the independent proof: each commit of a transaction leaves a marker, which has an offset of its own
        wait_until(lambda: offsets(three_brokers, outside.topic)[1] >= LINES, what="lines of the one")
        wait_until(lambda: offsets(three_brokers, inside.topic)[0] > LINES, what="lines and a marker of the other")
        assert offsets(three_brokers, outside.topic)[1] == LINES

        found = envelope_of(invoke("connectors", "check", *flags), "connectors-check", 3)
        [finding] = [row for row in found["data"]["rows"] if row["severity"] == "error"]
        assert (finding["code"], finding["subject"]) == ("task_not_exactly_once", f"{outside.name}/0")
        assert finding["evidence"]["worker"] == disabled.removeprefix("http://")
        well = invoke("connectors", "check", "--connector", inside.name, *flags)
        assert envelope_of(well, "connectors-check")["data"]["rows"] == []

        nodes = [node for node in three_brokers.state.of_kind("worker") if node.group_id == unique]
        files = [word for node in nodes for word in ("-w", node.config)]
        examined = envelope_of(invoke("doctor", *files, *flags), "doctor", 3)
        errors = {row["code"]: row for row in examined["data"]["rows"] if row["severity"] == "error"}
        assert set(errors) == {"task_not_exactly_once", "no_mixed_modes"}
        assert errors["task_not_exactly_once"]["subject"] == f"{outside.name}/0"
        assert f"{enabled} enabled beside {disabled}" in errors["no_mixed_modes"]["message"]
        codes = {row["code"] for row in examined["data"]["rows"]}
        assert not codes & {"broker_maximum_unknown"}, "each of the three brokers is asked by a call of its own"
        asked = invoke("upgrade", "plan", "--to", "preparing", *files, *flags).json()["data"]
        gates = {gate["id"]: gate["status"] for gate in asked["gates"]}
        assert gates["broker_transaction_timeout"] == "pass"


def test_a_leader_that_does_not_claim_its_id_is_found_out(
    three_brokers: Stack, invoke: Invoke, unique: str, tmp_path: Path
) -> None:
    """The person who was told to set `preparing` only restarts the worker: it leads, as `disabled` as before.

    A worker that a loaded machine lets miss its heartbeats would be another member, whose mode nobody knows.
    """
    patient = {"session.timeout.ms": "600000"}
    with added_group(three_brokers, GroupSpec(unique, (Mode.DISABLED,), worker_config=patient)):
        where = group_flags(three_brokers, unique)
        with rolling_by_hand(tmp_path, "--to", "preparing", *where) as (apply, messages):
            wait_until(lambda: "NOW: set" in messages.read_text(), what="the order to restart")
            three_brokers.restart_node(f"{unique}-worker-0")
            found = f"leads the group and has not claimed its transactional id: is it {Mode.DISABLED.value}?"
            wait_until(lambda: found in messages.read_text(), what="the leader to be found out")
            apply.send_signal(signal.SIGINT)
            assert apply.wait(PATIENCE_S) == 130, messages.read_text()
        assert "everything as before" not in messages.read_text()

        flags = [*where, "-o", "json"]
        known = invoke("txn", "describe", f"connect-cluster-{unique}", *flags)
        assert (known.exit_code, f"no coordinator knows connect-cluster-{unique}" in known.stderr) == (1, True)
        verified = envelope_of(invoke("upgrade", "verify", "--to", "preparing", *flags), "upgrade-verify", 3)
        assert [row["code"] for row in verified["data"]["rows"]] == ["mode_unproven"]

        with rolling_by_hand(tmp_path, "--resume", *where) as (apply, messages):
            wait_until(lambda: "NOW: set" in messages.read_text(), what="the order to restart")
            three_brokers.restart_node(f"{unique}-worker-0", mode=Mode.PREPARING)
            assert apply.wait(2 * PATIENCE_S) == 0, messages.read_text()
        verified = envelope_of(invoke("upgrade", "verify", "--to", "preparing", *flags), "upgrade-verify")
        assert verified["data"]["rows"] == []


@contextmanager
def rolling_by_hand(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """An `upgrade apply --driver print` that runs until the block ends at most, and the file of all that it says."""
    line = [
        sys.executable,
        "-m",
        "eosctl",
        "upgrade",
        "apply",
        "--driver",
        "print",
        "--yes",
        "--timeout",
        "500s",
        *words,
    ]
    environ, messages = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}, folder / "messages"
    with messages.open("wb") as output:
        apply = subprocess.Popen(line, env=environ, stdout=output, stderr=output, start_new_session=True)
    try:
        yield apply, messages
    finally:
        apply.kill()
        apply.wait()
