"""One walk on three real workers while a source is fed all the time: disabled -> preparing -> enabled, and back.

On the way eosctl and the leader are killed, both with -9. The way back goes through the systemd driver, whose
`systemctl` is a script that restarts a worker of the sandbox.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, NotFoundError
from eosctl.sandbox.servers.process import Node, signal_group
from eosctl.sandbox.settings import GroupSpec, StackSpec
from eosctl.sandbox.stack import Stack
from eosctl.target import Target
from tests.audit.proven import assert_exactly_once
from tests.conftest import Invoke, Outcome
from tests.envelope import envelope_of
from tests.sandbox_fixtures import PATIENCE_S, group_flags, rest, wait_until

pytestmark = pytest.mark.live

GROUP, TOPIC, NAME = "rolling", "lines", "walk"
Eosctl = Callable[..., Outcome]
SETTLE = ["--settle-timeout", "180s"]


@pytest.fixture
def rolling(tmp_path: Path) -> Iterator[Stack]:
    """A broker and three workers, all disabled, where `eosctl sandbox` would have put them."""
    group = GroupSpec(GROUP, (Mode.DISABLED,) * 3)
    directory = tmp_path / "state" / "eosctl" / "sandbox" / NAME
    stack = Stack.up(StackSpec(groups=(group,)), directory, name=NAME, environ=os.environ)
    try:
        yield stack
    finally:
        found = Stack.find(directory)
        (found or stack).down()


def words_of(stack: Stack, *words: str) -> list[str]:
    where = ["-b", stack.bootstrap_servers, "-g", GROUP, "--config-topic", f"{GROUP}-configs"]
    leaf = words if words[0] == "doctor" else ("upgrade", *words)
    return [*leaf, *where, "--offset-topic", f"{GROUP}-offsets", "--timeout", "300s", "-o", "json"]


@pytest.fixture
def eosctl(rolling: Stack, invoke: Invoke) -> Eosctl:
    """`upgrade …` or `doctor` in this process, for to start another takes half a second of CPU."""
    return lambda *words: invoke(*words_of(rolling, *words))


def as_process(stack: Stack, tmp_path: Path, *words: str) -> tuple[list[str], dict[str, str]]:
    """The same as a process of its own, which can be killed, or finds other programs on its path."""
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    return [sys.executable, "-m", "eosctl", *words_of(stack, *words)], environ


class Feeder(threading.Thread):
    """Appends 0, 1, 2, … to a file, a line each, until the block that it is the context of ends."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.written, self._enough = path, -1, threading.Event()

    def run(self) -> None:
        while not self._enough.wait(0.05):
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{self.written + 1}\n")
            self.written += 1

    def __enter__(self) -> Feeder:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._enough.set()
        self.join()


def delivered(stack: Stack, tmp_path: Path) -> Counter[int]:
    """How often each line is in the topic, as a consumer with read_committed sees it."""
    client = ClientSettings(bootstrap_servers=(stack.bootstrap_servers,))
    app = App(target=Target(client=client), deadline=Deadline.after(PATIENCE_S), state_dir=tmp_path)
    with app.topics() as store:
        return Counter(int(record.value or b"") for record in store.read(TOPIC).records)


def caught_up(stack: Stack, tmp_path: Path, line: int) -> Counter[int]:
    """What is delivered when `line` is."""

    def there() -> Any:
        try:
            found = delivered(stack, tmp_path)
        except NotFoundError:  # the topic is made with its first record
            return None
        return found if line in found else None

    return wait_until(there, what=f"line {line} in the topic", timeout_s=180)  # type: ignore[no-any-return]


def wait_for_leader(eosctl: Eosctl) -> str:
    """The URL of the worker that leads, once the group is stable."""

    def leader() -> str | None:
        rows = eosctl("status").json()["data"]["rows"]
        return next((str(row["worker"]) for row in rows if row["leader"]), None)

    return str(wait_until(leader, what="a leader", timeout_s=180))


def wait_for_worker(eosctl: Eosctl, url: str) -> None:
    """Until the group has it again, healthy."""

    def is_there() -> bool:
        rows = eosctl("status").json()["data"]["rows"]
        return any((row["worker"], row["health"]) == (url, "healthy") for row in rows)

    wait_until(is_there, what=f"{url} in the group", timeout_s=300)


def kill_eosctl_and_the_leader(stack: Stack, tmp_path: Path, eosctl: Eosctl, plan: Path) -> Node:
    """Begins the roll and kills both when the second worker is being restarted; returns the leader's node."""
    leader = wait_for_leader(eosctl)
    line, environ = as_process(
        stack, tmp_path, "apply", str(plan), "--driver", "sandbox", "--sandbox", NAME, "--yes", *SETTLE
    )
    log = tmp_path / "apply.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(line, env=environ, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True)
    try:
        wait_until(
            lambda: log.read_text().count("restarting as preparing") >= 2, what="a second restart", timeout_s=180
        )
    finally:
        process.kill()
        process.wait()
    found = Stack.find(stack.directory)
    assert found is not None
    node = next(each for each in found.state.of_kind("worker") if each.address == leader)
    signal_group(node.process, signal.SIGKILL)
    wait_until(lambda: not node.process.alive(), what="the leader to be gone", timeout_s=180)
    return node


def take_one_away(stack: Stack, eosctl: Eosctl) -> Path:
    """Stops one worker, and waits until the other two have its work; returns its file, which says enabled."""
    found = Stack.find(stack.directory)
    assert found is not None
    node = found.state.of_kind("worker")[0]
    found.stop_node(node.name)

    def two_are_left() -> bool:
        data = eosctl("plan", "--to", "disabled").json()["data"]
        modes = sorted(row["mode"] for row in data["rows"])
        healthy = next(gate["evidence"] for gate in data["gates"] if gate["id"] == "connectors_healthy")
        return modes == ["absent", "enabled", "enabled"] and "no reason to stay" not in healthy

    wait_until(two_are_left, what="two workers with healthy connectors", timeout_s=180)
    return Path(node.config)


def systemctl(stack: Stack, tmp_path: Path) -> Path:
    """A directory with a `systemctl` that restarts the worker whose port is the unit's instance."""
    script = tmp_path / "bin" / "systemctl"
    script.parent.mkdir()
    script.write_text(
        f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\nfrom eosctl.sandbox.stack import Stack\n"
        f"stack = Stack.find(Path({str(stack.directory)!r}))\n"
        "if sys.argv[1] == 'cat': sys.exit()\n"
        "assert sys.argv[1] == 'restart'\nport = sys.argv[2].removeprefix('connect@')\n"
        "stack.restart_node(next(n.name for n in stack.state.nodes if n.address.endswith(':' + port)))\n"
    )
    script.chmod(0o755)
    # every worker of this machine has its file where the template finds it by its port
    for node in stack.state.of_kind("worker"):
        (tmp_path / f"connect-{node.address.rpartition(':')[2]}.properties").symlink_to(node.config)
    return script.parent


def test_there_and_back_while_a_source_is_fed(rolling: Stack, eosctl: Eosctl, invoke: Invoke, tmp_path: Path) -> None:
    lines, plan = tmp_path / "lines.txt", tmp_path / "plan.json"
    lines.touch()
    text = "org.apache.kafka.connect.storage.StringConverter"
    config = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(lines), "topic": TOPIC}
    rest(f"{rolling.urls(GROUP)[0]}/connectors/c/config", "PUT", {**config, "value.converter": text})
    with Feeder(lines) as feeder:
        caught_up(rolling, tmp_path, 0)
        words = ["plan", "--to", "enabled", "--plan-out", str(plan)]
        wait_until(lambda: eosctl(*words).exit_code == 0, what="a plan", timeout_s=180)
        quiet = envelope_of(eosctl("doctor"), "doctor")["data"]["rows"]
        assert {row["check"] for row in quiet if row["severity"] == "warning"} <= {"offsets", "topics"}, quiet
        assert "exactly_once_not_used" in {row["code"] for row in quiet}

        node = kill_eosctl_and_the_leader(rolling, tmp_path, eosctl, plan)
        resume = ["apply", "--driver", "sandbox", "--sandbox", NAME, "--yes", "--resume", *SETTLE]
        refused = eosctl(*resume)
        assert refused.exit_code == 6, refused
        codes = {error["code"] for error in refused.json()["errors"]}
        assert codes & {"members_known", "group_stable"}, refused
        found = Stack.find(rolling.directory)
        assert found is not None
        with suppress(EosctlError):  # the worker that the killed eosctl was stopping may end while this one starts
            found.start_node(node.name)
        wait_for_worker(eosctl, node.address)
        wait_for_leader(eosctl)
        resumed = envelope_of(eosctl(*resume), "upgrade-apply-result")
        assert {row["outcome"] for row in resumed["data"]["rows"]} == {"done", "done_before"}
        envelope_of(eosctl("verify", "--to", "enabled"), "upgrade-verify")

        enabled_since = datetime.now(UTC).isoformat()
        first = feeder.written + 1
        wait_until(lambda: feeder.written > first + 20, what="more lines")
        last = feeder.written
        window = caught_up(rolling, tmp_path, last)
        assert [window[number] for number in range(first, last + 1)] == [1] * (last + 1 - first)
        flags = [*group_flags(rolling, GROUP), "--timeout", "300s"]
        assert_exactly_once(invoke, flags, "c", "--since", enabled_since)

        dead = take_one_away(rolling, eosctl)
        line, environ = as_process(
            rolling, tmp_path, "apply", "--to", "disabled", "--driver", "systemd", "--unit", "connect@{port}",
            "--properties-file", str(tmp_path / "connect-{port}.properties"), "--yes", *SETTLE,
        )  # fmt: skip
        environ["PATH"] = f"{systemctl(rolling, tmp_path)}{os.pathsep}{environ['PATH']}"
        back = subprocess.run(line, env=environ, capture_output=True, text=True, timeout=400)
        document = envelope_of(Outcome(back.returncode, back.stdout, back.stderr), "upgrade-apply-result")
        assert [row["mode"] for row in document["data"]["rows"]] == ["preparing"] * 2 + ["disabled"] * 3
        assert "exactly.once.source.support=disabled" in dead.read_text(), "it came back disabled"
        assert all(Path(row["backup"]).is_file() for row in document["data"]["rows"])
    found_at_last = caught_up(rolling, tmp_path, feeder.written)
    assert [number for number in range(feeder.written + 1) if not found_at_last[number]] == []
    verified = envelope_of(eosctl("verify", "--to", "enabled"), "upgrade-verify", 3)
    assert {row["code"] for row in verified["data"]["rows"]} == {"wrong_mode"}, "the one that was away is there again"
