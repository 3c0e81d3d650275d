"""Instructions in user space of two whole processes: `eosctl --help` and `eosctl fence` of one id."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.pairs import compile_sources
from tests.fakes.broker import FakeCluster
from tests.fakes.broker_state import FakeTransaction

_COUNTERS = {  # command -> what it prints of them, on stderr
    ("perf", "stat", "-x,", "-e", "instructions:u", "--"): re.compile(r"^(\d+),,instructions:u", re.MULTILINE),
    ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"): re.compile(
        r"I +refs: +([\d,]+)"
    ),
}
_ID = "g-orders-0"


def measure_instructions() -> dict[str, int | None]:
    """Return the measures, by what each is called in the table; None where no counter works on this machine."""
    compile_sources()
    with FakeCluster(brokers=1) as cluster:
        cluster.state.transactions[_ID] = FakeTransaction(7, 4, "CompleteCommit")
        fence = ["fence", _ID, "--yes", "-b", ",".join(cluster.bootstrap_servers)]
        return {"instructions of --help": _count(["--help"]), "instructions of fence of one id": _count(fence)}


def _count(arguments: Sequence[str]) -> int | None:
    for counter, printed in _COUNTERS.items():
        if shutil.which(counter[0]) is None:
            continue
        with tempfile.TemporaryDirectory() as home:
            environ = {**os.environ, "PYTHONHASHSEED": "0", "XDG_STATE_HOME": home, "XDG_CONFIG_HOME": home}
            command = [*counter, sys.executable, "-m", "eosctl", *arguments]
            root = Path(__file__).resolve().parents[2]
            done = subprocess.run(command, env=environ, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode == 0 and (found := printed.search(done.stderr)):
            return int(found[1].replace(",", ""))
    return None
