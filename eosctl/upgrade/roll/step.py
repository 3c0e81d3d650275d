"""The state before and after one step of a roll, as values, and how workers are reached and distinguished."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.transactions import KafkaFault, TransactionDescription
from eosctl.core.workers.modes import Mode
from eosctl.core.workers.url import parse_worker_url
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError
from eosctl.events import Event
from eosctl.group.observed import GroupObservation
from eosctl.group.protocol import Work
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
