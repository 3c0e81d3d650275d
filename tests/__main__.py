"""`python3 -m tests`: format, lint, types, then pytest with a real Kafka, real Connect workers and a Spark session.

`--fast` leaves out what needs a broker, a worker or Spark. Other arguments go to pytest. A test that is skipped fails
the full run: a green run must mean that a broker ran.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from eosctl import bootstrap  # noqa: E402 - the checkout must be importable first

_SOURCES = ["eosctl", "commands", "tests", "benchmarks"]


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
        ["pytest", *(["-m", "not live and not spark"] if fast else ["--no-skips"]), *arguments],
    ]
    return max([_run(step) for step in steps])


def _run(step: list[str]) -> int:
    print(f"$ {' '.join(step)}", flush=True)
    return subprocess.run([sys.executable, "-m", *step], cwd=ROOT, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
