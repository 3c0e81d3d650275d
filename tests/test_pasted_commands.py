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
_QUOTING = {"quote", "shlex.quote", "shlex.join", "join", "resume_command", "undo_command", "_url_of", "quoted_label"}
_HARMLESS = {  # numbers, fixed words, and what was quoted where it was made
    *("recorded", "row['partition']", "request.partition", "change", "pem", "what", "target.value", "REPAIR_FILE"),
    *("again", "store", "more", "url", "quoted", "undo"),
}


def _strings() -> Iterator[tuple[str, ast.JoinedStr]]:
    for folder in (ROOT / "eosctl", ROOT / "commands"):
        for path in sorted(folder.rglob("*.py")):
            for node in nodes_of(path):
                if isinstance(node, ast.JoinedStr):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def unquoted(node: ast.JoinedStr) -> list[str]:
    """The parts of commands in an f-string that a shell would see as they are."""
    text, parts = "", dict[str, ast.expr]()
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            sign = chr(0xE000 + len(parts))
            parts[sign] = value.value
            text += sign
        elif isinstance(value, ast.Constant):
            text += str(value.value)
    in_commands = "".join(match[0] for match in _COMMAND.finditer(text))
    return [ast.unparse(part) for sign, part in parts.items() if sign in in_commands and not _is_quoted(part)]


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
        ("f'See `eosctl fence {quote(name)}` now'", []),
        ("f'Run: eosctl txn producers --topic {a.topic} --partition {quote(b)}'", ["a.topic"]),
        ("f'See it: eosctl txn list; or: eosctl rescue --connector {name}'", ["name"]),
        ("f'{name} is no eosctl, {other}'", []),
        ("f'chmod 600 {path}, or else {other}'", ["path", "other"]),
    ],
)
def test_the_search_finds_what_is_not_quoted(source: str, parts: list[str]) -> None:
    assert unquoted(_joined(source)) == parts


def test_every_part_of_a_command_is_quoted() -> None:
    """A topic or a path with a blank, a quote or a `$` changed what a pasted hint did."""
    assert [f"{where}: {part}" for where, node in _strings() for part in unquoted(node)] == []
