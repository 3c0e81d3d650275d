"""`offsets lint`: reads offsets topics and reports what is wrong with them; writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors import codes as connector_codes
from eosctl.connectors.dedicated import DedicatedTopics, gather_dedicated_topics
from eosctl.core.configs.fold import ConfigState
from eosctl.core.configs.view import without_secrets
from eosctl.core.findings import SEVERITIES, Finding
from eosctl.core.offsets.findings import (
    begin_findings,
    missing_topic_finding,
    open_transaction_finding,
    record_findings,
    topic_findings,
)
from eosctl.core.offsets.names import DEDICATED, GLOBAL, parse_store
from eosctl.core.offsets.records import is_nothing
from eosctl.core.offsets.views import Store, fold_store
from eosctl.core.records import Bounds, RecordFilter, TopicDescription, TopicRead
from eosctl.core.workers.config import creates_topics
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, NotFoundError, UsageError
from eosctl.offsets.history.rules import OffsetHistory
from eosctl.offsets.lint.past_writes import find_deleted_offsets, find_lost_offsets, offsets_set_on_purpose
from eosctl.offsets.lint.rows import OFFSETS_LINT, LintData, LintSummary
from eosctl.offsets.lint.rules import WatchedTopic
from eosctl.offsets.stores.gather import require_connectors
from eosctl.offsets.stores.own import OwnTopic, own_topics
from eosctl.output.rows import finding_row, unseen_parts
from eosctl.ports import TopicReader
from eosctl.report import Problem, Report, check_exit_code
from eosctl.txn.open_transactions import find_open_transactions

STUCK_AFTER_S = 5.0
"""How long an LSO must stand still behind the end: running tasks open and end transactions all the time."""
MOST_ROWS_PER_CODE = 100


@dataclass(slots=True)
class _LintState:
    """The topics as read so far; `only` are the connectors in question, none for all."""

    cluster_id: str
    only: frozenset[str] = frozenset()
    descriptions: dict[str, TopicDescription] = field(default_factory=dict)
    stores: list[Store] = field(default_factory=list)
    stuck: list[tuple[str, Bounds]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    elsewhere: list[OwnTopic] = field(default_factory=list)
    watched: dict[str, WatchedTopic] = field(default_factory=dict)
    bounds: dict[str, Sequence[Bounds]] = field(default_factory=dict)
    dedicated: DedicatedTopics = field(default_factory=DedicatedTopics)
    versions: tuple[str | None, ...] = ()  # of the workers; none where they were not asked


def lint_offsets(
    app: App, stores: Sequence[str] = (), connectors: Collection[str] = (), *, strict: bool = False
) -> Report:
    """Report findings about `stores` (`global`, `dedicated`, topics; none: global and every known dedicated topic).

    Stores of one profile, TOPIC@PROFILE, are read on its cluster. With `connectors`, these stores are the global one
    and their own. Exit 3 if a finding is an error; with `strict`, also for a warning. Raises NotFoundError for a
    missing topic or connector, UsageError for stores of several clusters, or with connectors.
    """
    if stores and connectors:
        raise UsageError(
            "--connector and --store exclude each other", hint="A connector is looked for in the stores that it uses."
        )
    app, state, findings = _gather(app, stores, only=frozenset(connectors))
    names = {name for store in state.stores for name in store.names()}
    require_connectors(app, names | (state.dedicated.connectors or frozenset()), connectors)
    return _report(app, state, findings, strict=strict)


def offset_findings(
    app: App, configs: TopicRead | None, known: ConfigState | None, versions: Iterable[str | None]
) -> tuple[Sequence[Finding], Sequence[Problem]]:
    """Return every finding about every known offsets topic, and what could not be read; raise as `lint_offsets`.

    The same read, with `configs` (the config topic), also yields offsets that tasks do not see or that went back.
    `known` is that topic's state, and `versions` are those of the workers.
    """
    app, state, findings = _gather(app, (), watch=True, known=known, versions=tuple(versions))
    return [*find_lost_offsets(app, state.watched, state.dedicated, configs), *findings], state.problems


def _gather(
    app: App,
    stores: Sequence[str],
    *,
    only: frozenset[str] = frozenset(),
    watch: bool = False,
    known: ConfigState | None = None,
    versions: tuple[str | None, ...] = (),
) -> tuple[App, _LintState, list[Finding]]:
    """Return the App of the cluster of `stores`, the topics as read, and the findings."""
    app, stores, profile = _located(app, stores)
    state = _look(app, stores, only=only, watch=watch, known=known)
    state.versions = versions
    if profile is not None:
        message = (
            f"these stores are on the cluster of profile {profile}: give -p {profile} to the commands that fix them"
        )
        state.problems.append(Problem(connector_codes.OTHER_CLUSTER, message))
    findings = _findings(app, state)
    for own_topic in state.elsewhere:
        try:
            own = _look(own_topic.require_app(), (own_topic.topic,), only=only)
            findings += _findings(own_topic.require_app(), own)
        except NotFoundError:
            findings.append(_missing(own_topic.require_app(), state, own_topic.topic, ()))
        except EosctlError as exc:
            state.problems.append(own_topic.unseen(exc.message))
        else:
            state.stores += own.stores
            state.problems += own.problems
    if stores:
        return app, state, findings
    cut = {topic for topic, bounds in state.bounds.items() if any(bound.begin > 0 for bound in bounds)}
    deleted, unread = find_deleted_offsets(app, state.stores, cut, state.dedicated)
    state.problems += unread
    return app, state, [*(each for each in deleted if not only or each.subject in only), *findings]


def _findings(app: App, state: _LintState) -> list[Finding]:
    findings = [_missing(app, state, topic, state.stores) for topic in state.missing]
    for store in state.stores:
        findings += topic_findings(state.descriptions[store.topic], app.target.client)
        findings += begin_findings(store.topic, state.bounds.get(store.topic, ()))
        findings += record_findings(store, state.only)
    if state.stuck:
        now_ms = app.clock.now_ms()
        open_ones, unknown = find_open_transactions(app, state.stuck)
        findings += [open_transaction_finding(transaction, now_ms=now_ms) for transaction in open_ones]
        state.problems += unknown
    return findings


def _missing(app: App, state: _LintState, topic: str, stores: Sequence[Store]) -> Finding:
    """Return the finding of a missing topic; `stores` show whether there is anything to be copied to it."""
    users = _users(state, topic)
    found = [store for store in stores if store.topic == app.target.offset_topic]
    has_offsets = any(_has_offsets(store, name) for store in found for name in users) if found else None
    created = creates_topics((worker.properties.values for worker in app.target.worker_configs), state.versions)
    return missing_topic_finding(topic, users, app.target.client, is_created=created, has_offsets=has_offsets)


def _has_offsets(store: Store, connector: str) -> bool:
    """Decide whether the connector has offsets, including those that an open transaction hides."""
    live = any(not is_nothing(store.records[key.raw].value) for key in store.connectors.get(connector, ()))
    return live or bool(store.hides_of(connector))


def _users(state: _LintState, topic: str) -> list[str]:
    """Return the connectors whose configs name the topic."""
    return [connector for connector, own in state.dedicated.configured.items() if own == topic]


def _located(app: App, stores: Sequence[str]) -> tuple[App, Sequence[str], str | None]:
    """Return the App of the stores' cluster, their names there, and the profile that names it."""
    names = [parse_store(store) for store in stores]
    profiles = {name.profile for name in names}
    if len(profiles) > 1:
        raise UsageError("these stores are on several clusters", hint="Lint one cluster at a time.")
    profile = profiles.pop() if profiles else None
    return app if profile is None else app.elsewhere(profile), [name.name for name in names], profile


def _look(
    app: App,
    stores: Sequence[str],
    *,
    only: frozenset[str] = frozenset(),
    watch: bool = False,
    known: ConfigState | None = None,
) -> _LintState:
    """Read `stores`, the global one first: its copies come after their originals."""
    with app.topics() as topics:
        state = _LintState("", only)
        configured = _configured(app, topics, state, known) if not stores or DEDICATED in stores else []
        named = [app.target.offset_topic if name == GLOBAL else name for name in stores or (GLOBAL,)]
        names = list(dict.fromkeys([name for name in named if name != DEDICATED] + configured))
        state.descriptions = dict(topics.describe(names))
        state.cluster_id = topics.cluster_id()  # which has come with the descriptions
        absent = [name for name in names if name not in state.descriptions]
        state.missing = [name for name in absent if name in configured]
        for name in absent:
            if name not in configured:
                hint = "The global offsets topic is the worker's offset.storage.topic: name it with --offset-topic."
                raise NotFoundError(f"there is no topic {name}", hint=hint)
        patience = Deadline.after(min(STUCK_AFTER_S, app.deadline.remaining_s() / 4), app.clock)
        is_meant = offsets_set_on_purpose(app, state.cluster_id) if watch else None
        for name in [name for name in names if name in state.descriptions]:
            history = None if is_meant is None else OffsetHistory(is_meant)
            read, stuck = _read(topics, name, patience, history)
            behind = topics.read_behind(name, read.blocked()) if watch and read.blocked() else ()
            store = fold_store(read, behind)
            state.stores.append(store)
            state.bounds[name] = read.bounds
            state.stuck += [(name, bound) for bound in stuck]
            if history is not None:
                state.watched[name] = WatchedTopic(store, history, written=any(bound.end for bound in read.bounds))
    return state


def _configured(app: App, topics: TopicReader, state: _LintState, known: ConfigState | None) -> list[str]:
    """Return the known dedicated topics on this cluster; add those on other clusters to `state`."""
    dedicated = state.dedicated = gather_dedicated_topics(app, topics, known=known)
    state.problems += dedicated.problems
    here = {
        connector: topic for connector, topic in dedicated.configured.items()
        if connector not in dedicated.elsewhere and (not state.only or connector in state.only)
    }  # fmt: skip
    places, problems = own_topics(app, dedicated, state.only or None)
    state.elsewhere = list(places)
    state.problems += problems
    return sorted(set(here.values()))


def _read(
    topics: TopicReader, topic: str, patience: Deadline, keep: RecordFilter | None = None
) -> tuple[TopicRead, list[Bounds]]:
    """Read the topic; also return the partitions whose LSO stood still behind the end until `patience` was over.

    If some moved on in the meantime, only the records from there on are read: the whole may be large.
    """
    read = topics.read(topic, newest_per_key=True, keep=keep)
    stuck = {bound.partition: bound for bound in read.blocked()}
    hidden = len(stuck)
    while stuck and not patience.expired():
        patience.sleep(0.5)
        now = {bound.partition: bound for bound in topics.bounds(topic)}
        stuck = {p: now[p] for p, then in stuck.items() if now[p].lso == then.lso < now[p].end}
    if len(stuck) < hidden:  # what moved on can be seen now
        since = {bound.partition: bound.lso for bound in read.bounds}
        read = _followed_by(read, topics.read(topic, newest_per_key=True, since=since, keep=keep))
    # should it be the config topic
    return replace(read, records=tuple(map(without_secrets, read.records))), list(stuck.values())


def _followed_by(read: TopicRead, more: TopicRead) -> TopicRead:
    """Combine two reads: keep the newer record of a key that both have."""
    newer = {(record.partition, record.key) for record in more.records if record.key is not None}
    kept = (record for record in read.records if (record.partition, record.key) not in newer)
    return replace(more, records=(*kept, *more.records), records_read=read.records_read + more.records_read)


def _report(app: App, state: _LintState, findings: Sequence[Finding], *, strict: bool) -> Report:
    severities, codes = Counter(finding.severity for finding in findings), Counter(finding.code for finding in findings)
    shown: Counter[str] = Counter()
    rows = []
    for finding in sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)):
        shown[finding.code] += 1
        if shown[finding.code] <= MOST_ROWS_PER_CODE:
            rows.append(finding_row(finding))
    return Report(
        kind=OFFSETS_LINT,
        rows=rows,
        summary=LintSummary(
            topics=len(state.stores),
            findings=len(findings),
            counts={severity: severities[severity] for severity in SEVERITIES},
            codes=dict(sorted(codes.items())),
        ),
        data=LintData(
            topics=[store.topic for store in state.stores],
            rows_per_code=MOST_ROWS_PER_CODE,
            unseen=unseen_parts(findings, state.problems),
        ),
        target={"kafka_cluster_id": state.cluster_id, "group_id": app.target.group_id},
        problems=state.problems,
        exit_code=check_exit_code(findings, state.problems, strict=strict),
    )
