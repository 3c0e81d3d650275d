"""README and DESIGN say what is there: options, command lines, the map of files."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from eosctl.connect.rest import SINCE
from eosctl.group.observation.rules import OLDEST_VERSION
from eosctl.sandbox.settings import supported_versions
from eosctl.wire.transaction_listing_messages import LIST_TRANSACTIONS
from eosctl.wire.transaction_messages import DESCRIBE_TRANSACTIONS
from tests.conftest import Invoke

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DESIGN = (ROOT / "DESIGN.md").read_text(encoding="utf-8")


def _command_lines() -> Iterator[str]:
    """What stands after `$ eosctl` or `$ python3 -m eosctl` in README's console blocks."""
    for block in re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL):
        yield from re.findall(r"^\$ (?:python3 -m )?eosctl (.+?)(?:;.*| > .*)?$", block, re.MULTILINE)


def _leaf(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that `words` name, and the words that are left."""
    command: click.Command = importlib.import_module("eosctl.commands.frame.root").root
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, words
        command, words = found, words[1:]
    return command, words


def test_readme_has_a_session() -> None:
    lines = list(_command_lines())
    assert {line.split()[0] for line in lines} >= {"demo", "sandbox", "offsets", "workers", "fence", "task-counts"}


@pytest.mark.parametrize("line", sorted(set(_command_lines())))
def test_command_lines_of_the_readme_parse(line: str) -> None:
    command, words = _leaf(shlex.split(line))
    command.make_context(str(command.name), words, resilient_parsing=False)


def test_commands_of_the_readmes_table_exist(invoke: Invoke) -> None:
    table = re.findall(r"^\| (`eosctl .*?) \|", README, re.MULTILINE)
    names = [name for cell in table for name in re.findall(r"`eosctl ([^`]+)`", cell)]
    assert len(names) >= len(importlib.import_module("eosctl.commands.frame.root").COMMANDS) - 1  # all but completion
    for name in names:
        assert invoke(*name.split(), "--help").exit_code == 0, name


@pytest.mark.parametrize(
    ("command", "version"),
    [
        ("fence", DESCRIBE_TRANSACTIONS.release_of(0)),
        ("upgrade", f"{OLDEST_VERSION[0]}.{OLDEST_VERSION[1]}"),
        ("offsets get --rest", SINCE["GET", "offsets"].split()[0]),
        ("fence --via connect", SINCE["PUT", "stop"].split()[0]),
        ("--via rest", SINCE["PATCH", "offsets"].split()[0]),
        ("txn list --open-longer-than", LIST_TRANSACTIONS.release_of(1)),
        ("txn list --match", LIST_TRANSACTIONS.release_of(2)),
    ],
)
def test_the_kafka_versions_of_the_readme_are_those_of_the_code(command: str, version: str) -> None:
    """tests/clusters/test_other_versions_live.py holds the code to real brokers and workers."""
    named = re.findall(r"^\| (\d\.\d) \| (.*?) \|", README, re.MULTILINE)
    assert [since for since, what in named if f"`{command}`" in what] == [version]
    section = README.split("## Which Kafka")[1].split("\n| from")[0]
    assert sorted(re.findall(r"\d+\.\d+\.\d+", section)) == sorted(supported_versions())


def test_global_options_of_the_readme_exist(invoke: Invoke) -> None:
    section = README.split("## Connecting to a cluster")[1].split("\n## ")[0]
    named = set(re.findall(r"`(--?[a-z][a-z-]*)", section))
    assert len(named) >= 8
    known = set(re.findall(r"(?<!\S)(--?[a-z][a-z-]*)", invoke("--help-all").stdout))
    assert named <= known


def test_design_names_every_package() -> None:
    house = DESIGN.split("## The house")[1].split("\n## ")[0]
    packages = sorted(path.parent.name for path in (ROOT / "eosctl").glob("*/__init__.py"))
    assert len(packages) >= 8
    missing = [name for name in packages if not re.search(rf"^\s+{name}/ ", house, re.MULTILINE)]
    assert missing == []
    modules = [path.name for path in (ROOT / "eosctl").glob("*.py") if path.name != "__init__.py"]
    assert [name for name in modules if name not in house] == []
