"""State shared by doctor's checks in a run: the group, and the gates' observation, each read once. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks.statuses import StatusLog, read_status_log
from eosctl.core.workers.modes import Mode
from eosctl.core.workers.url import parse_worker_url
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, InterruptedByUserError, NotFoundError, UnsupportedError
from eosctl.group.absent import require_ever_there
from eosctl.group.gather import NO_REST, observe_workers
from eosctl.group.members import DEAD
from eosctl.group.observation.rules import Observation
from eosctl.group.observed import GroupObservation, WorkerObservation
from eosctl.observation.gather import observe_upgrade
from eosctl.upgrade.gate import Gate
from eosctl.upgrade.gates import SUMMING_GATES, evaluate_gates

_Seen = TypeVar("_Seen")
KAFKA_PATIENCE_S, BROKER_PATIENCE_S = 15.0, 5.0
"""How long any broker may take to answer at all, and then each of the listed ones."""
SILENT_BUDGET_S, LEAST_SHARE_S = 16.0, 2.0
"""For all checks together, and for each of them, where some brokers do not answer."""


class Visit:
    """One look at the group and its workers; an error of the first look is raised at each later one."""

    def __init__(self, app: App, *, validate: bool = True, expected: Mode | None = None) -> None:
        self.app, self._whole, self._validate, self.expected = app, app, validate, expected
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
            admin.cluster_id()
            silent = admin.silent_brokers(patience_s=BROKER_PATIENCE_S)
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
                lambda: observe_upgrade(self.app, self.group(), Mode.ENABLED, validate=self._validate)
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
