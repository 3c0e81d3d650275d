"""Which known bugs fit the versions that were seen, and what transaction.version means."""

from __future__ import annotations

import re

import pytest

from eosctl.checks.cluster import broker_releases, bug_findings, transaction_version_findings
from eosctl.core.known_bugs import CONFIG_TOPIC, CONNECTORS, KNOWN_BUGS, bugs_of
from eosctl.core.versions import BrokerFeatures, Version, meaning_of, release_of, transaction_version


def features(level: int, used: int = 0, possible: int = 0) -> BrokerFeatures:
    return BrokerFeatures(
        {"metadata.version": level, "transaction.version": possible}, {"transaction.version": used} if used else {}
    )


@pytest.mark.parametrize(
    ("level", "release"),
    [(7, (3, 3)), (21, (3, 9)), (25, (4, 0)), (30, (4, 3)), (33, (4, 4)), (34, None), (0, None), (24, None)],
)
def test_a_release_follows_from_the_highest_metadata_version(level: int, release: Version | None) -> None:
    assert release_of(features(level)) == release


@pytest.mark.parametrize(
    ("part", "versions", "numbers"),
    [
        ("broker", [(4, 3)], []),
        ("broker", [(4, 4)], []),
        ("broker", [(3, 5)], ["KAFKA-14402"]),
        ("broker", [(3, 6)], ["KAFKA-15653", "KAFKA-16386"]),
        ("broker", [(3, 9)], []),
        ("broker", [(4, 0)], ["KAFKA-19367", "KAFKA-20090"]),
        ("broker", [(4, 1)], ["KAFKA-20090"]),
        ("broker", [(4, 2), (4, 3)], ["KAFKA-20090"]),
        ("broker", [], []),
        ("worker", [(3, 5)],
         ["KAFKA-15059", "KAFKA-16570", "KAFKA-16047", "KAFKA-18073", "KAFKA-15018", "KAFKA-17676"]),
        ("worker", [(3, 9), (4, 3)], ["KAFKA-18073", "KAFKA-17719", "KAFKA-17676"]),
        ("worker", [(4, 0), (4, 3)], ["KAFKA-17719", "KAFKA-17676"]),
        ("worker", [(4, 4)], ["KAFKA-17719", "KAFKA-17676", "KAFKA-20297"]),
    ],
)  # fmt: skip
def test_the_bugs_of_versions(part: str, versions: list[Version], numbers: list[str]) -> None:
    found = bugs_of(part, versions)  # type: ignore[arg-type]  # a Literal
    assert [bug.number for bug in found] == numbers
    assert [finding.subject for finding in bug_findings(part, versions)] == numbers  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("version", "numbers"),
    [((3, 9), ["KAFKA-19690"]), ((4, 1), ["KAFKA-19690", "KAFKA-20785"]), ((4, 4), ["KAFKA-20785"])],
)
def test_a_bug_of_streams_alone_is_said_of_streams_alone(version: Version, numbers: list[str]) -> None:
    """KAFKA-19690 was shown to every Connect group on brokers of 3.6 to 4.1."""
    found = [bug.number for bug in bugs_of("broker", [version], with_streams=True) if bug.of_streams]
    assert found == numbers


def test_a_bug_that_another_check_judges_is_reported_where_that_could_not_look() -> None:
    """A group of 4.x workers would have the bugs without a fix for ever, whatever its topics and connectors show."""
    assert [each.subject for each in bug_findings("worker", [(3, 9)], judged={CONNECTORS, CONFIG_TOPIC})] == []
    left = [each.subject for each in bug_findings("worker", [(3, 9)], judged={CONFIG_TOPIC})]
    assert left == ["KAFKA-18073"]


def test_a_bug_without_a_fix_promises_none() -> None:
    (finding,) = bug_findings("broker", [(4, 4)], with_streams=True)
    assert finding.evidence["fixed_in"] is None
    assert "unless" not in finding.message
    assert finding.fix.startswith("No release up to 4.4.0")


def test_a_finding_names_the_releases_that_have_the_bug_and_the_fix() -> None:
    finding, *_others = bug_findings("broker", [(3, 9), (4, 3), (3, 9)], with_streams=True)
    assert "brokers of Kafka 3.9, unless" in finding.message
    assert finding.fix.startswith("Upgrade to 4.2.0")
    assert finding.severity == "info"


def test_every_bug_is_whole() -> None:
    assert len({bug.number for bug in KNOWN_BUGS}) == len(KNOWN_BUGS)
    assert "KAFKA-19999" not in {bug.number for bug in KNOWN_BUGS}  # which is in no release (docs/facts.md)
    for bug in KNOWN_BUGS:
        assert re.fullmatch(r"KAFKA-\d{4,5}", bug.number)
        assert bug.until is None or bug.since < bug.until
        assert not re.search(r"\.$", bug.symptom + bug.remedy)
        assert re.search(r"\d\.\d\.\d", bug.fixed_in) if bug.until else bug.fixed_in == ""
        assert bug.source
        assert bug.judged_by in ("", CONNECTORS, CONFIG_TOPIC)


def test_a_cluster_that_does_not_use_what_its_brokers_can() -> None:
    behind = {1: features(30, 1, 2), 2: features(30, 1, 2)}
    (finding,) = transaction_version_findings(behind)
    assert "transaction.version 1" in finding.message
    assert meaning_of(2) in finding.message
    assert finding.fix.endswith("upgrade --feature transaction.version=2")
    assert (transaction_version(behind), broker_releases(behind)) == (1, {(4, 3)})


@pytest.mark.parametrize(
    "seen", [{}, {1: features(21)}, {1: features(30, 2, 2)}, {1: features(30, 0, 2), 2: features(21)}]
)
def test_a_cluster_that_uses_all_that_every_broker_can(seen: dict[int, BrokerFeatures]) -> None:
    assert list(transaction_version_findings(seen)) == []
