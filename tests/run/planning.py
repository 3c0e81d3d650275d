"""Which tests go into which part of a full run: those that need the same brokers and workers go together.

A session stack starts with the first test of its part and ends with the part's process. Live tests wait more than
they work, so several parts run side by side; what is long is started first. What only works, linters and the tests
without a broker, gives way to them, and so fills what they leave.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.audit.browser.chromium import browser
from tests.kubernetes.program_file import kept_program
from tests.run.outcomes import Collected, Outcomes
from tests.run.parts import ROOT, Part, Result
from tests.run.sharing import TOGETHER

PART_LIMIT_S = 1500.0
_PATIENT_LIMIT_S = 3 * PART_LIMIT_S  # of a part that gives way, also to what else runs on a machine
_PATIENT_TEST_S = 3 * 600.0  # of one of its tests, likewise: others have what pyproject.toml says
_LINT_LIMIT_S = 300.0
_SOURCES = ("eosctl", "commands", "tests", "tools", "benchmarks")
LINT = (
    Part("format", ("ruff", "format", "--check", "--quiet", *_SOURCES), _PATIENT_LIMIT_S, gives_way=True),
    Part("lint", ("ruff", "check", "--quiet", *_SOURCES), _PATIENT_LIMIT_S, gives_way=True),
    Part("types", ("mypy", *_SOURCES), _PATIENT_LIMIT_S, gives_way=True),
)
FIRST_STARTS = tuple(
    Part(f"first start of {what}", ("tests.run.first_starts", what), PART_LIMIT_S)
    for what in ("kafka", "newest-kafka", "spark")
)
_LIVE = "live or spark"  # what needs a broker, a worker or Spark
_LIVE_MARK = re.compile(r"mark\.(live|spark)\b")
_PYTEST = ("pytest", "-q", "--no-skips")
# A live part of which nothing is known: it starts a broker at least, and may be long.
_LIVE_S = 150.0
# What takes long, in seconds as once seen, live parts side by side: they start in this order.
_SECONDS = {
    "stack": 580,
    "game_stack": 420,
    "three_brokers": 400,
    "node+plane+stack": 270,
    "pair": 260,
    "stack+warm and a Spark of their own": 215,
    "newest_stack": 235,
    "game_stack+prometheus": 220,
    "short ones": 205,
    "spark+stack": 185,
    "secure_stack": 160,
    "old_stack": 150,
    "tests/gameday/test_missing_live.py": 140,
    "lone_broker": 138,
    "neighbours": 138,
    "tests/upgrade/test_upgrade_live.py": 137,
    "oldest_stack": 95,
    "tests/sandbox/test_login.py": 64,
    "tests/sandbox/test_sandbox.py": 57,
    "tests/sandbox/test_demo_live.py": 38,
    "tests/docs_site/test_tutorial_live.py": 17,
}
# What goes with another part: a start of Spark takes nine seconds of CPU time, and a pytest two.
_WITH = {
    "spark": "spark+stack",
    "a Spark of their own": "short ones",
    "plane+stack": "node+plane+stack",
    "node+plane+stack and a Spark of their own": "node+plane+stack",
    "operators+plane+stack": "node+plane+stack",
    "release": "newest_stack",
    "newest_stack+release": "newest_stack",
    "tests/packaging/test_release_live.py": "newest_stack",
    "tests/test_contract_errors.py": "short ones",
    "tests/sandbox/test_jars.py": "short ones",
    "tests/sandbox/test_truststore.py": "short ones",
    "tests/sandbox/test_moved_classes.py": "short ones",
    "tests/plugins/test_kafka_jars_live.py": "short ones",
    "tests/offsets/test_offset_moves_live.py": "short ones",
    "tests/clusters/test_broker_down_live.py": "short ones",
    "tests/rehearse/test_rehearse_live.py": "short ones",
    "tests/task_counts/test_task_counts_walk_live.py": "short ones",
}
# What takes longest without a broker, waits included: it is begun first, the others by their size.
_LONG_UNITS = (
    "tests/fuzz/test_fuzz.py",
    "tests/audit/test_histories.py",
    "tests/watch/test_screen.py",
    "tests/exporter/test_exporter_command.py",
    "tests/exporter/test_web_access.py",
    "tests/test_run.py",
    "tests/upgrade/roll/test_upgrade_apply.py",
    *TOGETHER,
    "tests/test_every_write.py",
    "tests/migrate/test_offsets_migrate.py",
    "tests/upgrade/test_upgrade_mirror_maker.py",
)


@dataclass
class Plan:
    """What runs, and what comes after what; `fast` leaves out what is live.

    Live parts wait for the first starts too: their JVMs are to find the classes that those keep.
    """

    fast: bool
    tests: list[Collected] = field(default_factory=list)
    awaited: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.awaited = {part.name for part in self._awaited()}

    def first(self) -> list[Part]:
        """The parts that wait for nothing."""
        return [*self._awaited(), *LINT, unit_part(test_files(), 5 if self.fast else 3, fast=self.fast)]

    def after(self, result: Result) -> list[Part]:
        """The parts that were only waiting for this one."""
        if result.part.name not in self.awaited:
            return []
        self.awaited.remove(result.part.name)
        self.tests += result.outcomes.collected or []
        return [] if self.awaited else live_parts(self.tests)

    def _awaited(self) -> tuple[Part, ...]:
        return () if self.fast else (*FIRST_STARTS, collection_part())


def test_files() -> dict[str, int]:
    """Every file with tests, and its bytes; without those that need what this machine has not.

    That is the control plane of Kubernetes where nobody has built it, and a browser. What is named is collected,
    whatever the folder's conftest says.
    """
    lacking = [] if kept_program().exists() else ["kubernetes"]
    lacking += [] if browser() else ["browser"]
    there = [file for file in sorted((ROOT / "tests").rglob("test_*.py")) if file.parent.name not in lacking]
    return {str(path.relative_to(ROOT)): path.stat().st_size for path in there}


def collection_part() -> Part:
    """Collects what is live in files that say so, or whose folder's conftest does: to import all takes 14 s.

    What it misses a part of units leaves out: see `never_run`.
    """
    files = [file for file in test_files() if _says_live(ROOT / file)]
    return Part("collection", ("pytest", "--collect-only", "-q", "-m", _LIVE, *files), _LINT_LIMIT_S)


def _says_live(file: Path) -> bool:
    texts = (path.read_text(encoding="utf-8") for path in (file, file.with_name("conftest.py")) if path.exists())
    return any(_LIVE_MARK.search(text) for text in texts)


def never_run(outcomes: Sequence[Outcomes]) -> list[str]:
    """The tests that a part left to others, and that no part has an outcome of."""
    left_out = set[str]().union(*(each.left_out for each in outcomes))
    return sorted(left_out.difference(*(each.passed | each.failed | each.skipped for each in outcomes)))


def unit_part(files: Mapping[str, int], processes: int, *, fast: bool = False) -> Part:
    """What needs no broker, no worker and no Spark, of files and their bytes, in that many processes (`sharing`).

    `fast`: with 30 examples for each property that asks for no other number, where a full run has 50.
    """
    ranks = {file: rank for rank, file in enumerate(_LONG_UNITS)}
    in_order = sorted(files, key=lambda file: (ranks.get(file, len(ranks)), -files[file], file))
    shared = ["-p", "tests.run.sharing", f"--processes={processes}", f"--timeout={_PATIENT_TEST_S:g}"]
    shared += ["--hypothesis-profile=few"] if fast else []
    return Part("units", (*_PYTEST, *shared, "-m", f"not ({_LIVE})", *in_order), _PATIENT_LIMIT_S, gives_way=True)


def live_parts(tests: Iterable[Collected]) -> list[Part]:
    """A part per set of session stacks, and one per file for tests that start stacks of their own.

    Tests that start a Spark of their own beside a stack are long, and a part for themselves. What is known to be short
    is one part together, and the tests that share a Spark are one with those that have it and a stack.
    """
    by_need: dict[str, list[str]] = defaultdict(list)
    for each in tests:
        if each.marks:
            need = _need(each)
            by_need[_WITH.get(need, need)].append(each.test)
    longest_first = sorted(by_need.items(), key=lambda item: (-_SECONDS.get(item[0], _LIVE_S), item[0]))
    return [_pytest(name, names) for name, names in longest_first]


def _need(each: Collected) -> str:
    own_spark = "spark" in each.marks and "spark" not in each.stacks
    if not each.stacks:
        return "a Spark of their own" if own_spark and "live" not in each.marks else _file(each)
    return "+".join(sorted(each.stacks)) + (" and a Spark of their own" if own_spark else "")


def _pytest(name: str, tests: Sequence[str]) -> Part:
    return Part(name, _PYTEST, PART_LIMIT_S, tuple(tests))


def _file(each: Collected) -> str:
    return each.test.partition("::")[0]
