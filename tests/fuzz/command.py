"""The command line of `python3 -m tests.fuzz`."""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence

from tests.fuzz.reader import SEED, Reader, faults, known_faults
from tests.fuzz.readers import READERS

_EXAMPLES = 100_000
_MOST_BYTES = 6 << 30
"""Of memory: what would take all of the machine's is a MemoryError, and found."""


def run(argv: Sequence[str]) -> int:
    """Return 1 where something was found, 2 for a reader that is not there."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.fuzz", description="Damaged input for each reader.")
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"default: all of {', '.join(READERS)}")
    parser.add_argument("--examples", type=int, default=_EXAMPLES, metavar="N", help="of each (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, metavar="S", help="default: %(default)s")
    asked = parser.parse_args(argv)
    unknown = sorted(set(asked.readers) - READERS.keys())
    if unknown:
        parser.error(f"there is no reader {unknown[0]}; known: {', '.join(READERS)}")
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, resource.RLIM_INFINITY))
    chosen = [READERS[name] for name in asked.readers or READERS]
    return 1 if sum([_run(each, asked.examples, asked.seed) for each in chosen]) else 0


def _run(reader: Reader, examples: int, seed: int) -> int:
    """Print what is found, and a line for the reader; return how many findings there are."""
    begun, kinds = time.process_time(), set[str]()
    for found in known_faults(reader):
        kinds.add(found.kind())
        print(found, flush=True)
    for found in faults(reader, examples, seed=seed):
        if found.kind() not in kinds:
            kinds.add(found.kind())
            print(f"{found}kept as {found.keep()}\n", flush=True)
    state = f"{len(kinds)} FOUND" if kinds else "ok"
    print(f"{state:9} {reader.name}: {examples:,} examples, {time.process_time() - begun:.1f} CPU s", flush=True)
    return len(kinds)
