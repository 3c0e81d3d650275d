"""Fencing through Connect's own endpoint (`--via connect`).

The leader does what it does before it starts tasks: it fences the recorded ids and writes the task-count record. The
connector must be STOPPED, so that nothing is left to fence when it resumes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from eosctl.app import App
from eosctl.connectors.holders import holders_of_shown
from eosctl.connectors.look import unknown_connector
from eosctl.core.fencing_rounds import ROUND_S
from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import FenceAnswer, KafkaFault, TransactionDescription
from eosctl.core.wording import counted
from eosctl.core.workers.access import SIGNATURE
from eosctl.errors import ConnectError, EosctlError, RefusedError, UnauthorizedError, UsageError
from eosctl.fence import codes
from eosctl.fence.gather import FenceRequest
from eosctl.fence.pace import Pace, cure_text, pace_of, pause_ms, round_s
from eosctl.fence.rules import FenceItem, FenceOutcome, is_fence
from eosctl.foreign import arguments
from eosctl.group.leader import leader_worker, session_headers
from eosctl.group.observation.override_policy import override_policy
from eosctl.group.workers import refuse_unreachable
from eosctl.report import Problem

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
