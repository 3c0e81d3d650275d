"""`offsets switch` of a connector whose config names Kafka brokers of its own: its offsets topics are on these.

Only topics are read there; the group, its workers and the global offsets topic are on the command's cluster. `doctor`
and `exporter` import this, and no Arrow with it: `merge_elsewhere` plans the writes.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import OtherCluster
from eosctl.core.clients.own_brokers import own_brokers
from eosctl.core.offsets.names import GLOBAL, StoreName
from eosctl.core.offsets.views import AnyStore
from eosctl.errors import RefusedError, UsageError
from eosctl.offsets.stores.gather import OffsetStores, gather_topics

_MODEL = "(the global offsets topic)"
"""The key of the description that new topics are created like; no topic has such a name."""


def elsewhere_of(app: App, connector: str, config: Mapping[str, str], to: StoreName) -> OtherCluster | None:
    """Return the cluster of the connector's own offsets topics; None if it has no brokers of its own.

    Raises UsageError for a profile that it does not need, RefusedError if it needs one.
    """
    client = app.target.client
    brokers = own_brokers(config, here=client.bootstrap_servers if client else ())
    if brokers is None and to.profile is not None:
        raise UsageError(
            f"--to {to}: the offsets topic of {connector} is on this cluster, as its config names no other brokers",
            hint=f"Name the topic alone: --to {to.name}.",
        )
    if brokers is None:
        return None
    if to.profile is not None:
        return OtherCluster(app.elsewhere(to.profile).target.require_client(), to.profile)
    if brokers.settings is None:
        raise RefusedError(
            f"the config of {connector} names Kafka brokers of its own ({brokers.servers}), where its offsets topic "
            f"is, and {brokers.why_not}; nothing was written",
            hint="Make a profile that leads there, and name the topic: --to TOPIC@PROFILE.",
        )
    return OtherCluster(brokers.settings)


def refuse_global(connector: str) -> RefusedError:
    """Return the error for moving a connector with brokers of its own to the global store."""
    return RefusedError(
        f"the config of {connector} names Kafka brokers of its own: without offsets.storage.topic its offsets are, by "
        "the worker's mode, in a topic there or in the global one; nothing was written",
        hint="Name a topic there. To come back to this cluster, stop it, take those brokers out of its config, and "
        "`eosctl offsets merge --into global --from TOPIC@PROFILE`.",
    )


def stores_elsewhere(app: App, at: OtherCluster, origin: str, target: str) -> tuple[OffsetStores, AnyStore]:
    """Read both topics on that cluster, missing ones as empty, and the global store on this cluster.

    An exactly-once connector without a dedicated topic has one there that is named like the global one.
    """
    here = gather_topics(app, [app.target.offset_topic])
    documented = here.stores[here.global_topic]
    model = here.descriptions[here.global_topic]
    wanted = [app.target.offset_topic if name == GLOBAL else name for name in (origin, target)]
    found = gather_topics(at.with_topics(app), [], if_there=wanted, partitions=model.partitions)
    return replace(found, global_topic=_MODEL, descriptions={**found.descriptions, _MODEL: model}), documented
