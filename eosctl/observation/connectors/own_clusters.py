"""The effect of exactly-once on a connector whose config names Kafka brokers of its own: its offsets move there. Pure.

An exactly-once task commits its offsets where its producer writes, in a topic named like the worker's unless the config
names one (`Worker.offsetStoreForExactlyOnceSourceTask`). It reads them with its consumer, and finds their end with its
admin client; missing offsets are not taken from the global topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY
from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.wording import counted
from eosctl.core.workers.modes import Mode
from eosctl.foreign import shell_word
from eosctl.group.observation.rules import Observation, ObservedConnector, OwnCluster
from eosctl.observation.connectors import codes


def own_cluster(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Find clients of the connector that go to different clusters, and offsets that its tasks would not find there."""
    seen = observation.own_clusters.get(connector.name)
    if seen is None:
        return
    missing = unnamed_clients(connector, observation)
    if missing:
        names = " and ".join(f"{kind}.override.bootstrap.servers" for kind in missing)
        yield Finding(
            codes.CLIENTS_DISAGREE, ERROR, connector.name,
            f"{connector.name} writes to other Kafka brokers ({seen.servers}), and its config has no {names}: an "
            "exactly-once task then looks for its offsets, and Connect for its transactional ids, on two clusters",
            "Give all three, producer.override, consumer.override and admin.override, the same bootstrap.servers.",
            {CLUSTER_PROPERTY: seen.servers},
        )  # fmt: skip
    if seen.topic is not None and "consumer" not in missing and not all_enabled(observation):
        yield from _moves(connector, observation, seen)


def unnamed_clients(connector: ObservedConnector, observation: Observation) -> Sequence[str]:
    """Return the clients, except the producer, for which neither the config nor the workers' files name brokers."""
    return [
        kind
        for kind in ("consumer", "admin")
        if not connector.config.get(f"{kind}.override.bootstrap.servers")
        and not observation.worker_setting(f"{kind}.bootstrap.servers")
    ]


def all_enabled(observation: Observation) -> bool:
    """Decide whether all workers are enabled, so that exactly-once tasks have their offsets in place already."""
    return bool(observation.workers) and all(worker.mode is Mode.ENABLED for worker in observation.workers)


def _moves(connector: ObservedConnector, observation: Observation, seen: OwnCluster) -> Iterable[Finding]:
    where = f"topic {seen.topic} on {seen.servers}"
    first = (
        f"Copy them first: `eosctl offsets switch --connector {shell_word(connector.name)} --to TOPIC` makes a topic "
        "there, fills it, and names it in the config (TOPIC@PROFILE where that refers to secrets)."
    )
    evidence = {"topic": seen.topic, "brokers": seen.servers, "lacking": seen.lacking}
    if seen.lacking is None:
        yield Finding(
            codes.OFFSETS_MOVE_UNKNOWN, WARNING, connector.name,
            f"{connector.name}: with exactly-once its offsets are in {where}; whether they are there is not known: "
            f"{seen.topic_unseen}",
            first, evidence, certain=False,
        )  # fmt: skip
    elif seen.lacking:
        only_here = f"{counted(seen.lacking, 'offset')} of topic {observation.offset_topic} here"
        lacks = (
            f"which lacks {only_here}" if seen.topic_exists else f"which does not exist yet; {only_here} stay behind"
        )
        yield Finding(
            codes.OFFSETS_MOVE, ERROR, connector.name,
            f"{connector.name}: with exactly-once its offsets are in {where}, {lacks}: it would read its source again",
            first, evidence,
        )  # fmt: skip
