"""The topics and files of a migration: their present state, whether they moved since a plan, and stale copies of keys.

Whether a plan of `offsets migrate` still holds is checked without Spark: only records since the plan are read.

Copies of keys on partitions other than the one that a migration writes them to get tombstones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.offsets.migration import MigrationPlan, Mismatch, PlannedTopic, topic_of
from eosctl.core.offsets.names import FILE_PREFIX
from eosctl.core.offsets.records import OffsetKey, decode_key, key_owner
from eosctl.core.records import Bounds, Record, TopicDescription, hidden_of
from eosctl.deadline import Deadline
from eosctl.engine.write import in_transactions, tombstones
from eosctl.errors import InputFileError, NotFoundError, RefusedError, StalePlanError
from eosctl.migrate.journal import EarlierRuns
from eosctl.offsets.listing import HIDDEN
from eosctl.offsets.stores.own import other_partitions, refuse_unfit_sources
from eosctl.ports import TopicReader

OPEN_TRANSACTION_PATIENCE_S = 5.0
"""How long to wait for an open transaction to end: running tasks open and end them all the time."""

CONNECT_PARTITIONS = 25
"""Kafka Connect's own default (`offset.storage.partitions`)."""

LastOffsets = Mapping[tuple[str, int], int]
"""The offset of the last record that was sent to each topic and partition."""
NOTHING_SENT: LastOffsets = MappingProxyType({})


def app_of(app: App, topic: PlannedTopic) -> App:
    """Return the App of the cluster where `topic` is."""
    return app if topic.profile is None else app.elsewhere(topic.profile)


def gather_sources(app: App, names: Sequence[str], *, allow_open_transactions: bool) -> list[PlannedTopic]:
    """Return the sources with their bounds, fixed now; raises NotFoundError, InputFileError or RefusedError."""
    per_cluster(app, names, lambda here, topics, some: refuse_unfit_sources(here, topics, list(map(topic_of, some))))
    planned = look_up(app, names)
    missing = [topic_of(name) for name in names if planned[name] is None]
    files = [name.removeprefix(FILE_PREFIX) for name in missing if name.startswith(FILE_PREFIX)]
    if files:
        raise InputFileError(f"cannot read {files[0]}: there is no such file", hint="Check --from.")
    if missing:
        raise NotFoundError(
            f"topic {some(missing)} does not exist", hint="Check --from, --offset-topic and --bootstrap-server."
        )
    sources = [topic for name in names if (topic := planned[name]) is not None]
    refuse_open_transactions(sources, allowed=allow_open_transactions)
    return sources


def cluster_id_of(app: App, name: str) -> str | None:
    """Return the id of the cluster of a topic with this name in a plan; None for a file."""
    topic = PlannedTopic(name, None, 1, 1)
    if topic.file is not None:
        return None
    with app_of(app, topic).topics() as topics:
        return topics.cluster_id()


def look_up(app: App, names: Sequence[str], *, after: LastOffsets = NOTHING_SENT) -> dict[str, PlannedTopic | None]:
    """Look up each topic or file as it is now, None if it does not exist; one connection per cluster.

    Topics are looked up once a committed reader sees the offsets in `after`; raises DeadlineError if it does not.
    """
    found: dict[str, PlannedTopic | None] = {
        name: _file(name, partitions=CONNECT_PARTITIONS) for name in names if name.startswith(FILE_PREFIX)
    }

    def look(here: App, topics: TopicReader, some_names: Sequence[str]) -> None:
        there = topics.describe([topic_of(name) for name in some_names], configs=False)
        sizes = {topic: found.partitions for topic, found in there.items()}
        bounds = visible_bounds(here, topics, after, sizes) if after else {}
        bounds = _settled_bounds(here, topics, sizes, bounds)
        cluster_id = topics.cluster_id()
        for name in some_names:
            topic = topic_of(name)
            found[name] = _planned(name, there[topic], bounds[topic], cluster_id) if topic in there else None

    per_cluster(app, names, look)
    return found


def _planned(name: str, found: TopicDescription, bounds: tuple[Bounds, ...], cluster_id: str) -> PlannedTopic:
    return PlannedTopic(name, found.topic_id, found.partitions, found.replication_factor, bounds, cluster_id)


def per_cluster(app: App, names: Iterable[str], act: Callable[[App, TopicReader, list[str]], None]) -> None:
    """Call `act` once for each cluster that the names are of; files are of none."""
    clusters: dict[str | None, list[str]] = {}
    for name in names:
        if not name.startswith(FILE_PREFIX):
            clusters.setdefault(name.partition("@")[2] or None, []).append(name)
    for profile, some_names in clusters.items():
        here = app if profile is None else app.elsewhere(profile)
        with here.topics() as topics:
            act(here, topics, some_names)


def _file(name: str, *, partitions: int) -> PlannedTopic | None:
    """Return a file with its digest; that of a Parquet folder is over all its files. Raises InputFileError."""
    path = Path(name.removeprefix(FILE_PREFIX))
    if not path.exists():
        return None
    digest = hashlib.sha256()
    try:
        for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if each.is_file():
                with each.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
    except OSError as exc:
        raise InputFileError(f"cannot read {path}: {exc.strerror or exc}", hint="Check the path.") from exc
    return PlannedTopic(name, digest.hexdigest(), partitions, 1)


def present_topics(
    app: App, planned: Sequence[PlannedTopic], *, after: LastOffsets = NOTHING_SENT
) -> list[PlannedTopic]:
    """Return the topics that exist now, with their bounds once a committed reader sees the offsets in `after`."""
    found = look_up(app, [topic.name for topic in planned], after=after)
    return [
        replace(topic, connectors=one.connectors, partitions=one.partitions if topic.file else topic.partitions)
        for one in planned
        if (topic := found[one.name]) is not None
    ]


def _settled_bounds(
    app: App, topics: TopicReader, sizes: Mapping[str, int], known: Mapping[str, tuple[Bounds, ...]]
) -> dict[str, tuple[Bounds, ...]]:
    """Return the bounds of topics with these `sizes`, some `known`; waits a little for open transactions to end."""
    bounds = {name: known[name] for name in sizes if name in known}
    patience = Deadline.after(min(OPEN_TRANSACTION_PATIENCE_S, app.deadline.remaining_s()), app.clock)
    waiting = [name for name in sizes if name not in bounds or _is_held_back(bounds[name])]
    for _ in patience.rounds(0.2) if waiting else ():
        bounds |= topics.bounds_of(waiting, partitions=sizes)
        waiting = [name for name in waiting if _is_held_back(bounds[name])]
        if not waiting:
            break
    return bounds


def _is_held_back(bounds: tuple[Bounds, ...]) -> bool:
    return any(one.lso < one.end for one in bounds)


def visible_bounds(
    app: App, topics: TopicReader, last_offsets: LastOffsets, sizes: Mapping[str, int] | None = None
) -> dict[str, tuple[Bounds, ...]]:
    """Return the bounds of the topics in `last_offsets` once a committed reader sees these offsets.

    `sizes` are the numbers of partitions of topics that need not be described for it.

    A commit is answered when it is decided; the coordinator writes the markers into the partitions after that (KIP-98,
    `TransactionMarkerChannelManager`, Kafka 4.3). Raises DeadlineError.
    """
    bounds, waiting = dict[str, tuple[Bounds, ...]](), dict(last_offsets)
    for _ in app.deadline.rounds(0.1, least_s=0.1):
        bounds |= topics.bounds_of({topic for topic, _partition in waiting}, partitions=sizes)
        waiting = hidden_of(waiting, bounds)
        if not waiting:
            return bounds
    raise app.deadline.passed("waiting for the commit to reach all partitions; the offsets are written")


def refuse_open_transactions(planned: Sequence[PlannedTopic], *, allowed: bool) -> None:
    """Raise RefusedError with the partitions where committed records may lie behind an open transaction."""
    hidden = [f"{topic.topic}-{partition}" for topic in planned for partition in topic.has_open_transaction()]
    if hidden and not allowed:
        raise RefusedError(
            f"an open transaction on {some(hidden)} may hide committed offsets",
            hint="`eosctl txn hanging` shows its producer; "
            f"{Waiver.ALLOW_OPEN_TRANSACTIONS} goes on without what it hides.",
        )


def moved_topics(
    app: App, planned: Sequence[PlannedTopic], *, allow_open_transactions: bool, created: bool = False
) -> list[PlannedTopic]:
    """Return the topics that have new offsets, bounded by these.

    With `created`, topics that were missing may exist by now. Raises StalePlanError for another cluster, a recreated
    topic, a topic with another number of partitions, or a changed file.
    """
    _refuse_other_clusters(app, planned)
    found = look_up(app, [topic.name for topic in planned])
    moved = []
    for topic in planned:
        now = found[topic.name]
        is_ours = created and topic.topic_id is None
        if (now.topic_id if now else None) != topic.topic_id and not is_ours:
            raise _recreated(topic, now)
        if now is None or now.file is not None:
            continue
        if now.partitions != topic.partitions:
            raise other_partitions(topic.topic, now.partitions, planned=topic.partitions)
        refuse_open_transactions([now], allowed=allow_open_transactions)
        before = {bound.partition: bound.lso for bound in topic.bounds}
        new = tuple(
            Bounds(one.partition, max(one.begin, before.get(one.partition, 0)), one.lso, one.end) for one in now.bounds
        )
        new = tuple(one for one in new if one.lso > one.begin)
        if new:
            moved.append(replace(now, bounds=new, connectors=topic.connectors))
    return moved


def grown_since(planned: Sequence[PlannedTopic], now: Sequence[PlannedTopic]) -> list[PlannedTopic] | None:
    """Return the topics of `now`, bounded by what came since; None if something that was `planned` may be gone.

    A record stays in its log unless a newer one of its key makes it superfluous: if the beginning has not moved, a key
    has what it had, unless what came since says otherwise.
    """
    grown, found = [], {topic.name: topic for topic in now}
    for topic in planned:
        there = found.get(topic.name)
        if there is None or there.file is not None or topic.topic_id not in (None, there.topic_id):
            return None
        before = {bound.partition: bound for bound in topic.bounds}
        new = []
        for one in there.bounds:
            was = before.get(one.partition, replace(one, lso=one.begin))
            if one.begin != was.begin or one.lso < was.lso:
                return None
            new.append(replace(one, begin=was.lso))
        grown.append(replace(there, bounds=tuple(new)))
    return grown


def _refuse_other_clusters(app: App, planned: Sequence[PlannedTopic]) -> None:
    for topic in {topic.profile: topic for topic in planned if topic.file is None}.values():
        now = cluster_id_of(app, topic.name)
        if now != topic.cluster_id:
            raise StalePlanError(
                f"the plan is for cluster {topic.cluster_id}, this is {now}", hint="Check -b, or the profile."
            )


def _recreated(topic: PlannedTopic, now: PlannedTopic | None) -> StalePlanError:
    if topic.file is not None:
        return StalePlanError(f"{topic.file} changed since the plan was made", hint="Plan again.")
    what = "is gone" if now is None else "was created" if topic.topic_id is None else "was recreated"
    return StalePlanError(f"topic {topic.topic} {what} since the plan was made", hint="Plan again.")


def expected_records(planned: Sequence[PlannedTopic]) -> int:
    """Return the maximum number of records to read; for a file an estimate from its size."""
    from eosctl.migrate.spark.files import record_count

    return sum(topic.records() if topic.file is None else record_count(topic.file) for topic in planned)


def some(names: Sequence[str], limit: int = 5) -> str:
    """Return the first names of a list, and how many more there are."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def hidden_offsets(
    app: App, topics: Sequence[PlannedTopic], connectors: Collection[str], *, side: str
) -> tuple[Mismatch, ...]:
    """Return the keys of `connectors` that open transactions hide in `topics` now, by topic and key."""
    found: dict[tuple[str, bytes], Mismatch] = {}
    for topic in topics:
        held_back = set(topic.has_open_transaction())
        if topic.file is not None or not held_back:
            continue
        with app_of(app, topic).topics() as store:
            behind = store.read_behind(topic.topic, [one for one in topic.bounds if one.partition in held_back])
        for record in behind:
            key = decode_key(record.key)
            if isinstance(key, OffsetKey) and key.connector in connectors and topic.gives(key.connector):
                found[topic.name, key.raw] = Mismatch(
                    side, HIDDEN, key.connector, topic.name, record.partition, key.raw, None, None
                )
    return tuple(hidden for _place, hidden in sorted(found.items()))


_ACCEPTED = {
    "source": "writes what the plan has read, not what came since: a connector that goes on from the target reads "
    "again what it has read since then",
    "target": "puts what the plan has read over what came since",
}


def drift_error(side: str, drifted: Sequence[str]) -> StalePlanError:
    """Return the refusal of a plan whose `side` has new offsets of these connectors."""
    return StalePlanError(
        f"the {side} has new offsets of {some(drifted)} since the plan was made; nothing was written",
        hint=f"Stop these connectors and plan again. {Waiver.ACCEPT_DRIFT} {side} {_ACCEPTED[side]}.",
    )


def refuse_stale(
    app: App, plan: MigrationPlan, *, accepted: Collection[str], past: EarlierRuns, allow_open_transactions: bool
) -> None:
    """Raise StalePlanError, or RefusedError for an open transaction, before anything that takes long begins.

    The writes of a run of the plan that was cut off are no drift: then only the source is checked.
    """
    sides = {"source": plan.sources} if past.begun else {"source": plan.sources, "target": plan.targets}
    for side, topics in sides.items():
        moved = moved_topics(app, topics, allow_open_transactions=allow_open_transactions)
        if side in accepted:
            continue
        there = {name for topic in moved for name in _connectors_since(app, topic)}
        drifted = sorted(there & plan.connectors_of(side))
        if drifted:
            raise drift_error(side, drifted)


def _connectors_since(app: App, moved: PlannedTopic) -> set[str]:
    """Return the connectors that have offsets within the new bounds of a topic, if they are taken from it."""
    since = {bound.partition: bound.begin for bound in moved.bounds}
    with app_of(app, moved).topics() as topics:
        records = topics.read(moved.topic, newest_per_key=True, since=since).records
    owners = (key_owner(record.key) for record in records if record.partition in since)
    return {owner.connector for owner in owners if owner is not None and moved.gives(owner.connector)}


def delete_copies(app: App, plan: MigrationPlan, copies: Iterable[Record], *, timestamp_ms: int) -> int:
    """Put a tombstone over each copy, in transactions under `plan.cleaning_id()`, and return their number.

    They come before the values, and so do their timestamps: across partitions the younger record counts for readers
    that go by time.
    """
    here, count = app_of(app, plan.targets[0]), 0
    for rows in in_transactions(tombstones(copies, timestamp_ms=timestamp_ms)):
        with here.with_whole_timeout().topic_writer() as topics:
            last_offsets = topics.write_columns([rows], total=len(rows), transactional_id=plan.cleaning_id())
        with (waiting := here.with_whole_timeout()).topics() as topics:
            visible_bounds(waiting, topics, last_offsets)
        count += len(rows)
    return count
