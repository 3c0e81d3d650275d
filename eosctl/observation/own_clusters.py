"""Observes the Kafka clusters that connectors' configs name, for gates and checks: their ids and offsets there.

Reads only. A cluster that can't be asked leaves its connectors unseen, with the reason; it is asked once.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY
from eosctl.connectors.elsewhere import OtherCluster, patient, servers_of
from eosctl.core.clients.own_brokers import brokers_of_ids, own_brokers
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.offsets.decision import KeyAction
from eosctl.core.offsets.names import GLOBAL
from eosctl.core.offsets.views import AnyStore
from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError
from eosctl.group.observation.rules import Observation, ObservedConnector, OwnCluster
from eosctl.observation.connectors.own_clusters import all_enabled
from eosctl.offsets.switch.elsewhere import stores_elsewhere
from eosctl.offsets.switch.takeover import plan_takeover


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
