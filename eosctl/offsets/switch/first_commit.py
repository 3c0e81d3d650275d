"""Checks whether a connector's tasks have committed since their start: REST's RUNNING does not prove that they read.

A task that waits for its source (a replication slot that another client holds) is RUNNING, and commits nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from eosctl.app import App
from eosctl.core.ids import TransactionalId, task_transactional_ids
from eosctl.core.offsets.views import fold_store
from eosctl.core.transactions import TransactionDescription, TransactionState
from eosctl.core.wording import counted
from eosctl.deadline import Deadline

_PATIENCE_S, _POLL_S = 3.0, 0.5
_COMMITTED = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)

Places = Mapping[bytes, tuple[int, int]]
"""Raw key -> partition and offset of its newest record."""


class CommitWatch(Struct, frozen=True):
    """The newest records before the tasks were started; `topic` is where they commit their offsets to."""

    connector: str
    topic: str
    before: Places

    def wait(self, app: App, tasks: int) -> tuple[str, bool]:
        """Wait for `tasks` running tasks to commit; return the outcome in words, and whether any has committed.

        An idle source commits nothing. A new producer's transactional id has no transaction behind it: a committed one
        is the task's own.
        """
        patience = Deadline.after(min(_PATIENCE_S, app.deadline.remaining_s() / 2), app.clock)
        began_s = app.clock.monotonic_s()
        for _ in patience.rounds(_POLL_S):
            states = _states(app, task_transactional_ids(app.target.require_group_id(), self.connector, tasks))
            committed = sum(state in _COMMITTED for state in states)
            moved = not states and _places(app, self.connector, self.topic) != self.before
            if moved or (states and committed == tasks):
                return "offsets are committed", True
        waited = f"({app.clock.monotonic_s() - began_s:.0f} s)"
        if committed:
            return f"{committed} of {counted(tasks, 'task')} committed offsets so far {waited}", True
        return f"nothing committed yet {waited}", False


def before_the_start(app: App, connector: str, topic: str) -> CommitWatch:
    """Read the committed offsets before tasks are started, or as soon after as possible."""
    return CommitWatch(connector, topic, _places(app, connector, topic))


def _states(app: App, ids: Sequence[TransactionalId]) -> list[TransactionState]:
    """Return the states of the ids; none if tasks have no ids, or these may not be described."""
    with app.transactions() as admin:
        described = admin.describe_transactions(ids)
    return [description.state for description in described.values() if isinstance(description, TransactionDescription)]


def _places(app: App, connector: str, topic: str) -> Places:
    with app.topics() as topics:
        if topic not in topics.describe([topic]):
            return {}
        store = fold_store(topics.read(topic, newest_per_key=True))
    keys = [key.raw for key in store.connectors.get(connector, ())]
    return {raw: (store.records[raw].partition, store.records[raw].offset) for raw in keys}
