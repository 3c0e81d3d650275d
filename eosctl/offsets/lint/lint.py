"""`offsets lint`: reads offsets topics and says what is wrong with them; writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors import codes as connector_codes
from eosctl.connectors.dedicated import DedicatedTopics, gather_dedicated_topics
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
from eosctl.offsets.lint.deleted import find_deleted_offsets
from eosctl.offsets.lint.lost import find_lost_offsets
from eosctl.offsets.lint.past_writes import offsets_set_on_purpose
from eosctl.offsets.lint.rows import OFFSETS_LINT, LintData, LintSummary
from eosctl.offsets.lint.rules import WatchedTopic
from eosctl.offsets.stores.own import OwnPlace, own_topics
from eosctl.output.parts import finding_row, unseen_parts
from eosctl.ports import TopicReader
from eosctl.report import Problem, Report, check_exit_code
from eosctl.txn.open_transactions import find_open_transactions

STUCK_AFTER_S = 5.0
"""How long an LSO must stand still behind the end: running tasks open and end transactions all the time."""
MOST_ROWS_PER_CODE = 100


@dataclass(slots=True)
class _Looked:
    """What was seen so far."""

    cluster_id: str
    descriptions: dict[str, TopicDescription] = field(default_factory=dict)
    stores: list[Store] = field(default_factory=list)
    stuck: list[tuple[str, Bounds]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    elsewhere: list[OwnPlace] = field(default_factory=list)
    watched: dict[str, WatchedTopic] = field(default_factory=dict)
    bounds: dict[str, Sequence[Bounds]] = field(default_factory=dict)
    dedicated: DedicatedTopics = field(default_factory=DedicatedTopics)


def lint_offsets(app: App, stores: Sequence[str] = (), *, strict: bool = False) -> Report:
    """Findings about `stores` (`global`, `dedicated`, topics; none named: global and every dedicated topic known).

    Those of one profile, TOPIC@PROFILE, are looked at on its cluster. Exit 3 when one is an error; with `strict`, also
    for a warning. Raises NotFoundError for a missing topic, UsageError for stores of several clusters.
    """
    app, looked, findings = _gather(app, stores)
    return _report(app, looked, findings, strict=strict)


def offset_findings(app: App, configs: TopicRead | None) -> tuple[Sequence[Finding], Sequence[Problem]]:
    """Every finding about every offsets topic known, and what could not be looked at; raises as `lint_offsets`.

    By the same read, and by `configs`, the config topic: what tasks do not see of their offsets, and what went back.
    """
    app, looked, findings = _gather(app, (), watch=True)
    return [*find_lost_offsets(app, looked.watched, looked.dedicated, configs), *findings], looked.problems


def _gather(app: App, stores: Sequence[str], *, watch: bool = False) -> tuple[App, _Looked, list[Finding]]:
    """What there is to say about `stores`, and the App of the cluster that they are on."""
    app, stores, profile = _located(app, stores)
    looked = _look(app, stores, watch=watch)
    if profile is not None:
        message = (
            f"these stores are on the cluster of profile {profile}: give -p {profile} to the commands that fix them"
        )
        looked.problems.append(Problem(connector_codes.OTHER_CLUSTER, message))
    findings = _findings(app, looked)
    for place in looked.elsewhere:
        try:
            there = _look(place.there(), (place.topic,))
            findings += _findings(place.there(), there)
        except NotFoundError:
            findings.append(_missing(place.there(), looked, place.topic, ()))
        except EosctlError as exc:
            looked.problems.append(place.unseen(exc.message))
        else:
            looked.stores += there.stores
            looked.problems += there.problems
    if stores:
        return app, looked, findings
    cut = {topic for topic, bounds in looked.bounds.items() if any(bound.begin > 0 for bound in bounds)}
    deleted, untold = find_deleted_offsets(app, looked.stores, cut, looked.dedicated)
    looked.problems += untold
    return app, looked, [*deleted, *findings]


def _findings(app: App, looked: _Looked) -> list[Finding]:
    findings = [_missing(app, looked, topic, looked.stores) for topic in looked.missing]
    for store in looked.stores:
        findings += topic_findings(looked.descriptions[store.topic], app.target.client)
        findings += begin_findings(store.topic, looked.bounds.get(store.topic, ()))
        findings += record_findings(store)
    if looked.stuck:
        now_ms = app.clock.now_ms()
        open_ones, unknown = find_open_transactions(app, looked.stuck)
        findings += [open_transaction_finding(each, now_ms=now_ms) for each in open_ones]
        looked.problems += unknown
    return findings


def _missing(app: App, looked: _Looked, topic: str, stores: Sequence[Store]) -> Finding:
    """Return what to do for a topic that is not there; `stores` tell whether there is anything to be copied."""
    users = _users(looked, topic)
    found = [store for store in stores if store.topic == app.target.offset_topic]
    has_offsets = any(_has_offsets(store, name) for store in found for name in users) if found else None
    created = creates_topics(worker.properties.values for worker in app.target.worker_configs)
    return missing_topic_finding(topic, users, app.target.client, is_created=created, has_offsets=has_offsets)


def _has_offsets(store: Store, connector: str) -> bool:
    """Whether there are offsets of it, those that an open transaction hides included."""
    live = any(not is_nothing(store.records[key.raw].value) for key in store.connectors.get(connector, ()))
    return live or bool(store.hides_of(connector))


def _users(looked: _Looked, topic: str) -> list[str]:
    """The connectors whose configs name it."""
    return [connector for connector, own in looked.dedicated.configured.items() if own == topic]


def _located(app: App, stores: Sequence[str]) -> tuple[App, Sequence[str], str | None]:
    """The App of the stores' cluster, their names there, and the profile that names it."""
    names = [parse_store(store) for store in stores]
    profiles = {name.profile for name in names}
    if len(profiles) > 1:
        raise UsageError("these stores are on several clusters", hint="Lint one cluster at a time.")
    profile = profiles.pop() if profiles else None
    return app if profile is None else app.elsewhere(profile), [name.name for name in names], profile


def _look(app: App, stores: Sequence[str], *, watch: bool = False) -> _Looked:
    """Reads `stores`, the global one first: its copies come after what they are copies of."""
    with app.topics() as topics:
        looked = _Looked(topics.cluster_id())
        configured = _configured(app, topics, looked) if not stores or DEDICATED in stores else []
        named = [app.target.offset_topic if name == GLOBAL else name for name in stores or (GLOBAL,)]
        names = list(dict.fromkeys([name for name in named if name != DEDICATED] + configured))
        looked.descriptions = dict(topics.describe(names))
        absent = [name for name in names if name not in looked.descriptions]
        looked.missing = [name for name in absent if name in configured]
        for name in absent:
            if name not in configured:
                hint = "The global offsets topic is the worker's offset.storage.topic: name it with --offset-topic."
                raise NotFoundError(f"there is no topic {name}", hint=hint)
        patience = Deadline.after(min(STUCK_AFTER_S, app.deadline.remaining_s() / 4), app.clock)
        is_meant = offsets_set_on_purpose(app, looked.cluster_id) if watch else None
        for name in [name for name in names if name in looked.descriptions]:
            history = None if is_meant is None else OffsetHistory(is_meant)
            read, stuck = _read(topics, name, patience, history)
            behind = topics.read_behind(name, read.blocked()) if watch and read.blocked() else ()
            store = fold_store(read, behind)
            looked.stores.append(store)
            looked.bounds[name] = read.bounds
            looked.stuck += [(name, bound) for bound in stuck]
            if history is not None:
                looked.watched[name] = WatchedTopic(store, history, written=any(bound.end for bound in read.bounds))
    return looked


def _configured(app: App, topics: TopicReader, looked: _Looked) -> list[str]:
    """The dedicated topics, as far as they are known and on this cluster; `looked` has where the others are."""
    dedicated = looked.dedicated = gather_dedicated_topics(app, topics)
    looked.problems += dedicated.problems
    here = {
        connector: topic for connector, topic in dedicated.configured.items() if connector not in dedicated.elsewhere
    }
    places, told = own_topics(app, dedicated)
    looked.elsewhere = list(places)
    looked.problems += told
    return sorted(set(here.values()))


def _read(
    topics: TopicReader, topic: str, patience: Deadline, keep: RecordFilter | None = None
) -> tuple[TopicRead, list[Bounds]]:
    """The topic, and the partitions whose LSO stood still behind the end until `patience` was over.

    What moved on in the meantime is read from there on: the whole may be large.
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
    """Both as one: of a key that both have, the newer record."""
    newer = {(record.partition, record.key) for record in more.records if record.key is not None}
    kept = (record for record in read.records if (record.partition, record.key) not in newer)
    return replace(more, records=(*kept, *more.records), records_read=read.records_read + more.records_read)


def _report(app: App, looked: _Looked, findings: Sequence[Finding], *, strict: bool) -> Report:
    severities, codes = Counter(each.severity for each in findings), Counter(each.code for each in findings)
    shown: Counter[str] = Counter()
    rows = []
    for each in sorted(findings, key=lambda each: SEVERITIES.index(each.severity)):
        shown[each.code] += 1
        if shown[each.code] <= MOST_ROWS_PER_CODE:
            rows.append(finding_row(each))
    return Report(
        kind=OFFSETS_LINT,
        rows=rows,
        summary=LintSummary(
            topics=len(looked.stores),
            findings=len(findings),
            counts={severity: severities[severity] for severity in SEVERITIES},
            codes=dict(sorted(codes.items())),
        ),
        data=LintData(
            topics=[store.topic for store in looked.stores],
            rows_per_code=MOST_ROWS_PER_CODE,
            unseen=unseen_parts(findings, looked.problems),
        ),
        target={"kafka_cluster_id": looked.cluster_id, "group_id": app.target.group_id},
        problems=looked.problems,
        exit_code=check_exit_code(findings, looked.problems, strict=strict),
    )
