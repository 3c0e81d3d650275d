"""Commands in hints are pasted into a shell: every part that comes from outside is quoted there."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator

import pytest

from tests.source_trees import nodes_of
from tests.test_layers import ROOT

_GROUPS = sorted(importlib.import_module("eosctl.commands.frame.root").COMMANDS)
_COMMAND = re.compile(  # up to the backtick that closes it; else to the end of its line, which may be too far
    rf"\b(?:eosctl (?:{'|'.join(_GROUPS)})|kafka-[a-z-]+\.sh|chmod|curl|keytool|openssl|export)\b[^`\n]*"
)
_NAMED = {"arguments"}  # last in a command, behind -- where it must
_QUOTING = _NAMED | {"shell_word", "shell_words", "resume_command", "undo_command", "_url_of", "quoted_label"}
_BEHIND_OPTION = re.compile(r"(?:^|\s)-[\w-]*[ =]$")
_HARMLESS = {  # numbers, fixed words, and what was quoted where it was made
    *("recorded", "row['partition']", "request.partition", "change", "pem", "what", "target.value", "REPAIR_FILE"),
    *("again", "store", "more", "url", "quoted", "undo", "count", "_BACK[before]", "of_it", "of_profile"),
}


def _strings() -> Iterator[tuple[str, ast.JoinedStr]]:
    for folder in (ROOT / "eosctl", ROOT / "commands"):
        for path in sorted(folder.rglob("*.py")):
            for node in nodes_of(path):
                if isinstance(node, ast.JoinedStr):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def unquoted(node: ast.JoinedStr) -> list[str]:
    """The parts of commands in an f-string that a shell would see as they are."""
    commands, parts = _commands(node)
    return [ast.unparse(part) for sign, part in parts.items() if sign in commands and not _is_quoted(part)]


def options_of_others(node: ast.JoinedStr) -> list[str]:
    """The parts that would be options of the command, where they begin with a dash."""
    commands, parts = _commands(node)
    return [
        ast.unparse(part)
        for sign, part in parts.items()
        for before, found, after in [commands.partition(sign)]
        if found and _may_be_option(part, before.rpartition("\n")[2], after.partition("\n")[0])
    ]


def _may_be_option(part: ast.expr, before: str, after: str) -> bool:
    if not before.startswith("eosctl ") or not isinstance(part, ast.Call):
        return False
    if ast.unparse(part.func) in _NAMED:
        return " -" in after
    return ast.unparse(part.func) == "shell_word" and _BEHIND_OPTION.search(before) is None


def _commands(node: ast.JoinedStr) -> tuple[str, dict[str, ast.expr]]:
    """The commands in an f-string, a line each, in which a sign stands for each part."""
    text, parts = "", dict[str, ast.expr]()
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            sign = chr(0xE000 + len(parts))
            parts[sign] = value.value
            text += sign
        elif isinstance(value, ast.Constant):
            text += str(value.value)
    return "\n".join(match[0] for match in _COMMAND.finditer(text)), parts


def _is_quoted(part: ast.expr) -> bool:
    if isinstance(part, ast.Call):
        return ast.unparse(part.func) in _QUOTING or ast.unparse(part) in _HARMLESS
    return ast.unparse(part) in _HARMLESS or ast.unparse(part).startswith("Waiver.")


def _joined(source: str) -> ast.JoinedStr:
    (node,) = (each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.JoinedStr))
    return node


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("f'See `eosctl fence {name}` now, {where}'", ["name"]),
        ("f'See `eosctl fence {shell_word(name)}` now'", []),
        ("f'Run: eosctl txn producers --topic {a.topic} --partition {shell_word(b)}'", ["a.topic"]),
        ("f'See it: eosctl txn list; or: eosctl rescue --connector {name}'", ["name"]),
        ("f'{name} is no eosctl, {other}'", []),
        ("f'chmod 600 {path}, or else {other}'", ["path", "other"]),
    ],
)
def test_the_search_finds_what_is_not_quoted(source: str, parts: list[str]) -> None:
    assert unquoted(_joined(source)) == parts


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("f'See `eosctl fence {shell_word(name)}` now'", ["shell_word(name)"]),
        ("f'See `eosctl fence {arguments(name)}` now'", []),
        ("f'See `eosctl connectors restart --failed {arguments(name)}`'", ["arguments(name)"]),
        ("f'See `eosctl fence --connector {shell_word(name)} --yes`'", []),
        ("f'See `chmod 600 {shell_word(name)}`'", []),
    ],
)
def test_the_search_finds_what_may_be_an_option(source: str, parts: list[str]) -> None:
    assert options_of_others(_joined(source)) == parts


def test_no_name_is_an_option_of_a_command() -> None:
    """`eosctl fence --prefix=connect-cluster-` was printed for a transactional id of that name: it fences them all."""
    assert [f"{where}: {part}" for where, node in _strings() for part in options_of_others(node)] == []


def test_every_part_of_a_command_is_quoted() -> None:
    """A topic or a path with a blank, a quote or a `$` changed what a pasted hint did."""
    assert [f"{where}: {part}" for where, node in _strings() for part in unquoted(node)] == []
