"""What must be true before workers change their mode: one rule per gate id, over one observation.

A gate passes only on evidence: what could not be seen is `unknown`, never `pass`. Reads nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from eosctl.core.records import TopicDescription
from eosctl.core.upgrade import POSSIBLE, Mode, UpgradeWorker
from eosctl.core.upgrade_observation import OLDEST_VERSION, Observation, ObservedConnector, parse_version

DEFAULT_TRANSACTION_TIMEOUT_MS = 60_000
DEFAULT_INTERVAL_MS = 60_000
SAFE_REPLICATION = 3

NOT_ON_WORKER = "does not have exactly-once source support enabled"
NO_API = "does not implement the API required for preflight validation"


@dataclass(frozen=True, slots=True)
class Gate:
    """The outcome of one check: `status` is pass, fail or unknown."""

    id: str
    status: str
    evidence: str
    fix: str = ""

    def as_row(self) -> dict[str, object]:
        """The gate as plain data."""
        return {"id": self.id, "status": self.status, "evidence": self.evidence, "fix": self.fix}


def evaluate_gates(observation: Observation) -> tuple[Gate, ...]:
    """Every gate, in the order in which a person would repair them."""
    return tuple(_gate(rule, observation) for rule in _RULES)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """`failures` make a gate fail, else `unknowns` make it unknown, else it passes with `proof`."""

    proof: str
    failures: Sequence[str] = ()
    unknowns: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Rule:
    id: str
    fix: str
    judge: Callable[[Observation], _Verdict]


def _gate(rule: _Rule, observation: Observation) -> Gate:
    verdict = rule.judge(observation)
    if verdict.failures:
        return Gate(rule.id, "fail", "; ".join([*verdict.failures, *verdict.unknowns]), rule.fix)
    if verdict.unknowns:
        return Gate(rule.id, "unknown", "; ".join(verdict.unknowns), rule.fix)
    return Gate(rule.id, "pass", verdict.proof)


def _per_worker(observation: Observation, modes: Iterable[Mode], words: str) -> list[str]:
    return [f"{worker.name} {words}" for worker in observation.workers if worker.mode in modes]


def _members_known(observation: Observation) -> _Verdict:
    failures = _per_worker(observation, (Mode.ABSENT,), "is not a member of the group")
    failures += _per_worker(observation, (Mode.UNREACHABLE,), "is a member, but its REST interface can't be reached")
    if not observation.workers:
        failures.append("the group has no members, and no worker was named")
    return _Verdict(f"{len(observation.workers)} members, all of them answer", failures)


def _group_stable(observation: Observation) -> _Verdict:
    state = observation.group_state
    failures = [] if state == "Stable" else [f"the group is {state}"]
    if state == "Stable" and not any(worker.leader for worker in observation.workers):
        return _Verdict("", unknowns=["the group is Stable, but its leader is not among the workers that are known"])
    return _Verdict("the group is Stable and its leader is known", failures)


def _worker_versions(observation: Observation) -> _Verdict:
    failures, unknowns = [], []
    for worker in observation.workers:
        version = parse_version(worker.version)
        if version is None:
            unknowns.append(f"the version of {worker.name} is not known")
        elif version < OLDEST_VERSION:
            failures.append(f"{worker.name} runs {worker.version}")
    versions = sorted({worker.version or "" for worker in observation.workers})
    return _Verdict(f"versions: {', '.join(versions)}", failures, unknowns)


def _worker_health(observation: Observation) -> _Verdict:
    failures = [f"{w.name} is {w.health}" for w in observation.workers if w.health in ("starting", "unhealthy")]
    unknowns = [f"{w.name} does not tell its health" for w in observation.workers if w.health in (None, "unknown")]
    return _Verdict("every worker is healthy", failures, unknowns)


def _modes_proven(observation: Observation) -> _Verdict:
    unproven = [w for w in observation.workers if len(POSSIBLE[w.mode]) > 1]
    # On the way up a worker that is disabled or preparing gets the first step anyway: it need not be told apart.
    harmless = observation.target is Mode.ENABLED
    unknowns = [_mode_text(w) for w in unproven if not (harmless and w.mode is Mode.NOT_ENABLED)]
    return _Verdict("; ".join(_mode_text(w) for w in observation.workers) or "no workers", (), unknowns)


def _mode_text(worker: UpgradeWorker) -> str:
    evidence = f" ({', '.join(worker.evidence)})" if worker.evidence else ""
    return f"{worker.name} is {worker.mode.value}{evidence}"


def _no_mixed_modes(observation: Observation) -> _Verdict:
    enabled = [worker.name for worker in observation.workers if worker.mode is Mode.ENABLED]
    disabled = [w.name for w in observation.workers if w.mode in (Mode.DISABLED, Mode.OLD_VERSION)]
    unproven = [w.name for w in observation.workers if w.mode in (Mode.NOT_ENABLED, Mode.UNKNOWN, Mode.UNREACHABLE)]
    if enabled and disabled:
        text = f"{', '.join(enabled)} enabled beside {', '.join(disabled)}: nothing is exactly-once now"
        return _Verdict("", [text])
    if enabled and unproven:
        text = f"{', '.join(enabled)} enabled, and {', '.join(unproven)} may be disabled"
        return _Verdict("", unknowns=[text])
    return _Verdict("no enabled worker beside a disabled one")


def _same_cluster(observation: Observation) -> _Verdict:
    ours = observation.kafka_cluster_id
    if ours is None:
        return _Verdict("", unknowns=[observation.why_unseen("kafka")])
    failures = [f"{url} works on cluster {theirs}" for url, theirs in observation.cluster_ids.items() if theirs != ours]
    unknowns = [] if observation.cluster_ids else ["no worker told its Kafka cluster"]
    return _Verdict(f"all workers that answer use Kafka cluster {ours}", failures, unknowns)


def _config_topic(observation: Observation) -> _Verdict:
    if observation.topics is None:
        return _Verdict("", unknowns=[observation.why_unseen("topics")])
    topic = observation.topics.get(observation.config_topic)
    if topic is None:
        return _Verdict("", [f"there is no topic {observation.config_topic}"])
    failures, unknowns = _topic_settings(topic)
    if topic.partitions != 1:
        failures.append(f"{topic.name} has {topic.partitions} partitions instead of one")
    return _Verdict(_topic_proof(topic), failures, unknowns)


def _offset_topic(observation: Observation) -> _Verdict:
    if observation.topics is None:
        return _Verdict("", unknowns=[observation.why_unseen("topics")])
    topic = observation.topics.get(observation.offset_topic)
    if topic is None:
        return _Verdict("", [f"there is no topic {observation.offset_topic}"])
    failures, unknowns = _topic_settings(topic)
    return _Verdict(_topic_proof(topic), failures, unknowns)


def _topic_settings(topic: TopicDescription) -> tuple[list[str], list[str]]:
    policy = topic.config.get("cleanup.policy")
    if policy is None:
        return [], [f"the settings of {topic.name} may not be read"]
    return ([] if policy == "compact" else [f"{topic.name} has cleanup.policy={policy}"]), []


def _topic_proof(topic: TopicDescription) -> str:
    proof = f"{topic.name}: {topic.partitions} partition(s), compact, replication factor {topic.replication_factor}"
    return proof if topic.replication_factor >= SAFE_REPLICATION else f"{proof} (a lost broker loses it)"


def _no_open_transactions(observation: Observation) -> _Verdict:
    if observation.open_transactions is None:
        return _Verdict("", unknowns=[observation.why_unseen("open transactions")])
    failures = [
        f"{each.topic} partition {each.partition} has a transaction open since offset {each.since_offset}"
        for each in observation.open_transactions
    ]
    return _Verdict("config and offsets topics are readable to their ends", failures)


def _no_aborted_records(observation: Observation) -> _Verdict:
    if observation.differing_connectors is None:
        return _Verdict("", unknowns=[observation.why_unseen("config topic")])
    names = ", ".join(observation.differing_connectors)
    failures = [f"aborted records of the config topic change {names}"] if names else []
    return _Verdict("workers hold the same connectors whether they read aborted config records or not", failures)


def _task_sets_complete(observation: Observation) -> _Verdict:
    if observation.config_state is None:
        return _Verdict("", unknowns=[observation.why_unseen("config topic")])
    connectors = observation.config_state.connectors.values()
    failures = [f"{c.name} lacks task configs" for c in connectors if c.inconsistent and c.config is not None]
    return _Verdict("every committed task set is complete", failures)


def _connectors_healthy(observation: Observation) -> _Verdict:
    if observation.connectors is None:
        return _Verdict("", unknowns=[observation.why_unseen("connectors")])
    failures = [
        f"{connector.name} {part} is {state}"
        for connector in observation.connectors
        for part, state in connector.states.items()
        if state not in ("RUNNING", "PAUSED", "STOPPED")
    ]
    return _Verdict(f"{len(observation.connectors)} connectors and their tasks are as they should be", failures)


def _sources(observation: Observation) -> list[ObservedConnector]:
    return [connector for connector in observation.connectors or () if connector.type == "source"]


def _connector_support(observation: Observation) -> _Verdict:
    if observation.connectors is None:
        return _Verdict("", unknowns=[observation.why_unseen("connectors")])
    failures, unknowns = [], []
    for connector in _sources(observation):
        if connector.support_errors is None:
            unknowns.append(f"{connector.name} was not validated")
            continue
        for text in connector.support_errors:
            if NO_API in text:
                unknowns.append(f"{connector.name} does not declare whether it supports exactly-once")
            elif NOT_ON_WORKER not in text:
                failures.append(f"{connector.name}: {text}")
    return _Verdict(f"{len(_sources(observation))} source connectors declare exactly-once support", failures, unknowns)


def _transaction_timeouts(observation: Observation) -> _Verdict:
    if observation.connectors is None:
        return _Verdict("", unknowns=[observation.why_unseen("connectors")])
    failures = []
    for connector in _sources(observation):
        if connector.config.get("transaction.boundary", "poll").lower() != "interval":
            continue
        timeout_ms = _number(
            connector.config, "producer.override.transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS
        )
        interval_ms = _number(connector.config, "transaction.boundary.interval.ms", DEFAULT_INTERVAL_MS)
        if timeout_ms <= interval_ms:
            failures.append(
                f"{connector.name} commits every {interval_ms} ms, its transactions end after {timeout_ms} ms"
            )
    return _Verdict("no source connector has a transaction interval as long as its transaction timeout", failures)


def _number(config: Mapping[str, str], name: str, default: int) -> int:
    text = config.get(name, "")
    return int(text) if text.isdecimal() else default


_CONNECTOR_NAMES = {
    "exactly.once.source.support": "exactly.once.support (the other is the worker's)",
    "exactly.once.source.enabled": "exactly.once.support",
    "offset.storage.topic": "offsets.storage.topic",
    "offsets.topic": "offsets.storage.topic",
}
_WORKER_NAMES = {
    "exactly.once.source.enabled": "exactly.once.source.support",
    "exactly.once.support": "exactly.once.source.support (the other is a connector's)",
}


def _property_names(observation: Observation) -> _Verdict:
    failures = [
        f"{subject} sets {name}, which does nothing: it is {right}"
        for subject, config, names in [
            *((connector.name, connector.config, _CONNECTOR_NAMES) for connector in _sources(observation)),
            *((file.path, file.properties, _WORKER_NAMES) for file in observation.files),
        ]
        for name, right in names.items()
        if name in config
    ]
    if observation.connectors is None:
        return _Verdict("", failures, [observation.why_unseen("connectors")])
    return _Verdict("no property name that Kafka does not know", failures)


_SHARED = ("group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic")


def _worker_files(observation: Observation) -> _Verdict:
    failures = []
    for name in _SHARED:
        values = {file.properties.get(name) for file in observation.files}
        if len(values) > 1:
            failures.append(f"{name} differs: {', '.join(sorted(str(value) for value in values))}")
    for file in observation.files:
        mode = file.properties.get("exactly.once.source.support", "disabled").lower()
        if mode not in ("disabled", "preparing", "enabled"):
            failures.append(f"{file.path}: exactly.once.source.support={mode}")
    proof = f"{len(observation.files)} worker files agree" if observation.files else "no worker file was given"
    return _Verdict(proof, failures)


_RULES: tuple[_Rule, ...] = (
    _Rule("members_known", "Start it, or remove it for good; an unknown worker voids exactly-once.", _members_known),
    _Rule("group_stable", "Wait for the end of the rebalance and plan again.", _group_stable),
    _Rule("same_kafka_cluster", "Check -b and -u: they lead to different clusters.", _same_cluster),
    _Rule("worker_versions", "Upgrade it to Kafka 3.3 or newer first.", _worker_versions),
    _Rule("worker_health", "Look at the worker's log; GET /health needs Kafka 3.9.", _worker_health),
    _Rule("modes_proven", "Give each worker's properties file with -w, or see `eosctl workers probe`.", _modes_proven),
    _Rule("no_mixed_modes", "Go through with the first pass of this plan without delay.", _no_mixed_modes),
    _Rule("worker_files", "Make the files equal in these properties.", _worker_files),
    _Rule("config_topic", "Give it one partition and cleanup.policy=compact; --config-topic names it.", _config_topic),
    _Rule("offset_topic", "Set cleanup.policy=compact; --offset-topic names it.", _offset_topic),
    _Rule("no_open_transactions", "See `eosctl txn hanging`: workers would hang behind it.", _no_open_transactions),
    _Rule("no_aborted_records", "See `eosctl task-counts replay --topic`; overwrite them first.", _no_aborted_records),
    _Rule("task_sets_complete", "Change the connector's config, so that it writes them again.", _task_sets_complete),
    _Rule("connectors_healthy", "Restart or repair what failed first.", _connectors_healthy),
    _Rule("connector_support", "Ask the connector's documentation; it would run at-least-once.", _connector_support),
    _Rule("transaction_timeouts", "Raise producer.override.transaction.timeout.ms above it.", _transaction_timeouts),
    _Rule("property_names", "Rename the property.", _property_names),
)  # fmt: skip
GATE_IDS = tuple(rule.id for rule in _RULES)
