"""What a work on a connector's offsets does with the connector itself, step by step: `offsets switch`, `connectors`.

Whether a connector's tasks have committed since their start is checked: REST's RUNNING does not prove that they read. A
task that waits for its source (a replication slot that another client holds) is RUNNING, and commits nothing. And a
connector is not resumed unless Connect itself finds its offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import TransactionalId, task_transactional_ids
from eosctl.core.java.json import encode_key
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.core.offsets.views import fold_store, live
from eosctl.core.transactions import KafkaFault, TransactionDescription, TransactionState
from eosctl.core.wording import counted
from eosctl.deadline import Deadline, Event
from eosctl.foreign import shell_word
from eosctl.offsets import codes
from eosctl.report import Problem, Report
from eosctl.state.journal import Note, Progress, Step

_PATIENCE_S, _POLL_S = 3.0, 0.5
_COMMITTED = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)

Outcome = Literal["planned", "done", "done_before", "failed", "not_reached"]
"""The outcome of a step."""
Places = Mapping[bytes, tuple[int, int]]
"""Raw key -> partition and offset of its newest record, which is no deletion."""


class StepDone(Struct, frozen=True):
    """The result of a step; `merged` are the reports of the writes of offsets, in their order."""

    detail: str
    merged: Sequence[Report] = ()
    problems: tuple[Problem, ...] = ()


def pinned_step(app: App, name: str, url: str, run: Callable[[App], StepDone]) -> Step[StepDone]:
    """Return a step that runs with the whole timeout, on one worker for all steps: others may lag behind it."""

    def act() -> StepDone:
        target = replace(app.target, connect_urls=(url,))
        done = run(replace(app, target=target).with_whole_timeout())
        app.on_event(Event(f"{name}: {done.detail}"))
        return done

    return Step(
        name,
        act,
        before=lambda: Note("start", {"step": name}),
        after=lambda done: Note("done", {"step": name, "detail": done.detail}),
    )


def step_outcomes(
    steps: Iterable[str], progress: Progress[StepDone], *, before: Collection[str] = ()
) -> list[tuple[str, Outcome, str | None]]:
    """Return each step with its outcome, and the result or the failure; an earlier run did those in `before`."""
    return [(step, *_outcome(step, progress, before)) for step in steps]


def _outcome(step: str, progress: Progress[StepDone], before: Collection[str]) -> tuple[Outcome, str | None]:
    if step in before:
        return "done_before", None
    if step in progress.done:
        return "done", progress.done[step].detail
    if progress.error is not None and progress.failed == step:
        return "failed", progress.error.message
    return "not_reached", None


class CommitWatch(Struct, frozen=True):
    """The newest records before the tasks were started; `topic` is where they commit their offsets to.

    `producer` is the producer of task 0's transactional id then: producer id and epoch; None if it had none. Without
    `saw_ids`, as these may not be described, only newer records show a commit.
    """

    connector: str
    topic: str
    before: Places
    producer: tuple[int, int] | None = None
    saw_ids: bool = True

    def wait(self, app: App, tasks: int) -> tuple[str, bool]:
        """Wait for `tasks` running tasks to commit; return the outcome in words, and whether any has committed.

        An idle source commits nothing. A new producer's transactional id has no transaction behind it: a committed one
        is the task's own.
        """
        patience = Deadline.after(min(_PATIENCE_S, app.deadline.remaining_s() / 2), app.clock)
        began_s = app.clock.monotonic_s()
        for _ in patience.rounds(_POLL_S):
            states = self._states(app, tasks)
            committed = sum(state in _COMMITTED for state in states)
            moved = not states and self._newest(app) != self.before
            if moved or (states and committed == tasks):
                return "offsets are committed", True
        waited = f"({app.clock.monotonic_s() - began_s:.0f} s)"
        if committed:
            return f"{committed} of {counted(tasks, 'task')} committed offsets so far {waited}", True
        return f"nothing committed yet {waited}", False

    def _states(self, app: App, tasks: int) -> list[TransactionState]:
        """Return the states of the tasks' ids; none if the tasks have no ids, or these may not be described.

        A task that has an id takes a new epoch when it starts: an unchanged one belongs to a former task.
        """
        if not self.saw_ids:
            return []
        found, _is_all = _described(app, task_transactional_ids(app.target.require_group_id(), self.connector, tasks))
        is_former = self.producer is not None and bool(found) and _producer(found[0]) == self.producer
        return [] if is_former else [each.state for each in found]

    def since(self, app: App) -> tuple[list[OffsetKey], list[OffsetKey]]:
        """Return the keys that had no offset before and have one now, and those whose offset is newer than before."""
        moved = [raw for raw, place in self._newest(app).items() if self.before.get(raw) != place]
        keys = [key for key in map(decode_key, moved) if isinstance(key, OffsetKey)]
        return [key for key in keys if key.raw not in self.before], [key for key in keys if key.raw in self.before]

    def _newest(self, app: App) -> Places:
        return _places(app, self.connector, self.topic)

    def watch(self, app: App, tasks: int, outcome: str) -> StepDone:
        """Add to `outcome` whether tasks have committed: a task that can't reach its source is RUNNING as well."""
        more, any_has = self.wait(app, tasks)
        if any_has:
            return StepDone(f"{outcome}; {more}")
        problem = Problem(
            codes.NOTHING_COMMITTED_YET,
            f"{self.connector} is RUNNING, which does not prove that it reads its source: {more}",
            hint="An idle source commits nothing. If this one is not idle, see the worker's log; `eosctl offsets list "
            f"--connector {shell_word(self.connector)}` shows how old its offsets are.",
        )
        return StepDone(f"{outcome}; {more}", problems=(problem,))


def before_the_start(app: App, connector: str, topic: str) -> CommitWatch:
    """Read the committed offsets before tasks are started, or as soon after as possible."""
    found, is_all = _described(app, task_transactional_ids(app.target.require_group_id(), connector, 1))
    producer = _producer(found[0]) if found else None
    return CommitWatch(connector, topic, _places(app, connector, topic), producer, is_all)


def _described(app: App, ids: Sequence[TransactionalId]) -> tuple[list[TransactionDescription], bool]:
    """Return the descriptions of the ids that coordinators know, in their order, and whether these are all of them."""
    with app.transactions() as admin:
        described = admin.describe_transactions(ids)
    found = [each for each in map(described.get, ids) if isinstance(each, TransactionDescription)]
    faults = [each for each in described.values() if isinstance(each, KafkaFault)]
    return found, all(fault.is_unknown_id for fault in faults)


def _producer(description: TransactionDescription) -> tuple[int, int]:
    return int(description.producer_id), description.producer_epoch


def _places(app: App, connector: str, topic: str) -> Places:
    with app.topics() as topics:
        if topic not in topics.describe([topic]):
            return {}
        store = fold_store(topics.read(topic, newest_per_key=True))
    keys = [key.raw for key in store.connectors.get(connector, ()) if live(store.records[key.raw]) is not None]
    return {raw: (store.records[raw].partition, store.records[raw].offset) for raw in keys}


def lost_partitions(
    connector: str, shown: Sequence[Mapping[str, object]], live: Collection[OffsetKey]
) -> tuple[list[Mapping[str, object]], int]:
    """Return the entries without an offset in a worker's answer, and how many others only have odd keys.

    `live` are the keys with an offset in the topic that the tasks read from. Connect's REST interface looks a source
    partition up by its own spelling of the key; a task looks it up by the connector's. So null is no loss where the
    topic has an offset under another spelling, and none under REST's: that one REST would have found.
    """
    nulls = [entry for entry in shown if entry.get("offset") is None]
    spellings = {key.identity for key in live} if nulls else set()
    raws = {key.raw for key in live}
    lost = [entry for entry in nulls if not _is_spelled_otherwise(connector, entry.get("partition"), spellings, raws)]
    return lost, len(nulls) - len(lost)


def _is_spelled_otherwise(
    connector: str, partition: object, spellings: Collection[str], raws: Collection[bytes]
) -> bool:
    if not isinstance(partition, dict):
        return False
    asked = encode_key(connector, partition)
    key = decode_key(asked)
    return isinstance(key, OffsetKey) and key.identity in spellings and asked not in raws


def other_keys_problem(count: int) -> Problem:
    """Report source partitions whose keys Connect's REST interface does not find, as `lost_partitions` counts them."""
    keys = counted(count, "source partition has a key", "source partitions have keys")
    message = f"{keys} in an order that Connect's REST interface can't find; the tasks do"
    return Problem(codes.REST_FINDS_OTHER_KEYS, message)
