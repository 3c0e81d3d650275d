"""What brokers and workers say of their versions, and which known bugs these have. Reads only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eosctl.app import App
from eosctl.checks.cluster.rules import broker_releases, bug_findings, transaction_version_findings
from eosctl.core.findings import Finding
from eosctl.core.versions import BrokerFeatures, kafka_version
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.group.observed import GroupObservation


def worker_findings(group: GroupObservation) -> Iterator[Finding]:
    """The bugs of the workers' versions; of those that do not say theirs nothing is claimed."""
    versions = {version for each in group.members if (version := kafka_version(each.version))}
    return bug_findings("worker", versions)


def broker_findings(app: App, *, with_streams: bool = False) -> Iterator[Finding]:
    """The bugs of the brokers' releases, and whether they could have a higher transaction.version.

    Those that only Kafka Streams runs into are left out, unless `with_streams`. Of brokers that can't be asked nothing
    is claimed; that they can't is what other checks say.
    """
    features = _features_seen(app)
    yield from bug_findings("broker", broker_releases(features), with_streams=with_streams)
    yield from transaction_version_findings(features)


def _features_seen(app: App) -> Mapping[int, BrokerFeatures]:
    try:
        with app.transactions() as admin:
            return admin.features()
    except InterruptedByUserError:
        raise
    except EosctlError:
        return {}
