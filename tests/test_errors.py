"""Exit codes and the boundary: every way out of a command ends in one message and one code."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from eosctl import errors
from eosctl.errors import EosctlError, ExitCode

README = Path(__file__).resolve().parent.parent / "README.md"
ERRORS = [
    cls for _name, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, EosctlError)
]  # fmt: skip


def _run(error: BaseException, *args: str) -> Any:
    """A root group with one command that raises `error`."""
    root_module = importlib.import_module("eosctl.commands.frame.root")

    def fail() -> None:
        raise error

    group = root_module.RootGroup(name="eosctl", params=list(root_module.root.params))
    group.get_command = lambda _ctx, _name: click.Command("x", callback=fail)
    session = importlib.import_module("eosctl.commands.frame.session").Session(environ={})
    return CliRunner().invoke(group, [*args, "x"], obj=session)


@pytest.mark.parametrize("cls", ERRORS, ids=lambda cls: cls.__name__)
def test_every_error_has_its_code_and_exit_code(cls: type[EosctlError]) -> None:
    outcome = _run(cls("it broke at w1", hint="try again"))
    assert outcome.exit_code == cls.exit_code
    assert outcome.stdout == ""
    assert outcome.stderr == "error: it broke at w1\n  try again\n"
    as_json = _run(cls("it broke at w1", hint="try again"), "-o", "json")
    document = json.loads(as_json.stdout)
    assert (document["exit_code"], document["errors"][0]["code"]) == (cls.exit_code, cls.code)


def test_error_codes_are_unique() -> None:
    codes = [cls.code for cls in ERRORS if "code" in vars(cls)]
    assert len(codes) == len(set(codes))


def test_ctrl_c_is_130() -> None:
    outcome = _run(KeyboardInterrupt())
    assert outcome.exit_code == ExitCode.INTERRUPTED
    assert "interrupted" in outcome.stderr


def test_the_unexpected_is_told_without_its_text() -> None:
    """http.client's `Invalid header value b'Bearer …'` has the token in it."""
    broken = ValueError("Invalid header value b'Bearer t0ken'\nundo: eosctl offsets restore x")
    outcome = _run(broken)
    assert outcome.exit_code == 1
    assert outcome.stderr.startswith("error: unexpected ValueError\n")
    assert "t0ken" not in outcome.stderr
    shown = _run(broken, "-vv").stderr
    assert "| Traceback" in shown
    assert "Bearer t0ken" in shown
    assert not [line for line in shown.splitlines() if line.startswith("undo:")]


def test_readme_table_has_every_exit_code() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", README.read_text(encoding="utf-8"), re.MULTILINE)}
    assert listed == {int(code) for code in ExitCode}
