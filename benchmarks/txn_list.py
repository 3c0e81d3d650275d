"""`eosctl txn list` beside Kafka's own `TransactionsCommand list`, whole processes in turn on one real broker.

The `--ids` are made by fencing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kafka import kafka_jars
from benchmarks.pairs import compare, installed_eosctl
from eosctl.machine.java import require_java
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack


def main() -> None:
    """Starts a broker, makes the ids, compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", type=int, default=20)
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    java = require_java(os.environ)
    jars = kafka_jars(java)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        stack = Stack.up(StackSpec(groups=()), directory / "stack", name="benchmark", environ=os.environ)
        try:
            eosctl = installed_eosctl(directory)
            make_ids(stack, directory, arguments.ids)
            listing = list_line(stack, eosctl)
            tool = [
                str(java.executable),
                "-cp",
                os.pathsep.join(map(str, jars)),
                "org.apache.kafka.tools.TransactionsCommand",
            ]
            tool += ["--bootstrap-server", stack.bootstrap_servers, "list"]
            print(f"{arguments.ids} ids")
            compare("eosctl txn list", lambda: listing, "TransactionsCommand list", lambda: tool, runs=arguments.runs)
        finally:
            stack.down()


def make_ids(stack: Stack, directory: Path, count: int) -> None:
    """So many transactional ids, made by fencing."""
    ids = directory / "ids"
    ids.write_text("".join(f"bench-{number}\n" for number in range(count)))
    fence = [*(sys.executable, "-m", "eosctl", "fence", "--from-file", str(ids)), "--create-unknown", "--yes"]
    subprocess.run([*fence, *_target(stack)], check=True, capture_output=True)


def list_line(stack: Stack, *eosctl: str) -> Sequence[str]:
    """The listing of all ids, by the script `eosctl` or as a module."""
    return [*(eosctl or (sys.executable, "-m", "eosctl")), "txn", "list", *_target(stack)]


def _target(stack: Stack) -> Sequence[str]:
    return ["-b", stack.bootstrap_servers, "--timeout", "14m"]


if __name__ == "__main__":
    main()
