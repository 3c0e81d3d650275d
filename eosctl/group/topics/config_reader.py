"""The one reader of a group's config topic, whether its absence is an error or not."""

from __future__ import annotations

from msgspec import Struct

from eosctl.app import App
from eosctl.core.configs.fold import ConfigState, fold_config_topic
from eosctl.core.records import TopicDescription, TopicRead
from eosctl.errors import EosctlError
from eosctl.ports import TopicReader


class ConfigTopic(Struct, frozen=True):
    """A config topic as read; `state` is the state of workers that read committed records."""

    cluster_id: str
    read: TopicRead
    state: ConfigState
    description: TopicDescription


def find_config_topic(
    app: App, store: TopicReader, *, isolation: str = "read_committed", strict: bool = False
) -> ConfigTopic | None:
    """Read and fold the target's config topic, whatever it contains; return None if there is none.

    With `strict`, raises EosctlError if it can't be a config topic.
    """
    topic = app.target.config_topic
    description = store.describe([topic]).get(topic)
    if description is None:
        return None
    if strict and description.partitions != 1:
        raise EosctlError(
            f"topic {topic} has {description.partitions} partitions; workers refuse a config topic with more than one",
            hint="Is it the config.storage.topic of this group? If so, no worker can start on it: `eosctl doctor` has "
            "the commands that lead to one with a single partition.",
        )
    read = store.read(topic, isolation=isolation)
    return ConfigTopic(store.cluster_id(), read, fold_config_topic(read.records), description)
