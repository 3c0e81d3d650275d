"""The safety checks of `fence`: refusals for running tasks and leaders, and the warnings shown before confirmation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.ids import TransactionalId
from eosctl.errors import RefusedError
from eosctl.fence import codes
from eosctl.fence.rules import FenceItem, FenceOutcome, LiveTask, blocked_leaders, blocked_live
from eosctl.foreign import Lines, arguments, shell_word
from eosctl.report import Problem

PREPARED = "ids like those of Flink's sink, whose open transactions may hold what a two-phase commit has prepared"
_NAMED = 5


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
        f"eosctl connectors restart --failed -u {shell_word(worker.rstrip('/'))} {arguments(connector)}"
        for connector, worker in sorted(workers.items())
    ]


def liveness_unknown(reason: str, hint: str | None = None) -> Problem:
    """Return the warning that it is unknown whether running tasks hold the ids."""
    message = f"whether running tasks hold these ids is unknown: {reason}"
    return Problem(codes.LIVENESS_UNKNOWN, message, hint)
