"""`python3 -m tests`: format, lint, types, and all tests, with real Kafka, real Connect workers and Spark.

`--fast` leaves out what needs a broker, a worker or Spark, and has fewer generated examples. Paths and any other
arguments go to one pytest: `--slow -m slow` runs what a full run leaves out and a release needs. That is Kafka between
the oldest version and the newest, the files of a release made again and for other Pythons, and what takes minutes. A
full run is many processes (tests/run), a few at a time; a test that is skipped fails it, for green must mean that a
broker ran.
`--kubernetes` builds a control plane of Kubernetes where there is none yet, and runs tests/kubernetes; once it is
there, a full run has those tests, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from eosctl import bootstrap  # noqa: E402 - the checkout must be importable first

if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # see `environment`: the bootstrap, too, goes by it
    if not bootstrap.inside_venv():  # before the imports that need what is installed there
        bootstrap.run_in_venv(extras=("dev", "spark"), argv=["-m", "tests", *sys.argv[1:]])

from tests.kubernetes.program_file import build_program  # noqa: E402
from tests.run import planning  # noqa: E402
from tests.run.memory import FAST_BYTES, LIVE_BYTES, memory_folder  # noqa: E402
from tests.run.parts import Part, Result, environment, run_parts  # noqa: E402

_LIVE_AT_ONCE, _LIVE_AT_MOST = 5, 7
_BESIDE = len(planning.LINT) + 1
_SLOWEST = 25


def main(argv: Sequence[str]) -> int:
    """Runs everything even when a part fails; returns 0 only if all of it is green."""
    arguments = [word for word in argv if word not in ("--fast", "--kubernetes")]
    if "--kubernetes" in argv:
        build_program()
        arguments = arguments or ["tests/kubernetes"]
    if arguments:
        chosen = ["-m", "not live and not spark"] if "--fast" in argv else []
        words = [sys.executable, "-m", "pytest", "--no-skips", *chosen, *arguments]
        return abs(subprocess.run(words, cwd=ROOT, env=environment()).returncode)
    fast = "--fast" in argv
    where = memory_folder(FAST_BYTES if fast else LIVE_BYTES)
    with tempfile.TemporaryDirectory(prefix="eosctl-tests-", dir=where) as folder:
        return _run_all(Path(folder), fast=fast)


def _run_all(folder: Path, *, fast: bool) -> int:
    plan = planning.Plan(fast=fast)

    def follow(result: Result) -> Sequence[Part]:
        _tell(result)
        return plan.after(result)

    at_once, at_most = (0, 0) if fast else (_LIVE_AT_ONCE, _LIVE_AT_MOST)
    results = run_parts(plan.first(), folder, at_once=at_once, at_most=at_most, beside=_BESIDE, follow=follow)
    never_run = [] if fast else planning.never_run([result.outcomes for result in results])
    return _summary(results, never_run=never_run)


def _tell(result: Result) -> None:
    """A line for a part that is green; all that it printed, and what is wrong, for one that is not."""
    count = f"{len(result.outcomes.passed)} passed, " if result.outcomes.passed else ""
    took = f"{count}{result.seconds:.0f} s, {result.cpu_s:.0f} CPU s"
    if not result.faults:
        print(f"ok      {result.part.name}: {took}", flush=True)
        return
    print(result.output.rstrip())
    print(f"FAILED  {result.part.name}: {'; '.join(result.faults)} ({took})", flush=True)


def _summary(results: Sequence[Result], *, never_run: Sequence[str]) -> int:
    """Prints the slowest tests, the parts that failed and the count; the exit code of the run."""
    outcomes = [result.outcomes for result in results]
    slowest = sorted(((s, test) for each in outcomes for test, s in each.duration_s.items()), reverse=True)
    print(f"\nslowest {min(_SLOWEST, len(slowest))} tests (with the start of what they need):")
    for seconds, test in slowest[:_SLOWEST]:
        print(f"{seconds:7.1f} s  {test}")
    red = [result for result in results if result.faults]
    print()
    for result in red:
        print(f"FAILED  {result.part.name}: {'; '.join(result.faults)}")
    if never_run:
        print(f"FAILED  {len(never_run)} tests are in no part, first {never_run[0]}")
    passed, failed, skipped = (
        sum(len(getattr(each, name)) for each in outcomes) for name in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if red or never_run else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("interrupted: every part was stopped", file=sys.stderr)
        sys.exit(130)
