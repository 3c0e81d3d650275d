"""`eosctl --help` beside the `--help` of a bare click group with one command (goal: median ratio within 1.3)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.pairs import compare, compile_sources

BARE = """
import click
@click.group()
def root(): pass
@root.command()
def one(): pass
root()
"""


def main() -> None:
    """Prints both and their ratio."""
    compile_sources()
    with tempfile.TemporaryDirectory() as directory:
        bare = Path(directory) / "bare.py"
        bare.write_text(BARE)
        runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
        eosctl = [sys.executable, "-m", "eosctl", "--help"]
        plain = [sys.executable, str(bare), "--help"]
        compare("eosctl --help", lambda: eosctl, "bare click group --help", lambda: plain, runs=runs)


if __name__ == "__main__":
    main()
