"""`task-counts clean`: has the config topic compacted until it has no record that workers can't read.

The steps are: overwrite, change the settings, wait for the cleaner, set them back. The topic's former settings are in
the journal before they are changed, so that they are set back whatever happens in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.clients.own_brokers import only_compacted
from eosctl.core.configs.records import task_count_key, task_count_value
from eosctl.core.configs.view import (
    ROLLING_KEY,
    SEGMENT_S,
    WHILE_CLEANING,
    BadRecord,
    bad_records,
    forgotten_by_compaction,
    stop_and_resume,
)
from eosctl.core.ids import leader_transactional_id, own_transactional_id
from eosctl.core.records import OutRecord
from eosctl.core.wording import counted, rfc3339
from eosctl.deadline import Deadline, Event
from eosctl.errors import DeadlineError, EosctlError, ExitCode, InterruptedByUserError, RefusedError, StalePlanError
from eosctl.group.absent import KnownEvidence, read_config_topic, refuse_never_there
from eosctl.group.gather import read_group
from eosctl.group.observation.absence import Recorded
from eosctl.group.topics import ConfigTopic
from eosctl.output.rows import Kind
from eosctl.plan import Plan
from eosctl.report import Problem, Report
from eosctl.state.backups import keep_removed
from eosctl.state.journal import EndEntry, Journal, Note, Progress, Step, Work, carry_out, journal_of
from eosctl.task_counts import codes
from eosctl.task_counts.guards import refuse_hidden_records
from eosctl.task_counts.write_rows import (
    TASK_COUNTS_CLEAN_PLAN,
    TASK_COUNTS_CLEAN_RESULT,
    CleanData,
    CleanRow,
    CleanSummary,
    SettingPart,
)

Settings = Mapping[str, str | None]
"""Of the topic itself; None is the brokers' default."""


class UnfinishedClean(Struct, frozen=True):
    """A run that has not ended, with the settings that the topic had before it."""

    before: Settings
    began_ms: int


class CleanPlan(Struct, frozen=True):
    """The plan: `records` to remove, `before` the settings to restore, `now` the present ones."""

    topic: ConfigTopic
    records: tuple[BadRecord, ...]
    before: Settings
    now: Settings
    begun: UnfinishedClean | None
    has_members: bool
    journal: Journal

    @property
    def changes_something(self) -> bool:
        """True if there is a record to be compacted away, or a setting that a run before left changed."""
        return bool(self.records) or self.begun is not None

    def breaks_readers(self) -> bool:
        """Decide whether a worker that starts now loses what it fetches after one of the records."""
        return any(each.record.breaks_reader for each in self.records)

    def offsets(self) -> frozenset[int]:
        """Return the offsets of the records."""
        return frozenset(each.record.offset for each in self.records)


class _Begin(Struct, frozen=True):
    before: Settings
    time_ms: int


_ENTRIES: Mapping[str, type[_Begin | EndEntry]] = {"begin": _Begin, "end": EndEntry}


def unfinished_clean(journal: Journal) -> UnfinishedClean | None:
    """Return the unfinished run, as far as the file shows; raise EosctlError."""
    begun: UnfinishedClean | None = None
    for entry in journal.read(_ENTRIES):
        begun = (begun or UnfinishedClean(entry.before, entry.time_ms)) if isinstance(entry, _Begin) else None
    return begun


def clean_journal(app: App, topic: str, *, cluster_id: str) -> Journal:
    """Return the journal of runs on a config topic."""
    return journal_of(app, "task-counts-clean", topic, cluster_id=cluster_id)


def plan_clean(app: App, *, held: bool = False) -> CleanPlan:
    """Read topic, settings and group; write nothing. `held`: the caller has the lock.

    Raises NotFoundError for a group that never existed; RefusedError for a topic that is not compacted, while an open
    transaction holds the cleaner back, for a record that compaction would keep, and while another eosctl cleans.
    """
    group, _cluster_id = read_group(app, gone_ok=True)
    with app.topics() as store:
        topic = read_config_topic(app, store)
        own = store.own_settings(topic.read.topic)
    refuse_never_there(
        app,
        group,
        topic.state.connectors,
        KnownEvidence(recorded=Recorded.of(topic.state, topic.read), ask_workers=False),
    )
    journal = clean_journal(app, topic.read.topic, cluster_id=topic.cluster_id)
    if not held:
        journal.refuse_held(f"topic {topic.read.topic}")
    begun = unfinished_clean(journal)
    now: Settings = {name: own.get(name) for name in WHILE_CLEANING}
    records = tuple(bad_records(topic.state, topic.read.records))
    if records:
        refuse_hidden_records(topic, group_id=group.group_id)
        _refuse_not_compacted(app, topic)
        _refuse_kept(records)
    before = now if begun is None else begun.before
    return CleanPlan(topic, records, before, now, begun, bool(group.members), journal)


def _refuse_not_compacted(app: App, topic: ConfigTopic) -> None:
    policy = topic.description.config.get("cleanup.policy", "compact")
    if "compact" not in policy:
        raise RefusedError(
            f"topic {topic.read.topic} has cleanup.policy={policy}: no cleaner ever looks at it; nothing was written",
            hint=f"{only_compacted(topic.read.topic, app.target.client)}, then run again.",
        )


def _refuse_kept(records: Sequence[BadRecord]) -> None:
    """Raise RefusedError for a bad record that is the newest of its key, as compaction would keep it."""
    kept = [each for each in records if each.anew]
    if kept:
        raise RefusedError(
            f"record {kept[0].record.key} at offset {kept[0].record.offset} is the newest of its key: compaction would "
            "keep it; nothing was written",
            hint=f"Restart no worker. {kept[0].anew}, then run again.",
        )


def require_unchanged(then: CleanPlan, now: CleanPlan) -> None:
    """Raise StalePlanError if topic, records or settings are not those that were shown."""
    if then.topic.cluster_id != now.topic.cluster_id:
        raise StalePlanError(f"the plan was made for cluster {then.topic.cluster_id}, this is {now.topic.cluster_id}")
    if (then.records, then.before) != (now.records, now.before):
        raise StalePlanError(
            f"topic {then.topic.read.topic} or its settings changed since the plan was made; nothing was written",
            hint="Plan again.",
        )


def show_clean(app: App, plan: CleanPlan) -> Report:
    """Report the records that would be removed, and the settings needed meanwhile."""
    return clean_report(
        app, TASK_COUNTS_CLEAN_PLAN, plan, {each.record.offset: "would_remove" for each in plan.records}
    )


def clean_report(
    app: App,
    kind: Kind,
    plan: CleanPlan,
    outcomes: Mapping[int, str],
    *,
    problems: Sequence[Problem] = (),
    backup: str | UnsetType = UNSET,
) -> Report:
    """Report one row per record, with `outcomes` by its offset."""
    rows = [_row(each, outcomes[each.record.offset]) for each in plan.records]
    return Report(
        kind=kind,
        rows=rows,
        summary=CleanSummary(
            records=len(rows),
            overwritten=sum(each.first is not None for each in plan.records),
            removed=sum(row.outcome == "removed" for row in rows),
        ),
        data=CleanData(
            topic=plan.topic.read.topic,
            settings=[
                SettingPart(name=name, before=plan.before[name], now=plan.now[name], meanwhile=value)
                for name, value in WHILE_CLEANING.items()
            ],
            backup=backup,
        ),
        target={"kafka_cluster_id": plan.topic.cluster_id, "group_id": app.target.group_id},
        problems=[*_cautions(plan, rows), *problems],
    )


def _row(bad: BadRecord, outcome: str) -> CleanRow:
    record = bad.record
    return CleanRow(
        offset=record.offset,
        key=record.key,
        connector=record.connector,
        code=record.code,
        reason=record.reason,
        overwrite=bad.first,
        outcome=outcome,
    )


def _cautions(plan: CleanPlan, rows: Sequence[CleanRow]) -> list[Problem]:
    found = []
    if plan.breaks_readers() and any(row.outcome != "removed" for row in rows):
        found.append(
            Problem(
                codes.RESTART_NO_WORKER,
                "do not restart a worker until the records are gone: it would stay behind the config topic for ever",
                hint="Workers that run have passed them already.",
            )
        )
    for name in forgotten_by_compaction(plan.topic.state, plan.topic.read.records) if plan.records else ():
        found.append(
            Problem(
                codes.TASKS_FORGOTTEN,
                f"compaction leaves the config of {name} behind its tasks: a worker that starts then has none of them",
                hint=f"{stop_and_resume(name)}, before a worker is restarted: it writes its tasks again.",
            ).as_warning()
        )
    if plan.begun is not None:
        found.append(
            Problem(
                codes.CLEAN_UNFINISHED,
                f"a run of {rfc3339(plan.begun.began_ms)} was cut off: the settings that it found are set back",
            )
        )
    return found


_POLL_S = 1.0
_ROLL_EVERY_S = 20.0
"""A record may close no segment yet, where a broker has not heard of the settings."""
_TOLD_WITHIN_S = 5.0


def prepare_clean(app: App) -> Plan:
    """Plan to have the config topic compacted; raise as `plan_clean`."""
    plan = plan_clean(app)
    question = f"Have topic {plan.topic.read.topic} compacted?"
    apply = partial(apply_clean, app, plan) if plan.changes_something else None
    return Plan(partial(show_clean, app, plan), question, apply, app.target)


def apply_clean(app: App, plan: CleanPlan) -> Report:
    """Clean and set the settings back, also after Ctrl-C and errors; exit 4 if the cleaner did not finish in time.

    Raises StalePlanError if the topic has changed, RefusedError while another eosctl cleans it. The deadline starts
    anew: the time in which a person read the plan does not count.
    """
    app = app.with_whole_timeout()
    backup: str | UnsetType = UNSET

    def begin() -> Note:
        nonlocal backup
        if plan.records:
            backup = _keep(app, plan)
        return Note("begin", {"before": dict(plan.before), "offsets": sorted(plan.offsets())})

    work = Work(
        steps=lambda: _steps(app, plan),
        journal=plan.journal,
        subject=f"topic {plan.topic.read.topic}",
        recheck=lambda: require_unchanged(plan, plan_clean(app, held=True)),
        begin=begin,
        close=lambda _progress: _close(app.with_whole_timeout(), plan),
    )
    progress = carry_out(work)
    return _result(app, plan, progress, backup)


def _keep(app: App, plan: CleanPlan) -> str:
    gone = [record for record in plan.topic.read.records if record.offset in plan.offsets()]
    backup = str(keep_removed(app, gone, name="task-counts-clean", cluster_id=plan.topic.cluster_id))
    app.on_event(Event(f"backup: {backup}"))
    return backup


def _steps(app: App, plan: CleanPlan) -> Iterator[Step[None]]:
    """Yield the steps; none if only the settings are to be set back, which closing does."""
    if not plan.records:
        return
    if plan.breaks_readers():
        app.on_event(Event("do not restart a worker until this has ended", warning=True))
    yield Step("overwrite", lambda: _overwrite(app, plan))
    yield Step("clean", lambda: _await_cleaner(app, plan))


def _close(app: App, plan: CleanPlan) -> list[Problem]:
    """Set the settings back, however the steps ended; leave the journal open if that fails."""
    problem = _set_back(app, plan)
    return plan.journal.close() if problem is None else [problem]


def _result(app: App, plan: CleanPlan, progress: Progress[None], backup: str | UnsetType) -> Report:
    error, code = progress.error, progress.exit_code(touched=False)
    problems = [] if error is None else [Problem.of(error)]
    if progress.interrupted:
        problems = [Problem(InterruptedByUserError.code, "interrupted before the records were gone", hint=_AGAIN)]
    elif any(each.code == codes.SETTINGS_NOT_SET_BACK for each in progress.problems):
        code = ExitCode.PARTIAL
    try:
        left = _left(app.with_whole_timeout(), plan) if plan.records else frozenset()
        outcomes = {offset: "still_there" if offset in left else "removed" for offset in plan.offsets()}
    except (EosctlError, KeyboardInterrupt):
        outcomes = dict.fromkeys(plan.offsets(), "unknown")
    problems += progress.problems
    report = clean_report(app, TASK_COUNTS_CLEAN_RESULT, plan, outcomes, problems=problems, backup=backup)
    return replace(report, exit_code=code)


_AGAIN = "Run the same command again. Until then do not restart a worker."


def _overwrite(app: App, plan: CleanPlan) -> None:
    """Record counts that workers already hold once more, so that compaction may remove the bad records.

    A record after a new task commit would claim that no task is left to fence. Raises StalePlanError for such a commit,
    and EosctlError if it came in between.
    """
    wanted = [each for each in plan.records if each.first is not None]
    if not wanted:
        return
    group_id, topic = app.target.require_group_id(), plan.topic.read.topic
    ours = own_transactional_id(group_id) if plan.has_members else leader_transactional_id(group_id)
    with app.topic_writer() as store:
        if _commits(read_config_topic(app, store), wanted) != _commits(plan.topic, wanted):
            raise StalePlanError("a connector has new tasks since the plan was made; nothing was written", hint=_AGAIN)
        out = [OutRecord(topic, *_good(each), partition=0) for each in wanted]
        store.write(out, transactional_id=ours)
        now = read_config_topic(app, store)
    if _commits(now, wanted) != _commits(plan.topic, wanted):
        raise EosctlError(
            "a connector got new tasks while its record was overwritten, so that its old ones may not be fenced",
            hint="Restart its tasks when this is over: stop and resume it.",
        )


def _good(bad: BadRecord) -> tuple[bytes, bytes]:
    return task_count_key(bad.record.connector or ""), task_count_value(bad.first or 0)


def _commits(topic: ConfigTopic, wanted: list[BadRecord]) -> list[int | None]:
    """Return the newest task commit of each connector."""
    known = (topic.state.connectors.get(each.record.connector or "") for each in wanted)
    return [None if each is None else each.commit_offset for each in known]


def _await_cleaner(app: App, plan: CleanPlan) -> None:
    """Change the settings and wait for the cleaner; raise DeadlineError if records are left when the time is over."""
    with app.topic_admin() as store:
        store.change_settings(plan.topic.read.topic, WHILE_CLEANING)
    app.deadline.sleep(1.1 * SEGMENT_S)
    rolled_s = -_ROLL_EVERY_S
    for _ in app.deadline.rounds(_POLL_S, least_s=2 * _POLL_S):
        left = _left(app, plan)
        if not left:
            return
        if app.clock.monotonic_s() - rolled_s >= _ROLL_EVERY_S or rolled_s < 0:
            rolled_s = app.clock.monotonic_s()
            _roll(app, plan)
        done = len(plan.records) - len(left)
        app.on_event(Event("waiting for the log cleaner", done, len(plan.records), "records"))
    raise DeadlineError(
        f"the log cleaner has not taken {counted(len(left), 'record')} of topic {plan.topic.read.topic} yet",
        hint=f"Brokers look every log.cleaner.backoff.ms (15 s); give it more with --timeout. {_AGAIN}",
    )


def _roll(app: App, plan: CleanPlan) -> None:
    """Write one more record: the cleaner never takes what is in the active segment."""
    with app.topic_writer() as store:
        store.write([OutRecord(plan.topic.read.topic, ROLLING_KEY, None, partition=0)])


def _left(app: App, plan: CleanPlan) -> frozenset[int]:
    """Return which of the records are still in the log."""
    with app.topics() as store:
        read = store.read(plan.topic.read.topic, isolation="read_uncommitted")
    return plan.offsets() & {record.offset for record in read.records}


def _set_back(app: App, plan: CleanPlan) -> Problem | None:
    """Set the former settings back and wait until the brokers report them; return the problem if they don't."""
    topic = plan.topic.read.topic
    try:
        with app.topic_admin() as store:
            store.change_settings(topic, plan.before)
            patience = Deadline.after(min(_TOLD_WITHIN_S, app.deadline.remaining_s()), app.clock)
            for _ in patience.rounds(_POLL_S / 10):
                own = store.own_settings(topic)
                if all(own.get(name) == value for name, value in plan.before.items()):
                    break
            else:
                return _not_back(plan, "the brokers still report others")
    except (EosctlError, KeyboardInterrupt) as exc:
        return _not_back(plan, exc.message if isinstance(exc, EosctlError) else "interrupted")
    app.on_event(Event(f"the settings of {topic} are as before"))
    return None


def _not_back(plan: CleanPlan, reason: str) -> Problem:
    before = ", ".join(f"{name}={'the default' if value is None else value}" for name, value in plan.before.items())
    return Problem(
        codes.SETTINGS_NOT_SET_BACK,
        f"the settings of topic {plan.topic.read.topic} are not set back to {before}: {reason}",
        hint="`eosctl task-counts clean` sets them back.",
    )
