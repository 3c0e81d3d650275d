"""Gathers the input of gates and connector checks: workers, topics, transactions, connectors. Reads only.

A part that can't be read is left out of the observation, with the reason; it never stops the rest.

Each source connector's config is validated on a worker, to learn what the connector itself declares of exactly-once. A
validation may log in to the connector's database and take seconds: they run in parallel, and after all faster requests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.configs.losses import takes_snapshots
from eosctl.core.configs.records import OFFSETS_TOPIC, RecordKind, decode_key_text, parse_key
from eosctl.core.configs.view import differing_connectors
from eosctl.core.offsets.findings import aborted_offsets
from eosctl.core.offsets.records import newest_commits, snapshots_under_way
from eosctl.core.open_transactions import OpenTransaction
from eosctl.core.records import Bounds, Place, Record
from eosctl.core.versions import is_older
from eosctl.core.wording import is_topic_name
from eosctl.core.workers.connector_entry import ConnectorEntry, mapping_of
from eosctl.core.workers.modes import CONNECT_SETTING, MIRROR_MAKER_SETTING, Mode, UpgradeWorker
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, UnauthorizedError
from eosctl.group.absent import read_both_views, read_config_topic
from eosctl.group.gather import NO_REST
from eosctl.group.modes import cluster_id_of, files_of, read_worker_file
from eosctl.group.observation.holders import assigned_work, with_holders
from eosctl.group.observation.rules import (
    BROKER_SETTINGS,
    CONNECTOR_STATES,
    OLDEST_VERSION,
    VALIDATION,
    Observation,
    ObservedConnector,
    WorkerFile,
    observed_connectors,
)
from eosctl.group.observed import GroupObservation, WorkerObservation
from eosctl.group.protocol import CONNECTOR_ITSELF, Work
from eosctl.group.topics import connectors_as_written, version_at
from eosctl.machine.side_by_side import side_by_side
from eosctl.observation.own_clusters import with_own_clusters, with_stale_offsets, written_connectors
from eosctl.observation.transactions import MAX_TIMEOUT_SETTING, least_maximum_ms, with_brokers, with_transactions
from eosctl.ports import ConnectWorker, TopicReader

SUPPORT_PROPERTY = "exactly.once.support"
BOUNDARY_PROPERTY = "transaction.boundary"
PARALLEL_VALIDATIONS = 8
_OFFSETS_TOPIC_DOC = "The name of a separate offsets topic"  # SourceConnectorConfig, 3.3 to 4.3


class _Answers(Struct, frozen=True):
    """The objections by property; `redefines_offsets_topic` as in ObservedConnector."""

    errors: Mapping[str, tuple[str, ...]]
    redefines_offsets_topic: bool


def with_validations(app: App, observation: Observation) -> Observation:
    """Add the objections of the first worker that answers; leave half of the remaining time for later steps.

    A worker that was not named gets no more of the connectors' configs than it reports itself.
    """
    if observation.mirror_maker:
        return observation.without((VALIDATION,), f"each {NO_REST}")
    trusted = [url for url in observation.cluster_ids if app.target.trusts(url)]
    url, is_trusted = next(iter([*trusted, *observation.cluster_ids]), None), bool(trusted)
    sources = observation.sources()
    if url is None or observation.connectors is None or not sources:
        return observation
    worker = replace(app, deadline=app.deadline.half()).worker(url)
    configs = {each.name: each.config for each in sources} if is_trusted else _own_configs(worker)
    results = side_by_side(
        lambda each: _validate(worker, configs.get(each.name, {})), sources, most=PARALLEL_VALIDATIONS
    )
    answers = {each.name: answer for each, answer in zip(sources, results, strict=True)}
    connectors = tuple(_with_answers(each, answers.get(each.name)) for each in observation.connectors)
    return replace(observation, connectors=connectors)


def _own_configs(worker: ConnectWorker) -> Mapping[str, Mapping[str, str]]:
    """Return the configs of all connectors as this worker reports them; none if it does not."""
    try:
        return {name: entry.config for name, entry in worker.connectors().items()}
    except EosctlError:
        return {}


def without_validations(observation: Observation) -> Observation:
    """Mark the validation as unseen, as it was not requested."""
    return observation.without((VALIDATION,), "no connector was validated (--no-validate)")


def _with_answers(connector: ObservedConnector, answers: _Answers | None) -> ObservedConnector:
    if answers is None:
        return connector
    return replace(
        connector,
        support_errors=answers.errors.get(SUPPORT_PROPERTY),
        boundary_errors=answers.errors.get(BOUNDARY_PROPERTY, ()),
        redefines_offsets_topic=answers.redefines_offsets_topic,
    )


def _validate(worker: ConnectWorker, config: Mapping[str, str]) -> _Answers | None:
    """Return a worker's objections if the connector required exactly-once; None if it can't be asked."""
    try:
        answer = worker.validate(config["connector.class"], {**config, SUPPORT_PROPERTY: "required"})
    except (EosctlError, KeyError):
        return None
    configs = answer.get("configs")
    entries = [mapping_of(each) for each in (configs if isinstance(configs, list) else [])]
    values = [mapping_of(each.get("value")) for each in entries]
    errors = {str(value.get("name")): _texts(value.get("errors")) for value in values}
    return _Answers(errors, redefines_offsets_topic=any(map(_redefines, entries)))


def _redefines(entry: Mapping[str, object]) -> bool:
    """Decide whether the connector defines an `offsets.storage.topic` of its own, which replaces Connect's."""
    definition = mapping_of(entry.get("definition"))
    documentation = definition.get("documentation")
    of_another = isinstance(documentation, str) and not documentation.startswith(_OFFSETS_TOPIC_DOC)
    return definition.get("name") == OFFSETS_TOPIC and of_another


def _texts(errors: object) -> tuple[str, ...]:
    return tuple(str(text) for text in (errors if isinstance(errors, list) else []))


OPEN_TRANSACTION_PATIENCE_S = 5.0
_POLL_S = 0.5


def observe_upgrade(app: App, group: GroupObservation, target: Mode, *, validate: bool = True) -> Observation:
    """Observe all that gates judge; parts that can't be observed stay unseen, with the reason.

    `validate`: have workers validate each source connector, for which some log in to their sources.
    """
    observation = _with_connectors(app, group, _workers_only(app, group, target))
    if group.is_mirror_maker:
        observation = _as_written(app, group, observation)
    observation = with_own_clusters(app, with_brokers(app, observation))
    observation = with_transactions(app, _with_topics(app, observation, _TOPIC_PARTS))
    return with_validations(app, observation) if validate else without_validations(observation)


def observe_connectors(app: App, group: GroupObservation, *, validate: bool = True) -> Observation:
    """Observe only what the connector checks judge; do not wait for open transactions.

    Offsets topics are read only if a connector's offsets move to a Kafka cluster of its own. For a dedicated
    MirrorMaker, whose workers can't be asked, configs and states come from its config and status topics.
    """
    observation = _with_connectors(app, group, _workers_only(app, group, Mode.ENABLED))
    if group.is_mirror_maker:
        observation = _as_written(app, group, observation)
    observation = with_own_clusters(app, observation)
    parts = {what: _TOPIC_PARTS[what] for what in ("topics", BROKER_SETTINGS, "config topic")}
    observation = with_transactions(app, _with_topics(app, observation, parts))
    return with_validations(app, observation) if validate else without_validations(observation)


def mirror_maker_setting(app: App) -> str:
    """Return the name of the mode setting in the files of MirrorMaker's nodes, as far as they are known."""
    settings = {each.mode_setting for each in app.target.worker_configs} - {CONNECT_SETTING}
    return settings.pop() if len(settings) == 1 else MIRROR_MAKER_SETTING


def _workers_only(app: App, group: GroupObservation, target: Mode) -> Observation:
    setting = mirror_maker_setting(app)
    return Observation(
        target=target,
        group_state=group.state or "not known (no Kafka cluster or group was named)",
        workers=(*(_upgrade_worker(member, group, setting) for member in group.members), *_absent_workers(app, group)),
        config_topic=app.target.config_topic,
        offset_topic=app.target.offset_topic,
        kafka_cluster_id=group.kafka_cluster_id,
        group_id=app.target.group_id,
        client=app.target.client,
        files=tuple(WorkerFile(path, values) for path, values in _worker_files(app).items()),
        mirror_maker=group.is_mirror_maker,
    )


def _upgrade_worker(member: WorkerObservation, group: GroupObservation, setting: str) -> UpgradeWorker:
    """Convert a worker of the group; one that was only named with -u, and is no member, is absent."""
    if group.state == "Stable" and member.member_id is None:
        mode = Mode.ABSENT
    elif member.health == "unreachable":
        mode = Mode.UNREACHABLE
    elif is_older(member.version, OLDEST_VERSION):
        mode = Mode.OLD_VERSION
    else:
        mode = member.mode
    return UpgradeWorker(
        name=member.name,
        mode=mode,
        leader=member.leader,
        version=member.version,
        health=member.health,
        evidence=member.evidence,
        setting=CONNECT_SETTING if member.has_rest else setting,
        confirmed=member.has_rest,
        doubt=member.doubt,
    )


def _worker_files(app: App) -> Mapping[str, Mapping[str, str]]:
    """Return the properties of the files given with -w, by path."""
    return {each.properties.source: each.properties.values for each in app.target.worker_configs}


def _absent_workers(app: App, group: GroupObservation) -> list[UpgradeWorker]:
    """Return the files given with -w that belong to no member: their workers are down, or were forgotten.

    A file is left out if only its worker can resolve the address or the group.
    """
    files = [read_worker_file(path, values) for path, values in _worker_files(app).items()]
    urls = [member.url for member in group.members]
    present = {file.path for url in urls for file in files_of(url, files, group_id=app.target.group_id)}
    return [
        UpgradeWorker(file.path, Mode.ABSENT, evidence=(f"{file.path} says {file.mode}",))
        for file in files
        if file.path not in present and not file.unresolved
    ]


_Part = Callable[[App, TopicReader, Observation], Observation]


def _with_topics(app: App, observation: Observation, parts: Mapping[str, _Part]) -> Observation:
    """Add what the internal topics and the brokers report; a part that can't be read stays unseen."""
    if app.target.client is None:
        return observation.without(parts, "no Kafka cluster was named")
    with app.topics() as store:
        for what, add in parts.items():
            try:
                observation = add(app, store, observation)
            except EosctlError as exc:
                observation = observation.without([what], exc.message, forbidden=isinstance(exc, UnauthorizedError))
    return observation


def _with_descriptions(app: App, store: TopicReader, observation: Observation) -> Observation:
    named = {each.config.get(OFFSETS_TOPIC) or "" for each in observation.sources()}
    own = {topic for topic in named if is_topic_name(topic)}
    return replace(observation, topics=store.describe({app.target.config_topic, app.target.offset_topic, *own}))


def _with_aborted_offsets(app: App, store: TopicReader, observation: Observation) -> Observation:
    """Add aborted offsets of the global topic; connectors' own topics are read as committed by default.

    Add also which of Debezium's connectors are in a snapshot and, if a worker is not enabled, the time of each
    connector's newest offset.
    """
    topic = app.target.offset_topic
    uncommitted = store.read(topic, isolation="read_uncommitted", newest_per_key=True)
    committed = store.read(topic, newest_per_key=True)
    debeziums = {each.name for each in observation.sources() if takes_snapshots(each.config)}
    seen = replace(
        observation,
        aborted_offsets=aborted_offsets(uncommitted, committed),
        snapshots=snapshots_under_way(committed.records, debeziums),
    )
    if all(worker.mode is Mode.ENABLED for worker in observation.workers):
        return seen  # transactions report more
    return replace(seen, committed_ms=newest_commits(committed.records))


def _with_broker_settings(_app: App, store: TopicReader, observation: Observation) -> Observation:
    maximum_ms = least_maximum_ms(store)
    if maximum_ms is None:
        return observation.without([BROKER_SETTINGS], f"no broker reports its {MAX_TIMEOUT_SETTING}")
    return replace(observation, max_transaction_timeout_ms=maximum_ms)


def _with_open_transactions(app: App, store: TopicReader, observation: Observation) -> Observation:
    return replace(observation, open_transactions=_open_transactions(app, store))


def _open_transactions(app: App, store: TopicReader) -> tuple[OpenTransaction, ...]:
    """Return partitions of the internal topics whose LSO stays behind the end; tasks that commit regularly move on."""
    topics = (app.target.config_topic, app.target.offset_topic)
    stuck = _open_bounds(store, topics)
    patience = Deadline.after(min(OPEN_TRANSACTION_PATIENCE_S, app.deadline.remaining_s()), app.clock)
    while stuck and not patience.expired():
        patience.sleep(_POLL_S)
        now = _open_bounds(store, topics)
        stuck = {place: bound for place, bound in stuck.items() if place in now and now[place].lso == bound.lso}
    return tuple(OpenTransaction(topic, bound) for (topic, _partition), bound in sorted(stuck.items()))


def _open_bounds(store: TopicReader, topics: Collection[str]) -> dict[Place, Bounds]:
    found = store.bounds_of(topics)
    return {(topic, each.partition): each for topic in topics for each in found[topic] if each.lso < each.end}


def _with_config_state(app: App, store: TopicReader, observation: Observation) -> Observation:
    committed, uncommitted = read_both_views(app, store)
    written = {record.offset: record.timestamp_ms for record in committed.read.records}
    task_sets = {name: written.get(each.commit_offset or 0, -1) for name, each in committed.state.connectors.items()}
    observation = replace(
        observation,
        config_read=committed.read,
        config_state=committed.state,
        task_sets_ms=task_sets,
        config_records_ms=_record_times(committed.read.records),
        looked_ms=app.clock.now_ms(),
    )
    if committed.read.blocked():
        return observation.without(("config topic",), f"an open transaction hides the end of {committed.read.topic}")
    return replace(observation, differing_connectors=tuple(differing_connectors(committed.state, uncommitted.state)))


def _record_times(records: Iterable[Record]) -> dict[tuple[RecordKind, str], tuple[int, ...]]:
    """Return when each connector's records that are no tombstones were written, by their kind."""
    found: dict[tuple[RecordKind, str], list[int]] = {}
    for record in records:
        if record.key is not None and record.value is not None:
            key = parse_key(decode_key_text(record.key))
            found.setdefault((key.kind, key.name), []).append(record.timestamp_ms)
    return {key: tuple(times) for key, times in found.items()}


_TOPIC_PARTS: Mapping[str, _Part] = {
    "topics": _with_descriptions,
    "open transactions": _with_open_transactions,
    "aborted offsets": _with_aborted_offsets,
    "own offsets topics": with_stale_offsets,
    BROKER_SETTINGS: _with_broker_settings,
    "config topic": _with_config_state,
}


def _with_connectors(app: App, group: GroupObservation, observation: Observation) -> Observation:
    """Add each worker's Kafka cluster, and the connectors as the first answering worker reports them.

    If no member can be reached, a load balancer in front of them serves as well.
    """
    reasons = [each.failure.message for each in group.members if each.failure and each.health == "unreachable"]
    cluster_ids: dict[str, str] = {}
    connectors: tuple[ObservedConnector, ...] | None = None
    asked = [each for each in (*group.members, *group.proxies) if each.health != "unreachable" and each.has_rest]
    for url in [each.url for each in asked if each.url and not each.outside]:
        worker = app.worker(url)
        try:
            cluster_ids[url] = cluster_id_of(app, worker)
            connectors = _connectors(worker) if connectors is None else connectors
        except EosctlError as exc:
            reasons.append(exc.message)
    if connectors is not None:
        connectors = with_holders(connectors, assigned_work(group))
    observation = replace(observation, cluster_ids=cluster_ids, connectors=connectors)
    silence = f"each {NO_REST}" if group.is_mirror_maker else "no worker answers"
    return observation.without(("connectors",), "; ".join(reasons) or silence)


def _connectors(worker: ConnectWorker) -> tuple[ObservedConnector, ...]:
    return observed_connectors(worker.connectors())


def _as_written(app: App, group: GroupObservation, observation: Observation) -> Observation:
    """Add the connectors, and the versions of workers, from the group's own topics, as far as they can be read.

    Without the status topic, a MirrorMaker's connectors are known, but their states are not.
    """
    statuses: Mapping[Work, Mapping[str, object]] = {}
    try:
        with app.topics() as store:
            state = read_config_topic(app, store).state
            entries: Mapping[str, ConnectorEntry] = connectors_as_written(state, None)
            try:
                written = written_connectors(app, store, state)
                entries, statuses = written.entries, written.statuses
            except EosctlError as exc:
                observation = observation.without((CONNECTOR_STATES,), exc.message)
    except EosctlError as exc:
        return observation.without(("connectors",), exc.message)
    versions = {each.name: version_at(_owned(each), statuses) for each in group.members}
    workers = tuple(replace(each, version=versions.get(each.name)) for each in observation.workers)
    return replace(observation, workers=workers, connectors=observed_connectors(entries))


def _owned(member: WorkerObservation) -> tuple[Work, ...]:
    return (*((name, CONNECTOR_ITSELF) for name in member.connectors or ()), *(member.tasks or ()))
