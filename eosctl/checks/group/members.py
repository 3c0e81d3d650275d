"""doctor's checks of the workers: silent or departed ones, missing plugins, wrong clocks, no exactly-once. Reads only.

Clocks are those of the workers' REST answers (Date), beside this machine's and the coordinators'. A clock that is far
ahead has its worker's records refused by brokers, status records included; one that is off makes every age wrong that
is computed by it. This machine's may be the wrong one: a worker is named only if others agree against it.

Workers that left the group a moment ago are found in its status topic, and asked whether they still run. A worker that
loses the brokers leaves its group, and goes on answering. One that is stopped reports the end of its work, and is not
looked for.

Plugins are missing where configs name connector classes that some members of the group lack. A group that does not use
exactly-once is recognised, and gets the findings that matter there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.cluster import worker_findings
from eosctl.checks.group.plugins import differing_plugins, local_plugins
from eosctl.checks.group.rules import problem_findings
from eosctl.checks.visit import StatusLog, Visit
from eosctl.checks.workers import group_problems, silent_problem, workers_behind
from eosctl.core.configs.records import PROPERTY, names_one_of
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.ids import WorkerId, worker_id_of_url
from eosctl.core.java.properties import is_reference
from eosctl.core.known_bugs import CONFIG_TOPIC, CONNECTORS
from eosctl.core.wording import counted
from eosctl.core.workers.modes import Mode
from eosctl.core.workers.url import is_loopback_url, is_this_machine
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.failures import codes as failures_codes
from eosctl.foreign import arguments
from eosctl.group import codes as group_codes
from eosctl.group.codes import WORKER_NOT_A_MEMBER
from eosctl.group.gather import not_loaded_problem, observe_former_members
from eosctl.group.modes import PARALLEL_WORKERS, find_unloadable, silences_of
from eosctl.group.observation.rules import OTHER_GROUPS, Observation, ObservedConnector
from eosctl.group.observed import GroupObservation, WorkerObservation
from eosctl.group.protocol import CONNECTOR_ITSELF
from eosctl.group.topics import Departure, departures
from eosctl.machine.side_by_side import side_by_side
from eosctl.observation.connectors.commit_age import fold_alike, offset_age
from eosctl.observation.connectors.exactly_once import is_in_use, requires_support
from eosctl.observation.connectors.losses import retriable, skipping
from eosctl.observation.connectors.rules import Rule, connector_findings, offsets_topic, properties
from eosctl.report import Problem
from eosctl.task_counts import codes as task_count_codes

APART_MS = 60_000
REFUSED_MS = 3_600_000
"""Brokers from 4.0 on refuse, by default, records dated so far ahead (log.message.timestamp.after.max.ms)."""
_LONGEST_ANSWER_MS = 10_000
_HERE = "this machine"


class _Clock(Struct, frozen=True):
    """A worker's clock: how far it is ahead of ours, and its host, all of whose workers have that one clock."""

    worker: str
    host: str
    ahead_ms: int


def clock_findings(app: App, group: GroupObservation, coordinators_ms: int | None) -> list[Finding]:
    """Return a finding for each clock that is off by more than a minute.

    Asks each worker that answers for itself once more. `coordinators_ms` is a time that the coordinators' clocks have
    passed, as far as one is known.
    """
    asked = [each for each in group.members if each.failure is None and each.has_rest and not each.doubt and each.url]
    answers = side_by_side(lambda each: _ahead_ms(app, str(each.url)), asked, most=PARALLEL_WORKERS)
    clocks = [
        _Clock(each.name, urlsplit(str(each.url)).hostname or "", ahead_ms)
        for each, ahead_ms in zip(asked, answers, strict=True)
        if ahead_ms is not None
    ]
    brokers_ms = None if coordinators_ms is None else coordinators_ms - app.clock.now_ms()
    return list(_judge({each.worker: each for each in clocks}, brokers_ms))


def _ahead_ms(app: App, url: str) -> int | None:
    """Return how far the worker's clock is ahead of ours, to about a second; None where it is not known."""
    before_ms = app.clock.now_ms()
    try:
        date_ms = app.worker(url).date_ms()
    except InterruptedByUserError:
        raise
    except EosctlError:
        return None  # that it does not answer others say
    after_ms = app.clock.now_ms()
    if date_ms is None or not 0 <= after_ms - before_ms <= _LONGEST_ANSWER_MS:
        return None
    return date_ms + 500 - (before_ms + after_ms) // 2


def _judge(clocks: Mapping[str, _Clock], brokers_ms: int | None) -> Iterable[Finding]:
    """Yield a finding for each clock that differs from ours, or one for ours where all others differ from it alike.

    `brokers_ms` is the least by which the coordinators' clocks are ahead of ours.
    """
    off = [each for each in clocks.values() if abs(each.ahead_ms) > APART_MS]
    if not off:
        return
    ours = 1 + len({each.host for each in clocks.values() if each not in off})
    is_behind_brokers = brokers_ms is not None and brokers_ms > APART_MS
    if len(off) == len(clocks) and (is_behind_brokers or any(_agreeing(each, clocks) > 1 for each in off)):
        yield _ours(off, brokers_ms if is_behind_brokers else None)
        return
    for each in off:
        proven = brokers_ms is not None and each.ahead_ms < brokers_ms - APART_MS
        yield _theirs(each, is_certain=proven or ours > _agreeing(each, clocks))


def _agreeing(clock: _Clock, clocks: Mapping[str, _Clock]) -> int:
    """Return how many hosts have the same time as this one, itself among them."""
    return len({each.host for each in clocks.values() if abs(each.ahead_ms - clock.ahead_ms) <= APART_MS})


def _ours(off: list[_Clock], brokers_ms: int | None) -> Finding:
    least_ms = min((each.ahead_ms for each in off), key=abs)
    others = "the workers and of the brokers" if brokers_ms is not None else "all workers"
    return Finding(
        codes.CLOCK_DIFFERS, WARNING, _HERE,
        f"the clock of this machine is {_apart(-least_ms)} those of {others}: every age that eosctl prints is wrong by "
        "as much",
        "Set this machine's clock (NTP), and run again.",
        {"ahead_ms": -least_ms, "workers": {each.worker: each.ahead_ms for each in off}},
    )  # fmt: skip


def _theirs(clock: _Clock, *, is_certain: bool) -> Finding:
    refused = clock.ahead_ms >= REFUSED_MS
    whose = "the clocks of others" if is_certain else "this machine's, and no third one says which is right"
    means = (
        ": brokers from 4.0 on refuse its records, those of its statuses included (InvalidTimestampException)"
        if refused
        else ""
    )
    return Finding(
        codes.CLOCK_DIFFERS, ERROR if refused and is_certain else WARNING, clock.worker,
        f"the clock of {clock.worker} is {_apart(clock.ahead_ms)} {whose}{means}",
        f"Set the clock of its host (NTP){'' if is_certain else ', or that of this machine'}; then restart the worker."
        if refused
        else f"Set the clock of its host (NTP){'' if is_certain else ', or that of this machine'}.",
        {"ahead_ms": clock.ahead_ms, "worker": clock.worker, "blamed": is_certain},
    )  # fmt: skip


def _apart(ahead_ms: int) -> str:
    seconds = abs(ahead_ms) // 1000
    long = f"{seconds // 60:,} m" if seconds >= 120 else f"{seconds} s"
    return f"{long} {'ahead of' if ahead_ms > 0 else 'behind'}"


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


def missing_plugins(group: GroupObservation, seen: Observation) -> Iterable[Finding]:
    """Yield an error for each member that lacks a class that another one lists.

    Nothing is reported about a class that no member lists: workers leave a few of Kafka's own out of the list.
    """
    listed = [each for each in group.members if each.member_id is not None and each.plugins]
    for worker in listed:
        lacking = [each for each in seen.connectors or () if _has(worker, each) is False]
        lacking = [each for each in lacking if any(_has(other, each) for other in listed)]
        if lacking:
            yield _finding(worker, lacking, [other for other in listed if _has(other, lacking[0])])


def _has(worker: WorkerObservation, connector: ObservedConnector) -> bool | None:
    """Return whether it lists the connector's class; None where the config names none that one could look for."""
    named = connector.config.get(PROPERTY, "")
    return names_one_of(connector.config, worker.plugins or ()) if named and not is_reference(named) else None


def _finding(worker: WorkerObservation, lacking: list[ObservedConnector], others: list[WorkerObservation]) -> Finding:
    first, classes = lacking[0], sorted({each.config[PROPERTY] for each in lacking})
    more = f" and {counted(len(lacking) - 1, 'more connector')}" if lacking[1:] else ""
    return Finding(
        failures_codes.PLUGIN_MISSING, ERROR, worker.name,
        f"{worker.name} does not have the class {first.config[PROPERTY]} of {first.name}{more}, which "
        f"{counted(len(others), 'other member')} of the group {'has' if len(others) == 1 else 'have'}: what it gets "
        "of them fails there",
        f"Put the plugin into the plugin.path of {worker.name}, as {others[0].name} has it, and restart that worker; "
        f"then `eosctl connectors restart --failed {arguments(first.name)}`.",
        {"connectors": [each.name for each in lacking], "classes": classes, "had_by": [each.name for each in others]},
    )  # fmt: skip


def member_findings(visit: Visit) -> Iterable[Finding]:
    """Return findings about the workers of the group: silent, gone, outside, behind, or different from others."""
    seen = visit.seen()
    problems = group_problems(visit.app, visit.group(), None if seen is None else seen.config_read)
    if visit.group().is_mirror_maker:
        return [_mirror_maker(visit), *problem_findings("workers", problems)]
    silent = fold_alike(_silent_finding(*each) for each in visit.silent())
    outside = [not_a_member(each) for each in visit.group().members if each.outside]
    lacking = [] if seen is None else missing_plugins(visit.group(), seen)
    departed, untold = ((), ()) if seen is None else find_departed(visit.app, visit.group(), seen, visit.statuses())
    behind = workers_behind(visit.app, visit.group())
    return [
        *silent,
        *outside,
        *departed,
        *lacking,
        *differing_plugins(visit.group(), [each.config for each in (seen.connectors or ())] if seen else ()),
        *(local_plugins(visit.app, visit.group()) if visit.reads_plugins else ()),
        *behind,
        *clock_findings(visit.app, visit.group(), None if seen is None else seen.coordinators_ms),
        *worker_findings(visit.group(), _judged(seen)),
        *problem_findings(
            "workers",
            [
                each
                for each in dict.fromkeys([*problems, *untold, *_not_loaded(visit)])
                if each.code != WORKER_NOT_A_MEMBER
            ],
        ),
    ]


def _not_loaded(visit: Visit) -> Iterable[Problem]:
    """Yield the plugins that members list without a version and can't load, as validating with them shows.

    A worker lists a plugin so whose version it could not get.
    """
    asked = [each for each in visit.group().members if each.url and each.member_id is not None and each.unversioned]
    for member in asked if visit.validates else []:
        try:
            found = find_unloadable(visit.app.worker(str(member.url)), member.unversioned)
        except EosctlError as exc:
            yield silent_problem(exc)
            continue
        for plugin, reason in found.items():
            yield not_loaded_problem(member.url, member.version, plugin, reason)


def _judged(seen: Observation | None) -> Collection[str]:
    """Return what was seen by which other checks report known bugs where they strike."""
    parts = {} if seen is None else {CONNECTORS: seen.connectors, CONFIG_TOPIC: seen.config_state}
    return {name for name, part in parts.items() if part is not None}


def _mirror_maker(visit: Visit) -> Finding:
    """Make the finding for a dedicated MirrorMaker, in place of those that need a worker's answer. It is no fault."""
    workers = counted(len(visit.group().members), "worker")
    return Finding(
        codes.DEDICATED_MIRROR_MAKER, INFO, str(visit.group().group_id),
        f"{visit.group().group_id} is the group of a dedicated MirrorMaker: {workers} without a REST interface",
        "Nothing; the modes of its workers are in its files and logs only.",
    )  # fmt: skip


def _silent_finding(worker: WorkerObservation, failure: EosctlError) -> Finding:
    """Make the finding for a silent worker: an error if unreachable, as nothing can be proven of its group then."""
    problem = silent_problem(failure)
    severity = ERROR if worker.health == "unreachable" else WARNING
    return Finding(
        problem.code,
        severity,
        str(worker.url),
        problem.message,
        problem.hint or "See the message.",
        certain=severity == ERROR,
    )


_RULES: Sequence[Rule] = (offset_age, offsets_topic, properties, skipping, retriable)
_ELSEWHERE = frozenset({Mode.DISABLED, Mode.PREPARING, Mode.NOT_ENABLED, Mode.OLD_VERSION})
_NOT_WRITTEN = frozenset({task_count_codes.MISSING, task_count_codes.MIS_ORDERED})
"""Findings about task-count records that workers without exactly-once neither write nor read."""


def plain_findings(observation: Observation, connectors: Iterable[ObservedConnector]) -> list[Finding]:
    """Return findings about these connectors in a group without exactly-once: that it is one, and what matters anyway.

    A connector that requires exactly-once is judged as if the group used it.
    """
    sources = [each for each in connectors if each.type == "source"]
    required = [each for each in sources if requires_support(each)]
    others = [each for each in sources if each not in required]
    found = [finding for each in others for rule in _RULES for finding in rule(each, observation)]
    return [*_not_used(observation, others), *connector_findings(observation, required), *found]


def _not_used(observation: Observation, others: Sequence[ObservedConnector]) -> Iterable[Finding]:
    if others:
        tasks = counted(sum(len(each.tasks()) for each in others), "task")
        yield Finding(
            codes.EXACTLY_ONCE_NOT_USED, INFO, observation.group_id or "group",
            f"no worker is enabled: {counted(len(others), 'source connector')} with {tasks} write without transactions",
            "Nothing, if that is meant; `eosctl upgrade plan --to enabled` shows what exactly-once needs, and "
            "`eosctl connectors check` what prevents it.",
        )  # fmt: skip


def uses_exactly_once(observation: Observation) -> bool:
    """Return whether tasks may run exactly-once: not where workers are known not to, and none to be enabled."""
    modes = {worker.mode for worker in observation.workers}
    return is_in_use(observation) or not (observation.mirror_maker or modes & _ELSEWHERE)


def needless_codes(observation: Observation) -> frozenset[str]:
    """Return the codes of findings about task-count records that say nothing of this group.

    Whose ids another group has is judged among its connectors, by what that group runs, where that is known.
    """
    written = frozenset[str]() if uses_exactly_once(observation) else _NOT_WRITTEN
    are_judged = observation.rival_groups is not None and OTHER_GROUPS not in observation.forbidden
    return written | ({task_count_codes.ID_COLLISION} if are_judged else set())
