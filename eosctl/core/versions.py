"""Kafka's version, from what a worker answers to `GET /`: some distributions count in their own way."""

from __future__ import annotations

import re

Version = tuple[int, int]

HEALTH_SINCE: Version = (3, 9)
"""GET /health (KIP-1017)."""

_SAID = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?(.*)", re.ASCII | re.DOTALL)
_APACHE = re.compile(r"(-SNAPSHOT|-rc\d+)?", re.ASCII)  # Strimzi's, Aiven's and Bitnami's builds say what Apache's say
_CLOUDERA = re.compile(r"(\.\d+){3,}-\d+", re.ASCII)  # 3.4.1.7.2.18.0-641
_RED_HAT = re.compile(r"\.redhat-\d+", re.ASCII)  # 3.7.0.redhat-00007
_CONFLUENT = re.compile(r"(-\d+)?-(ccs|ce)(-.*)?", re.ASCII)  # 7.6.0-ccs, 6.1.1-ce
_OF_CONFLUENT = {5: (2, 0), 6: (2, 6), 7: (3, 0), 8: (4, 0)}
"""Confluent Platform's major version -> the Kafka in its .0; each minor version of the one has the next of the other.

Confluent's "Supported versions and interoperability": 5.5 is 2.5, 6.0 is 2.6, 7.0 is 3.0, 7.9 is 3.9, 8.0 is 4.0.
"""


def kafka_version(said: str | None) -> Version | None:
    """Major and minor of the Kafka inside; None where it is not said, or said in a way that is not known."""
    found = _SAID.fullmatch((said or "").strip())
    if found is None:
        return None
    major, minor, build = int(found[1]), int(found[2]), found[3]
    if _CONFLUENT.fullmatch(build):
        first = _OF_CONFLUENT.get(major)
        return None if first is None else (first[0], first[1] + minor)
    known = _APACHE.fullmatch(build) or _CLOUDERA.fullmatch(build) or _RED_HAT.fullmatch(build)
    return (major, minor) if known else None


def is_older(said: str | None, version: Version) -> bool:
    """Whether the Kafka inside is known, and older than `version`."""
    found = kafka_version(said)
    return found is not None and found < version


def shown_version(said: str) -> str:
    """As the worker says it, with Kafka's version beside it where that is another: `7.6.0-ccs (Kafka 3.6)`."""
    found = kafka_version(said)
    if found is None:
        return f"{said} (of an unknown distribution)"
    text = f"{found[0]}.{found[1]}"
    return said if said.startswith(f"{text}.") or said == text else f"{said} (Kafka {text})"
