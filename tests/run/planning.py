"""Which tests go into which part of a full run: those that need the same brokers and workers go together.

A session stack starts with the first test of its part and ends with the part's process. Live tests wait more than
they work, so several parts run side by side; what is long is started first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tests.run.outcomes import Collected
from tests.run.parts import Part

PART_LIMIT_S = 1500.0
_LINT_LIMIT_S = 300.0
_SOURCES = ("eosctl", "commands", "tests", "benchmarks")
LINT = (
    Part("types", ("mypy", *_SOURCES), _LINT_LIMIT_S),
    Part("format", ("ruff", "format", "--check", "--quiet", *_SOURCES), _LINT_LIMIT_S),
    Part("lint", ("ruff", "check", "--quiet", *_SOURCES), _LINT_LIMIT_S),
)
COLLECTION = Part("collection", ("pytest", "--collect-only", "-q"), _LINT_LIMIT_S)
_UNIT_CHUNKS = 8
# parts that take long, in seconds as once seen, so that they start first; the others follow by their number of tests
_SECONDS = {
    "spark+stack": 380,
    "stack": 360,
    "three_brokers": 290,
    "stack and a Spark of their own": 210,
    "secure_stack": 160,
    "lone_broker": 150,
    "pair": 150,
    "old_stack": 140,
    "spark": 135,
    "tests/ops/test_upgrade_live.py": 105,
    "oldest_stack": 71,
    "tests/sandbox/test_sandbox.py": 65,
    "tests/commands/test_demo_live.py": 62,
    "tests/commands/test_broker_down_live.py": 57,
}


def unit_parts(tests: Iterable[Collected]) -> list[Part]:
    """What needs no broker, no worker and no Spark, file by file in parts of about the same number of tests."""
    by_file: dict[str, list[str]] = defaultdict(list)
    for each in tests:
        if not each.marks:
            by_file[_file(each)].append(each.test)
    chunks: list[list[str]] = [[] for _ in range(_UNIT_CHUNKS)]
    for _, names in sorted(by_file.items(), key=lambda item: -len(item[1])):
        min(chunks, key=len).extend(names)
    return [_pytest(f"units {number}", names) for number, names in enumerate(chunks, 1) if names]


def live_parts(tests: Iterable[Collected]) -> list[Part]:
    """A part per set of session stacks, and one per file for tests that start stacks of their own.

    Tests that start a Spark of their own beside a stack are long, and a part for themselves.
    """
    by_need: dict[str, list[str]] = defaultdict(list)
    for each in tests:
        if each.marks:
            by_need[_need(each)].append(each.test)
    longest_first = sorted(by_need.items(), key=lambda item: (-_SECONDS.get(item[0], len(item[1])), item[0]))
    return [_pytest(name, names) for name, names in longest_first]


def _need(each: Collected) -> str:
    if not each.stacks:
        return _file(each)
    own_spark = "spark" in each.marks and "spark" not in each.stacks
    return "+".join(sorted(each.stacks)) + (" and a Spark of their own" if own_spark else "")


def _pytest(name: str, tests: Sequence[str]) -> Part:
    return Part(name, ("pytest", "-q", "--no-skips"), PART_LIMIT_S, tuple(tests))


def _file(each: Collected) -> str:
    return each.test.partition("::")[0]
