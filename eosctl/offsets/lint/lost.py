"""Finds offsets that tasks do not see, or that went back, for doctor, in topics as they were read to lint them.

Reads no topic in use a second time; the config topic's history shows the former topics of connectors.
"""

from __future__ import annotations

from collections.abc import Mapping

from eosctl.app import App
from eosctl.connectors.dedicated import DedicatedTopics
from eosctl.core.configs.fold import former_offsets_topics
from eosctl.core.findings import Finding
from eosctl.core.offsets.views import Store, fold_store
from eosctl.core.records import TopicRead
from eosctl.core.topic_names import is_topic_name
from eosctl.core.wording import rfc3339
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.offsets.history.rules import OffsetHistory
from eosctl.offsets.lint.rules import WatchedTopic, lost_offsets


def find_lost_offsets(
    app: App, watched: Mapping[str, WatchedTopic], dedicated: DedicatedTopics, configs: TopicRead | None
) -> list[Finding]:
    """Find lost offsets of existing connectors whose own topics are not on other brokers; `watched` are by topic."""
    common = watched[app.target.offset_topic]
    names = common.store.names() if dedicated.connectors is None else dedicated.connectors
    known = set(names) - set(dedicated.brokers) - set(dedicated.unknown)
    own = {
        name: watched.get(topic) or WatchedTopic(Store(topic, common.store.partitions), OffsetHistory())
        for name, topic in dedicated.configured.items()
        if name in known
    }
    named = {
        name: topic
        for name, topic in former_offsets_topics(() if configs is None else configs.records).items()
        if name in known - own.keys() and topic != app.target.offset_topic and is_topic_name(topic)
    }
    former = _former_stores(app, watched, named)
    return lost_offsets(common, own, known, former=former, show_time=lambda moment_ms: str(rfc3339(moment_ms)))


def _former_stores(app: App, watched: Mapping[str, WatchedTopic], named: Mapping[str, str]) -> dict[str, Store]:
    """Return the former offsets topics of connectors without one, as far as they are on this cluster.

    A former topic that can't be read is not reported here: none of them is in use.
    """
    try:
        with app.topics() as topics:
            stores = {name: watched_topic.store for name, watched_topic in watched.items()}
            for topic in topics.describe({*named.values()} - stores.keys()):
                stores[topic] = fold_store(topics.read(topic, newest_per_key=True))
    except InterruptedByUserError:
        raise
    except EosctlError:
        return {}
    return {name: stores[topic] for name, topic in named.items() if topic in stores}
