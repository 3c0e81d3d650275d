"""The steps of `task-counts clean`: overwrite, change the settings, wait for the cleaner, set them back."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from eosctl.core.config_records import task_count_key, task_count_value
from eosctl.core.config_topic_cleaning import ROLLING_KEY, SEGMENT_S, WHILE_CLEANING, BadRecord
from eosctl.core.ids import leader_transactional_id, own_transactional_id
from eosctl.core.records import OutRecord
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, ExitCode, StalePlanError
from eosctl.events import Event
from eosctl.ops.app import App
from eosctl.ops.backups import keep_removed
from eosctl.ops.config_topic import ConfigTopic, read_config_topic
from eosctl.ops.plan import Plan
from eosctl.ops.task_count_clean import CleanPlan, clean_report, plan_clean, require_unchanged, show_clean
from eosctl.report import Json, Problem, Report

_POLL_S = 1.0
_ROLL_EVERY_S = 20.0
"""A record may close no segment yet, where a broker has not heard of the settings."""
_TOLD_WITHIN_S = 5.0


def prepare_clean(app: App) -> Plan:
    """The plan to have the config topic compacted; raises as `plan_clean`."""
    plan = plan_clean(app)
    question = f"Have topic {plan.topic.read.topic} compacted?"
    apply = partial(apply_clean, app, plan) if plan.changes_something else None
    return Plan(partial(show_clean, app, plan), question, apply, app.target)


def apply_clean(app: App, plan: CleanPlan) -> Report:
    """Cleans and sets the settings back, also after Ctrl-C and errors; exit 4 where the cleaner did not come in time.

    Raises StalePlanError where the topic has changed, RefusedError while another eosctl cleans it. The deadline starts
    anew: the time in which a person read the plan does not count.
    """
    app = app.with_whole_timeout()
    require_unchanged(plan, plan_clean(app))
    with plan.journal.hold(f"topic {plan.topic.read.topic}"):
        data: dict[str, Json] = {}
        if plan.records:
            data["backup"] = _keep(app, plan)
        plan.journal.write("begin", before=dict(plan.before), offsets=sorted(plan.offsets()))
        return _run(app, plan, data)


def _keep(app: App, plan: CleanPlan) -> str:
    gone = [record for record in plan.topic.read.records if record.offset in plan.offsets()]
    backup = str(keep_removed(app, gone, name="task-counts-clean", cluster_id=plan.topic.cluster_id))
    app.on_event(Event(f"backup: {backup}"))
    return backup


def _run(app: App, plan: CleanPlan, data: dict[str, Json]) -> Report:
    problems: list[Problem] = []
    code, left = ExitCode.OK, plan.offsets()
    try:
        if plan.records:
            if plan.breaks_readers():
                app.on_event(Event("do not restart a worker until this has ended", warning=True))
            _overwrite(app, plan)
            _await_cleaner(app, plan)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
        problems.append(Problem("interrupted", "interrupted before the records were gone", hint=_AGAIN))
    except EosctlError as exc:
        code = exc.exit_code
        problems.append(Problem(exc.code, exc.message, hint=exc.hint))
    back = _set_back(app.with_whole_timeout(), plan)
    if back is not None:
        code = ExitCode.PARTIAL if code is not ExitCode.INTERRUPTED else code
        problems.append(back)
    else:
        problems += plan.journal.close()
    try:
        left = _left(app.with_whole_timeout(), plan) if plan.records else frozenset()
        outcomes = {offset: "still_there" if offset in left else "removed" for offset in plan.offsets()}
    except EosctlError:
        outcomes = dict.fromkeys(plan.offsets(), "unknown")
    report = clean_report(app, "task-counts-clean-result", plan, outcomes, problems=problems, data=data)
    return replace(report, exit_code=code)


_AGAIN = "Run the same command again. Until then do not restart a worker."


def _overwrite(app: App, plan: CleanPlan) -> None:
    """Counts that workers hold already, recorded once more, so that compaction may take the bad record.

    A record that follows a new task commit would say that nobody is left to fence: then this raises StalePlanError, and
    EosctlError where the commit came in between.
    """
    wanted = [each for each in plan.records if each.first is not None]
    if not wanted:
        return
    group_id, topic = app.target.require_group_id(), plan.topic.read.topic
    ours = own_transactional_id(group_id) if plan.has_members else leader_transactional_id(group_id)
    with app.topics() as store:
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
    """The newest task commit of each connector."""
    known = (topic.state.connectors.get(each.record.connector or "") for each in wanted)
    return [None if each is None else each.commit_offset for each in known]


def _await_cleaner(app: App, plan: CleanPlan) -> None:
    """Raises DeadlineError where records are left when the time is over."""
    with app.topics() as store:
        store.change_settings(plan.topic.read.topic, WHILE_CLEANING)
    app.deadline.sleep(1.1 * SEGMENT_S)
    rolled_s = -_ROLL_EVERY_S
    while left := _left(app, plan):
        if app.clock.monotonic_s() - rolled_s >= _ROLL_EVERY_S or rolled_s < 0:
            rolled_s = app.clock.monotonic_s()
            _roll(app, plan)
        done = len(plan.records) - len(left)
        app.on_event(Event("waiting for the log cleaner", done, len(plan.records), "records"))
        if app.deadline.remaining_s() <= 2 * _POLL_S:
            raise DeadlineError(
                f"the log cleaner has not taken {counted(len(left), 'record')} of topic {plan.topic.read.topic} yet",
                hint=f"Brokers look every log.cleaner.backoff.ms (15 s); give it more with --timeout. {_AGAIN}",
            )
        app.deadline.sleep(_POLL_S)


def _roll(app: App, plan: CleanPlan) -> None:
    """A record behind the others: the cleaner never takes what is in the segment that is written to."""
    with app.topics() as store:
        store.write([OutRecord(plan.topic.read.topic, ROLLING_KEY, None, partition=0)])


def _left(app: App, plan: CleanPlan) -> frozenset[int]:
    """Which of the records are still in the log."""
    with app.topics() as store:
        read = store.read(plan.topic.read.topic, isolation="read_uncommitted")
    return plan.offsets() & {record.offset for record in read.records}


def _set_back(app: App, plan: CleanPlan) -> Problem | None:
    """The settings of before, and whether the brokers tell them; what is wrong if not."""
    topic = plan.topic.read.topic
    try:
        with app.topics() as store:
            store.change_settings(topic, plan.before)
            patience = Deadline.after(min(_TOLD_WITHIN_S, app.deadline.remaining_s()), app.clock)
            while any(store.own_settings(topic).get(name) != value for name, value in plan.before.items()):
                if patience.expired():
                    return _not_back(plan, "the brokers still tell others")
                patience.sleep(_POLL_S / 10)
    except (EosctlError, KeyboardInterrupt) as exc:
        return _not_back(plan, exc.message if isinstance(exc, EosctlError) else "interrupted")
    app.on_event(Event(f"the settings of {topic} are as before"))
    return None


def _not_back(plan: CleanPlan, reason: str) -> Problem:
    before = ", ".join(f"{name}={'the default' if value is None else value}" for name, value in plan.before.items())
    return Problem(
        "settings_not_set_back",
        f"the settings of topic {plan.topic.read.topic} are not set back to {before}: {reason}",
        hint="`eosctl task-counts clean` sets them back.",
    )
