"""The connectors of a group that no request reaches (a dedicated MirrorMaker), from its config and status topics."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from eosctl.app import App
from eosctl.core.configs.fold import ConfigState
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.errors import NotFoundError
from eosctl.group.protocol import Work
from eosctl.group.topics.config import read_config_topic
from eosctl.group.topics.statuses import connectors_as_written, read_statuses
from eosctl.ports import TopicReader


class WrittenConnectors(Struct, frozen=True):
    """The `entries` as a worker's REST interface shows them; `statuses` are the records of the status topic."""

    entries: Mapping[str, ConnectorEntry]
    statuses: Mapping[Work, Mapping[str, object]]


def written_connectors(
    app: App, store: TopicReader | None = None, state: ConfigState | None = None
) -> WrittenConnectors:
    """Read the topics' current content; `state` is that of the config topic, if it has just been read.

    Raises NotFoundError if there is no such topic, and what reading raises.
    """
    if store is None:
        with app.topics() as opened:
            return written_connectors(app, opened)
    state = read_config_topic(app, store).state if state is None else state
    topic = app.target.status_topic
    if topic not in store.describe([topic]):
        raise NotFoundError(
            f"there is no topic {topic}, so the states of connectors are not known",
            hint="Give MirrorMaker's file with -w: it names the status.storage.topic.",
        )
    statuses = read_statuses(store.read(topic, isolation="read_uncommitted", newest_per_key=True).records)
    return WrittenConnectors(connectors_as_written(state, statuses), statuses)
