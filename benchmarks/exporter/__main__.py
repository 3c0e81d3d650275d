"""`eosctl exporter` of 500 source connectors with 10 tasks each and a million source offsets: CPU and memory over time.

One real broker with the ids, configs and offsets of all tasks, which are committed again while the exporter looks, one
real worker, and before it the front of `benchmarks.doctor`. The exporter has its default interval; its CPU counts from
when it has looked at each source.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.doctor.__main__ import CONFIGS, GROUP, OFFSETS, front, make_ids, make_records
from benchmarks.doctor.front import connector_name
from benchmarks.stacks import own_folder, stack_in
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import OutRecord
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack

LISTEN = "127.0.0.1:19619"
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds, peak and present memory, and threads of a process."""

    cpu_s: float
    peak_mb: float
    now_mb: float
    threads: int


def main() -> None:
    """Start a broker and a worker, make the connectors, and watch the exporter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connectors", type=int, default=500)
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=int, default=12)
    arguments = parser.parse_args()
    names = [connector_name(number) for number in range(arguments.connectors)]
    with own_folder() as directory, stack_in(directory, StackSpec()) as stack:
        make_ids(stack, directory, names, arguments.tasks)
        make_records(stack, names, arguments.tasks)
        write_offsets(stack, names, arguments.keys)
        with front(stack, arguments.connectors, arguments.tasks) as url:
            watch(stack, url, names, minutes=arguments.minutes)


def write_offsets(stack: Stack, names: list[str], keys: int) -> None:
    """Write `keys` source offsets, spread over the connectors."""

    def records() -> Iterator[OutRecord]:
        for number in range(keys):
            key = json.dumps([names[number % len(names)], {"table": f"shop.orders_{number:08}"}], separators=(",", ":"))
            yield OutRecord(OFFSETS, key.encode(), b'{"lsn":%d,"txId":731,"ts_usec":1700000000000000}' % number, None)

    with KafkaTopicClient(ClientSettings((stack.bootstrap_servers,)), deadline=Deadline.after(1800)) as store:
        store.write(records())


def watch(stack: Stack, url: str, names: list[str], *, minutes: int) -> None:
    """Print the exporter's usage each minute; the tasks commit 5,000 offsets every half a minute."""
    [advertised] = stack.urls(GROUP)
    command = [
        *(sys.executable, "-m", "eosctl", "exporter", "--listen", LISTEN, "-b", stack.bootstrap_servers, "-g", GROUP),
        *("--config-topic", CONFIGS, "--offset-topic", OFFSETS, "--connect-map", f"{advertised}={url}"),
    ]
    with subprocess.Popen(command) as process:
        try:
            began_s = time.monotonic()
            _wait_ready()
            ready, ready_s = usage_of(process.pid), time.monotonic()
            print(f"ready after {ready_s - began_s:.0f} s, {ready.cpu_s:.1f} s of CPU, peak {ready.peak_mb:.0f} MB")
            for minute in range(1, minutes + 1):
                for _half in range(2):
                    write_offsets(stack, names, 5_000)
                    _scrape("/metrics")
                    time.sleep(max(0.0, ready_s + 60 * minute - 30 * (1 - _half) - time.monotonic()))
                now = usage_of(process.pid)
                percent = 100 * (now.cpu_s - ready.cpu_s) / (time.monotonic() - ready_s)
                print(
                    f"minute {minute}: {percent:.2f} % of a core since it was ready, "
                    f"{now.now_mb:.0f} MB, peak {now.peak_mb:.0f} MB, {now.threads} threads",
                    flush=True,
                )
            print(*(line for line in _scrape("/metrics").splitlines() if "collection_duration" in line), sep="\n")
            print(*(line for line in _scrape("/metrics").splitlines() if "collection_error" in line), sep="\n")
        finally:
            process.terminate()


def _scrape(path: str) -> str:
    with _direct.open(f"http://{LISTEN}{path}", timeout=30) as answer:
        return str(answer.read().decode())


def _wait_ready() -> None:
    for _ in range(600):
        try:
            _scrape("/readyz")
        except OSError:
            time.sleep(1.0)
        else:
            return
    sys.exit("the exporter was not ready within ten minutes")


def usage_of(pid: int) -> Usage:
    """Return what /proc says."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines())
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    peak_mb, now_mb = (int(status[name].split()[0]) * 1024 / 1e6 for name in ("VmHWM", "VmRSS"))
    return Usage(cpu_s, peak_mb, now_mb, int(status["Threads"]))


if __name__ == "__main__":
    main()
