"""Docstrings of functions are in the imperative ("Return …"), as in PEP 257; those of properties are nouns."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.docstrings import is_imperative, is_property
from tests.source_trees import nodes_of

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(path for top in ("eosctl", "commands") for path in (ROOT / top).rglob("*.py"))
RIDDLES = {"What", "Those", "That", "Of", "Whose", "Whom"}
"""First words of a sentence that has no noun for its subject."""


def _odd(path: Path) -> list[str]:
    found = []
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (text := ast.get_docstring(node)):
            if not is_property(node) and not is_imperative(text):
                found.append(f"line {node.lineno}: {node.name}: {text.splitlines()[0]}")
        elif isinstance(node, ast.ClassDef) and (ast.get_docstring(node) or " ").split(" ")[0] in RIDDLES:
            found.append(f"line {node.lineno}: {node.name}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_docstring_says_what_the_function_does(path: Path) -> None:
    """Some 3,500 began with "What", "Those that", "Whether", or had no verb at all."""
    assert _odd(path) == []
