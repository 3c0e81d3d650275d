"""The command line's contract: every leaf on a real stack, and what bad input is answered with.

The key sets are literal on purpose: fields may be added to a shape, never renamed or removed.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from eosctl.sandbox.stack import Stack
from eosctl.sandbox.zombie import Zombie
from tests.conftest import Invoke, Outcome
from tests.sandbox_fixtures import FileSource, wait_until

STATUS_OF_EXIT = {0: "ok", 3: "findings", 6: "refused", 7: "partial"}  # any other code: error
ENVELOPE = {"kind", "version", "status", "exit_code", "target", "data", "errors"}
PARTITION = {"topic", "partition"}
CELL = {"topic", "partition", "offset", "timestamp_ms", "value"}
FENCE = {
    "": {"transactional_id", "coordinator", "before", "after", "outcome", "error"},
    "before": {"state", "producer_id", "producer_epoch", "transaction_timeout_ms", "age_ms"},
}
TXN = {
    "": {
        *("transactional_id", "state", "producer_id", "producer_epoch", "coordinator", "transaction_timeout_ms"),
        *("started_ms", "age_ms", "partitions", "owner"),
    },
    "owner": {"kind", "connector", "task"},
}
PRODUCER = {"": {"topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch", "start_offset"}}
WORKER = {
    "": {"url", "member_id", "leader", "version", "health", "config_offset", "assigned", "mode", "evidence"},
    "assigned": {"connectors", "tasks"},
}
OFFSET = {
    "": {"connector", "source_partition", "key", "stores", "effective", "flags"},
    "stores": {"global", "dedicated"},
    "stores.global": CELL,
    "effective": {"documented", "runtime"},
}
OFFSET_WRITE = {
    "": {"key", "connector", "source_partition", "action", "reason", "before", "after", "target"},
    "target": PARTITION,
}
TASK_COUNT = {
    "": {
        *("connector", "recorded", "record_offset", "newest_commit_offset", "task_count", "pending_fencing"),
        *("would_fence", "alive_ids", "findings"),
    }
}
RECORD_LINE = {"topic", "partition", "offset", "timestamp_ms", "key", "value"}
REPLAYED = {
    *("config", "target_state", "task_count", "task_ids", "inconsistent", "pending_fencing", "task_count_record"),
    "task_config_generation",
}


@dataclass(frozen=True, slots=True)
class Good:
    """A command line, the kind it answers with, and the keys of its rows (by dotted path; none: no rows asked for)."""

    line: str
    kind: str
    keys: dict[str, set[str]] | None = None
    exit_code: int = 0
    knows_cluster: bool = True


# in this order: the later ones need what the earlier ones made
GOOD = [
    Good("workers list", "workers-list", WORKER),
    Good("workers probe", "workers-probe", WORKER),
    Good("offsets list", "offsets-list", OFFSET),
    Good("offsets get --connector {name}", "offsets-get", OFFSET),
    Good(
        "offsets merge --connector {name} --into dedicated --dedicated-topic {own} --dry-run",
        "offsets-merge-plan",
        OFFSET_WRITE,
    ),
    Good(
        "offsets merge --connector {name} --into dedicated --dedicated-topic {own} --yes",
        "offsets-merge-result",
        OFFSET_WRITE,
    ),
    Good(
        "offsets diff --connector {name} --dedicated-topic {own}",
        "offsets-diff",
        {"": {"connector", "source_partition", "key", "status"}},
    ),
    Good("offsets restore {backup} --dry-run", "offsets-restore-plan", OFFSET_WRITE),
    Good("offsets restore {backup} --yes", "offsets-restore-result", OFFSET_WRITE),
    Good("offsets export --store global {export}", "offsets-export"),
    Good("task-counts list", "task-counts-list", TASK_COUNT),
    Good("task-counts show {name}", "task-counts-show", TASK_COUNT),
    Good("task-counts replay --topic", "task-counts-replay"),
    Good("task-counts replay {export}", "task-counts-replay", knows_cluster=False),
    Good("upgrade plan --to enabled", "upgrade-plan"),
    Good("fence {id} --dry-run", "fence-plan", FENCE),
    Good("fence --connector {name} --yes", "fence-result", FENCE | {"after": {"producer_id", "producer_epoch"}}),
    Good("txn list", "txn-list", TXN),
    Good("txn describe {id}", "txn-describe", TXN),
    Good("txn coordinator {id}", "txn-coordinator", {"": {"transactional_id", "hash", "partition", "coordinator"}}),
    Good("txn log {id}", "txn-log", {"": {"transactional_id", "state", "producer_id", "producer_epoch"}}),
    Good("txn producers --topic {topic}", "txn-producers", PRODUCER),
    Good("txn hanging --topic {topic}", "txn-hanging"),
    Good("completion bash", "completion", knows_cluster=False),
    Good("sandbox status --name none", "sandbox-status", knows_cluster=False),
    Good("sandbox down --name none", "sandbox-down", knows_cluster=False),
]
# run by tests of their own: here (Spark, abort, validate), and in tests/sandbox and tests/commands
ELSEWHERE = {"offsets migrate", "offsets verify", "offsets import", "offsets lint", "txn abort", "task-counts validate"}
WITH_A_SANDBOX = {"demo", "sandbox up", "sandbox logs"}


def _leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _leaves(found, (*path, name))


def test_every_leaf_is_in_this_contract() -> None:
    leaves = set(_leaves(importlib.import_module("eosctl.commands.root").root))
    listed = {leaf for leaf in leaves if any(f"{good.line} ".startswith(f"{leaf} ") for good in GOOD)}
    assert leaves - listed - ELSEWHERE - WITH_A_SANDBOX == set()
    assert len(listed) >= 20


def _document(outcome: Outcome, kind: str, exit_code: int = 0) -> Any:
    """The one document on stdout, checked as an envelope."""
    document = json.loads(outcome.stdout)  # a second document would be `Extra data`
    assert outcome.exit_code == exit_code, outcome.stderr or outcome.stdout
    assert set(document) == ENVELOPE
    assert (document["kind"], document["version"], document["exit_code"]) == (kind, 1, exit_code)
    assert document["status"] == STATUS_OF_EXIT.get(exit_code, "error")
    assert isinstance(document["target"], dict)
    assert isinstance(document["data"]["rows"], list)
    assert isinstance(document["data"]["summary"], dict)
    assert all({"code", "message", "hint"} <= set(error) for error in document["errors"])
    assert "Traceback" not in outcome.stderr
    assert not re.search(r"^\s*[{\[]|\"kind\":", outcome.stderr, re.MULTILINE), outcome.stderr
    return document


def _member(row: Any, path: str) -> Any:
    for step in filter(None, path.split(".")):
        row = row[step]
    return row


@pytest.fixture
def stopped(file_source: FileSource) -> FileSource:
    """A connector that has committed an offset and is STOPPED."""
    file_source.put()
    file_source.append("one", "two")
    file_source.wait_running()
    file_source.wait_position(8)
    file_source.stop_and_wait()
    return file_source


@pytest.mark.live
def test_every_leaf_answers_with_its_kind_and_shape(
    invoke: Invoke, target_flags: list[str], stopped: FileSource, tmp_path: Path
) -> None:
    words = {
        "name": stopped.name,
        "id": f"connect-eos-{stopped.name}-0",
        "topic": stopped.topic,
        "own": "offsets-{connector}",
        "export": str(tmp_path / "export.ndjson"),
    }
    cluster_id = None
    for good in GOOD:
        outcome = invoke(*(word.format(**words) for word in good.line.split()), *target_flags, "-o", "json")
        document = _document(outcome, good.kind, good.exit_code)
        cluster_id = cluster_id or document["target"]["kafka_cluster_id"]
        if good.knows_cluster:
            assert document["target"]["kafka_cluster_id"] == cluster_id, good.line
        rows = document["data"]["rows"]
        assert rows or good.keys is None, good.line
        own = [row for row in rows if row.get("connector", stopped.name) == stopped.name]
        for path, keys in (good.keys or {}).items():
            assert keys <= set(_member(own[0], path)), (good.line, path)
        if good.kind == "offsets-merge-result":
            words["backup"] = document["data"]["backup"]
            assert document["data"]["undo"] == f"eosctl offsets restore {words['backup']}"
            assert set(document["data"]["summary"]["counts"]) == {"write", "delete", "keep", "conflict"}
    assert cluster_id
    for line in Path(words["export"]).read_text(encoding="utf-8").splitlines():
        assert set(json.loads(line)) - {"headers"} == RECORD_LINE


@pytest.mark.live
def test_shapes_beside_rows(invoke: Invoke, target_flags: list[str], stopped: FileSource) -> None:
    replay = _document(invoke("task-counts", "replay", "--topic", *target_flags, "-o", "json"), "task-counts-replay")
    state = replay["data"]["state"]
    assert {"offset", "connectors", "ignored"} <= set(state)
    assert set(state["connectors"][stopped.name]) >= REPLAYED
    upgrade = _document(invoke("upgrade", "plan", "--to", "disabled", *target_flags, "-o", "json"), "upgrade-plan")
    assert [set(each) >= {"mode", "steps"} for each in upgrade["data"]["passes"]] == [True, True]
    assert set(upgrade["data"]["passes"][0]["steps"][0]) >= {"worker", "actions", "gates"}
    assert all(set(gate) >= {"id", "status", "evidence", "fix"} for gate in upgrade["data"]["gates"])
    outcome = invoke("task-counts", "validate", *target_flags, "-o", "json")
    found = _document(outcome, "task-counts-validate", outcome.exit_code)  # other tests' connectors have findings
    assert outcome.exit_code in (0, 3)
    assert set(found["data"]["rows"][0]) >= TASK_COUNT[""]


@pytest.mark.live
def test_abort_refuses_what_its_coordinator_knows(
    invoke: Invoke, target_flags: list[str], stack: Stack, stopped: FileSource, unique: str
) -> None:
    start = ["txn", "abort", "--topic", stopped.topic, "--partition", "0", *target_flags, "-o", "json"]
    with Zombie(stack.bootstrap_servers, f"zombie-{unique}", topic=stopped.topic, record=b"x"):

        def open_transaction() -> Any:
            found = invoke("txn", "producers", "--topic", stopped.topic, *target_flags, "-o", "json").json()
            return [row for row in found["data"]["rows"] if row["start_offset"] is not None]

        [producer] = wait_until(open_transaction, what="the zombie's transaction")
        start += ["--start-offset", str(producer["start_offset"])]
        _document(invoke(*start, "--yes"), "error", 6)
        _document(invoke(*start, "--force", "--dry-run"), "txn-abort-plan")
        _document(invoke(*start, "--force", "--yes"), "txn-abort-result")


def _eosctl(*args: str, state: Path) -> Outcome:
    """A process of its own, for what brings a JVM along."""
    environ = {**os.environ, "XDG_STATE_HOME": str(state)}
    done = subprocess.run(
        [sys.executable, "-m", "eosctl", *args], env=environ, capture_output=True, text=True, timeout=180, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.mark.live
@pytest.mark.spark
def test_migrate_and_verify(target_flags: list[str], stopped: FileSource, tmp_path: Path) -> None:
    plan_file = str(tmp_path / "plan.json")
    which = ["--connector", stopped.name, "--dedicated-topic", "moved-{connector}", "--master", "local[1]"]
    planned = _eosctl(
        "offsets", "migrate", *which, "--plan-out", plan_file, *target_flags, "-o", "json", state=tmp_path
    )
    document = _document(planned, "offsets-migrate-plan")
    assert document["data"]["plan_file"] == plan_file
    done = _eosctl("offsets", "migrate", "--plan", plan_file, "--yes", *target_flags, "-o", "json", state=tmp_path)
    document = _document(done, "offsets-migrate-result")
    assert {"backup", "undo"} <= set(document["data"])
    for path, keys in OFFSET_WRITE.items():
        assert keys <= set(_member(document["data"]["rows"][0], path))
    verified = _eosctl("offsets", "verify", plan_file, *target_flags, "-o", "json", state=tmp_path)
    assert _document(verified, "offsets-verify")["target"]["kafka_cluster_id"]


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
    "txn hanging": 2,
    "upgrade plan": 2,
    "upgrade plan --to sideways": 2,
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
    "offsets export --store global",
    "task-counts list",
    "task-counts show c",
    "task-counts validate",
    "task-counts replay --topic",
    "upgrade plan --to enabled",
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
        document = _document(invoke("-o", "json", *NOWHERE, *words), "error", exit_code)
        assert document["errors"]


@pytest.mark.live  # no stack, but librdkafka takes three seconds to say that nobody is there
@pytest.mark.parametrize("line", CLOSED_PORT)
def test_a_closed_port_is_unreachable(invoke: Invoke, line: str) -> None:
    """Commands over our own connections had no hint here."""
    outcome = invoke("-o", "json", *NOWHERE, *line.split())
    document = _document(outcome, "error", 4)
    assert "127.0.0.1:1" in document["errors"][0]["message"]
    assert "--bootstrap-server" in document["errors"][0]["hint"]
    _assert_short_and_clear(Outcome(4, "", outcome.stderr))


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
    [warning] = _document(listed, "offsets-list")["errors"]
    assert (warning["severity"], url in warning["message"]) == ("warning", True)
    planned = invoke("upgrade", "plan", "--to", "enabled", *flags, "-o", "json")
    gates = {gate["id"]: gate["status"] for gate in _document(planned, "upgrade-plan", 3)["data"]["gates"]}
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
    """One line and 130, at once."""
    command = [sys.executable, "-m", "eosctl", *line.split(), "-b", f"127.0.0.1:{silent_port}", "-g", "g"]
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(_is_connected(process.pid), what=f"{line} to connect", timeout_s=20)
        started_s = time.monotonic()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=15)
    assert (process.returncode, stdout, stderr.strip()) == (130, "", "error: interrupted")
    assert time.monotonic() - started_s < 5


def _is_connected(pid: int) -> Callable[[], bool]:
    """Whether the process holds a socket."""

    def check() -> bool:
        links = Path(f"/proc/{pid}/fd")
        try:
            return any(os.readlink(link).startswith("socket:") for link in links.iterdir())
        except OSError:
            return False  # a descriptor was closed while we looked

    return check
