"""Plans `connectors move` for one connector: the present state of both sides, the steps, and the reasons to refuse.

The plan follows from what both clusters show now, and from the journal of former runs. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.definition import ConnectorDefinition
from eosctl.connectors.look import PAUSED, RUNNING, STATE_AFTER, STOPPED, switch_command
from eosctl.connectors.validity import require_valid_config
from eosctl.core.clients.logins import HIDDEN
from eosctl.create.journal import journal_of_create, unfinished_create
from eosctl.create.place import ConnectorPlacement
from eosctl.errors import NotFoundError, RefusedError, UsageError
from eosctl.foreign import Lines, arguments
from eosctl.move.facts import MoveFacts, gather_facts, problems_there
from eosctl.move.journal import BegunMove, Direction, Moves, MoveStep, read_moves
from eosctl.move.offsets import Arrival, offsets_topic, plan_arrival, refuse_left_behind
from eosctl.move.rules import config_there, shown_settings, steps_there
from eosctl.move.sides import (
    SeenGroup,
    Side,
    look_at_side,
    move_command,
    refuse_same_side,
    require_consistent,
    require_creatable,
    require_source,
    require_stoppable,
)
from eosctl.offsets.switch.journal import unfinished_switch
from eosctl.report import Problem
from eosctl.state.journal import Journal

_VALID_THERE = (
    "It is the config that it has here, with --rename and --set. Config providers, plugins and the connector's own "
    "checks, which ask its source, must work on the workers there."
)


class MoveRequest(Struct, frozen=True):
    """A request: `to` is the profile of the other group, None that of the journal; `rename` likewise.

    `settings` change its config there; None means those of the journal. `resume`: go on with what was begun.
    """

    direction: Direction = Direction.THERE
    to: str | None = None
    rename: str | None = None
    settings: Mapping[str, str] | None = None
    resume: bool = False
    overwrite_offsets: bool = False
    read_again: bool = False


class MovePlan(Struct, frozen=True):
    """A move of one connector: `steps` are to be done, `done` were done by former runs, of which `begun` has the facts.

    `config` is the connector's on the other side, `state` what it is to be in the end, `tasks` how many it had. The
    `arrival` is that of its offsets, None where they stay as they are. `moved` is the move there that is known, and
    `former` the run that brought it to the side that it leaves.
    """

    request: MoveRequest
    direction: Direction
    here: Side
    there: Side
    config: Mapping[str, str]
    settings: Mapping[str, str]
    state: str
    tasks: int
    steps: tuple[MoveStep, ...]
    done: tuple[MoveStep, ...]
    begun: BegunMove | None
    moved: BegunMove | None
    former: BegunMove | None
    journal: Journal
    arrival: Arrival | None = None
    facts: MoveFacts = field(default_factory=MoveFacts)
    problems: tuple[Problem, ...] = ()
    __repr__ = object.__repr__  # the config may hold secrets

    @property
    def connector(self) -> str:
        """The connector's name here."""
        return self.here.connector

    @property
    def origin(self) -> Side:
        """The side that it leaves."""
        return self.there if self.direction is Direction.BACK else self.here

    @property
    def target(self) -> Side:
        """The side that it moves to."""
        return self.here if self.direction is Direction.BACK else self.there

    @property
    def is_open(self) -> bool:
        """Whether anything is left to do, if only to end the journal: a deletion does, whoever has deleted it here."""
        is_unfinished = self.begun is not None and not self.begun.ended
        return bool(self.steps) or is_unfinished or self.direction is Direction.DELETE

    @property
    def to(self) -> str:
        """The profile of the other group."""
        return str(self.there.profile)

    def command(self, *flags: str) -> str:
        """Return the command line about this connector, to be pasted."""
        return move_command(self.connector, *flags)


def plan_move(
    app: App, connector: str, request: MoveRequest, *, seen: dict[str | None, SeenGroup] | None = None
) -> MovePlan:
    """Look at both sides and plan the steps; `seen` are the groups that were looked at for other connectors.

    Raises UsageError, NotFoundError, UnsupportedError for workers that are too old, RefusedError, and what looking
    raises.
    """
    here = look_at_side(app, connector, seen=seen)
    moves = read_moves(here.journal())
    request = _continued(request, moves, connector, is_gone=here.now is None)
    to, name = _destination(request, moves, connector)
    there = look_at_side(app.elsewhere(to), name, profile=to, seen=seen)
    refuse_same_side(here, there)
    _refuse_other_group(there, moves)
    plans = {Direction.THERE: _plan_there, Direction.BACK: _plan_back, Direction.DELETE: _plan_delete}
    return plans[request.direction](here, there, request, moves)


def _refuse_unfinished(here: Side) -> None:
    """Raise RefusedError for a connector whose creation or switch was cut off.

    Moved, it would lack its offsets there; and who goes on with either later starts it here again.
    """
    creation = journal_of_create(here.app, here.connector, cluster_id=here.cluster_id)
    created = unfinished_create(creation)
    if created is not None:
        raise RefusedError(
            f"creating {here.connector} was begun and is not finished; nothing was changed",
            hint=created.way_out(creation),
        )
    begun = unfinished_switch(here.switch_journal())
    if begun is not None:
        on, back = (switch_command(here.connector, to) for to in (begun.target, begun.origin))
        raise RefusedError(
            f"a switch of {here.connector} from {begun.origin} to {begun.target} was begun and is not finished; "
            "nothing was changed",
            hint=Lines.of(f"Go on with it first: {on}", f"Or back: {back}"),
        )


def _refuse_other_group(there: Side, moves: Moves) -> None:
    """Raise RefusedError if the profile does not lead any more to the group where the connector was created."""
    known = moves.there
    if known is None or MoveStep.CREATE not in known.started or known.is_in(there.cluster_id, there.group_id):
        return
    raise RefusedError(
        f"profile {there.profile} leads to group {there.group_id} of Kafka cluster {there.cluster_id}, and the move "
        f"went to group {known.group_id} of {known.cluster_id}; nothing was changed",
        hint="The profile was changed since. Let it lead there again.",
    )


def _continued(request: MoveRequest, moves: Moves, connector: str, *, is_gone: bool) -> MoveRequest:
    """Return the request; with --resume, in the direction of what was begun.

    A connector that somebody has deleted here (`is_gone`) since it was started there has no step left but the end of
    the journal: --delete. Raises NotFoundError without anything to go on with, or to go back from, RefusedError while
    another direction is under way.
    """
    unfinished = moves.unfinished
    if request.resume:
        if unfinished is None:
            raise NotFoundError(
                f"no move of {connector} was begun here and not finished",
                hint="The journal is kept on the machine where it was begun, per group and connector.",
            )
        if request.direction not in (Direction.THERE, unfinished.direction):
            raise _under_way(connector, unfinished)
        return replace(request, direction=unfinished.direction)
    if request.direction is not Direction.THERE and moves.there is None:
        raise NotFoundError(
            f"no move of {connector} from this group is known on this machine",
            hint="The journal is kept where it was begun. Without it: `eosctl connectors move` from the other group.",
        )
    if unfinished is not None and unfinished.direction is not request.direction:
        ways = {Direction.BACK} | ({Direction.DELETE} if is_gone and unfinished.may_have_run else set())
        if unfinished.direction is not Direction.THERE or request.direction not in ways:
            raise _under_way(connector, unfinished)
    return request


def _under_way(connector: str, unfinished: BegunMove) -> RefusedError:
    return RefusedError(
        f"{unfinished.direction.words} of {connector} ({unfinished.to}) was begun and is not finished; nothing was "
        "changed",
        hint=f"Go on with it first: {move_command(connector, '--resume')}",
    )


def _destination(request: MoveRequest, moves: Moves, connector: str) -> tuple[str, str]:
    """Return the profile of the other side and the connector's name there: those of the journal, if there is a move."""
    known = moves.there
    if known is None:
        if request.to is None:
            raise UsageError("where to?", hint="Give --to PROFILE, the profile of the other Connect group.")
        return request.to, request.rename or connector
    given = {"--to": (request.to, known.to), "--rename": (request.rename, known.name)}
    for option, (wanted, begun) in given.items():
        if wanted is not None and wanted != begun:
            raise RefusedError(
                f"{connector} was moved, or began to move, with {option} {begun}, not {wanted}; nothing was changed",
                hint=f"Go on: {move_command(connector, '--resume')}, or back: {move_command(connector, '--back')}",
            )
    asked = request.settings
    counts = request.direction is Direction.THERE and (asked is not None or not request.resume)
    if counts and shown_settings(asked or {}) != dict(known.settings):
        raise RefusedError(
            f"{connector} was moved, or began to move, with other --set options ({_shown(known.settings)}); nothing "
            "was changed",
            hint=f"Give the same, or go back: {move_command(connector, '--back')}",
        )
    return known.to, known.name


def _shown(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "none"


def _settings(request: MoveRequest, there: Side, begun: BegunMove | None) -> dict[str, str]:
    """Return the settings: the given ones, else the journal's, whose hidden values are those that are there already."""
    if request.settings or begun is None:
        return dict(request.settings or {})
    known = {} if there.now is None else there.now.config
    found = {name: known.get(name, value) if value == HIDDEN else value for name, value in begun.settings.items()}
    lacking = [name for name, value in found.items() if value == HIDDEN]
    if lacking:
        raise UsageError(
            f"the value of --set {', '.join(lacking)} is not kept, as it may be a secret", hint="Give it again."
        )
    return found


def _plan_there(here: Side, there: Side, request: MoveRequest, moves: Moves) -> MovePlan:
    now, begun = require_source(here), moves.there
    require_stoppable(here)
    require_creatable(there)
    if begun is None or not begun.is_handed_over:
        _refuse_unfinished(here)
    settings = _settings(request, there, begun)
    config = config_there(now.config, there.connector, settings)
    require_consistent(here, there, config, begun)
    ran = begun is not None and begun.is_handed_over
    state = _state(there if ran else here, begun)
    facts = gather_facts(here, there, config, look=not ran)
    steps = steps_there(
        state=state,
        begun=begun,
        there_state=there.now.state if there.now else None,
        stopped=STOPPED,
        has_audit=facts.is_promised and state == RUNNING,
    )
    arrival = None
    origin, target = offsets_topic(here, now.config), offsets_topic(there, config)
    if MoveStep.CREATE in steps:
        if there.now is None:
            require_valid_config(there.worker(), there.connector, config, hint=_VALID_THERE)
        arrival = plan_arrival(origin, target, overwrite=request.overwrite_offsets)
        definition = ConnectorDefinition(there.connector, config, f"it has in {here.where}")
        place = ConnectorPlacement(definition, state, there.site(), target.store)
        of_place = problems_there(place, arrival, now.config, read_again=request.read_again)
        facts = replace(facts, problems=(*facts.problems, *of_place))
    elif MoveStep.RESUME in steps:
        refuse_left_behind(origin, target)
    return _plan(here, there, request, moves, config=config, settings=settings, state=state, steps=steps,
                 begun=begun, arrival=arrival, facts=facts, tasks=now.task_count)  # fmt: skip


def _plan(
    here: Side,
    there: Side,
    request: MoveRequest,
    moves: Moves,
    *,
    config: Mapping[str, str],
    settings: Mapping[str, str],
    state: str,
    steps: tuple[MoveStep, ...],
    begun: BegunMove | None,
    tasks: int,
    arrival: Arrival | None = None,
    facts: MoveFacts | None = None,
) -> MovePlan:
    done = tuple(step for step in MoveStep if begun is not None and step in begun.done and step not in steps)
    writes = arrival.writes if arrival is not None else None
    found = facts or MoveFacts()
    return MovePlan(
        request=request,
        direction=request.direction,
        here=here,
        there=there,
        config=config,
        settings=settings,
        state=state,
        tasks=max(tasks, begun.tasks if begun is not None else 0),
        steps=steps,
        done=done,
        begun=begun,
        moved=moves.there,
        former=moves.returned if request.direction is Direction.THERE else moves.there,
        journal=here.journal(),
        arrival=arrival,
        facts=found,
        problems=(*found.problems, *(writes.problems if writes is not None else ())),
    )


def _state(side: Side, begun: BegunMove | None) -> str:
    """Return the state to reach: that of the side that it leaves, or the journal's where a run has stopped it."""
    state = side.now.state if side.now is not None else STOPPED
    if begun is None or state in (RUNNING, PAUSED):
        return STATE_AFTER[state]
    return begun.state


def _plan_back(here: Side, there: Side, request: MoveRequest, moves: Moves) -> MovePlan:
    moved, begun = moves.there, moves.after
    assert moved is not None  # noqa: S101 - _continued raises
    now = require_source(here)
    require_stoppable(there)
    if MoveStep.CREATE not in moved.started:
        there = replace(there, now=None)  # one of that name is somebody else's
    config = config_there(now.config, there.connector, moved.settings)
    ran = moved.is_handed_over or (there.now is not None and there.now.state != STOPPED)
    is_back = begun is not None and begun.may_have_run
    state = _state(here, begun or moved) if is_back else _state(there, begun or moved)
    steps = _steps_back(here, there, state=state, ran=ran, is_back=is_back)
    arrival, facts = None, MoveFacts()
    of_there = there.now.config if there.now is not None else config
    origin, target = offsets_topic(there, of_there), offsets_topic(here, now.config)
    if MoveStep.OFFSETS in steps:
        arrival = plan_arrival(origin, target, overwrite=request.overwrite_offsets)
    elif (is_back and MoveStep.RESUME in steps) or (there.now is not None and MoveStep.OFFSETS in moved.done):
        refuse_left_behind(origin, target)
    if ran and there.now is not None:
        facts = gather_facts(here, there, config, look=False)
        steps = _with_audit(steps) if facts.is_promised and state == RUNNING else steps
    tasks = there.now.task_count if there.now is not None else now.task_count
    return _plan(here, there, request, moves, config=config, settings=moved.settings, state=state, steps=steps,
                 begun=begun, arrival=arrival, facts=facts, tasks=max(tasks, moved.tasks))  # fmt: skip


def _steps_back(here: Side, there: Side, *, state: str, ran: bool, is_back: bool) -> tuple[MoveStep, ...]:
    """Return the steps of a way back; one that has never run there has nothing to bring back."""
    now = here.require()
    last = () if state == STOPPED else (MoveStep.RESUME, MoveStep.WATCH)
    remove = () if there.now is None else (MoveStep.REMOVE,)
    if is_back:
        return (*(step for step in last if step is not MoveStep.RESUME or now.state != state), *remove)
    if now.state != STOPPED:
        if ran:
            raise RefusedError(
                f"{here.connector} is {now.state} in {here.where}, and has run in {there.where}; nothing was changed",
                hint=f"Stop it: `eosctl connectors stop {arguments(here.connector)}`, look what both have done "
                "(`eosctl audit`), and run again.",
            )
        return remove
    if not ran:
        return (*remove, *last)
    return (MoveStep.STOP, MoveStep.SETTLE, MoveStep.OFFSETS, MoveStep.CHECK, *last, *remove)


def _with_audit(steps: tuple[MoveStep, ...]) -> tuple[MoveStep, ...]:
    """Audit both sides before the one that the connector left is deleted."""
    found = ((each, MoveStep.AUDIT) if each is MoveStep.WATCH else (each,) for each in steps)
    return tuple(step for pair in found for step in pair)


def _plan_delete(here: Side, there: Side, request: MoveRequest, moves: Moves) -> MovePlan:
    moved = moves.there
    assert moved is not None  # noqa: S101 - _continued raises
    if not moved.ended and here.now is not None:
        raise RefusedError(
            f"the move of {here.connector} is not finished; nothing was changed",
            hint=f"Go on: {move_command(here.connector, '--resume')}",
        )
    config = {} if there.now is None else dict(there.now.config)
    steps = () if here.now is None else (MoveStep.CHECK, MoveStep.REMOVE)
    if here.now is not None and here.now.state != STOPPED:
        raise RefusedError(
            f"{here.connector} is {here.now.state} in {here.where}, and was moved to {there.where}; nothing was "
            "deleted",
            hint=f"Stop it: `eosctl connectors stop {arguments(here.connector)}`, and look what both have done.",
        )
    return _plan(here, there, request, moves, config=config, settings=moved.settings, state=moved.state, steps=steps,
                 begun=moves.after, tasks=moved.tasks)  # fmt: skip
