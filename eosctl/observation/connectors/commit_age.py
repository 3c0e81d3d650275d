"""RUNNING tasks that commit nothing, workers that hang with all their tasks, and the folding of findings.

A task that writes transactions is judged by its transactional id, any other one by the connector's newest offset. An
idle source commits nothing either, which can't be distinguished from outside: it is information. A task whose
transaction was aborted at its timeout can't commit any more, and that is an error.

Many findings of one kind are folded into one, and findings are folded under their common cause, so that `doctor` is
readable. Programs lose nothing: a folded finding has the subjects of all, a cause has the findings that follow from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.ids import TransactionalId, task_transactional_id
from eosctl.core.wording import counted
from eosctl.foreign import arguments, shell_word
from eosctl.group.observation.rules import ABORTS, Observation, ObservedConnector, QuietTask
from eosctl.observation.connectors import codes
from eosctl.observation.connectors.settings import boundary_setting, commit_interval, flush_interval

MOST_ACTS = 10
"""The largest number of remedies, different in their subject alone, that are shown separately."""
MOST_ALIKE = 3
"""The largest number of similar findings that are shown separately; of more, as many are examples."""
_MOST_NAMED = 10
_BY_NAME = {
    "single_replica": ("offsets topics", "have one replica: one lost disk loses all offsets"),
    "partition_count": ("offsets topics", "have another number of partitions than the 25 that Connect makes"),
    "few_replicas": ("topics", "have too few replicas: a lost broker may lose them"),
    "orphan": ("deleted connectors", "have a task-count record, which Connect keeps"),
}
"""Codes of which even two findings are folded, as only the names differ."""


def fold_alike(findings: Iterable[Finding]) -> list[Finding]:
    """Replace more than MOST_ALIKE findings with the same code, topic and remedy by one, with a count and examples.

    Findings with different remedies need an action each, so each stays; but more than MOST_ACTS that differ by their
    subject alone become one, with the first as an example. Some codes are folded to a list of names.
    """
    by_name = _fold(findings, _act_by_name, 1, _named)
    same_act = _fold(by_name, _act, MOST_ALIKE, _folded)
    return _fold(same_act, _kind_of_act, MOST_ACTS, _acts)


def _fold(
    findings: Iterable[Finding], key: Callable[[Finding], object], most: int, one: Callable[[list[Finding]], Finding]
) -> list[Finding]:
    """Replace more than `most` findings with the same key by `one`, at the place of the first."""
    alike: dict[object, list[Finding]] = {}
    for each in findings:
        alike.setdefault(key(each), []).append(each)
    return [left for same in alike.values() for left in (same if len(same) <= most else [one(same)])]


def _act_by_name(each: Finding) -> object:
    """Return code, severity and remedy as the key of a finding that is folded by name; any other key is unique."""
    return (each.code, each.severity, each.fix) if each.code in _BY_NAME and "count" not in each.evidence else id(each)


def _named(same: list[Finding]) -> Finding:
    subjects = list(dict.fromkeys(each.subject for each in same))
    noun, what = _BY_NAME[same[0].code]
    more = f" and {len(subjects) - _MOST_NAMED:,} more" if len(subjects) > _MOST_NAMED else ""
    shared = f"{len(subjects):,} {noun}"
    message = f"{shared} {what}: {', '.join(subjects[:_MOST_NAMED])}{more}"
    return replace(same[0], subject=shared, message=message, evidence=_evidence(same, subjects))


def _evidence(same: Sequence[Finding], subjects: Sequence[str]) -> dict[str, object]:
    examples = [dict(each.evidence) for each in same[:MOST_ALIKE]]
    return {"count": len(same), "subjects": list(subjects), "examples": examples}


def _act(each: Finding) -> object:
    return each.code, each.severity, each.certain, each.fix, each.evidence.get("topic")


def _kind_of_act(each: Finding) -> object:
    """Return the remedy without the subject, or its connectors, as part of the key; keep folded findings apart."""
    alone = each.subject if "count" in each.evidence else None
    connectors = each.evidence.get("connectors")
    plain = [each.subject, each.subject.rpartition("/")[0], *(connectors if isinstance(connectors, list) else ())]
    names = [re.escape(name) for found in plain if found for name in (shell_word(found), found)]
    fix = re.sub(rf"(?<![\w.-])(?:{'|'.join(names)})(?![\w-])", "{}", each.fix) if names else each.fix
    return each.code, each.severity, each.certain, fix, alone


def _acts(same: Sequence[Finding]) -> Finding:
    return replace(_folded(same), fix=f"For each of them, as for {shell_word(same[0].subject)}: " + same[0].fix)


def _folded(same: Sequence[Finding]) -> Finding:
    first, examples = same[0], same[:MOST_ALIKE]
    subjects = list(dict.fromkeys(each.subject for each in same))
    topic = first.evidence.get("topic")
    shared = subjects[0] if len(subjects) == 1 else str(topic) if topic else f"{len(subjects):,} places"
    texts = (each.message if each.subject in each.message else f"{each.subject}: {each.message}" for each in examples)
    count = shared if len(subjects) == len(same) and not topic else f"{len(same):,} times"
    message = f"{count}: {'; '.join(texts)}; and {len(same) - MOST_ALIKE:,} more"
    return replace(first, subject=shared, message=message, evidence=_evidence(same, subjects))


def under_cause(cause: Finding, following: Iterable[Finding]) -> Finding:
    """Add the findings that follow from a cause to its evidence."""
    follows = [{"code": str(each.code), "subject": each.subject, "message": each.message} for each in following]
    return replace(cause, evidence={**cause.evidence, "follows": follows})


QUIET_MS = 300_000
"""The time without a commit after which a task is reported; for boundary `interval`, at least twice the interval."""
_TOGETHER_MS = 60_000
"""The tasks of a hanging worker stop within this time; those of idle sources stop independently."""


def commit_age(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Find RUNNING tasks that commit nothing, such as one that waits for a replication slot in use elsewhere."""
    interval_ms = commit_interval(connector, observation).number
    for task in connector.running():
        transactional_id = task_transactional_id(observation.group_id or "", connector.name, task)
        if transactional_id in observation.timed_out:
            yield _aborted(connector, task, transactional_id, observation)
        if observation.timed_out.get(transactional_id) is not None:
            continue
        quiet = observation.quiet.get(transactional_id)
        if quiet is None or interval_ms is None or quiet.quiet_ms < max(QUIET_MS, 2 * interval_ms):
            continue
        minutes = quiet.quiet_ms // 60_000
        words = (
            f"has committed nothing since it was started (its connector's task set is {minutes:,} m old)"
            if quiet.since_start
            else f"nothing was committed for {minutes:,} m"
        )
        worker = connector.worker_of(f"task {task}")
        yield Finding(
            codes.NOTHING_COMMITTED, INFO, f"{connector.name}/{task}",
            f"{connector.name}/{task} is RUNNING, and {words}", _IDLE,
            {"transactional_id": transactional_id, "quiet_ms": quiet.quiet_ms, "worker": worker},
        )  # fmt: skip


def _aborted(
    connector: ObservedConnector, task: int, transactional_id: TransactionalId, observation: Observation
) -> Finding:
    """Report an aborted transaction as an error: the task's producer is never given the epoch that the abort left."""
    subject, worker = f"{connector.name}/{task}", connector.worker_of(f"task {task}") or "its worker"
    restart = (
        f"`eosctl connectors restart {arguments(connector.name)}` starts it again from its last committed offsets."
    )
    ended = observation.timed_out[transactional_id]
    evidence = {"transactional_id": transactional_id, "worker": connector.worker_of(f"task {task}")}
    if ended is None:
        return Finding(
            codes.ABORTED_AT_TIMEOUT, WARNING, subject,
            f"the newest transaction of {subject}, which is RUNNING, was aborted, and whether at its timeout is not "
            f"known: {observation.unseen.get(ABORTS, 'its end is too long ago')}",
            f"See `eosctl txn log {arguments(transactional_id)}`. Where its coordinator aborted it, {restart}",
            evidence, certain=False,
        )  # fmt: skip
    if boundary_setting(connector) == "connector":
        why = (
            "Its connector says when to commit (transaction.boundary=connector), and did not in time: with "
            "transaction.boundary=poll Connect commits what each poll gave."
        )
    else:
        why = f"The log of {worker} has what kept it from committing in time."
    return Finding(
        codes.ABORTED_AT_TIMEOUT, ERROR, subject,
        f"{subject} is RUNNING and can't write any more: its coordinator aborted its transaction after "
        f"{ended.open_ms // 1000:,} s (transaction.timeout.ms={ended.timeout_ms}), and it was not started since",
        f"{restart} {why}",
        {
            **evidence, "open_ms": ended.open_ms, "transaction_timeout_ms": ended.timeout_ms,
            "aborted_ms": ended.aborted_ms,
        },
    )  # fmt: skip


_IDLE = (
    "An idle source commits nothing. If this one is not idle, see the worker's log: RUNNING does not prove that the "
    "task reads."
)


def offset_age(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Find the same for a connector without transactions, by its newest offset, if it has committed one."""
    running = connector.running()
    ids = {task_transactional_id(observation.group_id or "", connector.name, task) for task in running}
    committed_ms, now_ms = observation.committed_ms.get(connector.name), observation.looked_ms
    if not running or ids & observation.quiet.keys() or committed_ms is None or now_ms is None:
        return
    quiet_ms = now_ms - max(committed_ms, observation.task_sets_ms.get(connector.name, -1))
    interval_ms = flush_interval(connector, observation).number
    if interval_ms is not None and quiet_ms >= max(QUIET_MS, 2 * interval_ms):
        yield Finding(
            codes.NOTHING_COMMITTED, INFO, connector.name,
            f"{counted(len(running), 'task')} of {connector.name} RUNNING, and no offset was committed for "
            f"{quiet_ms // 60_000:,} m", _IDLE, {"quiet_ms": quiet_ms},
        )  # fmt: skip


def by_worker(findings: Sequence[Finding], observation: Observation) -> list[Finding]:
    """Replace the findings of a worker's tasks by one warning, if their connectors' tasks commit on other workers."""
    quiet = {each.subject: each for each in findings if each.code == codes.NOTHING_COMMITTED}
    tasks: dict[str, dict[str, QuietTask]] = {}
    for connector in observation.sources():
        for task in connector.running():
            transactional_id = task_transactional_id(observation.group_id or "", connector.name, task)
            worker = connector.worker_of(f"task {task}")
            if worker is not None and transactional_id in observation.quiet:
                tasks.setdefault(worker, {})[f"{connector.name}/{task}"] = observation.quiet[transactional_id]
    committing = {each.rpartition("/")[0] for of in tasks.values() for each in of if each not in quiet}
    hung = {
        worker: of
        for worker, of in tasks.items()
        if len(of) > 1
        and all(each in quiet for each in of)
        and _stopped_together(of.values())
        and any(each.rpartition("/")[0] in committing for each in of)
    }
    folded = {subject for of in hung.values() for subject in of}
    causes = [
        under_cause(_worker_finding(worker, len(of)), (quiet[each] for each in of)) for worker, of in hung.items()
    ]
    return [*causes, *(each for each in findings if quiet.get(each.subject) is not each or each.subject not in folded)]


def _stopped_together(quiet: Collection[QuietTask]) -> bool:
    """Decide whether all of them have committed something, and for the last time at about the same moment."""
    ages_ms = [each.quiet_ms for each in quiet]
    return max(ages_ms) - min(ages_ms) <= _TOGETHER_MS and not any(each.since_start for each in quiet)


def _worker_finding(worker: str, tasks: int) -> Finding:
    return Finding(
        codes.WORKER_COMMITS_NOTHING, WARNING, worker,
        f"none of the {tasks} tasks that are RUNNING on {worker} has committed anything for five minutes or more; "
        "they stopped within a minute, and tasks of the same connectors on other workers go on",
        "See its log. If it hangs, end its process: the others take its tasks over.",
    )  # fmt: skip
