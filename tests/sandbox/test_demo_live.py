"""`eosctl demo`, the first command of the README, as a user runs it: to its end, and with a Ctrl-C in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from eosctl.demo.answers import WIDTH
from eosctl.demo.scenes import SCENES
from eosctl.sandbox.servers import process as state
from eosctl.upgrade.gates import GATE_IDS
from tests.sandbox_fixtures import PATIENCE_S, wait_until

pytestmark = pytest.mark.live

COMMANDS = (
    "offsets list", "offsets switch --connector orders", "offsets switch --connector payments",
    "connectors stop orders", "txn describe connect-eos-orders-0", "fence connect-eos-orders-0",
    "connectors resume orders", "upgrade plan",
    "audit --connector orders", "audit --connector payments", "audit --connector clicks",
)  # fmt: skip


class Demo:
    """One run of the command in a process group and a state directory of its own."""

    def __init__(self, directory: Path, *words: str) -> None:
        self.home, self.out, self.err = directory / "state", directory / "out", directory / "err"
        environ = {**os.environ, "XDG_STATE_HOME": str(self.home), "XDG_CONFIG_HOME": str(directory / "config")}
        with self.out.open("wb") as stdout, self.err.open("wb") as stderr:
            command = [sys.executable, "-m", "eosctl", "demo", *words]
            self.process = subprocess.Popen(
                command, env=environ, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
            )
        self.sandbox = self.home / "eosctl" / "sandbox" / f"demo-{self.process.pid}"

    def running(self) -> set[int]:
        """Every process with this run's state directory on its command line or in its environment."""
        return {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and self._is_ours(entry)}

    def _is_ours(self, entry: Path) -> bool:
        try:
            said = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:  # it has just ended
            return False
        return os.fsencode(self.home) in said

    def nodes(self) -> dict[int, str]:
        """pid -> kind of the processes that its sandbox has written down."""
        known = state.load(self.sandbox)
        return {} if known is None else {node.pid: node.kind for node in known.nodes}

    def end(self) -> None:
        """Leaves nothing behind, whatever went wrong."""
        for pid in self.running():
            os.kill(pid, signal.SIGKILL)
        self.process.wait()


def test_the_walk_proves_what_it_says_and_leaves_nothing_running(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "-o", "json")
    try:
        exit_code = demo.process.wait(550)
        wait_until(lambda: not demo.running(), what="the last process to end")
        told = demo.err.read_text()
    finally:
        demo.end()
    assert exit_code == 0, told[-3000:]
    assert not demo.sandbox.exists()
    data = json.loads(demo.out.read_text())["data"]
    rows = data["rows"]
    assert [row["step"] for row in rows if "verdict" in row["proved"]] == ["audit"] * 3
    assert {row["step"] for row in rows} == {name for name, *_scene in SCENES}
    assert {row["ok"] for row in rows} == {True}
    assert (data["summary"]["proved"], data["summary"]["wrong"]) == (len(rows), 0)
    assert [number for number in range(1, 7) if f"\n{number} of 6  " not in told] == []
    assert [command for command in COMMANDS if f"\n   $ eosctl {command}" not in told] == []
    assert f"all {len(GATE_IDS)} pass" in told
    assert "curl" not in told
    assert [line for line in told.splitlines() if len(line) > WIDTH or "\x1b" in line] == []


def test_ctrl_c_ends_it_and_leaves_nothing_running(tmp_path: Path) -> None:
    demo = Demo(tmp_path)
    try:
        wait_until(lambda: "worker" in demo.nodes().values(), what="the broker, and a worker that starts")
        nodes = set(demo.nodes())
        assert nodes | {demo.process.pid} <= demo.running(), "else an empty set below would prove nothing"
        os.killpg(demo.process.pid, signal.SIGINT)
        exit_code = demo.process.wait(2 * PATIENCE_S)
        wait_until(lambda: not demo.running(), what="the last process to end")
    finally:
        demo.end()
    assert exit_code == 130, demo.err.read_text()
    assert "Traceback" not in demo.err.read_text()
    assert demo.out.read_text() == ""
