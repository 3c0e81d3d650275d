"""completions/ holds what `eosctl completion` prints, and the scripts really complete."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Invoke

ROOT = Path(__file__).resolve().parent.parent
FILES = {"bash": "eosctl.bash", "zsh": "_eosctl", "fish": "eosctl.fish"}
EOSCTL = "import importlib; importlib.import_module('eosctl.commands.frame.root').root(prog_name='eosctl')"


@pytest.mark.parametrize("shell", FILES)
def test_the_committed_script_is_what_the_command_prints(
    invoke: Invoke, shell: str, pytestconfig: pytest.Config
) -> None:
    """A newer click may print another script; `pytest --update-golden` regenerates the files."""
    outcome = invoke("completion", shell)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    path = ROOT / "completions" / FILES[shell]
    if pytestconfig.getoption("--update-golden"):
        path.write_text(outcome.stdout, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == outcome.stdout


def test_json_holds_the_same_script(invoke: Invoke) -> None:
    data = invoke("completion", "fish", "-o", "json").json()["data"]
    assert data["script"].strip() == invoke("completion", "fish").stdout.strip()
    assert data["shell"] == "fish"


def test_an_unknown_shell_is_a_usage_error(invoke: Invoke) -> None:
    assert invoke("completion", "tcsh").exit_code == 2


def _candidates(*words: str) -> list[str]:
    """What eosctl offers for the last of `words`, asked as the bash script does."""
    line = {"COMP_WORDS": " ".join(["eosctl", *words]), "COMP_CWORD": str(len(words))}
    environ = {**os.environ, **line, "_EOSCTL_COMPLETE": "bash_complete"}
    done = subprocess.run([sys.executable, "-c", EOSCTL], env=environ, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [text.partition(",")[2] for text in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["wor"], ["workers"]),
        (["workers", ""], ["list", "probe"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["workers", "list", "-o", "j"], ["json"]),
    ],
)
def test_completing(words: list[str], expected: list[str]) -> None:
    assert _candidates(*words) == expected


def test_every_command_is_offered() -> None:
    assert {"fence", "offsets", "sandbox", "task-counts", "txn", "upgrade", "workers"} <= set(_candidates(""))


def test_offering_the_commands_loads_none_of_them() -> None:
    """A Tab behind `eosctl` used to load all of them: three times the work of `--help`."""
    listed = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
    environ = {**os.environ, "COMP_WORDS": "eosctl ", "COMP_CWORD": "1", "_EOSCTL_COMPLETE": "bash_complete"}
    done = subprocess.run([sys.executable, "-c", listed + EOSCTL], env=environ, capture_output=True, text=True)
    loaded = {name for name in done.stderr.split() if name.startswith(("eosctl.commands.", "msgspec"))}
    assert loaded
    assert all(name.startswith("eosctl.commands.frame") for name in loaded)


def test_bash_itself_completes(tmp_path: Path) -> None:
    """The committed script in a real bash: source it, call its function as readline does, look at COMPREPLY."""
    bash = shutil.which("bash")
    assert bash is not None, "this test needs bash"
    program = tmp_path / "eosctl"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{EOSCTL}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    steps = f"""
    source "{ROOT}/completions/eosctl.bash"
    COMP_WORDS=(eosctl workers p) COMP_CWORD=2 COMPREPLY=()
    _eosctl_completion eosctl p workers
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environ = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([bash, "--norc", "-c", steps], env=environ, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("probe\n", "")
