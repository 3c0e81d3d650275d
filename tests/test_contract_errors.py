"""The command line's contract for bad input: the exit code, a few clear lines, no traceback, and nothing written."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke, Outcome
from tests.envelope import envelope_of
from tests.sandbox_fixtures import PATIENCE_S, FileSource, wait_until

NOWHERE = ["-b", "127.0.0.1:1", "-u", "http://127.0.0.1:1", "-g", "g", "--timeout", "4s"]
FILE, FOLDER = "{tmp}/missing", "{tmp}"
BAD_WITHOUT_KAFKA = {
    # a file that is not there, or a folder
    **{
        f"{words} {path}": 2
        for path in (FILE, FOLDER)
        for words in (
            *("offsets restore", "offsets migrate --yes --plan", "offsets verify", "task-counts replay"),
            *("fence --from-file", "workers list -w", "workers list --command-config", "workers list -p x --config"),
        )
    },
    # values that can't be
    "workers list --timeout soon": 2,
    "workers list --timeout 0": 2,
    "workers list -o csv": 2,
    "workers list --no-such-option": 2,
    "workers": 2,
    "no-such-command": 2,
    "fence": 2,
    "fence --match [": 2,
    "fence --connector c --tasks -1": 2,
    "fence --connector c --tasks many": 2,
    "offsets merge --connector c --into nowhere": 2,
    "offsets merge --into dedicated": 2,
    "offsets merge --connector c --into dedicated --prefer none": 2,
    "offsets get": 2,
    "offsets export": 2,
    "offsets migrate": 2,
    "offsets migrate --all --rename a": 2,
    "offsets migrate --all --conflict x": 2,
    "task-counts replay": 2,
    "txn list --state open": 2,
    "txn abort --topic t --partition -1": 2,
    "txn complete --topic t --partition 0 --start-offset 0": 2,
    "txn hanging --topic t --all": 2,
    "upgrade plan": 2,
    "upgrade plan --to sideways": 2,
    "upgrade verify": 2,
    "upgrade apply --to sideways": 2,
    "upgrade apply --to enabled --driver systemd": 2,
    "upgrade apply --to enabled --driver print --unit x": 2,
    "upgrade apply --to enabled --driver kubernetes --workload pod/x": 2,
    "upgrade apply --to enabled --driver command --restart-command x": 2,
    "upgrade apply --to enabled --driver print --resume --start-over": 2,
    "upgrade apply {tmp}/none.json --driver print": 2,
    "sandbox up --workers 9": 2,
    "sandbox up --name ../x": 2,
    "sandbox logs --name none": 1,
    "completion tcsh": 2,
}


CLOSED_PORT = [
    "workers list",
    "workers probe",
    "fence x --dry-run",
    "fence --connector c --dry-run",
    "txn list",
    "txn describe x",
    "txn coordinator x",
    "txn producers --topic t",
    "txn hanging --all",
    "txn log",
    "offsets list",
    "offsets get --connector c",
    "offsets diff --connector c",
    "offsets merge --connector c --into dedicated --yes",
    "offsets export --store global {tmp}/records.ndjson",
    "task-counts list",
    "task-counts show c",
    "task-counts validate",
    "task-counts replay --topic",
    "upgrade plan --to enabled",
    "upgrade status",
    "upgrade verify --to enabled",
    "upgrade apply --to enabled --driver print --yes",
]


def _assert_short_and_clear(outcome: Outcome) -> None:
    """A few lines on stderr: what is wrong, and what next (which usage errors may say in one)."""
    assert outcome.stdout == ""
    assert "Traceback" not in outcome.stderr
    assert re.search(r"^[Ee]rror: \S|^Usage: ", outcome.stderr, re.MULTILINE), outcome.stderr
    assert outcome.exit_code == 2 or re.search(r"^  \S", outcome.stderr, re.MULTILINE), f"no hint: {outcome.stderr}"
    assert len(outcome.stderr.splitlines()) <= 8 or "Usage: eosctl workers [" in outcome.stderr, outcome.stderr


@pytest.mark.parametrize(("line", "exit_code"), BAD_WITHOUT_KAFKA.items())
def test_bad_input(invoke: Invoke, tmp_path: Path, line: str, exit_code: int) -> None:
    words = [word.format(tmp=tmp_path) for word in line.split()]
    outcome = invoke(*NOWHERE, *words)
    assert outcome.exit_code == exit_code, outcome.stderr
    _assert_short_and_clear(outcome)
    if "-o" not in words:
        document = envelope_of(invoke("-o", "json", *NOWHERE, *words), "error", exit_code)
        assert document["errors"]


@pytest.mark.live  # no stack, but librdkafka takes three seconds to say that nobody is there
def test_a_closed_port_is_unreachable(tmp_path: Path) -> None:
    """Commands over our own connections had no hint here."""
    with ThreadPoolExecutor(max_workers=len(CLOSED_PORT)) as pool:
        outcomes = list(pool.map(lambda line: _run(line.format(tmp=tmp_path), tmp_path), CLOSED_PORT))
    for line, outcome in zip(CLOSED_PORT, outcomes, strict=True):
        [error, *_] = envelope_of(outcome, "error", 4)["errors"]
        assert "127.0.0.1:1" in error["message"], line
        assert "--bootstrap-server" in error["hint"], line
        _assert_short_and_clear(Outcome(4, "", outcome.stderr))


def _run(line: str, folder: Path) -> Outcome:
    """A process of its own: many of them wait at once."""
    command = [sys.executable, "-m", "eosctl", "-o", "json", *NOWHERE, "--timeout", "300s", *line.split()]
    environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "config")}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=400)
    return Outcome(done.returncode, done.stdout, done.stderr)


BAD_ON_A_STACK = {
    # things that do not exist
    "offsets list --connector nope": 1,
    "offsets list --offset-topic nope": 1,
    "offsets diff --connector nope": 1,
    "offsets merge --connector nope --into dedicated --yes": 1,
    "offsets export --store nope": 1,
    "task-counts list --config-topic nope": 1,
    "task-counts show nope": 1,
    "task-counts validate --config-topic nope": 1,
    "task-counts replay --topic --config-topic nope": 1,
    "fence --connector nope --dry-run": 1,
    "txn producers --topic nope": 1,
    "txn hanging --topic nope": 1,
    "txn abort --topic nope --partition 0 --start-offset 0": 1,
    "workers list -g nope": 1,
    "upgrade plan --to enabled -g nope": 1,
    # option values that only a broker, or the stores, can judge
    "txn list --match [": 2,
    "offsets get --connector {name} --partition {{": 2,
    'offsets get --connector {name} --partition {{"a":1}}': 1,
    "offsets diff --connector {name}": 2,
}


@pytest.mark.live
def test_bad_input_on_a_stack(invoke: Invoke, target_flags: list[str], stopped: FileSource) -> None:
    for line, exit_code in BAD_ON_A_STACK.items():
        outcome = invoke(*target_flags, *(word.format(name=stopped.name) for word in line.split()))
        assert outcome.exit_code == exit_code, (line, outcome.stderr)
        _assert_short_and_clear(outcome)


@pytest.mark.live
@pytest.mark.parametrize("what", ["closed port", "not a Connect worker"])
def test_a_wrong_rest_url(invoke: Invoke, stack: Stack, stopped: FileSource, what: str) -> None:
    """What needs the worker fails and names the URL; what needs only topics says what it could not learn."""
    url = "http://127.0.0.1:1" if what == "closed port" else f"http://{stack.bootstrap_servers}"
    flags = ["-b", stack.bootstrap_servers, "-g", "connect-eos", "-u", url]
    merge = [
        "offsets",
        "merge",
        "--connector",
        stopped.name,
        "--into",
        "dedicated",
        "--dedicated-topic",
        "w-{connector}",
    ]
    refused = invoke(*merge, "--yes", *flags)
    assert refused.exit_code == 4
    assert url in refused.stderr
    _assert_short_and_clear(refused)
    listed = invoke("offsets", "list", "--connector", stopped.name, *flags, "-o", "json")
    [warning] = envelope_of(listed, "offsets-list")["errors"]
    assert (warning["severity"], url in warning["message"]) == ("warning", True)
    planned = invoke("upgrade", "plan", "--to", "enabled", *flags, "-o", "json")
    gates = {gate["id"]: gate["status"] for gate in envelope_of(planned, "upgrade-plan", 3)["data"]["gates"]}
    assert gates["members_known"] == "fail"


WRITES = ["fence --connector {name}", "offsets merge --connector {name} --into dedicated --dedicated-topic {own}"]


@pytest.mark.live
@pytest.mark.parametrize("line", WRITES)
def test_a_write_needs_a_yes(
    invoke: Invoke, target_flags: list[str], stopped: FileSource, line: str, tmp_path: Path
) -> None:
    words = [word.format(name=stopped.name, own="own-{connector}") for word in line.split()]
    transactional_id = f"connect-eos-{stopped.name}-0"

    def state() -> Any:
        described = invoke("txn", "describe", transactional_id, *target_flags, "-o", "json").json()
        [row] = described["data"]["rows"]
        topic = invoke("offsets", "export", "--store", f"own-{stopped.name}", *target_flags)
        return row["producer_epoch"], topic.exit_code, topic.stdout

    before = state()
    for given in (
        {},
        {"can_ask": True, "input": "n\n"},
        {"can_ask": True, "input": "\n"},
        {"can_ask": True, "input": ""},
    ):
        outcome = invoke(*words, *target_flags, "-o", "json", **given)
        document = json.loads(outcome.stdout)
        assert (outcome.exit_code, document["status"], document["kind"]) == (6, "refused", "error"), given
        assert "nothing was written" in document["errors"][0]["message"]
    assert state() == before
    assert not (tmp_path / "state" / "eosctl" / "backups").exists()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        yield server.getsockname()[1]


@pytest.mark.parametrize("line", ["offsets list", "txn list", "workers list", "fence x --yes"])
def test_ctrl_c_while_a_broker_is_slow(silent_port: int, line: str, tmp_path: Path) -> None:
    """One line and 130, long before the time is up."""
    where = ["-b", f"127.0.0.1:{silent_port}", "-g", "g", "--timeout", "1h"]
    command = [sys.executable, "-m", "eosctl", *line.split(), *where]
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(_is_connected(process.pid), what=f"{line} to connect", timeout_s=PATIENCE_S)
        process.send_signal(signal.SIGINT)
        try:
            stdout, stderr = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert (process.returncode, stdout, stderr.strip()) == (130, "", "error: interrupted")


def _is_connected(pid: int) -> Callable[[], bool]:
    """Whether the process holds a socket."""

    def check() -> bool:
        links = Path(f"/proc/{pid}/fd")
        try:
            return any(os.readlink(link).startswith("socket:") for link in links.iterdir())
        except OSError:
            return False  # a descriptor was closed while we looked

    return check
