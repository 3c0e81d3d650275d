"""Connections to other Kafka clusters that connectors' configs name, where their transactional ids are."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors import codes
from eosctl.core.allowances import Waiver
from eosctl.core.clients.own_brokers import brokers_of_ids
from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.errors import RefusedError
from eosctl.report import Problem

_PATIENCE_S = 10.0


class OtherCluster(Struct, frozen=True):
    """The connection to a connector's own brokers: settings from its config, or a profile's."""

    client: ClientSettings
    profile: str | None = None

    def with_topics(self, app: App) -> App:
        """Return the app with the other cluster's topics."""
        open_topics = app.open_topics
        return replace(app, open_topics=lambda asked: open_topics(self.app(asked)))

    def with_clients(self, app: App) -> App:
        """Return the app with the other cluster's topics, transactions and ACLs, of which the tasks are clients."""
        open_transactions, open_acls = app.open_transactions, app.open_acls
        return replace(
            self.with_topics(app),
            open_transactions=lambda asked: open_transactions(self.app(asked)),
            open_acls=lambda asked: open_acls(self.app(asked)),
        )

    def app(self, app: App) -> App:
        """Return the app of the other cluster; only group and workers are those of `app`."""
        return replace(app, target=replace(app.target, client=self.client))


def cluster_of_ids(app: App, connector: str, config: Mapping[str, object] | None) -> OtherCluster | None:
    """Return the connection to the Kafka cluster that the connector's tasks write to; None where it is that of `app`.

    Raises RefusedError where it is another one and eosctl can't connect to it.
    """
    texts = {name: value for name, value in (config or {}).items() if isinstance(value, str)}
    brokers = brokers_of_ids(texts, here=servers_of(app))
    if brokers is None:
        return None
    if brokers.settings is None:
        raise RefusedError(
            f"the config of {connector} names Kafka brokers of its own ({brokers.servers}), where its transactional "
            f"ids are, and {brokers.why_not}; nothing was fenced or written",
            hint="Stop the connector, and make a profile that leads there: `eosctl fence TXN_ID -p PROFILE "
            f"{Waiver.UNKNOWN_LIVENESS}` fences ids there, where nobody can say whether their tasks run.",
        )
    return OtherCluster(brokers.settings)


def note_other_cluster(connector: str, at: OtherCluster, cluster_id: str) -> Problem:
    """Make the remark that a connector's ids are on another cluster than the command's."""
    servers = ",".join(at.client.bootstrap_servers)
    message = f"{connector} writes to Kafka cluster {cluster_id} ({servers}): its transactional ids are looked at there"
    return Problem(codes.OTHER_CLUSTER, message)


def servers_of(app: App) -> tuple[str, ...]:
    """Return the bootstrap servers of the command's own cluster."""
    return app.target.client.bootstrap_servers if app.target.client else ()


def task_clusters(
    app: App, configs: Mapping[str, Mapping[str, object]]
) -> tuple[list[tuple[App, frozenset[str]]], Mapping[str, str]]:
    """Return the other clusters that these connectors' tasks write to, each as an app with a short deadline.

    Also return, for connectors of a cluster that eosctl can't connect to, the reason.
    """
    places: list[tuple[ClientSettings, set[str]]] = []
    why_not: dict[str, str] = {}
    for name, config in configs.items():
        texts = {key: value for key, value in config.items() if isinstance(value, str)}
        brokers = brokers_of_ids(texts, here=servers_of(app))
        if brokers is None:
            continue
        if brokers.settings is None:
            why_not[name] = brokers.why_not
            continue
        same = next((names for settings, names in places if settings == brokers.settings), None)
        if same is None:
            places.append((brokers.settings, same := set()))
        same.add(name)
    return [(patient(OtherCluster(settings).app(app)), frozenset(names)) for settings, names in places], why_not


def patient(app: App) -> App:
    """Return the app with a deadline of seconds: another cluster may be out of reach from here."""
    patience_s = min(_PATIENCE_S, app.deadline.remaining_s() / 2)
    return replace(app, deadline=Deadline.after(patience_s, app.clock))
