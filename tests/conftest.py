"""Fixtures that every test may use: `invoke` runs a command line, `golden` compares with a file."""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, settings

from tests.fakes.clock import PLENTY_S
from tests.schema_check import faults_of

pytest_plugins = [
    *("tests.sandbox_fixtures", "tests.secure_stack", "tests.other_versions", "tests.secure_user"),
    *("tests.spark_session", "tests.synced_files", "tests.scene_fixtures", "tests.prometheus.fixtures"),
]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job: its children would be deaf to Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # until all tests are collected: modules and tests stay, and were looked through again and again

# The same examples on every run, however slow the machine: what fails here fails everywhere.
settings.register_profile(
    "eosctl", max_examples=50, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
settings.register_profile("few", parent=settings.get_profile("eosctl"), max_examples=30)  # of `--fast`
settings.load_profile("eosctl")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden from what is printed now")
    parser.addoption("--no-skips", action="store_true", help="a skipped test fails the run")
    parser.addoption("--big", action="store_true", help="200,000 records where 10,000 do")
    parser.addoption("--slow", action="store_true", help="also what takes minutes, and is no part of a full run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes minutes, unless it is asked for, and what only root can set up, for everybody else."""
    runs = {"slow": config.getoption("--slow"), "root": os.geteuid() == 0}
    left_out = [mark for mark, is_run in runs.items() if not is_run]
    others = [item for item in items if any(map(item.get_closest_marker, left_out))]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Turns the garbage collector on; it never looks at what is there by now: modules and tests stay to the end.

    After each 700 new objects, as Python does by itself, it took a tenth of the units' time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With `--no-skips`, a run that skipped a test is a failed run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--no-skips") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command line printed and exited with."""

    exit_code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.stdout)


Invoke = Callable[..., Outcome]


@pytest.fixture
def invoke(request: pytest.FixtureRequest, tmp_path: Path) -> Invoke:
    """Runs `eosctl ARGS…` in this process: `invoke("fence", "x", doors={…}, input="y\\n", can_ask=True)`.

    `doors` are App's open_* callables; `environ` replaces the environment (default: only a private state directory).
    Without brokers, and without a clock of the test's own, a command has plenty of time.
    """
    is_live = request.node.get_closest_marker("live") is not None
    return invoke_in(tmp_path, env={} if is_live else {"EOSCTL_TIMEOUT": f"{PLENTY_S:g}"})


def invoke_in(directory: Path, *, env: Mapping[str, str] | None = None) -> Invoke:
    """Return what runs a command line with its state and config below `directory`; `env` is for a real clock only."""
    root = importlib.import_module("eosctl.commands.frame.root").root
    session_class = importlib.import_module("eosctl.commands.frame.session").Session

    def run(
        *args: str,
        doors: dict[str, Any] | None = None,
        environ: dict[str, str] | None = None,
        input: str | IO[bytes] | None = None,  # noqa: A002 - click's own name for it
        can_ask: bool | None = None,
        **session: Any,
    ) -> Outcome:
        surroundings = {"XDG_STATE_HOME": str(directory / "state"), "XDG_CONFIG_HOME": str(directory / "config")}
        obj = session_class(environ={**surroundings, **(environ or {})}, doors=doors or {}, can_ask=can_ask, **session)
        more = {} if "clock" in session else env
        result = CliRunner().invoke(root, list(args), obj=obj, input=input, prog_name="eosctl", env=more)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        if result.stdout.startswith('{\n  "kind": '):
            assert faults_of(json.loads(result.stdout)) == []
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that refuses connections, held so that nobody else can listen there meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("name", text)` compares with tests/golden/name; `--update-golden` writes it."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden file {name}: run pytest --update-golden and read what it wrote"
        assert text == path.read_text(encoding="utf-8")

    return check
