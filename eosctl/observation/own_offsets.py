"""Reads connectors' own offsets topics, for the gate on the effects of a hard downgrade."""

from __future__ import annotations

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY
from eosctl.core.configs.records import OFFSETS_TOPIC
from eosctl.core.offsets.views import fold_store
from eosctl.core.workers.modes import Mode
from eosctl.group.observation.rules import Observation
from eosctl.group.observation.stale import stale_offsets
from eosctl.ports import TopicReader


def with_stale_offsets(app: App, store: TopicReader, observation: Observation) -> Observation:
    """Add the connectors whose own topic is older than the global one; read nothing if none has one.

    Topics that do not exist, or are on another cluster, are judged elsewhere. If a worker is enabled it is too late:
    tasks have continued from their own topics.
    """
    own = {
        each.name: topic
        for each in observation.sources()
        if (topic := each.config.get(OFFSETS_TOPIC, "")) in (observation.topics or {})
        and topic != app.target.offset_topic
        and CLUSTER_PROPERTY not in each.config
    }
    if not own or any(worker.mode is Mode.ENABLED for worker in observation.workers):
        return replace(observation, stale_offsets=())
    common = fold_store(store.read(app.target.offset_topic, newest_per_key=True))
    stores = {topic: fold_store(store.read(topic, newest_per_key=True)) for topic in sorted({*own.values()})}
    found = (stale_offsets(name, stores[topic], common) for name, topic in sorted(own.items()))
    return replace(observation, stale_offsets=tuple(each for each in found if each is not None))
