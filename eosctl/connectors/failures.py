"""What a FAILED connector or task died of, read from its trace: the failures that KIP-618 and its users know.

Connect restarts none of them by itself. A trace is a stranger's text: its chain of causes is matched against Kafka's
own literals (3.3 to 4.3), the deepest cause that is known decides, and what is not known is shown by its outermost and
its deepest cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from shlex import quote

from eosctl.codes import Code
from eosctl.connectors import codes
from eosctl.connectors.stack_trace import causes_of
from eosctl.core.fencing_rounds import FENCING_FAILED
from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.workers.connector_entry import TaskStatus
from eosctl.group.observation.rules import ObservedConnector

FAILED, UNASSIGNED = "FAILED", "UNASSIGNED"
REBALANCE_DELAY_MS = 300_000
"""Connect's default of scheduled.rebalance.max.delay.ms: for so long the work of a lost worker waits for it."""
_REBALANCE_MS = 60_000
RESTART = "`eosctl connectors restart {name} --failed`"
"""What starts again what FAILED of a connector."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A known failure: all of `texts` are in the messages of a trace.

    `fix` has {name} for the connector, {c} for it with a check's options.

    `fencing`: a task died of it because the old ones were not fenced, and may run when they are.
    """

    code: Code
    texts: tuple[str, ...]
    meaning: str
    fix: str
    fencing: bool = False


_FORWARDED = "IO Error trying to forward REST request"
SCENARIOS = (
    Scenario(
        codes.FENCING_NOT_AUTHORIZED,
        ("TransactionalIdAuthorizationException",),
        "the connector's principal may not use its transactional ids: its producer, or the admin client that fences",
        "`eosctl acls apply --connector {c}` shows what is missing, and grants it; then " + RESTART,
    ),
    Scenario(
        codes.FENCING_SUPERSEDED,
        ("new set of task config",),
        "the connector was reconfigured while it was being fenced, or started",
        RESTART + "; after a PUT wait for its task-count record before the next one",
        fencing=True,
    ),
    Scenario(
        codes.FENCING_SUPERSEDED,
        ("new task configurations were generated",),
        "the connector was reconfigured while it was being fenced",
        RESTART + "; after a PUT wait for its task-count record before the next one",
        fencing=True,
    ),
    Scenario(
        codes.LEADER_NOT_REACHED,
        (_FORWARDED, "UnknownHostException"),
        "its worker can't resolve the host name under which the leader is to be reached, and so can't have old tasks "
        "fenced",
        "Give each worker a rest.advertised.host.name that the others resolve (`eosctl workers list` shows them); then "
        + RESTART,
    ),
    Scenario(
        codes.LEADER_NOT_REACHED,
        (_FORWARDED, "Connection refused"),
        "its worker found nobody at the leader's URL, and so could not have old tasks fenced",
        "`eosctl workers list` shows the leader's URL, which every worker has to reach; then " + RESTART,
    ),
    Scenario(
        codes.LEADER_NOT_REACHED,
        (_FORWARDED, "SSLHandshakeException"),
        "its worker does not trust the leader's REST interface, and so could not have old tasks fenced",
        "Mend the workers' listeners.https.ssl.* settings; then " + RESTART,
    ),
    Scenario(
        codes.FENCING_FORWARD_TIMEOUT,
        (_FORWARDED, "imeout"),
        "the leader had not fenced the old tasks when the follower's 30 s were over",
        "`eosctl rescue --connector {c}`, or, when the leader's round has ended, " + RESTART + "; then set the two "
        "retry.backoff overrides that `eosctl connectors check` names",
        fencing=True,
    ),
    Scenario(
        codes.FENCING_TIMED_OUT,
        (FENCING_FAILED, "Timed out waiting for a node assignment"),
        "Connect could not fence the old tasks in its 90 s; brokers and ids may be well, and a restart fails again",
        "`eosctl rescue --connector {c}`",
        fencing=True,
    ),
    Scenario(
        codes.FENCING_FAILED,
        ("zombie fencing",),
        "the old tasks could not be fenced, for example because the leader was restarting",
        RESTART + "; if it fails again see `eosctl rescue --connector {c}`",
        fencing=True,
    ),
    Scenario(
        codes.FENCING_FAILED,
        (_FORWARDED,),
        "its worker could not have the old tasks fenced by the leader",
        RESTART + "; if it fails again see `eosctl rescue --connector {c}`",
        fencing=True,
    ),
    Scenario(
        codes.INTERNAL_REST_OFF,
        ("dedicated.mode.enable.internal.rest",),
        "MirrorMaker's workers can't reach their leader, which exactly-once tasks need",
        "Set dedicated.mode.enable.internal.rest=true on every MirrorMaker node",
    ),
    Scenario(
        codes.TIMEOUT_REFUSED,
        ("transaction timeout is larger than the maximum",),
        "brokers refuse the transaction timeout of its producer",
        "Lower producer.override.transaction.timeout.ms, or raise the brokers' transaction.max.timeout.ms",
    ),
    Scenario(
        codes.TASK_FENCED,
        ("ProducerFencedException",),
        "another producer took its transactional id: a newer run of the task, a group with the same ids, or eosctl",
        RESTART + "; if it comes back, see `eosctl connectors check` for id_collision",
    ),
    Scenario(
        codes.TASK_FENCED_OR_EXPIRED,
        ("before its producer transaction expired",),
        "its transaction took longer than the timeout, or another producer took its id (Connect says the same of both)",
        RESTART + "; for the first raise producer.override.transaction.timeout.ms or use transaction.boundary=poll",
    ),
    Scenario(
        codes.PRODUCER_REFUSES,
        ("the idempotent producer",),
        "its config overrides a setting that an idempotent producer needs otherwise",
        "`eosctl connectors check --connector {c}` names the override; without it the task starts",
    ),
    Scenario(
        codes.BROKERS_NOT_RESOLVED,
        ("No resolvable bootstrap urls",),
        "its worker can't resolve the host names of the brokers that its config, or its worker's, gives its clients",
        "Correct the bootstrap.servers of producer.override, consumer.override and admin.override, or the worker's "
        "DNS; then " + RESTART,
    ),
    Scenario(
        codes.RECORD_TOO_LARGE,
        ("RecordTooLargeException",),
        "a record is larger than its producer, or the topic, takes",
        "Raise producer.override.max.request.size, and max.message.bytes of the topic where that is the limit; then "
        + RESTART,
    ),
    Scenario(
        codes.OWN_OFFSETS_TOPIC,
        ("may not produce to their own offsets topics",),
        "the task writes records into the topic of its own offsets",
        "Give it another topic, or another offsets.storage.topic",
    ),
    Scenario(
        codes.OFFSETS_NOT_WRITTEN,
        ("Failed to flush offsets",),
        "its offsets could not be written; with a dedicated topic, Kafka 3.8 to 4.3 fail at each null offset",
        "See the cause in the trace. For null offsets: `eosctl offsets switch --connector {c} --to global`",
    ),
    Scenario(
        codes.CONNECTOR_IS_A_GHOST,
        ("not a recognizable type",),
        "its connector came from an aborted config record, and vanished when the workers' mode changed",
        "`eosctl task-counts replay --topic`; then create and DELETE the connector, which leaves tombstones",
    ),
    Scenario(
        codes.BROKERS_TOO_OLD,
        ("allows admin clients to read consumer offsets",),
        "brokers are too old for exactly-once sources",
        "Upgrade the brokers to 2.5 or newer",
    ),
    Scenario(
        codes.TASK_NOT_AUTHORIZED,
        ("AuthorizationException",),
        "the connector's principal lacks a right",
        "`eosctl acls apply --connector {c}` shows what is missing, and grants it; then " + RESTART,
    ),
)  # fmt: skip


_DENIED = re.compile(r"Not authorized to access topics: \[([^\]]+)\]")


def failure_findings(connectors: Iterable[ObservedConnector]) -> list[Finding]:
    """One finding per connector or task that is FAILED or has no worker."""
    return [
        finding
        for connector in connectors
        for part, state in connector.states.items()
        for finding in _judge(connector, part, state)
    ]


def long_unassigned(finding: Finding, age_ms: int, *, delay_ms: int) -> Finding:
    """The finding UNASSIGNED with how long it has been so; an error where no rebalance takes as long."""
    minutes = age_ms // 60_000
    if age_ms < delay_ms + _REBALANCE_MS:
        return replace(finding, evidence={**finding.evidence, "unassigned_ms": age_ms})
    return replace(
        finding,
        severity=ERROR,
        message=f"{finding.subject} has had no worker for {minutes:,} m, longer than a rebalance takes",
        fix="`eosctl workers list` shows the members and their lag; see the leader's log for why nobody gets it.",
        evidence={**finding.evidence, "unassigned_ms": age_ms},
    )


def failures_of(connector: ObservedConnector) -> dict[str, Finding]:
    """What each FAILED part of it died of, by part."""
    return {part: finding for part in connector.failed() for finding in _judge(connector, part, FAILED)}


def _judge(connector: ObservedConnector, part: str, state: str) -> Iterable[Finding]:
    subject = connector.name if part == "connector" else f"{connector.name}/{part.removeprefix('task ')}"
    evidence = {"state": state}
    if state == UNASSIGNED:
        yield Finding(
            codes.UNASSIGNED, WARNING, subject, f"{subject} has no worker: the group is rebalancing, or lost "
            "one and waits for scheduled.rebalance.max.delay.ms (5 min)",
            "`eosctl workers list` shows the members; check again after the rebalance.", evidence,
        )  # fmt: skip
    elif state == FAILED:
        trace = connector.traces.get(part, "")
        causes = causes_of(trace)
        known, denied = known_failure(trace), _topics_in(trace)
        fix = known.fix if known else "`eosctl connectors trace {name} -o json` has the whole trace."
        yield Finding(
            known.code if known else codes.TASK_FAILED, ERROR, subject,
            f"{subject} is FAILED: {what_it_died_of(trace)}",
            fix.replace("{c}", " ".join([quote(connector.name), *(f"--output-topic {quote(each)}" for each in denied)]))
            .replace("{name}", quote(connector.name)),
            {**evidence, "trace": causes[0].text if causes else "no trace", "causes": [each.text for each in causes]},
        )  # fmt: skip


def known_failure(trace: str) -> Scenario | None:
    """The scenario of the deepest cause that one fits; of those that fit a cause, the first."""
    causes = causes_of(trace)
    said = "\n".join(cause.text for cause in causes)  # without frames: the names of methods say nothing of the failure
    for cause in reversed(causes):
        for scenario in SCENARIOS:
            if any(text in cause.text for text in scenario.texts) and all(text in said for text in scenario.texts):
                return scenario
    return None


def failed_in_fencing(task: TaskStatus) -> bool:
    """Whether it is FAILED for want of a finished fencing round."""
    known = known_failure(task.trace) if task.state == "FAILED" else None
    return known is not None and known.fencing


def denied_topics(trace: str) -> tuple[str, ...]:
    """The topics that a trace says may not be used."""
    return tuple(dict.fromkeys(name for found in _DENIED.findall(trace) for name in found.split(", ")))


def _topics_in(trace: str) -> tuple[str, ...]:
    """Those that a task's principal lacks rights on, where that is what it died of."""
    known = known_failure(trace)
    return denied_topics(trace) if known is not None and known.code == codes.TASK_NOT_AUTHORIZED else ()


def what_it_died_of(trace: str) -> str:
    """The meaning of a known failure, else the outermost and the deepest cause."""
    known, causes, denied = known_failure(trace), causes_of(trace), _topics_in(trace)
    if known is not None:
        return f"{known.meaning}: topic {', '.join(denied)}" if denied else known.meaning
    if not causes:
        return "no trace"
    return causes[0].text if len(causes) == 1 else f"{causes[0].text}; caused by {causes[-1]}"
