"""The topics on which the contract of a migration's stages runs, and the stages that work on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from eosctl.core.offsets.migration import ONE_PART, ConnectorRoute, MigrationPlan, Parts, PlannedTopic, Tally
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.views import Policy
from eosctl.core.records import Bounds, OutRecord
from eosctl.migrate.plan import MigrationStages
from eosctl.ports import TopicClient
from tests.contract.clusters import Subject
from tests.sandbox_fixtures import wait_until

PARTITIONS, T = 3, 1_700_000_000_000
NOTHING = Tally(0, 0, 0, 0, 0, 0, 0, 0, {})
Line = tuple[bytes, bytes | None, int]
"""Key, value and seconds after T."""


def key(connector: str, number: int | str) -> bytes:
    return b'["%s",{"f":"%s"}]' % (connector.encode(), str(number).encode())


AWAY = (partition_for(key("a", "gone"), PARTITIONS) + 1) % PARTITIONS
"""Where the target has a key that Connect's producer puts elsewhere."""


@dataclass(frozen=True)
class Stage:
    """The stages, and the topics that they work on."""

    subject: Subject
    stages: MigrationStages
    store: TopicClient

    def create(self, *topics: str) -> None:
        """Nothing is cleaned away: each record counts."""
        config = {"cleanup.policy": "delete", "retention.ms": "-1"}
        for topic in topics:
            self.store.create(topic, partitions=PARTITIONS, replication_factor=1, config=config)

    def put(self, topic: str, *lines: Line, partition: int | None = None) -> None:
        """Records where Connect's producer puts them, unless told otherwise."""
        self.store.write([OutRecord(topic, each, value, partition, T + 1000 * s) for each, value, s in lines])

    def planned(self, *topics: str, after: Mapping[str, PlannedTopic] | None = None) -> tuple[PlannedTopic, ...]:
        """The topics as they are once no transaction is open; with `after`, only what came since then."""

        def settled() -> Mapping[str, tuple[Bounds, ...]]:
            found = self.store.bounds_of(topics)
            return found if all(one.lso == one.end for bounds in found.values() for one in bounds) else {}

        bounds: Mapping[str, tuple[Bounds, ...]] = wait_until(settled, what="transactions to end")
        planned = []
        for name, found in self.store.describe(topics).items():
            begun = {one.partition: one.lso for one in after[name].bounds} if after else {}
            some = tuple(replace(one, begin=begun[one.partition]) if begun else one for one in bounds[name])
            planned.append(PlannedTopic(name, found.topic_id, found.partitions, 1, some, self.store.cluster_id()))
        return tuple(sorted(planned, key=lambda topic: topics.index(topic.name)))

    def newest(self, topic: str) -> dict[bytes | None, tuple[int, bytes | None]]:
        """What Connect finds there: key -> partition and value."""
        self.planned(topic)
        return {record.key: (record.partition, record.value) for record in self.store.read(topic).records}

    def plan(
        self, folder: Path, sources: Sequence[PlannedTopic], targets: Sequence[PlannedTopic], *routes: ConnectorRoute,
        policy: Policy = Policy.TAKE_SOURCE, parts: Parts = ONE_PART,
    ) -> MigrationPlan:  # fmt: skip
        """A plan, decided."""
        plan = MigrationPlan(
            self.store.cluster_id(), "g", policy, tuple(sources), tuple(targets), routes, NOTHING, str(folder),
            parts=parts,
        )  # fmt: skip
        return replace(plan, tally=self.stages.decide(folder, plan))

    def ids(self, plan: MigrationPlan) -> list[str]:
        """The transactional ids that the plan was written with."""
        with self.subject.admin() as admin:
            found = [each.transactional_id for each in admin.list_transactions().complete()]
        return sorted(each for each in found if each.startswith(plan.transactional_id()))


@dataclass(frozen=True)
class Shuffled:
    """Two sources and two targets, with everything that makes a key's decision."""

    folder: Path
    sources: tuple[PlannedTopic, ...]
    targets: tuple[PlannedTopic, ...]
    routes: tuple[ConnectorRoute, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(topic.name for topic in (*self.sources, *self.targets))
