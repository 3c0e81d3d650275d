"""`python3 -m tests.fuzz [READER…] [--examples N] [--seed S]`: damaged input for each reader; what is found is kept.

A finding is printed with its seed and number, once for each exception and line, and put into tests/fuzz/corpus.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from eosctl import bootstrap


def main() -> int:
    """Return 1 where something was found."""
    if not bootstrap.inside_venv():
        bootstrap.run_in_venv(extras=("dev", "spark"), argv=["-m", "tests.fuzz", *sys.argv[1:]])
    from tests.fuzz.command import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
