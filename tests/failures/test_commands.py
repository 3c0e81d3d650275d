"""Every eosctl command line that an entry, its code or a known bug names can be typed: it exists, and it parses."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from eosctl.core.known_bugs import KNOWN_BUGS
from eosctl.failures.failure import filled_in
from eosctl.failures.rules import FAILURES
from tests.command_tree import leaf_of, leaves

_NAMES = {"name": "orders", "c": "orders", "id": "pay-1", "topic": "t"}
NAMED = (
    "txn applications", "txn abort", "txn hanging", "doctor", "acls check", "acls generate", "acls apply", "rescue",
)  # fmt: skip
"""Of these the dictionary has to name each somewhere."""


def _texts() -> Iterator[str]:
    for each in FAILURES:
        signs = [part for sign in each.signs for part in (sign.means, sign.fix, *sign.causes)]
        words = (each.means, each.fix, *each.causes, *each.is_not, each.code.meaning, each.code.next, *signs)
        yield from (f"`{command}`" for command in each.commands)
        yield from words
        yield from (note.words for note in each.versions)
    for bug in KNOWN_BUGS:
        yield from (bug.symptom, bug.remedy)


def command_lines() -> list[str]:
    quoted = (found for text in _texts() for found in re.findall(r"`(?:eosctl )([^`]+)`", text))
    return sorted({filled_in(line, _NAMES) for line in quoted})


@pytest.mark.parametrize("line", command_lines())
def test_it_parses(line: str) -> None:
    words = shlex.split(line)
    leaf = leaf_of(words)
    rest = words[len(leaf.split()) :]
    is_only_named = not rest and any(parameter.required for parameter in leaves()[leaf].params)
    if not is_only_named:
        leaves()[leaf].make_context(leaf, rest)


@pytest.mark.parametrize("leaf", NAMED)
def test_the_dictionary_names_it(leaf: str) -> None:
    assert leaf in {leaf_of(shlex.split(line)) for line in command_lines()}
