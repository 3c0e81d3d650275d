"""Every command line in the README and on the pages of docs/ is one that eosctl takes."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import click
import pytest

from tests.docs_site.command_lines import ROOT, CommandLine, mentioned, pages, typed

_ROOT_COMMAND: click.Group = importlib.import_module("eosctl.commands.frame.root").root
TYPED = sorted({line for page in pages() for line in typed(page)})
MENTIONED = sorted({line for page in pages() for line in mentioned(page)})
FILES = ("plan.json", "worker.log", "orders.json", "clicks.json", "mirror.json")
PLACEHOLDER = re.compile(r"^[A-Z…]")  # COMMAND, CODE, KIND


def _leaf(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that `words` begin with, and the words that are left; global options may stand before it."""
    command: click.Command = _ROOT_COMMAND
    while isinstance(command, click.Group) and words:
        context = click.Context(command)
        _options, behind, _order = command.make_parser(context).parse_args(list(words))
        found = command.get_command(context, behind[0]) if behind else None
        if found is None:
            break
        command, words = found, behind[1:]
    return command, words


def test_the_pages_have_command_lines() -> None:
    """A collector that finds none would be green."""
    assert {line.page for line in TYPED} >= {"README.md", "docs/tutorial.md", "docs/how-to/move-offsets-in-bulk.md"}
    assert len(TYPED) > 40
    assert len(MENTIONED) > 200


def _folder(path: str, below: Path) -> str:
    """Return a folder that is there in place of one of the page's."""
    made = below / path.lstrip("/")
    made.mkdir(parents=True)
    return str(made)


@pytest.mark.parametrize("line", TYPED, ids=str)
def test_what_is_typed_parses(line: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        Path(name).touch()
    Path("plugins").mkdir()
    command, words = _leaf([_folder(word, tmp_path) if word.startswith("/") else word for word in line.words])
    assert not isinstance(command, click.Group) or command.invoke_without_command, line.words
    with command.make_context(str(command.name), words) as context:
        assert context.params is not None


@pytest.mark.parametrize("line", MENTIONED, ids=str)
def test_what_is_mentioned_is_a_command_with_these_options(line: CommandLine) -> None:
    command, left = _leaf(list(line.words))
    assert command is not _ROOT_COMMAND or PLACEHOLDER.match(line.words[0]) or line.words[0].startswith("-"), line.words
    if isinstance(command, click.Group) and command is not _ROOT_COMMAND:
        assert not left or PLACEHOLDER.match(left[0]) or left[0].startswith("-"), line.words
    known = {name for each in (command, _ROOT_COMMAND) for param in each.params for name in param.opts}
    known |= {name for param in command.params for name in param.secondary_opts} | {"--help", "--"}
    used = {word.partition("=")[0] for word in left if re.match(r"--?[a-z]|--$", word)}
    assert used <= known, line.words


def test_the_readme_names_every_command() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = {words.split()[0] for words in re.findall(r"`(?:eosctl )?([a-z-]+(?: [^`]*)?)`", text)}
    assert set(importlib.import_module("eosctl.commands.frame.root").COMMANDS) <= named
    assert len(text.splitlines()) <= 200
