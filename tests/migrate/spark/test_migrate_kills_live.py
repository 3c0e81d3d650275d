"""`offsets migrate --plan … --yes` killed with -9 at five random moments: each --resume ends in the same bytes per key.

`python3 -m benchmarks.migrate_kills` does the same fifty times with 100,000 records, and kills the JVM too.
"""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest

from tests.migrate.spark.cluster import Cluster
from tests.migrate.spark.killed_moves import KilledMoves, source_lines
from tests.migrate.spark.warm_jvm import WarmJvm

pytestmark = [pytest.mark.live, pytest.mark.spark]

RECORDS = 10_000
"""As many as two tasks are worth."""
SEED, MOMENTS = 20, 5


def test_five_random_moments(cluster: Cluster, warm: WarmJvm, tmp_path: Path) -> None:
    """Four of five hit a run that resumes."""
    cluster.create(cluster.name)
    cluster.write(cluster.name, source_lines(RECORDS))
    moves = KilledMoves(cluster, tmp_path, warm)
    moments = moves.moments(random.Random(SEED))  # noqa: S311 - no secrets
    print(*moves.killed_and_resumed(islice(moments, MOMENTS)), sep="\n")
