"""What loses or repeats records of a source connector inside committed transactions, which tasks survive. Pure.

A warning is what may lose a record that was not meant to be left out; what is meant is named for information.
"""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY
from eosctl.core.configs.losses import (
    RETRY_TIMEOUT,
    SKIPPING_SETTINGS,
    TOLERANCE,
    losses_of,
    retry_timeout_ms,
    takes_snapshots,
)
from eosctl.core.configs.records import OFFSETS_TOPIC
from eosctl.core.findings import INFO, WARNING, Finding
from eosctl.core.java.properties import is_reference, trimmed
from eosctl.core.known_bugs import KNOWN_BUGS
from eosctl.core.versions import Version, kafka_version
from eosctl.core.workers.modes import Mode
from eosctl.foreign import shell_word
from eosctl.group.observation.rules import Observation, ObservedConnector
from eosctl.observation.connectors import codes
from eosctl.observation.connectors.exactly_once import all_enabled
from eosctl.observation.connectors.settings import unknown_value

(_DROPS,) = (bug for bug in KNOWN_BUGS if bug.number == "KAFKA-18073")
_FOR_EVER_SINCE: Version = (3, 4)
"""errors.retry.timeout=-1 (javap: RetryWithToleranceOperator of 3.4.0 repeats until the task is stopped, that of 3.3.2
never)."""
_LOGGED = "errors.log.enable"
_MIRROR_MAKERS = "org.apache.kafka.connect.converters.ByteArrayConverter"
"""The converter of a dedicated MirrorMaker (`MirrorMakerConfig.workerConfig`)."""


def skipping(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Find settings with which what fails is left out: a source has no dead letter queue."""
    for name in SKIPPING_SETTINGS:
        if is_reference(value := connector.config.get(name, "")):
            yield unknown_value(connector.name, name, value)
    found = losses_of(connector.config).skipping
    if not found:
        return
    is_tolerant = any(name.startswith(TOLERANCE) for name in found)
    refused = (
        "; without transactions also what its producer is refused (KAFKA-13348)"
        if is_tolerant and not all_enabled(observation)
        else ""
    )
    logged = trimmed(connector.config.get(_LOGGED, "")).lower() == "true"
    yield Finding(
        codes.RECORDS_DROPPED, WARNING, connector.name,
        f"{connector.name}: {'; '.join(f'{name} {what}' for name, what in found.items())}{refused}. The offset behind "
        "a record that is left out is committed",
        codes.RECORDS_DROPPED.next.replace("NAME", shell_word(connector.name)),
        {**dict(each.split("=", 1) for each in found), **({_LOGGED: logged} if is_tolerant else {})},
    )  # fmt: skip


def retriable(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Find what may throw a RetriableException on workers that drop the record then, whatever errors.tolerance says.

    A warning where it is known to throw one, and the workers to be that old; else it is not known, and information.
    With errors.retry.timeout=-1 it is information, too: only a task that is stopped while it repeats drops the record.
    """
    versions = [kafka_version(each.version) for each in observation.workers if each.mode is not Mode.ABSENT]
    old = {version for version in versions if version is not None and _DROPS.has(version)}
    if not old and None not in versions:
        return
    found = losses_of(connector.config, observation.worker_setting)
    if observation.mirror_maker:
        found = losses_of(connector.config, lambda _name: _MIRROR_MAKERS)
    throwing = found.retriable or (found.untold if old else ())
    timeout_ms = retry_timeout_ms(connector.config)
    for_ever = found.retries_for_ever and None not in versions and min(old) >= _FOR_EVER_SINCE
    if not throwing or (for_ever and not found.retriable) or any(name.startswith(TOLERANCE) for name in found.skipping):
        return
    shown = ", ".join(f"{major}.{minor}" for major, minor in sorted(old))
    which = (
        f"workers of Kafka {shown}, unless their distribution has the fix,"
        if old
        else "workers before Kafka 4.0 (the version of some here is not known)"
    )
    may = (
        f"{', '.join(throwing)} may throw a RetriableException, say while the schema registry is away"
        if found.retriable
        else f"whether {', '.join(throwing)} may throw a RetriableException is not known"
    )
    given = connector.config.get(RETRY_TIMEOUT, "")
    after = f"then once {RETRY_TIMEOUT}={given} is over" if timeout_ms is None or timeout_ms > 0 else "then"
    when = f"where the task is stopped while it repeats ({RETRY_TIMEOUT}=-1)" if for_ever else after
    yield Finding(
        codes.RETRIABLE_DROPPED, WARNING if found.retriable and not for_ever else INFO, connector.name,
        f"{connector.name}: {may}; {which} drop the record {when} without a word, and commit the offset behind "
        f"it, with {TOLERANCE}=none too ({_DROPS.number})",
        codes.RETRIABLE_DROPPED.next.replace("NAME", shell_word(connector.name)),
        {"may_throw": list(throwing), "known": bool(found.retriable), "versions": shown, "bug": _DROPS.number},
        certain=bool(found.retriable and old) and timeout_ms is not None,
    )  # fmt: skip


def filters(connector: ObservedConnector, _observation: Observation) -> Iterable[Finding]:
    """Name what leaves out records by design, and the transformations of which that is not known."""
    found = losses_of(connector.config)
    if not (found.filters or found.unknown_filters):
        return
    meant = f"{', '.join(found.filters)} leaves out records by design" if found.filters else ""
    untold = (
        f"whether {', '.join(found.unknown_filters)} leaves out records is not known" if found.unknown_filters else ""
    )
    yield Finding(
        codes.RECORDS_FILTERED, INFO, connector.name,
        f"{connector.name}: {'; '.join(filter(None, (meant, untold)))}",
        codes.RECORDS_FILTERED.next,
        {"filters": list(found.filters), "unknown": list(found.unknown_filters)},
        certain=not found.unknown_filters,
    )  # fmt: skip


def snapshot(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Find snapshots that are under way: a task that starts meanwhile takes Debezium's from the beginning."""
    if not takes_snapshots(connector.config):
        return
    own = connector.config.get(OFFSETS_TOPIC)
    is_elsewhere = own not in (None, "", observation.offset_topic) or CLUSTER_PROPERTY in connector.config
    again = "a task that starts meanwhile takes it from the beginning, and its rows are delivered again"
    if connector.name in observation.snapshots:
        yield Finding(
            codes.SNAPSHOT_REPEATS, INFO, connector.name,
            f"{connector.name} takes a snapshot, which exactly-once does not cover: {again}",
            codes.SNAPSHOT_REPEATS.next, {"under_way": True},
        )  # fmt: skip
    elif is_elsewhere or observation.aborted_offsets is None:
        why = "its offsets are in another topic" if is_elsewhere else observation.why_unseen("aborted offsets")
        yield Finding(
            codes.SNAPSHOT_REPEATS, INFO, connector.name,
            f"whether {connector.name} takes a snapshot, which exactly-once does not cover, was not looked at: {why}; "
            f"{again}",
            f"`eosctl offsets get --connector` shows it. {codes.SNAPSHOT_REPEATS.next}", {"under_way": None},
            certain=False,
        )  # fmt: skip


LOSSES = (skipping, retriable, filters, snapshot)
