"""A command line for every leaf that reaches its result in the world of canaries, and how it is run there.

`test_canaries.py` searches what they print and leave behind; `test_every_write.py` looks at those that write.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import Template
from typing import Any

from tests.command_tree import leaf_of
from tests.conftest import Invoke, Outcome
from tests.fakes.canaries import (
    CLIENT,
    CLUSTER,
    WAYS,
    World,
    another_group,
    failed_in_fencing,
    lost_markers,
    plain_write,
    unreadable_record,
)

RESULTS = {0: "ok", 3: "findings"}  # exit code -> status


@dataclass(frozen=True)
class Line:
    """A command line, $names of `_FILES` in it; `scene` changes the world first, then the lines of `before` are run.

    Without a `document` it is run in text only: what it prints leaves no room for one.
    """

    text: str
    before: tuple[str, ...] = ()
    scene: Callable[[World], None] = lambda _world: None
    document: bool = True

    def __str__(self) -> str:
        return self.text

    @property
    def leaf(self) -> str:
        return leaf_of(self.text.split())

    @property
    def writes(self) -> bool:
        return "--yes" in self.text.split()


# leaf -> why no line here runs it
WITHOUT_LINE = {
    "demo": "starts a sandbox, and asks nothing of a target",
    "offsets migrate": "needs Spark's JVM: tests/migrate/spark/test_secrets.py searches what it leaves behind, "
    "tests/test_contract_cli.py runs it",
    "rehearse": "starts a sandbox, and asks nothing of a target",
    "sandbox up": "starts a sandbox, and asks nothing of a target",
    "sandbox logs": "needs a sandbox, and asks nothing of a target",
    "watch": "goes on until it is ended, and prints what doctor does: tests/watch",
}
_SET = 'offsets set --connector orders --partition \'{"f":"a"}\' --offset \'{"n":9}\' --via topic --yes'
LINES = [
    *map(
        Line,
        (
            "workers list",
            "workers probe",
            "metrics --prometheus $metrics",
            "offsets list",
            "offsets list --store orders-offsets",
            "offsets get --connector orders",
            "offsets diff --connector orders",
            "offsets diff --connector orders global orders-offsets",
            "offsets log --connector orders",
            "offsets snapshot",
            "offsets lint",
            "offsets lint --store connect-configs",
            "offsets export --store global $out",
            "offsets export --store connect-configs $out",
            "offsets export --store connect-configs --all-records $out",
            "offsets merge --connector orders --into dedicated --yes",
            _SET,
            "offsets set --connector orders --as-of 0 --from global --via topic --yes",
            "offsets reset --connector orders --all-partitions --via topic --yes",
            "offsets import $offsets --store global --yes --force-running",
            "offsets restore $backup --yes --force-running",
            "offsets switch --connector orders --to global --yes",
            "offsets switch --connector orders --to new-offsets --yes",
            "task-counts list",
            "task-counts show orders",
            "task-counts validate",
            "task-counts replay --topic",
            "task-counts replay $configs",
            "task-counts write orders --count 2 --yes",
            "fence g-orders-0 --live --yes",
            "fence --connector orders --yes",
            "fence --connector orders --via connect --yes",
            "txn list",
            "txn applications",
            "txn describe g-orders-0",
            "txn coordinator g-orders-0",
            "txn log g-orders-0",
            "txn producers --topic sink",
            "txn hanging --topic sink",
            "txn abort --topic sink --partition 0 --start-offset 0 --yes",
            "txn abort --hanging --yes",
            "connectors check",
            "connectors trace orders",
            "connectors diff $connector",
            "connectors create $created --yes",
            "connectors apply $connector --read-again --yes",
            "connectors resume orders --yes",
            "connectors pause orders --yes",
            "doctor",
            "acls generate --connector orders",
            "acls check --connector orders --principal User:w",
            "acls apply --connector orders --principal User:w --yes",
            "upgrade plan --to enabled",
            "upgrade status",
            "upgrade verify --to enabled",
            "upgrade verify --to enabled --report $out",
            "doctor --report $out",
            "profile list",
            "profile show --origin",
            "profile check",
            "profile set other group_id=g",
            "profile import other $worker",
            "exporter rules",
            "exporter dashboard",
            "completion bash",
            "explain",
            "schema",
            "sandbox status",
            "sandbox down",
        ),
    ),
    Line("offsets export --store connect-configs -", document=False),
    Line("connectors stop orders --yes", scene=failed_in_fencing),
    Line("connectors restart orders --failed --yes", scene=failed_in_fencing),
    Line("connectors move --connector orders --to far --yes", scene=another_group),
    Line("rescue --connector orders --yes", scene=failed_in_fencing),
    Line("txn complete --as-decided --topic orders-offsets --partition 0 --start-offset 0 --yes", scene=lost_markers),
    Line("task-counts clean --yes", scene=unreadable_record),
    Line("audit --connector orders --topic sink --since beginning --report $page", scene=plain_write),
    Line("offsets verify $written", before=(_SET,)),
    Line("offsets verify $written --before", before=(_SET, "offsets restore $written --yes")),
    Line(
        "upgrade apply $plan --driver command --properties-file $properties --restart-command 'touch $restart' --yes",
        before=("upgrade plan --to preparing --plan-out $plan",),
    ),
    Line("profile use p", before=("profile set p group_id=g",)),
    Line("history", before=(_SET,)),
]
WRITES = [line for line in LINES if line.writes]
# what no command may do, with the words of the refusal
REFUSED = {
    Line(
        "offsets import $configs --store connect-configs --yes --force-running"
    ): "configurations of connectors, tasks or the workers' session key, which are no offsets",
    Line(
        "offsets restore $configs --yes --force-running"
    ): "configurations of connectors, tasks or the workers' session key, which are no offsets",
}


def prepare(invoke: Invoke, world: World, line: Line, *, way: str = "files") -> None:
    """Makes the line's scene, and what the lines before it make; each of them must come to its own result."""
    args, environ = WAYS[way](world)
    line.scene(world)
    for earlier in line.before:
        done = invoke(*_words_with(world, earlier, args), environ=environ, **world.surroundings)
        assert done.exit_code in RESULTS, f"{earlier}: {done.stderr}"


def run_line(
    invoke: Invoke, world: World, line: Line, *more: str, way: str = "files", output: str = "json", **how: Any
) -> Outcome:
    """What a line answers in the world, once it is prepared; `how` is for `invoke`."""
    args, environ = WAYS[way](world)
    told = [*args, *more, "-o", output if line.document else "text", "--timeout", "300s"]
    return invoke(*_words_with(world, line.text, told), environ=environ, **{**world.surroundings, **how})


def count_connects(invoke: Invoke, world: World, line: Line) -> Counter[int]:
    """Run a line that is prepared, and return how often each broker was connected to meanwhile."""
    world.brokers.accepted.clear()
    run_line(invoke, world, line, output="text")
    return world.brokers.accepted


def _words_with(world: World, text: str, options: Sequence[str]) -> list[str]:
    """The words of a line, and options before its names."""
    leaf = leaf_of(text.split()).split()
    return [*leaf, *options, *words_of(world, text)[len(leaf) :]]


def words_of(world: World, text: str) -> list[str]:
    """The words of a line, with the files that its $names stand for; they are made when they are named.

    `orders` is the world's connector, whatever its name is.
    """
    words = [Template(word).substitute(_Files(world, word)) for word in shlex.split(text)]
    names = {"orders": world.connector, "g-orders-0": world.task_id}
    last = [names[word] for before, word in pairwise(words) if word in names and not before.startswith("--")]
    if not any(name.startswith("-") for name in last):
        return [names.get(word, word) for word in words]
    kept = [word for before, word in pairwise(["", *words]) if word not in names or before.startswith("--")]
    return [*(names.get(word, word) for word in kept), "--", *last]


class _Files(dict[str, str]):
    def __init__(self, world: World, word: str) -> None:
        super().__init__({name: make(world) for name, make in _FILES.items() if f"${name}" in word})


def _created(world: World) -> Mapping[str, object]:
    """A connector that is not there yet."""
    config = {name: value for name, value in world.config.items() if name not in ("name", "offsets.storage.topic")}
    return {"name": "created", "config": {**config, "file": "/data/created"}}


def _configs(world: World) -> str:
    value, key = json.dumps({"properties": world.config}), f"connector-{world.connector}"
    record = {"topic": "connect-configs", "partition": 0, "offset": 0, "cluster_id": CLUSTER}
    return world.private("configs.ndjson", json.dumps({**record, "key": key, "value": value}))


def _connector(world: World) -> str:
    """The connector with another file and another secret."""
    changed = {**world.config, "file": "/data/other", "connection.password": "canary-other"}
    return world.private("connector.json", json.dumps({"name": world.connector, "config": changed}))


def _offset(world: World) -> str:
    record = {"topic": "connect-offsets", "partition": 0, "cluster_id": CLUSTER}
    return json.dumps({**record, "key": world.key.decode(), "value": '{"n":5}'}) + "\n"


def _written(world: World) -> str:
    """The backup that a line of `before` has made."""
    state = world.directory.parent / "state" / "eosctl" / "backups"
    return str(min(state.iterdir(), key=lambda path: path.stat().st_mtime_ns))


_FILES: Mapping[str, Callable[[World], str]] = {
    "backup": lambda world: world.private("backup.ndjson", _offset(world)),
    "configs": _configs,
    "created": lambda world: world.private("created.json", json.dumps(_created(world))),
    "connector": _connector,
    "metrics": World.metrics,
    "offsets": lambda world: world.private("offsets.ndjson", _offset(world)),
    "out": lambda world: str(world.directory.parent / "out.ndjson"),
    "page": lambda world: str(world.directory.parent / "page.html"),
    "plan": lambda world: str(world.directory.parent / "plan.json"),
    "properties": lambda world: str(world.properties),
    "restart": lambda world: str(world.restart),
    "worker": lambda world: world.private(
        "other.properties", f"bootstrap.servers=h:1\noffset.storage.topic=x\n{CLIENT}"
    ),
    "written": _written,
}
