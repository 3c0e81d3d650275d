"""Checks that topics are offsets topics, before offsets are written to them or read from them."""

from __future__ import annotations

from collections.abc import Collection

from eosctl.app import App
from eosctl.connectors.dedicated import Configs, gather_dedicated_topics
from eosctl.core.offsets.targets import (
    NEWEST_OFFSETS,
    Objection,
    objection_to_name,
    objection_to_records,
    objection_to_settings,
    objection_to_use,
)
from eosctl.core.wording import counted
from eosctl.errors import RefusedError, StalePlanError, UnauthorizedError
from eosctl.events import Event
from eosctl.ports import TopicReader


def refuse_unfit_targets(
    app: App, topics: TopicReader, names: Collection[str], *, configs: Configs | None = None
) -> None:
    """Raise RefusedError for the first of `names` that is not fit for offsets, or would lose them.

    A missing topic is judged by its name, and by the connectors' `configs` (None: as far as they can be known).
    """
    known = _configs(app, topics) if configs is None and names else configs or {}
    for name in names:
        _refuse(name, _by_name(app, name) or objection_to_use(name, known))
    described = topics.describe(names)
    newest = topics.newest_of(list(described), offsets=NEWEST_OFFSETS) if described else {}
    for name, description in described.items():
        _refuse(name, objection_to_records(newest[name]) or objection_to_settings(description, app.target.client))
        if "cleanup.policy" not in description.config:
            message = f"whether topic {name} keeps offsets is not known: its cleanup.policy can't be read"
            app.on_event(Event(f"{message} (DESCRIBE_CONFIGS on Topic {name} is needed)", warning=True))


def refuse_unfit_sources(app: App, topics: TopicReader, names: Collection[str]) -> None:
    """Raise RefusedError for the first of `names` that was never an offsets topic: offsets are not read from it."""
    for name in names:
        _refuse(name, _by_name(app, name))
    existing = list(topics.describe(names, configs=False))
    for name, newest in (topics.newest_of(existing, offsets=NEWEST_OFFSETS) if existing else {}).items():
        _refuse(name, objection_to_records(newest))


def _configs(app: App, topics: TopicReader) -> Configs:
    try:
        return gather_dedicated_topics(app, topics).configs
    except UnauthorizedError:
        return {}


def _by_name(app: App, name: str) -> Objection | None:
    return objection_to_name(name, config_topic=app.target.config_topic, status_topic=app.target.status_topic)


def _refuse(name: str, objection: Objection | None) -> None:
    if objection is not None:
        raise RefusedError(f"topic {name} {objection.message}; nothing was written", hint=objection.hint)


def other_partitions(topic: str, partitions: int, *, planned: int) -> StalePlanError:
    """Return the error for changed partitions: keys belong elsewhere then, and the new partitions were not read."""
    has = counted(partitions, "partition")
    return StalePlanError(f"topic {topic} has {has}, the plan says {planned}", hint="Plan again.")
