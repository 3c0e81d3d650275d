"""The Kafka clusters that connectors' configs name, for gates and checks: which ids and which offsets are there.

Reads only. A cluster that can't be asked leaves its connectors unseen, with the reason; it is asked once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from eosctl.core.client_settings import ClientSettings
from eosctl.core.migration_rules import Action
from eosctl.core.offset_takeover import plan_takeover
from eosctl.core.offset_views import GLOBAL, Store
from eosctl.core.own_brokers import brokers_of_ids, own_brokers
from eosctl.core.own_clusters import all_enabled
from eosctl.core.upgrade import Mode
from eosctl.core.upgrade_observation import Observation, ObservedConnector, OwnCluster
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, RefusedError
from eosctl.ops.app import App
from eosctl.ops.dedicated_topics import TOPIC_PROPERTY
from eosctl.ops.switch_elsewhere import Elsewhere, stores_elsewhere
from eosctl.report import Problem

_PATIENCE_S = 10.0


def where_ids_are(app: App, connector: str, config: Mapping[str, object] | None) -> Elsewhere | None:
    """What leads to the Kafka cluster that the connector's tasks write to; None where it is the one of `app`.

    Raises RefusedError where it is another one and eosctl can't go there.
    """
    texts = {name: value for name, value in (config or {}).items() if isinstance(value, str)}
    brokers = brokers_of_ids(texts, here=_here(app))
    if brokers is None:
        return None
    if brokers.settings is None:
        raise RefusedError(
            f"the config of {connector} names Kafka brokers of its own ({brokers.servers}), where its transactional "
            f"ids are, and {brokers.why_not}; nothing was fenced or written",
            hint="Stop the connector, and make a profile that leads there: `eosctl fence TXN_ID -p PROFILE "
            "--unknown-liveness` fences ids there, where nobody can say whether their tasks run.",
        )
    return Elsewhere(brokers.settings)


def ids_are_there(connector: str, at: Elsewhere, cluster_id: str) -> Problem:
    """Where the ids of a connector are, which is not where the command was sent."""
    servers = ",".join(at.client.bootstrap_servers)
    message = f"{connector} writes to Kafka cluster {cluster_id} ({servers}): its transactional ids are looked at there"
    return Problem("other_cluster", message, severity="warning")


def _here(app: App) -> tuple[str, ...]:
    return app.target.client.bootstrap_servers if app.target.client else ()


def with_own_clusters(app: App, observation: Observation) -> Observation:
    """Adds the clusters of the source connectors that have one of their own, and what their offsets topics there lack.

    Their topics are looked at only where exactly-once is still to come.
    """
    if app.target.client is None:
        return observation
    looks = _Topics(app, wanted=observation.target is Mode.ENABLED and not all_enabled(observation))
    found = {each.name: seen for each in observation.sources() if (seen := looks.at(each)) is not None}
    return replace(observation, own_clusters=found)


def task_clusters(
    app: App, configs: Mapping[str, Mapping[str, object]]
) -> tuple[list[tuple[App, frozenset[str]]], Mapping[str, str]]:
    """The clusters that these connectors' tasks write to, if not that of `app`: each with a patience of its own.

    And, for the connectors whose cluster eosctl can't go to, why not.
    """
    places: list[tuple[ClientSettings, set[str]]] = []
    why_not: dict[str, str] = {}
    for name, config in configs.items():
        texts = {key: value for key, value in config.items() if isinstance(value, str)}
        brokers = brokers_of_ids(texts, here=_here(app))
        if brokers is None:
            continue
        if brokers.settings is None:
            why_not[name] = brokers.why_not
            continue
        same = next((names for settings, names in places if settings == brokers.settings), None)
        if same is None:
            places.append((brokers.settings, same := set()))
        same.add(name)
    return [(_patient(Elsewhere(settings).there(app)), frozenset(names)) for settings, names in places], why_not


def _patient(app: App) -> App:
    patience_s = min(_PATIENCE_S, app.deadline.remaining_s() / 2)
    return replace(app, deadline=Deadline.after(patience_s, app.clock))


@dataclass(frozen=True, slots=True)
class _Stores:
    """The topic there, an empty one where it does not exist, and the global one here."""

    there: Store
    exists: bool
    here: Store


class _Topics:
    """The topics that exactly-once tasks have by the worker's name, each cluster read once."""

    def __init__(self, app: App, *, wanted: bool) -> None:
        self._app = app
        self._wanted = wanted
        self._read: list[tuple[ClientSettings, _Stores | EosctlError]] = []

    def at(self, connector: ObservedConnector) -> OwnCluster | None:
        """The cluster of the connector; None where it has none of its own."""
        ids = brokers_of_ids(connector.config, here=_here(self._app))
        offsets = own_brokers(connector.config, here=_here(self._app))
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
        writes = plan_takeover(stores.here, stores.there, connector.name)
        lacking = sum(write.action is not Action.KEEP for write in writes)
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
            found, here = stores_elsewhere(_patient(self._app), Elsewhere(settings), GLOBAL, GLOBAL)
        except EosctlError as exc:
            return exc
        return _Stores(found.stores[topic], bool(found.bounds[topic]), here)
