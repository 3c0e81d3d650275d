"""The steps that put a connector in its place, each safe to repeat: after a kill the next run goes on from there.

It is created STOPPED (KIP-980), its offsets are written and read back, and it is resumed only if the worker itself
finds them. So no task ever starts without them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import OtherCluster, servers_of
from eosctl.connectors.look import (
    PAUSED,
    RUNNING,
    STOPPED,
    ConnectorNow,
    describe_store,
    look_at,
    require_same_config_topic,
    topic_of,
)
from eosctl.connectors.waiting import POLL_S, await_state, await_stopped
from eosctl.core.clients.own_brokers import own_brokers
from eosctl.core.configs.records import UnparsableValueError, decode_value
from eosctl.core.ids import connector_path
from eosctl.core.offsets.records import OffsetKey, decode_key, json_text, sorted_text
from eosctl.core.offsets.views import Store
from eosctl.core.wording import counted
from eosctl.create import codes
from eosctl.create.given import GivenOffsets
from eosctl.create.place import ConnectorPlacement, live_keys, plan_given
from eosctl.deadline import Deadline
from eosctl.errors import (
    AlreadyExistsError,
    ConnectError,
    DeadlineError,
    EosctlError,
    InterruptedByUserError,
    NotFoundError,
    RefusedError,
    StalePlanError,
)
from eosctl.fence.connect import fence_former_tasks
from eosctl.foreign import arguments, shell_word
from eosctl.offsets.apply import apply_plan
from eosctl.offsets.history.config_changes import PartitionStatus
from eosctl.offsets.steps import CommitWatch, StepDone, before_the_start, lost_partitions, other_keys_problem
from eosctl.offsets.stores.gather import gather_topics
from eosctl.offsets.write_rows import ResultData, ResultSummary
from eosctl.offsets.writes import OffsetWritePlan
from eosctl.report import Problem

GOES_ON = "Run the same command again: it goes on from here. --timeout is per step."
COMMITS_S = 10.0
"""The time for a task to go on from one of the source partitions that it had, once it has committed another."""
_SHOWS_S = 10.0
"""The time for REST to show offsets that were written: a worker reads its offsets topic a moment later."""
_UNDECIDED = ("UNASSIGNED", "RESTARTING", "unknown")


class NotStoppedError(ConnectError):
    """A Connect worker that created a connector running, although it was to be STOPPED."""

    code = codes.NOT_CREATED_STOPPED


def create_stopped(app: App, placement: ConnectorPlacement) -> StepDone:
    """Create the connector STOPPED, and wait until it is and no member holds a task of it.

    A connector with this config that an earlier run has created stays. Raises NotStoppedError if a worker started it:
    then it was stopped at once.
    """
    name, worker = placement.name, app.worker(placement.site.url)
    made = True
    try:
        worker.create_connector(name, placement.definition.config, STOPPED)
    except AlreadyExistsError:
        made = False
    now = _await_shown(app, placement, made=made)
    if dict(now.config) != dict(placement.definition.config):
        raise RefusedError(
            f"connector {name} has another config than {placement.definition.source}: somebody else made or changed it",
            hint="Plan again; `eosctl connectors apply` changes the config.",
        )
    await_stopped(app, name, placement.site.url, hint=GOES_ON)
    try:
        require_same_config_topic(app, name, now)
    except RefusedError as exc:
        raise RefusedError(
            f"{exc.message}; {name} was created there, and is STOPPED",
            hint=f"{exc.hint} DELETE {connector_path(name)} at {now.shown_url} takes it away.",
        ) from exc
    return StepDone("STOPPED, without a task" if made else "it is there, STOPPED, without a task")


def _await_shown(app: App, placement: ConnectorPlacement, *, made: bool) -> ConnectorNow:
    """Wait until the worker shows the connector, STOPPED; stop it at once if it runs, and raise NotStoppedError."""
    name, url = placement.name, placement.site.url
    for _ in app.deadline.rounds(POLL_S, least_s=POLL_S):
        try:
            now = look_at(app, name, url)
        except NotFoundError:
            continue
        if now.state == STOPPED and not now.task_count:
            return now
        if now.state == STOPPED:  # below 3.8 the task configs of a deleted connector are its, until it is stopped again
            app.worker(url).set_state(name, "stop")
            return await_stopped(app, name, url, hint=GOES_ON)
        if now.state in _UNDECIDED and not now.task_count:
            continue
        if not made:
            raise RefusedError(
                f"connector {name} is {now.state}: somebody has started it before its offsets were in place",
                hint=f"Stop it (`eosctl connectors stop {arguments(name)}`), then run again.",
            )
        app.worker(url).set_state(name, "stop")
        await_stopped(app, name, url, hint=GOES_ON)
        raise NotStoppedError(
            f"the workers created {name} {now.state}, with {counted(now.task_count, 'task')}, although it was to be "
            "STOPPED; it was stopped at once, and may have delivered records and committed offsets",
            hint=f"`eosctl offsets list --connector {shell_word(name)}` shows what it committed. Is a worker older "
            f"than Kafka 3.7? DELETE {connector_path(name)} takes it away.",
        )
    raise DeadlineError(f"timed out while waiting for {name} to be shown", hint=GOES_ON)


def write_offsets(
    app: App, placement: ConnectorPlacement, given: GivenOffsets | None, *, as_planned: bool = True
) -> StepDone:
    """Write the given offsets that are not there yet, back up what they replace, and read them back.

    With `as_planned`, raises StalePlanError if that is no longer what was planned, unless a part of it is there.
    """
    if given is None:
        return StepDone("it has the offsets that are there")

    compare = partial(missing_offsets, app, placement, given)
    plan = compare()
    if not plan.sends():
        return StepDone("all of them are there")
    planned = placement.offsets
    if as_planned and planned is not None and plan.writes != planned.writes and not _is_part(plan, planned):
        raise StalePlanError(
            f"the offsets of {placement.name} changed since the plan was made; none was written", hint="Plan again."
        )
    report = apply_plan(app, plan, compare, waits=True)
    if report.exit_code:
        first = report.problems[0].message if report.problems else "the offsets are not as planned"
        backup = report.data_of(ResultData).backup
        raise EosctlError(f"writing the offsets failed: {first}", hint=f"Its backup: {backup}. {GOES_ON}")
    written = report.summary_of(ResultSummary).written
    return StepDone(f"{counted(written, 'offset')} written and read back", merged=(report,))


def missing_offsets(app: App, placement: ConnectorPlacement, given: GivenOffsets) -> OffsetWritePlan:
    """Plan the writes that the store of the connector needs now to have the given offsets, and no others."""
    found = gather_topics(app, [app.target.offset_topic], if_there=[topic_of(app, placement.store)])
    return plan_given(app, placement.name, placement.store, given, found, allowances=placement.allowances)


def fence_former(app: App, placement: ConnectorPlacement) -> tuple[str, tuple[Problem, ...]]:
    """Fence the tasks of a deleted connector of that name, as they may commit offsets after the given ones are written.

    Return what was done. Connect keeps the task-count record of a deleted connector, and fences by it when the new one
    starts: that is later, and what failed here is a warning.
    """
    if any(each.code == codes.IDS_CLASH for each in placement.problems):
        return "", ()
    try:
        return fence_former_tasks(app, placement.name, tasks=0), ()
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        message = (
            f"whether a task of a deleted connector {placement.name} can still commit offsets is not known: "
            f"{exc.message}"
        )
        return "", (Problem(codes.FORMER_TASKS_NOT_FENCED, message, codes.FORMER_TASKS_NOT_FENCED.next),)


def _is_part(plan: OffsetWritePlan, planned: OffsetWritePlan) -> bool:
    """Decide whether what is to be sent now was planned: the same values for the same keys, on the same partitions."""
    wanted = {write.place(): write.after for write in planned.sends()}
    return all(write.place() in wanted and wanted[write.place()] == write.after for write in plan.sends())


def check_offsets(app: App, placement: ConnectorPlacement) -> StepDone:
    """Ask Connect itself whether it finds every offset that the topic has for the connector, with the same value.

    What the worker sees counts: it may read another topic than the one that was written.
    """
    name, topic = placement.name, topic_of(app, placement.store)
    if placement.elsewhere:
        there = app.worker(placement.site.url).offsets(name)
        return StepDone(f"Connect shows {counted(len(there), 'source partition')}, on brokers of its own")
    with app.topics() as topics:
        if placement.given is None and topic not in topics.describe([topic]):
            return StepDone("it has no offsets")
    store = gather_topics(app, [topic]).stores[topic].of(name)
    keys = live_keys(store, name)
    wanted = _spellings(keys, store)
    worker = app.worker(placement.site.url)
    patience = Deadline.after(min(_SHOWS_S, app.deadline.remaining_s() / 2), app.clock)
    for _ in patience.rounds(POLL_S):
        shown = {_identity(name, entry.get("partition")): entry for entry in worker.offsets(name)}
        # with a topic of its own, a worker shows those of the global topic, too, and no offset with them
        lost, others = lost_partitions(name, [entry for each, entry in shown.items() if each in wanted], keys)
        wrong = [*(entry.get("partition") for entry in lost), *_not_shown(shown, wanted)]
        if not wrong:
            break
    if wrong:
        raise RefusedError(
            f"Connect does not find {counted(len(wrong), 'offset')} of {name} that {describe_store(placement.store)} "
            f"has, first {wrong[0]}: it would read that from its beginning, so it was not resumed",
            hint=f"`eosctl offsets get --connector {shell_word(name)} --rest` compares both. Is that the workers' "
            f"offset.storage.topic (--offset-topic)? {GOES_ON}",
        )
    if others:
        problem = other_keys_problem(others)
        return StepDone(problem.message, problems=(problem,))
    return StepDone(f"Connect finds {counted(len(keys), 'offset')}" if keys else "it has no offsets")


def _spellings(keys: Sequence[OffsetKey], store: Store) -> dict[str, tuple[Mapping[str, object] | None, list[str]]]:
    """Return each source partition by the identity of its keys, with the offsets that these have."""
    found: dict[str, tuple[Mapping[str, object] | None, list[str]]] = {}
    for key in keys:
        found.setdefault(key.identity, (key.partition, []))[1].append(_spelled(store.records[key.raw].value))
    return found


def _not_shown(
    shown: Mapping[str, Mapping[str, object]], wanted: Mapping[str, tuple[Mapping[str, object] | None, list[str]]]
) -> list[object]:
    """Return the source partitions that the worker does not have, or has with another offset than any spelling."""
    return [
        dict(partition)
        for identity, (partition, offsets) in wanted.items()
        if partition is not None  # REST shows no null
        and (identity not in shown or _differs(shown[identity].get("offset"), offsets))
    ]


def _differs(offset: object, offsets: Sequence[str]) -> bool:
    return offset is not None and sorted_text(offset) not in offsets


def _identity(name: str, partition: object) -> str:
    key = decode_key(json.dumps([name, partition]).encode())
    return key.identity


def _spelled(value: bytes | None) -> str:
    try:
        return sorted_text(decode_value(value))
    except (UnparsableValueError, RecursionError):
        return ""


def resume(app: App, placement: ConnectorPlacement) -> StepDone:
    """Request the state that the connector is to reach."""
    verb = "pause" if placement.state == PAUSED else "resume"
    app.worker(placement.site.url).set_state(placement.name, verb)
    return StepDone(f"{verb} sent")


def commits_before(app: App, placement: ConnectorPlacement) -> CommitWatch | None:
    """Read the committed offsets before the start; None where they are on brokers that eosctl can't connect to."""
    where = _of_tasks(app, placement)
    return None if where is None else before_the_start(where, placement.name, topic_of(app, placement.store))


def _of_tasks(app: App, placement: ConnectorPlacement) -> App | None:
    """Return the app of the cluster that the tasks write to; None where eosctl can't connect to it."""
    brokers = own_brokers(placement.definition.config, here=servers_of(app))
    if brokers is None:
        return app
    return None if brokers.settings is None else OtherCluster(brokers.settings).with_clients(app)


def watch(app: App, placement: ConnectorPlacement, commits: CommitWatch | None) -> StepDone:
    """Wait until connector and tasks are in their state, and whether they commit; a FAILED part raises ConnectError.

    `commits` was made before the start. What they commit shows whether they go on from the offsets that were there.
    """
    name, url, where = placement.name, placement.site.url, _of_tasks(app, placement)

    now = await_state(
        app,
        name,
        url,
        placement.state,
        least=1 if placement.state == RUNNING else 0,
        doing=f"waiting for {name} to be {placement.state} with all its tasks",
        hint=GOES_ON,
        failed=f"{name} FAILED",
        failed_hint=f"Its offsets are in place. `eosctl connectors trace {arguments(name)}` shows why it failed.",
    )
    outcome = f"{placement.state}, {counted(len(now.tasks), 'task')}"
    if placement.state != RUNNING:
        return StepDone(outcome)
    if commits is None or where is None:
        unseen = Problem(
            codes.COMMITS_NOT_SEEN, f"whether {name} commits was not looked at: it is on brokers of its own"
        )
        return StepDone(outcome, problems=(unseen,))
    done = commits.watch(where, len(now.tasks), outcome)
    return done if done.problems else replace(done, problems=tuple(_started_over(where, placement, commits)))


def _started_over(app: App, placement: ConnectorPlacement, commits: CommitWatch) -> list[Problem]:
    """Return the problem of source partitions that it commits, and had no offset of, if it had any.

    A task may find no offset under the bytes of a key although Connect's REST interface does: then it commits the same
    source partition under a key of another spelling.
    """
    if not commits.before:
        return []
    patience = Deadline.after(min(COMMITS_S, app.deadline.remaining_s() / 2), app.clock)
    for _ in patience.rounds(POLL_S):
        fresh, gone_on = commits.since(app)
        if gone_on or not fresh:
            break
    had = {decode_key(raw).identity for raw in commits.before} if fresh else set()
    stays = placement.effect is not None and placement.effect.of(PartitionStatus.STAYS)
    certain = bool(stays) and not any(key.identity in had for key in fresh)
    name, goes_on = placement.name, bool(gone_on) or certain
    hint = f"`eosctl connectors stop {arguments(name)}`, and compare the offsets that it had with the new ones."
    found = new_partitions(name, [each.partition for each in fresh], goes_on=goes_on, since="it was started", hint=hint)
    return [each.as_warning() for each in found] if placement.allowances.read_again else found


def new_partitions(
    name: str, fresh: Collection[object], *, goes_on: bool, since: str, hint: str | None = None
) -> list[Problem]:
    """Return the problem of source partitions of which a connector that had offsets has committed the first ones.

    `goes_on`: it goes on from others.
    """
    if not fresh:
        return []
    first = json_text(next(iter(fresh)))
    if goes_on:
        message = f"{counted(len(fresh), 'source partition')} of {name} had no offset before, first {first}"
        return [Problem(codes.SOME_PARTITIONS_NEW, message, codes.SOME_PARTITIONS_NEW.next)]
    message = f"all source partitions that {name} has committed since {since} are new, first {first}"
    return [Problem(codes.ALL_PARTITIONS_NEW, message, hint or codes.ALL_PARTITIONS_NEW.next)]
