"""The state of a Connect group in a sentence: enabled workers, and source tasks that are not exactly-once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from eosctl.checks import codes
from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.wording import counted
from eosctl.core.workers.modes import POSSIBLE, Mode
from eosctl.foreign import shell_word
from eosctl.group.observation.rules import Observation
from eosctl.observation.connectors.exactly_once import task_verdicts

_MOST_NAMED = 3


class GroupState(Struct, frozen=True):
    """`modes` has the number of workers in each mode; counts of tasks are None where they are not known.

    Which tasks are not exactly-once is what `task_verdict` says.
    """

    workers: int
    modes: Mapping[Mode, int] = {}
    source_tasks: int | None = None
    not_exactly_once: int | None = None

    def sentence(self) -> str:
        """Describe it: `2 of 3 workers enabled (1 disabled); 12 source tasks, 4 of them not exactly-once`."""
        others = ", ".join(f"{count} {mode.value}" for mode, count in self.modes.items() if mode is not Mode.ENABLED)
        workers = f"{self.modes.get(Mode.ENABLED, 0)} of {counted(self.workers, 'worker')} enabled"
        workers += f" ({others})" if others else ""
        if self.source_tasks is None:
            return f"{workers}; source tasks are not known"
        tasks = counted(self.source_tasks, "source task")
        if not self.source_tasks:
            return f"{workers}; no source tasks"
        if self.not_exactly_once is None:
            return f"{workers}; {tasks}, and whether they are exactly-once is not known"
        if not self.not_exactly_once:
            return f"{workers}; {tasks}, exactly-once"
        return f"{workers}; {tasks}, {self.not_exactly_once} of them not exactly-once"


def group_state(observation: Observation) -> GroupState:
    """Count workers by mode, and tasks by verdict; workers that only files name are no members of the group."""
    members = [worker for worker in observation.workers if worker.mode is not Mode.ABSENT]
    modes = Counter(worker.mode for worker in members)
    state = GroupState(len(members), {mode: modes[mode] for mode in Mode if modes[mode]})
    if observation.connectors is None:
        return state
    tasks = sum(len(each.tasks()) for each in observation.sources())
    verdicts = [
        verdict.exactly_once for each in observation.sources() for verdict in task_verdicts(each, observation).values()
    ]
    unknown = None in verdicts
    return GroupState(state.workers, state.modes, tasks, None if unknown else verdicts.count(False))


def expectation_findings(observation: Observation, expected: Mode | None) -> Iterable[Finding]:
    """Yield errors where the group is not in the mode `expected`, else where its records show that it was enabled."""
    group = observation.group_id or "group"
    if expected is None:
        yield from _was_enabled(observation, group)
        return
    members = [worker for worker in observation.workers if worker.mode is not Mode.ABSENT]
    fix = f"`eosctl upgrade plan --to {shell_word(expected)}` has the way there."
    for worker in members:
        if expected not in POSSIBLE[worker.mode]:
            yield Finding(
                codes.MODE_NOT_EXPECTED, ERROR, worker.name,
                f"{worker.name} is {worker.mode}, and {expected} is expected",
                fix, {"mode": worker.mode.value, "expected": expected.value},
            )  # fmt: skip
        elif POSSIBLE[worker.mode] != {expected}:
            yield Finding(
                codes.MODE_NOT_PROVEN, WARNING, worker.name,
                f"{worker.name} is {worker.mode}, and whether that is {expected}, as expected, is not known",
                "Give the worker's file (-w), which has it.", {"mode": worker.mode.value, "expected": expected.value},
                certain=False,
            )  # fmt: skip


def _was_enabled(observation: Observation, group: str) -> Iterable[Finding]:
    """Yield an error if no worker is enabled, and task-count records (KIP-618) show that the leader was."""
    state = observation.config_state
    possible = [POSSIBLE[worker.mode] for worker in observation.workers if worker.mode is not Mode.ABSENT]
    if state is None or not possible or any(Mode.ENABLED in each for each in possible):
        return
    sources = {each.name for each in observation.sources()}
    names = sorted(
        name for name in sources & state.connectors.keys() if state.connectors[name].task_count_record is not None
    )
    if names:
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        yield Finding(
            codes.ENABLED_BEFORE, ERROR, group,
            f"no worker is enabled, and task-count records of {', '.join(names[:_MOST_NAMED])}{more} say that some "
            "were: tasks write without transactions now",
            "`eosctl upgrade plan --to enabled` has the way back there. Where it is meant to be so, say so: `--expect "
            "disabled` or `--expect preparing`, or expect.mode of the profile.", {"connectors": names},
        )  # fmt: skip
