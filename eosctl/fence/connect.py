"""Fencing through Connect's own endpoint (`--via connect`), its duration, and fencing of a connector's former tasks.

The leader does what it does before it starts tasks: it fences the recorded ids and writes the task-count record. The
connector must be STOPPED, so that nothing is left to fence when it resumes.

How long Connect's own fencing of a connector takes, and whether it ends, is estimated from the retry backoff. Connect
fences one id, then waits for the admin client's backoff, per coordinator, so the number of recorded tasks is a downtime
at each reconfiguration (Kafka 3.7 to 4.3; `AdminApiDriver`). Older clients wait 100 ms.

The ids of a stopped connector's former tasks are fenced so that none of them can commit an offset any more. A worker
gives up on a task that does not end in time, and a frozen one may resume: both may hold a producer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum, unique

from eosctl.app import App
from eosctl.connectors.holders import asks_to_start, holders_of_shown, is_at_rest
from eosctl.connectors.look import look_at, unknown_connector
from eosctl.connectors.waiting import await_start, await_stopped
from eosctl.core.ids import TransactionalId, task_transactional_ids
from eosctl.core.java.properties import LONG_BITS, java_number
from eosctl.core.transactions import (
    CURE,
    ROUND_S,
    FenceAnswer,
    KafkaFault,
    TransactionDescription,
)
from eosctl.core.wording import counted
from eosctl.core.workers.access import SIGNATURE
from eosctl.core.workers.modes import Mode
from eosctl.errors import ConnectError, EosctlError, RefusedError, UnauthorizedError, UnsupportedError, UsageError
from eosctl.fence import codes
from eosctl.fence.gather import FenceRequest, recorded_connectors, recorded_count
from eosctl.fence.rules import FENCE_TRANSACTION_TIMEOUT_MS, FenceItem, FenceOutcome, is_fence
from eosctl.foreign import arguments
from eosctl.group.absent import leader_worker, session_headers
from eosctl.group.modes import probe_mode, refuse_unreachable
from eosctl.group.observation.holders import OverridePolicy, override_policy
from eosctl.report import Problem

FORWARD_S = 30.0
"""The time for which a follower waits for the leader's round before its task fails."""
SLOW_S = 10.0
_BACKOFF_MS = 100
_BACKOFF_MAX_MS = 1000
_EXPONENTIAL_SINCE = (3, 7)


@unique
class Pace(StrEnum):
    """`lossy`: followers' tasks fail while the round goes on; `impossible`: the round never ends."""

    FINE = "fine"
    SLOW = "slow"
    LOSSY = "lossy"
    IMPOSSIBLE = "impossible"


def pause_ms(
    config: Mapping[str, str], worker: Mapping[str, str], *, oldest_version: tuple[int, int] | None = None
) -> int:
    """Return the milliseconds between two ids of one coordinator; a connector's overrides precede worker settings.

    `oldest_version` is that of the workers; None counts as 3.7 or newer, where the backoff grows up to its maximum.
    """
    backoff_ms = _setting("retry.backoff.ms", config, worker, _BACKOFF_MS)
    if backoff_ms == 0 or (oldest_version is not None and oldest_version < _EXPONENTIAL_SINCE):
        return backoff_ms
    return _setting("retry.backoff.max.ms", config, worker, _BACKOFF_MAX_MS)


def _setting(name: str, config: Mapping[str, str], worker: Mapping[str, str], default: int) -> int:
    text = config.get(f"admin.override.{name}") or worker.get(f"admin.{name}") or ""
    number = java_number(text, bits=LONG_BITS)
    return default if number is None or number < 0 else number  # Kafka takes none below 0


def round_s(ids_per_coordinator: int, pause: int) -> float:
    """Return the duration of one fencing round, in seconds."""
    return ids_per_coordinator * pause / 1000


def pace_of(seconds: float, *, workers: int) -> Pace:
    """Classify a round of that length by its effect on the tasks of a group of `workers`."""
    if seconds > ROUND_S:
        return Pace.IMPOSSIBLE
    if seconds > FORWARD_S and workers > 1:
        return Pace.LOSSY
    return Pace.SLOW if seconds >= SLOW_S else Pace.FINE


def cure_of(policy: OverridePolicy | None) -> Mapping[str, str]:
    """Return the two settings that cure it: of the connector, or of the workers where their policy refuses those."""
    refused = policy is not None and any(policy.refuses(name.removeprefix("admin.override.")) for name in CURE)
    return {name.replace(".override.", ".") if refused else name: value for name, value in CURE.items()}


def cure_text(policy: OverridePolicy | None, config: str = "its config") -> str:
    """Format the two settings that cure it, and where to set them; `config` names the connector's config."""
    cure = cure_of(policy)
    where = config if cure == CURE else "the workers' files, whose policy refuses them in a connector's config"
    return f"{' and '.join(f'{name}={value}' for name, value in cure.items())} in {where}"


_REFUSAL_S = ROUND_S / 2  # a refusal comes at once, or when our patience with a rebalance is over
_MARGIN_S = 30.0


def check_connect_route(app: App, request: FenceRequest) -> None:
    """Raise UsageError or UnsupportedError for a request that the endpoint can't serve, RefusedError unless STOPPED.

    Raises RefusedError, too, for a leader that was not named, as it may not get the signature.

    REST may report tasks long after they ended: members of the group that hold none disprove it. Tasks that REST
    reports no more, and that have not ended yet, are left to `find_liveness`.
    """
    others = (request.prefix, request.pattern, request.tasks)
    if request.connector is None or request.transactional_ids or any(other is not None for other in others):
        raise UsageError(
            "--via connect fences the recorded ids of one connector",
            hint="Give --connector NAME, and neither ids nor --tasks.",
        )
    leader = leader_worker(app)
    app.target.connect.require_trust(leader.url, SIGNATURE)
    refuse_unreachable(request.connector, leader)
    shown = leader.connectors()
    entry = shown.get(request.connector)
    if entry is None:
        raise unknown_connector(f"there is no connector {request.connector}", request.connector, shown)
    left = holders_of_shown(app, [request.connector], shown).left(request.connector)
    if entry.state != "STOPPED" or any(task.status is not None for task in left):
        tasks = counted(len(entry.tasks), "task")
        raise RefusedError(
            f"connector {request.connector} is {entry.state} with {tasks}; --via connect needs it STOPPED",
            hint=f"`eosctl connectors stop {arguments(request.connector)}` (Kafka 3.5+), then run again.",
        )


def pace_caution(app: App, connector: str, items: Sequence[FenceItem]) -> list[Problem]:
    """Warn if the leader's fencing round, one id after the other, may outlast the timeout."""
    wanted = [item for item in items if item.outcome is FenceOutcome.WOULD_FENCE]
    known = Counter(item.coordinator.node_id for item in wanted if item.coordinator is not None)
    unknown = sum(item.coordinator is None for item in wanted)
    config = leader_worker(app).connector_config(connector)
    seconds = round_s(max(known.values(), default=0) + unknown, pause_ms(config, {}))
    left_s = app.deadline.remaining_s()
    message = f"the leader fences one id after the other: {counted(len(wanted), 'id')} take it about {seconds:.0f} s"
    if pace_of(seconds, workers=1) is Pace.IMPOSSIBLE:
        policy = override_policy([worker.properties.values for worker in app.target.worker_configs])
        hint = f"Fence without --via connect, or set {cure_text(policy)} first."
        return [Problem(codes.FENCING_IMPOSSIBLE, f"{message}, and it gives up after {ROUND_S:g}", hint).as_warning()]
    if seconds < left_s:
        return []
    hint = f"Give it --timeout {seconds + _MARGIN_S:.0f}s; the round goes on all the same when eosctl waits no longer."
    return [Problem(codes.FENCING_SLOW, f"{message}, and --timeout leaves {left_s:.0f}", hint).as_warning()]


def fence_through_connect(
    app: App, connector: str, before: Mapping[TransactionalId, TransactionDescription | None], *, ids_app: App
) -> Iterator[FenceAnswer]:
    """Send a signed `PUT /connectors/C/fence`, and read its effect from the coordinators.

    `ids_app` is for the cluster that the connector's tasks write to.

    Raises the worker's last failure, after the answers for ids that were fenced all the same.
    """
    failure = put_fence(app, connector)
    with ids_app.transactions() as admin:
        now = admin.describe_transactions(list(before))
    for transactional_id, old in before.items():
        answer = _compare(transactional_id, old, now.get(transactional_id))
        if answer.fault is None or failure is None:
            yield answer
    if failure is not None:
        raise failure


def put_fence(app: App, connector: str) -> EosctlError | None:
    """Have the leader fence; return the failure, if any. Retry once, for a just replaced key or a just taken leader id.

    A late failure is not retried: that round has fenced ids, and a second one would begin at the first of them.
    """
    worker = leader_worker(app)
    failure: EosctlError | None = None
    late_s = app.clock.monotonic_s() + _REFUSAL_S
    for _attempt in range(2):
        try:
            worker.fence(connector, session_headers(app))
        except (UnauthorizedError, ConnectError) as error:
            failure = error
            if app.clock.monotonic_s() > late_s:
                break
        else:
            return None
    return failure


def _compare(
    transactional_id: TransactionalId,
    old: TransactionDescription | None,
    now: TransactionDescription | KafkaFault | None,
) -> FenceAnswer:
    if not isinstance(now, TransactionDescription):
        return FenceAnswer(transactional_id, None, fault=now, confirmed=False)
    if old is not None and (now.producer_id, now.producer_epoch) == (old.producer_id, old.producer_epoch):
        same = KafkaFault(-1, "NOT_FENCED", "the worker left this id as it was: to it, fencing is not due")
        return FenceAnswer(transactional_id, now.coordinator, fault=same)
    if not is_fence(old, now):
        moved = KafkaFault(-1, "NOT_FENCED", "its producer has gone on, and nothing shows that it was fenced")
        return FenceAnswer(transactional_id, now.coordinator, fault=moved, confirmed=False)
    return FenceAnswer(transactional_id, now.coordinator, now.producer_id, now.producer_epoch)


def stop_and_fence(app: App, connector: str, url: str, *, tasks: int, hint: str, where: App | None = None) -> str:
    """Stop the connector until no member of the stable group holds a task, then fence their ids; return what was done.

    After that no task moves the offsets. `tasks` and `where` are as in `fence_former_tasks`.
    """
    was_stopped = is_at_rest(app, connector, look_at(app, connector, url).entry)
    if was_stopped and asks_to_start(app, connector):
        await_start(app, connector, url)
        was_stopped = False
    if not was_stopped:
        app.worker(url).set_state(connector, "stop")
    await_stopped(app, connector, url, hint=hint)
    fenced = fence_former_tasks(app, connector, tasks=tasks, where=where)
    stopped = "it is STOPPED and has no task" if was_stopped else "STOPPED, no task left"
    return ", ".join(filter(None, (stopped, fenced)))


_AUTHORIZATION_FAILED = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"


def fence_former_tasks(app: App, connector: str, *, tasks: int, where: App | None = None) -> str:
    """Fence natively, or else through the leader, and return what was done; `tasks` is the last known number of tasks.

    `where` is for the brokers of its ids, if those are not the group's. Ids that no coordinator knows were never used:
    workers without exactly-once support have none. Raises EosctlError if an id may still be used.
    """
    count = max(tasks, recorded_count(recorded_connectors(app), connector) or 0)
    ids = task_transactional_ids(app.target.require_group_id(), connector, count)
    try:
        fenced, faults = _fence_natively(where or app, ids)
    except UnsupportedError:
        return _fence_through_leader(app, connector)
    if any(fault.name == _AUTHORIZATION_FAILED for fault in faults.values()):
        return _fence_through_leader(app, connector)
    if faults:
        transactional_id, fault = next(iter(faults.items()))
        raise EosctlError(
            f"{counted(len(faults), 'id')} of former tasks of {connector} can't be fenced, first {transactional_id}: "
            f"{fault}; the task may still commit offsets",
            hint="Run the same command again.",
        )
    return f"{counted(len(fenced), 'id')} of its tasks fenced" if fenced else ""


def _fence_natively(
    app: App, ids: Sequence[TransactionalId]
) -> tuple[list[TransactionalId], dict[TransactionalId, KafkaFault]]:
    """Fence the ids that coordinators know; return the fenced ones, and the faults of the others."""
    if not ids:
        return [], {}
    with app.transactions() as admin:
        states = admin.describe_transactions(ids)
        known = [each for each in ids if not (isinstance(state := states[each], KafkaFault) and state.is_unknown_id)]
        answers = list(admin.fence(known, transaction_timeout_ms=FENCE_TRANSACTION_TIMEOUT_MS)) if known else []
    faults = {answer.transactional_id: answer.fault for answer in answers if answer.fault is not None}
    return [answer.transactional_id for answer in answers if answer.fault is None], faults


def _fence_through_leader(app: App, connector: str) -> str:
    """Have the leader fence the recorded ids, unless it is not enabled: then tasks have no ids."""
    if probe_mode(leader_worker(app))[0] is Mode.NOT_ENABLED:
        return ""
    failure = put_fence(app, connector)
    if failure is not None:
        raise ConnectError(
            f"the ids of {connector}'s former tasks can't be fenced, natively for lack of rights, nor by the leader: "
            f"{failure.message}",
            hint=f"Grant DESCRIBE and WRITE on the transactional ids {app.target.group_id}-{connector}-*.",
        ) from failure
    return "the leader was asked to fence its tasks"
