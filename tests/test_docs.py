"""README, DESIGN and the pages on versions and options say what is there; tests/docs_site looks at the rest."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from eosctl.connect.sender import SINCE
from eosctl.group.observation.rules import OLDEST_VERSION
from eosctl.sandbox.settings import supported_versions
from eosctl.wire.transaction_listing_messages import LIST_TRANSACTIONS
from eosctl.wire.transaction_messages import DESCRIBE_TRANSACTIONS
from tests.command_tree import leaves

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DESIGN = (ROOT / "DESIGN.md").read_text(encoding="utf-8")


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


def test_the_table_of_the_readme_has_every_command() -> None:
    """It said that these were all; six were missing."""
    table = README.split("\nAll commands;")[1].split("\n## ")[0]
    named = [f"{each} " for each in re.findall(r"`([a-z -]+)`", table)]
    assert [leaf for leaf in leaves() if not any(f"{leaf} ".startswith(each) for each in named)] == []


def test_global_options_of_the_page_exist() -> None:
    page = (ROOT / "docs" / "how-to" / "connect-to-a-cluster.md").read_text(encoding="utf-8")
    section = page.split("\n## ")[0]
    named = set(re.findall(r"`(--?[a-z][a-z-]*)", section))
    assert len(named) >= 8
    root = importlib.import_module("eosctl.commands.frame.root").root
    known = {name for param in root.params for name in param.opts}
    assert named <= known


def test_design_names_every_package() -> None:
    house = DESIGN.split("## The house")[1].split("\n## ")[0]
    packages = sorted(path.parent.name for path in (ROOT / "eosctl").glob("*/__init__.py"))
    assert len(packages) >= 8
    missing = [name for name in packages if not re.search(rf"^\s+{name}/ ", house, re.MULTILINE)]
    assert missing == []
    modules = [path.name for path in (ROOT / "eosctl").glob("*.py") if path.name != "__init__.py"]
    assert [name for name in modules if name not in house] == []
