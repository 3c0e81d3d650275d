"""The examples in the help: each one parses, and on a real stack each that can be run there does what it says.

What writes is run with --dry-run; names and addresses are replaced by those of the stack.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow as pa
import pytest

from eosctl.core.wording import rfc3339
from eosctl.deadline import Clock
from eosctl.engine.backups.file import BACKUP
from eosctl.sandbox.stack import Stack
from eosctl.state.backups import write_columns
from tests.command_tree import leaves
from tests.conftest import Invoke
from tests.sandbox_fixtures import GROUP, FileSource, wait_until

FILES = ("worker.properties", "w1.properties", "w2.properties", "admin.properties", "offsets.ndjson", "plan.json")
# leaf -> why its example is not run here
NOT_RUN = {
    "acls apply": "needs a cluster with users: tests of the secured stack",
    "acls check": "needs a cluster with users: tests of the secured stack",
    "connectors create": "needs offsets of the connector: tests/connectors/test_create_live.py",
    "connectors diff": "needs a file of the connector: tests/offsets/configs",
    "connectors move": "needs two groups: tests/move/live",
    "demo": "tests/sandbox runs it",
    "sandbox up": "tests/sandbox runs it",
    "sandbox logs": "tests/sandbox runs it",
    "sandbox down": "tests/sandbox runs it",
    "offsets migrate": "Spark: tests/test_contract_cli.py",
    "offsets verify": "Spark: tests/test_contract_cli.py",
    "offsets restore": "needs a backup: tests/test_contract_cli.py",
    "upgrade apply": "needs workers that systemd runs",
    "watch": "goes on until it is ended: tests/watch runs it",
}
# what a healthy connector on a stack that other tests use too can be answered with
CHECKS = {0, 3, 7}
EXIT_CODES = {
    "audit": CHECKS,
    "connectors check": CHECKS,
    "doctor": CHECKS,
    "offsets diff": CHECKS,
    "metrics": CHECKS,
    "offsets lint": CHECKS,
    "rescue": {6},
    "task-counts validate": CHECKS,
    "txn abort": {1},
    "txn complete": {1},
    "txn hanging": CHECKS,
    "upgrade plan": CHECKS,
    "upgrade verify": CHECKS,
}

NOTHING_TO_DO = "txn abort --hanging"
"""Where nothing hangs, there is nothing to abort: exit 0, other than for a transaction that is named."""


def _examples(leaf: str, command: click.Command) -> Iterator[list[str]]:
    """The words behind `eosctl LEAF` of each example of this leaf, as its help prints it; redirections are the shell's.

    Long examples used to be broken over lines, at hyphens too (`-g connect-` and `cluster`), and could not be pasted.
    """
    help_text = command.get_help(click.Context(command, info_name=leaf, terminal_width=60))
    text = help_text.partition("Example")[2].replace("\\\n", " ")
    for line in re.findall(r"^ +eosctl (.*)", text, re.MULTILINE):
        words = shlex.split(line.partition(" > ")[0])
        if words[: len(leaf.split())] == leaf.split():
            yield words[len(leaf.split()) :]


EXAMPLES = [
    pytest.param(leaf, command, words, id=shlex.join([*leaf.split(), *words]))
    for leaf, command in leaves().items()
    for words in _examples(leaf, command)
]


def test_every_leaf_has_an_example_that_was_found() -> None:
    assert {str(param.values[0]) for param in EXAMPLES} == set(leaves())
    assert set(NOT_RUN) | set(EXIT_CODES) <= set(leaves())


@pytest.mark.parametrize(("leaf", "command", "words"), EXAMPLES)
def test_examples_parse(
    leaf: str, command: click.Command, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (*FILES, "connect-configs.ndjson"):
        Path(name).touch()
    with command.make_context(leaf, list(words)) as context:
        assert context.params is not None


@pytest.mark.live
def test_examples_run(
    invoke: Invoke, stack: Stack, file_source: FileSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _make_files(invoke, stack)
    _make_stopped(file_source)
    for param in sorted(EXAMPLES, key=lambda param: str(param.values[0]).startswith("profile ")):  # `use` comes last
        leaf, command, words = param.values
        assert isinstance(leaf, str)
        assert isinstance(command, click.Command)
        assert isinstance(words, list)
        if leaf in NOT_RUN or "--every" in words:  # that one goes on until it is ended
            continue
        line = [*leaf.split(), *_on_the_stack(words, stack, file_source)]
        writes = any("--dry-run" in option.opts for option in command.params) and "--dry-run" not in line
        expected = {0} if shlex.join(line).startswith(NOTHING_TO_DO) else EXIT_CODES.get(leaf, {0})
        _run(invoke, [*line, *["--dry-run"] * writes], expected)


def _run(invoke: Invoke, line: list[str], expected: set[int]) -> None:
    """Until it ends as it should: right after other tests the group may still rebalance."""

    def right() -> bool:
        outcome = invoke(*line)
        print(outcome.exit_code, shlex.join(line), outcome.stderr)  # pytest shows it where the test fails
        assert "Traceback" not in outcome.stderr
        return outcome.exit_code in expected

    wait_until(right, what=f"{shlex.join(line)} to exit with one of {expected}")


def _make_files(invoke: Invoke, stack: Stack) -> None:
    """What the examples read, below the working directory, and a profile called prod."""
    reach = ["-b", stack.bootstrap_servers]
    topics = stack.state.topics[GROUP]
    settings = {
        "bootstrap.servers": stack.bootstrap_servers,
        "group.id": GROUP,
        "config.storage.topic": topics["config"],
        "offset.storage.topic": topics["offset"],
        "status.storage.topic": topics["status"],
        "exactly.once.source.support": "enabled",
    }
    for name in FILES[:3]:
        Path(name).write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
    Path("admin.properties").write_text("security.protocol=PLAINTEXT\n", encoding="utf-8")
    rehearsed = {"connector.class": "FileStreamSource", "file": "orders.txt", "topic": "orders"}
    Path("orders.json").write_text(json.dumps({"name": "orders", "config": rehearsed}), encoding="utf-8")
    Path("plugins").mkdir()
    kept = pa.Table.from_pylist([], BACKUP)
    write_columns(Path("backup.parquet"), [kept], cluster_id="of-a-migration")
    exported = invoke("offsets", "export", "--store", topics["config"], "connect-configs.ndjson", *reach)
    assert exported.exit_code == 0, exported.stderr
    profile = [f"bootstrap_server={stack.bootstrap_servers}", f"group_id={GROUP}"]
    made = invoke("profile", "set", "prod", *profile)
    assert made.exit_code == 0, made.stderr


def _make_stopped(source: FileSource) -> None:
    """A connector with an offsets topic of its own, STOPPED after it has committed an offset."""
    source.put(**{"offsets.storage.topic": f"own-{source.name}"})
    source.append("one", "two")
    source.wait_running()
    source.wait_position(8)
    source.stop_and_wait()


def _on_the_stack(words: list[str], stack: Stack, source: FileSource) -> list[str]:
    """`words` with the stack's names and addresses in place of the example's."""
    names = {
        "kafka:9092": stack.bootstrap_servers,
        "connect-cluster": GROUP,
        "connect": GROUP,
        "orders-source": source.name,
        "orders": source.name,
        "c": source.name,
        "orders-offsets": f"other-{source.name}",
        "connect-cluster-orders-source-0": f"{GROUP}-{source.name}-0",
        "connect-cluster-connect": f"connect-cluster-{GROUP}",
        "/etc/kafka/connect-distributed.properties": "worker.properties",
        "/opt/connect/plugins": "plugins",
        "7": "4",  # the last partition of the sandbox's offsets topic
        "2026-11-21T08:00:00Z": rfc3339(Clock().now_ms()) or "",
    }
    worker = next(node for node in stack.state.of_kind("worker") if node.group_id == GROUP)
    urls = {True: str(worker.metrics_url), False: worker.address}
    replaced = [urls[":9404/" in word] if word.startswith("http") else names.get(word, word) for word in words]
    return [re.sub(r'\{"filename":".*?"\}', f'{{"filename":"{source.path}"}}', word) for word in replaced]
