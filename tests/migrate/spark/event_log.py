"""Spark's event log, read while it is written: what a job of eosctl is at, and how its tasks ended."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def logged_in(folder: Path) -> dict[str, str]:
    """Spark's settings for an event log in `folder`, which is made."""
    folder.mkdir()
    uri = folder.as_uri()
    return {"spark.eventLog.enabled": "true", "spark.eventLog.dir": uri, "spark.eventLog.compress": "false"}


@contextmanager
def at_each_stage(folder: Path, do: Callable[[str], None]) -> Iterator[dict[str, str]]:
    """Calls `do` with the name of each stage of eosctl when its first job has begun; yields the settings for that.

    What `do` raises is raised at the end of the block.
    """
    over, raised, seen = threading.Event(), list[BaseException](), set[str]()

    def watch() -> None:
        try:
            while not over.wait(0.05):
                for stage in stages(folder):
                    if stage not in seen:
                        seen.add(stage)
                        do(stage)
        except BaseException as exc:
            raised.append(exc)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield logged_in(folder)
    finally:
        over.set()
        thread.join()
    if raised:
        raise raised[0]


def stages(folder: Path) -> list[str]:
    """The names of eosctl's stages, as their jobs began."""
    return [job["Properties"].get("spark.jobGroup.id", "") for job in _events(folder, "SparkListenerJobStart")]


def lost_tasks(folder: Path) -> Counter[str]:
    """How many tasks of each stage were lost with their executor."""
    stage_of = {
        number: job["Properties"].get("spark.jobGroup.id", "")
        for job in _events(folder, "SparkListenerJobStart")
        for number in job["Stage IDs"]
    }
    ended = _events(folder, "SparkListenerTaskEnd")
    return Counter(stage_of[task["Stage ID"]] for task in ended if "Lost" in task["Task End Reason"]["Reason"])


def speculative_tasks(folder: Path) -> int:
    """How many second copies of tasks were started."""
    return sum(task["Task Info"]["Speculative"] for task in _events(folder, "SparkListenerTaskStart"))


def _events(folder: Path, kind: str) -> Iterator[Any]:
    """The whole lines of one kind: the last one may be half written."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")):
        for line in file.read_text().split("\n")[:-1]:
            if f'"{kind}"' in line:
                yield json.loads(line)
