"""Converts the collector's facts to what a watch shows: findings and their age, optionally of one connector.

Each source is looked at by itself; a common cause of failure is one line. Reads only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from eosctl.checks import codes
from eosctl.checks.ignored import IgnoredFinding, split_ignored
from eosctl.collect.facts import DoctorFacts, GroupFacts, HangingFacts, unseen_parts
from eosctl.collect.looks.doctor import DoctorLook
from eosctl.collect.looks.group import ConnectGroupLook
from eosctl.collect.looks.hanging import look_for_hanging
from eosctl.collect.looks.kafka import look_at_kafka
from eosctl.collect.overview import Collected, Overview
from eosctl.collect.source import FactSource
from eosctl.core.findings import ERROR, Finding
from eosctl.watch.rules import SourceLook, not_collected

KAFKA, HANGING, GROUP, DOCTOR = "kafka", "hanging", "group", "doctor"


def watched_sources(ignore: Sequence[IgnoredFinding]) -> tuple[FactSource, ...]:
    """Return the exporter's sources, with hanging transactions apart, and with doctor at each interval."""
    return (
        FactSource(KAFKA, look_at_kafka),
        FactSource(HANGING, look_for_hanging, deadline_s=60.0),
        FactSource(GROUP, ConnectGroupLook(), every=2, deadline_s=40.0),
        FactSource(DOCTOR, DoctorLook(tuple(ignore)), deadline_s=120.0),
    )


def looks_of(
    overview: Overview, *, servers: Iterable[str], connector: str | None, ignore: Sequence[IgnoredFinding]
) -> list[SourceLook]:
    """Return each source's findings, and one per failed source; while Kafka does not answer, only that failure."""
    others = _other_connectors(overview, connector)
    is_down = overview.error(KAFKA) is not None
    looks = [_look(each, overview.taken_ms, servers, is_down=is_down) for each in overview.collected.values()]
    return [replace(look, findings=_wanted(look.findings, connector, others, ignore)) for look in looks]


def group_sentence(overview: Overview) -> str:
    """Return doctor's sentence about the group; an empty one before doctor has run."""
    facts = overview.facts(DoctorFacts)
    return facts.sentence if facts is not None else ""


def known_connectors(overview: Overview) -> Collection[str] | None:
    """Return the source connectors; None if unknown."""
    group = overview.facts(GroupFacts)
    return None if group is None or group.connectors is None else [each.name for each in group.connectors]


def _look(source: Collected, now_ms: int, servers: Iterable[str], *, is_down: bool) -> SourceLook:
    error = source.error_at(now_ms)
    findings = list(_findings(source.facts))
    if error is not None and source.source == KAFKA:
        findings.append(_unreachable(error, source.message_at(now_ms), servers))
    elif error is not None and not is_down:
        findings.append(not_collected(source.source, error, source.message_at(now_ms)))
    return SourceLook(
        source.source,
        None if source.facts_ms is None else source.facts_ms / 1000,
        findings,
        error,
        source.message_at(now_ms),
        source.is_stale(now_ms),
        frozenset({codes.HANGING_TRANSACTION}) if source.source == HANGING else frozenset(),
        _unseen(source.facts),
    )


def _unseen(facts: object) -> int:
    """Count the unknown parts; doctor's uncertain findings are lines, and may be about another connector."""
    return len(facts.doubts()) if isinstance(facts, DoctorFacts) else unseen_parts(facts) or 0


def _findings(facts: object) -> Iterable[Finding]:
    return facts.findings if isinstance(facts, DoctorFacts | HangingFacts) else ()


def _unreachable(error: str, message: str, servers: Iterable[str]) -> Finding:
    return Finding(
        codes.KAFKA_UNREACHABLE, ERROR, ",".join(servers), f"nothing can be collected without Kafka: {message}",
        codes.KAFKA_UNREACHABLE.next, {"error": error},
    )  # fmt: skip


def _other_connectors(overview: Overview, connector: str | None) -> Collection[str]:
    known = known_connectors(overview)
    return () if connector is None or known is None else [name for name in known if name != connector]


def _wanted(
    findings: Sequence[Finding], connector: str | None, others: Collection[str], ignore: Sequence[IgnoredFinding]
) -> Sequence[Finding]:
    counting, _accepted = split_ignored(findings, ignore)
    if connector is None:
        return counting
    return [each for each in counting if _names(each, [connector]) or not _names(each, others)]


def _names(finding: Finding, connectors: Collection[str]) -> bool:
    """Decide whether the finding is about one of these connectors, by its subject, its evidence or its message."""
    if not connectors:
        return False
    words = {finding.subject, finding.subject.rpartition("/")[0], *re.split(r"[\s,;:()]+", finding.message)}
    words |= {part.rpartition("/")[0] for part in words}
    return not words.isdisjoint(connectors) or not _evidence_names(finding.evidence).isdisjoint(connectors)


def _evidence_names(evidence: Mapping[str, object]) -> set[str]:
    found = [evidence.get("connector"), *_listed(evidence.get("connectors")), *_listed(evidence.get("subjects"))]
    names = {str(each) for each in found if each is not None}
    return names | {name.rpartition("/")[0] for name in names}


def _listed(value: object) -> Iterable[object]:
    return value if isinstance(value, list | tuple) else ()
