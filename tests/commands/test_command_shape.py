"""What a command may be: it parses, calls one operation and returns its report; read from the syntax tree."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).resolve().parents[2] / "commands").glob("*.py"))


def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_applied_is_a_plan_of_the_library(path: Path) -> None:
    """Nine lambdas here used to say what a plan does when it is applied, and how it is made anew."""
    assert [node.lineno for node in nodes(path) if isinstance(node, ast.Lambda)] == []


def test_every_writing_command_goes_through_settle() -> None:
    calls = [
        node
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "settle"
    ]
    assert len(calls) >= 12
    assert {(len(call.args), *sorted(str(each.arg) for each in call.keywords)) for call in calls} == {
        (1, "dry_run", "yes")
    }
