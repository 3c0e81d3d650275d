"""`eosctl txn list` beside Kafka's own `TransactionsCommand list`, whole processes in turn on one real broker.

Goals, as medians of paired ratios: at most 0.12 with a few ids, at most 0.8 with 300,000 (`--ids`, made by fencing).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
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
            target = ["-b", stack.bootstrap_servers, "--timeout", "10m"]
            eosctl = [installed_eosctl(directory)]
            ids = directory / "ids"
            ids.write_text("".join(f"bench-{number}\n" for number in range(arguments.ids)))
            fence = [*eosctl, "fence", "--from-file", str(ids), "--create-unknown", "--yes", *target]
            subprocess.run(fence, check=True, capture_output=True)
            listing = [*eosctl, "txn", "list", *target]
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


if __name__ == "__main__":
    main()
