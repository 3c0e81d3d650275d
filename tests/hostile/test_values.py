"""Values that others choose, in each place where they enter; and a search of everything that each command prints.

A connector, its class, ids, groups, keys, traces, principals and messages are called so. No output has a control
character, a mark of direction or a line of theirs; and each command that is printed does, in a real shell and by our
own options, what it says and nothing else.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from eosctl.core.acls.lines import Acl
from tests.command_lines import LINES, WITHOUT_LINE, Line, prepare, run_line
from tests.command_tree import leaf_of, leaves
from tests.conftest import Invoke, Outcome
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.canaries import World, canary_world

CONTROLS = "x y\nundo: touch pwned\r\nerror: pwned\x85fix: pwned\u2028warning: pwned\x1b[31m\x9b2J\u202e<b>&\"'[red]"
OPTION = "--prefix=connect-cluster-pwned"
SHELL = "-p;touch${IFS}pwned;$(touch pwned)`touch pwned`'\\{name}"
VALUES = {"controls": CONTROLS, "option": OPTION, "shell": SHELL}
OUTPUTS = {"text": VALUES, "wide": {"controls"}, "json": {"controls"}, "ndjson": {"controls"}, "yaml": {"controls"}}
_BASH = shutil.which("bash") or "bash"
_OWN_LINE = re.compile(r"^\s*(?:undo: touch|error: pwned|fix: pwned|warning: pwned)", re.MULTILINE)
_COMMAND = re.compile(r"`(eosctl [^`\n]*)`|^(?:undo: |\s*fix: |\s*)(eosctl .*)$|: (eosctl [^`\n]*)$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"(?:^| )[A-Z]+\b|\{\{")


@pytest.fixture
def world(tmp_path: Path, value: str) -> Iterator[World]:
    with canary_world(tmp_path, connector=VALUES[value]) as built:
        _neighbours(built, VALUES[value])
        yield built


def _neighbours(world: World, value: str) -> None:
    """What others have beside the connector: each of them is called so, too."""
    world.connect.add(f"{value}2", {"connector.class": value, "name": f"{value}2"}).fail(
        trace=f"{value}: {value}\n\tat x"
    )
    world.connect.plugins = [*world.connect.plugins, {"class": value, "type": "source", "version": value}]
    world.brokers.state.transactions[value] = FakeTransaction(70, 4, "Ongoing")
    world.brokers.state.transactions[f"g-{value}2-0"] = FakeTransaction(71, 4, "Ongoing")
    world.other_group(value, "http://w9:8083")
    world.acls.acls.append(Acl(f"User:{value}", "READ", "Topic", "connect-configs"))
    world.topics.put(
        "connect-offsets", json.dumps([value, {value: value}]).encode(), json.dumps({value: value}).encode()
    )
    world.topics.put("connect-offsets", value.encode(), value.encode())
    world.keep_config(f"tasks-fencing-{value}2", {value: value})
    world.keep_config(value, {value: value})


def unsafe(text: str) -> list[str]:
    """The lines that steer a terminal, or that somebody else wrote."""
    return [line for line in text.split("\n") if not line.isprintable()] + _OWN_LINE.findall(text)


def commands(text: str) -> list[str]:
    """The commands with something of others that are printed to be pasted."""
    found = [next(filter(None, match.groups())) for match in _COMMAND.finditer(text)]
    return [command for command in found if "pwned" in command and _PLACEHOLDER.search(command) is None]


def argv_of(command: str, folder: Path) -> list[str]:
    """What eosctl gets where somebody pastes this into bash; nothing else is run."""
    record = 'eosctl() { printf "%s\\0" "$@"; }; '
    ran = subprocess.run(
        [_BASH, "-c", record + command], cwd=folder, env={"PATH": "/nowhere"}, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, b""), command
    return ran.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


def given(argv: list[str]) -> dict[str, Any]:
    """What our own options make of a command line."""
    leaf = leaf_of(argv)
    command = leaves()[leaf]
    with command.make_context(leaf, argv[len(leaf.split()) :], parent=None, obj=None) as context:
        return context.params


def flat(found: Iterable[Any]) -> list[str]:
    """The texts that options and arguments were given."""
    return [text for each in found for text in (flat(each) if isinstance(each, list | tuple) else [str(each)])]


def is_of(value: str, word: str) -> bool:
    """Whether a word has the whole of a value: as it is, in JSON or in a regular expression."""
    return any(each in word for each in (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]))


def everything(outcome: Outcome, directory: Path) -> dict[str, str]:
    pages = {str(path): path.read_text(encoding="utf-8") for path in [directory / "log", *directory.glob("*.html")]}
    return {"stdout": outcome.stdout, "stderr": outcome.stderr, **pages}


def test_every_leaf_is_searched() -> None:
    assert set(leaves()) - {line.leaf for line in LINES} == set(WITHOUT_LINE)


@pytest.mark.parametrize(("value", "output"), [(value, output) for output in OUTPUTS for value in OUTPUTS[output]])
@pytest.mark.parametrize("line", LINES, ids=str)
def test_no_value_of_others_does_anything(
    invoke: Invoke, world: World, tmp_path: Path, line: Line, value: str, output: str
) -> None:
    prepare(invoke, world, line)
    outcome = run_line(invoke, world, line, "--log-file", str(tmp_path / "log"), output=output)
    folder = tmp_path / "pasted"
    folder.mkdir()
    for where, text in everything(outcome, tmp_path).items():
        assert unsafe(text) == [], where
        for command in commands(text) if output in ("text", "wide") else ():
            words = flat(given(argv_of(command, folder)).values())
            assert [word for word in words if "pwned" in word and not is_of(VALUES[value], word)] == [], command
    assert list(folder.iterdir()) == []
    assert "unexpected" not in outcome.stderr
    if line.document and output == "json":
        assert outcome.json()
    elif line.document and output == "yaml":
        assert yaml.safe_load(outcome.stdout)
