"""`offsets migrate --plan … --yes` killed with -9 at seeded random moments: does each --resume end in the same bytes?

Everything of the run that is killed goes: eosctl, its JVM, its Python workers. The moments are spread over the stages,
as many in a short one as in a long one. The first run is undisturbed; a difference from what it leaves ends the
benchmark with the moment and the seed. It is no test: `tests/migrate/spark/test_migrate_kills_live.py` is a small one.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

from benchmarks.stacks import own_folder, stack_in
from tests.migrate.spark.cluster import Cluster
from tests.migrate.spark.killed_moves import KilledMoves, source_lines
from tests.migrate.spark.warm_jvm import warm_jvm


def main() -> None:
    """Start a broker and one JVM for what is not killed, and print a line for each moment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no moment after so many minutes")
    parser.add_argument("--partitions", type=int, help="of the new topics: another number than the source's 25")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, {arguments.records:,} records", flush=True)
    with own_folder() as folder, stack_in(folder) as stack:
        kill_often(Cluster(stack.bootstrap_servers, "source"), folder, arguments)


def kill_often(cluster: Cluster, folder: Path, arguments: argparse.Namespace) -> None:
    """Kill at so many moments of one plan, one after the other."""
    give_up_s = time.monotonic() + 60 * arguments.minutes
    cluster.create(cluster.name)
    cluster.write(cluster.name, source_lines(arguments.records))
    flags = ("--partitions", str(arguments.partitions)) if arguments.partitions else ()
    with warm_jvm(folder) as jvm:
        moves = KilledMoves(cluster, folder, jvm, whole=True, flags=flags)
        print("undisturbed:", *(f"{stage} {took_s:.1f} s" for stage, took_s in moves.took_s.items()))
        moments = moves.moments(random.Random(arguments.seed))  # noqa: S311 - no secrets
        done = killed = 0
        while done < arguments.moments and time.monotonic() < give_up_s:
            [told] = moves.killed_and_resumed([next(moments)])
            done, killed = done + 1, killed + (": killed" in told)
            print(f"{done:3} {told}", flush=True)
    print(f"{done} moments, {killed} of them before the end of the run; after every --resume the same bytes per key")


if __name__ == "__main__":
    main()
