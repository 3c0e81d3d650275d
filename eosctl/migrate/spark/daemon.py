"""Starts the Python processes of a local Spark's tasks from the installed pyspark.

Spark puts a zip of pyspark before it, which each process would compile anew: a second for the first task.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import PurePath

_SPARKS = re.compile(r"(pyspark|py4j).*\.zip")


def without_zips(path: Iterable[str]) -> list[str]:
    """`path` without Spark's zips of pyspark and py4j."""
    return [entry for entry in path if not _SPARKS.fullmatch(PurePath(entry).name)]


if __name__ == "__main__":
    sys.path[:] = without_zips(sys.path)
    from pyspark.daemon import manager

    manager()
