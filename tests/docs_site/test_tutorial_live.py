"""docs/tutorial.md, typed into a shell: each command prints what stands below it, but for numbers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.docs_site.session import Shell, Step, steps_of, with_outputs
from tests.sandbox_fixtures import wait_until

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
_LOOKS = (
    "eosctl offsets list",
    "eosctl workers list",
    "eosctl task-counts list",
    "eosctl audit",
    "eosctl upgrade verify",
)
"""Commands that may be run again: what they show takes a moment to come."""


@pytest.mark.live
def test_the_session_is_what_is_printed(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """With `--update-golden` the outputs are written from this run."""
    page = PAGE.read_text(encoding="utf-8")
    steps = steps_of(page)
    assert len(steps) > 10
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EOSCTL_CONNECT")}
    outputs = []
    with Shell({**environ, "PATH": path, "XDG_STATE_HOME": str(tmp_path)}, tmp_path) as shell:
        try:
            for step in steps:
                again = step.script.startswith(_LOOKS)
                outputs.append(_settled(shell, step, again=again, is_new=pytestconfig.getoption("--update-golden")))
        finally:
            shell.run("eosctl sandbox down")
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(with_outputs(page, outputs), encoding="utf-8")
    assert [Step(step.command, output).pattern for step, output in zip(steps, outputs, strict=True)] == [
        step.pattern for step in steps_of(PAGE.read_text(encoding="utf-8"))
    ]


def _settled(shell: Shell, step: Step, *, again: bool, is_new: bool) -> str:
    """Return a step's output: of a look, once it is that of the page; of a new one, once it is the same twice."""
    output = shell.run(step.script)

    def is_settled() -> bool:
        nonlocal output
        before, output = output, shell.run("sleep 5\n" * is_new + step.script)
        wanted = Step(step.command, before).pattern if is_new else step.pattern
        return Step(step.command, output).pattern == wanted

    if again and (is_new or Step(step.command, output).pattern != step.pattern):
        wait_until(is_settled, what=f"{step.script} to print what the page has")
    return output
