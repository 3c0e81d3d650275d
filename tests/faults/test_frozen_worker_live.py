"""A worker that is frozen (SIGSTOP): the kernel takes connections for it, and nobody ever answers.

It stays a member of its group, as the session timeout of these workers is long.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.sandbox.stack import Stack
from tests.audit.proven import assert_exactly_once
from tests.conftest import Invoke
from tests.faults.child import Child
from tests.faults.conftest import on_pair
from tests.sandbox_fixtures import PAIR, FileSource, frozen, rest, wait_until

pytestmark = pytest.mark.live

OK, FINDINGS, UNREACHABLE, PARTIAL = 0, 3, 4, 7


def wait_for_a_calm_group(pair: Stack, invoke: Invoke) -> None:
    """A worker that is frozen in a rebalance holds it up, and nobody is a member meanwhile; one may bring the next."""
    calm = 0

    def stays_stable() -> bool:
        nonlocal calm
        done = invoke("workers", "list", *on_pair(), "-b", pair.bootstrap_servers)
        calm = calm + 1 if done.exit_code == OK and not done.json()["errors"] else 0
        return calm == 10

    wait_until(stays_stable, what="a group without a rebalance", timeout_s=120)


def test_the_others_are_told_in_full(pair: Stack, invoke: Invoke, unique: str, tmp_path: Path) -> None:
    """A frozen worker used to take all the time there was, whoever stood behind it.

    Five commands look at once, for each waits out its patience with the frozen worker.
    """
    silent, well = pair.urls(PAIR)
    commands = {
        "list": ["workers", "list"],
        "probe": ["workers", "probe"],
        "plan": ["upgrade", "plan", "--to", "enabled"],
        "status": ["upgrade", "status"],
        "fence": ["fence", f"{PAIR}-{unique}-0", "--create-unknown", "--dry-run", "-u", silent, "-u", well],
    }
    flags = [*on_pair(), "-b", pair.bootstrap_servers, "--timeout", "120s"]
    wait_for_a_calm_group(pair, invoke)
    with frozen(pair, silent):
        children = {name: Child([*words, *flags], tmp_path / name) for name, words in commands.items()}
        done = {name: child.wait() for name, child in children.items()}
    assert done["fence"].exit_code == OK, done["fence"].stderr
    for name in ("list", "probe"):
        assert done[name].exit_code == PARTIAL, done[name].stderr
        rows = {row["url"]: row for row in done[name].json()["data"]["rows"]}
        assert rows.keys() == {silent, well}
        assert (rows[silent]["health"], rows[silent]["mode"]) == ("unreachable", "unknown")
        assert rows[silent]["member_id"], "the group still knows it"
    assert done["plan"].exit_code == FINDINGS, done["plan"].stderr
    assert done["status"].exit_code == PARTIAL, done["status"].stderr
    for name in ("plan", "status"):
        modes = {row["worker"]: row["mode"] for row in done[name].json()["data"]["rows"]}
        assert modes[silent] == "unreachable"
    gates = {gate["id"]: gate["status"] for gate in done["plan"].json()["data"]["gates"]}
    assert {gates["members_known"], gates["modes_proven"], gates["worker_health"]} <= {"fail", "unknown"}


def test_a_switch_waits_and_the_next_one_ends_it(pair: Stack, invoke: Invoke, source: FileSource) -> None:
    """The worker that runs the task is silent: the connector can't be seen to stop."""
    (task,) = rest(f"{source.url}/connectors/{source.name}/status")["tasks"]
    silent = f"http://{task['worker_id']}"
    (well,) = [url for url in pair.urls(PAIR) if url != silent]
    words = ["offsets", "switch", "--connector", source.name, "--to", f"own-{source.name}", "--yes"]
    words += [*on_pair(), "-b", pair.bootstrap_servers, "-u", well]
    with frozen(pair, silent):
        done = invoke(*words, "--timeout", "8s")
    assert done.exit_code in (UNREACHABLE, PARTIAL), done.stderr
    document: Any = done.json()
    if document["kind"] == "offsets-switch-result":
        assert [row["outcome"] for row in document["data"]["rows"]].count("done") == 0
        assert "switch_unfinished" in [each["code"] for each in document["errors"]]
    # the thawed worker ends its task only now, and says so: a run that sees that in its middle stops once more
    wait_until(lambda: invoke(*words).exit_code == OK, what="a run that ends it", timeout_s=120)
    source.wait_running()
    source.append("three")
    source.wait_position(14)
    assert_exactly_once(invoke, [*on_pair(), "-b", pair.bootstrap_servers, "-u", well], source.name)


def test_a_roll_names_it_and_gives_up_in_time(pair: Stack, invoke: Invoke, tmp_path: Path) -> None:
    """It freezes while the other one is being restarted; that one's restart command does nothing, after all."""
    begun, go_on, script = tmp_path / "begun", tmp_path / "go-on", tmp_path / "restart"
    script.write_text(f'#!/bin/sh\necho "$1" > {begun}.new; mv {begun}.new {begun}\n'
                      f"while [ ! -e {go_on} ]; do sleep 0.1; done\n")  # fmt: skip
    script.chmod(0o755)
    driver = ["--driver", "command", "--set-config-command", "true", "--restart-command", f"{script} {{url}}"]
    flags = [*on_pair(), "-b", pair.bootstrap_servers]
    wait_for_a_calm_group(pair, invoke)
    words = ["upgrade", "apply", "--to", "preparing", *driver, "--settle-timeout", "30s", "--yes", *flags]
    roll = Child(words, tmp_path)
    try:
        wait_until(begun.exists, what="the restart command")
        under_way = begun.read_text().strip()
        (other,) = set(pair.urls(PAIR)) - {under_way}
        with frozen(pair, other):
            go_on.touch()
            done = roll.wait()
    finally:
        go_on.touch()
    assert done.exit_code == PARTIAL, done.stderr
    waiting = f"still waiting: not restarted yet: {under_way}; no answer from {other}"
    assert waiting in done.json()["errors"][0]["message"]
    assert "--resume" in done.json()["errors"][-1]["hint"]
    status = invoke("upgrade", "status", *flags).json()["data"]["roll"]
    assert (status["finished"], status["under_way"]) == (False, {"mode": "preparing", "workers": [under_way]})
    verify = ["upgrade", "verify", "--to", "enabled", *flags]
    wait_until(lambda: invoke(*verify).exit_code == OK, what="a group as before", timeout_s=120)
