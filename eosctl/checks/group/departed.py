"""Workers that left the group a moment ago, by its status topic, and whether they still run. Reads only.

A worker that loses the brokers leaves its group, and goes on answering. One that is stopped reports the end of its
work, and is not looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.statuses import StatusLog
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.ids import WorkerId, worker_id_of_url
from eosctl.core.wording import counted
from eosctl.core.workers.url import is_loopback_url, is_this_machine
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.group import codes as group_codes
from eosctl.group.gather import observe_former_members
from eosctl.group.observation.rules import Observation
from eosctl.group.observed import GroupObservation, WorkerObservation
from eosctl.group.protocol import CONNECTOR_ITSELF
from eosctl.group.topics.statuses import Departure, departures
from eosctl.group.workers import silences_of
from eosctl.report import Problem

RECENT_MS = 3_600_000
_ANSWER_S = 4.0
_MOST_ASKED = 8
_MOST_NAMED = 3


def not_a_member(worker: WorkerObservation) -> Finding:
    """Return the error of a worker that runs and is outside of its group."""
    [problem] = [each for each in worker.problems if each.code == group_codes.WORKER_NOT_A_MEMBER]
    return Finding(problem.code, ERROR, str(worker.url), problem.message, problem.hint or "", {"health": worker.health})


def find_departed(
    app: App, group: GroupObservation, seen: Observation, log: StatusLog
) -> tuple[list[Finding], list[Problem]]:
    """Return an error for each former member that runs, else the meaning of its leaving; and what is not known."""
    urls = {each.url for each in group.members if each.member_id is not None}
    if not group.stable or seen.connectors is None or None in urls or group.is_mirror_maker or log.unread:
        return [], []
    gone = departures(
        log.history,
        members=_members(group),
        connectors={each.name for each in seen.connectors},
        since_ms=app.clock.now_ms() - RECENT_MS,
    )
    try:
        runs = _running(app, group, [each.worker for each in gone][:_MOST_ASKED])
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return [], [Problem.of(exc)]
    known = {worker_id_of_url(str(each.url)) for each in (*runs, *group.members)}
    return [*map(not_a_member, runs), *(_left(each, group) for each in gone if each.worker not in known)], []


def _members(group: GroupObservation) -> set[WorkerId]:
    return {worker_id_of_url(str(each.url)) for each in group.members if each.member_id is not None}


def _running(app: App, group: GroupObservation, workers: Sequence[WorkerId]) -> list[WorkerObservation]:
    """Return those that answer at their advertised address, and are proven not to lead to a member.

    The host at such an address need not be a worker any more: it gets no credentials, unless it was named.
    """
    app = replace(app, target=replace(app.target, connect=replace(app.target.connect, trust_discovered=False)))
    scheme = urlsplit(next((each.url for each in group.members if each.url), "") or "").scheme or "http"
    urls = {each: f"{scheme}://{each}" for each in workers}
    if not all(is_this_machine(each.client_host or "") for each in group.members):
        urls = {each: url for each, url in urls.items() if not is_loopback_url(url)}
    hurried = replace(app, deadline=app.deadline.half(at_most_s=_ANSWER_S))
    silent = silences_of(hurried, urls) if urls else {}
    answering = [url for each, url in urls.items() if each not in silent]
    found = observe_former_members(app, group, answering) if answering else ()
    return [each for each in found if each.outside]


def _left(gone: Departure, group: GroupObservation) -> Finding:
    names = [name if task == CONNECTOR_ITSELF else f"{name}/{task}" for name, task in gone.left]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    message = f"{gone.worker} left the group {group.group_id} without a word: it was killed, or cut off"
    evidence = {"left": len(names), "moved": gone.moved, "moved_ms": gone.moved_ms if gone.moved else None}
    if not names:
        return Finding(
            codes.WORKER_LEFT, INFO, gone.worker,
            f"{message}; {counted(gone.moved, 'connector or task', 'connectors and tasks')} of it run on others since",
            "Nothing, if it is gone for good; else see its log, and start it.", evidence,
        )  # fmt: skip
    return Finding(
        codes.WORKER_LEFT, WARNING, gone.worker,
        f"{message}; {', '.join(names[:_MOST_NAMED])}{more} said to be RUNNING on it, and nothing shows that it runs",
        "See whether its process runs: if so, it may not reach the brokers (see its log); else start it. Others take "
        "its work over after scheduled.rebalance.max.delay.ms.",
        evidence, certain=False,
    )  # fmt: skip
