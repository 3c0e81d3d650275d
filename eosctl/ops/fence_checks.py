"""What keeps `fence` from harm: refusals for running tasks and leaders, and what to know before saying yes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shlex import quote

from eosctl.core.fencing import FenceItem, LiveTask, Outcome, blocked_leaders, blocked_live
from eosctl.core.ids import connector_path
from eosctl.core.worker_url import parse_worker_url
from eosctl.errors import RefusedError
from eosctl.ops.app import App
from eosctl.report import Problem

PREPARED = "ids like those of Flink's sink, whose open transactions may hold what a two-phase commit has prepared"
_NAMED = 5


def refuse_leaders(items: Sequence[FenceItem]) -> None:
    """Raises RefusedError if any of `items` (those blocked for what may be a leader) is left."""
    if not items:
        return
    raise RefusedError(
        f"{_some(item.transactional_id for item in items)} may be the id of a Connect leader",
        hint="A leader that loses it fails its next write to the config topic, and can stay stuck until a rebalance. "
        "If that is what you want, add --allow-leader.",
    )


def refuse_live(items: Sequence[FenceItem]) -> None:
    """Raises RefusedError naming connector, task and worker of the items that running tasks hold."""
    tasks = [item.live for item in items if item.live is not None]
    if not tasks:
        return
    connectors = sorted({task.connector for task in tasks})
    raise RefusedError(
        f"cannot fence {_some(item.transactional_id for item in items)}: {tasks_text(tasks)} now",
        hint=f"A fenced task goes FAILED at its next commit and Connect does not restart it. "
        f"Stop {_some(connectors)} first, or add --live and restart the tasks afterwards.",
    )


def refuse_unknown(items: Sequence[FenceItem], unknown: Sequence[Problem]) -> None:
    """Raises RefusedError if any of `items` is an id of a task of the group while nobody can say whether it runs."""
    tasks = [
        item.transactional_id for item in items if item.outcome == Outcome.WOULD_FENCE and item.owner.kind == "task"
    ]
    if not tasks or not unknown:
        return
    raise RefusedError(
        f"cannot fence {_some(tasks)}: {unknown[0].message}",
        hint="Name a worker that answers with -u, or add --live if the tasks may fail: a fenced task goes FAILED at "
        "its next commit and Connect does not restart it.",
    )


def refuse_prepared(items: Sequence[FenceItem]) -> None:
    """Raises RefusedError if any of `items` (what `may_be_prepared` found) is left."""
    if not items:
        return
    raise RefusedError(
        f"cannot fence {_some(item.transactional_id for item in items)}: {PREPARED}",
        hint="Let the job restore from its last checkpoint, which commits them; or, if their data may be lost, add "
        "--live. Ids of a Connect task: name them with --connector.",
    )


def tasks_text(tasks: Sequence[LiveTask]) -> str:
    """Who runs what, for a message."""
    return _some(f"worker {task.worker} runs task {task.task} of connector {task.connector}" for task in tasks)


def _some(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


def cautions(app: App, items: Sequence[FenceItem], prepared: Sequence[FenceItem] = ()) -> list[Problem]:
    """What the one who asked for it should know before saying yes."""
    cautions = []
    if prepared:
        cautions.append(
            Problem(
                code="prepared_transactions",
                severity="warning",
                message=f"fencing {_some(item.transactional_id for item in prepared)} may lose data: {PREPARED}",
                hint="What Flink has checkpointed and not yet committed can't be written again by it.",
            )
        )
    if blocked_leaders(items):
        cautions.append(
            Problem(
                code="leader_id",
                severity="warning",
                message="a leader that loses its id notices at its next write, which fails once with HTTP 500",
                hint="PUT the unchanged config of any connector right after; do so before any restart with "
                "includeTasks=true, which can leave the leader stuck.",
            )
        )
    if blocked_live(items):
        cautions.append(
            Problem(
                code="live_tasks",
                severity="warning",
                message="running tasks are fenced: they go FAILED at their next commit and stay so",
                hint="Afterwards run:\n" + "\n".join(restart_commands(app, items)),
            )
        )
    return cautions


def restart_commands(app: App, items: Iterable[FenceItem]) -> list[str]:
    """One command per connector whose running tasks are fenced, at its worker's URL."""
    workers = {item.live.connector: f"http://{item.live.worker}" for item in items if item.live is not None}
    given = [parse_worker_url(url).text for url in app.target.connect_urls]  # without the credentials it may carry
    urls = [
        f"{(given[0] if given else worker).rstrip('/')}{connector_path(connector)}/restart"
        for connector, worker in sorted(workers.items())
    ]
    return [f"curl -X POST {quote(f'{url}?includeTasks=true&onlyFailed=true')}" for url in urls]
