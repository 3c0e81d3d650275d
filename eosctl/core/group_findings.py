"""Gates, internal topics and hanging transactions as findings, for `doctor`. Judges what was read elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from shlex import quote

from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.gate import Gate
from eosctl.core.records import TopicDescription
from eosctl.core.upgrade_gates import SAFE_REPLICATION


def gate_finding(gate: Gate, subject: str) -> Iterable[Finding]:
    """Nothing for a gate that passes; an unknown one is a warning that is not certain."""
    if gate.status == "fail":
        yield Finding(gate.id, ERROR, subject, gate.evidence, gate.fix, {"gate": gate.id, "status": gate.status})
    elif gate.status == "unknown":
        evidence = {"gate": gate.id, "status": gate.status}
        yield Finding(gate.id, WARNING, subject, f"not known: {gate.evidence}", gate.fix, evidence, certain=False)


def topic_findings(topics: Iterable[TopicDescription]) -> Iterable[Finding]:
    """Internal topics that one lost broker takes along; cleanup and partitions are gates of their own."""
    for topic in topics:
        if topic.replication_factor < SAFE_REPLICATION:
            yield Finding(
                "few_replicas", WARNING, topic.name,
                f"topic {topic.name} has replication factor {topic.replication_factor}: a lost broker may lose it",
                f"Raise it to {SAFE_REPLICATION} (kafka-reassign-partitions.sh).",
                {"replication_factor": topic.replication_factor},
            )  # fmt: skip


def hanging_finding(row: Mapping[str, object]) -> Finding:
    """A row of `txn hanging`: readers of committed records wait behind it for ever."""
    place = f"{row['topic']}-{row['partition']}"
    command = f"eosctl txn abort --topic {quote(str(row['topic']))} --partition {row['partition']}"
    return Finding(
        "hanging_transaction", ERROR, place,
        f"{place} has a hanging transaction since offset {row['start_offset']} ({row['reason']}): readers of committed "
        "records wait behind it, and the topic is not compacted",
        f"`{command} --start-offset {row['start_offset']}`",
        {name: row[name] for name in ("producer_id", "producer_epoch", "start_offset", "age_ms")},
    )  # fmt: skip
