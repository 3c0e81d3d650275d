"""`python -m tests.run.first_starts kafka|newest-kafka|spark`: keeps the classes of those JVMs, where nobody has yet.

In a run from empty caches dozens of JVMs would start without, and each that is stopped would write its own. What is
kept already costs a look. A JVM that does not start is for the tests to tell. Kafka's are of the versions that a run
starts a dozen times and more: the sandbox's own, and the newest.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from eosctl.sandbox.downloads.jars import cache_dir
from eosctl.sandbox.settings import DEFAULT_VERSION, StackSpec, supported_versions
from eosctl.sandbox.stack import Stack


def start_kafka(folder: Path, version: str = DEFAULT_VERSION) -> None:
    """Starts a broker and a worker, and stops them."""
    if any((cache_dir(os.environ) / "classes").glob(f"worker-kafka-{version}-*.jsa")):
        return
    stack = Stack.up(StackSpec(kafka_version=version), folder / "stack", name="first", environ=os.environ)
    try:
        stack.down()
    finally:  # Ctrl-C may come while they end
        stack.kill()


def start_newest_kafka(folder: Path) -> None:
    """Does the same with the newest version."""
    start_kafka(folder, supported_versions()[0])


def start_spark(folder: Path) -> None:
    """Starts Spark and has it rehearse a migration."""
    from eosctl.migrate.spark.job import MigrationJob
    from eosctl.migrate.spark.session import spark_context
    from eosctl.migrate.spark.start import rehearse
    from tests.quick_spark import quick_settings

    settings = quick_settings(folder, master="local[1]")
    archive = settings.class_archive()
    if archive is not None and archive.kept() is None:
        with spark_context(settings) as context:
            rehearse(MigrationJob(context, None), folder / "rehearsal")


STARTS: dict[str, Callable[[Path], None]] = {
    "kafka": start_kafka,
    "newest-kafka": start_newest_kafka,
    "spark": start_spark,
}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="eosctl-first-") as made:
        STARTS[sys.argv[1]](Path(made))
