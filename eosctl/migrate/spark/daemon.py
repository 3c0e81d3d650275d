"""The daemon that starts the Python processes of a local Spark's tasks from the installed pyspark.

Spark puts a zip of pyspark before it, which each process would compile anew: a second for the first task. And the
modules that tasks need are loaded here, once: the processes are forked from this one.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import PurePath

_SPARKS = re.compile(r"(pyspark|py4j).*\.zip")


def without_zips(path: Iterable[str]) -> list[str]:
    """Return `path` without Spark's zips of pyspark and py4j."""
    return [entry for entry in path if not _SPARKS.fullmatch(PurePath(entry).name)]


if __name__ == "__main__":
    sys.path[:] = without_zips(sys.path)
    from pyspark.daemon import manager

    for needed in ("confluent_kafka", "pyspark.worker", "eosctl.migrate.spark.job"):
        import_module(needed)
    gc.freeze()  # collecting garbage would make each process a copy of all this
    manager()
