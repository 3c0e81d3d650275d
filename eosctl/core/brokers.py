"""What brokers show of themselves: the transactional APIs that they offer, and whose brokers they are. Pure.

An exactly-once source task begins, fills and ends transactions, and its source offsets are records of a topic
(`ExactlyOnceWorkerSourceTask`, Connect 3.3 to 4.4: no `sendOffsetsToTransaction`). So it needs InitProducerId,
AddPartitionsToTxn and EndTxn, as does a leader whose mode is preparing or enabled. AddOffsetsToTxn and TxnOffsetCommit
are needed by applications that consume what they produce from: Kafka Streams, and Flink or Spring where they commit
offsets of a group.

Kafka's own brokers have all of them since 0.11, and number their APIs in the order in which these came: a broker that
lacks one and has a later one is another's, or behind a proxy, and a newer one of its kind need not have it. A kind is
named only by a sign that its vendor alone gives: a domain, a feature, or the form of a cluster id (AutoMQ's
`AutoMQVersion.FEATURE_NAME`; Confluent's `confluent.metadata.version`; Redpanda's answer to Metadata, whose cluster id
is there "so that callers can identify which Kafka implementation they're talking to").
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from msgspec import Struct

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.versions import BrokerFeatures
from eosctl.core.wording import counted

INIT_PRODUCER_ID = 22
SOURCE_APIS: Mapping[int, str] = {INIT_PRODUCER_ID: "InitProducerId", 24: "AddPartitionsToTxn", 26: "EndTxn"}
"""What exactly-once source tasks and their leader need."""
APPLICATION_APIS: Mapping[int, str] = {**SOURCE_APIS, 25: "AddOffsetsToTxn", 28: "TxnOffsetCommit"}
"""What applications need that commit the offsets of a group in their transactions, too."""
INSPECTION_APIS: Mapping[int, str] = {61: "DescribeProducers", 65: "DescribeTransactions", 66: "ListTransactions"}
"""What eosctl needs to see transactions (Kafka 3.0, KIP-664)."""
_FORKS_OWN = 500
"""From here on the API keys are those of forks, which Kafka's own order says nothing about."""


def lacking(features: BrokerFeatures, apis: Mapping[int, str]) -> tuple[str, ...]:
    """Return the names of those `apis` that a broker does not offer, by key."""
    return tuple(name for key, name in sorted(apis.items()) if key not in features.apis)


def is_left_out(offered: Collection[int], key: int) -> bool:
    """Decide whether a missing API is no matter of age: the broker has later APIs than one that it lacks."""
    newest = max((each for each in offered if each < _FORKS_OWN), default=-1)
    return min({key, *APPLICATION_APIS} - set(offered), default=newest) < newest


class KnownBrokers(Struct, frozen=True):
    """The reports of those brokers that respond, by node id; `missing` has the reason for each other one."""

    known: Mapping[int, BrokerFeatures]
    missing: Mapping[int, str] = {}

    def without(self, apis: Mapping[int, str]) -> dict[int, tuple[str, ...]]:
        """Return the brokers that lack any of these `apis`, with the names of what they lack."""
        found = {broker: lacking(features, apis) for broker, features in sorted(self.known.items())}
        return {broker: names for broker, names in found.items() if names}


class _Sign(Struct, frozen=True):
    kind: str
    shown_by: Literal["host", "cluster id", "feature"]
    pattern: re.Pattern[str]


_SIGNS = (
    _Sign("Azure Event Hubs", "host", re.compile(r".+\.servicebus\.(windows|chinacloudapi|usgovcloudapi)\.(net|cn)")),
    _Sign("Amazon MSK", "host", re.compile(r".+\.kafka(-serverless)?\.[a-z0-9-]+\.amazonaws\.com(\.cn)?")),
    _Sign("Confluent Cloud", "host", re.compile(r".+\.confluent\.cloud")),
    _Sign("Google Managed Kafka", "host", re.compile(r".+\.managedkafka\..+\.cloud\.goog")),
    _Sign("WarpStream", "host", re.compile(r".+\.warpstream\.com")),
    _Sign("Redpanda", "cluster id", re.compile(r"redpanda\..+")),
    _Sign("AutoMQ", "feature", re.compile(r"automq\.version")),
    _Sign("Confluent Server", "feature", re.compile(r"confluent\..+")),
)  # fmt: skip
_ALSO = {"Confluent Cloud": {"Confluent Server"}}
"""The signs of a kind that go with those of another."""
_KNOWN_OF = {
    "Azure Event Hubs": "Event Hubs has transactions in its Premium and Dedicated tiers alone (public preview).",
}
"""What a vendor's documents say of transactions (Microsoft: apache-kafka-transactions)."""
_ANY_VENDOR = "Ask the brokers' vendor whether any plan or version has transactions; a proxy may leave APIs out, too."


class BrokerKind(Struct, frozen=True):
    """The kind of brokers, and the sign that shows it; `name` is empty where nothing does, or signs disagree."""

    name: str = ""
    sign: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.sign})" if self.name else "of a kind that is not known"

    @property
    def advice(self) -> str:
        """The next step where brokers of this kind have no transactions, though they are new enough."""
        return f"{_KNOWN_OF.get(self.name, _ANY_VENDOR)} Newer brokers of the same kind need not have them."


def kind_of(features: Iterable[BrokerFeatures], cluster_id: str | None, servers: Iterable[str]) -> BrokerKind:
    """Return the kind of a cluster's brokers; `servers` are host:port of where they are reached."""
    seen = list(features)
    shown = {
        "host": {*(server.rpartition(":")[0] for server in servers), *(each.host for each in seen)},
        "cluster id": {cluster_id or ""},
        "feature": {name for each in seen for name in (*each.supported, *each.finalized)},
    }
    found: dict[str, str] = {}
    for sign in _SIGNS:
        for text in sorted(shown[sign.shown_by]):
            if sign.pattern.fullmatch(text):
                found.setdefault(sign.kind, f"{sign.shown_by} {text}")
    implied = {each for kind in found for each in _ALSO.get(kind, ())}
    kinds = [kind for kind in found if kind not in implied]
    return BrokerKind(kinds[0], found[kinds[0]]) if len(kinds) == 1 else BrokerKind()


class Shortage(Struct, frozen=True):
    """Brokers of a cluster that lack transactional APIs: what each lacks, and what to do about it."""

    without: Mapping[int, tuple[str, ...]]
    brokers: int
    kind: BrokerKind
    is_age: bool

    def __str__(self) -> str:
        """Describe it: `1 broker of 3 (2) does not offer EndTxn`."""
        by_names: dict[tuple[str, ...], list[int]] = {}
        for broker, names in self.without.items():
            by_names.setdefault(names, []).append(broker)
        texts = []
        for names, ids in by_names.items():
            whose = f"{counted(len(ids), 'broker')} of {self.brokers} ({', '.join(map(str, ids))})"
            texts.append(f"{whose} {'does' if len(ids) == 1 else 'do'} not offer {', '.join(names)}")
        return "; ".join(texts)

    @property
    def fix(self) -> str:
        """The next step."""
        return "Upgrade the brokers to Kafka 0.11 or newer." if self.is_age else self.kind.advice


def shortage_of(
    brokers: KnownBrokers, apis: Mapping[int, str], cluster_id: str | None, client: ClientSettings | None
) -> Shortage | None:
    """Return which of the brokers that respond lack any of `apis`; None if none does."""
    servers = () if client is None else client.bootstrap_servers
    without = brokers.without(apis)
    if not without:
        return None
    features = [brokers.known[broker] for broker in without]
    is_age = not any(is_left_out(each.apis, key) for each in features for key in apis if key not in each.apis)
    return Shortage(without, len(brokers.known), kind_of(brokers.known.values(), cluster_id, servers), is_age)
