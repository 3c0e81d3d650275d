"""Start-up stays light: what `--help` and the plain commands may not import, checked in a fresh process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.broker import FakeCluster
from tests.fakes.clock import PLENTY_S

HEAVY = [
    *("confluent_kafka", "pyspark", "pyarrow", "rich", "yaml", "urllib3", "prometheus_client"),
    *("ssl", "asyncio", "concurrent.futures"),
]
PROBE = """
import contextlib, importlib, io, sys
root = importlib.import_module("eosctl.commands.frame.root").root
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    code = root.main({argv!r}, prog_name="eosctl", standalone_mode=False)
assert code == 0, code
print(",".join(sorted(name for name in {heavy!r} if name in sys.modules)))
"""


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["doctor", "--help"]])
def test_help_imports_nothing_heavy(argv: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(argv=argv, heavy=[*HEAVY, "msgspec"])],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ""


def test_library_imports_without_click() -> None:
    code = "import sys; sys.modules['click'] = None; import eosctl.app, eosctl.ports, eosctl.report"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    "module",
    [
        *("checks.plan", "collect.looks", "upgrade.plan", "watch.run", "rescue.plan", "kafka.topics.store"),
        *("audit.audit", "kafka.batches.log"),
    ],
)
def test_what_only_looks_loads_no_arrow(module: str) -> None:
    """Arrow took half of doctor's start, 25 MB of the exporter's memory, half of audit's, for what they never do."""
    code = f"import sys, eosctl.{module}; print(*sorted({{'pyarrow', 'numpy', 'pyspark'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_numpy_is_loaded_without_threads_that_nothing_here_needs() -> None:
    """Each of OpenBLAS spins for 0.1 s when it is made."""
    code = "import eosctl.engine.columns, os; print(len(os.listdir('/proc/self/task')))"
    environ = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    counts = [
        subprocess.run([sys.executable, "-c", code], env=each, capture_output=True, text=True, check=True).stdout
        for each in (environ, {**environ, "OPENBLAS_NUM_THREADS": "1"})
    ]
    assert counts[0] == counts[1]


FENCE = """
import contextlib, io, sys
from eosctl.commands.frame.root import root
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    code = root.main(sys.argv[1:], prog_name="eosctl", standalone_mode=False)
assert code == 0, code
print(*sys.modules)
"""
NOT_FOR_ONE_ID = [
    *("core.acls.lines", "acls.rules", "core.acls.table", "core.clients.properties", "core.records"),
    *("group.members", "core.workers.config", "core.workers.url", "group.absent", "fence.running"),
    *(
        "group.gather",
        "kafka.topics.partition_leaders",
        "kafka.native.scram",
        "wire.group_messages",
        "wire.producer_messages",
    ),
    *("wire.sasl_messages", "wire.transaction_listing_messages", "wire.log_dir_messages", "output.board"),
    *("secret_commands", "core.clients.hidden_secrets", "core.kept.plan_file", "core.brokers"),
]

CODES_FOR_ONE_ID = {"eosctl.codes", "eosctl.fence.codes"}
"""What other rooms find, and the texts about it, are not loaded to fence an id."""


def test_fencing_one_id_loads_no_more_than_it_needs(tmp_path: Path) -> None:
    """It used to load the rules of groups, workers, rights, logins and settings files first: a third of its time."""
    with FakeCluster() as cluster:
        argv = ["fence", "one", "--create-unknown", "--yes", "-b", ",".join(cluster.bootstrap_servers)]
        done = subprocess.run(
            [sys.executable, "-c", FENCE, *argv],
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
    loaded = set(done.stdout.split())
    assert "eosctl.kafka.transactions.fencing" in loaded
    assert not {*HEAVY, *(f"eosctl.{name}" for name in NOT_FOR_ONE_ID)} & loaded
    assert {name for name in loaded if name.startswith("eosctl.") and name.endswith(".codes")} == CODES_FOR_ONE_ID


INTERRUPTED = """
import importlib.abc, signal, sys
class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "eosctl.commands.frame.root":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where this began in the background
from eosctl.__main__ import main
main()
"""


def test_an_interrupt_while_modules_load_just_ends_the_process() -> None:
    """Ctrl-C within the first tenth of a second used to print the traceback of an import."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


HUNG_UP = INTERRUPTED.replace("eosctl.commands.frame.root", "eosctl.rehearse.plan").replace("(signal.SIGINT)", "(HOW)")


@pytest.mark.parametrize(("at_start", "code"), [("SIG_DFL", 130), ("SIG_IGN", 0)])
def test_a_terminal_that_hangs_up_is_a_ctrl_c(tmp_path: Path, at_start: str, code: int) -> None:
    """SIGHUP used to end the process at once, with a sandbox left behind; with nohup it is nothing."""
    how = f"import signal; HOW = signal.SIGHUP; signal.signal(HOW, signal.{at_start})"
    done = subprocess.run(
        [sys.executable, "-c", how + HUNG_UP, "rehearse", "--dry-run"],
        capture_output=True, text=True, env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == code, done.stderr


DROPPED = INTERRUPTED.replace("eosctl.commands.frame.root", "eosctl.rehearse.plan").replace(
    "            signal.raise_signal(signal.SIGINT)",
    """
            import time, weakref
            gone = Interrupt()
            seen = weakref.ref(gone, lambda _: signal.raise_signal(signal.SIGINT))
            del gone
            time.sleep(10)
""",
)


def test_an_interrupt_that_python_drops_comes_a_moment_later(tmp_path: Path) -> None:
    """A Ctrl-C in the callback of a weak reference was printed as ignored, and `connectors stop` went on to stop."""
    done = subprocess.run(
        [sys.executable, "-c", DROPPED, "rehearse", "--dry-run"],
        capture_output=True, text=True, env={**os.environ, "XDG_STATE_HOME": str(tmp_path)}, timeout=PLENTY_S,
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (130, False), done.stderr


ENDING = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count() > 1_000))
from eosctl.__main__ import main
sys.argv = ["eosctl", "--version"]
main()
"""


def test_nothing_that_was_loaded_is_searched_for_cycles_at_the_end() -> None:
    """Python used to look at every module once more, only to end: a tenth of the time of a short command."""
    done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1], done.stderr) == (0, "True", "")
