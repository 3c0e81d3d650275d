"""A migration of one made-up record without Kafka: it makes the JVM load the classes for its archive."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from eosctl.core.offsets.decision import Policy
from eosctl.core.offsets.migration import ConnectorRoute, MigrationPlan, PlannedTopic, Tally
from eosctl.core.records import Bounds, Record
from eosctl.engine.files import land
from eosctl.engine.keys.places import KeyParts
from eosctl.engine.reading.newest import Fold, records_table
from eosctl.migrate.spark.job import MigrationJob
from eosctl.migrate.spark.snapshots import fresh_folder

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
