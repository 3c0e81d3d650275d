"""Spark for a migration: finds Java, starts the session, keeps the log; only imported when a migration runs.

A migration of one made-up record without Kafka makes the JVM load the classes for its archive.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.offsets.migration import ConnectorRoute, MigrationPlan, PlannedTopic, Tally
from eosctl.core.offsets.views import Policy
from eosctl.core.records import Bounds, Record
from eosctl.engine.files import KeyParts, land
from eosctl.engine.reading.newest import Fold, records_table
from eosctl.errors import UnsupportedError
from eosctl.machine.java import require_java, spark_java_home
from eosctl.machine.packages import install_hint
from eosctl.migrate.spark.job import MigrationJob
from eosctl.migrate.spark.snapshots import fresh_folder
from eosctl.sandbox.downloads.jars import cache_dir
from eosctl.state.work_folders import work_folder

if TYPE_CHECKING:
    from eosctl.migrate.spark.stages import OnProgress


_KEY = b'["rehearsed",{"file":"x"}]'


def rehearse(job: MigrationJob, folder: Path) -> None:
    """Decide, clean and compare below `folder`; a failure costs no more than slower starts."""
    source, target = (PlannedTopic(name, name, 1, 1, (Bounds(0, 0, 1, 1),), "") for name in ("from", "to"))
    route = ConnectorRoute("rehearsed", "rehearsed", target.name)
    plan = MigrationPlan(
        "",
        None,
        Policy.NEWEST,
        (source,),
        (target,),
        (route,),
        Tally(0, 0, 0, 0, 0, 0, 0, 0, {}),
        str(folder),
        parts=((0,),),
    )
    for side, topic, time_ms in (("source", source, 2), ("target", target, 1)):
        record = Record(topic.name, 0, 0, time_ms, _KEY, b"%d" % time_ms)
        fold = Fold(records_table(topic.name, [record], partitions=1), 0, 1, {topic.name: 1})
        land(fresh_folder(folder / side), 0, [fold], KeyParts(plan.parts))
    with suppress(Py4JError, PySparkException):
        plan = replace(plan, tally=job.decide(folder, plan))
        job.sample(folder)
        job.find_stale(folder)
        for side in ("source", "target"):
            job.compare(folder, plan, (), side=side)


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
    from eosctl.migrate.spark.session import SPECULATION, SessionSettings, spark_context
    from eosctl.migrate.spark.snapshots import give_back_memory

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
            if settings.lacks_classes():
                on_progress("keeping Spark's classes, once, to start faster the next time", None, None, "")
                rehearse(MigrationJob(context, None), work / "rehearsal")
