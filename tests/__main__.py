"""`python3 -m tests`: format, lint, types, then pytest with a real Kafka, real Connect workers and a Spark session.

`--fast` leaves out what needs a broker, a worker or Spark. Other arguments go to pytest. A test that is skipped fails
the full run: a green run must mean that a broker ran. The full run is two at a time, for the tests on real workers wait
more than they work; what the second one prints comes after the first.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from eosctl import bootstrap  # noqa: E402 - the checkout must be importable first

_SOURCES = ["eosctl", "commands", "tests", "benchmarks"]
_PARTS = ("live and not spark", "not live or spark")


def main(argv: list[str]) -> int:
    """Runs every step even when one fails; returns 0 only if all passed."""
    if not bootstrap.inside_venv():
        bootstrap.run_in_venv(extras=("dev", "spark"), argv=["-m", "tests", *argv])
    fast = "--fast" in argv
    arguments = [word for word in argv if word != "--fast"]
    steps = [
        ["ruff", "format", "--check", "--quiet", *_SOURCES],
        ["ruff", "check", "--quiet", *_SOURCES],
        ["mypy", *_SOURCES],
    ]
    if fast:
        steps.append(["pytest", "-m", "not live and not spark", *arguments])
    elif arguments:
        steps.append(["pytest", "--no-skips", *arguments])
    codes = [_run(step) for step in steps]
    return max([*codes, *([] if fast or arguments else _run_both_parts())])


def _run(step: list[str]) -> int:
    print(f"$ {shlex.join(step)}", flush=True)
    return subprocess.run([sys.executable, "-m", *step], cwd=ROOT, stdin=subprocess.DEVNULL).returncode


def _run_both_parts() -> list[int]:
    """Everything, in two processes at once; the exit code of each."""
    first, second = (["pytest", "--no-skips", "-m", part] for part in _PARTS)
    with tempfile.TemporaryFile() as output:
        beside = subprocess.Popen(
            [sys.executable, "-m", *second], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            code = _run(first)
        finally:
            beside.wait()
        print(f"$ {shlex.join(second)}", flush=True)
        output.seek(0)
        sys.stdout.write(output.read().decode("utf-8", "replace"))
    return [code, beside.returncode]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
