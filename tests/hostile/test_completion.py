"""Tab in real shells, where somebody else chose the names: nothing of a name is run, split, expanded or an option."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eosctl.foreign import is_plain_word
from tests.fakes.clock import PLENTY_S
from tests.fakes.http_server import metrics_endpoint
from tests.terminals import take_terminal

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (  # on a slow machine a second is not enough for a Python that starts
    "import importlib; importlib.import_module('eosctl.commands.frame.candidates')._PATIENCE_S = 300.0; "
    "importlib.import_module('eosctl.commands.frame.root').root(prog_name='eosctl')"
)
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], f"source {ROOT}/completions/eosctl.bash"),
    "zsh": (["zsh", "-f", "-i"], f"autoload -U compinit; compinit -u -D; source {ROOT}/completions/_eosctl"),
    "fish": (["fish", "--no-config", "-i"], f"source {ROOT}/completions/eosctl.fish"),
}
# what is typed before Tab -> the name that begins so, and what the program gets
TYPED = {
    "aw": ("awake-1.x_y", "awake-1.x_y"),
    "b": ("b;touch${IFS}PWNED;#", "b"),
    "c": ("c$(touch PWNED)", "c"),
    "d": ("d`touch PWNED`", "d"),
    "e": ("e words and more", "e"),
    "f": ("f*", "f"),
    "g": ("g\nplain,gEVIL", "g"),
    "h": ("h,x", "h"),
    "i": ("i'", "i"),
    "j": ("j\x1b[2J\u009b\u202e", "j"),
    "k": ("k{1,2}", "k"),
    "l": ("l&touch PWNED", "l"),
    "m": ("m\\;touch PWNED", "m"),
    "n": ("n!touch", "n"),
    "--pre": ("--prefix=connect-cluster-", "--pre"),
}


@contextmanager
def _shell(argv: list[str], environ: dict[str, str], directory: Path) -> Iterator[int]:
    terminal, slave = pty.openpty()
    started = subprocess.Popen(
        argv, env=environ, cwd=directory, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        preexec_fn=take_terminal,
    )  # fmt: skip
    os.close(slave)
    try:
        yield terminal
    finally:
        os.close(terminal)
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def _read_until(terminal: int, done: Path, lines: int) -> str:
    """What is printed until the program was called so many times."""
    printed, until_s = b"", time.monotonic() + PLENTY_S
    while time.monotonic() < until_s and not (done.exists() and len(done.read_text().splitlines()) >= lines):
        if select.select([terminal], [], [], 0.1)[0]:
            printed += os.read(terminal, 65536)
    return printed.decode("utf-8", "replace")


@pytest.mark.parametrize("shell", [name for name in SHELLS if name == "bash" or shutil.which(name)])
def test_tab_runs_nothing_of_a_name(tmp_path: Path, shell: str) -> None:
    """bash's script inserts a candidate as it is: `b;touch…;#` became a command of its own, and Enter ran it."""
    called, program = tmp_path / "called", tmp_path / "bin" / "eosctl"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport os, sys, json\n"
        f"if '_EOSCTL_COMPLETE' in os.environ:\n    sys.path.insert(0, {str(ROOT)!r})\n    {PROGRAM}\n"
        f"with open({str(called)!r}, 'a') as file:\n    file.write(json.dumps(sys.argv[1:]) + '\\n')\n"
    )
    program.chmod(0o755)
    entry = {"info": {"name": "x", "config": {}, "tasks": [], "type": "source"}, "status": {}}
    argv, setup = SHELLS[shell]
    with metrics_endpoint(json.dumps({name: entry for name, _got in TYPED.values()})) as worker:
        environ = {
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "TERM": "dumb" if shell == "bash" else "xterm",
            "LC_ALL": "C.UTF-8",
            "EOSCTL_CONNECT_URL": worker.url.removesuffix("/metrics"),
        }
        with _shell(argv, environ, tmp_path) as terminal:
            os.write(terminal, f"{setup}\n".encode())
            for number, typed in enumerate(TYPED, start=1):
                os.write(terminal, f"eosctl connectors stop {typed}\t\n".encode())
                printed = _read_until(terminal, called, number)
                assert called.exists(), printed
    got = [json.loads(line) for line in called.read_text().splitlines()]
    assert got == [["connectors", "stop", word] for _name, word in TYPED.values()], printed
    assert not (tmp_path / "PWNED").exists()


def test_only_plain_words_are_offered() -> None:
    names = {"=touch", "~root", "%1", "", " ", *(name for name, _got in TYPED.values())}
    assert {name for name in names if is_plain_word(name)} == {"awake-1.x_y"}
