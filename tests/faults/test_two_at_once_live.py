"""Two eosctl at once. The proxy holds the first one in the middle of its write until the second has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.faults.child import Child
from tests.faults.conftest import Merge, on_pair
from tests.faults.proxy import Api, held
from tests.sandbox_fixtures import PAIR, FileSource, wait_until

pytestmark = pytest.mark.live

OK, REFUSED, PARTIAL = 0, 6, 7


def test_the_same_merge_on_one_machine(lone_broker: Stack, merge: Merge, invoke: Invoke, tmp_path: Path) -> None:
    with held(lone_broker.bootstrap_servers, Api.END_TXN, 1) as (proxy, gate):
        first = Child([*merge.words, "-b", proxy.address], tmp_path)
        gate.wait_closed()
        second = invoke(*merge.words, "-b", lone_broker.bootstrap_servers)
        assert merge.written() == 0
        gate.open()
        done = first.wait()
    assert second.exit_code == REFUSED, second.stderr
    assert "an open transaction hides newer offsets" in second.stderr
    assert done.exit_code == OK, done.stderr
    assert merge.written() == merge.count


def test_the_same_merge_on_two_machines(lone_broker: Stack, merge: Merge, invoke: Invoke, tmp_path: Path) -> None:
    """No lock reaches that far: the second sees the open transaction of the first, and does not guess what it hides."""
    with held(lone_broker.bootstrap_servers, Api.END_TXN, 1) as (proxy, gate):
        first = Child([*merge.words, "-b", proxy.address], tmp_path / "elsewhere")
        gate.wait_closed()
        second = invoke(*merge.words, "-b", lone_broker.bootstrap_servers)
        gate.open()
        done = first.wait()
    assert second.exit_code == REFUSED, second.stderr
    assert "an open transaction hides newer offsets" in second.stderr
    assert done.exit_code == OK, done.stderr
    read = merge.topics.read(merge.target)
    assert len(read.records) == merge.count, "each offset is there once"


def test_the_same_switch(pair: Stack, source: FileSource, invoke: Invoke, tmp_path: Path) -> None:
    """The second is refused while the first is in its merge, and has nothing to do when the first has ended."""
    words = ["offsets", "switch", "--connector", source.name, "--to", f"own-{source.name}", "--yes", *on_pair()]
    words += [word for url in pair.urls(PAIR) for word in ("-u", url)]
    with held(pair.bootstrap_servers, Api.END_TXN, 1) as (proxy, gate):
        first = Child([*words, "-b", proxy.address], tmp_path)
        gate.wait_closed()
        second = invoke(*words, "-b", pair.bootstrap_servers)
        gate.open()
        done = first.wait()
    assert second.exit_code == REFUSED, second.stderr
    assert done.exit_code == OK, done.stderr
    source.wait_running()
    source.append("three")
    source.wait_position(14)
    third = invoke(*words, "-b", pair.bootstrap_servers)
    assert (third.exit_code, third.json()["data"]["rows"]) == (OK, []), third.stderr


def test_the_same_roll(pair: Stack, invoke: Invoke, tmp_path: Path) -> None:
    """The first waits for the restart command of the first worker, which then fails; nothing was restarted."""
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    script = tmp_path / "restart"
    script.write_text(f"#!/bin/sh\ntouch {begun}\nwhile [ ! -e {go_on} ]; do sleep 0.1; done\nexit 1\n")
    script.chmod(0o755)
    driver = ["--driver", "command", "--set-config-command", "true", "--restart-command", f"{script} {{url}}"]
    words = ["upgrade", "apply", "--to", "preparing", *driver, "--yes", *on_pair(), "-b", pair.bootstrap_servers]
    first = Child(words, tmp_path)
    try:
        wait_until(begun.exists, what="the restart command of the first")
        beside = [invoke(*words), invoke(*words, "--resume")]
    finally:
        go_on.touch()
        done = first.wait()
    for each in beside:
        assert each.exit_code == REFUSED, each.stderr
        assert f"another eosctl is at work on the upgrade of group {PAIR} (process {first.pid}, since" in each.stderr
    assert done.exit_code == PARTIAL, done.stderr
    assert invoke("upgrade", "verify", "--to", "enabled", *on_pair(), "-b", pair.bootstrap_servers).exit_code == OK
