"""One migration with the seconds of each stage; `python3 -m benchmarks.migrate.stages BOOTSTRAP SOURCE TARGET`."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eosctl.app import App
from eosctl.core.allowances import Allowances
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.configs.records import Selection
from eosctl.deadline import Deadline
from eosctl.migrate.plan import MigrationRequest, spark_stages
from eosctl.migrate.run import Engine, prepared_migration
from eosctl.target import Target

_NAMES = {"snapshot": "read", "decide": "newest per key and rule", "compare": "verify"}


class Timed:
    """Stages that are timed: each call, and what it takes to go through what a call returns."""

    def __init__(self, stages: Any, seconds: dict[str, float]) -> None:
        self.stages, self.seconds = stages, seconds

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the stage `name`, timed; what only counts is no stage."""
        if name in ("least_parts", "write_tasks"):
            return getattr(self.stages, name)  # type: ignore[no-any-return]

        def call(*args: Any, **more: Any) -> Any:
            with self.timed(name):
                result = getattr(self.stages, name)(*args, **more)
                return iter(list(result)) if isinstance(result, Iterator) else result

        return call

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the block's seconds to `name`."""
        started_s = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[_NAMES.get(name, name.replace("_", " "))] += time.perf_counter() - started_s


def main(bootstrap: str, source: str, target: str) -> None:
    """Migrate everything and print a line per stage."""
    seconds: dict[str, float] = defaultdict(float)
    started_s = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        snapshots = Path(folder)
        app = App(Target(client=ClientSettings((bootstrap,)), offset_topic=source), Deadline.after(600), snapshots)
        open_stages = spark_stages(app, snapshots=snapshots, master="local[2]")

        @contextmanager
        def opened() -> Iterator[Any]:
            asked_s = time.perf_counter()
            with open_stages() as stages:
                seconds["start"] = time.perf_counter() - asked_s
                yield Timed(stages, seconds)

        wanted = MigrationRequest(target=target, selection=Selection(all_connectors=True))
        allowances = Allowances(force_running=True)
        engine = Engine(snapshots, open_stages=opened)
        with prepared_migration(app, wanted, engine, allowances=allowances) as prepared:
            if prepared.apply is None:
                raise SystemExit("there is nothing to migrate")
            prepared.apply()
    total_s = time.perf_counter() - started_s
    for name, spent_s in {**seconds, "the rest": total_s - sum(seconds.values())}.items():
        print(f"  {name:28} {spent_s:6.1f} s {100 * spent_s / total_s:4.0f} %")


if __name__ == "__main__":
    main(*sys.argv[1:])
