"""Waits until restarted workers are back as they should be: the gates that stand after every step of a roll.

Looks and waits; the one thing it changes is to restart tasks once that failed in the fencing which a restart disturbed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from eosctl.core.connector_states import ConnectorSeen, judge_connectors
from eosctl.core.group_protocol import Work
from eosctl.core.ids import leader_transactional_id
from eosctl.core.rescue import SeenTask
from eosctl.core.transactions import TransactionDescription
from eosctl.core.upgrade import POSSIBLE, Mode
from eosctl.core.worker_config import parse_worker_config
from eosctl.core.worker_modes import WorkerMode, files_of, read_worker_file
from eosctl.core.worker_url import parse_worker_url
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError, DeadlineError, EosctlError
from eosctl.events import Event, Standing
from eosctl.ops.app import App
from eosctl.ops.workers import GroupObservation, WorkerObservation, in_turn, observe_workers

_LEAST_LOOK_S = 5.0
"""A look has this long even where less of the step's time is left: a worker in good health needs not be hurried."""
RESTART_SHOWS_AFTER_S = 15.0
"""After that a restarted task that is FAILED failed again; before, REST may still tell the former state."""
_POLL_S = 0.5
_WELL = ("healthy", "unknown")  # GET /health is there from Kafka 3.9 on


@dataclass(frozen=True, slots=True)
class LeaderClaim:
    """Who leads, and the producer id and epoch under the leader's transactional id; None where there is none.

    `seen` False: the coordinators did not tell, so that nothing follows from it.
    """

    leader: str | None
    producer: tuple[int, int] | None
    seen: bool = True


@dataclass(frozen=True, slots=True)
class Expected:
    """What one step shall end in. `members` are those before it (URL -> member id), `claim` likewise.

    `fenceable` are the workers that are preparing or enabled then. `at_once`: workers may come back under other URLs.
    `patience_s` None: their return is waited for without end. `look_s` is how long one look may take. `excused` are
    connectors and tasks that had failed before.
    """

    workers: tuple[str, ...]
    mode: Mode
    members: Mapping[str, str | None]
    connectors: Mapping[str, str]
    excused: frozenset[Work]
    claim: LeaderClaim | None
    fenceable: frozenset[str]
    words: str
    settle_timeout_s: float
    patience_s: float | None
    look_s: float
    at_once: bool = False
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Settled:
    """How the step ended: the new member id of each of its workers, and what their modes are taken from."""

    members: Mapping[str, str | None]
    evidence: tuple[str, ...]


@dataclass(slots=True)
class _Watch:
    """What one wait remembers from look to look; `restarted_s`: connector -> when its failed tasks were restarted."""

    returned: bool = False
    restarted_s: dict[str, float] = field(default_factory=dict)
    spoken: str = ""


def with_files(app: App, paths: Sequence[Path]) -> App:
    """The App with the workers' files as they are now, those given with -w and those at `paths`."""
    sources = [config.properties.source for config in app.target.worker_configs]
    unique = dict.fromkeys([*(str(Path(source).expanduser().resolve()) for source in sources),
                            *(str(path.resolve()) for path in paths)])  # fmt: skip
    configs = []
    for source in unique:
        try:
            text = Path(source).read_bytes().decode("iso-8859-1")
        except OSError:
            continue
        configs.append(parse_worker_config(text, source=source))
    return replace(app, target=replace(app.target, worker_configs=tuple(configs)))


def look_app(app: App, look_s: float, *, within: Deadline | None = None) -> App:
    """The App for one look, which may not take longer than `look_s`, nor much longer than what is left of `within`."""
    left_s = look_s if within is None else max(_LEAST_LOOK_S, within.remaining_s())
    return replace(app, deadline=Deadline.after(min(look_s, left_s), app.clock))


def read_claim(app: App, group: GroupObservation) -> LeaderClaim:
    """The leader's transactional id as its coordinator has it."""
    wanted = leader_transactional_id(app.target.require_group_id())
    with app.transactions() as admin:
        found = admin.describe_transactions([wanted]).get(wanted)
    if isinstance(found, TransactionDescription):
        return LeaderClaim(group.leader_url, (found.producer_id, found.producer_epoch))
    unknown = found is not None and found.name == "TRANSACTIONAL_ID_NOT_FOUND"
    return LeaderClaim(group.leader_url, None, seen=unknown)


def await_settled(app: App, expected: Expected) -> Settled:
    """Polls until every gate of the step passes.

    Raises ConnectError at once for what will not mend itself, DeadlineError naming what is still awaited.
    """
    watch = _Watch()
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
    """The group, once it is stable and every worker beside `workers` answers: never shall two be down at once.

    Raises DeadlineError naming who is still awaited.
    """
    spoken = ""
    while True:
        now = look_app(app, look_s, within=app.deadline)
        group = observe_workers(now)
        silent = [str(m.url) for m in group.members if m.health == "unreachable" and m.url not in workers]
        waiting = f"no answer from {', '.join(silent)}" if silent else ""
        if not group.stable:
            waiting = f"the group is {group.state}"
        if not waiting:
            return group
        if app.deadline.expired():
            raise DeadlineError(
                f"{', '.join(workers)} was not restarted: {waiting}, for {app.deadline.timeout_s:g} s",
                hint="Mend it first, so that no two workers are down at once; --resume then goes on.",
            )
        if waiting != spoken:
            spoken = waiting
            words = f"{', '.join(workers)}: not yet restarted, waiting: {waiting}"
            app.on_event(Event(words, standings=standings(workers, mode, "to come")))
        app.clock.sleep_s(_POLL_S)


def standings(workers: Iterable[str], mode: Mode, state: str) -> tuple[Standing, ...]:
    """The workers' lines in a live table."""
    return tuple(Standing(worker, mode.value, state) for worker in workers)


def _deadline(app: App, timeout_s: float | None) -> Deadline | None:
    return None if timeout_s is None else Deadline.after(timeout_s, app.clock)


def _look(app: App, expected: Expected, watch: _Watch, deadline: Deadline | None) -> tuple[str, Settled | None]:
    """What is awaited, or how it settled; a look that fails is something to wait for, too."""
    try:
        now = look_app(with_files(app, expected.files), expected.look_s, within=deadline)
        group = observe_workers(now)
        waiting = _not_back(group, expected)
        watch.returned = watch.returned or not waiting
        if waiting:
            return waiting + _silent(look_app(app, expected.look_s, within=deadline), group, expected), None
        members, evidence, waiting = _judge_modes(now, group, expected)
        waiting = waiting or _judge_work(now, group, expected, watch) or _judge_leader(now, group, expected)
    except _GateFailedError:
        raise
    except EosctlError as exc:
        return exc.message, None
    return waiting, None if waiting else Settled(members, evidence)


class _GateFailedError(ConnectError):
    """A gate that no waiting will open."""


def _not_back(group: GroupObservation, expected: Expected) -> str:
    """gate members_known and group_stable: everybody is there, and the restarted ones are new members."""
    if not group.stable:
        return f"the group is {group.state}"
    there = {member.url: member for member in group.members if member.member_id is not None}
    if expected.at_once:
        old = {member_id for member_id in expected.members.values() if member_id}
        left = [member.url or "?" for member in there.values() if member.member_id in old]
        if left:
            return f"not restarted yet: {', '.join(left)}"
        return "" if len(there) == len(expected.members) else f"{len(there)} of {len(expected.members)} members"
    missing = [url for url in {**expected.members, **dict.fromkeys(expected.workers)} if url not in there]
    if missing:
        return f"not in the group: {', '.join(missing)}"
    same = [url for url in expected.workers if there[url].member_id == expected.members.get(url)]
    return f"not restarted yet: {', '.join(same)}" if same else ""


def _silent(app: App, group: GroupObservation, expected: Expected) -> str:
    """Who does not answer, and so may be what holds it up; while a group rebalances it tells nobody's URL."""
    silent = [str(member.url) for member in group.members if member.health == "unreachable"]
    if not group.stable and not expected.at_once:
        silent = []
        for _url, worker in in_turn(app, [_reachable(app, url) for url in expected.members]):
            try:
                worker.root()
            except EosctlError:
                silent.append(worker.url)
    return f"; no answer from {', '.join(silent)}" if silent else ""


def _judge_modes(
    app: App, group: GroupObservation, expected: Expected
) -> tuple[dict[str, str | None], tuple[str, ...], str]:
    """gates worker_healthy and mode_proven; raises _GateFailedError for a worker that runs in another mode."""
    ill = [f"{member.url} is {member.health}" for member in group.members if member.health not in _WELL]
    if ill:
        return {}, (), "; ".join(ill)
    subjects = [m for m in group.members if expected.at_once or m.url in expected.workers]
    evidence = []
    for member in subjects:
        proof = _proof(app, member, expected)
        if proof is None:
            return {}, (), f"the mode of {member.url} can't be told yet: {'; '.join(member.evidence)}"
        evidence.append(f"{member.url}: {proof}" if expected.at_once else proof)
    return {str(m.url): m.member_id for m in subjects}, tuple(evidence), ""


def _proof(app: App, member: WorkerObservation, expected: Expected) -> str | None:
    """What the worker's mode is taken from; None when nothing tells it."""
    wanted, seen = expected.mode, Mode(member.mode.value)
    if wanted not in POSSIBLE[seen]:
        raise _GateFailedError(
            f"gate mode_proven: {member.url} is back, and {seen.value} instead of {wanted.value} "
            f"({'; '.join(member.evidence)})",
            hint="See which configuration it was started with.",
        )
    if seen is wanted:
        return "; ".join(member.evidence)
    said = _files_say(app, member, wanted)
    if said:
        return f"{said}, which nothing confirms"
    if member.mode is WorkerMode.NOT_ENABLED:
        return f"it is not enabled; that it is {wanted.value} is taken from its restart ({expected.words})"
    return None


def _files_say(app: App, member: WorkerObservation, wanted: Mode) -> str:
    """`FILE says MODE`, where the worker's own files say what is wanted; else empty."""
    given = [config.properties for config in app.target.worker_configs]
    read = [read_worker_file(file.source, file.values) for file in given]
    files = files_of(str(member.url), read, group_id=app.target.group_id)
    agreed = {file.mode for file in files} == {wanted.value}
    return ", ".join(f"{file.path} says {file.mode}" for file in files) if agreed else ""


def _judge_work(app: App, group: GroupObservation, expected: Expected, watch: _Watch) -> str:
    """gate connectors_healthy: connectors and tasks as before; tasks that failed in fencing are restarted once."""
    others = [member for member in group.members if member.url not in expected.workers]
    url = str((others or list(group.members))[0].url)
    worker = app.worker(_reachable(app, url))
    now = {name: _seen(entry) for name, entry in worker.connectors().items()}
    owned = {work for member in group.members for work in member.tasks or ()}
    judged = judge_connectors(expected.connectors, now, owned, excused=expected.excused)
    now_s = app.clock.monotonic_s()
    long_ago = [name for name, at_s in watch.restarted_s.items() if now_s - at_s > RESTART_SHOWS_AFTER_S]
    again = [f"{name} failed in fencing again" for name in judged.to_restart if name in long_ago]
    if judged.broken or again:
        raise _GateFailedError(
            f"gate connectors_healthy: {'; '.join([*judged.broken, *again])}",
            hint="Mend it (`eosctl rescue` for a fencing that can't end), then go on with --resume.",
        )
    for name in [name for name in judged.to_restart if name not in watch.restarted_s]:
        app.on_event(Event(f"restarting the tasks of {name} that failed in zombie fencing"))
        worker.restart(name)
        watch.restarted_s[name] = now_s
    return "; ".join(judged.waiting)


def _reachable(app: App, url: str) -> str:
    """The URL as the user gave it, which may carry credentials, else the member's own."""
    return next((given for given in app.target.connect_urls if parse_worker_url(given).text == url), url)


def _seen(entry: Mapping[str, object]) -> ConnectorSeen:
    info, status = cast("Mapping[str, Any]", entry.get("info") or {}), cast("Mapping[str, Any]", entry["status"])
    tasks = [SeenTask(int(t["id"]), str(t.get("state")), str(t.get("worker_id")), str(t.get("trace") or ""))
             for t in status.get("tasks") or ()]  # fmt: skip
    itself = status.get("connector") or {}
    wanted = sorted(int(task["task"]) for task in info.get("tasks") or ())
    return ConnectorSeen(str(itself.get("state")), tuple(tasks), tuple(wanted), str(itself.get("trace") or ""))


def _judge_leader(app: App, group: GroupObservation, expected: Expected) -> str:
    """A worker that became the leader claims the leader's transactional id at once, unless it is disabled."""
    before = expected.claim
    if expected.mode is Mode.DISABLED or before is None or group.leader_url not in expected.fenceable:
        return ""
    now = read_claim(app, group)
    moved = now.producer is not None and (before.leader == now.leader or now.producer != before.producer)
    if moved or not now.seen:
        return ""
    return f"{now.leader} leads the group and has not claimed its transactional id: is it {Mode.DISABLED.value}?"
