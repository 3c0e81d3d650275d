"""`eosctl txn list` beside Kafka's own `TransactionsCommand list`, whole processes in turn on one real broker.

The `--ids` are made by fencing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kafka import kafka_jars
from benchmarks.pairs import compare, installed_eosctl
from benchmarks.stacks import own_folder, stack_in
from eosctl.machine.java import require_java
from eosctl.sandbox.stack import Stack


def main() -> None:
    """Start a broker, make the ids, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", type=int, default=20)
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    java = require_java(os.environ)
    jars = kafka_jars(java)
    with own_folder() as directory, stack_in(directory) as stack:
        eosctl = installed_eosctl(directory)
        make_ids(stack, directory, arguments.ids)
        listing = list_line(stack, eosctl)
        class_path = os.pathsep.join(map(str, jars))
        tool = [str(java.executable), "-cp", class_path, "org.apache.kafka.tools.TransactionsCommand"]
        tool += ["--bootstrap-server", stack.bootstrap_servers, "list"]
        print(f"{arguments.ids} ids")
        compare("eosctl txn list", lambda: listing, "TransactionsCommand list", lambda: tool, runs=arguments.runs)


def make_ids(stack: Stack, directory: Path, count: int) -> None:
    """Make so many transactional ids, by fencing."""
    ids = directory / "ids"
    ids.write_text("".join(f"bench-{number}\n" for number in range(count)))
    fence = [*(sys.executable, "-m", "eosctl", "fence", "--from-file", str(ids)), "--create-unknown", "--yes"]
    subprocess.run([*fence, *_target(stack)], check=True, capture_output=True)


def list_line(stack: Stack, *eosctl: str) -> Sequence[str]:
    """Return the line of a list of all ids, by the script `eosctl` or as a module."""
    return [*(eosctl or (sys.executable, "-m", "eosctl")), "txn", "list", *_target(stack)]


def _target(stack: Stack) -> Sequence[str]:
    return ["-b", stack.bootstrap_servers, "--timeout", "14m"]


if __name__ == "__main__":
    main()
