"""The states that REST reports, joined with what it does not: the holder of a part, and the time of its state.

A worker writes its own states into the status topic, from which every worker answers: one that can't write, or is late,
leaves an outdated state. The group's assignment is the coordinator's. Reads only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors import codes
from eosctl.connectors.failures import RESTARTING, UNASSIGNED
from eosctl.connectors.statuses import connector_statuses
from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.java.numbers import java_number
from eosctl.core.records import Record
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, InterruptedByUserError, NotFoundError
from eosctl.foreign import arguments
from eosctl.group.gather import read_group, worker_id_of
from eosctl.group.members import STABLE
from eosctl.group.observation.holders import Assigned, with_holders
from eosctl.group.observation.rules import Observation, ObservedConnector, observed_connectors
from eosctl.group.protocol import CONNECTOR_ITSELF, Work
from eosctl.group.topics.statuses import WrittenStatus, status_history

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
