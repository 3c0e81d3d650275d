"""Kafka's version, from a worker's answer to `GET /`: some distributions number their releases differently."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from eosctl.core.java.properties import whole_number

Version = tuple[int, int]

HEALTH_SINCE: Version = (3, 9)
"""GET /health (KIP-1017)."""
STOPPABLE_SINCE: Version = (3, 5)
"""A connector can be STOPPED (KIP-875)."""
CREATED_STOPPED_SINCE: Version = (3, 7)
"""A connector can be created STOPPED (KIP-980)."""

_REPORTED = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?(.*)", re.ASCII | re.DOTALL)
_APACHE = re.compile(r"(-SNAPSHOT|-rc\d+)?", re.ASCII)  # also Strimzi's, Aiven's and Bitnami's builds
_CLOUDERA = re.compile(r"(\.\d+){3,}-\d+", re.ASCII)  # 3.4.1.7.2.18.0-641
_RED_HAT = re.compile(r"\.redhat-\d+", re.ASCII)  # 3.7.0.redhat-00007
_CONFLUENT = re.compile(r"(-\d+)?-(ccs|ce)(-.*)?", re.ASCII)  # 7.6.0-ccs, 6.1.1-ce
_OF_CONFLUENT = {5: (2, 0), 6: (2, 6), 7: (3, 0), 8: (4, 0)}
"""Confluent Platform's major version -> the Kafka in its .0; each minor version of the one has the next of the other.

Confluent's "Supported versions and interoperability": 5.5 is 2.5, 6.0 is 2.6, 7.0 is 3.0, 7.9 is 3.9, 8.0 is 4.0.
"""


def kafka_version(reported: str | None) -> Version | None:
    """Return the Kafka version (major, minor) for the version that a worker reports.

    None where the worker reports none, or one of an unknown form.
    """
    found = _REPORTED.fullmatch((reported or "").strip())
    if found is None:
        return None
    major, minor, build = whole_number(found[1]), whole_number(found[2]), found[3]
    if major is None or minor is None:
        return None
    if _CONFLUENT.fullmatch(build):
        first = _OF_CONFLUENT.get(major)
        return None if first is None else (first[0], first[1] + minor)
    known = _APACHE.fullmatch(build) or _CLOUDERA.fullmatch(build) or _RED_HAT.fullmatch(build)
    return (major, minor) if known else None


def is_older(reported: str | None, version: Version) -> bool:
    """Return whether the Kafka version is known and older than `version`."""
    found = kafka_version(reported)
    return found is not None and found < version


def shown_version(reported: str) -> str:
    """Return the reported version, followed by Kafka's own where they differ: `7.6.0-ccs (Kafka 3.6)`."""
    found = kafka_version(reported)
    if found is None:
        return f"{reported} (of an unknown distribution)"
    text = f"{found[0]}.{found[1]}"
    return reported if reported.startswith(f"{text}.") or reported == text else f"{reported} (Kafka {text})"


class BrokerFeatures(Struct, frozen=True):
    """A broker's report in ApiVersions: its features (v3+, KIP-584) and the keys of the APIs that it offers.

    A feature has its highest supported level and, if in use, its finalized one. `host` is the name by which the cluster
    lists the broker.
    """

    supported: Mapping[str, int]
    finalized: Mapping[str, int]
    apis: frozenset[int] = frozenset()
    host: str = ""


# the highest production level of metadata.version -> the release that brought it (`MetadataVersion`, Kafka 4.4.0)
_RELEASE_OF_LEVEL: tuple[tuple[int, Version], ...] = (
    (7, (3, 3)), (8, (3, 4)), (11, (3, 5)), (14, (3, 6)), (19, (3, 7)), (20, (3, 8)), (21, (3, 9)), (25, (4, 0)),
    (27, (4, 1)), (29, (4, 2)), (30, (4, 3)), (33, (4, 4)),
)  # fmt: skip


def release_of(features: BrokerFeatures) -> Version | None:
    """Return the release of a broker, inferred from its highest metadata.version; None where that is unknown.

    Brokers do not report their version; patch releases have the same levels. With ZooKeeper there is no level.
    """
    level = features.supported.get("metadata.version", 0)
    return next((release for highest, release in _RELEASE_OF_LEVEL if highest == level), None)


TRANSACTION_VERSION = "transaction.version"
_MEANING = {
    0: "as before KIP-890: markers carry no version, and a late write is refused only where brokers verify it (3.6+)",
    1: "the coordinators' log may have fields of KIP-890; producers work as before",
    2: "each transaction has an epoch of its own (KIP-890): a late write or marker can't hit the next one",
}

_NEWER = "newer than this eosctl"


def transaction_version(features: Mapping[int, BrokerFeatures]) -> int:
    """Return the lowest level in use that a broker reports: 0 where none does, as before 4.0."""
    return min((each.finalized.get(TRANSACTION_VERSION, 0) for each in features.values()), default=0)


def meaning_of(level: int) -> str:
    """Return the meaning of a level of transaction.version (KIP-890)."""
    return _MEANING.get(level, _NEWER)


def describe_transaction_version(used: int) -> str:
    """Describe a level of transaction.version with its meaning."""
    return f"{TRANSACTION_VERSION} {used}: {meaning_of(used)}"
