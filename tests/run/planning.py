"""Which tests go into which part of a full run: those that need the same brokers and workers go together.

A session stack starts with the first test of its part and ends with the part's process. Live tests wait more than
they work, so several parts run side by side; what is long is started first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.run.outcomes import Collected
from tests.run.parts import Part, Result

PART_LIMIT_S = 1500.0
_LINT_LIMIT_S = 300.0
_SOURCES = ("eosctl", "commands", "tests", "benchmarks")
LINT = (
    Part("types", ("mypy", *_SOURCES), _LINT_LIMIT_S),
    Part("format", ("ruff", "format", "--check", "--quiet", *_SOURCES), _LINT_LIMIT_S),
    Part("lint", ("ruff", "check", "--quiet", *_SOURCES), _LINT_LIMIT_S),
)
FIRST_STARTS = tuple(
    Part(f"first start of {what}", ("tests.run.first_starts", what), PART_LIMIT_S) for what in ("kafka", "spark")
)
COLLECTION = Part("collection", ("pytest", "--collect-only", "-q"), _LINT_LIMIT_S)
_UNIT_CHUNKS = 6
_UNIT_S = 0.02
# A live part of which nothing is known: it starts a broker at least.
_LIVE_S = 40.0
# What takes long, in seconds as once seen, live parts side by side: they start in this order; files without a broker
# are dealt out by it.
_SECONDS = {
    "spark+stack": 480,
    "stack": 477,
    "three_brokers": 382,
    "stack and a Spark of their own": 280,
    "game_stack": 258,
    "secure_stack": 255,
    "node+plane+stack": 200,
    "lone_broker": 190,
    "pair": 182,
    "spark": 180,
    "tests/ops/test_upgrade_live.py": 165,
    "old_stack": 145,
    "tests/sandbox/test_sandbox.py": 103,
    "tests/commands/test_demo_live.py": 100,
    "older_stack": 90,
    "oldest_stack": 90,
    "tests/commands/test_broker_down_live.py": 66,
    "tests/ops/test_task_counts_walk_live.py": 52,
    "wheel": 30,
    "tests/test_contract_errors.py": 10,
    "tests/sandbox/test_jars.py": 10,
    "tests/sandbox/test_truststore.py": 10,
    "tests/test_run.py": 12,
    "tests/ops/test_upgrade_apply.py": 20,
    "tests/ops/test_kubernetes_driver.py": 18,
    "tests/wire/test_codecs.py": 14,
    "tests/faults/test_decoders.py": 12,
    "tests/ops/test_migrate_resume.py": 10,
    "tests/render/test_board.py": 8,
    "tests/ops/test_rescue_ops.py": 7,
    "tests/ops/test_migrate_targets.py": 7,
    "tests/ops/test_migrate_apply.py": 6,
    "tests/ops/test_offset_switch.py": 6,
    "tests/ops/test_task_count_write.py": 5,
    "tests/test_canaries.py": 5,
    "tests/wire/test_against_kafka_python.py": 5,
}


@dataclass
class Plan:
    """What runs, and what comes after what; `fast` leaves out what is live.

    Live parts wait for the first starts too: their JVMs are to find the classes that those keep.
    """

    fast: bool
    tests: list[Collected] = field(default_factory=list)
    awaited: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.awaited = {part.name for part in (COLLECTION, *self._starts())}

    def first(self) -> list[Part]:
        """The parts that wait for nothing."""
        return [*self._starts(), COLLECTION, *LINT]

    def after(self, result: Result) -> list[Part]:
        """The parts that were only waiting for this one."""
        if result.part.name not in self.awaited:
            return []
        self.awaited.remove(result.part.name)
        self.tests += result.outcomes.collected or []
        live = [] if self.fast or self.awaited else live_parts(self.tests)
        return [*live, *(unit_parts(self.tests) if result.part == COLLECTION else ())]

    def _starts(self) -> tuple[Part, ...]:
        return () if self.fast else FIRST_STARTS


def unit_parts(tests: Iterable[Collected]) -> list[Part]:
    """What needs no broker, no worker and no Spark, file by file in parts that take about the same time."""
    by_file: dict[str, list[str]] = defaultdict(list)
    for each in tests:
        if not each.marks:
            by_file[_file(each)].append(each.test)
    seconds = {file: _SECONDS.get(file, _UNIT_S * len(names)) for file, names in by_file.items()}
    chunks: list[list[str]] = [[] for _ in range(_UNIT_CHUNKS)]
    for file in sorted(by_file, key=lambda each: (-seconds[each], each)):
        min(chunks, key=lambda files: sum(seconds[each] for each in files)).append(file)
    parts = [[test for file in files for test in by_file[file]] for files in chunks]
    return [_pytest(f"units {number}", names) for number, names in enumerate(parts, 1) if names]


def live_parts(tests: Iterable[Collected]) -> list[Part]:
    """A part per set of session stacks, and one per file for tests that start stacks of their own.

    Tests that start a Spark of their own beside a stack are long, and a part for themselves; those that need nothing
    beside it are short, and one part together.
    """
    by_need: dict[str, list[str]] = defaultdict(list)
    for each in tests:
        if each.marks:
            by_need[_need(each)].append(each.test)
    longest_first = sorted(by_need.items(), key=lambda item: (-_SECONDS.get(item[0], _LIVE_S), item[0]))
    return [_pytest(name, names) for name, names in longest_first]


def _need(each: Collected) -> str:
    own_spark = "spark" in each.marks and "spark" not in each.stacks
    if not each.stacks:
        return "a Spark of their own" if own_spark and "live" not in each.marks else _file(each)
    return "+".join(sorted(each.stacks)) + (" and a Spark of their own" if own_spark else "")


def _pytest(name: str, tests: Sequence[str]) -> Part:
    return Part(name, ("pytest", "-q", "--no-skips"), PART_LIMIT_S, tuple(tests))


def _file(each: Collected) -> str:
    return each.test.partition("::")[0]
