"""Known bugs of the versions that were seen, and a transaction.version that is behind. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from eosctl.checks import codes
from eosctl.checks.cluster.bugs import KNOWN_BUGS, KnownBug, Part
from eosctl.core.findings import INFO, Finding
from eosctl.core.versions import (
    TRANSACTION_VERSION,
    BrokerFeatures,
    Version,
    describe_transaction_version,
    meaning_of,
    release_of,
    transaction_version,
)
from eosctl.foreign import shell_word


def bugs_of(part: Part, versions: Collection[Version], *, with_streams: bool = False) -> list[KnownBug]:
    """Return the known bugs that any of these releases has; a patch release may have the fix already.

    Those that only Kafka Streams runs into are left out, unless `with_streams`.
    """
    return [
        bug
        for bug in KNOWN_BUGS
        if bug.part == part
        and (with_streams or not bug.of_streams)
        and any(bug.since <= version < bug.until for version in versions)
    ]


def bug_findings(part: Part, versions: Collection[Version], *, with_streams: bool = False) -> Iterator[Finding]:
    """Yield a finding for each bug: the affected releases, its symptom, and a remedy until it is fixed."""
    for bug in bugs_of(part, versions, with_streams=with_streams):
        having = sorted({version for version in versions if bug.since <= version < bug.until})
        named = ", ".join(f"{major}.{minor}" for major, minor in having)
        yield Finding(
            codes.KNOWN_BUG, INFO, bug.number,
            f"{bug.number} ({part}s of Kafka {named}, unless of a release that has the fix): {bug.symptom}",
            f"Upgrade to {bug.fixed_in}. Until then: {bug.remedy}.",
            {"part": part, "versions": named, "fixed_in": bug.fixed_in},
        )  # fmt: skip


def broker_releases(features: Mapping[int, BrokerFeatures]) -> set[Version]:
    """Return the releases of the brokers, as far as their features show them."""
    return {release for each in features.values() if (release := release_of(each)) is not None}


def transaction_version_findings(features: Mapping[int, BrokerFeatures]) -> Iterator[Finding]:
    """Yield a finding if all brokers support a higher level than the one in use, which an upgrade leaves as it was."""
    if not features:
        return
    used = transaction_version(features)
    possible = min(each.supported.get(TRANSACTION_VERSION, 0) for each in features.values())
    if used < possible:
        level = f"{TRANSACTION_VERSION}={possible}"
        yield Finding(
            codes.TRANSACTION_VERSION_BEHIND, INFO, TRANSACTION_VERSION,
            f"{describe_transaction_version(used)}; the brokers can have {possible}: {meaning_of(possible)}",
            f"kafka-features.sh --bootstrap-server HOST:PORT upgrade --feature {shell_word(level)}",
            {"used": used, "possible": possible},
        )  # fmt: skip
