"""`task-counts clean`: has the config topic compacted until it has no record that workers can't read.

Plans and reports; `clean_steps` does it. The topic's settings of before are in the journal before they are
changed, so that they are set back whatever happens in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct, UnsetType

from eosctl.app import App
from eosctl.core.clients.kafka_scripts import only_compacted
from eosctl.core.configs.cleaning import (
    WHILE_CLEANING,
    BadRecord,
    bad_records,
    forgotten_by_compaction,
    stop_and_resume,
)
from eosctl.core.wording import rfc3339
from eosctl.errors import RefusedError, StalePlanError
from eosctl.group.absent import KnownEvidence, refuse_never_there
from eosctl.group.gather import read_group
from eosctl.group.observation.absence import Recorded
from eosctl.group.topics.config import read_config_topic
from eosctl.group.topics.config_reader import ConfigTopic
from eosctl.output.rows import Kind
from eosctl.report import Problem, Report
from eosctl.state.journal import EndEntry, Journal, journal_of
from eosctl.task_counts import codes
from eosctl.task_counts.record import refuse_hidden_records
from eosctl.task_counts.write_rows import TASK_COUNTS_CLEAN_PLAN, CleanData, CleanRow, CleanSummary, SettingPart

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
