"""`eosctl task-counts replay FILE` beside Kafka's own KafkaConfigBackingStore, whole processes in turn on one file.

The file is a config topic that was never compacted: 2,000 connectors of three tasks that are changed, stopped and
deleted over and over. Java folds it with the class that workers use (its reflection is as good as free); a loop of
plain `json` in Python keeps the newest value per key, without any of the rules. Before anything is timed, eosctl's and
Java's states are compared. Goals, as medians of paired ratios: 500,000 records in seconds, at most 0.6 of Java, at most
2.5 of the loop.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from benchmarks.kafka import compile_java, kafka_jars
from benchmarks.pairs import compare, compile_sources
from eosctl.machine.java import require_java

_HERE = Path(__file__).parent
_CONNECTORS, _TASKS = 2_000, 3


def main() -> None:
    """Writes the file, compares the answers, then the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    compile_sources()
    java = require_java(os.environ)
    jars = kafka_jars(java)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        file = directory / "connect-configs.ndjson"
        with file.open("w", encoding="utf-8") as lines:
            lines.writelines(_lines(arguments.records))
        class_path = os.pathsep.join([str(directory), *map(str, jars)])
        compile_java(_HERE / "FoldConfigTopic.java", java=java, class_path=class_path, directory=directory)
        ours = [*_eosctl(), "task-counts", "replay", str(file), "-o", "json"]
        theirs = [str(java.executable), "-Xshare:auto", "-cp", class_path, "FoldConfigTopic", str(file)]
        loop = [sys.executable, "-m", "benchmarks.fold.loop", str(file)]
        _require_same_answer(ours, theirs)
        print(f"{arguments.records:,} records, {_CONNECTORS:,} connectors (goal 0.6)")
        compare(
            "eosctl task-counts replay", lambda: ours, "KafkaConfigBackingStore", lambda: theirs, runs=arguments.runs
        )
        print("\nthe same beside newest-per-key, which follows no rule (goal 2.5)")
        compare("eosctl replay", lambda: ours, "a loop of json.loads", lambda: loop, runs=arguments.runs)


def _eosctl() -> list[str]:
    script = shutil.which("eosctl", path=str(Path(sys.executable).parent))
    return [script] if script else [sys.executable, "-m", "eosctl"]


def _require_same_answer(ours: list[str], theirs: list[str]) -> None:
    answer = subprocess.run(ours, check=True, capture_output=True, text=True).stdout
    connectors = json.loads(answer)["data"]["state"]["connectors"]
    mine = {
        f"{name} {state['task_count'] or 0} {state['task_count_record']} {str(state['pending_fencing']).lower()}"
        for name, state in connectors.items()
        if state["config"] is not None
    }
    java = subprocess.run(theirs, check=True, capture_output=True, text=True).stdout
    other = {line.replace(" null ", " None ") for line in java.splitlines()}
    if mine != other:
        sys.exit(f"eosctl and Java differ: {sorted(mine ^ other)[:4]}")


def _lines(count: int) -> Iterator[str]:
    """The first `count` records of lives of connectors, one after the other."""
    lives = (_life(f"source-{number % _CONNECTORS:04d}") for number in cycle(range(_CONNECTORS)))
    records = (record for life in lives for record in life)
    for offset, (key, value) in enumerate(islice(records, count)):
        text = None if value is None else json.dumps(value, separators=(",", ":"))
        record = {"topic": "connect-configs", "partition": 0, "offset": offset, "key": key, "value": text}
        yield json.dumps(record) + "\n"


def _life(name: str) -> Iterator[tuple[str, object]]:
    """Created, reconfigured, stopped, resumed; every record as Connect writes it. One in two is then deleted."""
    properties = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": str(_TASKS),
        "database.hostname": f"{name}.example.org",
        "database.password": "${file:/secrets:password}",
        "table.include.list": "public.orders,public.order_items,public.payments",
        "name": name,
    }
    for _change in range(2):
        yield f"connector-{name}", {"properties": properties}
        for task in range(_TASKS):
            yield f"task-{name}-{task}", {"properties": {**properties, "task.class": "Task", "task.id": str(task)}}
        yield f"commit-{name}", {"tasks": _TASKS}
        yield f"tasks-fencing-{name}", {"task-count": _TASKS}
    yield f"commit-{name}", {"tasks": 0}
    yield f"target-state-{name}", {"state": "PAUSED", "state.v2": "STOPPED"}
    yield f"target-state-{name}", {"state": "STARTED", "state.v2": "STARTED"}
    if name[-1] in "02468":
        yield f"connector-{name}", None
        yield f"target-state-{name}", None


if __name__ == "__main__":
    main()
