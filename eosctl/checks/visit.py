"""State shared by doctor's checks in a run: the group, the gates' observation and the statuses. Reads only.

The group and the observation are read once each.

The states that REST reports are joined with what it does not: the holder of a part, and the time of its state. A worker
writes its own states into the status topic, from which every worker answers: one that can't write, or is late, leaves
an outdated state. The group's assignment is the coordinator's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors import codes
from eosctl.connectors.holders import connector_statuses
from eosctl.connectors.look import RESTARTING, UNASSIGNED
from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.java.properties import java_number
from eosctl.core.records import Record
from eosctl.core.workers.modes import Mode
from eosctl.core.workers.url import parse_worker_url
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, InterruptedByUserError, NotFoundError, UnsupportedError
from eosctl.foreign import arguments
from eosctl.group.absent import require_ever_there
from eosctl.group.gather import NO_REST, observe_workers, read_group, worker_id_of
from eosctl.group.members import DEAD, STABLE
from eosctl.group.observation.holders import Assigned, with_holders
from eosctl.group.observation.rules import Observation, ObservedConnector, observed_connectors
from eosctl.group.observed import GroupObservation, WorkerObservation
from eosctl.group.protocol import CONNECTOR_ITSELF, Work
from eosctl.group.topics import WrittenStatus, status_history
from eosctl.observation.gather import observe_upgrade
from eosctl.upgrade.gate import Gate
from eosctl.upgrade.gates import SUMMING_GATES, evaluate_gates

REBALANCE_MS, REBALANCE_DELAY_MS = 60_000, 300_000
"""How long a state may lag behind a rebalance, and Connect's default of scheduled.rebalance.max.delay.ms, for which a
lost worker's work waits for it."""
MOST_RECENT = 100_000
"""A compacted status topic has a record or two of each task; of another one, so many offsets are read."""
_DELAY = "scheduled.rebalance.max.delay.ms"
_PATIENCE_S, _POLL_S, _READ_S = 8.0, 2.0, 15.0
_START_MS = 120_000
"""A start takes no longer: fencing has 90 s."""


class StatusLog(Struct, frozen=True):
    """The status topic's records of each connector and task; `unread` is the reason where they are not known.

    `is_there`: a topic of its name exists, or is not known to be missing.
    """

    history: Mapping[Work, Sequence[WrittenStatus]]
    unread: str = ""
    is_there: bool = True

    def of(self, connector: str, part: str) -> Sequence[WrittenStatus]:
        """Return the records of a part, the newest last."""
        task = CONNECTOR_ITSELF if part == "connector" else int(part.removeprefix("task "))
        return self.history.get((connector, task), ())

    def newest(self, connector: str, part: str) -> WrittenStatus | None:
        """Return the newest record of a part."""
        statuses = self.of(connector, part)
        return statuses[-1] if statuses else None


def read_status_log(app: App) -> StatusLog:
    """Read the last MOST_RECENT offsets at most of the group's status topic, of all partitions together.

    A reason why it can't be read is part of the answer.
    """
    topics = sorted(app.target.status_topics())
    if app.target.client is None or not topics:
        return StatusLog({}, "the group's status topic is not named", is_there=False)
    patient = replace(app, deadline=app.deadline.half(at_most_s=_READ_S))
    records: list[Record] = []
    try:
        with patient.topics() as store:
            for topic in topics:
                bounds = store.bounds(topic)
                most = MOST_RECENT // len(bounds)
                since = {each.partition: max(each.begin, each.end - most) for each in bounds}
                records += store.read(topic, isolation="read_uncommitted", since=since).records
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return StatusLog({}, exc.message, is_there=not isinstance(exc, NotFoundError))
    return StatusLog(status_history(records))


class _Part(Struct, frozen=True):
    """A connector or task whose status is not that of a part running where it is assigned."""

    connector: str
    part: str
    state: str
    worker: str
    holder: str | None

    @property
    def subject(self) -> str:
        """Return what findings call it."""
        return self.connector if self.part == "connector" else f"{self.connector}/{self.part.removeprefix('task ')}"

    @property
    def restarts_there(self) -> bool:
        """Whether it is the worker that holds it, as far as is known, that says RESTARTING."""
        return self.state == RESTARTING and self.holder in (None, self.worker)

    def is_overwritten(self, log: StatusLog) -> bool:
        """Check whether its holder reported RUNNING before another worker wrote the present status."""
        before = log.of(self.connector, self.part)[-2:-1]
        ran_there = [each.worker_id == self.holder and each.state == "RUNNING" for each in before]
        return self.worker != self.holder and any(ran_there)


def status_findings(app: App, observation: Observation, log: StatusLog, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, with the age of parts without a worker, and add assigned parts that report another state for
    long.

    States that a rebalance or a start explains are looked at again, for some seconds.
    """
    now_ms = app.clock.now_ms()
    setting = observation.worker_setting(_DELAY)
    delay_ms = REBALANCE_DELAY_MS if setting is None else java_number(setting)
    aged = [_with_age(each, log, now_ms, delay_ms) if each.code == codes.UNASSIGNED else each for each in findings]
    first = {each for each in _suspects(observation.connectors or ()) if _is_old(each, log, now_ms)}
    lasting = sorted(_lasting(app, first), key=lambda each: each.subject)
    long_ms = REBALANCE_MS + (REBALANCE_DELAY_MS if delay_ms is None else delay_ms)
    stale = _stale(lasting, observation.connectors or (), log, now_ms, long_ms)
    return [*aged, *_restarting(lasting, log, now_ms), *stale]


def _suspects(connectors: Iterable[ObservedConnector]) -> Iterable[_Part]:
    for connector in connectors:
        for name, state in connector.states.items():
            holder = None if connector.holders is None else connector.holders.get(name)
            worker = connector.workers.get(name, "")
            elsewhere = holder is not None and (worker != holder or state == UNASSIGNED)
            if elsewhere or state == RESTARTING:
                yield _Part(connector.name, name, state, worker, holder)


def _age_ms(part: _Part, log: StatusLog, now_ms: int) -> int | None:
    """Return the age of the status that REST shows; None where the status topic does not have it."""
    newest = log.newest(part.connector, part.part)
    if newest is None:
        return None
    return now_ms - newest.at_ms if (newest.state, newest.worker_id) == (part.state, part.worker) else 0


def _is_old(part: _Part, log: StatusLog, now_ms: int) -> bool:
    age_ms = _age_ms(part, log, now_ms)
    return age_ms is None or age_ms > REBALANCE_MS


def _lasting(app: App, suspects: set[_Part]) -> set[_Part]:
    """Return those of the parts that are the same after some seconds, or could not be looked at again."""
    patience = Deadline.after(min(_PATIENCE_S, app.deadline.remaining_s() / 2), app.clock)
    while suspects and patience.remaining_s() > _POLL_S:
        patience.sleep(_POLL_S)
        try:
            suspects = suspects & set(_suspects(_connectors_now(app)))
        except InterruptedByUserError:
            raise
        except EosctlError:
            break
    return suspects


def _connectors_now(app: App) -> Sequence[ObservedConnector]:
    return with_holders(observed_connectors(connector_statuses(app)), _assigned_now(app))


def _assigned_now(app: App) -> Assigned | None:
    if app.target.client is None or app.target.group_id is None:
        return None
    group, _cluster_id = read_group(app, wait=False)
    if group.state != STABLE or any(each.url is None or each.owned is None for each in group.members):
        return None
    assigned: dict[str, list[Work]] = {}
    for each in group.members:
        assigned.setdefault(worker_id_of(each), []).extend(each.owned or ())
    return assigned


def _with_age(finding: Finding, log: StatusLog, now_ms: int, delay_ms: int | None) -> Finding:
    """Return the finding that something has no worker with how long it has been so; an error after a rebalance."""
    connector, _slash, task = finding.subject.rpartition("/")
    newest = log.newest(connector, f"task {task}") if connector and task.isdecimal() else None
    newest = newest or log.newest(finding.subject, "connector")
    if newest is None or newest.state != UNASSIGNED or delay_ms is None:  # only the workers know the delay
        return finding
    age_ms = now_ms - newest.at_ms
    evidence = {**finding.evidence, "unassigned_ms": age_ms}
    by = "" if finding.evidence.get("assigned") is False else " by its status"
    if age_ms < delay_ms + REBALANCE_MS:
        return replace(finding, evidence=evidence)
    return replace(
        finding,
        severity=ERROR,
        message=f"{finding.subject} has had no worker{by} for {age_ms // 60_000:,} m, longer than a rebalance takes",
        fix="`eosctl workers list` shows the members and their lag; see the leader's log for why nobody gets it.",
        evidence=evidence,
    )


def _restarting(parts: Iterable[_Part], log: StatusLog, now_ms: int) -> Iterable[Finding]:
    for each in parts:
        age_ms = _age_ms(each, log, now_ms)
        if not each.restarts_there or age_ms is None:
            continue
        at = f" on {each.worker}" if each.worker else ""
        yield Finding(
            codes.STUCK_RESTARTING, ERROR if age_ms >= _START_MS else WARNING, each.subject,
            f"{each.subject} has been RESTARTING{at} for {age_ms // 1000:,} s and does not run: its start failed "
            "without a word, or hangs",
            f"See the log of {each.worker or 'its worker'}; when its cause is mended, "
            f"`eosctl connectors restart {arguments(each.connector)}`.",
            {"state": each.state, "worker": each.worker, "restarting_ms": age_ms},
        )  # fmt: skip


def _stale(
    parts: Sequence[_Part], connectors: Iterable[ObservedConnector], log: StatusLog, now_ms: int, long_ms: int
) -> Iterable[Finding]:
    """Yield a finding for each worker none of whose parts has a status of its own, else one for each part.

    It is an error where nothing of it has had a worker for longer than a rebalance takes.
    """
    unknown = [each for each in parts if _age_ms(each, log, now_ms) is None]
    stale = [each for each in parts if each not in unknown and not each.restarts_there]
    held = Counter(holder for each in connectors for holder in (each.holders or {}).values())
    wrong = Counter(each.holder or "" for each in stale if not each.is_overwritten(log))
    silent = [worker for worker, count in sorted(wrong.items()) if count == held[worker] > 1]
    for worker in silent:
        its = [each for each in stale if each.holder == worker]
        is_long = all(each.state == UNASSIGNED and (_age_ms(each, log, now_ms) or 0) >= long_ms for each in its)
        yield _not_written(worker, its, ERROR if is_long else WARNING)
    for each in stale:
        if each.holder not in silent:
            yield _stale_finding(each, log, _age_ms(each, log, now_ms) or 0)
    for each in unknown:
        yield _unknown_finding(each, log.unread or "the newest records of the status topic do not have it")


def _not_written(worker: str, parts: Sequence[_Part], severity: str) -> Finding:
    names = [each.subject for each in parts]
    return Finding(
        codes.STATUS_NOT_WRITTEN, severity, worker,
        f"the group has assigned {', '.join(names[:3])}{' and more' if names[3:] else ''} to {worker}, and none of "
        f"their {len(names)} statuses is its own: it does not write its status, or starts nothing",
        f"See the log of {worker}: its clock, and its right to write the status topic.",
        {"worker": worker, "parts": names, "states": {each.subject: each.state for each in parts}},
    )  # fmt: skip


def _stale_finding(part: _Part, log: StatusLog, age_ms: int) -> Finding:
    says = part.state if part.state == UNASSIGNED else f"{part.state} on {part.worker or 'no worker'}"
    means = (
        f"{part.holder} had written that it runs before, so that only the status is stale"
        if part.is_overwritten(log)
        else f"only the status is stale, or {part.holder} can't start it or write its status"
    )
    return Finding(
        codes.STATUS_STALE, WARNING, part.subject,
        f"the group has assigned {part.subject} to {part.holder}, and its status has said {says} for "
        f"{age_ms // 1000:,} s: {means}",
        f"`eosctl connectors restart {arguments(part.connector)}` has its status written anew; if not, see the log of "
        f"{part.holder}: its clock, and its right to write the status topic.",
        {"state": part.state, "worker": part.worker, "assigned_to": part.holder, "status_age_ms": age_ms},
    )  # fmt: skip


def _unknown_finding(part: _Part, why: str) -> Finding:
    holder = f"the group has assigned it to {part.holder}" if part.holder else "who holds it is not known"
    return Finding(
        codes.STATUS_AGE_UNKNOWN, WARNING, part.subject,
        f"the status of {part.subject} is {part.state} on {part.worker or 'no worker'}, {holder}; since when is not "
        f"known: {why}",
        codes.STATUS_AGE_UNKNOWN.next,
        {"state": part.state, "worker": part.worker, "assigned_to": part.holder}, certain=False,
    )  # fmt: skip


_Seen = TypeVar("_Seen")
KAFKA_PATIENCE_S, BROKER_PATIENCE_S = 15.0, 5.0
"""How long any broker may take to answer at all, and then each of the listed ones."""
SILENT_BUDGET_S, LEAST_SHARE_S = 16.0, 2.0
"""For all checks together, and for each of them, where some brokers do not answer."""


class Visit:
    """One look at the group and its workers; an error of the first look is raised at each later one.

    `reads_plugins`: the jars in the workers' plugin.path are read, which takes seconds. `others` are the groups of
    profiles that may run the same connectors.
    """

    def __init__(
        self,
        app: App,
        *,
        validate: bool = True,
        expected: Mode | None = None,
        reads_plugins: bool = False,
        others: Mapping[str, App] | None = None,
    ) -> None:
        self.app, self._whole, self.validates, self.expected = app, app, validate, expected
        self.reads_plugins, self.others = reads_plugins, others or {}
        self._budget: Deadline | None = None
        self._group: GroupObservation | EosctlError | None = None
        self._observation: Observation | EosctlError | None = None
        self._statuses: StatusLog | None = None

    def silent_brokers(self) -> Mapping[int, EosctlError]:
        """Return the listed brokers that do not answer; raises where none answers at all.

        Later looks have a short time each, as many of them wait for just those brokers.
        """
        if self.app.target.client is None:
            return {}  # which those checks say that need one
        first = replace(self.app, deadline=self.app.deadline.half(at_most_s=KAFKA_PATIENCE_S))
        with first.transactions() as admin:
            silent = admin.silent_brokers(patience_s=BROKER_PATIENCE_S)
            admin.cluster_id()
        if silent:
            self._budget = self._whole.deadline.half(at_most_s=SILENT_BUDGET_S)
        return silent

    def give_up(self, reason: EosctlError) -> None:
        """Look at nothing any more: raise `reason` in place of each later look."""
        self._group = self._observation = reason

    def next_check(self) -> None:
        """Give the next check its share of the time, where brokers are silent: half of what is left.

        A worker that is known not to answer, or to be outside of its group, is not asked again.
        """
        app = self._whole
        if self._budget is not None:
            share_s = max(self._budget.remaining_s() / 2, LEAST_SHARE_S)
            app = replace(app, deadline=app.deadline.half(at_most_s=share_s))
        answering = self._answering()
        self.app = replace(app, target=replace(app.target, connect_urls=answering)) if answering else app

    def _answering(self) -> tuple[str, ...]:
        """Return the answering members' URLs, as they were given; empty where all answer, or none is known."""
        if not isinstance(self._group, GroupObservation):
            return ()
        given = {parse_worker_url(url).text: url for url in self._whole.target.connect_urls}
        every = (*self._group.members, *self._group.proxies)
        answer = [each for each in every if each.failure is None and not each.outside]
        urls = [url for each in answer if each.has_rest and (url := each.url) is not None]
        return tuple(given.get(url, url) for url in urls) if len(answer) < len(every) else ()

    def group(self) -> GroupObservation:
        """Return the observed workers; raises the error that kept them from being seen."""
        if self._group is None:
            self._group = _or_error(lambda: observe_workers(self.app, gone_ok=True))
        return _or_raise(self._group)

    def require_group(self) -> None:
        """Raise NotFoundError for a group that was never there, unless a worker's file names it.

        Its workers may have died at their first start, and the cause is to be found then; a config topic on which no
        worker starts is a sign of that, too.
        """
        try:
            state = self.group().state
        except NotFoundError:
            raise
        except EosctlError:
            return
        named = {worker.group_id for worker in self.app.target.worker_configs}
        if state == DEAD and self.app.target.group_id not in named and not self._has_useless_config_topic():
            require_ever_there(self.app)

    def _has_useless_config_topic(self) -> bool:
        """Check whether the target's config topic exists with other than the one partition that workers accept."""
        topic = self.app.target.config_topic
        try:
            with self.app.topics() as store:
                found = store.describe([topic]).get(topic)
        except InterruptedByUserError:
            raise
        except EosctlError:
            return False
        return found is not None and found.partitions != 1

    def observation(self) -> Observation:
        """Return the group as the gates see it; raises the error that kept it from being seen."""
        if self._observation is None:
            self._observation = _or_error(
                lambda: observe_upgrade(self.app, self.group(), Mode.ENABLED, validate=self.validates)
            )
        return _or_raise(self._observation)

    def seen(self) -> Observation | None:
        """Return the observation; None where it can't be made, which other checks say."""
        try:
            return self.observation()
        except EosctlError:
            return None

    def statuses(self) -> StatusLog:
        """Read the group's status topic, once."""
        if self._statuses is None:
            self._statuses = read_status_log(self.app)
        return self._statuses

    def silent(self) -> list[tuple[WorkerObservation, EosctlError]]:
        """Return the workers that report nothing of themselves, each with the reason."""
        unasked = UnsupportedError(NO_REST)
        reasons = [(worker, worker.failure if worker.has_rest else unasked) for worker in self.group().members]
        return [(worker, reason) for worker, reason in reasons if reason is not None]

    def gates(self) -> tuple[list[Gate], list[Gate]]:
        """Return gates that do not pass and repeat no other check: on their own account, and for silent workers."""
        seen = self.observation()
        names = {worker.name for worker, _reason in self.silent()}
        names |= {worker.name for worker in self.group().members if worker.outside}
        answering = tuple(worker for worker in seen.workers if worker.name not in names)
        unpassed = _unpassed_gates(seen)
        if answering:
            ids = {gate.id for gate in unpassed}  # a worker that is left out may be the leader, and is a member
            without = {g.id: g for g in _unpassed_gates(replace(seen, workers=answering)) if g.id in ids}
            return list(without.values()), [gate for gate in unpassed if gate.id not in without]
        following = [
            gate for gate in unpassed if any(text in gate.evidence for text in (*names, "no worker ", NO_REST))
        ]
        return [gate for gate in unpassed if gate not in following], following


def _unpassed_gates(observation: Observation) -> list[Gate]:
    return [gate for gate in evaluate_gates(observation) if gate.status != "pass" and gate.id not in SUMMING_GATES]


def _or_error(look: Callable[[], _Seen]) -> _Seen | EosctlError:
    try:
        return look()
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return exc


def _or_raise(seen: _Seen | EosctlError) -> _Seen:
    if isinstance(seen, EosctlError):
        raise seen
    return seen
