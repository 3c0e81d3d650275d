"""Gates, internal topics and hanging transactions as findings, for `doctor`. Judges what other modules read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eosctl.checks import codes
from eosctl.codes import Code
from eosctl.core.brokers import Shortage
from eosctl.core.clients.own_brokers import only_compacted
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.java.properties import whole_number
from eosctl.core.open_transactions import orphan_hint
from eosctl.core.records import KnownBounds, TopicDescription
from eosctl.core.wording import counted
from eosctl.group.observation.rules import Observation
from eosctl.observation.connectors.commit_age import MOST_ALIKE
from eosctl.report import Problem
from eosctl.upgrade.gate import Gate
from eosctl.upgrade.gates import SAFE_REPLICATION

_BEFORE_THE_WAY_DOWN = (
    "Nothing while all workers are enabled. Before one becomes anything else write the committed records again: "
    "`eosctl upgrade plan --to disabled --hard` has the commands."
)


def gate_finding(gate: Gate, subject: str) -> Iterable[Finding]:
    """Yield an error for a failed gate, an uncertain warning for an unknown one, nothing for one that passes."""
    if gate.status == "fail":
        yield Finding(gate.id, ERROR, subject, gate.evidence, gate.fix, {"gate": gate.id, "status": gate.status})
    elif gate.status == "unknown":
        evidence = {"gate": gate.id, "status": gate.status}
        yield Finding(gate.id, WARNING, subject, f"not known: {gate.evidence}", gate.fix, evidence, certain=False)


def transaction_api_findings(shortage: Shortage | None, *, severity: str = ERROR) -> Iterable[Finding]:
    """Yield the transactional APIs that brokers lack; a lack at one of them counts: it may become a coordinator."""
    if shortage is not None:
        lacking = {str(broker): list(names) for broker, names in shortage.without.items()}
        yield Finding(
            codes.BROKERS_WITHOUT_TRANSACTIONS, severity, "brokers", f"{shortage}; the brokers are {shortage.kind}",
            shortage.fix, {"lacking": lacking, "kind": shortage.kind.name or None, "sign": shortage.kind.sign or None},
        )  # fmt: skip


def unread_findings(observation: Observation) -> Iterable[Finding]:
    """Yield aborted records that no worker reads now and one that is not enabled would; otherwise they are gates."""
    if observation.reads_aborted():
        return
    group = observation.group_id or "group"
    names = list(observation.differing_connectors or ())
    if names:
        yield Finding(
            codes.ABORTED_CONFIGS_UNREAD, INFO, group,
            f"aborted records of {observation.config_topic} would change {', '.join(names)} for a worker that is not "
            "enabled; all are",
            _BEFORE_THE_WAY_DOWN, {"connectors": names},
        )  # fmt: skip
    owners = [each.connector for each in observation.aborted_offsets or () if each.connector is not None]
    if owners:
        names = sorted(set(owners))
        yield Finding(
            codes.ABORTED_OFFSETS_UNREAD, INFO, group,
            f"aborted offsets of {', '.join(names)} are the newest in {observation.offset_topic} for a worker that is "
            "not enabled; all are",
            _BEFORE_THE_WAY_DOWN, {"connectors": names, "keys": len(owners)},
        )  # fmt: skip


def topic_findings(topics: Iterable[TopicDescription]) -> Iterable[Finding]:
    """Yield internal topics that one lost broker may lose; cleanup and partitions are gates of their own."""
    for topic in topics:
        if topic.replication_factor < SAFE_REPLICATION:
            yield Finding(
                codes.FEW_REPLICAS, WARNING, topic.name,
                f"topic {topic.name} has replication factor {topic.replication_factor}: a lost broker may lose it",
                f"Raise it to {SAFE_REPLICATION} (kafka-reassign-partitions.sh).",
                {"replication_factor": topic.replication_factor},
            )  # fmt: skip


def transaction_topic_findings(topic: TopicDescription, bounds: KnownBounds) -> Iterable[Finding]:
    """Yield what keeps partitions of `__transaction_state`, the coordinators' log, from being written."""
    replicas, setting = topic.replication_factor, topic.config.get("min.insync.replicas", "")
    evidence = {"replication_factor": replicas, "min.insync.replicas": setting}
    text = f"topic {topic.name} has {counted(replicas, 'replica')} and min.insync.replicas={setting}"
    least = whole_number(setting) or 0
    if least > replicas:
        yield Finding(
            codes.TOO_FEW_REPLICAS, ERROR, topic.name, f"{text}: no transaction can begin or end",
            "Add replicas (kafka-reassign-partitions.sh), or lower min.insync.replicas.", evidence,
        )  # fmt: skip
    elif least == replicas > 1:
        yield Finding(
            codes.NO_SPARE_REPLICA, WARNING, topic.name, f"{text}: one lost broker stops transactions",
            "Add a replica (kafka-reassign-partitions.sh), or lower min.insync.replicas by one.", evidence,
        )  # fmt: skip
    elif least == 1 and replicas > 1:
        yield Finding(
            codes.ONE_INSYNC_REPLICA, WARNING, topic.name, f"{text}: a lost broker may lose transactions",
            "Set min.insync.replicas=2 (kafka-configs.sh).", evidence,
        )  # fmt: skip
    if bounds.missing:
        numbers = sorted(bounds.missing)
        yield Finding(
            codes.PARTITION_WITHOUT_LEADER, ERROR, topic.name,
            f"{counted(len(numbers), 'partition')} of {topic.name} can't be asked ({bounds.missing[numbers[0]]}): "
            "transactional ids whose coordinator they are can't be used",
            codes.PARTITION_WITHOUT_LEADER.next, {"partitions": numbers},
        )  # fmt: skip


def status_topic_findings(topic: TopicDescription, settings: ClientSettings | None) -> Iterable[Finding]:
    """Check its cleanup policy, as workers do when they start (`verifyTopicCleanupPolicyOnlyCompact`)."""
    policy = topic.config.get("cleanup.policy", "compact")
    if policy != "compact":
        yield Finding(
            codes.STATUS_NOT_COMPACT, ERROR, topic.name,
            f"topic {topic.name} has cleanup.policy={policy}: each worker that starts on it dies of a ConfigException",
            f"{only_compacted(topic.name, settings)}, then start the workers again.", {"cleanup.policy": policy},
        )  # fmt: skip


def hanging_findings(rows: Iterable[Mapping[str, object]]) -> list[Finding]:
    """Return a finding for each transaction among the rows of `txn hanging`: one command ends all of its partitions."""
    of: dict[tuple[object, object], list[Mapping[str, object]]] = {}
    for row in rows:
        of.setdefault((row["producer_id"], row["producer_epoch"]), []).append(row)
    return [_hanging_finding(parts) for parts in of.values()]


def _hanging_finding(parts: Sequence[Mapping[str, object]]) -> Finding:
    first = parts[0]
    names = [f"{row['topic']}-{row['partition']}" for row in parts]
    more = f" (and on {', '.join(names[1:])})" if names[1:] else ""
    place = ("--topic", str(first["topic"]), "--partition", str(first["partition"]))
    at = (*place, "--start-offset", str(first["start_offset"]))
    user = first.get("transactional_id")
    return Finding(
        codes.HANGING_TRANSACTION, ERROR, names[0],
        f"{names[0]} has a hanging transaction since offset {first['start_offset']} ({first['reason']}){more}: readers "
        "of committed records wait behind it, and the topic is not compacted",
        orphan_hint(at, transactional_id=None if user is None else str(user)),
        {
            **{name: first[name] for name in ("producer_id", "producer_epoch", "start_offset", "age_ms")},
            "transactional_id": user, "partitions": names,
        },
    )  # fmt: skip


def problem_findings(check: str, problems: Iterable[Problem]) -> Iterable[Finding]:
    """Yield what a check could not see, or warns of; of many of one kind the first ones, and their number."""
    by_code: dict[Code, list[Problem]] = {}
    for each in problems:
        by_code.setdefault(each.code, []).append(each)
    for code, alike in by_code.items():
        for each in alike[:MOST_ALIKE]:
            yield Finding(
                code, WARNING, check, each.message, each.hint or "See the message.", certain=not each.is_unseen
            )
        more = len(alike) - MOST_ALIKE
        if more > 0:
            fix = alike[0].hint or "See the messages of the first ones."
            yield Finding(
                code, WARNING, check, f"{more:,} more like these", fix, {"more": more}, certain=not alike[0].is_unseen
            )
