"""Start-up stays light: what `--help` and the plain commands may not import, checked in a fresh process."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

HEAVY = [
    *("confluent_kafka", "pyspark", "pyarrow", "rich", "yaml", "urllib3", "prometheus_client"),
    *("ssl", "asyncio", "concurrent.futures"),
]
PROBE = """
import contextlib, importlib, io, sys
root = importlib.import_module("eosctl.commands.root").root
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    code = root.main({argv!r}, prog_name="eosctl", standalone_mode=False)
assert code == 0, code
print(",".join(sorted(name for name in {heavy!r} if name in sys.modules)))
"""


@pytest.mark.parametrize("argv", [["--help"], ["--version"]])
def test_help_imports_nothing_heavy(argv: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(argv=argv, heavy=HEAVY)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


def test_library_imports_without_click() -> None:
    code = "import sys; sys.modules['click'] = None; import eosctl.ops.app, eosctl.ops.ports, eosctl.report"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_fencing_loads_no_more_than_it_needs() -> None:
    """The hint "Grant it with: kafka-acls..." used to bring the whole table of rights into every command."""
    code = "import sys, eosctl.ops.fence, eosctl.kafka.transaction_admin; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {*HEAVY, "eosctl.core.acl_table", "eosctl.core.acl_rules"} & set(done.stdout.split())


INTERRUPTED = """
import importlib.abc, signal, sys
class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "eosctl.commands.root":
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
