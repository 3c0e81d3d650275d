"""The input of `fence`, and its safety checks.

The input is the ids that a request selects, and their connectors. The checks are refusals for running tasks and
leaders, and the warnings shown before confirmation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.ids import Owner, TransactionalId, task_transactional_ids
from eosctl.core.transactions import TransactionDescription, TransactionState
from eosctl.core.wording import counted
from eosctl.deadline import Deadline, Event
from eosctl.errors import EosctlError, NotFoundError, RefusedError, UsageError
from eosctl.fence import codes
from eosctl.fence.rules import FenceItem, FenceOutcome, LiveTask, blocked_leaders, blocked_live, unique_ids
from eosctl.foreign import Lines, arguments, shell_word
from eosctl.report import Problem

if TYPE_CHECKING:
    from eosctl.connectors.dedicated import OtherCluster
    from eosctl.core.configs.fold import ConnectorState


PREPARED = "ids like those of Flink's sink, whose open transactions may hold what a two-phase commit has prepared"
_NAMED = 5
_WHY_S = 15.0


def refuse_leaders(items: Sequence[FenceItem]) -> None:
    """Raise RefusedError if any of `items`, the result of `blocked_leaders`, is left."""
    if not items:
        return
    raise RefusedError(
        f"{_join_names(item.transactional_id for item in items)} may be the id of a Connect leader",
        hint="A leader that loses it fails its next write to the config topic, and can stay stuck until a rebalance. "
        f"If that is what you want, add {Waiver.ALLOW_LEADER}. Ids of a Connect task: name them with --connector.",
    )


def refuse_live(items: Sequence[FenceItem]) -> None:
    """Raise RefusedError with connector, task and worker if running tasks hold any of the items."""
    tasks = [item.live for item in items if item.live is not None]
    if not tasks:
        return
    connectors = sorted({task.connector for task in tasks})
    raise RefusedError(
        f"cannot fence {_join_names(item.transactional_id for item in items)}: {tasks_text(tasks)} now",
        hint=f"A fenced task goes FAILED at its next commit and Connect does not restart it. "
        f"Stop {_join_names(connectors)} first, or add {Waiver.LIVE} and restart the tasks afterwards.",
    )


def refuse_unknown(items: Sequence[FenceItem], unknown: Mapping[TransactionalId, Problem]) -> None:
    """Raise RefusedError if an id to be fenced is in `unknown`: its task may be running."""
    wanted = [item.transactional_id for item in items if item.outcome == FenceOutcome.WOULD_FENCE]
    tasks = [transactional_id for transactional_id in wanted if transactional_id in unknown]
    if not tasks:
        return
    problem = unknown[tasks[0]]
    do = problem.hint or "Name a worker that answers with -u."
    raise RefusedError(
        f"cannot fence {_join_names(tasks)}: {problem.message}",
        hint=f"{do} If the tasks may fail, add {Waiver.UNKNOWN_LIVENESS}: a fenced task goes FAILED at its next commit "
        "and Connect does not restart it.",
    )


def refuse_prepared(items: Sequence[FenceItem]) -> None:
    """Raise RefusedError if any of `items`, the result of `may_be_prepared`, is left."""
    if not items:
        return
    raise RefusedError(
        f"cannot fence {_join_names(item.transactional_id for item in items)}: {PREPARED}",
        hint="Let the job restore from its last checkpoint, which commits them; or, if their data may be lost, add "
        f"{Waiver.DISCARD_PREPARED}. Ids of a Connect task: name them with --connector.",
    )


def tasks_text(tasks: Sequence[LiveTask]) -> str:
    """Describe which worker runs which task, for a message."""
    return _join_names(_task_text(task) for task in tasks)


def _task_text(task: LiveTask) -> str:
    where = "" if task.group_id is None else f" of group {task.group_id}"
    return f"worker {task.worker}{where} runs task {task.task} of connector {task.connector}"


def _join_names(names: Iterable[str]) -> str:
    """Join the first few names, and count the rest."""
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


def cautions(
    app: App,
    items: Sequence[FenceItem],
    prepared: Sequence[FenceItem] = (),
    groups: Collection[str] | None = None,
) -> list[Problem]:
    """Return the warnings to show before confirmation."""
    cautions = []
    if prepared:
        cautions.append(
            Problem(
                code=codes.PREPARED_TRANSACTIONS,
                message=f"fencing {_join_names(item.transactional_id for item in prepared)} may lose data: {PREPARED}",
                hint="What Flink has checkpointed and not yet committed can't be written again by it.",
            )
        )
    if blocked_leaders(items, groups):
        cautions.append(
            Problem(
                code=codes.LEADER_ID,
                message="a leader that loses its id notices at its next write, which fails once with HTTP 500",
                hint="PUT the unchanged config of any connector right after; do so before any restart with "
                "includeTasks=true, which can leave the leader stuck.",
            )
        )
    if blocked_live(items):
        cautions.append(
            Problem(
                code=codes.LIVE_TASKS,
                message="running tasks are fenced: they go FAILED at their next commit and stay so",
                hint=Lines.of("Afterwards run:", *restart_commands(app, items)),
            )
        )
    return cautions


def restart_commands(app: App, items: Iterable[FenceItem]) -> list[str]:
    """Return one restart command per connector whose running tasks are fenced, with the URL of its worker."""
    from eosctl.core.workers.url import parse_worker_url

    given = [parse_worker_url(url).text for url in app.target.connect_urls]  # without any credentials
    workers = {
        item.live.connector: given[0] if given and item.live.group_id is None else f"http://{item.live.worker}"
        for item in items
        if item.live is not None
    }
    return [
        f"eosctl connectors restart --failed -u {shell_word(worker)} {arguments(connector)}"
        for connector, worker in sorted(workers.items())
    ]


def liveness_unknown(reason: str, hint: str | None = None) -> Problem:
    """Return the warning that it is unknown whether running tasks hold the ids."""
    message = f"whether running tasks hold these ids is unknown: {reason}"
    return Problem(codes.LIVENESS_UNKNOWN, message, hint)


class FenceRequest(Struct, frozen=True):
    """The selection of ids; `tasks` overrides the task-count record of `connector`; `via`: native, connect or producer.

    `live`, `unknown_liveness`, `discard_prepared`, `allow_leader` and `create_unknown` waive one check each.
    """

    transactional_ids: tuple[TransactionalId, ...] = ()
    prefix: str | None = None
    pattern: str | None = None
    connector: str | None = None
    tasks: int | None = None
    live: bool = False
    unknown_liveness: bool = False
    discard_prepared: bool = False
    allow_leader: bool = False
    create_unknown: bool = False
    via: str = "native"


class Gathered(Struct, frozen=True):
    """The ids in a stable order; `task_count_record` is set where the ids were derived from it.

    `at` is the Kafka cluster of the ids, if the connector has one of its own.
    """

    ids: Sequence[TransactionalId]
    task_count_record: int | None = None
    connector_of: Mapping[TransactionalId, Owner] = {}
    connectors: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()
    at: OtherCluster | None = None


def gather_ids(app: App, request: FenceRequest, known: Mapping[str, ConnectorState] | None = None) -> Gathered:
    """Return all ids that the request selects, each once: given ones, then those found by name, then the connector's.

    `known` are the connectors of the config topic, if it has just been read.
    Raises UsageError for an empty or contradictory request, NotFoundError for a connector without a record.
    """
    _check(request)
    ids = list(request.transactional_ids)
    problems: list[Problem] = []
    if request.prefix is not None or request.pattern is not None:
        from eosctl.txn.report import hidden_ids_warning

        matching, missing = _matching_ids(app, _matcher(request))
        problems = [*hidden_ids_warning(app, matching), *missing]
        ids += matching
    if request.connector is None:
        return Gathered(unique_ids(ids), problems=tuple(problems))
    return _with_connector(app, request, request.connector, known, (ids, problems))


def _check(request: FenceRequest) -> None:
    if request.tasks is not None and request.connector is None:
        raise UsageError("--tasks belongs to --connector", hint="Name the connector whose tasks 0 to N-1 are meant.")
    named = (request.prefix, request.pattern, request.connector)
    if not request.transactional_ids and all(name is None for name in named):
        raise UsageError(
            "no transactional id was named",
            hint="Give ids, --from-file, --prefix, --match or --connector; `eosctl txn list` shows what there is.",
        )
    if "" in request.transactional_ids or request.prefix == "" or request.connector == "":
        raise UsageError("an empty transactional id, prefix or connector name matches nothing, or too much")


def _matcher(request: FenceRequest) -> Callable[[str], bool]:
    """Return a predicate for the prefix and the pattern, if given; the pattern must match the whole id."""
    try:
        pattern = re.compile(request.pattern if request.pattern is not None else ".*", re.DOTALL)
    except re.error as exc:
        raise UsageError(f"--match {request.pattern!r} is not a regular expression: {exc}") from exc
    prefix = request.prefix or ""
    return lambda transactional_id: transactional_id.startswith(prefix) and bool(pattern.fullmatch(transactional_id))


def _matching_ids(app: App, matches: Callable[[str], bool]) -> tuple[list[TransactionalId], list[Problem]]:
    """List the ids that match, of all that this principal may see; filter here, as brokers before 4.1 can't.

    Return also a problem for each coordinator that can't be asked, as there may be more ids.
    """
    from eosctl.txn.report import missing_ids_problems

    with app.transactions() as admin:
        listings = admin.list_transactions()
    ids = sorted(each.transactional_id for each in listings.found if matches(each.transactional_id))
    return ids, missing_ids_problems(listings)


def _with_connector(
    app: App,
    request: FenceRequest,
    connector: str,
    known: Mapping[str, ConnectorState] | None,
    found: tuple[list[TransactionalId], list[Problem]],
) -> Gathered:
    from eosctl.connectors.dedicated import cluster_of_ids

    group_id, (ids, problems) = app.target.require_group_id(), found
    recorded, connectors = None, frozenset[str]()
    if request.tasks is None:
        known = known or recorded_connectors(app)
        connectors = frozenset(known)
        recorded = recorded_count(known, connector)
        count = _require_count(app, connector, recorded)
    else:
        with suppress(EosctlError):  # with --tasks it need not be read
            known = recorded_connectors(app)
        count = request.tasks
        tasks = {0: "no task", 1: "task 0"}.get(count, f"tasks 0 to {count - 1}")
        message = f"fencing {tasks} of {connector}: the number is from --tasks, not from the task-count record"
        problems.append(Problem(codes.TASK_COUNT_OVERRIDDEN, message))
    at = cluster_of_ids(app, connector, known[connector].config if known and connector in known else None)
    if at is not None and ids:
        raise UsageError(
            f"{connector} writes to another Kafka cluster, where its transactional ids are",
            hint="Fence them apart: --connector alone.",
        )
    derived = task_transactional_ids(group_id, connector, count)
    owners = {transactional_id: Owner("task", connector, task) for task, transactional_id in enumerate(derived)}
    return Gathered(unique_ids([*ids, *derived]), recorded, owners, connectors, tuple(problems), at)


def _require_count(app: App, connector: str, count: int | None) -> int:
    if count is None:
        from eosctl.group.absent import require_ever_there

        require_ever_there(app)
        raise NotFoundError(
            f"connector {connector} has no task-count record in topic {app.target.config_topic}: "
            "Connect itself would fence none of its ids",
            hint=f"Give --tasks N to fence the ids of tasks 0 to N-1, or see "
            f"`eosctl txn list --match {shell_word(f'{app.target.group_id}-{connector}-.*')}`.",
        )
    return count


def recorded_connectors(app: App) -> Mapping[str, ConnectorState]:
    """Return the connectors of the config topic as it is now; raises NotFoundError when there is none."""
    from eosctl.group.absent import read_config_topic

    with app.topics() as store:
        return read_config_topic(app, store).state.connectors


def recorded_count(connectors: Mapping[str, ConnectorState], name: str) -> int | None:
    """Return the newest task-count record of a connector."""
    return connectors[name].task_count_record if name in connectors else None


def why_not_ended(app: App, described: Sequence[TransactionDescription]) -> list[Problem]:
    """Return why coordinators do not end the transactions of ids that were to be fenced, which can't be until then."""
    ending = [
        each for each in described if each.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
    ]
    if not ending:
        return []
    from eosctl.txn.unended import unended_finding  # which most commands need not load
    from eosctl.txn.unended_look import examine_unended

    app.on_event(Event(f"looking why {counted(len(ending), 'transaction is', 'transactions are')} not ended"))
    patient = replace(app, deadline=Deadline.after(_WHY_S, app.clock))
    try:
        found = examine_unended(patient, ending, least_ms=0)
    except EosctlError as error:
        app.on_event(Event(f"could not look: {error.message}", warning=True))
        return []
    told = [unended_finding(each, now_ms=app.clock.now_ms()) for each in found]
    return [Problem(each.code, each.message, each.fix, unseen=not each.certain) for each in told]
