"""One cause, one row: folds what can't be known under brokers and workers that do not answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from eosctl.acls import codes as acl_codes
from eosctl.checks import codes
from eosctl.checks.group.rules import gate_finding
from eosctl.checks.ignored import IgnoredFinding, split_ignored
from eosctl.checks.visit import Visit
from eosctl.checks.workers import SILENT_CODES
from eosctl.connectors import codes as connector_codes
from eosctl.core.findings import ERROR, Finding
from eosctl.core.ids import task_transactional_id, worker_id_of_url
from eosctl.core.offsets import codes as offset_topic_codes
from eosctl.errors import EosctlError
from eosctl.failures import codes as failure_codes
from eosctl.failures.failure import RESTART
from eosctl.foreign import Lines, arguments
from eosctl.group.codes import WORKER_NOT_A_MEMBER
from eosctl.observation.connectors import codes as config_check_codes
from eosctl.observation.connectors.commit_age import fold_alike, under_cause
from eosctl.offsets import codes as offset_codes
from eosctl.task_counts import codes as task_count_codes
from eosctl.upgrade import codes as gate_codes

KAFKA = "kafka"
_NO_LEADER = "LEADER_NOT_AVAILABLE"  # the name of the Kafka error, which messages have
_Findings = Mapping[str, Sequence[Finding]]


def kafka_findings(silent: Mapping[int, EosctlError]) -> Iterable[Finding]:
    """Yield a finding for each listed broker that does not answer."""
    for broker, failure in sorted(silent.items()):
        yield Finding(
            codes.BROKER_UNREACHABLE, ERROR, f"broker {broker}",
            f"broker {broker} is one of the cluster and does not answer: {failure.message}",
            "See whether it runs. If so, the address that it advertises (advertised.listeners) can't be reached from "
            "here. If not, see in the end of its log why it ended, which `eosctl explain` reads (a full disk, say), "
            "before it is started.",
            {"broker": broker, "error": str(failure.code)},
        )  # fmt: skip


def kafka_unreachable(error: EosctlError, servers: Iterable[str]) -> Finding:
    """Return the one finding reported when no broker can be reached."""
    return Finding(
        codes.KAFKA_UNREACHABLE, ERROR, ",".join(servers), f"nothing could be checked without Kafka: {error.message}",
        error.hint or "Run again with -v to see why.", {"error": str(error.code)},
    )  # fmt: skip


def under_causes(visit: Visit, findings: _Findings, ignored: Sequence[IgnoredFinding]) -> dict[str, Sequence[Finding]]:
    """Fold the consequences of brokers and workers that do not answer, and of other causes, under their cause."""
    own = under_settings_and_rights(findings, ignored, group_id=visit.app.target.group_id)
    own = _under_config_topic(visit, own)
    return under_dead_brokers(_under_brokers(_under_workers(visit, own)))


def under_settings_and_rights(
    findings: _Findings, ignored: Sequence[IgnoredFinding], *, group_id: str | None
) -> dict[str, Sequence[Finding]]:
    """Fold findings under missing settings, plugins and rights, but not under an ignored one, which would hide them."""
    split = {check: split_ignored(found, ignored) for check, found in findings.items()}
    folded = under_settings({check: counting for check, (counting, _accepted) in split.items()})
    folded = under_missing_topics(under_missing_plugins(folded))
    folded = _said_once(under_missing_rights(folded, group_id=group_id))
    return {check: [*folded[check], *accepted] for check, (_counting, accepted) in split.items()}


def _said_once(findings: _Findings) -> dict[str, Sequence[Finding]]:
    """Leave out of check `connectors` what `offsets` says of the same topic, too."""
    said = {(each.code, each.severity, each.subject) for each in findings.get("offsets", ())}
    return {
        check: [each for each in found if (each.code, each.severity, each.subject) not in said]
        if check == "connectors"
        else found
        for check, found in findings.items()
    }


def under_settings(findings: _Findings) -> dict[str, Sequence[Finding]]:
    """Fold task failures under the setting that causes them, and a gate under the finding that it repeats."""
    kept = dict(findings)
    for check, causes in findings.items():
        for cause in causes:
            due = _BRINGS_ABOUT.get((check, cause.code))
            if due is None:  # of nearly all, which are thousands in a large group
                continue
            following = [(at, each) for at in kept for each in kept[at] if each.code in due and _is_of(cause, each)]
            if all(each.code == task_count_codes.MIS_ORDERED for _at, each in following):
                continue
            for at, gone in following:
                kept[at] = [each for each in kept[at] if each is not gone]
            folded = under_cause(cause, [each for _at, each in following])
            kept[check] = [folded if each is cause else each for each in kept[check]]
    return kept


_BRINGS_ABOUT = {
    ("connectors", failure_codes.PRODUCER_REFUSES): frozenset(
        {failure_codes.PRODUCER_REFUSES, task_count_codes.MIS_ORDERED}
    ),
    ("connectors", config_check_codes.TIMEOUT_ABOVE_BROKER): frozenset(
        {failure_codes.TIMEOUT_REFUSED, task_count_codes.MIS_ORDERED}
    ),
    ("connectors", config_check_codes.WRITES_OWN_OFFSETS): frozenset(
        {failure_codes.OWN_OFFSETS_TOPIC, task_count_codes.MIS_ORDERED}
    ),
    ("connectors", codes.TWO_GROUPS): frozenset({connector_codes.STATUS_STALE}),
    ("offsets", offset_topic_codes.NOT_COMPACTED): frozenset({gate_codes.OFFSET_TOPIC}),
    ("offsets", offset_topic_codes.DELETES_OLD_OFFSETS): frozenset({gate_codes.OFFSET_TOPIC}),
}
"""Check and code of a wrong setting -> the findings that it causes; pending fencing, of dead tasks only."""


_NO_PLUGIN = frozenset({failure_codes.PLUGIN_MISSING, failure_codes.CONNECTOR_TYPE_UNKNOWN})


def under_missing_plugins(findings: _Findings) -> dict[str, Sequence[Finding]]:
    """Fold failures for lack of a class under the finding about the worker that lacks it."""
    kept = dict(findings)
    for cause in findings.get("workers", ()):
        connectors = cause.evidence.get("connectors")
        if cause.code != failure_codes.PLUGIN_MISSING or not isinstance(connectors, list):
            continue
        following = [
            each
            for each in kept["failures"]
            if each.code in _NO_PLUGIN
            and each.evidence.get("worker") == worker_id_of_url(cause.subject)
            and (each.subject in connectors or each.subject.rpartition("/")[0] in connectors)
        ]
        if following:
            kept["failures"] = [each for each in kept["failures"] if each not in following]
            folded = under_cause(cause, following)
            kept["workers"] = [folded if each is cause else each for each in kept["workers"]]
    return kept


def under_missing_topics(findings: _Findings) -> dict[str, Sequence[Finding]]:
    """Fold failures for lack of an offsets topic under the topic, and add to its fix how to restart what failed.

    Whether workers create it may not be known: the failure proves that they do not. Where the topic hides offsets of
    its one connector, both stand below that finding, whose fix creates the topic and starts the connector again.
    """
    kept = dict(findings)
    for missing in findings.get("offsets", ()):
        connectors = missing.evidence.get("connectors")
        if missing.code != offset_topic_codes.TOPIC_MISSING or not isinstance(connectors, list):
            continue
        failed = [
            each
            for each in kept["failures"]
            if each.code == failure_codes.INTERNAL_TOPIC_MISSING and each.subject.partition("/")[0] in connectors
        ]
        if not failed:
            continue
        hiding = (each for each in kept["offsets"] if _is_hidden_by(missing, each) and [each.subject] == connectors)
        cause = next(hiding, missing)
        folded = _restarted(missing, failed) if cause is missing else under_cause(cause, [missing, *failed])
        kept["failures"] = [each for each in kept["failures"] if each not in failed]
        for check in ("connectors", "offsets"):  # both have it
            left = [each for each in kept[check] if each is cause or not _says_the_same(missing, each)]
            kept[check] = [folded if each is cause else each for each in left]
    return kept


def _is_hidden_by(missing: Finding, other: Finding) -> bool:
    """Check whether another finding is that the missing topic hides offsets of the global one."""
    return other.code == offset_codes.OFFSETS_HIDDEN and other.evidence.get("topic") == missing.subject


def _says_the_same(finding: Finding, other: Finding) -> bool:
    return (finding.code, finding.subject) == (other.code, other.subject)


def _restarted(cause: Finding, failed: Sequence[Finding]) -> Finding:
    """Return the cause of failures as an error, with the restart of what failed as the last step of its fix."""
    connectors = dict.fromkeys(each.subject.partition("/")[0] for each in failed)
    restarts = ", ".join(RESTART.replace("{name}", arguments(name)) for name in connectors)
    return replace(under_cause(cause, failed), severity=ERROR, fix=Lines.of(cause.fix, f"Then {restarts}."))


_DENIED = frozenset({failure_codes.TASK_NOT_AUTHORIZED, failure_codes.FENCING_NOT_AUTHORIZED})


def under_missing_rights(findings: _Findings, *, group_id: str | None) -> dict[str, Sequence[Finding]]:
    """Fold task failures for lack of a right under the right, and add to its fix how to restart the tasks.

    A right that may not be needed is an error then: the failure proves that it is.
    """
    kept = dict(findings)
    for cause in findings.get("acls", ()):
        denied = [each for each in kept["failures"] if each.code in _DENIED and _lacked(cause, each, group_id)]
        if cause.code != acl_codes.ACL_MISSING or not denied:
            continue
        kept["failures"] = [each for each in kept["failures"] if each not in denied]
        kept["acls"] = [_restarted(cause, denied) if each is cause else each for each in kept["acls"]]
    return kept


_OF_ID = "TransactionalId"  # the resource type, and part of the name of the exception


def _lacked(cause: Finding, failed: Finding, group_id: str | None) -> bool:
    """Check whether the failure names the right's resource; of a transactional id, compare only the connector."""
    resource, causes = str(cause.evidence.get("resource_name")), failed.evidence.get("causes")
    texts = causes if isinstance(causes, list) else []
    if cause.evidence.get("resource_type") == _OF_ID:
        connector = failed.subject.partition("/")[0]
        prefix = task_transactional_id(group_id or "", connector, 0).removesuffix("0")
        rest = resource.removeprefix(prefix)
        return resource.startswith(prefix) and not rest.strip("0123456789") and any(_OF_ID in text for text in texts)
    return any(resource in re.split(r"[\[\], ]+", text) for text in texts)


def _is_of(cause: Finding, other: Finding) -> bool:
    """Check whether another finding is about the cause's connector, a task of it, or a gate about its topic."""
    if other is cause:
        return False
    about = other.subject == cause.subject or other.subject.startswith(f"{cause.subject}/")
    return about or cause.subject in other.message.split()


def _under_brokers(findings: _Findings) -> dict[str, Sequence[Finding]]:
    """Fold all that is unknown because brokers do not answer under the first of these brokers."""
    causes = [each for each in findings[KAFKA] if each.code == codes.BROKER_UNREACHABLE]
    if not causes:
        return dict(findings)
    first, others = causes[0], [each for each in findings[KAFKA] if each is not causes[0]]
    silent = {each.subject for each in causes}

    def caused(each: Finding) -> bool:
        return not each.certain or (each.code == codes.BROKER_DOWN and each.subject in silent)

    following = [each for check, found in findings.items() if check != KAFKA for each in found if caused(each)]
    kept = {check: [each for each in found if not caused(each)] for check, found in findings.items()}
    return {**kept, KAFKA: [under_cause(first, fold_alike(following)), *others]}


def under_dead_brokers(findings: _Findings) -> dict[str, Sequence[Finding]]:
    """Fold all that could not be seen for lack of a leader under the first broker that is down."""
    place = next(
        ((check, each) for check, found in findings.items() for each in found if each.code == codes.BROKER_DOWN), None
    )
    if place is None:
        return dict(findings)
    at, cause = place

    def caused(each: Finding) -> bool:
        return not each.certain and _NO_LEADER in each.message

    following = [each for found in findings.values() for each in found if caused(each)]
    kept = {check: [each for each in found if not caused(each)] for check, found in findings.items()}
    folded = under_cause(cause, fold_alike(following)) if following else cause
    return {**kept, at: [folded if each is cause else each for each in kept[at]]}


_NO_MEMBERS = frozenset({gate_codes.MEMBERS_KNOWN, gate_codes.GROUP_STABLE, gate_codes.MODES_PROVEN})


def _under_config_topic(visit: Visit, findings: _Findings) -> dict[str, Sequence[Finding]]:
    """Fold the lack of members under a config topic on which no worker starts."""
    found = findings["gates"]
    cause = next((each for each in found if each.code == gate_codes.CONFIG_TOPIC and each.severity == ERROR), None)
    if cause is None or visit.group().members:
        return dict(findings)
    following = [each for each in found if each.code in _NO_MEMBERS]
    others = [each for each in found if each is not cause and each not in following]
    return {**findings, "gates": [under_cause(cause, following), *others]}


def _under_workers(visit: Visit, findings: _Findings) -> dict[str, Sequence[Finding]]:
    known = (*SILENT_CODES, WORKER_NOT_A_MEMBER, codes.DEDICATED_MIRROR_MAKER)
    causes = [each for each in findings["workers"] if each.code in known]
    if not causes:
        return dict(findings)
    reasons = [failure.message for _worker, failure in visit.silent()]
    try:
        gates = visit.gates()[1]
    except EosctlError:
        gates = []
    subject = visit.app.target.group_id or "group"
    following = [finding for gate in gates for finding in gate_finding(gate, subject)]
    kept: dict[str, Sequence[Finding]] = {}
    for check, found in findings.items():
        caused = [each for each in found if each not in causes and any(one in each.message for one in reasons)]
        following += caused
        kept[check] = [each for each in found if each not in caused]
    kept["workers"] = [under_cause(each, following) if each is causes[0] else each for each in findings["workers"]]
    return kept
