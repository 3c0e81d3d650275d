"""One step of a roll: the state before and after it, the group's claim, and who is back after a restart.

States are values, with how workers are reached and distinguished.

An upgrade claims its group, so that another operator's eosctl stops one under way. It initializes a transactional id of
eosctl's own, as a producer does; before each restart the producer must still be the same. So of two upgrades of a
group, begun on two machines, the older one stops before its next restart.

After a restart it is found who is back in the group, who else was restarted, and whose URL has changed. No request
reaches a node of a dedicated MirrorMaker. Its restart shows in the group: the former member has left, and one from the
same host has joined. Its mode shows in its own file, and in what only that mode does: the leader's claim of its
transactional id, and those of exactly-once tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import ProducerId, TransactionalId, own_transactional_id
from eosctl.core.transactions import OPEN_STATES, KafkaFault, TransactionDescription
from eosctl.core.wording import counted
from eosctl.core.workers.modes import Mode
from eosctl.core.workers.url import parse_worker_url
from eosctl.deadline import Deadline, Event
from eosctl.errors import ConnectError, EosctlError, RefusedError
from eosctl.group.gather import in_turn
from eosctl.group.members import KnownNodes, NodeName, are_alike
from eosctl.group.observed import GroupObservation, WorkerObservation
from eosctl.group.protocol import Work
from eosctl.ports import TransactionAdmin
from eosctl.state.journal import Journal
from eosctl.upgrade.apply_rows import ApplyOutcome
from eosctl.upgrade.drivers import DriverResult

_LEAST_LOOK_S = 5.0
"""A look has this long even where less of the step's time is left: a worker in good health needs not be hurried."""


class LeaderClaim(Struct, frozen=True):
    """The leader, and the producer id and epoch under its transactional id; None if there is none.

    `seen` False: the coordinators did not report, so that nothing follows from it.
    """

    leader: str | None
    producer: tuple[ProducerId, int] | None
    seen: bool = True


class Before(Struct, frozen=True):
    """The state before a step: `members` (URL -> member id), leader's `claim`, the tasks' `ids` and `owners`.

    `others` are the members besides the step's workers, as they were just before it: they must not be restarted.
    """

    members: Mapping[str, str | None]
    claim: LeaderClaim | None = None
    others: Mapping[str, str] = {}
    ids: Mapping[TransactionalId, TransactionDescription | KafkaFault] = {}
    owners: Mapping[Work, str] = {}


class Expected(Struct, frozen=True):
    """The state in which one step should end.

    `fenceable` are the workers that are preparing or enabled then. `at_once`: workers may come back under other URLs.
    `patience_s` None: their return is waited for without end. `look_s` is how long one look may take. `excused` are
    connectors and tasks that had failed before. `count` asks how many members there should be; None: as many as before.
    `mirror_maker`: no request reaches any of them; those that are `alike` were not restarted yet, so that nothing shows
    which of a host's they are.
    """

    workers: tuple[str, ...]
    mode: Mode
    before: Before
    connectors: Mapping[str, str]
    excused: frozenset[Work]
    fenceable: frozenset[str]
    words: str
    settle_timeout_s: float
    patience_s: float | None
    look_s: float
    at_once: bool = False
    count: Callable[[App], int] | None = None
    files: tuple[Path, ...] = ()
    mirror_maker: bool = False
    alike: frozenset[str] = frozenset()


class Settled(Struct, frozen=True):
    """The end of a step: the new member id of each of its workers, and the evidence of their modes.

    `everybody` are all members then; `renamed` reports the new URL of a worker that came back under another one.
    """

    members: Mapping[str, str | None]
    evidence: tuple[str, ...]
    everybody: Mapping[str, str]
    renamed: Mapping[str, str]


class GateFailedError(ConnectError):
    """A gate failed, and waiting does not help."""


def look_app(app: App, look_s: float, *, within: Deadline | None = None) -> App:
    """Return the App for one look, which takes `look_s` at most, and not much longer than is left of `within`."""
    left_s = look_s if within is None else max(_LEAST_LOOK_S, within.remaining_s())
    return replace(app, deadline=Deadline.after(min(look_s, left_s), app.clock))


def owners_of(group: GroupObservation) -> dict[Work, str]:
    """Return the name of the member that owns each task."""
    return {work: member.name for member in group.members for work in member.tasks or ()}


def members_of(group: GroupObservation) -> dict[str, str]:
    """Return the member id of each member by URL or node."""
    return {m.name: m.member_id for m in group.members if (m.url or m.node) and m.member_id is not None}


def reachable_url(app: App, url: str) -> str:
    """Return the URL as the user gave it, with credentials if it has some; else the member's own."""
    return next((given for given in app.target.connect_urls if parse_worker_url(given).text == url), url)


@dataclass(slots=True)
class StepOutcome:
    """The outcome of one step; `joined` are workers beyond those of its beginning, `backups` the copies made in it."""

    mode: Mode
    workers: tuple[str, ...]
    outcome: ApplyOutcome
    detail: str = ""
    backups: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()

    @property
    def backup(self) -> str | None:
        """The paths of the backups, for a row."""
        return ", ".join(self.backups) or None

    def with_backups(self, app: App, journal: Journal) -> App:
        """Return an App that records the path of a backup as soon as it is made, as the step may fail after it."""

        def on_event(event: Event) -> None:
            if event.backup is not None:
                journal.write("backup", path=event.backup)
                self.backups = (*self.backups, event.backup)
            app.on_event(event)

        return replace(app, on_event=on_event)

    def name_backup(self, acted: DriverResult) -> None:
        """Record the driver's backup if no event has reported one."""
        if acted.backup is not None and not self.backups:
            self.backups = (acted.backup,)


_TIMEOUT_MS = 60_000


class GroupClaim(Struct, frozen=True):
    """The id, and its producer id and epoch as this run initialized it; None without the right, or on failure."""

    transactional_id: TransactionalId
    producer: tuple[ProducerId, int] | None = None


def claim_group(app: App) -> GroupClaim:
    """Claim the group's own id; raise RefusedError while another eosctl writes with it. Skip it without the right."""
    wanted = own_transactional_id(app.target.require_group_id())
    try:
        with app.transactions() as admin:
            found = admin.describe_transactions([wanted]).get(wanted)
            if isinstance(found, TransactionDescription) and found.state in OPEN_STATES:
                raise RefusedError(
                    f"another eosctl writes to the config topic of group {app.target.group_id} now "
                    f"({wanted} is {found.state}); nothing was written",
                    hint="Wait for it, and run again.",
                )
            producer, reason = _take(admin, wanted)
    except RefusedError:
        raise
    except EosctlError as exc:
        producer, reason = None, exc.message
    if producer is None:
        app.on_event(Event(f"an upgrade that is begun elsewhere would not be noticed at once: {wanted}: {reason}"))
    return GroupClaim(wanted, producer)


def _take(admin: TransactionAdmin, wanted: TransactionalId) -> tuple[tuple[ProducerId, int] | None, str]:
    for answer in admin.fence([wanted], transaction_timeout_ms=_TIMEOUT_MS):
        if answer.producer_id is not None and answer.producer_epoch is not None:
            return (answer.producer_id, answer.producer_epoch), ""
        return None, answer.fault.name if answer.fault else "no answer"
    return None, "no answer"


def require_ours(app: App, claim: GroupClaim) -> None:
    """Raise RefusedError if another eosctl has claimed the id since; if it can't be read, go on."""
    if claim.producer is None:
        return
    try:
        with app.transactions() as admin:
            found = admin.describe_transactions([claim.transactional_id]).get(claim.transactional_id)
    except EosctlError:
        return
    if isinstance(found, TransactionDescription) and (found.producer_id, found.producer_epoch) != claim.producer:
        raise RefusedError(
            f"another eosctl began to work at group {app.target.group_id}: {claim.transactional_id} is not as this "
            "upgrade took it; no further worker was restarted",
            hint="See who else upgrades, rescues or writes task counts here; --resume continues when that is over.",
        )


UNPROVEN = "by file and membership; nothing without REST proves the mode"
RENAMED_AFTER_S = 30.0
"""A worker that is away for so long may have come back under another URL, if there is a new one."""
TOUCHED_HINT = (
    "See whether somebody else upgrades or restarts workers now, or why a worker lost its place in the group; "
    "--resume then continues."
)


def require_untouched(group: GroupObservation, expected: Expected) -> None:
    """Raise GateFailedError if workers that this roll did not touch have joined again: somebody else restarts them."""
    now = members_of(group)
    others = [url for url, member_id in expected.before.others.items() if now.get(url, member_id) != member_id]
    if group.stable and others:
        raise GateFailedError(touched_by_others(f"{', '.join(others)} joined again"), hint=TOUCHED_HINT)


def touched_by_others(what: str) -> str:
    """Describe a change of the group that this roll did not make."""
    return f"the group changes under this upgrade: {what}, which it had not restarted"


def renamed_worker(group: GroupObservation, expected: Expected) -> dict[str, str]:
    """Return the old and the new URL of a worker that came back under another one: long away, and one member is new."""
    there = members_of(group)
    new = [url for url, member_id in there.items() if url not in expected.before.members]
    missing = [url for url in expected.before.members if url not in there]
    if expected.at_once or not group.stable or len(new) != 1 or missing != list(expected.workers):
        return {}
    return {missing[0]: new[0]}


def under_new_names(expected: Expected, renamed: Mapping[str, str]) -> Expected:
    if not renamed:
        return expected
    members = {url: member_id for url, member_id in expected.before.members.items() if url not in renamed}
    return replace(
        expected,
        workers=tuple(renamed.get(url, url) for url in expected.workers),
        before=replace(expected.before, members=members),
        fenceable=expected.fenceable | set(renamed.values()),
    )


def not_back(app: App, group: GroupObservation, expected: Expected) -> str:
    """Describe who is missing, for gates members_known and group_stable: all are there, restarted ones as new ones."""
    if not group.stable:
        return f"the group is {group.state}"
    there = {member.name: member for member in group.members if member.member_id is not None}
    before = expected.before.members
    if expected.at_once:
        old = {member_id for member_id in before.values() if member_id}
        left = [member.name for member in there.values() if member.member_id in old]
        if left:
            return f"not restarted yet: {', '.join(left)}"
        wanted = expected.count(app) if expected.count else len(before)
        return "" if len(there) == wanted else f"{len(there)} of {wanted} members"
    missing = [url for url in {**before, **dict.fromkeys(expected.workers)} if url not in there]
    if missing:
        return f"not in the group: {', '.join(missing)}"
    same = [url for url in expected.workers if there[url].member_id == before.get(url)]
    return f"not restarted yet: {', '.join(same)}" if same else ""


def silent_workers(app: App, group: GroupObservation, expected: Expected) -> str:
    """Describe who does not answer and may hold the group up; during a rebalance the group reports no URLs."""
    silent = [str(member.url) for member in group.members if member.health == "unreachable"]
    if not group.stable and not expected.at_once and not expected.mirror_maker:
        silent = []
        for _url, worker in in_turn(app, [reachable_url(app, url) for url in expected.before.members]):
            try:
                worker.root()
            except EosctlError:
                silent.append(worker.url)
    return f"; no answer from {', '.join(silent)}" if silent else ""


def with_current_names(group: GroupObservation, expected: Expected) -> tuple[GroupObservation, Expected]:
    """Return group and step with the present names of nodes: of one host's, the node that left is the step's."""
    if not expected.mirror_maker or not group.stable:
        return group, expected
    there = {str(member.member_id) for member in group.members}
    known = KnownNodes(expected.before.members, expected.workers, expected.alike).now(there)
    others = {name: str(known[name]) for name in expected.before.others if name in known}
    before = replace(expected.before, members=known, others=others)
    return group.named_as(KnownNodes(known)), replace(expected, before=before)


def node_proof(app: App, member: WorkerObservation, expected: Expected) -> str:
    """Describe what was seen of a node's restart and what its own file says; raise GateFailedError for another mode."""
    own = {str(path.resolve()) for path in expected.files}
    told = [each for each in app.target.worker_configs if each.properties.source in own]
    wrong = [each for each in told if each.exactly_once not in (None, expected.mode.value)]
    if wrong:
        raise GateFailedError(
            f"gate mode_proven: {wrong[0].properties.source} says {wrong[0].exactly_once} instead of "
            f"{expected.mode.value}",
            hint="See what sets it.",
        )
    said = [f"{each.properties.source} says {each.exactly_once}" for each in told if each.exactly_once is not None]
    moved = f"member {member.member_id} joined from {member.client_host}"
    former = expected.before.members.get(member.name)
    left = f"member {former} left, and " if former is not None else ""
    alike = [name for name in expected.before.members if are_alike(name, member.name)]
    place = NodeName.read(member.name).place
    count = [f"{counted(len(alike) + 1, 'node')} at {place} can't be distinguished, and are counted"] if alike else []
    return "; ".join([*(said or [f"its mode is taken from its restart ({expected.words})"]), left + moved, *count])
