"""`eosctl fence` beside `Admin.fenceProducers`, whole processes in turn on one real broker.

Java runs with its default settings (about one id per second and broker: few ids only) and tuned (both
`retry.backoff*` 0). The program is compiled once, outside the timing. `--brokers 3` measures 5,000 seen ids on three
brokers with replication 3. `--far` measures 1, 1,000 and 10,000 seen ids over TLS with SCRAM-SHA-512 on one broker that
is 20 ms away, for both.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.far import far_stack
from benchmarks.kafka import compile_java, kafka_jars
from benchmarks.pairs import compare, installed_eosctl
from benchmarks.stacks import own_folder, stack_in
from eosctl.machine.java import Java, require_java
from eosctl.sandbox.settings import StackSpec

_HERE = Path(__file__).parent
_JVM = ("-Xshare:auto",)


def main() -> None:
    """Start the brokers, run every comparison, print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1)
    parser.add_argument("--far", action="store_true", help="TLS and SCRAM, and a round trip of 20 ms; one broker")
    parser.add_argument("--only", type=int, metavar="IDS", help="so many seen ids beside tuned Java alone")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.far and arguments.brokers > 1:
        parser.error("--far has one broker")
    java = require_java(os.environ)
    jars = kafka_jars(java)
    with own_folder() as directory:
        class_path = os.pathsep.join([str(directory), *map(str, jars)])
        compile_java(_HERE / "FenceProducers.java", java=java, class_path=class_path, directory=directory)
        spec, eosctl = StackSpec(brokers=arguments.brokers, groups=()), installed_eosctl(directory)
        with _stack(spec, directory, far=arguments.far) as (bootstrap, login):
            bench = _Bench(eosctl, bootstrap, login, java, class_path, directory, arguments.runs)
            if arguments.only or arguments.far or arguments.brokers == 3:
                counts = (5_000,) if arguments.brokers == 3 else (1, 1_000, 10_000)
                bench.seen((arguments.only,) if arguments.only else counts)
            else:
                bench.one_broker()


@contextmanager
def _stack(spec: StackSpec, directory: Path, *, far: bool) -> Iterator[tuple[str, str]]:
    """Start the brokers until the block ends; give their bootstrap servers and the file of the login, if any."""
    if far:
        with far_stack(spec, directory / "stack", secure=True) as away:
            yield away.bootstrap_servers, away.command_config
    else:
        with stack_in(directory, spec) as near:
            yield near.bootstrap_servers, ""


class _Bench:
    """The contestants on one stack; every run of a pair gets the same ids, or fresh ones where none may be known."""

    def __init__(
        self, eosctl: str, bootstrap: str, login: str, java: Java, class_path: str, directory: Path, runs: int
    ) -> None:
        self._script, self._bootstrap, self._login = eosctl, bootstrap, login
        self._java, self._class_path = java, class_path
        self._directory, self._runs = directory, runs

    def one_broker(self) -> None:
        """Prepare the broker, then compare."""
        self._warm_up(3_000)
        self._seen(20, "defaults", runs=2)
        for count in (1, 1_000, 10_000):
            self._seen(count, "tuned", runs=self._runs)
        self._never_seen(10_000)
        self._librdkafka(1_000)

    def seen(self, counts: Iterable[int]) -> None:
        """Compare on seen ids, beside tuned Java alone."""
        self._warm_up(3_000)
        for count in counts:
            self._seen(count, "tuned", runs=self._runs)

    def _warm_up(self, count: int) -> None:
        for _ in range(2):
            subprocess.run(self._eosctl(self._ids(count)), check=True, capture_output=True)

    def _seen(self, count: int, how: str, *, runs: int) -> None:
        ids = self._ids(count)
        subprocess.run(self._eosctl(ids), check=True, capture_output=True)
        print(f"\n{count} seen ids, Java {how}")
        compare("eosctl fence", lambda: self._eosctl(ids), f"Java, {how}", lambda: self._fence(ids, how), runs=runs)

    def _never_seen(self, count: int) -> None:
        print(f"\n{count} never-seen ids, Java tuned")
        compare(
            "eosctl fence --create-unknown", lambda: self._eosctl(self._ids(count)),
            "Java, tuned", lambda: self._fence(self._ids(count), "tuned"), runs=self._runs,
        )  # fmt: skip

    def _librdkafka(self, count: int) -> None:
        """Compare with the same command over librdkafka's producers: what a Python user would write without it."""
        ids = self._ids(count)
        subprocess.run(self._eosctl(ids), check=True, capture_output=True)
        print(f"\n{count} seen ids, librdkafka producers (--via producer)")
        other = [*self._eosctl(ids), "--via", "producer"]
        compare("eosctl fence", lambda: self._eosctl(ids), "librdkafka producers", lambda: other, runs=2)

    def _ids(self, count: int) -> Path:
        run = uuid.uuid4().hex[:8]
        path = self._directory / f"ids-{run}"
        path.write_text("".join(f"bench-{run}-{number}\n" for number in range(count)))
        return path

    def _eosctl(self, ids: Path) -> list[str]:
        target = ["-b", self._bootstrap, "--timeout", "10m"]
        target += ["--command-config", self._login] if self._login else []
        return [self._script, "fence", "--from-file", str(ids), "--create-unknown", "--yes", "-o", "json", *target]

    def _fence(self, ids: Path, how: str) -> list[str]:
        java = [str(self._java.executable), *_JVM, "-cp", self._class_path, "FenceProducers"]
        return [*java, self._bootstrap, str(ids), how, *filter(None, [self._login])]


if __name__ == "__main__":
    main()
