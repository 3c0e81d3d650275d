"""Reads the journal of `connectors move`, above all what the clusters forget.

That is: where the connector went, the state that it had, whether it was started there, and where its partitions ended
at the handover. No value that may be a secret is in it, and no config.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum, unique

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.records import Place
from eosctl.state.journal import EndEntry, Journal, journal_of

COMMAND = "connectors-move"


@unique
class Direction(StrEnum):
    """The purpose of a run: to move a connector there, to take it back, or to delete what is left here."""

    THERE = "there"
    BACK = "back"
    DELETE = "delete"

    @property
    def words(self) -> str:
        """The run, as a subject of a sentence."""
        return {"there": "a move", "back": "a move back", "delete": "a deletion after a move"}[self]


@unique
class MoveStep(StrEnum):
    """The steps, of which each direction has some, in its own order."""

    STOP = "stop"
    SETTLE = "settle"
    CREATE = "create"
    OFFSETS = "offsets"
    CHECK = "check"
    RESUME = "resume"
    WATCH = "watch"
    REMOVE = "remove"
    AUDIT = "audit"


Ends = Mapping[str, Sequence[int]]
"""Topic -> the end of each of its partitions."""


def places_of(ends: Ends) -> dict[Place, int]:
    """Return the ends by partition."""
    return {(topic, partition): end for topic, of in ends.items() for partition, end in enumerate(of)}


class BegunMove(Struct, frozen=True):
    """A move as the journal has it: `to` is the other group's profile, `name` the connector's name there.

    `state` and `tasks` are those that it had where it left. `settings` are the changes of its config, `***` for values
    that may be secrets. `started` and `done` are the steps of all runs so far. `left` are the ends of its partitions
    when it had been stopped, at `left_ms` at the latest; `arrived` those on the other side before it was started
    there, at `arrived_ms`.
    """

    direction: Direction
    to: str
    name: str
    cluster_id: str
    group_id: str
    state: str
    tasks: int
    began_ms: int
    settings: Mapping[str, str] = {}
    started: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    left: Ends | None = None
    left_ms: int = 0
    arrived: Ends | None = None
    arrived_ms: int = 0
    ended: bool = False

    @property
    def may_have_run(self) -> bool:
        """Whether the connector may have run on the side that it moves to: its start was begun."""
        return MoveStep.RESUME in self.started

    @property
    def is_handed_over(self) -> bool:
        """Whether the side that it moves to has it: it may have run there, or all steps were done."""
        return self.may_have_run or self.ended

    def leads_to(self, other: BegunMove) -> bool:
        """Return whether both are about the same connector of the same group."""
        return self.name == other.name and self.is_in(other.cluster_id, other.group_id)

    def is_in(self, cluster_id: str, group_id: str) -> bool:
        """Return whether it moves to that group."""
        return (self.cluster_id, self.group_id) == (cluster_id, group_id)


class Moves(Struct, frozen=True):
    """The newest move there, unless it was taken back; and what was begun after it: the way back, or a deletion.

    `returned` is the newest way back that has ended, if nothing was begun since.
    """

    there: BegunMove | None = None
    after: BegunMove | None = None
    returned: BegunMove | None = None

    @property
    def unfinished(self) -> BegunMove | None:
        """The run that was begun and has not ended."""
        return next((each for each in (self.after, self.there) if each is not None and not each.ended), None)


class _Begin(Struct, frozen=True):
    direction: Direction
    to: str
    name: str
    cluster_id: str
    group_id: str
    state: str
    tasks: int
    time_ms: int
    settings: Mapping[str, str] = {}

    def move(self) -> BegunMove:
        facts = (self.direction, self.to, self.name, self.cluster_id, self.group_id, self.state, self.tasks)
        return BegunMove(*facts, self.time_ms, self.settings)


class _Start(Struct, frozen=True):
    step: str
    time_ms: int
    arrived: Ends | None = None


class _Done(Struct, frozen=True):
    step: str
    time_ms: int
    left: Ends | None = None
    left_ms: int | None = None


_ENTRIES: Mapping[str, type[_Begin | _Start | _Done | EndEntry]] = {
    "begin": _Begin,
    "start": _Start,
    "done": _Done,
    "end": EndEntry,
}


def journal_of_moves(app: App, connector: str, *, cluster_id: str) -> Journal:
    """Return the journal of moves of a connector from the group."""
    return journal_of(app, COMMAND, connector, cluster_id=cluster_id)


def arriving_moves(app: App, cluster_id: str, group_id: str) -> dict[str, tuple[Moves, Journal]]:
    """Return the moves to a group, begun on this machine and not over, by the connector's name there.

    Raises EosctlError where a journal can't be read.
    """
    found = {}
    for path in sorted((app.state_dir / "journals").glob(f"{COMMAND}-*.ndjson")):
        journal = Journal(path, app.clock)
        moves = read_moves(journal)
        if moves.there is not None and moves.unfinished is not None and moves.there.is_in(cluster_id, group_id):
            found[moves.there.name] = (moves, journal)
    return found


def read_moves(journal: Journal) -> Moves:
    """Return the moves of a connector, as far as the file shows; raise EosctlError."""
    moves = Moves()
    for entry in journal.read(_ENTRIES):
        if isinstance(entry, _Begin):
            begun = entry.move()
            if begun.direction is Direction.THERE:
                moves = Moves(_continued(moves.there, begun), returned=moves.returned)
            else:
                moves = replace(moves, after=_continued(moves.after, begun))
        elif isinstance(entry, EndEntry):
            moves = _ended(moves)
        elif moves.after is not None:
            moves = replace(moves, after=_noted(moves.after, entry))
        elif moves.there is not None:
            moves = replace(moves, there=_noted(moves.there, entry))
    return moves


def _ended(moves: Moves) -> Moves:
    """Return the moves after the end of a run; one that is back, or gone here, has none to go back from."""
    if moves.after is not None:
        return Moves(returned=moves.after if moves.after.direction is Direction.BACK else None)
    return moves if moves.there is None else Moves(replace(moves.there, ended=True), returned=moves.returned)


def _continued(former: BegunMove | None, begun: BegunMove) -> BegunMove:
    """Return the move that began, with what former runs of it have done."""
    if former is None or former.direction is not begun.direction or not former.leads_to(begun):
        return begun
    facts = ("started", "done", "left", "left_ms", "arrived", "arrived_ms")
    return replace(begun, **{name: getattr(former, name) for name in facts})


def _noted(move: BegunMove, entry: _Start | _Done) -> BegunMove:
    if isinstance(entry, _Start):
        arrived_ms = move.arrived_ms if entry.arrived is None else entry.time_ms
        return replace(
            move, started=(*move.started, entry.step), arrived=entry.arrived or move.arrived, arrived_ms=arrived_ms
        )
    left_ms = move.left_ms if entry.left is None else entry.left_ms or entry.time_ms
    return replace(move, done=(*move.done, entry.step), left=entry.left or move.left, left_ms=left_ms)
