"""What a command may be: it parses, calls one operation and returns its report; read from the syntax tree."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from tests.command_tree import leaves
from tests.source_trees import nodes_of

FILES = sorted((Path(__file__).resolve().parents[2] / "commands").rglob("*.py"))


def nodes(path: Path) -> tuple[ast.AST, ...]:
    return nodes_of(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_applied_is_a_plan_of_the_library(path: Path) -> None:
    """Nine lambdas here used to say what a plan does when it is applied, and how it is recreated."""
    assert [node.lineno for node in nodes(path) if isinstance(node, ast.Lambda)] == []


def test_every_writing_command_goes_through_settle() -> None:
    calls = [
        node
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "run_plan"
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


def taken(function: Any) -> dict[str, bool]:
    """Which options a command's function takes, by name or as members of a value, and whether each is needed."""
    found = dict[str, bool]()
    for parameter in inspect.signature(function).parameters.values():
        kind = function.__globals__.get(parameter.annotation)
        if hasattr(kind, "__match_args__") and parameter.name != "app":
            members = inspect.signature(kind).parameters.items()
            found |= {name: member.default is member.empty for name, member in members}
        elif parameter.name not in ("app", "ctx"):
            found[parameter.name] = True
    return found


def parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function itself, not those of what it wraps."""
    return inspect.signature(function, follow_wrapped=False).parameters


def wrapped(function: Any) -> list[Any]:
    """Return a function, and what it wraps, the innermost last."""
    return [function, *wrapped(function.__wrapped__)] if hasattr(function, "__wrapped__") else [function]


@pytest.mark.parametrize("name", sorted(leaves()))
def test_a_command_takes_what_it_has_options_for(name: str) -> None:
    """An option without a member, or a member without an option, would be found by running the command only."""
    command = leaves()[name]
    options = {param.name for param in command.params if param.expose_value}
    *wrappers, function = wrapped(command.callback)
    takes = taken(function) if command.callback else {}
    for wrapper in wrappers:
        takes |= {name: True for name, each in parameters(wrapper).items() if each.kind is each.KEYWORD_ONLY}
    assert options - takes.keys() == set()
    assert {each for each, is_needed in takes.items() if is_needed} - options == set()


def test_a_member_without_an_option_is_found() -> None:
    def command(app: object, options: click.Option, *, yes: bool) -> None: ...

    assert taken(command) == {"options": True, "yes": True}
