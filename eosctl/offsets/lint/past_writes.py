"""Offsets that were lost or went back, for doctor, and findings that past eosctl commands explain. Reads only.

Lost offsets are those that tasks do not see, or that went back, in topics as they were read to lint them. No topic in
use is read a second time; the config topic's history shows the former topics of connectors.

Deleted offsets are those that went with the start of their topic, so that no key is left. It is asked which connectors
have committed before, and only if a topic's log starts behind offset 0.

Past eosctl commands on this machine explain findings: tasks fenced while they ran, offsets set. For that the audit log
is read, and nothing else. If it can't be read, findings stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import DedicatedTopics
from eosctl.core.configs.fold import ConnectorState
from eosctl.core.configs.history import former_offsets_topics, written_configs
from eosctl.core.configs.records import MIRROR_CHECKPOINT, is_class
from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.ids import TransactionalId, task_transactional_id, task_transactional_ids
from eosctl.core.offsets.views import Store, fold_store
from eosctl.core.records import Record, TopicRead
from eosctl.core.transactions import TransactionDescription, TransactionState
from eosctl.core.wording import is_topic_name, rfc3339
from eosctl.core.workers.connector_entry import plugin_type
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.failures import codes as failure_codes
from eosctl.failures.failure import RESTART
from eosctl.foreign import arguments, shell_word
from eosctl.group.topics import find_config_topic
from eosctl.offsets import codes
from eosctl.offsets.configs.changed import changed_partitions
from eosctl.offsets.history.rules import OffsetHistory
from eosctl.offsets.lint.rules import WatchedTopic, lost_offsets
from eosctl.report import Problem
from eosctl.state.audit import REFUSED, affected_names
from eosctl.state.audit_file import AuditEntry, log_path, read_entries

_MOST_IDS = 100
"""The most tasks of a connector to ask for: one that has committed is enough."""


def find_deleted_offsets(
    app: App, stores: Sequence[Store], cut: Collection[str], dedicated: DedicatedTopics
) -> tuple[list[Finding], list[Problem]]:
    """Judge source connectors without any offset in `stores`; `cut` are the topics whose start was deleted."""
    group_id, configs = app.target.group_id, dedicated.configs
    if group_id is None or not cut:
        return [], []
    with_offsets = {name for store in stores for name in store.names()}
    lost = {
        name: topic
        for name, config in sorted(configs.items())
        if (topic := dedicated.configured.get(name, app.target.offset_topic)) in cut
        and name not in with_offsets and name not in dedicated.brokers and name not in dedicated.unknown
        and plugin_type(config) == "source" and not is_class(config, MIRROR_CHECKPOINT)
    }  # fmt: skip
    try:
        recorded = _recorded(app, lost)
        committed = _committed(app, group_id, recorded)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return [], [Problem.of(exc)]
    return [_deleted(name, topic, name in committed) for name, topic in lost.items() if name in recorded], []


def _recorded(app: App, names: Collection[str]) -> dict[str, ConnectorState]:
    """Return the connectors whose tasks ran exactly-once, by their task-count record."""
    if not names:
        return {}
    with app.topics() as store:
        found = find_config_topic(app, store)
    known: Mapping[str, ConnectorState] = {} if found is None else found.state.connectors
    return {name: known[name] for name in names if name in known and known[name].task_count_record}


def _committed(app: App, group_id: str, recorded: Mapping[str, ConnectorState]) -> set[str]:
    """Return the connectors that have a task whose newest transaction is committed."""
    ids = {name: _ids(group_id, name, state) for name, state in recorded.items()}
    if not ids:
        return set()
    with app.transactions() as admin:
        described = admin.describe_transactions([each for of in ids.values() for each in of])
    return {name for name, of in ids.items() if _one_committed(described.get(each) for each in of)}


def _ids(group_id: str, name: str, state: ConnectorState) -> list[TransactionalId]:
    count = max(state.task_count_record or 0, state.task_count or 0)
    return task_transactional_ids(group_id, name, min(count, _MOST_IDS))


def _one_committed(described: Iterable[object]) -> bool:
    known = [description for description in described if isinstance(description, TransactionDescription)]
    return any(description.state is TransactionState.COMPLETE_COMMIT for description in known)


def _deleted(name: str, topic: str, has_committed: bool) -> Finding:
    ran = "has committed before" if has_committed else "ran exactly-once before, and may have committed"
    meant = f"{codes.OFFSETS_DELETED}:{name}"
    return Finding(
        codes.OFFSETS_DELETED, ERROR if has_committed else WARNING, name,
        f"{name} {ran}, and has no offset anywhere: records were deleted from the start of {topic}; its next start "
        "reads its source from the beginning",
        f"Do not resume or restart {shell_word(name)} before its offsets are back: from an export with "
        "`eosctl offsets import`, from a backup with `eosctl offsets restore`. If they were reset: "
        f"`eosctl doctor --ignore {shell_word(meant)}`.",
        {"connector": name, "topic": topic, "committed": has_committed}, certain=has_committed,
    )  # fmt: skip


def find_lost_offsets(
    app: App, watched: Mapping[str, WatchedTopic], dedicated: DedicatedTopics, configs: TopicRead | None
) -> list[Finding]:
    """Find lost offsets of existing connectors whose own topics are not on other brokers; `watched` are by topic."""
    common = watched[app.target.offset_topic]
    names = common.store.names() if dedicated.connectors is None else dedicated.connectors
    known = set(names) - set(dedicated.brokers) - set(dedicated.unknown)
    own = {
        name: watched.get(topic) or WatchedTopic(Store(topic, common.store.partitions), OffsetHistory())
        for name, topic in dedicated.configured.items()
        if name in known
    }
    written = written_configs(() if configs is None else configs.records)
    named = {
        name: topic
        for name, topic in former_offsets_topics(written).items()
        if name in known - own.keys() and topic != app.target.offset_topic and is_topic_name(topic)
    }
    former = _former_stores(app, watched, named)
    used = {name: own.get(name, common) for name in sorted(known)}
    changed = (changed_partitions(name, written.get(name, ()), it.store, it.history) for name, it in used.items())
    return [
        *lost_offsets(common, own, known, former=former, show_time=lambda moment_ms: str(rfc3339(moment_ms))),
        *filter(None, changed),
    ]


def _former_stores(app: App, watched: Mapping[str, WatchedTopic], named: Mapping[str, str]) -> dict[str, Store]:
    """Return the former offsets topics of connectors without one, as far as they are on this cluster.

    A former topic that can't be read is not reported here: none of them is in use.
    """
    try:
        with app.topics() as topics:
            stores = {name: watched_topic.store for name, watched_topic in watched.items()}
            for topic in topics.describe({*named.values()} - stores.keys()):
                stores[topic] = fold_store(topics.read(topic, newest_per_key=True))
    except InterruptedByUserError:
        raise
    except EosctlError:
        return {}
    return {name: stores[topic] for name, topic in named.items() if topic in stores}


_OF_FENCING = {failure_codes.TASK_FENCED, failure_codes.TASK_FENCED_OR_EXPIRED}
_CLOCKS_DIFFER_MS = 5_000
"""A worker that is asked to write offsets stamps them by its own clock."""
_AT_RUNNING_TASKS = ("live", "unknown_liveness")


def with_past_fences(app: App, findings: Iterable[Finding], cluster_id: str | None) -> list[Finding]:
    """Add, to findings about fenced tasks, the newest fence of their ids by eosctl while they ran."""
    found = list(findings)
    if app.target.group_id is None or not any(finding.code in _OF_FENCING for finding in found):
        return found
    try:
        entries = read_entries(log_path(app.target.audit_log, app.state_dir)).entries
    except OSError:
        return found
    fences = [entry for entry in entries if _is_fence(entry, cluster_id)]
    return [_explained(app.target.group_id, finding, fences) for finding in found]


def _is_fence(entry: AuditEntry, cluster_id: str | None) -> bool:
    """Decide whether the entry may have fenced ids of running tasks on this cluster."""
    target = entry.get("target")
    here = isinstance(target, Mapping) and target.get("kafka_cluster_id") == cluster_id
    return here and entry.get("outcome") != REFUSED and any(_waived(entry))


def _waived(entry: AuditEntry) -> Iterator[str]:
    overrides = entry.get("overrides")
    given = overrides if isinstance(overrides, Mapping) else {}
    yield from (f"--{name.replace('_', '-')}" for name in _AT_RUNNING_TASKS if given.get(name))


def _explained(group_id: str, finding: Finding, fences: Sequence[AuditEntry]) -> Finding:
    connector, _slash, task = finding.subject.rpartition("/")
    if finding.code not in _OF_FENCING or not connector or not task.isdecimal():
        return finding
    transactional_id = task_transactional_id(group_id, connector, int(task))
    for entry in reversed(fences):
        if transactional_id in affected_names(entry).get("transactional_ids", ()):
            command = " ".join(["eosctl", str(entry.get("command")), *_waived(entry)])
            who = f"{entry.get('user')} on {entry.get('host')}"
            message = f"{finding.subject} is FAILED: fenced by `{command}` at {entry.get('time')} ({who})"
            evidence = {"transactional_id": transactional_id, "command": command, "time": entry.get("time")}
            fix = RESTART.replace("{name}", arguments(connector))
            return replace(finding, message=message, fix=fix, evidence={**finding.evidence, "fenced_by": evidence})
    return finding


def offsets_set_on_purpose(app: App, cluster_id: str) -> Callable[[str, Record], bool]:
    """Return a predicate for offsets that an `eosctl offsets ...` command wrote for a connector, by their time."""
    try:
        entries = read_entries(log_path(app.target.audit_log, app.state_dir)).entries
    except OSError:
        entries = ()
    spans = [span for entry in entries if (span := _offsets_written(entry, cluster_id)) is not None]

    def is_meant(connector: str, record: Record) -> bool:
        return any(
            begin_ms <= record.timestamp_ms <= end_ms and (connectors is None or connector in connectors)
            for begin_ms, end_ms, connectors in spans
        )

    return is_meant


def _offsets_written(entry: AuditEntry, cluster_id: str) -> tuple[int, int, frozenset[str] | None] | None:
    """Return the start, end and connectors of a write of offsets; None for any other entry.

    The connectors are None if they are too many to be listed.
    """
    target = entry.get("target")
    here = isinstance(target, Mapping) and target.get("kafka_cluster_id") == cluster_id
    begun_ms, ended_ms = entry.get("time_ms"), entry.get("ended_ms")
    if not here or not str(entry.get("command")).startswith("offsets ") or not isinstance(begun_ms, int):
        return None
    if entry.get("outcome") == REFUSED:
        return None
    touched = affected_names(entry)
    connectors = None if touched.get("left_out") else frozenset(touched.get("connectors", ()))
    last_ms = ended_ms if isinstance(ended_ms, int) else begun_ms
    return begun_ms - _CLOCKS_DIFFER_MS, last_ms + _CLOCKS_DIFFER_MS, connectors
