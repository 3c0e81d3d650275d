"""Every option that sets a check aside is recorded as one, and named by the one table."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click

from eosctl.core.allowances import Waiver
from tests.command_tree import leaves
from tests.source_trees import nodes_of
from tests.test_layers import ROOT

# options of writing commands that set no check aside: they say what to do, or how
HARMLESS = {
    *(
        "all_connectors",
        "as_decided",
        "back",
        "delete",
        "dry_run",
        "every",
        "everything",
        "failed",
        "hanging",
        "keep",
        "keep_going",
        "keep_partitions",
        "old_brokers",
        "prefixed",
        "resume",
    ),
    *("no_write", "print_patch", "prune", "rewrite", "stopped", "strict", "sudo", "with_secrets", "yes"),
}


def _writing_options() -> list[tuple[str, click.Option]]:
    return [
        (command, param)
        for command, found in leaves().items()
        if any("--yes" in option.opts for option in found.params)
        for param in found.params
        if isinstance(param, click.Option) and param.expose_value
    ]


def test_every_option_that_sets_a_check_aside_is_recorded_as_one() -> None:
    found = _writing_options()
    names = {
        (command, str(param.name))
        for command, param in found
        if param.is_flag or str(param.name).startswith(("accept", "allow", "force", "ignore", "skip"))
    }
    known = {waiver.option for waiver in Waiver}
    assert len({command for command, _name in names}) >= 10
    assert sorted((command, name) for command, name in names if name not in known | HARMLESS) == []
    assert known <= {str(param.name) for _command, param in found}, "a waiver that no command has any more"


def test_a_waiver_means_the_same_wherever_it_is_an_option() -> None:
    """Three commands used to declare --workers-down and --force-running, each with its own words."""
    declared = {str(waiver): waiver.help for waiver in Waiver}
    there = {(flag, param.help) for _command, param in _writing_options() for flag in param.opts if flag in declared}
    assert there == set(declared.items())


def test_the_library_names_waivers_by_the_one_table() -> None:
    """A hint that spells a flag by itself is left behind when the flag gets another name."""
    spelled = re.compile(f"(?<![\\w-])({'|'.join(map(str, Waiver))})(?![\\w-])")
    files = list((ROOT / "eosctl").rglob("*.py"))
    assert len(files) > 200
    found = [
        f"{path.name}:{node.lineno} {node.value!r}"
        for path in files
        for node in _strings_of(path)
        if spelled.search(str(node.value)) and path.name != "allowances.py"
        if node.value != "--force"  # kafka-acls.sh has one of its own
    ]
    assert found == []


def _strings_of(path: Path) -> Iterator[ast.Constant]:
    """The texts in a file that are no docstrings."""
    nodes = nodes_of(path)
    documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node
