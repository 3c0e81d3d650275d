"""The two sides of a move: a Connect group, its Kafka cluster, the worker that is asked, and the connector there.

Who answers is checked, never assumed: a worker's Kafka cluster, and its connectors against the group's config topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.change import prepare_change
from eosctl.connectors.dedicated import cluster_of_ids
from eosctl.connectors.holders import asks_to_start, who_holds
from eosctl.connectors.look import (
    STATE_AFTER,
    STOPPED,
    ConnectorNow,
    ReachedWorker,
    look_at,
    named_cluster_id,
    reach_worker,
    require_stable_group,
)
from eosctl.connectors.rows import Verb
from eosctl.core.versions import CREATED_STOPPED_SINCE, STOPPABLE_SINCE, is_older, shown_version
from eosctl.core.workers.access import CONNECTOR_CONFIG
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.create.journal import COMMAND as CREATE_COMMAND
from eosctl.create.journal import journal_of_create, unfinished_create
from eosctl.create.looks import Site
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, NotFoundError, RefusedError, UnsupportedError
from eosctl.foreign import arguments, shell_words
from eosctl.group.modes import refuse_unreachable
from eosctl.group.topics import ConfigTopic, find_config_topic
from eosctl.move.journal import COMMAND as MOVE_COMMAND
from eosctl.move.journal import BegunMove, Moves, MoveStep, arriving_moves, journal_of_moves, read_moves
from eosctl.plan import Plan
from eosctl.ports import ConnectWorker
from eosctl.state.expectations import require_expected
from eosctl.state.journal import Journal, journal_of, journals_of_any_group

_LOOK_S = 5.0
Kept = TypeVar("Kept")


class Side(Struct, frozen=True):
    """One side: `connector` is the connector's name there, `now` how a worker shows it, None where there is none.

    `shown` are all connectors of the group, as the worker showed them at that moment. `profile` names the side that is
    not the command's own target.
    """

    app: App
    connector: str
    cluster_id: str
    url: str
    shown_url: str
    version: str
    now: ConnectorNow | None
    shown: Mapping[str, ConnectorEntry]
    profile: str | None = None

    @property
    def group_id(self) -> str:
        """The Connect group."""
        return self.app.target.require_group_id()

    def site(self) -> Site:
        """Return the side as the place of a connector."""
        return Site(self.url, self.shown_url, self.version, self.cluster_id, self.shown)

    def pinned(self) -> App:
        """Return the App with the whole timeout, and one worker for all steps: others may lag behind it."""
        return replace(self.app, target=replace(self.app.target, connect_urls=(self.url,))).with_whole_timeout()

    def worker(self) -> ConnectWorker:
        """Return the worker that is asked."""
        return self.pinned().worker(self.url)

    def look(self) -> ConnectorNow | None:
        """Return the connector as the worker shows it now; None where it has none of that name."""
        try:
            return look_at(self.pinned(), self.connector, self.url)
        except NotFoundError:
            return None

    def look_soon(self) -> ConnectorNow | None:
        """Return as `look`, within a few seconds."""
        patient = replace(self.app, deadline=Deadline.after(min(_LOOK_S, self.app.deadline.timeout_s), self.app.clock))
        return replace(self, app=patient).look()

    def require(self) -> ConnectorNow:
        """Return the connector as it was when the side was looked at."""
        if self.now is None:
            raise NotFoundError(f"{self.where} has no connector {self.connector}")
        return self.now

    def of_tasks(self, config: Mapping[str, str]) -> App:
        """Return the App of the Kafka cluster that the tasks of the connector with this config write to."""
        at = cluster_of_ids(self.app, self.connector, config)
        return self.pinned() if at is None else at.with_clients(self.pinned())

    @property
    def where(self) -> str:
        """The side, in words."""
        return f"group {self.group_id}" + ("" if self.profile is None else f" (profile {self.profile})")

    def command(self, verb: str) -> str:
        """Return the command `eosctl connectors VERB` about the connector on this side, to be pasted."""
        return f"{shell_words('eosctl', 'connectors', verb, *self._options())} {arguments(self.connector)}"

    def offsets_command(self, *options: str) -> str:
        """Return the command that shows the connector's offsets on this side, to be pasted."""
        return shell_words("eosctl", "offsets", "get", *self._options(), "--connector", self.connector, *options)

    def _options(self) -> tuple[str, ...]:
        return () if self.profile is None else ("-p", self.profile)

    def journal(self) -> Journal:
        """Return the journal of moves of this connector, whose lock keeps other moves away."""
        return journal_of_moves(self.app, self.connector, cluster_id=self.cluster_id)

    def switch_journal(self) -> Journal:
        """Return the journal of switches of this connector between offsets topics."""
        return journal_of(self.app, "offsets-switch", self.connector, cluster_id=self.cluster_id)


def move_command(connector: str, *flags: str) -> str:
    """Return a command line of `connectors move`, to be pasted."""
    return shell_words("eosctl", "connectors", "move", "--connector", connector, *flags)


def not_to_be_resumed(app: App, cluster_id: str | None, names: Iterable[str]) -> Mapping[str, str]:
    """Return the connectors that must not be resumed here, each with what to do with it.

    It runs in another group, or is on its way, or was not seen to have its offsets, or its journal can't be read.
    """
    group_id = app.target.group_id
    fixes = dict[str, str]()
    if cluster_id is None or group_id is None:
        hint = "On this machine a `create` or a move of a connector of that name has begun. Name its group: -b, -g."
        return {name: hint for name in names if _may_be_elsewhere(app, name)}
    on_the_way, unread_of_all = _or_unread(
        partial(arriving_moves, app, cluster_id, group_id), dict[str, tuple[Moves, Journal]]()
    )
    for name in names:
        journal = journal_of_moves(app, name, cluster_id=cluster_id)
        moves, unread = _or_unread(partial(read_moves, journal), Moves())
        creation = journal_of_create(app, name, cluster_id=cluster_id)
        created, not_read = _or_unread(partial(unfinished_create, creation), None)
        there = moves.there
        if moves.unfinished is not None or name in on_the_way:
            fixes[name] = "Do not start it: a move of it is not over, as `move_unfinished` says."
        elif there is not None:
            fixes[name] = (
                f"It has moved to group {there.group_id} (profile {there.to}). Do not start it here; "
                f"`{move_command(name, '--delete')}` deletes it, `{move_command(name, '--back')}` brings it back."
            )
        elif created is not None and created.is_unchecked:
            fixes[name] = created.way_out(creation)
        elif (error := unread or unread_of_all or not_read) is not None:
            fixes[name] = f"Whether a move or `create` of it is not over is not known: {error.message}. {error.hint}"
    return fixes


def _may_be_elsewhere(app: App, name: str) -> bool:
    """Return whether journals of any group keep a connector of that name from being resumed, or can't be read."""
    created = [partial(unfinished_create, each) for each in journals_of_any_group(app, CREATE_COMMAND, name)]
    moved = [partial(read_moves, each) for each in journals_of_any_group(app, MOVE_COMMAND, name)]
    try:
        begun = [read() for read in created]
        return any(each is not None and each.is_unchecked for each in begun) or any(read().there for read in moved)
    except EosctlError:
        return True


def _or_unread(read: Callable[[], Kept], otherwise: Kept) -> tuple[Kept, EosctlError | None]:
    """Return what journals have; `otherwise`, and the error, where they can't be read."""
    try:
        return read(), None
    except EosctlError as exc:
        return otherwise, exc


def prepare_resume(app: App, connector: str) -> Plan:
    """Return the plan to resume a connector here; raise RefusedError if it could then run twice, or start over."""
    plan = prepare_change(app, connector, Verb.RESUME)
    fix = not_to_be_resumed(app, named_cluster_id(app), [connector]).get(connector)
    if fix is not None:
        raise RefusedError(
            f"{connector} may run in another group, be on its way there, or lack its offsets: resumed here, it could "
            "run twice or start over; nothing was changed",
            hint=fix,
        )
    return plan


class SeenGroup(Struct, frozen=True):
    """A Connect group at one look: its worker, with the connectors that this one shows, and the config topic."""

    cluster_id: str
    worker: ReachedWorker
    configs: ConfigTopic | None


def look_at_group(app: App) -> SeenGroup:
    """Look at a group. Raises RefusedError for one without workers or in a rebalance, for a worker of another Kafka
    cluster, and for ids that the profile does not expect.
    """
    app.target.require_agreement()
    cluster_id = require_stable_group(app)
    require_expected(app.target.expect, {"kafka_cluster_id": cluster_id, "group_id": app.target.group_id})
    worker = reach_worker(app, cluster_id)
    with app.topics() as topics:
        return SeenGroup(cluster_id, worker, find_config_topic(app, topics))


def look_at_side(
    app: App, connector: str, *, profile: str | None = None, seen: dict[str | None, SeenGroup] | None = None
) -> Side:
    """Look at one side; raise as `look_at_group`, and RefusedError for a worker of another group.

    `seen` has the groups of earlier looks by their profiles, which are not looked at again, and gets this one.
    """
    group = look_at_group(app) if seen is None or profile not in seen else seen[profile]
    if seen is not None:
        seen[profile] = group
    worker = group.worker
    refuse_unreachable(connector, app.worker(worker.url))
    now = worker.connector(connector) if connector in worker.connectors else None
    side = Side(
        app, connector, group.cluster_id, worker.url, worker.shown_url, worker.version, now, worker.connectors, profile
    )
    _require_same_group(side, group.configs)
    return side


def _require_same_group(side: Side, found: ConfigTopic | None) -> None:
    """Raise RefusedError unless the worker has the very connectors that the group's config topic has."""
    app, shown = side.app, side.shown
    if found is None:
        raise RefusedError(
            f"topic {app.target.config_topic} of {side.where} does not exist, so whether the worker at "
            f"{side.shown_url} is of that group is not known; nothing was changed",
            hint="Name the group's config topic: --config-topic, or config_topic of the profile.",
        )
    known = {name for name, state in found.state.connectors.items() if state.config is not None}
    differing = sorted(known ^ set(shown))
    mine, kept = shown.get(side.connector), found.state.connectors.get(side.connector)
    if mine is not None and kept is not None and mine.config != kept.config:
        differing.insert(0, side.connector)
    if differing:
        raise RefusedError(
            f"the worker at {side.shown_url} and topic {app.target.config_topic} of {side.where} do not agree on "
            f"{', '.join(differing[:3])}: it is of another group, or that connector just changed; nothing was changed",
            hint="Name the config and offsets topics of the worker's group (--config-topic, --offset-topic, or the "
            "profile's), then run again.",
        )


def refuse_same_side(here: Side, there: Side) -> None:
    """Raise RefusedError where both sides are one group."""
    if (here.cluster_id, here.group_id) == (there.cluster_id, there.group_id):
        raise RefusedError(
            f"profile {there.profile} leads to group {here.group_id} too, where {here.connector} is; nothing was "
            "changed",
            hint="Name the profile of another Connect group. `eosctl offsets switch` moves offsets within a group.",
        )


def require_source(side: Side) -> ConnectorNow:
    """Return the connector as it is. Raises NotFoundError, RefusedError for a sink and for an unclear state."""
    now = side.now or look_at(side.app, side.connector, side.url)
    if now.kind == "sink":
        raise RefusedError(
            f"{side.connector} is a sink connector: its place is the offsets of its consumer group, which move in "
            "another way; nothing was changed",
            hint="Only source connectors are moved. `kafka-consumer-groups.sh --reset-offsets --from-file` sets those "
            f"of connect-{side.connector}, while it is stopped on both sides.",
        )
    if now.state not in STATE_AFTER:
        raise RefusedError(
            f"connector {side.connector} is {now.state} in {side.where}: it is unknown whether it should run; nothing "
            "was changed",
            hint="Run again when it is RUNNING, PAUSED, STOPPED or FAILED.",
        )
    return now


def require_stoppable(side: Side) -> None:
    """Raise UnsupportedError for workers that can't stop a connector."""
    if is_older(side.version, STOPPABLE_SINCE):
        raise UnsupportedError(
            f"the worker at {side.shown_url} runs {shown_version(side.version)}: a connector can be stopped from Kafka "
            "3.5 on (KIP-875); nothing was changed",
            hint="Keep its config, DELETE it, and create it there with its offsets: `eosctl connectors create FILE "
            "--offsets CONNECTOR@PROFILE`.",
        )


def require_creatable(side: Side) -> None:
    """Raise UnsupportedError for workers that can't create a connector STOPPED, RefusedError for untrusted ones."""
    if is_older(side.version, CREATED_STOPPED_SINCE):
        raise UnsupportedError(
            f"the worker at {side.shown_url} runs {shown_version(side.version)}: a connector can be created STOPPED "
            "from Kafka 3.7 on (KIP-980); below, its tasks start before its offsets are there; nothing was changed",
            hint=f"By hand: stop it here, `eosctl offsets merge` its offsets into the offsets topic of "
            f"{side.where} with the connector absent there, then create it there.",
        )
    side.app.target.connect.require_trust(side.shown_url, CONNECTOR_CONFIG)


class RestUnknownError(RefusedError):
    """Whether the connector runs on a side is not known."""


def require_at_rest(side: Side, *, so_that: str) -> None:
    """Raise RefusedError unless no worker runs a task of the connector, and it is STOPPED or not there at all.

    Raises RestUnknownError where nobody can be asked. `so_that` ends the sentence. A connector that was asked to start
    is not at rest, though the workers may not show it yet.
    """
    held = who_holds(side.pinned(), [side.connector])
    for silence in (held.silence, held.doubt):
        if silence is not None:
            raise RestUnknownError(
                f"whether {side.connector} runs in {side.where} is not known ({silence.message}), {so_that}",
                hint=f"Make its workers answer, then run the same command again. {silence.hint or ''}".strip(),
            ) from silence
    is_absent = side.connector not in held.connectors
    state = "is not there" if is_absent else f"is {held.connectors[side.connector].state}"
    if is_absent or held.is_stopped(side.connector):
        if asks_to_start(side.pinned(), side.connector):
            state = "was asked to start"
        elif not held.left(side.connector):
            return
    tasks = ", ".join(map(str, held.left(side.connector))) or "none"
    raise RefusedError(
        f"{side.connector} {state} in {side.where} (tasks: {tasks}), {so_that}",
        hint=f"Ask who started it. `{side.command('stop')}`, then run the same command again.",
    )


def require_consistent(here: Side, there: Side, config: Mapping[str, str], begun: BegunMove | None) -> None:
    """Raise RefusedError where what is there is not what a move of this connector left, or both sides may run."""
    now, ran = here.require(), begun is not None and begun.is_handed_over
    if begun is None or MoveStep.CREATE not in begun.started:
        if there.now is not None:
            raise RefusedError(
                f"{there.where} has a connector {there.connector} already, which no move of {here.connector} made; "
                "nothing was changed",
                hint=_of_existing(there),
            )
        return
    if ran and there.now is None:
        raise RefusedError(
            f"{here.connector} was started in {there.where}, and is not there any more; nothing was changed",
            hint=f"Its last offsets are there: {move_command(here.connector, '--back')} brings it back with them.",
        )
    if ran and now.state != STOPPED:
        raise RefusedError(
            f"{here.connector} is {now.state} in {here.where}, and may have run in {there.where} since it moved there; "
            "nothing was changed",
            hint=f"Stop it: `eosctl connectors stop {arguments(here.connector)}`, look what both have done "
            "(`eosctl audit`), and run again.",
        )
    if ran or there.now is None:
        return
    if there.now.state != STOPPED:
        raise RefusedError(
            f"{there.connector} is {there.now.state} in {there.where}, and this move has not started it; nothing was "
            "changed",
            hint=f"Ask who did. {move_command(here.connector, '--back')} brings it back with the offsets of there.",
        )
    if dict(there.now.config) != dict(config):
        differing = sorted(
            name for name in {*config, *there.now.config} if config.get(name) != there.now.config.get(name)
        )
        raise RefusedError(
            f"the config of {there.connector} in {there.where} is not the one that it would get: "
            f"{', '.join(differing[:3])} differ; nothing was changed",
            hint=f"One of them changed since the move began. {move_command(here.connector, '--back')} removes it "
            "there; then move it again.",
        )


def _of_existing(there: Side) -> str:
    """Return the next step where the name is taken: the way back, if that connector has moved away from there."""
    if read_moves(there.journal()).there is None:
        return (
            "Did a move on another machine put it there, or leave it there STOPPED? Then go on or back on that "
            "machine, which has the journal. Otherwise --rename NAME moves this one under another name."
        )
    back = shell_words("eosctl", "connectors", "move", "-p", str(there.profile), "--connector", there.connector)
    return f"It moved away from there: `{back} --back` brings it back, with its offsets."
