"""The versions that brokers and workers report, and the brokers' disks. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from eosctl.app import App
from eosctl.checks.cluster.log_dirs import log_dir_findings
from eosctl.checks.cluster.rules import broker_releases, bug_findings, transaction_version_findings
from eosctl.checks.visit import BROKER_PATIENCE_S
from eosctl.core.findings import Finding
from eosctl.core.records import LogDir
from eosctl.core.versions import BrokerFeatures, kafka_version
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.group.observed import GroupObservation


def worker_findings(group: GroupObservation) -> Iterator[Finding]:
    """Yield the bugs of the workers' versions; a worker that does not report its version is left out."""
    versions = {version for each in group.members if (version := kafka_version(each.version))}
    return bug_findings("worker", versions)


def broker_findings(app: App, *, with_streams: bool = False, silent: Collection[int] = ()) -> Iterator[Finding]:
    """Yield disks that failed or are nearly full, bugs of the brokers' releases, and a transaction.version behind.

    Bugs that only Kafka Streams runs into are left out, unless `with_streams`. Of brokers that can't be asked, or do
    not report their disks, nothing is claimed; that they can't is what other checks say. Where some are `silent` the
    others are asked for their disks alone.
    """
    features, log_dirs = _seen(app, silent)
    yield from log_dir_findings(log_dirs)
    yield from bug_findings("broker", broker_releases(features), with_streams=with_streams)
    yield from transaction_version_findings(features)


def _seen(app: App, silent: Collection[int]) -> tuple[Mapping[int, BrokerFeatures], Mapping[int, Sequence[LogDir]]]:
    features: Mapping[int, BrokerFeatures] = {}
    log_dirs: Mapping[int, Sequence[LogDir]] = {}
    try:
        with app.transactions() as admin:
            if not silent:
                features = admin.features()
            log_dirs = admin.log_dirs(patience_s=BROKER_PATIENCE_S, besides=silent)
    except InterruptedByUserError:
        raise
    except EosctlError:
        pass
    return features, log_dirs
