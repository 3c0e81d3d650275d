"""The root command: global options anywhere, help that teaches, usage errors in both formats."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.command_tree import leaves

Invoke = Any


ROOT = importlib.import_module("eosctl.commands.frame.root")


@pytest.mark.parametrize("leaf", leaves())
def test_every_leaf_has_help_with_an_example(leaf: str) -> None:
    text = CliRunner().invoke(ROOT.root, [*leaf.split(), "--help"], prog_name="eosctl").output
    assert f"eosctl {leaf}" in text
    assert "Example" in text, f"{leaf} --help has no example"


@pytest.mark.parametrize("name", sorted(ROOT.COMMANDS))
def test_the_table_says_what_the_command_says(name: str) -> None:
    command = ROOT.root.get_command(click.Context(ROOT.root), name)
    assert command.get_short_help_str(limit=200) == ROOT.COMMANDS[name][2]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ((), ["zombie", "epoch", "fenced", "transactional id", "task-count record"]),
        (("fence",), ["zombie", "epoch", "transactional id"]),
        (("offsets",), ["global", "dedicated", "documented", "runtime"]),
        (("task-counts",), ["fences", "zombies", "tasks-fencing-CONNECTOR"]),
        (("txn",), ["last stable offset (LSO)", "hanging", "epoch", "coordinator"]),
        (("upgrade",), ["two-step", "preparing", "enabled"]),
        (("workers",), ["disabled, preparing or enabled", "not_enabled"]),
    ],
)
def test_group_help_teaches(path: tuple[str, ...], words: list[str]) -> None:
    text = CliRunner().invoke(ROOT.root, [*path, "--help-all"], prog_name="eosctl").output
    assert [word for word in words if _without_breaks(word) not in _without_breaks(text)] == []


def test_groups_list_their_commands_in_whole_sentences() -> None:
    """`Fold config-topic records exactly as a worker does (Kafka 3.8...` was what one saw."""
    for leaf, command in leaves().items():
        *group, _name = leaf.split()
        if group:
            text = CliRunner().invoke(ROOT.root, [*group, "--help"], prog_name="eosctl").output
            assert _without_breaks(command.get_short_help_str(limit=200)) in _without_breaks(text), leaf


def _without_breaks(text: str) -> str:
    """Help is wrapped, at hyphens too."""
    return "".join(text.split())


@pytest.mark.parametrize("argv", [("-o", "json", "nosuch"), ("nosuch", "-o", "json"), ("nosuch", "--output=json")])
def test_usage_errors_are_a_document_too(invoke: Invoke, argv: tuple[str, ...]) -> None:
    outcome = invoke(*argv)
    assert outcome.exit_code == 2
    assert json.loads(outcome.stdout)["errors"][0]["code"] == "usage"
    assert "No such command 'nosuch'" in outcome.stderr


@pytest.mark.parametrize(
    "argv", [("fence", "a\udcff", "-y"), ("-o", "json", "fence", "--connector", "\udcc3"), ("\udcff",)]
)
def test_arguments_that_are_no_text_are_refused_before_anything_is_done(invoke: Invoke, argv: tuple[str, ...]) -> None:
    """They came as far as a request, the audit log or the terminal, and ended there as an unexpected error."""
    outcome = invoke(*argv)
    assert outcome.exit_code == 2
    assert "is not UTF-8: " in outcome.stderr
    assert "\\xff" in outcome.stderr or "\\xc3" in outcome.stderr


@pytest.mark.parametrize("argv", [(), ("offsets",)])
def test_no_arguments_at_all_is_a_usage_error(invoke: Invoke, argv: tuple[str, ...]) -> None:
    """`eosctl` alone used to end in the help as one line, its line breaks escaped."""
    outcome = invoke(*argv)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == invoke(*argv, "--help").stdout


def test_the_root_help_fits_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = CliRunner().invoke(ROOT.root, ["--help"], prog_name="eosctl").output.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_the_root_help_has_every_command_in_one_group() -> None:
    lines = CliRunner().invoke(ROOT.root, ["--help"], prog_name="eosctl").output.splitlines()
    groups = {group: lines.index(f"{group}:") for group, _module, _text in ROOT.COMMANDS.values()}
    assert list(groups) == ["Look", "Prove", "Repair", "Change", "Run", "Settings"]
    for name, (group, _module, text) in ROOT.COMMANDS.items():
        [at] = [number for number, line in enumerate(lines) if line.split()[:1] == [name]]
        assert lines[at].endswith(text)
        assert max(groups.values(), key=lambda start: (start < at, start)) == groups[group], name


@pytest.mark.parametrize("path", [(), ("txn",), ("txn", "list")])
def test_global_options_are_in_help_all_and_nowhere_else(path: tuple[str, ...]) -> None:
    short, whole = (
        CliRunner().invoke(ROOT.root, [*path, flag], prog_name="eosctl").output for flag in ("--help", "--help-all")
    )
    assert "--help-all" in short
    assert not re.search("^ .*--connect-map ", short, re.MULTILINE)
    assert re.search("^ .*--connect-map ", whole, re.MULTILINE)


def test_help_json_has_every_command_with_its_options(invoke: Invoke) -> None:
    outcome = invoke("--help-json")
    document = outcome.json()
    rows = {row["command"]: row for row in document["data"]["rows"]}
    assert {name for name, row in rows.items() if not row["commands"]} == set(leaves())
    assert document["data"]["summary"]["commands"] == len(rows)
    assert rows["upgrade"]["purpose"] == "change"
    options = {name: option for option in rows["fence"]["options"] for name in option["names"]}
    assert options["--connector"]["type"] == "text"
    assert options["--tasks"]["type"] == "integer"
    assert options["--yes"] == options["-y"]
    assert (options["--yes"]["type"], options["--yes"]["default"]) == ("flag", False)
    assert options["--via"]["choices"] == ["native", "connect", "producer"]
    [shell] = rows["completion"]["arguments"]
    assert (shell["type"], shell["choices"], shell["required"]) == ("choice", ["bash", "zsh", "fish"], True)
    known = {name for option in document["data"]["global_options"] for name in option["names"]}
    assert {"-b", "--bootstrap-server", "-o", "--timeout"} <= known
    for leaf, command in leaves().items():
        listed = {name for option in rows[leaf]["options"] for name in option["names"]} | known | {"-h", "--help"}
        assert {name for param in command.params if isinstance(param, click.Option) for name in param.opts} <= listed


@pytest.mark.parametrize("value", ["0", "-1s", "5x", "", "1h30"])
def test_a_bad_duration_is_a_usage_error(invoke: Invoke, value: str) -> None:
    outcome = invoke("--timeout", value, "workers", "list")
    assert outcome.exit_code == 2
    assert "not a duration" in outcome.stderr


def test_settings_that_are_not_understood_are_told(invoke: Invoke, tmp_path: Path) -> None:
    """A mistyped name in client.properties was passed over in silence."""
    settings = tmp_path / "client.properties"
    settings.write_text("securty.protocol=SSL\n")
    outcome = invoke("txn", "list", "-b", "127.0.0.1:1", "--command-config", str(settings), "--timeout", "300s")
    assert outcome.exit_code == 4
    assert "warning: " in outcome.stderr
    assert "securty.protocol" in outcome.stderr
