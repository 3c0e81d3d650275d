"""What several of doctor's checks look at, looked at once in a run: the group, and what its gates judge. Reads only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from eosctl.core.connect_group import DEAD
from eosctl.core.gate import Gate
from eosctl.core.upgrade import Mode
from eosctl.core.upgrade_gates import SUMMING_GATES, evaluate_gates
from eosctl.core.upgrade_observation import Observation
from eosctl.errors import EosctlError, InterruptedByUserError, NotFoundError, UnsupportedError
from eosctl.ops.absent_group import require_ever_there
from eosctl.ops.app import App
from eosctl.ops.upgrade_observe import observe_upgrade
from eosctl.ops.workers import NO_REST, GroupObservation, WorkerObservation, observe_workers

_Seen = TypeVar("_Seen")


class Visit:
    """One look at the group and its workers; the error of the first look is the answer to all who ask."""

    def __init__(self, app: App, *, validate: bool = True, expected: Mode | None = None) -> None:
        self.app, self._validate, self.expected = app, validate, expected
        self._group: GroupObservation | EosctlError | None = None
        self._observation: Observation | EosctlError | None = None

    def group(self) -> GroupObservation:
        """The workers; raises what kept them from being seen."""
        if self._group is None:
            self._group = _or_error(lambda: observe_workers(self.app, gone_ok=True))
        return _or_raise(self._group)

    def require_group(self) -> None:
        """Raises NotFoundError for a group that was never there, unless a worker's file says that it is meant.

        Its workers may have died at their first start, and what they died of is to be found.
        """
        try:
            state = self.group().state
        except NotFoundError:
            raise
        except EosctlError:
            return
        named = {worker.group_id for worker in self.app.target.worker_configs}
        if state == DEAD and self.app.target.group_id not in named:
            require_ever_there(self.app)

    def observation(self) -> Observation:
        """The group as the gates see it; raises what kept it from being seen."""
        if self._observation is None:
            self._observation = _or_error(
                lambda: observe_upgrade(self.app, self.group(), Mode.ENABLED, validate=self._validate)
            )
        return _or_raise(self._observation)

    def silent(self) -> list[tuple[WorkerObservation, EosctlError]]:
        """The workers that say nothing of themselves, each with the reason."""
        unasked = UnsupportedError(NO_REST)
        reasons = [(worker, worker.failure if worker.has_rest else unasked) for worker in self.group().members]
        return [(worker, reason) for worker, reason in reasons if reason is not None]

    def gates(self) -> tuple[list[Gate], list[Gate]]:
        """Gates that do not pass and say what no other check does: on their own account, and for silent workers."""
        seen = self.observation()
        names = {worker.url or str(worker.member_id) for worker, _reason in self.silent()}
        answering = tuple(worker for worker in seen.workers if worker.name not in names)
        amiss = _amiss(seen)
        if answering:
            without = {gate.id: gate for gate in _amiss(replace(seen, workers=answering))}
            return list(without.values()), [gate for gate in amiss if gate.id not in without]
        following = [gate for gate in amiss if any(text in gate.evidence for text in (*names, "no worker ", NO_REST))]
        return [gate for gate in amiss if gate not in following], following


def _amiss(observation: Observation) -> list[Gate]:
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
