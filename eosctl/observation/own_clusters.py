"""Observes the own Kafka clusters, offsets topics and recorded connectors of a group, for gates and checks. Reads only.

Connectors' configs name clusters of their own: their ids and the offsets there are observed. A cluster that can't be
asked leaves its connectors unseen, with the reason; it is asked once. Connectors' own offsets topics are read for the
gate on the effects of a hard downgrade.

The connectors of a group that no request reaches (a dedicated MirrorMaker) come from its config and status topics.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY, OtherCluster, patient, servers_of
from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY, brokers_of_ids, own_brokers
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.configs.fold import ConfigState
from eosctl.core.configs.records import OFFSETS_TOPIC
from eosctl.core.offsets.names import GLOBAL
from eosctl.core.offsets.views import AnyStore, KeyAction, fold_store
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError, NotFoundError
from eosctl.group.absent import read_config_topic
from eosctl.group.observation.rules import Observation, ObservedConnector, OwnCluster, stale_offsets
from eosctl.group.protocol import Work
from eosctl.group.topics import connectors_as_written, read_statuses
from eosctl.observation.connectors.exactly_once import all_enabled
from eosctl.offsets.switch.elsewhere import stores_elsewhere
from eosctl.offsets.switch.takeover import plan_takeover
from eosctl.ports import TopicReader


def with_own_clusters(app: App, observation: Observation) -> Observation:
    """Add the own clusters of source connectors, and which offsets their topics there lack.

    The topics are read only if exactly-once is not yet enabled.
    """
    if app.target.client is None:
        return observation
    looks = _Topics(app, wanted=observation.target is Mode.ENABLED and not all_enabled(observation))
    found = {each.name: seen for each in observation.sources() if (seen := looks.at(each)) is not None}
    return replace(observation, own_clusters=found)


class _Stores(Struct, frozen=True):
    """The topic there, empty if it does not exist, and the global one here."""

    there: AnyStore
    exists: bool
    here: AnyStore


class _Topics:
    """The topics, named like the worker's, that exactly-once tasks use; each cluster is read once."""

    def __init__(self, app: App, *, wanted: bool) -> None:
        self._app = app
        self._wanted = wanted
        self._read: list[tuple[ClientSettings, _Stores | EosctlError]] = []

    def at(self, connector: ObservedConnector) -> OwnCluster | None:
        """Return the own cluster of the connector; None if it has none."""
        ids = brokers_of_ids(connector.config, here=servers_of(self._app))
        offsets = own_brokers(connector.config, here=servers_of(self._app))
        if ids is None or offsets is None:
            return None
        seen = OwnCluster(ids.servers, ids_unseen=ids.why_not)
        if connector.config.get(TOPIC_PROPERTY):
            return seen
        seen = replace(seen, topic=self._app.target.offset_topic)
        if not self._wanted:
            return seen
        if offsets.settings is None:
            return replace(seen, topic_unseen=offsets.why_not)
        stores = self._stores(offsets.settings)
        if isinstance(stores, EosctlError):
            return replace(seen, topic_unseen=stores.message)
        name = connector.name
        writes = plan_takeover(stores.here.of(name), stores.there.of(name), name)
        lacking = sum(write.action is not KeyAction.KEEP for write in writes)
        return replace(seen, topic_exists=stores.exists, lacking=lacking)

    def _stores(self, settings: ClientSettings) -> _Stores | EosctlError:
        known = next((stores for read, stores in self._read if read == settings), None)
        if known is None:
            known = self._look(settings)
            self._read.append((settings, known))
        return known

    def _look(self, settings: ClientSettings) -> _Stores | EosctlError:
        topic = self._app.target.offset_topic
        try:
            found, here = stores_elsewhere(patient(self._app), OtherCluster(settings), GLOBAL, GLOBAL)
        except EosctlError as exc:
            return exc
        return _Stores(found.stores[topic], bool(found.bounds[topic]), here)


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
