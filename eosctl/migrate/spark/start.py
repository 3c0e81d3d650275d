"""Spark for a migration: finds Java, starts the session, keeps the log; only imported when a migration runs."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from eosctl.core.clients.settings import ClientSettings
from eosctl.errors import UnsupportedError
from eosctl.machine.java import require_java, spark_java_home
from eosctl.machine.packages import install_hint
from eosctl.sandbox.downloads.jars import cache_dir
from eosctl.state.work_folders import work_folder

if TYPE_CHECKING:
    from eosctl.migrate.spark.job import MigrationJob
    from eosctl.migrate.spark.stages import OnProgress


_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit: then the JVM runs already, and keeps no classes for the next start."""


@contextmanager
def spark_job(
    client: ClientSettings | None,
    *,
    snapshots: Path,
    master: str,
    conf: Mapping[str, str],
    on_progress: OnProgress,
    others: Mapping[str, ClientSettings],
) -> Iterator[MigrationJob]:
    """Open a MigrationJob on a Spark session of its own; raises UnsupportedError without Java or pyspark."""
    missing = [name for name in ("pyspark", "pyarrow") if importlib.util.find_spec(name) is None]
    if missing:
        raise UnsupportedError(
            f"offsets migrate runs on Spark; not installed: {', '.join(missing)}",
            hint=f"{install_hint('spark')}. `eosctl offsets merge` works without, within one cluster.",
        )
    from eosctl.migrate.spark.job import MigrationJob
    from eosctl.migrate.spark.rehearsal import rehearse
    from eosctl.migrate.spark.session import SPECULATION, SessionSettings, spark_context
    from eosctl.migrate.spark.tasks import give_back_memory

    give_back_memory()
    if conf.get(SPECULATION, "false").lower() == "true":
        on_progress(
            f"{SPECULATION} stays off: a second copy of a task that writes would fence the first", None, None, ""
        )
    java, cache = require_java(os.environ), cache_dir(os.environ) / "spark"
    with work_folder(Path(tempfile.gettempdir()), "eosctl-spark-") as work:
        settings = SessionSettings(
            work,
            snapshots / "spark.log",
            master=master,
            java_home=spark_java_home(java, cache, work),
            conf=conf,
            cache=None if _SUBMITTED in os.environ else cache,
        )
        with spark_context(settings) as context:
            job = MigrationJob(context, client, on_progress, others)
            job.require_shared(snapshots.resolve())
            yield job
            archive = settings.class_archive()
            if archive is not None and archive.kept() is None:
                on_progress("keeping Spark's classes, once, to start faster the next time", None, None, "")
                rehearse(MigrationJob(context, None), work / "rehearsal")
