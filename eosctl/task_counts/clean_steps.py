"""The steps of `task-counts clean`: overwrite, change the settings, wait for the cleaner, set them back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.configs.cleaning import ROLLING_KEY, SEGMENT_S, WHILE_CLEANING, BadRecord
from eosctl.core.configs.records import task_count_key, task_count_value
from eosctl.core.ids import leader_transactional_id, own_transactional_id
from eosctl.core.records import OutRecord
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, ExitCode, InterruptedByUserError, StalePlanError
from eosctl.events import Event
from eosctl.group.topics.config import read_config_topic
from eosctl.group.topics.config_reader import ConfigTopic
from eosctl.plan import Plan
from eosctl.report import Problem, Report
from eosctl.state.backups import keep_removed
from eosctl.state.steps import Note, Progress, Step, Work, carry_out
from eosctl.task_counts import codes
from eosctl.task_counts.clean import CleanPlan, clean_report, plan_clean, require_unchanged, show_clean
from eosctl.task_counts.write_rows import TASK_COUNTS_CLEAN_RESULT

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
