"""What a command may be: it parses, calls one operation and returns its report; read from the syntax tree."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).resolve().parents[2] / "commands").rglob("*.py"))


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


def commands() -> list[tuple[str, ast.FunctionDef]]:
    """The functions that click calls."""
    return [
        (f"{path.name}:{node.name}", node)
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef)
        if any(".command(" in f".{ast.unparse(each)}" for each in node.decorator_list)
    ]


def body_lines(function: ast.FunctionDef) -> int:
    """The lines below the signature and the docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_options_come_by_name_or_as_one_typed_value() -> None:
    """Eleven commands used to take `**given: Any`: a name that was misspelt was found by running it."""
    assert len(commands()) > 40
    assert [name for name, function in commands() if function.args.kwarg or function.args.vararg] == []


def test_a_command_only_parses_and_calls_one_operation() -> None:
    assert [(name, lines) for name, function in commands() if (lines := body_lines(function)) > 25] == []


def test_the_lines_of_a_body_are_counted() -> None:
    source = 'def f(\n    a,\n):\n    """One.\n\n    Two.\n    """\n    b = a\n    return (\n        b\n    )\n'
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    assert body_lines(function) == 4
