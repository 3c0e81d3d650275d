"""The plan of a bulk migration of source offsets, and the results of its stages, as values.

A plan has its sources, its targets, and its effects. It can be reviewed, kept and applied later
(`core.kept.plan_file`); it holds no secrets. Nothing here reads or writes a topic.

Results of stages can be reported, journaled and compared without Spark.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.ids import TransactionalId, migration_transactional_id
from eosctl.core.kept.plan_file import PlanFormat, digest_of
from eosctl.core.offsets.names import FILE_PREFIX
from eosctl.core.offsets.records import quoted_name
from eosctl.core.offsets.views import Policy
from eosctl.core.records import Bounds
from eosctl.core.wording import counted
from eosctl.errors import EosctlError, UsageError

_FILES = PlanFormat("eosctl-offsets-migration", 8, "offsets migrate")
PART_RECORDS = 500_000
"""The approximate largest number of records in one part of a large work."""
_MANY_PARTITIONS, _FULLER = 16, 1.25
"""The number of partitions per task from which they are many; how much more than the others one task may write."""
PART_BYTES = 1 << 28
"""The approximate largest size of a part on one side: an Arrow array, which a task may make of all of it, ends at 2
GiB.
"""
Parts = tuple[tuple[int, ...], ...]
"""The partitions of keys in a topic of a given number of partitions, each in one part (`parts_of`)."""
ONE_PART: Parts = ((0,),)
Item = TypeVar("Item")


class PlannedTopic(Struct, frozen=True):
    """A topic, or a file of records, as it was when the plan was made.

    `name` is unique in the plan: a topic, `TOPIC@PROFILE` for one on another cluster, or `file:PATH`. `topic_id` None
    means that it does not exist and will be created; a file's is its sha256. A file has no `cluster_id`. `connectors`
    are those whose offsets are taken from it, because it is their own topic; None means all that it has.
    """

    name: str
    topic_id: str | None
    partitions: int
    replication_factor: int
    bounds: tuple[Bounds, ...] = ()
    cluster_id: str | None = None
    connectors: tuple[str, ...] | None = None

    @property
    def file(self) -> str | None:
        """The path, if this is a file."""
        return self.name.removeprefix(FILE_PREFIX) if self.name.startswith(FILE_PREFIX) else None

    @property
    def profile(self) -> str | None:
        """The profile that names its cluster; None for the cluster that the command is about, and for files."""
        return None if self.file is not None else self.name.partition("@")[2] or None

    @property
    def topic(self) -> str:
        """Its name on its cluster."""
        return topic_of(self.name)

    def gives(self, connector: str) -> bool:
        """Return whether the plan takes the offsets of `connector`, if there are any, from this topic."""
        return self.connectors is None or connector in self.connectors

    def records(self) -> int:
        """Return the largest number of records that it may hold."""
        return sum(bound.lso - bound.begin for bound in self.bounds)

    def has_open_transaction(self) -> tuple[int, ...]:
        """Return the partitions where an open transaction hides the records behind it."""
        return tuple(bound.partition for bound in self.bounds if bound.lso < bound.end)


def topic_of(name: str) -> str:
    """Return the name of a topic on its cluster, from its name in a plan; topic names contain no @."""
    return name if name.startswith(FILE_PREFIX) else name.partition("@")[0]


class ConnectorRoute(Struct, frozen=True):
    """The target topic and the target name of one connector's offsets."""

    connector: str
    target_connector: str
    target_topic: str


class Tally(Struct, frozen=True):
    """The outcome for every record that was read; `check` proves that none is missing.

    Its numbers come from different places: `records` from the readers, one by one; the folded keys, their owners and
    the decisions from the files that each stage wrote. `records` = `older` + `unowned` + `not_selected` + `superseded`
    + `keys`, and `keys` = the sum of `counts`. `unowned` are keys from which no connector could be read; `superseded`
    lost their key to another source, or to a rename. `conflicts` counts the keys on which source and target disagree,
    however that was decided. `scattered` keys were found on more than one partition of their topic. `others` counts, by
    topic and connector, the keys of other connectors in a connector's own topic: they are `not_selected`.
    """

    records: int
    older: int
    unowned: int
    not_selected: int
    superseded: int
    keys: int
    conflicts: int
    scattered: int
    counts: Mapping[str, int]
    connector_counts: Mapping[str, Mapping[str, int]] = {}
    others: Mapping[str, Mapping[str, int]] = {}

    @classmethod
    def of(
        cls,
        groups: Iterable[tuple[str, str, int, int, int]],
        *,
        records: int,
        keys: Iterable[tuple[str, str | None, int]],
        sources: Sequence[PlannedTopic],
        routed: Collection[str],
        scattered: int,
    ) -> Tally:
        """Count (connector, action, keys, claims, conflicts), which may come in pieces, and the keys that were read.

        `keys` are (topic, connector or None without an owner, number of keys), in pieces too; `routed` are the
        connectors that are migrated.

        Each number is counted by itself: computing one as the rest of the others would hide a lost key.
        """
        counts = {"write": 0, "delete": 0, "keep": 0, "conflict": 0}
        per_connector: dict[str, dict[str, int]] = {}
        decided = claimed = conflicts = read = unowned = not_selected = 0
        others, source_of = dict[str, dict[str, int]](), {topic.name: topic for topic in sources}
        for name, owner, number in keys:
            read += number
            if owner is None:
                unowned += number
                continue
            if not source_of[name].gives(owner):
                counts_of = others.setdefault(name, {})
                counts_of[owner] = counts_of.get(owner, 0) + number
            if owner not in routed or not source_of[name].gives(owner):
                not_selected += number
        for connector, action, number, claims, both in sorted(groups):
            counts[action] += number
            of_connector = per_connector.setdefault(connector, {})
            of_connector[action] = of_connector.get(action, 0) + number
            decided, claimed, conflicts = decided + number, claimed + claims, conflicts + both
        return cls(
            records=records,
            older=records - read,
            unowned=unowned,
            not_selected=not_selected,
            superseded=claimed - decided,
            keys=decided,
            conflicts=conflicts,
            scattered=scattered,
            counts=counts,
            connector_counts=per_connector,
            others=others,
        )

    def check(self) -> None:
        """Raise EosctlError unless the counts add up; otherwise a key would be lost."""
        parts = self.older + self.unowned + self.not_selected + self.superseded + self.keys
        if self.records != parts or self.keys != sum(self.counts.values()):
            raise EosctlError(
                f"the counts do not add up, so nothing is written: {self.records} records were read, {parts} are "
                f"accounted for; {counted(self.keys, 'key')} and {counted(sum(self.counts.values()), 'action')}",
                hint="This is a defect of eosctl; please report it with the plan's snapshot folder.",
            )

    def to_write(self) -> int:
        """Return the number of records that the plan sends, tombstones included."""
        return self.counts["write"] + self.counts["delete"]


class MigrationPlan(Struct, frozen=True, dict=True):
    """Everything that apply and verify need; `sources` are in order of precedence, the first wins.

    `cluster_id` is the cluster that is written to; None where the target is a file. `snapshot_base` is the folder that
    holds one snapshot folder per plan. `sample` has up to 100 rows for people. `parts` divide the work: everything
    known of a key, on both sides, is in one of them (`parts_of`). `planned_at` is the time of planning, RFC 3339: a
    fresh plan differs from an applied one, even if everything else is equal. `stale_copies` is the number of live
    copies, on other partitions of the targets, of keys that are sent: they get tombstones.
    """

    cluster_id: str | None
    group_id: str | None
    policy: Policy
    sources: tuple[PlannedTopic, ...]
    targets: tuple[PlannedTopic, ...]
    routes: tuple[ConnectorRoute, ...]
    tally: Tally
    snapshot_base: str
    sample: Sequence[Mapping[str, object]] = ()
    overrides: tuple[str, ...] = ()
    parts: Parts = ONE_PART
    planned_at: str = ""
    stale_copies: int = 0

    def digest(self) -> str:
        """Return the sha256 of the canonical JSON, in hex."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        """Made once: each use of the plan's name made the JSON of the whole plan again."""
        return digest_of(self)

    def name(self) -> str:
        """Return the short name of this plan, which its snapshot folder and its transactional ids contain."""
        return self.digest()[:16]

    def transactional_id(self) -> str:
        """Return the prefix of the transactional ids of its write tasks; a dash and the task's number follow."""
        return migration_transactional_id(self.name())

    def cleaning_id(self) -> TransactionalId:
        """Return the transactional id that writes tombstones over stale copies."""
        return TransactionalId(f"{self.transactional_id()}-stale")

    def target_file(self) -> str | None:
        """Return the path of the target if it is a file."""
        return self.targets[0].file if self.targets else None

    def target_profile(self) -> str | None:
        """Return the profile that names the target's cluster."""
        return self.targets[0].profile if self.targets else None

    def profiles(self) -> list[str]:
        """Return the profiles of all other clusters that are read or written, sorted."""
        return sorted({topic.profile for topic in (*self.sources, *self.targets) if topic.profile})

    def renames(self) -> dict[str, str]:
        """Map each renamed connector's name in the source to its new name."""
        return {
            route.connector: route.target_connector
            for route in self.routes
            if route.connector != route.target_connector
        }

    def connectors(self) -> list[str]:
        """Return all connector names whose offsets the plan reads or writes, sorted."""
        return sorted({name for route in self.routes for name in (route.connector, route.target_connector)})

    def connectors_of(self, side: str) -> set[str]:
        """Return the connectors whose offsets the plan moves, by their names on that side, `source` or `target`."""
        return {route.connector if side == "source" else route.target_connector for route in self.routes}


def plan_file_text(plan: MigrationPlan) -> str:
    """Return the text that `--plan-out` writes."""
    return _FILES.text(plan)


def read_plan(text: str, *, path: str) -> MigrationPlan:
    """Read the plan of a plan file; raises InputFileError if it is not one, or was changed after it was written."""
    return _FILES.read(text, MigrationPlan, path=path)


def writers_of(plan: MigrationPlan) -> list[list[tuple[str, int]]] | None:
    """Assign to each task the target partitions that it alone writes.

    They are neighbours, by topic (as on its cluster) and number. Neighbours lie together in the files of decisions.
    None means that each task writes the keys of its part, to any partition: where there are few partitions, or where
    one task would have much more to write than others. Each partition that a task writes costs it, the coordinator and
    the leader something in every transaction: a thousand topics took six times the CPU when each task wrote to all.
    """
    tasks = len(plan.parts)
    sent = Counter[str]()
    for route in plan.routes:
        counts = plan.tally.connector_counts.get(route.connector, {})
        sent[route.target_topic] += sum(counts.get(action, 0) for action in ("write", "delete"))
    places = [(topic, number) for topic in plan.targets for number in range(topic.partitions)]
    if tasks == 1 or len(places) < _MANY_PARTITIONS * tasks:
        return None
    lengths = {topic.name: 1 + sent[topic.name] // topic.partitions for topic in plan.targets}
    places.sort(key=lambda place: (place[0].topic, place[1]))
    bins = in_runs([(lengths[topic.name], (topic, number)) for topic, number in places], tasks)
    loads = [sum(lengths[topic.name] for topic, _number in some) for some in bins]
    if max(loads) > _FULLER * sum(loads) / tasks:
        return None
    return [[(topic.topic, number) for topic, number in some] for some in bins]


def in_bins(items: Iterable[tuple[int, Item]], count: int) -> list[list[Item]]:
    """Divide items into `count` bins of about equal total length, the longest item first."""
    heap = [(0, number) for number in range(count)]
    bins: list[list[Item]] = [[] for _ in range(count)]
    for length, item in sorted(items, key=lambda pair: -pair[0]):
        filled, number = heapq.heappop(heap)
        bins[number].append(item)
        heapq.heappush(heap, (filled + length, number))
    return bins


def in_runs(items: Iterable[tuple[int, Item]], count: int) -> list[list[Item]]:
    """Cut items, in this order, into `count` runs of about equal total length."""
    items = list(items)
    twice, behind = 2 * sum(length for length, _ in items), 0
    runs: list[list[Item]] = [[] for _ in range(count)]
    for length, item in items:  # where its middle is
        runs[min(count - 1, (2 * behind + length) * count // max(1, twice))].append(item)
        behind += length
    return runs


def parts_of(sources: Sequence[PlannedTopic], *, records: int, least: int) -> Parts:
    """Divide the work into parts: a key belongs to the part that has its partition in a topic of that many partitions.

    That number is the partition count of the largest source, so that its partitions need not be divided, or a multiple
    of it. There are at least `least` parts, and more where a part of about that many `records` may not fit into one
    task.
    """
    topics = [topic for topic in sources if topic.file is None]
    largest = max(topics, key=PlannedTopic.records, default=sources[0])
    count = max(least, -(-records // PART_RECORDS))
    multiple = -(-count // largest.partitions)
    lengths = {bound.partition: bound.lso - bound.begin for bound in largest.bounds}
    places = ((lengths.get(place % largest.partitions, 0), place) for place in range(multiple * largest.partitions))
    return tuple(tuple(sorted(part)) for part in in_bins(places, count) if part)


def check_renames(renames: Mapping[str, str], connectors: Iterable[str]) -> None:
    """Raise UsageError for a rename to an impossible name, of an unselected connector, or of two to one name."""
    for new in renames.values():
        quoted_name(new)
    unselected = sorted(set(renames) - set(connectors))
    if unselected:
        raise UsageError(f"--rename names a connector that is not selected: {', '.join(unselected)}")
    if len(set(renames.values())) != len(renames):
        raise UsageError("two connectors are renamed to one name", hint="Migrate them one after the other.")


def plan_routes(
    connectors: Iterable[str], renames: Mapping[str, str], target_topic: Callable[[str], str]
) -> tuple[ConnectorRoute, ...]:
    """Return one route per connector; `target_topic` maps the connector's new name to the topic."""
    named = [(connector, renames.get(connector, connector)) for connector in connectors]
    return tuple(ConnectorRoute(old, new, target_topic(new)) for old, new in sorted(named))


def with_sample(plan: MigrationPlan, rows: Sequence[Mapping[str, object]]) -> MigrationPlan:
    """Return `plan` with rows to show."""
    return replace(plan, sample=tuple(rows))


class Snapshot(Struct, frozen=True):
    """The facts found about one side of a migration.

    They are its connectors, and whether each key is on the partition that Connect's producer chooses. If all are
    (`in_place`), no key is on two partitions. `records` is the number of records read, counted one by one as they came;
    `part_bytes` is their size in each part of the work.
    """

    connectors: frozenset[str] = frozenset()
    in_place: bool = True
    records: int = 0
    part_bytes: Mapping[int, int] = {}

    @classmethod
    def united(cls, found: Iterable[Snapshot]) -> Snapshot:
        """Combine the facts that several readers have found."""
        everything, part_bytes = list(found), Counter[int]()
        for one in everything:
            part_bytes.update(one.part_bytes)
        connectors = frozenset[str]().union(*(one.connectors for one in everything))
        in_place = all(one.in_place for one in everything)
        return cls(connectors, in_place, sum(one.records for one in everything), part_bytes)

    def most_bytes(self) -> int:
        """Return the size of the largest part."""
        return max(self.part_bytes.values(), default=0)


class DecidedKey(Struct, frozen=True):
    """One row of the decisions, for people; `partition` is the key's partition in the target, None without one."""

    route: ConnectorRoute
    source: tuple[str, int, int]
    key: bytes
    action: str
    reason: str
    before: bytes | None
    source_value: bytes | None
    partition: int | None
    partitions: int


class Mismatch(Struct, frozen=True):
    """A key that differs from the plan, on `side` source or target."""

    side: str
    status: str
    connector: str
    topic: str
    partition: int | None
    key: bytes
    expected: bytes | None
    actual: bytes | None


class Comparison(Struct, frozen=True):
    """The outcome of a verification: how many keys were compared and differ, and up to `limit` of the differing ones.

    Nothing is known about the `hidden` keys: each has a record behind an open transaction.
    """

    compared: int
    differing: int
    mismatches: tuple[Mismatch, ...]
    hidden: tuple[Mismatch, ...] = ()

    def is_as_planned(self) -> bool:
        """Return whether every key was visible and matches the plan."""
        return not self.differing and not self.hidden


class SentCounts(Struct, frozen=True):
    """The records that delivery reports confirmed.

    Per topic the records, and the tombstones among them; per partition the last offset.
    """

    topics: Mapping[str, tuple[int, int]] = {}
    last_offsets: Mapping[tuple[str, int], int] = {}
    transactions: int = 0

    def records(self) -> int:
        """Return the number of all records, tombstones included."""
        return sum(written for written, _tombstones in self.topics.values())
