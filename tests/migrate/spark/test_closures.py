"""What Spark is given for a task beside the client's settings is small: it writes large closures to disk, in plain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Self

import trustme
from pyspark import cloudpickle

from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.offsets.migration import ConnectorRoute, MigrationPlan, Parts, PlannedTopic, Tally
from eosctl.core.offsets.views import Policy
from eosctl.core.records import Bounds
from eosctl.kafka.topics.librdkafka import client_properties
from eosctl.migrate.spark.job import MigrationJob

SECRET = "canary-618-password"
CLIENT = ClientSettings(("127.0.0.1:1",), sasl_password=Secret(SECRET))
PARTS: Parts = tuple((number,) for number in range(25))
LARGE = 100_000


class PicklingContext:
    """A SparkContext that runs nothing and keeps the functions of its tasks, pickled as pyspark does."""

    master = "local[2]"
    defaultParallelism = 2  # noqa: N815 - pyspark's name

    def __init__(self) -> None:
        self.pickled: list[bytes] = []

    def setJobGroup(self, *_group: object, **_how: object) -> None:  # noqa: N802 - pyspark's name
        pass

    def statusTracker(self) -> Any:  # noqa: N802 - pyspark's name
        return self

    def getJobIdsForGroup(self, _group: str) -> list[int]:  # noqa: N802 - pyspark's name
        return []

    def parallelize(self, _numbers: Iterable[int], _count: int) -> Self:
        return self

    def mapPartitions(self, work: Callable[..., Any]) -> Self:  # noqa: N802 - pyspark's name
        self.pickled.append(cloudpickle.dumps(work))  # type: ignore[no-untyped-call]
        return self

    def collect(self) -> list[Any]:
        return []


def topics(side: str) -> tuple[PlannedTopic, ...]:
    bounds = tuple(Bounds(partition, 0, 1000, 1000) for partition in range(25))
    return tuple(PlannedTopic(f"{side}-connector-{number:04}", "id", 25, 1, bounds) for number in range(1000))


def test_a_large_closure_has_no_password(tmp_path: Path) -> None:
    """The ranges of 1,000 topics went with the password: 2 MB, which Spark put into a file of its own."""
    context = PicklingContext()
    job = MigrationJob(context, partial(client_properties, CLIENT))  # type: ignore[arg-type] # what it uses of one
    names = [f"connector-{number:05}" for number in range(10_000)]
    sources, targets = topics("source"), topics("target")
    routes = tuple(ConnectorRoute(name, f"new-{name}", "target-connector-0001") for name in names)
    tally = Tally(0, 0, 0, 0, 0, 0, 0, 0, {})
    plan = MigrationPlan("c", "g", Policy.NEWEST, sources, targets, routes, tally, "", parts=PARTS)
    job.snapshot(sources, tmp_path / "source", parts=PARTS, renames=plan.renames())
    job.write(tmp_path, plan, tasks=25, records=0)
    with_secret = [len(closure) for closure in context.pickled if SECRET.encode() in closure]
    assert len(with_secret) == len(context.pickled) == 2, "one reads, one writes"
    assert max(with_secret) < LARGE
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in content for content in written)
    assert any(b"source-connector-0999" in content for content in written), "tasks find their ranges there"


def test_a_task_is_given_no_file_that_only_this_machine_has(tmp_path: Path) -> None:
    """A CA that is no root goes to librdkafka by a file of the process: executors on other machines did not find it."""
    authority = trustme.CA().create_child_ca().cert_pem.bytes().decode()
    settings = ClientSettings(("127.0.0.1:1",), security_protocol="SSL", ssl_ca_pem=authority)
    made = client_properties(settings)["ssl.ca.location"]
    context = PicklingContext()
    job = MigrationJob(context, partial(client_properties, settings))  # type: ignore[arg-type] # what it uses of one
    job.snapshot(topics("source")[:1], tmp_path / "source", parts=PARTS)
    (closure,) = context.pickled
    assert (authority.encode() in closure, made.encode() in closure) == (True, False)
