"""The gates before workers change their mode: one rule per gate id, over one observation.

A gate passes only on evidence: what could not be seen is `unknown`, never `pass`. Reads nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.codes import Code
from eosctl.core.brokers import INSPECTION_APIS, SOURCE_APIS, kind_of, shortage_of
from eosctl.core.clients.own_brokers import one_partition, only_compacted
from eosctl.core.findings import ERROR, Finding
from eosctl.core.open_transactions import OpenTransaction
from eosctl.core.records import TopicDescription
from eosctl.core.wording import counted
from eosctl.core.workers.modes import Mode
from eosctl.foreign import shell_words
from eosctl.group.observation.rules import BROKER_SETTINGS, CONNECTOR_STATES, OTHER_GROUPS, Observation, StaleOffsets
from eosctl.observation.connectors import rules
from eosctl.observation.connectors.exactly_once import collisions, leader_collisions, own_cluster, task_audit
from eosctl.observation.connectors.settings import client_overrides
from eosctl.plugins.look import PluginsSeen
from eosctl.upgrade import codes
from eosctl.upgrade.gate import (
    Gate,
    GateStatus,
    GateVerdict,
    group_stable,
    idle_connections,
    internal_rest,
    members_known,
    modes_proven,
    no_mixed_modes,
    worker_files,
    worker_health,
    worker_versions,
)

SAFE_REPLICATION = 3
FORBIDDABLE_GATES = {
    codes.BROKER_TRANSACTION_TIMEOUT: (BROKER_SETTINGS,),
    codes.ID_COLLISIONS: (OTHER_GROUPS,),
}
"""Gates that take what no role which only reads has a right to, and the parts of the observation that this is."""
_MOST_SENTENCES = 5
_NOT_READ = "no worker reads them, as all are enabled"


def evaluate_gates(observation: Observation, *, accepted: Collection[str] = ()) -> tuple[Gate, ...]:
    """Evaluate every gate, in the order in which a person would repair them; those `accepted` are taken as they are."""
    return tuple(_gate(rule, observation, accepted=rule.id in accepted) for rule in _RULES)


class _Rule(Struct, frozen=True):
    """`only_up`: it matters to tasks that run exactly-once, and so never holds up the way back.

    `guards_data`: no worker is restarted while it is unknown. The others concern failures that would be seen, or are
    checked again for each worker (its mode, its health).
    """

    id: Code
    judge: Callable[[Observation], GateVerdict]
    only_up: bool = False
    guards_data: bool = False


def _gate(rule: _Rule, observation: Observation, *, accepted: bool) -> Gate:
    if rule.only_up and observation.target is not Mode.ENABLED:
        return Gate(rule.id, "pass", f"does not matter on the way to {observation.target.value}")
    verdict = rule.judge(observation)
    gate = _gate_of(rule.id, verdict)
    return gate if gate.status == "pass" else replace(gate, guards_data=rule.guards_data, accepted=accepted)


def _gate_of(code: Code, verdict: GateVerdict) -> Gate:
    if not verdict.failures and not verdict.unknowns:
        return Gate(code, "pass", verdict.proof)
    status: GateStatus = "fail" if verdict.failures else "unknown"
    return Gate(code, status, "; ".join([*verdict.failures, *verdict.unknowns]), verdict.fix or code.next)


def _same_cluster(observation: Observation) -> GateVerdict:
    ours = observation.kafka_cluster_id
    if ours is None:
        return GateVerdict(unknowns=[observation.why_unseen("kafka")])
    failures = [f"{url} works on cluster {theirs}" for url, theirs in observation.cluster_ids.items() if theirs != ours]
    if observation.mirror_maker:
        return GateVerdict(f"the members of the group are connected to Kafka cluster {ours}", failures)
    unknowns = [] if observation.cluster_ids else ["no worker reported its Kafka cluster"]
    return GateVerdict(f"all workers that answer use Kafka cluster {ours}", failures, unknowns)


def _brokers_transactional(observation: Observation) -> GateVerdict:
    """Check every broker, as any of them may be a coordinator: brokers of a cluster may differ."""
    brokers = observation.brokers
    if observation.target is Mode.DISABLED:
        return GateVerdict("does not matter on the way to disabled")
    if brokers is None or not brokers.known:
        return GateVerdict(unknowns=[observation.why_unseen("brokers")])
    silent = [f"broker {broker} is not seen: {why}" for broker, why in sorted(brokers.missing.items())]
    shortage = shortage_of(brokers, SOURCE_APIS, observation.kafka_cluster_id, observation.client)
    if shortage is not None:
        return GateVerdict(failures=[f"{shortage}; the brokers are {shortage.kind}"], unknowns=silent, fix=shortage.fix)
    kind = kind_of(
        brokers.known.values(),
        observation.kafka_cluster_id,
        () if observation.client is None else observation.client.bootstrap_servers,
    )
    proof = [f"{counted(len(brokers.known), 'broker')}: transactions are offered"]
    if kind.name:
        proof.append(f"the brokers are {kind}")
    unseeable = shortage_of(brokers, INSPECTION_APIS, observation.kafka_cluster_id, observation.client)
    if unseeable is not None:
        proof.append(f"eosctl can't look at them: {unseeable}")
    return GateVerdict("; ".join(proof), (), silent)


def _config_topic(observation: Observation) -> GateVerdict:
    if observation.topics is None:
        return GateVerdict(unknowns=[observation.why_unseen("topics")])
    topic = observation.topics.get(observation.config_topic)
    if topic is None:
        return GateVerdict(failures=[f"there is no topic {observation.config_topic}"])
    failures, unknowns = _topic_settings(topic)
    fix = only_compacted(topic.name, observation.client) if failures else ""
    if topic.partitions != 1:
        failures.append(f"{topic.name} has {topic.partitions} partitions instead of one: workers do not start on it")
        fix = one_partition(topic, observation.client)
    return GateVerdict(_topic_proof(topic), failures, unknowns, fix)


def _offset_topic(observation: Observation) -> GateVerdict:
    if observation.topics is None:
        return GateVerdict(unknowns=[observation.why_unseen("topics")])
    topic = observation.topics.get(observation.offset_topic)
    if topic is None:
        return GateVerdict(failures=[f"there is no topic {observation.offset_topic}"])
    failures, unknowns = _topic_settings(topic)
    fix = only_compacted(topic.name, observation.client) if failures else ""
    return GateVerdict(_topic_proof(topic), failures, unknowns, fix)


def _topic_settings(topic: TopicDescription) -> tuple[list[str], list[str]]:
    policy = topic.config.get("cleanup.policy")
    if policy is None:
        return [], [f"the settings of {topic.name} may not be read"]
    return (
        [] if policy == "compact" else [f"{topic.name} has cleanup.policy={policy}: workers do not start on it"]
    ), []


def _topic_proof(topic: TopicDescription) -> str:
    partitions = counted(topic.partitions, "partition")
    proof = f"{topic.name}: {partitions}, compact, replication factor {topic.replication_factor}"
    return proof if topic.replication_factor >= SAFE_REPLICATION else f"{proof} (a lost broker loses it)"


def _no_open_transactions(observation: Observation) -> GateVerdict:
    if observation.open_transactions is None:
        return GateVerdict(unknowns=[observation.why_unseen("open transactions")])
    failures = [
        f"{each.topic} partition {each.bound.partition} has a transaction open since offset {each.bound.lso} "
        f"(`{shell_words(*_producers_of(each))}` shows the owner)"
        for each in observation.open_transactions
    ]
    return GateVerdict("config and offsets topics are readable to their ends", failures)


def _producers_of(place: OpenTransaction) -> Sequence[str]:
    return ("eosctl", "txn", "producers", "--topic", place.topic, "--partition", str(place.bound.partition))


def _no_aborted_records(observation: Observation) -> GateVerdict:
    if observation.differing_connectors is None:
        return GateVerdict(unknowns=[observation.why_unseen("config topic")])
    if not observation.differing_connectors:
        return GateVerdict("workers hold the same connectors whether they read aborted config records or not")
    text = f"aborted records of the config topic change {', '.join(observation.differing_connectors)}"
    return GateVerdict(failures=[text]) if observation.reads_aborted() else GateVerdict(f"{text}; {_NOT_READ}")


def _config_topic_readable(observation: Observation) -> GateVerdict:
    if observation.config_state is None:
        return GateVerdict(unknowns=[observation.why_unseen("config topic")])
    records = observation.config_state.unreadable()
    failures = [f"record {each.key} at offset {each.offset}: {each.reason}" for each in records]
    return GateVerdict("workers can read every record of the config topic", _the_first(failures))


def _task_sets_complete(observation: Observation) -> GateVerdict:
    if observation.config_state is None:
        return GateVerdict(unknowns=[observation.why_unseen("config topic")])
    connectors = observation.config_state.connectors.values()
    failures = [f"{c.name} lacks task configs" for c in connectors if c.inconsistent and c.config is not None]
    return GateVerdict("every committed task set is complete", failures)


def _connectors_healthy(observation: Observation) -> GateVerdict:
    if observation.connectors is None:
        return GateVerdict(unknowns=[observation.why_unseen("connectors")])
    failures = [
        f"{connector.name} {part} is {state}"
        for connector in observation.connectors
        for part, state in connector.unhealthy_parts().items()
    ]
    ended = (each for each, end in observation.timed_out.items() if end is not None)
    failures += [f"the task with {each} can't write: its transaction was aborted at its timeout" for each in ended]
    untold = [each.name for each in observation.connectors if not each.states]
    if untold:
        why = observation.why_unseen(CONNECTOR_STATES)
        return GateVerdict(failures=failures, unknowns=[f"the state of {', '.join(untold)} is not known: {why}"])
    if failures and observation.way_back:
        return GateVerdict(f"no reason to stay, on the way back: {'; '.join(failures)}")
    return GateVerdict(
        f"{counted(len(observation.connectors), 'connector')} and all tasks are as they should be", failures
    )


def _no_aborted_offsets(observation: Observation) -> GateVerdict:
    if observation.aborted_offsets is None:
        return GateVerdict(unknowns=[observation.why_unseen("aborted offsets")])
    owners = [each.connector for each in observation.aborted_offsets if each.connector is not None]
    if not owners:
        return GateVerdict("no offset looks different to workers that read aborted records")
    keys, names = counted(len(owners), "key"), ", ".join(sorted(set(owners)))
    text = f"{keys} of {observation.offset_topic} with an aborted newest record: {names}"
    return GateVerdict(failures=[text]) if observation.reads_aborted() else GateVerdict(f"{text}; {_NOT_READ}")


def _own_offsets_current(observation: Observation) -> GateVerdict:
    if observation.stale_offsets is None:
        return GateVerdict(unknowns=[observation.why_unseen("own offsets topics")])
    failures = [_stale_text(each) for each in observation.stale_offsets]
    return GateVerdict("no connector's own offsets topic is older than the global one", failures)


def _stale_text(stale: StaleOffsets) -> str:
    keys = counted(stale.keys, "offset")
    if stale.behind_ms is None:
        return f"{stale.topic} has no offset of {stale.connector}, the global topic has {keys}"
    minutes = stale.behind_ms // 60_000
    return f"{stale.topic} is {minutes:,} m behind the global topic in {keys} of {stale.connector}"


def _of_sources(rule: rules.Rule, proof: str) -> Callable[[Observation], GateVerdict]:
    """Make a gate that puts one question to every source connector."""

    def judge(observation: Observation) -> GateVerdict:
        if observation.connectors is None:
            return GateVerdict(unknowns=[observation.why_unseen("connectors")])
        found = [finding for each in observation.sources() for finding in rule(each, observation)]
        return _verdict_of(found, f"{counted(len(observation.sources()), 'source connector')}: {proof}")

    return judge


def _verdict_of(found: Sequence[Finding], proof: str) -> GateVerdict:
    """Make the verdict of findings: errors fail, uncertain findings are unknown, all others are added to the proof."""
    failures = [each.message for each in found if each.certain and each.severity == ERROR]
    unknowns = [each.message for each in found if not each.certain]
    noted = "; ".join([proof, *(each.message for each in found)])
    return GateVerdict(noted, list(dict.fromkeys(failures)), list(dict.fromkeys(unknowns)))


def plugins_gate(seen: PluginsSeen) -> Gate:
    """Make the gate of plugins that were looked at; a warning about one neither fails it nor leaves it open."""
    gate = _gate_of(codes.PLUGINS_FIT, _verdict_of(seen.findings, seen.sentence))
    return replace(gate, only_planned=True)


def _own_clusters(observation: Observation) -> GateVerdict:
    """Report connectors with other Kafka brokers: what other gates say of this cluster does not hold for them."""
    named = [f"{name} writes to {seen.servers}" for name, seen in sorted(observation.own_clusters.items())]
    proof = "those with Kafka brokers of their own find their offsets there"
    return _of_sources(own_cluster, "; ".join([proof, *_the_first(named)]))(observation)


def _id_collisions(observation: Observation) -> GateVerdict:
    if observation.connectors is None or observation.group_id is None or observation.rival_groups is None:
        return GateVerdict(unknowns=[observation.why_unseen("other groups")])
    found = list(leader_collisions(observation))
    found += [finding for each in observation.sources() for finding in collisions(each, observation)]
    return _verdict_of(found, "no other group uses a transactional id of this one")


def _tasks_exactly_once(observation: Observation) -> GateVerdict:
    if any(worker.mode is not Mode.ENABLED for worker in observation.workers):
        return GateVerdict("not every worker is enabled yet")
    return _of_sources(task_audit, "the coordinators know every RUNNING task")(observation)


def _property_names(observation: Observation) -> GateVerdict:
    failures = [finding.message for finding in rules.worker_properties(observation)]
    if observation.connectors is None:
        return GateVerdict(failures=failures, unknowns=[observation.why_unseen("connectors")])
    found = [finding for each in observation.sources() for finding in rules.properties(each, observation)]
    return GateVerdict("no property name that Kafka does not know", [*(each.message for each in found), *failures])


def _rights_granted(observation: Observation) -> GateVerdict:
    rights = observation.rights
    if observation.target is Mode.DISABLED:
        return GateVerdict("does not matter on the way to disabled")
    if rights is None:
        return GateVerdict(unknowns=[observation.why_unseen("rights")])
    if rights.judged is None:
        return GateVerdict("the brokers have no authorizer, so every client may do everything")
    proof = f"{counted(rights.judged, 'right')} of workers and source connectors are given by ACLs"
    return GateVerdict(proof, _the_first(rights.lacking), _the_first(rights.unsure))


def _the_first(sentences: Sequence[str]) -> list[str]:
    """Return the first few sentences and the number of the rest: a missing right may affect hundreds of connectors."""
    more = len(sentences) - _MOST_SENTENCES
    return [*sentences[:_MOST_SENTENCES], *([f"{more:,} more like these"] if more > 0 else [])]


_RULES: tuple[_Rule, ...] = (
    _Rule(codes.MEMBERS_KNOWN, members_known),
    _Rule(codes.GROUP_STABLE, group_stable),
    _Rule(codes.SAME_KAFKA_CLUSTER, _same_cluster, guards_data=True),
    _Rule(codes.BROKERS_TRANSACTIONAL, _brokers_transactional),
    _Rule(codes.WORKER_VERSIONS, worker_versions, guards_data=True),
    _Rule(codes.WORKER_HEALTH, worker_health),
    _Rule(codes.INTERNAL_REST, internal_rest, only_up=True, guards_data=True),
    _Rule(codes.MODES_PROVEN, modes_proven),
    _Rule(codes.NO_MIXED_MODES, no_mixed_modes),
    _Rule(codes.WORKER_FILES, worker_files),
    _Rule(codes.IDLE_CONNECTIONS, idle_connections),
    _Rule(codes.CONFIG_TOPIC, _config_topic, guards_data=True),
    _Rule(codes.OFFSET_TOPIC, _offset_topic, guards_data=True),
    _Rule(codes.CONFIG_TOPIC_READABLE, _config_topic_readable, guards_data=True),
    _Rule(codes.NO_OPEN_TRANSACTIONS, _no_open_transactions, guards_data=True),
    _Rule(codes.NO_ABORTED_RECORDS, _no_aborted_records, guards_data=True),
    _Rule(codes.NO_ABORTED_OFFSETS, _no_aborted_offsets, guards_data=True),
    _Rule(codes.OWN_OFFSETS_CURRENT, _own_offsets_current, only_up=True, guards_data=True),
    _Rule(codes.TASK_SETS_COMPLETE, _task_sets_complete, guards_data=True),
    _Rule(codes.CONNECTORS_HEALTHY, _connectors_healthy, guards_data=True),
    _Rule(codes.CONNECTOR_SUPPORT, _of_sources(rules.support, "none requires a support that it lacks"), only_up=True),
    _Rule(
        codes.TRANSACTION_BOUNDARIES,
        _of_sources(rules.boundary, "no objection to a transaction boundary"),
        only_up=True,
    ),
    _Rule(
        codes.TRANSACTION_TIMEOUTS,
        _of_sources(rules.interval, "no transaction interval is as long as its timeout"),
        only_up=True,
    ),
    _Rule(
        codes.BROKER_TRANSACTION_TIMEOUT,
        _of_sources(rules.broker_maximum, "brokers accept every transaction timeout"),
        only_up=True,
    ),
    _Rule(
        codes.CLIENT_OVERRIDES,
        _of_sources(client_overrides, "no producer setting that exactly-once tasks die of"),
        only_up=True,
    ),
    _Rule(
        codes.OWN_CLUSTERS,
        _own_clusters,
        only_up=True,
        guards_data=True,
    ),
    _Rule(
        codes.NO_WRITES_TO_OWN_OFFSETS,
        _of_sources(rules.own_topic, "none writes to the topic of its own offsets"),
        only_up=True,
    ),
    _Rule(codes.FENCING_PACE, _of_sources(rules.fencing_pace, "Connect can fence each of them in time"), only_up=True),
    _Rule(codes.ID_COLLISIONS, _id_collisions, only_up=True),
    _Rule(codes.TASKS_EXACTLY_ONCE, _tasks_exactly_once, only_up=True),
    _Rule(codes.PROPERTY_NAMES, _property_names),
    _Rule(codes.RIGHTS_GRANTED, _rights_granted),
)
SUMMING_GATES = frozenset(
    {
        codes.BROKERS_TRANSACTIONAL,
        codes.CONFIG_TOPIC_READABLE,
        codes.CONNECTORS_HEALTHY,
        codes.PROPERTY_NAMES,
        codes.RIGHTS_GRANTED,
        *(rule.id for rule in _RULES if rule.only_up),
    }
)
"""Gates that sum up what `connectors check`, `task-counts validate`, `acls check` and failed tasks say one by one."""
GATE_IDS = tuple(rule.id for rule in _RULES)
DRIVER_GATE_IDS = (codes.WORKLOAD_MATCHES, codes.WORKLOAD_ROLLS, codes.KUBECTL_RIGHTS)
"""Gates of the platform that a driver changes; `upgrade apply` alone has them."""
PLAN_GATE_IDS = (codes.PLUGINS_FIT,)
"""Gates of `upgrade plan` alone."""
