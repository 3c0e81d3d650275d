"""task-counts: reads the config topic and the coordinators, and reports what the workers hold and would do.

Reads only. The config topic is always read as read_committed; `replay` alone compares it with the other view.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors import codes as connector_codes
from eosctl.connectors.dedicated import task_clusters
from eosctl.core.configs.fold import fold_config_topic
from eosctl.core.configs.view import aborted_records, differing_connectors
from eosctl.core.findings import Finding
from eosctl.core.kept.record_formats import read_dump
from eosctl.core.offsets import codes as topic_codes
from eosctl.core.records import UNKNOWN, Record
from eosctl.core.transactions import TransactionListing
from eosctl.core.workers.connector_entry import plugin_type
from eosctl.errors import EosctlError, ExitCode, InputFileError, NotFoundError
from eosctl.group.absent import KnownEvidence, blocked_problems, doubt_about, read_both_views, read_config_topic
from eosctl.group.belonging import connectors_of
from eosctl.group.gather import discover_urls, in_turn, read_group
from eosctl.group.observation.absence import Recorded
from eosctl.group.topics import ConfigTopic
from eosctl.output.rows import Kind, unseen_parts
from eosctl.report import Problem, Report, check_exit_code
from eosctl.task_counts import codes
from eosctl.task_counts.rows import (
    TASK_COUNTS_LIST,
    TASK_COUNTS_SHOW,
    TASK_COUNTS_VALIDATE,
    TaskCountsSummary,
    ValidateData,
    case_row,
    replay_report,
)
from eosctl.task_counts.rules import Case, cases, find_problems


def list_task_counts(app: App) -> Report:
    """Report one row per connector, with exit 0 whatever is found."""
    return _report(app, _observe(app), TASK_COUNTS_LIST)


def show_task_counts(app: App, connector: str) -> Report:
    """Report one connector; raise NotFoundError if the topic has no trace of it."""
    observation = _observe(app)
    chosen = [case for case in observation.cases if case.connector.name == connector]
    if not chosen:
        raise NotFoundError(
            f"topic {app.target.config_topic} has no trace of a connector {connector!r}",
            hint="See `eosctl task-counts list`; names are case-sensitive.",
        )
    return _report(app, observation, TASK_COUNTS_SHOW, chosen)


def validate_task_counts(app: App, *, strict: bool) -> Report:
    """Report connectors with their findings; exit 3 on an error or a warning, with `strict` on an info too.

    Else 7 where something could not be seen.
    """
    report = _report(app, _observe(app), TASK_COUNTS_VALIDATE)
    summary = report.summary_of(TaskCountsSummary)
    exit_code = check_exit_code((), report.problems, strict=strict)
    if summary.error or summary.warning or (strict and summary.info):
        exit_code = ExitCode.FINDINGS
    return replace(report, data=ValidateData(unseen=unseen_parts((), report.problems)), exit_code=exit_code)


def find_task_count_problems(app: App) -> tuple[list[Finding], Sequence[Problem]]:
    """Find what is wrong with the records of all connectors, and return what could not be read."""
    observation = _observe(app)
    return [finding for case in observation.cases for finding in find_problems(case)], observation.problems


class _Observation(Struct, frozen=True):
    topic: ConfigTopic
    cases: Sequence[Case]
    checked_against_connect: bool
    problems: Sequence[Problem]


def _observe(app: App) -> _Observation:
    group_id = app.target.require_group_id()
    problems: list[Problem] = []
    with app.topics() as store:
        topic = read_config_topic(app, store)
    problems += blocked_problems(topic.read)
    listings = _list_transactions(app, problems)
    types = _ask_connect(app, topic, problems)
    if listings is not None:
        problems += _group_problems(app, topic, listings)
    elsewhere = _listed_elsewhere(app, topic, problems)
    found = cases(topic.state, group_id, listings=listings, types=types, elsewhere=elsewhere)
    return _Observation(topic, found, types is not None, problems)


def _group_problems(app: App, topic: ConfigTopic, listings: Sequence[TransactionListing]) -> list[Problem]:
    """Warn if the named group has no members; raise NotFoundError if it never existed."""
    try:
        group, _cluster_id = read_group(app, gone_ok=True)
    except NotFoundError:
        raise
    except EosctlError as exc:
        message = f"it is unknown whether the group {app.target.group_id} exists: {exc.message}"
        return [Problem(codes.GROUP_UNKNOWN, message, hint=exc.hint, unseen=True)]
    ids = [listing.transactional_id for listing in listings]
    doubt = doubt_about(app, group, topic.state.connectors, KnownEvidence(ids, Recorded.of(topic.state, topic.read)))
    return [] if doubt is None else [Problem(codes.GROUP_WITHOUT_MEMBERS, doubt)]


def _list_transactions(app: App, problems: list[Problem]) -> Sequence[TransactionListing] | None:
    """List every id of the coordinators; return None, with a warning, if they can't be asked."""
    try:
        with app.transactions() as admin:
            return admin.list_transactions().complete()
    except EosctlError as exc:
        message = f"it is unknown which transactional ids are alive: {exc.message}"
        problems.append(Problem(codes.ALIVE_IDS_UNKNOWN, message, hint=exc.hint, unseen=True))
        return None


def _listed_elsewhere(
    app: App, topic: ConfigTopic, problems: list[Problem]
) -> dict[str, Sequence[TransactionListing] | None]:
    """List the ids of other Kafka clusters, by connector whose config names one; None, with a warning, if unknown."""
    configs = {
        name: each.config
        for name, each in topic.state.connectors.items()
        if each.config is not None and plugin_type(each.config) != "sink"
    }
    places, why_not = task_clusters(app, configs)
    found: dict[str, Sequence[TransactionListing] | None] = dict.fromkeys(why_not)
    reasons = dict(why_not)
    for there, names in places:
        try:
            with there.transactions() as admin:
                found |= dict.fromkeys(names, admin.list_transactions().complete())
        except EosctlError as exc:
            reasons |= dict.fromkeys(names, exc.message)
            found |= dict.fromkeys(names)
    for name, reason in sorted(reasons.items()):
        message = f"{name} writes to another Kafka cluster: which of its transactional ids are alive there is unknown: "
        problems.append(Problem(codes.ALIVE_IDS_UNKNOWN, f"{message}{reason}", unseen=True))
    return found


def _ask_connect(app: App, topic: ConfigTopic, problems: list[Problem]) -> Mapping[str, str] | None:
    """Return the type of each connector from the first worker that answers; None, with warnings, if none does."""
    try:
        urls = discover_urls(app)
    except NotFoundError:
        urls = []  # the coordinator has forgotten it
    except EosctlError as exc:
        problems.append(_not_asked(exc.message, exc.hint))
        return None
    if not urls:
        problems.append(_not_asked(f"the group {app.target.group_id} has no worker to compare the topic with"))
    silent: list[Problem] = []
    for url, worker in in_turn(app, urls):
        try:
            connectors = connectors_of(app, worker, topic.cluster_id)
        except EosctlError as exc:
            silent.append(_not_asked(exc.message, exc.hint))
            continue
        problems += (replace(each, unseen=False) for each in silent)  # another one told it all
        problems += _foreign_topic_problems(topic, url, set(connectors))
        return {name: entry.type for name, entry in connectors.items()}
    problems += silent
    return None


def _not_asked(message: str, hint: str | None = None) -> Problem:
    code = connector_codes.CONNECT_NOT_ASKED
    return Problem(code, message, hint=hint or code.next, unseen=True)


def _foreign_topic_problems(topic: ConfigTopic, url: str, at_connect: set[str]) -> list[Problem]:
    """Warn if the workers know other connectors than the topic: it may belong to another group."""
    in_topic = {name for name, connector in topic.state.connectors.items() if connector.config is not None}
    if in_topic == at_connect or topic.read.blocked():  # what an open transaction hides is no difference
        return []
    only_topic, only_connect = sorted(in_topic - at_connect), sorted(at_connect - in_topic)
    return [
        Problem(
            codes.OTHER_CONNECTORS,
            f"topic {topic.read.topic} and the worker at {url} know different connectors: only in the topic "
            f"{only_topic}, only at the worker {only_connect}",
            hint="Is this the group's config.storage.topic? A connector that was just made or deleted also shows so.",
        )
    ]


def _report(app: App, observation: _Observation, kind: Kind, chosen: Sequence[Case] | None = None) -> Report:
    rows = [case_row(case) for case in (observation.cases if chosen is None else chosen)]
    found = Counter(finding.severity for row in rows for finding in row.findings)
    return Report(
        kind=kind,
        rows=rows,
        summary=TaskCountsSummary(
            connectors=len(rows),
            error=found["error"],
            warning=found["warning"],
            info=found["info"],
            checked_against_connect=observation.checked_against_connect,
        ),
        target={"kafka_cluster_id": observation.topic.cluster_id, "group_id": app.target.group_id},
        problems=observation.problems,
    )


def replay_file(app: App, lines: Iterable[bytes], *, name: str) -> Report:
    """Report the state after the records of a file called `name`, of any tool; touch no cluster.

    Records without an offset follow the one before them; raises InputFileError.
    """
    records: list[Record] = []
    dump = read_dump(lines, name=name)
    for _number, record in dump.records:
        if records and (record.topic, record.partition) != (records[0].topic, records[0].partition):
            raise InputFileError(
                f"{name}: records of more than one topic or partition: {records[0].topic}-{records[0].partition} "
                f"and {record.topic}-{record.partition}",
                hint="A config topic has one partition; split the file.",
            )
        after = records[-1].offset + 1 if records else 0
        records.append(record._replace(offset=after) if record.offset == UNKNOWN else record)
    records.sort(key=lambda record: record.offset)
    target = {"kafka_cluster_id": None, "group_id": app.target.group_id}
    cautions = [Problem(topic_codes.MAY_BE_ABORTED, each) for each in dump.cautions]
    return replay_report(fold_config_topic(records), target=target, problems=cautions)


def replay_topic(app: App) -> Report:
    """Report the state after the target's config topic, its aborted records, and which connectors they would change."""
    with app.topics() as store:
        committed, uncommitted = read_both_views(app, store)
    problems = blocked_problems(committed.read)  # then it is not decided yet what is aborted
    differing = [] if problems else differing_connectors(committed.state, uncommitted.state)
    aborted = [] if problems else aborted_records(committed.read.records, uncommitted.read.records)
    if differing:
        problems.append(_aborted_problem(committed.read.topic, differing))
    target = {"kafka_cluster_id": committed.cluster_id, "group_id": app.target.group_id}
    return replay_report(committed.state, target=target, problems=problems, differing=differing, aborted=aborted)


def _aborted_problem(topic: str, differing: Sequence[str]) -> Problem:
    return Problem(
        codes.ABORTED_RECORDS_MATTER,
        f"topic {topic} holds aborted records that preparing and disabled workers would take: {', '.join(differing)}",
        hint="Before changing any worker's mode, overwrite them: `eosctl task-counts replay --topic` names each.",
    )
