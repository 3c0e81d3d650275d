"""The topics and files of a migration: what they are now, whether they moved since a plan, and making missing ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from eosctl.core.migration import FILE_PREFIX, MigrationPlan, PlannedTopic, topic_of
from eosctl.core.records import Bounds, TopicDescription
from eosctl.errors import InputFileError, NotFoundError, RefusedError, StalePlanError
from eosctl.ops.app import App
from eosctl.ops.ports import TopicStore

OPEN_TRANSACTION_PATIENCE_S = 5.0
"""How long a transaction may stay open before it stands in the way: running tasks open and end them all the time."""

_CONNECT_PARTITIONS = 25
"""Kafka Connect's own default (`offset.storage.partitions`)."""


def app_of(app: App, topic: PlannedTopic) -> App:
    """The App of the cluster where `topic` is."""
    return app if topic.profile is None else app.elsewhere(topic.profile)


def gather_sources(app: App, names: Sequence[str], *, allow_open_transactions: bool) -> list[PlannedTopic]:
    """The sources with their bounds, fixed now; raises NotFoundError, InputFileError or RefusedError."""
    planned = _look_up(app, names)
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


def planned_targets(app: App, names: Sequence[str], *, sources: Sequence[PlannedTopic]) -> list[PlannedTopic]:
    """The targets; a missing topic is planned with the partitions and replication factor of the first source topic.

    Raises RefusedError for a file that is there already.
    """
    found = _look_up(app, names)
    like = _like(app, sources)
    clusters: dict[str | None, str | None] = {}  # hundreds of topics, one or two clusters
    targets = []
    for name in names:
        there = found[name]
        if there is not None and there.file is not None:
            raise RefusedError(f"{there.file} exists; nothing was written", hint="Name a file that is not there yet.")
        profile = PlannedTopic(name, None, 1, 1).profile
        if there is None and profile not in clusters:
            clusters[profile] = _cluster_id(app, name)
        targets.append(there or replace(like, name=name, topic_id=None, bounds=(), cluster_id=clusters[profile]))
    return targets


def _like(app: App, sources: Sequence[PlannedTopic]) -> PlannedTopic:
    """What a missing target is made like: the first source that is a topic, else the global topic, else as Connect."""
    for source in sources:
        if source.file is None:
            return source
    name = app.target.offset_topic
    found = _look_up(app, [name])[name] if app.target.client is not None else None
    return found or PlannedTopic(name, None, _CONNECT_PARTITIONS, 1)


def _cluster_id(app: App, name: str) -> str | None:
    topic = PlannedTopic(name, None, 1, 1)
    if topic.file is not None:
        return None
    with app_of(app, topic).topics() as topics:
        return topics.cluster_id()


def _look_up(app: App, names: Sequence[str]) -> dict[str, PlannedTopic | None]:
    """Each name's topic or file as it is now, None for what does not exist; one connection per cluster."""
    found: dict[str, PlannedTopic | None] = {
        name: _file(name, partitions=_CONNECT_PARTITIONS) for name in names if name.startswith(FILE_PREFIX)
    }

    def look(here: App, topics: TopicStore, some_names: Sequence[str]) -> None:
        there, cluster_id = topics.describe([topic_of(name) for name in some_names]), topics.cluster_id()
        for name in some_names:
            one = there.get(topic_of(name))
            planned = None if one is None else planned_topic(topics, one, app=here)
            found[name] = None if planned is None else replace(planned, name=name, cluster_id=cluster_id)

    _per_cluster(app, [name for name in names if not name.startswith(FILE_PREFIX)], look)
    return found


def _per_cluster(app: App, names: Iterable[str], act: Callable[[App, TopicStore, list[str]], None]) -> None:
    """Calls `act` once for each cluster that the names are of."""
    clusters: dict[str | None, list[str]] = {}
    for name in names:
        clusters.setdefault(name.partition("@")[2] or None, []).append(name)
    for profile, some_names in clusters.items():
        here = app if profile is None else app.elsewhere(profile)
        with here.topics() as topics:
            act(here, topics, some_names)


def _file(name: str, *, partitions: int) -> PlannedTopic | None:
    """A file with its digest; a Parquet folder's is of all its files. Raises InputFileError."""
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


def present_topics(app: App, planned: Sequence[PlannedTopic]) -> list[PlannedTopic]:
    """Those that are there now, with their bounds of now."""
    found = _look_up(app, [topic.name for topic in planned])
    return [
        topic if topic.file is None else replace(topic, partitions=one.partitions)
        for one in planned
        if (topic := found[one.name]) is not None
    ]


def planned_topic(topics: TopicStore, description: TopicDescription, *, app: App | None = None) -> PlannedTopic:
    """The topic as it is now; with `app`, waits a little for open transactions to end."""
    bounds = topics.bounds(description.name)
    give_up_s = app.clock.monotonic_s() + OPEN_TRANSACTION_PATIENCE_S if app else 0.0
    while app and any(one.lso < one.end for one in bounds) and app.clock.monotonic_s() < give_up_s:
        app.deadline.sleep(0.2)
        bounds = topics.bounds(description.name)
    return PlannedTopic(
        description.name, description.topic_id, description.partitions, description.replication_factor, bounds
    )


def refuse_open_transactions(planned: Sequence[PlannedTopic], *, allowed: bool) -> None:
    """Raises RefusedError that names the partitions where committed records may lie behind an open transaction."""
    hidden = [f"{topic.topic}-{partition}" for topic in planned for partition in topic.has_open_transaction()]
    if hidden and not allowed:
        raise RefusedError(
            f"an open transaction on {some(hidden)} may hide committed offsets",
            hint="`eosctl txn hanging` tells whose it is; --allow-open-transactions goes on without what it hides.",
        )


def moved_topics(
    app: App, planned: Sequence[PlannedTopic], *, allow_open_transactions: bool, created: bool = False
) -> list[PlannedTopic]:
    """The topics that have new offsets, bounded by what is new.

    With `created`, those that were missing may be there by now. Raises StalePlanError for another cluster, a recreated
    topic, or a changed file.
    """
    _refuse_other_clusters(app, planned)
    found = _look_up(app, [topic.name for topic in planned])
    moved = []
    for topic in planned:
        now = found[topic.name]
        is_ours = created and topic.topic_id is None
        if (now.topic_id if now else None) != topic.topic_id and not is_ours:
            raise _recreated(topic, now)
        if now is None or now.file is not None:
            continue
        refuse_open_transactions([now], allowed=allow_open_transactions)
        before = {bound.partition: bound.lso for bound in topic.bounds}
        new = tuple(
            Bounds(one.partition, max(one.begin, before.get(one.partition, 0)), one.lso, one.end) for one in now.bounds
        )
        new = tuple(one for one in new if one.lso > one.begin)
        if new:
            moved.append(replace(now, bounds=new))
    return moved


def _refuse_other_clusters(app: App, planned: Sequence[PlannedTopic]) -> None:
    for topic in {topic.profile: topic for topic in planned if topic.file is None}.values():
        now = _cluster_id(app, topic.name)
        if now != topic.cluster_id:
            raise StalePlanError(
                f"the plan is for cluster {topic.cluster_id}, this is {now}", hint="Check -b, or the profile."
            )


def _recreated(topic: PlannedTopic, now: PlannedTopic | None) -> StalePlanError:
    if topic.file is not None:
        return StalePlanError(f"{topic.file} changed since the plan was made", hint="Plan again.")
    what = "is gone" if now is None else "was created" if topic.topic_id is None else "was recreated"
    return StalePlanError(f"topic {topic.topic} {what} since the plan was made", hint="Plan again.")


def create_missing(app: App, plan: MigrationPlan) -> tuple[str, ...]:
    """Creates the target topics that the plan says are missing, compacted; returns the names of those it created."""
    missing = [topic for topic in plan.targets if topic.topic_id is None]
    if not missing or not plan.tally.to_write():
        return ()
    with app_of(app, missing[0]).topics() as topics:
        there = topics.describe([topic.topic for topic in missing])
        to_make = [topic for topic in missing if topic.topic not in there]
        for topic in to_make:
            topics.create(
                topic.topic,
                partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                config={"cleanup.policy": "compact"},
            )
    return tuple(topic.topic for topic in to_make)


def wait_until_visible(app: App, last_offsets: Mapping[tuple[str, int], int]) -> None:
    """Waits until a committed reader sees these offsets.

    A commit is answered when it is decided; the coordinator writes the markers into the partitions after that
    (KIP-98, `TransactionMarkerChannelManager`, Kafka 4.3). Raises DeadlineError.
    """
    waiting = dict(last_offsets)
    with app.topics() as topics:
        while waiting:
            for topic in sorted({topic for topic, _partition in waiting}):
                for bound in topics.bounds(topic):
                    if bound.lso > waiting.get((topic, bound.partition), bound.lso):
                        del waiting[topic, bound.partition]
            if waiting:
                app.deadline.check("waiting for the commit to reach all partitions; the offsets are written")
                app.deadline.sleep(0.1)


def expected_records(planned: Sequence[PlannedTopic]) -> int:
    """At most how many records there are to read."""
    return sum(bound.lso - bound.begin for topic in planned for bound in topic.bounds)


def some(names: Sequence[str], limit: int = 5) -> str:
    """The first names of a list, and how many more there are."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
