"""How eosctl's time and memory grow: each command alone at 1x, 10x and 100x of its size, whole processes.

A row per command: wall and CPU seconds and peak memory at each size, and what one unit more costs in CPU from size to
size, which the start of the process is no part of. A command grows faster than its input where the second of these is
above the first. Each size has a broker of its own, and one run after a `--help` that warms the files up.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.audit.__main__ import audit_line, write_logs
from benchmarks.doctor.__main__ import many_connectors, run_with_findings
from benchmarks.kafka import kafka_jars
from benchmarks.migrate.__main__ import FORMS, run_tree
from benchmarks.migrate.__main__ import Contest as Migration
from benchmarks.offsets.__main__ import Contest, fill_keys
from benchmarks.offsets_topic import fill
from benchmarks.pairs import Run, compile_sources, elsewhere, run_once
from benchmarks.stacks import BROKER, own_folder, stack_in
from benchmarks.txn_list import list_line, make_ids
from eosctl.machine.java import require_java
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack

_TASKS = 10
Line = Sequence[str]


@dataclass(frozen=True, slots=True)
class Command:
    """What is measured: the unit, the smallest size, and the world that gives the command's line for a size."""

    unit: str
    smallest: int
    world: Callable[[Stack, Path, int], Iterator[Line]]
    spec: StackSpec = BROKER
    run: Callable[[Line], Run] = run_once

    def measure(self, size: int) -> Run:
        """Run the command once, on a broker of its own."""
        with (
            own_folder() as folder,
            stack_in(folder, self.spec) as stack,
            contextmanager(self.world)(stack, folder, size) as line,
        ):
            return self.run(line)


def _migrate(stack: Stack, folder: Path, records: int) -> Iterator[Line]:
    elsewhere(fill, stack.bootstrap_servers, records)
    yield Migration(stack.bootstrap_servers, folder, FORMS["other"], records).ours()


def _merge(stack: Stack, folder: Path, keys: int) -> Iterator[Line]:
    contest = _keys(stack, folder, keys)
    yield contest.merge_line(contest.new_target())


def _export(stack: Stack, folder: Path, keys: int) -> Iterator[Line]:
    yield _keys(stack, folder, keys).export_line()


def _keys(stack: Stack, folder: Path, keys: int) -> Contest:
    elsewhere(fill_keys, stack.bootstrap_servers, keys)
    java = require_java(os.environ)
    return Contest(stack.bootstrap_servers, folder, java, kafka_jars(java), keys, runs=1)


def _audit(stack: Stack, folder: Path, megabytes: int) -> Iterator[Line]:
    elsewhere(write_logs, stack, folder, megabytes)
    yield audit_line(stack)


def _doctor(stack: Stack, folder: Path, connectors: int) -> Iterator[Line]:
    with many_connectors(stack, folder, connectors, _TASKS) as (line, _url):
        yield line


def _txn_list(stack: Stack, folder: Path, ids: int) -> Iterator[Line]:
    make_ids(stack, folder, ids)
    yield list_line(stack)


COMMANDS = {
    "migrate": Command("record", 100_000, _migrate, run=run_tree),
    "merge": Command("key", 10_000, _merge, run=run_tree),
    "export": Command("key", 10_000, _export),
    "audit": Command("megabyte", 20, _audit),
    "doctor": Command("connector", 5, _doctor, spec=StackSpec(), run=run_with_findings),
    "txn list": Command("id", 3_000, _txn_list),
}


def main() -> None:
    """Measure what was asked for, and print a row each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=list(COMMANDS), action="append", help="repeatable; all of them without it")
    parser.add_argument("--times", type=int, action="append", help="repeatable; 1, 10 and 100 without it")
    arguments = parser.parse_args()
    compile_sources()
    run_once([sys.executable, "-m", "eosctl", "--help"])
    times = sorted(arguments.times or (1, 10, 100))
    print("| command | sizes | wall | CPU | CPU of a unit more | peak |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in arguments.only or COMMANDS:
        sizes = [COMMANDS[name].smallest * each for each in times]
        print(_row(name, sizes, [COMMANDS[name].measure(size) for size in sizes]), flush=True)


def _row(name: str, sizes: Sequence[int], runs: Sequence[Run]) -> str:
    steps = zip(sizes, sizes[1:], runs, runs[1:], strict=False)
    more_us = [1e6 * (after.cpu_s - before.cpu_s) / (size - smaller) for smaller, size, before, after in steps]
    cells = [
        f"`{name}`",
        f"{' / '.join(f'{size:,}' for size in sizes)} {COMMANDS[name].unit}s",
        f"{' / '.join(f'{run.wall_s:.1f}' for run in runs)} s",
        f"{' / '.join(f'{run.cpu_s:.1f}' for run in runs)} s",
        f"{' / '.join(f'{each:,.1f}' for each in more_us)} µs",
        f"{' / '.join(f'{run.peak_mib:,.0f}' for run in runs)} MiB",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
