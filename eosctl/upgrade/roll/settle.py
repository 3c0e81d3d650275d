"""Waits until restarted workers are back as they should be: the gates after every step of a roll.

Looks and waits; it changes one thing only: it restarts tasks, once, that failed in the fencing which a restart
disturbed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import TransactionalId, leader_transactional_id
from eosctl.core.transactions import KafkaFault, TransactionDescription
from eosctl.core.workers.modes import POSSIBLE, Mode
from eosctl.deadline import Deadline, Event, Standing
from eosctl.errors import DeadlineError, EosctlError
from eosctl.group.gather import in_turn, observe_workers, read_group
from eosctl.group.modes import files_of, read_worker_file
from eosctl.group.observed import GroupObservation, WorkerObservation
from eosctl.observation.own_clusters import written_connectors
from eosctl.ports import ConnectWorker
from eosctl.profiles.settings_files import with_files
from eosctl.upgrade.roll.states import Answer, describe_ids, ids_of_tasks, judge_connectors, without_ids
from eosctl.upgrade.roll.step import (
    RENAMED_AFTER_S,
    UNPROVEN,
    Expected,
    GateFailedError,
    LeaderClaim,
    Settled,
    look_app,
    members_of,
    node_proof,
    not_back,
    owners_of,
    reachable_url,
    renamed_worker,
    require_untouched,
    silent_workers,
    under_new_names,
    with_current_names,
)

RESTART_SHOWS_AFTER_S = 15.0
"""After that a restarted task that is FAILED failed again; before, REST may still report the former state."""
_POLL_S = 0.5
_WELL = ("healthy", "unknown")  # GET /health is there from Kafka 3.9 on


@dataclass(slots=True)
class _Watch:
    """The memory of one wait from look to look; `restarted_s`: connector -> when its failed tasks were restarted.

    `left` is what is FAILED as it was before; `proofs` is what only a worker in the step's mode does.
    """

    since_s: float
    renamed: dict[str, str] = field(default_factory=dict)
    returned: bool = False
    restarted_s: dict[str, float] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    proofs: list[str] = field(default_factory=list)
    spoken: str = ""


def read_claim(app: App, group: GroupObservation) -> LeaderClaim:
    """Read the leader's transactional id from its coordinator."""
    wanted = leader_transactional_id(app.target.require_group_id())
    with app.transactions() as admin:
        found = admin.describe_transactions([wanted]).get(wanted)
    if isinstance(found, TransactionDescription):
        return LeaderClaim(group.leader_name, (found.producer_id, found.producer_epoch))
    unknown = found is not None and found.is_unknown_id
    return LeaderClaim(group.leader_name, None, seen=unknown)


def read_ids(app: App, group: GroupObservation) -> Mapping[TransactionalId, TransactionDescription | KafkaFault]:
    """Read the ids of all source tasks from the coordinators; empty if no worker reports the tasks."""
    if group.is_mirror_maker:
        return describe_ids(app, ids_of_tasks(app, written_connectors(app).entries))
    for _url, worker in in_turn(app, [reachable_url(app, url) for url in members_of(group)]):
        try:
            return describe_ids(app, ids_of_tasks(app, worker.connectors()))
        except EosctlError:
            continue
    return {}


def await_settled(app: App, expected: Expected) -> Settled:
    """Wait until every gate of the step passes.

    Raises ConnectError at once for what will not recover by itself, DeadlineError naming what is still awaited.
    """
    watch = _Watch(app.clock.monotonic_s())
    deadline = _deadline(app, expected.patience_s)
    while True:
        waiting, settled = _look(app, expected, watch, deadline)
        if settled is not None:
            return settled
        if watch.returned and expected.patience_s != expected.settle_timeout_s:
            expected = replace(expected, patience_s=expected.settle_timeout_s)
            deadline = _deadline(app, expected.settle_timeout_s)
        if deadline is not None and deadline.expired():
            raise DeadlineError(
                f"{', '.join(expected.workers)}: not settled after {deadline.timeout_s:g} s; still waiting: {waiting}",
                hint="See that worker's log. The connectors' work may be held back for "
                "scheduled.rebalance.max.delay.ms (5 minutes); --settle-timeout gives more time.",
            )
        if waiting != watch.spoken:
            watch.spoken = waiting
            words = f"{', '.join(expected.workers)}: waiting: {waiting}"
            app.on_event(Event(words, standings=standings(expected.workers, expected.mode, "settling")))
        app.clock.sleep_s(_POLL_S)


def await_calm(app: App, workers: Sequence[str], mode: Mode, *, look_s: float) -> GroupObservation:
    """Wait until the group is stable and all workers but `workers` answer: two must never be down at once.

    Raises DeadlineError naming who is still awaited.
    """
    spoken = ""
    for _ in app.deadline.rounds(_POLL_S):
        now = look_app(app, look_s, within=app.deadline)
        group = observe_workers(now)
        silent = [str(m.url) for m in group.members if m.health == "unreachable" and m.name not in workers]
        waiting = f"no answer from {', '.join(silent)}" if silent else ""
        if not group.stable:
            waiting = f"the group is {group.state}"
        if not waiting:
            return group
        if waiting != spoken:
            spoken = waiting
            words = f"{', '.join(workers)}: not yet restarted, waiting: {waiting}"
            app.on_event(Event(words, standings=standings(workers, mode, "to come")))
    raise DeadlineError(
        f"{', '.join(workers)} was not restarted: {waiting}, for {app.deadline.timeout_s:g} s",
        hint="Fix it first, so that no two workers are down at once; --resume then continues.",
    )


def standings(workers: Iterable[str], mode: Mode, state: str) -> tuple[Standing, ...]:
    """Return the workers' lines in a live table."""
    return tuple(Standing(worker, mode.value, state) for worker in workers)


def _deadline(app: App, timeout_s: float | None) -> Deadline | None:
    return None if timeout_s is None else Deadline.after(timeout_s, app.clock)


def _look(app: App, expected: Expected, watch: _Watch, deadline: Deadline | None) -> tuple[str, Settled | None]:
    """Return what is awaited, or how the step settled; wait also for a look that fails."""
    try:
        now = look_app(with_files(app, expected.files), expected.look_s, within=deadline)
        group, expected = with_current_names(observe_workers(now), expected)
        watch.proofs.clear()
        require_untouched(group, expected)
        if app.clock.monotonic_s() - watch.since_s >= RENAMED_AFTER_S:
            watch.renamed |= renamed_worker(group, expected)
        expected = under_new_names(expected, watch.renamed)
        waiting = not_back(now, group, expected)
        watch.returned = watch.returned or not waiting
        if waiting:
            return waiting + silent_workers(look_app(app, expected.look_s, within=deadline), group, expected), None
        members, evidence, waiting = _judge_modes(now, group, expected)
        waiting = waiting or _judge_work(now, group, expected, watch) or _judge_leader(now, group, expected, watch)
        waiting = waiting or _judge_same(now, group)
    except GateFailedError:
        raise
    except EosctlError as exc:
        return exc.message, None
    if waiting:
        return waiting, None
    if expected.mirror_maker:
        evidence = (*evidence, *(watch.proofs or [UNPROVEN]))
    evidence = (*evidence, *(f"{url} came back as {new}" for url, new in watch.renamed.items()))
    evidence = (*evidence, *(f"{name} is FAILED, as it was before" for name in watch.left))
    return "", Settled(members, evidence, members_of(group), watch.renamed)


def _judge_same(app: App, group: GroupObservation) -> str:
    """Require the same members as before: what was seen since, such as the claim, may be that of a new member."""
    there, _cluster_id = read_group(app, gone_ok=True, wait=False)
    seen = {member.member_id for member in group.members if member.member_id is not None}
    is_same = {member.member_id for member in there.members} == seen
    return "" if is_same else "the group has other members than a moment ago"


def _judge_modes(
    app: App, group: GroupObservation, expected: Expected
) -> tuple[dict[str, str | None], tuple[str, ...], str]:
    """Judge the gates worker_healthy and mode_proven; raise GateFailedError for a worker that runs in another mode."""
    unhealthy = [f"{member.name} is {member.health}" for member in group.members if member.health not in _WELL]
    if unhealthy:
        return {}, (), "; ".join(unhealthy)
    subjects = [m for m in group.members if expected.at_once or m.name in expected.workers]
    evidence = []
    for member in subjects:
        proof = _proof(app, member, expected)
        if proof is None:
            return {}, (), f"the mode of {member.name} is not known yet: {'; '.join(member.evidence)}"
        evidence.append(f"{member.name}: {proof}" if expected.at_once else proof)
    return {m.name: m.member_id for m in subjects}, tuple(evidence), ""


def _proof(app: App, member: WorkerObservation, expected: Expected) -> str | None:
    """Return the evidence of the worker's mode; None if nothing shows it."""
    if expected.mirror_maker:
        return node_proof(app, member, expected)
    wanted, seen = expected.mode, member.mode
    if wanted not in POSSIBLE[seen]:
        raise GateFailedError(
            f"gate mode_proven: {member.url} is back, and {seen.value} instead of {wanted.value} "
            f"({'; '.join(member.evidence)})",
            hint="See which configuration it was started with.",
        )
    if seen is wanted:
        return "; ".join(member.evidence)
    said = _files_say(app, member, wanted)
    if said:
        return f"{said}, which nothing confirms"
    if member.mode is Mode.NOT_ENABLED:
        return f"it is not enabled; that it is {wanted.value} is taken from its restart ({expected.words})"
    return None


def _files_say(app: App, member: WorkerObservation, wanted: Mode) -> str:
    """Return `FILE says MODE` if the worker's own files name the wanted mode; else empty."""
    given = [config.properties for config in app.target.worker_configs]
    read = [read_worker_file(file.source, file.values) for file in given]
    files = files_of(str(member.url), read, group_id=app.target.group_id)
    agreed = {file.mode for file in files} == {wanted.value}
    return ", ".join(f"{file.path} says {file.mode}" for file in files) if agreed else ""


def _other_worker(app: App, group: GroupObservation, expected: Expected) -> ConnectWorker:
    """Return a worker to ask; one that was not restarted, if there is one."""
    others = [member for member in group.members if member.name not in expected.workers]
    return app.worker(reachable_url(app, str((others or list(group.members))[0].url)))


def _judge_work(app: App, group: GroupObservation, expected: Expected, watch: _Watch) -> str:
    """Judge the gate connectors_healthy: all work as before; restart tasks that failed in fencing, once."""
    worker = None if expected.mirror_maker else _other_worker(app, group, expected)
    answer = written_connectors(app).entries if worker is None else worker.connectors()
    owned = {work for member in group.members for work in member.tasks or ()}
    judged = judge_connectors(expected.connectors, answer, owned, excused=expected.excused)
    watch.left = judged.left
    now_s = app.clock.monotonic_s()
    long_ago = [name for name, at_s in watch.restarted_s.items() if now_s - at_s > RESTART_SHOWS_AFTER_S]
    again = [f"{name} failed in fencing again" for name in judged.to_restart if name in long_ago]
    again += [f"{name} failed in fencing, and no request restarts it" for name in judged.to_restart if worker is None]
    if judged.broken or again:
        raise GateFailedError(
            f"gate connectors_healthy: {'; '.join([*judged.broken, *again])}",
            hint="Fix it (`eosctl rescue` for a fencing that can't end), then continue with --resume.",
        )
    for name in [name for name in judged.to_restart if name not in watch.restarted_s]:
        app.on_event(Event(f"restarting the tasks of {name} that failed in zombie fencing"))
        if worker is not None:
            worker.restart(name)
        watch.restarted_s[name] = now_s
    return "; ".join(judged.waiting) or _judge_ids(app, group, expected, answer, watch)


def _judge_ids(app: App, group: GroupObservation, expected: Expected, answer: Answer, watch: _Watch) -> str:
    """Judge the gate tasks_exactly_once: RUNNING source tasks started on enabled workers have taken their ids."""
    if expected.mode is not Mode.ENABLED:
        return ""
    enabled = {member.name for member in group.members if member.mode is Mode.ENABLED} | {*expected.workers}
    before = expected.before.owners
    owned = {
        work
        for work, url in owners_of(group).items()
        if url in enabled and (expected.at_once or url in expected.workers or before.get(work, url) != url)
    } - expected.excused
    running = {(name, task.task) for name, entry in answer.items() for task in entry.tasks
               if task.state == "RUNNING"}  # fmt: skip
    ids = {work: each for work, each in ids_of_tasks(app, answer).items() if work in owned & running}
    idle = without_ids(app, ids, expected.before.ids)
    if ids and not idle:
        tasks = ", ".join(f"{name}/{number}" for name, number in sorted(ids))
        watch.proofs.append(f"{tasks} took transactional ids, as tasks of an enabled worker do")
    return "; ".join(f"{name}/{number} has not taken its transactional id" for name, number in idle)


def _judge_leader(app: App, group: GroupObservation, expected: Expected, watch: _Watch) -> str:
    """Require a new leader's claim of the leader's transactional id, which it makes at once unless it is disabled."""
    before = expected.before.claim
    if expected.mode is Mode.DISABLED or before is None or group.leader_name not in expected.fenceable:
        return ""
    now = read_claim(app, group)
    if not now.seen:
        return ""
    is_new = before.seen and now.producer != before.producer
    if expected.mirror_maker and before.seen and now.leader in expected.workers:
        if now.producer is not None and is_new:
            claimed = leader_transactional_id(app.target.require_group_id())
            watch.proofs.append(f"as the leader it claimed {claimed}, as no {Mode.DISABLED.value} worker does")
            return ""
    elif now.producer is not None and (before.leader == now.leader or is_new or not before.seen):
        return ""
    return f"{now.leader} leads the group and has not claimed its transactional id: is it {Mode.DISABLED.value}?"
